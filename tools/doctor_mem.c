/* SPDX-License-Identifier: BSD-2-Clause */
#include "doctor.h"

#include "memory/arena_map.h"
#include "memory/copy_nofault.h"
#include "memory/copy_revocable.h"
#include "log/env.h"
#include "util/write_signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Writes 8 bytes to address @where of process @pid; returns 0 or an errno
 * value. */
static int write_word(pid_t pid, uint64_t *where)
{
	uint64_t value = 1;
	struct iovec from = {&value, sizeof(value)};
	struct iovec to = {where, sizeof(*where)};

	if (process_vm_writev(pid, &from, 1, &to, 1, 0) == sizeof(value))
		return 0;
	return errno;
}

void doctor_mem_self(void)
{
	uint64_t word = 0;
	int err = write_word(getpid(), &word);

	if (err == 0 && word == 1)
		doctor_say(DOCTOR_OK, "own memory",
			   "process_vm_writev reports unmapped memory instead "
			   "of crashing");
	else
		doctor_say(DOCTOR_SLOW, "own memory",
			   "process_vm_writev is refused (%s): a program that "
			   "unmaps registered memory may crash",
			   strerror(err));
}

/* Writes from one child to another child: neither is the parent of the other,
 * as with server and client of ib_write_bw.  Stores in *reaches_child whether
 * this process may write to a child.  Returns 0; an errno value; or ENOSYS if a
 * signal has killed the writer, such as the SIGSYS of a seccomp filter. */
static int write_sibling(uint64_t *word, bool *reaches_child)
{
	int status = 0;
	pid_t writer, target = fork();

	if (target < 0)
		return errno;
	if (target == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	*reaches_child = write_word(target, word) == 0;
	writer = fork();
	if (writer == 0)
		_exit(write_word(target, word));
	if (writer > 0)
		waitpid(writer, &status, 0);
	kill(target, SIGKILL);
	waitpid(target, NULL, 0);
	if (writer < 0)
		return EAGAIN;
	return WIFEXITED(status) ? WEXITSTATUS(status) : ENOSYS;
}

/* Can a process copy to memory that it has mapped, without a system call for
 * each copy (memory/copy_revocable.h)? */
static bool can_copy_mapped(void)
{
	uint64_t word = 0;
	struct copy_revocable l;
	bool can;

	copy_nofault_open();
	can = copy_revocable_take(&l, &word, 1);
	copy_nofault_close();
	return can;
}

/* Prints whether processes of this host exchange data without packets.  err:
 * the errno value with which the kernel refuses that a process writes into
 * another process; 0: the kernel permits that. */
static void check_direct_path(int err)
{
	switch (env_path()) {
	case ENV_PATH_PACKETS:
		doctor_say(DOCTOR_OK, "direct path",
			   "off by ADVERB_DIRECT=0: processes of this host "
			   "exchange packets");
		break;
	case ENV_PATH_CAPTURE:
		doctor_say(
			DOCTOR_SLOW, "direct path",
			"off because ADVERB_PCAP captures packets: processes "
			"of this host exchange packets");
		break;
	case ENV_PATH_DIRECT:
		if (err)
			doctor_say(
				DOCTOR_SLOW, "direct path",
				"off, since no process may write into another "
				"(see the line before): processes of this host "
				"exchange packets");
		else
			doctor_say(DOCTOR_OK, "direct path",
				   "from memory to memory between processes of "
				   "one user and build, %s",
				   can_copy_mapped()
					   ? "without system calls where "
					     "both processes can map the memory"
					   : "by system calls alone");
	}
}

/* Says why no process may write into another.  scope: Yama's ptrace_scope, or
 * "" if there is no Yama or no /proc. */
static void say_apart(int err, const char *scope, bool reaches_child)
{
	char yama[32] = "";

	if (scope[0] == '0' || scope[0] == '1')
		snprintf(yama, sizeof(yama), ", but not by Yama");
	else if (scope[0])
		snprintf(yama, sizeof(yama), ", ptrace_scope %s", scope);
	/* Only Yama, with ptrace_scope 1, lets a process write into its child,
	 * and refuses by EPERM to write into another process.  Without /proc
	 * the scope is unknown. */
	if (reaches_child && err == EPERM && (!scope[0] || scope[0] == '1'))
		doctor_say(DOCTOR_SLOW, "others' memory",
			   "Yama keeps processes of one user apart "
			   "(ptrace_scope 1): they exchange packets, unless "
			   "ADVERB_PTRACER=1 is set for each");
	else
		doctor_say(DOCTOR_SLOW, "others' memory",
			   "processes of one user are kept apart (%s%s): they "
			   "exchange packets",
			   strerror(err), yama);
}

void doctor_mem_other(void)
{
	static uint64_t word;
	char scope[16] = "";
	bool reaches_child = false;
	int err = write_sibling(&word, &reaches_child);

	doctor_read_line("/proc/sys/kernel/yama/ptrace_scope", scope,
			 sizeof(scope));
	if (err)
		say_apart(err, scope, reaches_child);
	else
		doctor_say(DOCTOR_OK, "others' memory",
			   "a process may write into another of its user%s%s",
			   scope[0] ? ", ptrace_scope " : "", scope);
	check_direct_path(err);
}

/* Makes a memory file as for one part of the smallest arena, and closes it.
 * Returns 0; or an errno value, with the name of the call that has failed in
 * *call. */
static int make_memfd(const char **call)
{
	int fd = memfd_create("adverb-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int err = 0;

	*call = "memfd_create";
	if (fd < 0)
		return errno;
	if (ftruncate(fd, (off_t)ARENA_MAP_LEAST / 2)) {
		err = errno;
		*call = "ftruncate of a memfd";
	} else if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK)) {
		err = errno;
		*call = "sealing of a memfd";
	}
	close(fd);
	return err;
}

void doctor_mem_memfd(void)
{
	const char *call;
	struct write_signals held;
	int err;

	write_signals_hold(&held);
	err = make_memfd(&call);
	write_signals_give(&held);
	if (!err)
		doctor_say(DOCTOR_OK, "shared memory",
			   "memfd with seals for rings and tables");
	else
		doctor_say(DOCTOR_NO, "shared memory",
			   "%s fails (%s), so there is no place for rings and "
			   "tables: %s",
			   call, strerror(err),
			   err == EFBIG
				   ? "raise the limit on file sizes, which "
				     "must be 8 MiB at least (ulimit -f)"
				   : "allow memfd_create(2) and its seals "
				     "in the sandbox");
}
