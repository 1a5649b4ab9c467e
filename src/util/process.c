/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/process.h"

#include "util/shared.h"

#include <pthread.h>
#include <unistd.h>

/* How many forks have led to this process since this library was loaded. */
static shared_u32 forks;

static void after_fork(void)
{
	shared_store(&forks, shared_own(&forks) + 1);
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, after_fork);
}

uint64_t process_number(void)
{
	return (uint64_t)shared_own(&forks) << 32 | (uint32_t)getpid();
}
