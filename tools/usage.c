/* SPDX-License-Identifier: BSD-2-Clause */
#include "usage.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/monotonic.h"

enum { ANSWER_MS = 5000 };

static void become_program(const struct launch *l, const char *program, int out,
			   pid_t parent)
{
	const char *const argv[] = {program, "-h", NULL};
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	setpgid(0, 0);
	if (null >= 0)
		dup2(null, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	_exit(launch_exec(l, (char *const *)(uintptr_t)argv));
}

/* Reads until the output ends, @text is full, or ANSWER_MS has passed. */
static void take_answer(int in, char *text, size_t size)
{
	uint64_t until = monotonic_ms() + ANSWER_MS;
	size_t got = 0;

	while (got + 1 < size) {
		struct pollfd fd = {.fd = in, .events = POLLIN};
		long long left = (long long)(until - monotonic_ms());
		ssize_t n;

		if (left <= 0)
			break;
		if (poll(&fd, 1, (int)left) < 0 && errno != EINTR)
			break;
		if (!fd.revents)
			continue;
		n = read(in, text + got, size - 1 - got);
		if (n <= 0)
			break;
		got += (size_t)n;
	}
	text[got] = '\0';
}

void usage_read(const struct launch *l, const char *program, char *text,
		size_t size)
{
	pid_t parent = getpid(), pid;
	int ends[2];

	text[0] = '\0';
	if (pipe2(ends, O_CLOEXEC))
		return;
	fflush(NULL);
	pid = fork();
	if (pid == 0)
		become_program(l, program, ends[1], parent);
	close(ends[1]);
	if (pid > 0) {
		setpgid(pid, pid);
		take_answer(ends[0], text, size);
		kill(-pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	close(ends[0]);
}
