/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/entropy.h"

#include "util/random.h"

/* How many numbers one system call brings.  They are thread-local, of which a
 * library has to take little (thread_state.h). */
#define KEPT 8

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
