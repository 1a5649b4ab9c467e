/* SPDX-License-Identifier: BSD-2-Clause */
/* What makes ids, nonces and ports of the broker's hard to guess. */
#ifndef BROKER_ENTROPY_H
#define BROKER_ENTROPY_H

#include <stdint.h>

/* From the kernel, without waiting; 0 while it has none, early after boot. */
uint64_t entropy(void);

#endif
