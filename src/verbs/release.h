/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The release of adverb that libibverbs.so.1 is of, for our other libraries.
 * Not part of the ABI: rdma-core's has no such symbol, so look it up (dlsym).
 */
#ifndef VERBS_RELEASE_H
#define VERBS_RELEASE_H

/* The release, as "0.1.0". */
const char *ibv_adverb_release(void);
typedef const char *verbs_release(void);

#endif
