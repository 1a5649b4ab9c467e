/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * deny_syscall WORD... -- PROGRAM...: runs a program under a seccomp filter for
 * each WORD.  The filters refuse system calls, as a sandbox or an old kernel
 * does.
 *
 *	ipv6	socket() makes no AF_INET6 socket
 *	bpf	SO_ATTACH_REUSEPORT_CBPF fails, so no BPF program can choose the
 *		socket of an SO_REUSEPORT group
 *	fork	clone and clone3 make no process; threads are allowed
 *	batches	setsockopt refuses UDP_SEGMENT and UDP_GRO
 *	vm	process_vm_writev fails
 *	memfd	memfd_create fails
 *	rcvbuf	setsockopt refuses to change the size of a receive buffer
 *	msync	msync fails
 *	rights	setsockopt refuses SO_PASSRIGHTS
 *	debug	five calls outside systemd's @system-service kill the process
 *	signalfd	signalfd fails
 *	flags	memfd_create refuses the flags of later kernels
 *	cpus	sched_getaffinity takes no set of less than 4096 processors
 *	CALL=ENOSYS, CALL=EPERM, CALL=EINVAL	CALL, which must be in the table
 *		calls[], fails with this error
 *	CALL=KILL	CALL kills the process
 *
 * Exit status 77: a filter cannot be installed here.  2: a WORD is unknown, or
 * PROGRAM is missing.  127: PROGRAM cannot be executed.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ARG(n)	((uint32_t)offsetof(struct seccomp_data, args[n]))
#define LOAD(k) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, k)
#define FAIL(e) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (e))
#define ALLOW	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
/* Skips n instructions unless the loaded word is k. */
#define UNLESS(k, n) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, k, 0, n)

/* Makes one call end with the action, whatever its arguments. */
#define ANSWER(call, action)                                                   \
	LOAD(offsetof(struct seccomp_data, nr)), UNLESS(call, 1),              \
		BPF_STMT(BPF_RET | BPF_K, action), ALLOW
#define REFUSE(call, e) ANSWER(call, SECCOMP_RET_ERRNO | (e))

/* Kills the process if the loaded word is this call. */
#define DIE(call)                                                              \
	UNLESS(call, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

static struct sock_filter no_ipv6[] = {
	LOAD(offsetof(struct seccomp_data, nr)),
	UNLESS(SYS_socket, 3),
	LOAD(ARG(0)),
	UNLESS(AF_INET6, 1),
	FAIL(EAFNOSUPPORT),
	ALLOW,
};

static struct sock_filter no_bpf[] = {
	LOAD(offsetof(struct seccomp_data, nr)),
	UNLESS(SYS_setsockopt, 3),
	LOAD(ARG(2)),
	UNLESS(SO_ATTACH_REUSEPORT_CBPF, 1),
	FAIL(ENOPROTOOPT),
	ALLOW,
};

static struct sock_filter no_fork[] = {
	LOAD(offsetof(struct seccomp_data, nr)),
	UNLESS(SYS_clone3, 1),
	/* A filter cannot read the flags of clone3, which lie in memory.  After
	 * ENOSYS glibc calls clone instead. */
	FAIL(ENOSYS),
	UNLESS(SYS_clone, 3),
	LOAD(ARG(0)),
	BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0),
	FAIL(EPERM),
	ALLOW,
};

static struct sock_filter no_batches[] = {
	LOAD(offsetof(struct seccomp_data, nr)),
	UNLESS(SYS_setsockopt, 6),
	LOAD(ARG(1)),
	UNLESS(IPPROTO_UDP, 4),
	LOAD(ARG(2)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, UDP_SEGMENT, 1, 0),
	UNLESS(UDP_GRO, 1),
	FAIL(ENOPROTOOPT),
	ALLOW,
};

static struct sock_filter no_vm[] = {REFUSE(SYS_process_vm_writev, EPERM)};

static struct sock_filter no_memfd[] = {REFUSE(SYS_memfd_create, ENOSYS)};

static struct sock_filter no_rcvbuf[] = {
	LOAD(offsetof(struct seccomp_data, nr)),
	UNLESS(SYS_setsockopt, 6),
	LOAD(ARG(1)),
	UNLESS(SOL_SOCKET, 4),
	LOAD(ARG(2)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SO_RCVBUF, 1, 0),
	UNLESS(SO_RCVBUFFORCE, 1),
	FAIL(EPERM),
	ALLOW,
};

static struct sock_filter no_rights[] = {
	LOAD(offsetof(struct seccomp_data, nr)),
	UNLESS(SYS_setsockopt, 3),
	LOAD(ARG(2)),
	UNLESS(83, 1), /* SO_PASSRIGHTS, since Linux 6.16 */
	FAIL(ENOPROTOOPT),
	ALLOW,
};

static struct sock_filter no_msync[] = {REFUSE(SYS_msync, EPERM)};

/* Calls outside @system-service that a library might make. */
static struct sock_filter no_debug[] = {
	LOAD(offsetof(struct seccomp_data, nr)),
	DIE(SYS_bpf),
	DIE(SYS_mincore),
	DIE(SYS_perf_event_open),
	DIE(SYS_pidfd_getfd),
	DIE(SYS_ptrace),
	ALLOW,
};

static struct sock_filter no_signalfd[] = {REFUSE(SYS_signalfd4, EPERM)};

/* Only MFD_CLOEXEC and MFD_ALLOW_SEALING, which are as old as memfd_create, are
 * allowed. */
