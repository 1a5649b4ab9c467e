/* SPDX-License-Identifier: BSD-2-Clause */
/* shim/limits: the limit of locked memory that programs see and set, with a
 * kernel that the test plays. */
#include "test.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/syscall.h>

void *__wrap_dlsym(void *handle, const char *name);
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

/* The kernel's limit, and what the kernel says about this process. */
static struct rlimit kernel;
static bool has_capability;
static const char *user_space;

static bool may_raise(void)
{
	return has_capability && !strcmp(user_space, "user:[4026531837]");
}

static int get_limit(int what, struct rlimit *limit)
{
	/* test.h and AddressSanitizer use others */
	if (what != RLIMIT_MEMLOCK)
		return (int)__real_syscall(SYS_prlimit64, 0, what, NULL, limit);
	*limit = kernel;
	return 0;
}

static int set_limit(int what, const struct rlimit *limit)
{
	if (what != RLIMIT_MEMLOCK)
		return (int)__real_syscall(SYS_prlimit64, 0, what, limit, NULL);
	if (limit->rlim_max > kernel.rlim_max && !may_raise()) {
		errno = EPERM;
		return -1;
	}
	kernel = *limit;
	return 0;
}

/* The shim finds libc's getrlimit and setrlimit by dlsym. */
void *__wrap_dlsym(void *handle, const char *name)
{
	(void)handle;
	if (!strcmp(name, "getrlimit"))
		return (void *)(uintptr_t)get_limit;
	assert_string_equal(name, "setrlimit");
	return (void *)(uintptr_t)set_limit;
}

static long read_user_space(va_list ap)
{
	size_t len = strlen(user_space);
	char *text;

	va_arg(ap, int);
	assert_string_equal(va_arg(ap, const char *), "/proc/self/ns/user");
	text = va_arg(ap, char *);
	assert_true(va_arg(ap, size_t) >= len);
	if (!len)
		return -1;
	memcpy(text, user_space, len);
	return (long)len;
}

static long read_capabilities(va_list ap)
{
	struct __user_cap_data_struct *data;

	va_arg(ap, void *);
	data = va_arg(ap, struct __user_cap_data_struct *);
	memset(data, 0, _LINUX_CAPABILITY_U32S_3 * sizeof(*data));
	if (has_capability)
		data[CAP_TO_INDEX(CAP_SYS_RESOURCE)].permitted =
			CAP_TO_MASK(CAP_SYS_RESOURCE);
	return 0;
}

long __wrap_syscall(long number, ...)
{
	va_list ap;
	long result;

	va_start(ap, number);
	if (number == SYS_readlinkat) {
		result = read_user_space(ap);
	} else {
		assert_int_equal(number, SYS_capget);
		result = read_capabilities(ap);
	}
	va_end(ap);
	return result;
}

static int set_up(void **state)
{
	kernel = (struct rlimit){4096, 8192};
	has_capability = false;
	user_space = "user:[4026531837]";
	return 0;
}

static void expect_limit(struct rlimit limit, rlim_t soft, rlim_t hard)
{
	assert_int_equal(limit.rlim_cur, soft);
	assert_int_equal(limit.rlim_max, hard);
}

static void expect_seen(rlim_t soft, rlim_t hard)
{
	struct rlimit seen;

	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &seen), 0);
	expect_limit(seen, soft, hard);
	assert_int_equal(prlimit(0, RLIMIT_MEMLOCK, NULL, &seen), 0);
	expect_limit(seen, soft, hard);
}

/* As systemd, sshd and bpftool do. */
static void write_back(void)
{
	struct rlimit seen;

	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &seen), 0);
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &seen), 0);
}

static void a_limit_that_is_read_and_set_raises_nothing(void **state)
{
	has_capability = true;
	expect_seen(4096, 8192);
	write_back();
	expect_limit(kernel, 4096, 8192);
	/* a kernel without user namespaces, or a process without /proc */
	user_space = "";
	write_back();
	expect_limit(kernel, 4096, 8192);
}

static void a_program_that_can_raise_the_limit_does_so(void **state)
{
	const struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
	struct rlimit was;

	has_capability = true;
	assert_int_equal(prlimit(0, RLIMIT_MEMLOCK, &none, &was), 0);
	expect_limit(was, 4096, 8192);
	expect_limit(kernel, RLIM_INFINITY, RLIM_INFINITY);
}

/* Root of another user namespace has the capability, but cannot raise the
 * limit.  The kernel's limit becomes as high as it can. */
static void other_programs_see_no_limit(void **state)
{
	static const char *const spaces[] = {"user:[4026531837]",
					     "user:[4026532208]"};

	for (size_t i = 0; i < TEST_COUNT(spaces); i++) {
		set_up(NULL);
		has_capability = i;
		user_space = spaces[i];
		expect_seen(RLIM_INFINITY, RLIM_INFINITY);
		write_back();
		expect_seen(RLIM_INFINITY, RLIM_INFINITY);
		expect_limit(kernel, 8192, 8192);
	}
}

/* Last, since this process cannot forget the limit that it has set. */
static void a_limit_that_is_set_is_seen(void **state)
{
	const struct rlimit asked = {1024, 2048};

	has_capability = true;
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &asked), 0);
	expect_limit(kernel, 1024, 2048);
	expect_seen(1024, 2048);
	has_capability = false;
	expect_seen(1024, 2048);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(other_programs_see_no_limit, set_up),
		cmocka_unit_test_setup(
			a_limit_that_is_read_and_set_raises_nothing, set_up),
		cmocka_unit_test_setup(
			a_program_that_can_raise_the_limit_does_so, set_up),
		cmocka_unit_test_setup(a_limit_that_is_set_is_seen, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
