/* SPDX-License-Identifier: BSD-2-Clause */
/* The linker's option --wrap=syscall replaces syscall(2) by __wrap_syscall:
 * calls that the test refuses fail, and all others reach the kernel. */
#ifndef TESTS_UNIT_REFUSED_SYSCALL_H
#define TESTS_UNIT_REFUSED_SYSCALL_H

#include <errno.h>
#include <stdarg.h>
#include <sys/syscall.h>

/* The test defines this function.  Returns the errno with which the system call
 * of this number and first argument fails; 0: the kernel executes the call. */
static int refused_syscall(long number, long first);

long __real_syscall(long number, long a, long b, long c, long d, long e,
		    long f);
long __wrap_syscall(long number, ...);

long __wrap_syscall(long number, ...)
{
	long arg[6];
	va_list ap;
	int err;

	va_start(ap, number);
	for (int i = 0; i < 6; i++)
		arg[i] = va_arg(ap, long);
	va_end(ap);
	err = refused_syscall(number, arg[0]);
	if (err) {
		errno = err;
		return -1;
	}
	return __real_syscall(number, arg[0], arg[1], arg[2], arg[3], arg[4],
			      arg[5]);
}

#endif
