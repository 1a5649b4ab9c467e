/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random numbers that an attacker cannot guess, for keys, queue pair numbers
 * and PSNs.  They come from getrandom(2) or, where a sandbox refuses that call,
 * from the device /dev/urandom.  No state, no lock, no cancellation point.
 */
#ifndef UTIL_RANDOM_H
#define UTIL_RANDOM_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Fills buf with n random bytes.  Shortly after the boot, the kernel's
 * generator may not be seeded: then the call waits if @waits, and else returns
 * false. Also returns false if the kernel gives no random numbers at all.  The
 * caller must then fail, since there is no other source.
 */
bool random_fill(void *buf, size_t n, bool waits);

#endif
