/* SPDX-License-Identifier: BSD-2-Clause */
#include "background.h"

#include "util/write_signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* In the child, until background_ready: the end of the pipe to the parent. */
static int parent_fd = -1;

static pid_t say_no_child(const char *name, int err)
{
	fprintf(stderr,
		"adverb: %s cannot run in the background: no pipe or process "
		"can be made: %s; end other processes, or leave --background "
		"out.\n",
		name, strerror(err));
	return -1;
}

/* Waits until the child is ready.  Returns the child's ID, or -1: the child has
 * ended, after a sentence of its own or of this function. */
static pid_t await_child(const char *name, pid_t pid, int fd)
{
	int status = 0;
	char byte;
	ssize_t n;

	do
		n = read(fd, &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n == 1)
		return pid;
	if (waitpid(pid, &status, 0) != pid)
		return -1;
	if (WIFSIGNALED(status))
		fprintf(stderr,
			"adverb: the process of %s was ended by signal %d "
			"before it was ready; see what ends it.\n",
			name, WTERMSIG(status));
	else if (!WEXITSTATUS(status))
		fprintf(stderr,
			"adverb: the process of %s was asked to end before it "
			"was ready.\n",
			name);
	return -1;
}

static void become_child(int fd, pid_t parent)
{
	parent_fd = fd;
	/* The caller may ignore SIGTERM, by which users end the command. */
	signal(SIGTERM, SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(1);
	setsid();
	signal(SIGHUP, SIG_IGN);
}

pid_t background_enter(const char *name)
{
	pid_t pid, parent = getpid();
	int ends[2], err;

	fflush(NULL);
	/* If the caller ignores SIGCHLD, the kernel reaps the child, and
	 * waitpid fails. */
	signal(SIGCHLD, SIG_DFL);
	if (pipe2(ends, O_CLOEXEC))
		return say_no_child(name, errno);
	pid = fork();
	err = errno;
	close(ends[pid ? 1 : 0]);
	if (!pid) {
		become_child(ends[1], parent);
		return 0;
	}
	pid = pid < 0 ? say_no_child(name, err)
		      : await_child(name, pid, ends[0]);
	close(ends[0]);
	return pid;
}

/* Replaces standard input, output and error by /dev/null, since a reader of the
 * caller's pipes waits until all copies of the pipes are closed. */
static void leave_terminal(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct stat st;

	for (int i = 0; null >= 0 && i <= STDERR_FILENO; i++)
		if (i < STDERR_FILENO || fstat(i, &st) || !S_ISREG(st.st_mode))
			dup2(null, i);
	if (null > STDERR_FILENO)
		close(null);
}

void background_ready(void)
{
	struct write_signals held;

	if (parent_fd < 0)
		return;
	prctl(PR_SET_PDEATHSIG, 0);
	leave_terminal();
	/* A file system cannot be unmounted while a process has its working
	 * directory there.  The process also works if chdir fails. */
	if (chdir("/"))
		errno = 0;
	write_signals_hold(&held);
	if (write(parent_fd, "", 1) < 0)
		errno = 0; /* the parent was killed */
	write_signals_give(&held);
	close(parent_fd);
	parent_fd = -1;
}
