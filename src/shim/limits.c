/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RLIMIT_MEMLOCK as programs of RDMA want to read it.  The kernel counts the
 * memory that is registered with an adapter against it; ours pins none, so to
 * the program there is no limit, until it sets one itself.  What mlock(2) may
 * lock is as before: the kernel's own limit is raised no further than it goes.
 *
 * What one program sets, another that it becomes does not see.  Two threads
 * that set it at once get what one of them set.
 */
#include "shim/shim.h"

#include <stddef.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <unistd.h>

SHIM_NEXT(getrlimit);
SHIM_NEXT(setrlimit);
SHIM_NEXT(prlimit);

/* Under what the kernel calls them, the 64-bit calls are the same. */
_Static_assert(sizeof(struct rlimit) == sizeof(struct rlimit64) &&
		       sizeof(rlim_t) == sizeof(rlim64_t),
	       "one layout for both");

static struct rlimit shown = {RLIM_INFINITY, RLIM_INFINITY};

/* What the kernel allows of it. */
static int set_within(const struct rlimit *wish)
{
	struct rlimit limit;

	if (next_getrlimit(RLIMIT_MEMLOCK, &limit))
		return -1;
	if (wish->rlim_max < limit.rlim_max)
		limit.rlim_max = wish->rlim_max;
	limit.rlim_cur = wish->rlim_cur < limit.rlim_max ? wish->rlim_cur
							 : limit.rlim_max;
	return next_setrlimit(RLIMIT_MEMLOCK, &limit);
}

static int set_memlock(const struct rlimit *wish)
{
	if (!SHIM_FIND(getrlimit) || !SHIM_FIND(setrlimit))
		return -1;
	if (next_setrlimit(RLIMIT_MEMLOCK, wish) &&
	    (errno != EPERM || wish->rlim_max > shown.rlim_max ||
	     set_within(wish)))
		return -1;
	shown = *wish;
	return 0;
}

static int change_memlock(const struct rlimit *wish, struct rlimit *was)
{
	struct rlimit old = shown;

	if (wish && set_memlock(wish))
		return -1;
	if (was)
		*was = old;
	return 0;
}

/* A set-user-ID program has the kernel's own. */
static bool is_ours(int what)
{
	return what == RLIMIT_MEMLOCK && !getauxval(AT_SECURE);
}

SHIM int getrlimit(__rlimit_resource_t what, struct rlimit *limit)
{
	if (is_ours((int)what))
		return change_memlock(NULL, limit);
	return SHIM_FIND(getrlimit) ? next_getrlimit(what, limit) : -1;
}

SHIM int setrlimit(__rlimit_resource_t what, const struct rlimit *limit)
{
	if (is_ours((int)what))
		return change_memlock(limit, NULL);
	return SHIM_FIND(setrlimit) ? next_setrlimit(what, limit) : -1;
}

SHIM int prlimit(pid_t pid, enum __rlimit_resource what,
		 const struct rlimit *limit, struct rlimit *was)
{
	if (is_ours((int)what) && (pid == 0 || pid == getpid()))
		return change_memlock(limit, was);
	return SHIM_FIND(prlimit) ? next_prlimit(pid, what, limit, was) : -1;
}

SHIM int getrlimit64(__rlimit_resource_t what, struct rlimit64 *limit)
{
	return getrlimit(what, (struct rlimit *)(void *)limit);
}

SHIM int setrlimit64(__rlimit_resource_t what, const struct rlimit64 *limit)
{
	return setrlimit(what, (const struct rlimit *)(const void *)limit);
}

SHIM int prlimit64(pid_t pid, enum __rlimit_resource what,
		   const struct rlimit64 *limit, struct rlimit64 *was)
{
	return prlimit(pid, what, (const struct rlimit *)(const void *)limit,
		       (struct rlimit *)(void *)was);
}
