/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The linker directs each call of a function that WRAP names to this file
 * (--wrap).  The n-th call after fail_at(n) fails, as if the function's
 * resource had run out: memory, descriptors, threads, or room in an arena.
 */
#include "fail.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "hca/arena.h"

static atomic_long left = -1; /* calls until the failing one; -1: none */
static const char *_Atomic victim;

void fail_at(long n)
{
	atomic_store(&victim, NULL);
	atomic_store(&left, n);
}

const char *fail_done(void)
{
	atomic_store(&left, -1);
	return atomic_load(&victim);
}

static bool must_fail(const char *name)
{
	long n = atomic_load(&left);

	while (n > 0 && !atomic_compare_exchange_weak(&left, &n, n - 1))
		;
	if (n != 1)
		return false;
	atomic_store(&left, -1);
	atomic_store(&victim, name);
	return true;
}

/* clang-format off */
#define WRAP(type, name, failed, error, parameters, arguments)                 \
	type __real_##name parameters;                                         \
	type __wrap_##name parameters;                                         \
	type __wrap_##name parameters                                          \
	{                                                                      \
		if (must_fail(#name)) {                                          \
			errno = error;                                         \
			return failed;                                         \
		}                                                              \
		return __real_##name arguments;                                \
	}

WRAP(void *, malloc, NULL, ENOMEM, (size_t n), (n))
WRAP(void *, calloc, NULL, ENOMEM, (size_t n, size_t s), (n, s))
WRAP(void *, aligned_alloc, NULL, ENOMEM, (size_t a, size_t n), (a, n))
WRAP(void *, realloc, NULL, ENOMEM, (void *p, size_t n), (p, n))
WRAP(void *, mmap, (void *)-1, ENOMEM,
     (void *p, size_t n, int prot, int flags, int fd, off_t off),
     (p, n, prot, flags, fd, off))
WRAP(int, eventfd, -1, EMFILE, (unsigned n, int flags), (n, flags))
WRAP(int, memfd_create, -1, EMFILE, (const char *s, unsigned f), (s, f))
WRAP(int, socket, -1, EMFILE, (int d, int t, int p), (d, t, p))
WRAP(int, pthread_create, EAGAIN, EAGAIN,
     (pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *v),
     (t, a, f, v))
WRAP(aoff, arena_alloc, 0, ENOMEM, (struct arena *a, uint64_t n), (a, n))
/* clang-format on */
