/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random numbers that an attacker cannot guess, for keys, queue pair numbers
 * and PSNs.  They come from getrandom(2), or where a sandbox refuses that call,
 * from the device /dev/urandom.  No state, no lock, no cancellation point.
 */
#ifndef UTIL_RANDOM_H
#define UTIL_RANDOM_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Fills buf with n random bytes.  With @waits the call waits, while the machine
 * boots, until the kernel's generator is seeded.  Returns false if the kernel
 * gives no random numbers: the caller must fail, for there is no other source.
 */
bool random_fill(void *buf, size_t n, bool waits);

#endif
