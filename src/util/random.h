/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers that nobody can guess: keys, queue pairs and PSNs are drawn from
 * them.  From getrandom(2), or where a sandbox refuses that, from the kernel's
 * device /dev/urandom.  No state, no lock, no cancellation point.
 */
#ifndef UTIL_RANDOM_H
#define UTIL_RANDOM_H

#include <stdbool.h>
#include <stddef.h>

/*
 * False: the kernel gives none; there is no other place to take them from.
 * @waits: as the machine boots, until it has some.
 */
bool random_fill(void *buf, size_t n, bool waits);

#endif
