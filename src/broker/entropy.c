/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/entropy.h"

#include <sys/random.h>

uint64_t entropy(void)
{
	uint64_t random;

	if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random)
		return 0;
	return random;
}
