/* SPDX-License-Identifier: BSD-2-Clause */
#include "heeded.h"

#include <stddef.h>

void heeded_add(sigset_t *set, int number)
{
	struct sigaction action;

	if (sigaction(number, NULL, &action) || action.sa_handler != SIG_IGN)
		sigaddset(set, number);
}
