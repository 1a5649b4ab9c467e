/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/entropy.h"

#include "util/random.h"

#define KEPT 32 /* how many numbers one system call brings */

uint64_t entropy(void)
{
	static _Thread_local uint64_t kept[KEPT];
	static _Thread_local unsigned left;
	uint64_t random;

	if (!left && !random_fill(kept, sizeof(kept), false))
		return 0;
	left = left ? left : KEPT;
	random = kept[--left];
	kept[left] = 0;
	return random;
}
