/* SPDX-License-Identifier: BSD-2-Clause */
/* libadverb-shim.so for programs of 32 bits, which it shows nothing. */
extern int empty_nothing;
