/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random numbers that an attacker cannot guess, for example for keys, queue
 * pair numbers and PSNs.  They come from getrandom(2) or, where a sandbox
 * refuses that call, from the device /dev/urandom.  No state, no lock, no
 * cancellation point.
 */
#ifndef UTIL_RANDOM_H
#define UTIL_RANDOM_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Fills buf with n random bytes and returns true.  Shortly after the boot, the
 * kernel's generator may not be seeded: then getrandom(2) waits if @waits, and
 * otherwise random_fill returns false.  (/dev/urandom does not tell whether the
 * generator is seeded.)  Also returns false if neither source gives random
 * numbers: there is no other source.
 */
bool random_fill(void *buf, size_t n, bool waits);

#endif