static struct sock_filter no_flags[] = {
	LOAD(offsetof(struct seccomp_data, nr)),
	UNLESS(SYS_memfd_create, 3),
	LOAD(ARG(1)),
	BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, ~3u, 0, 1),
	FAIL(EINVAL),
	ALLOW,
};

/* As on a kernel that allows 4096 processors. */
static struct sock_filter no_cpus[] = {
	LOAD(offsetof(struct seccomp_data, nr)),
	UNLESS(SYS_sched_getaffinity, 3),
	LOAD(ARG(1)),
	BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 4096 / 8, 1, 0),
	FAIL(EINVAL),
	ALLOW,
};

static const struct {
	const char *name;
	uint32_t number;
} calls[] = {
	{"bpf", SYS_bpf},
	{"clone3", SYS_clone3},
	{"close_range", SYS_close_range},
	{"epoll_create1", SYS_epoll_create1},
	{"epoll_pwait2", SYS_epoll_pwait2},
	{"eventfd2", SYS_eventfd2},
	{"faccessat2", SYS_faccessat2},
	{"getrandom", SYS_getrandom},
	{"io_uring_setup", SYS_io_uring_setup},
	{"madvise", SYS_madvise},
	{"membarrier", SYS_membarrier},
	{"memfd_create", SYS_memfd_create},
	{"mincore", SYS_mincore},
	{"openat2", SYS_openat2},
	{"perf_event_open", SYS_perf_event_open},
	{"pidfd_open", SYS_pidfd_open},
	{"prctl", SYS_prctl},
	{"process_vm_readv", SYS_process_vm_readv},
	{"process_vm_writev", SYS_process_vm_writev},
	{"ptrace", SYS_ptrace},
	{"recvmmsg", SYS_recvmmsg},
	{"rseq", SYS_rseq},
	{"sched_setaffinity", SYS_sched_setaffinity},
	{"sendmmsg", SYS_sendmmsg},
	{"socket", SYS_socket},
	{"statx", SYS_statx},
	{"userfaultfd", SYS_userfaultfd},
};

static const struct {
	const char *name;
	uint32_t value;
} errors[] = {{"ENOSYS", SECCOMP_RET_ERRNO | ENOSYS},
	      {"EPERM", SECCOMP_RET_ERRNO | EPERM},
	      {"EINVAL", SECCOMP_RET_ERRNO | EINVAL},
	      {"KILL", SECCOMP_RET_KILL_PROCESS}};

/* Installs the filter for @what, CALL=ERROR.  Returns 0, or -1 with errno.  If
 * @what names no call or no error, ends the program with status 2, not 77:
 * after status 77 a test would be skipped because of a misspelt word. */
static int forbid_call(const char *what)
{
	size_t call = 0, error = 0, length = strcspn(what, "=");

	while (call < sizeof(calls) / sizeof(calls[0]) &&
	       (strlen(calls[call].name) != length ||
		strncmp(calls[call].name, what, length) != 0))
		call++;
	while (error < sizeof(errors) / sizeof(errors[0]) &&
	       (!what[length] || strcmp(errors[error].name, what + length + 1)))
		error++;
	if (call == sizeof(calls) / sizeof(calls[0]) ||
	    error == sizeof(errors) / sizeof(errors[0])) {
		fprintf(stderr, "deny_syscall: unknown word %s\n", what);
		exit(2);
	}
	struct sock_filter filter[] = {
		ANSWER(calls[call].number, errors[error].value)};
	struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]),
				     filter};

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static const struct {
	const char *name;
	struct sock_fprog program;
} filters[] = {
	{"ipv6", {sizeof(no_ipv6) / sizeof(no_ipv6[0]), no_ipv6}},
	{"bpf", {sizeof(no_bpf) / sizeof(no_bpf[0]), no_bpf}},
	{"fork", {sizeof(no_fork) / sizeof(no_fork[0]), no_fork}},
	{"batches", {sizeof(no_batches) / sizeof(no_batches[0]), no_batches}},
	{"vm", {sizeof(no_vm) / sizeof(no_vm[0]), no_vm}},
	{"memfd", {sizeof(no_memfd) / sizeof(no_memfd[0]), no_memfd}},
	{"rcvbuf", {sizeof(no_rcvbuf) / sizeof(no_rcvbuf[0]), no_rcvbuf}},
	{"msync", {sizeof(no_msync) / sizeof(no_msync[0]), no_msync}},
	{"rights", {sizeof(no_rights) / sizeof(no_rights[0]), no_rights}},
	{"debug", {sizeof(no_debug) / sizeof(no_debug[0]), no_debug}},
	{"signalfd",
	 {sizeof(no_signalfd) / sizeof(no_signalfd[0]), no_signalfd}},
	{"flags", {sizeof(no_flags) / sizeof(no_flags[0]), no_flags}},
	{"cpus", {sizeof(no_cpus) / sizeof(no_cpus[0]), no_cpus}},
};

/* Installs the filter of one word.  Returns 0, or -1 with errno. */
static int forbid_word(const char *name)
{
	for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++)
		if (!strcmp(name, filters[i].name))
			return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER,
				     &filters[i].program);
	return forbid_call(name);
}

int main(int argc, char **argv)
{
	int i = 1;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) {
		perror("PR_SET_NO_NEW_PRIVS");
		return 77;
	}
	for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (forbid_word(argv[i])) {
			perror(argv[i]);
			return 77;
		}
	}
	if (i + 1 >= argc) {
		fprintf(stderr, "usage: deny_syscall WORD... -- PROGRAM...\n");
		return 2;
	}
	execvp(argv[i + 1], argv + i + 1);
	perror(argv[i + 1]);
	return 127;
}
