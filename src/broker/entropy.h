/* SPDX-License-Identifier: BSD-2-Clause */
/* Random numbers that make the broker's ids, nonces and ports hard to guess. */
#ifndef BROKER_ENTROPY_H
#define BROKER_ENTROPY_H

#include <stdint.h>

/* Returns 64 random bits from the kernel, and never waits; returns 0 if the
 * kernel has none yet, early after boot.  Each thread keeps a few numbers of
 * its own: a program may have two threads that are brokers (start.h), and after
 * a fork the parent and the child may each have one.  If brokers shared the
 * kept numbers, two brokers could draw the same number. */
uint64_t entropy(void);

#endif
