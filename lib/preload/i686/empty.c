/* SPDX-License-Identifier: BSD-2-Clause */
/* libadverb-shim.so for programs of 32 bits: an empty library, which changes
 * nothing. */
extern int empty_nothing;
