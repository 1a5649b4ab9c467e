/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RLIMIT_MEMLOCK as RDMA programs expect it.  The kernel counts memory that is
 * registered with an adapter against this limit, but adverb pins no memory.  So
 * the shim reports RLIM_INFINITY to the program until the program sets a limit
 * itself.  For mlock(2) the kernel's own limit stays in force.  When the
 * program sets a limit, the shim also sets the kernel's limit, as near to the
 * program's limit as the kernel permits.
 *
 * A process that can raise the kernel's limit sees that limit.  A program such
 * as systemd or sshd reads the limit and later writes the value back; if that
 * value were RLIM_INFINITY, the kernel's limit would become unlimited, for the
 * program's children, too.
 *
 * When the process executes another program, the shim forgets the limit that
 * the first program has set.  If two threads set the limit at once, the
 * reported limit may mix the two values, and the kernel's limit may differ from
 * the reported one.
 */
#include "shim/shim.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The link /proc/self/ns/user of a process in the initial user namespace: the
 * inode number is the kernel's PROC_USER_INIT_INO. */
#define FIRST_USER_SPACE "user:[4026531837]"

SHIM_NEXT(getrlimit);
SHIM_NEXT(setrlimit);
SHIM_NEXT(prlimit);

/* The 64-bit calls below use the same functions. */
_Static_assert(sizeof(struct rlimit) == sizeof(struct rlimit64) &&
		       sizeof(rlim_t) == sizeof(rlim64_t),
	       "one layout for both");

/* The limit that a program sees that cannot raise the kernel's limit. */
static struct rlimit shown = {RLIM_INFINITY, RLIM_INFINITY};

/* Is this process in the initial user namespace?  True if /proc does not tell,
 * as on a kernel without user namespaces.  The system call is direct, because
 * the shim's own readlinkat would replace the path. */
static bool is_in_first_space(void)
{
	char link[sizeof(FIRST_USER_SPACE)];
	long n = syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/ns/user", link,
			 sizeof(link));

	return n < 0 || (n == (long)sizeof(link) - 1 &&
			 memcmp(link, FIRST_USER_SPACE, (size_t)n) == 0);
}

/* Can this process raise its hard limits?  A permitted capability is enough,
 * since the process may make it effective.  In another user namespace than the
 * initial one the capability raises no limit. */
static bool can_raise(void)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	int err = errno;
	bool can = !syscall(SYS_capget, &head, data) &&
		   data[CAP_TO_INDEX(CAP_SYS_RESOURCE)].permitted &
			   CAP_TO_MASK(CAP_SYS_RESOURCE) &&
		   is_in_first_space();

	errno = err;
	return can;
}

/* Sets *seen to the limit that the program sees.  Returns 0, or -1 with errno.
 */
static int see_memlock(struct rlimit *seen)
{
	*seen = shown;
	if (!can_raise())
		return 0;
	return SHIM_FIND(getrlimit) ? next_getrlimit(RLIMIT_MEMLOCK, seen) : -1;
}

/* Sets the kernel's limit as near to `asked` as the kernel permits.  Returns
 * 0, or -1 with errno. */
static int set_within(const struct rlimit *asked)
{
	struct rlimit limit;

	if (next_getrlimit(RLIMIT_MEMLOCK, &limit))
		return -1;
	if (asked->rlim_max < limit.rlim_max)
		limit.rlim_max = asked->rlim_max;
	limit.rlim_cur = asked->rlim_cur < limit.rlim_max ? asked->rlim_cur
							  : limit.rlim_max;
	return next_setrlimit(RLIMIT_MEMLOCK, &limit);
}

/* Sets the kernel's limit to `asked`.  If the kernel refuses that, and `asked`
 * is within `seen`, which the program sees, sets the kernel's limit by
 * set_within.  Then the program sees `asked`.  Returns 0, or -1 with errno. */
static int set_memlock(const struct rlimit *asked, const struct rlimit *seen)
{
	if (!SHIM_FIND(getrlimit) || !SHIM_FIND(setrlimit))
		return -1;
	if (next_setrlimit(RLIMIT_MEMLOCK, asked) &&
	    (errno != EPERM || asked->rlim_max > seen->rlim_max ||
	     set_within(asked)))
		return -1;
	shown = *asked;
	return 0;
}

/* Stores the limit `old` in *was, unless `was` is NULL, as the kernel
 * does.  The kernel writes there first, so that a bad address is EFAULT and no
 * crash. */
static int show_memlock(const struct rlimit *old, struct rlimit *was)
{
	if (!was)
		return 0;
	if (!SHIM_FIND(getrlimit) || next_getrlimit(RLIMIT_MEMLOCK, was))
		return -1;
	*was = *old;
	return 0;
}

static int change_memlock(const struct rlimit *asked, struct rlimit *was)
{
	struct rlimit old;

	if (see_memlock(&old) || (asked && set_memlock(asked, &old)))
		return -1;
	return show_memlock(&old, was);
}

/* Does the shim answer for this limit?  A set-user-ID program sees the kernel's
 * own limit. */
static bool is_ours(int what)
{
	return what == RLIMIT_MEMLOCK && !getauxval(AT_SECURE);
}

/* libc's headers declare the pointers of getrlimit and setrlimit nonnull, so a
 * compiler would delete a comparison with NULL; but libc's functions accept
 * NULL.  After this empty assembly the compiler knows nothing about the
 * pointer. */
#define MAY_BE_NULL(pointer) __asm__("" : "+r"(pointer))

SHIM int getrlimit(__rlimit_resource_t what, struct rlimit *limit)
{
	MAY_BE_NULL(limit);
	if (is_ours((int)what))
		return change_memlock(NULL, limit);
	return SHIM_FIND(getrlimit) ? next_getrlimit(what, limit) : -1;
}

SHIM int setrlimit(__rlimit_resource_t what, const struct rlimit *limit)
{
	MAY_BE_NULL(limit);
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
