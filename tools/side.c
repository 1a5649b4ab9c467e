/* SPDX-License-Identifier: BSD-2-Clause */
#include "side.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

/* How often side_fini reads the output that a side has left in its pipe or
 * terminal. */
#define LAST_READS 64

/*
 * Opens a pseudo-terminal: stdio writes to a terminal line by line, so no whole
 * line is lost when the program is killed.  In raw mode the terminal does not
 * change the bytes.  Returns 0, and the descriptors of the master (ends[0]) and
 * of the program's end (ends[1]); or -1 if there is no pseudo-terminal.
 */
static int open_terminal(int ends[2])
{
	struct termios raw;
	const char *name;
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (master < 0)
		return -1;
	if (grantpt(master) < 0 || unlockpt(master) < 0 ||
	    !(name = ptsname(master)))
		goto close_master;
	ends[1] = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (ends[1] < 0)
		goto close_master;
	if (tcgetattr(ends[1], &raw) == 0) {
		cfmakeraw(&raw);
		tcsetattr(ends[1], TCSANOW, &raw);
	}
	ends[0] = master;
	return 0;
close_master:
	close(master);
	return -1;
}

/* In the child: executes the program in a process group of its own.  When
 * `parent` ends, the kernel kills the program, but not the other processes of
 * the group. */
static void become_program(const struct launch *l, int out, pid_t parent,
			   const char *const argv[])
{
	sigset_t none;
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	setpgid(0, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (null >= 0)
		dup2(null, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	_exit(launch_exec(l, (char *const *)(uintptr_t)argv));
}

int side_start(struct side *s, const char *name, const struct launch *l,
	       const char *const argv[])
{
	pid_t parent = getpid();
	int ends[2];

	memset(s, 0, sizeof(*s));
	s->name = name;
	s->out = -1;
	if (open_terminal(ends) < 0 && pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	fflush(NULL);
	s->pid = fork();
	if (s->pid < 0) {
		int err = -errno;

		s->pid = 0;
		close(ends[0]);
		close(ends[1]);
		return err;
	}
	if (s->pid == 0)
		become_program(l, ends[1], parent, argv);
	setpgid(s->pid, s->pid);
	close(ends[1]);
	s->out = ends[0];
	return 0;
}

static void put_line(struct side *s)
{
	printf("%s| %.*s\n", s->name, (int)s->line_size, s->line);
	s->line_size = 0;
}

static void put_bytes(struct side *s, const char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (bytes[i] == '\n') {
			put_line(s);
		} else if (bytes[i] != '\r') {
			s->line[s->line_size++] = bytes[i];
			if (s->line_size == sizeof(s->line))
				put_line(s);
		}
	}
	fflush(stdout);
}

/* Reads once: a side that writes without a pause must not keep the caller from
 * its other work. */
void side_read(struct side *s)
{
	char bytes[4096];
	ssize_t n;

	if (s->out < 0)
		return;
	n = read(s->out, bytes, sizeof(bytes));
	if (n > 0)
		put_bytes(s, bytes, (size_t)n);
	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	/* end of file, or EIO: the program's side of the terminal is closed */
	if (s->line_size)
		put_line(s);
	fflush(stdout);
	close(s->out);
	s->out = -1;
}

/* WNOWAIT: the process stays a zombie until side_fini.  Otherwise the kernel
 * could give its ID to another process group, which side_fini would kill. */
void side_look(struct side *s)
{
	siginfo_t info = {0};

	if (!side_is_running(s) ||
	    waitid(P_PID, (id_t)s->pid, &info, WEXITED | WNOHANG | WNOWAIT) ||
	    info.si_pid != s->pid)
		return;
	s->ended = true;
	s->status = info.si_code == CLD_EXITED ? info.si_status
					       : 128 + info.si_status;
}

void side_kill(struct side *s, int signal)
{
	if (side_is_running(s)) {
		s->killed = true;
		kill(-s->pid, signal);
	}
}

void side_fini(struct side *s)
{
	if (s->pid > 0 && !s->reaped) {
		kill(-s->pid, SIGKILL);
		s->reaped = waitpid(s->pid, NULL, s->ended ? 0 : WNOHANG) > 0;
	}
	for (int i = 0; i < LAST_READS; i++)
		side_read(s);
	if (s->line_size)
		put_line(s);
	if (s->out >= 0)
		close(s->out);
	s->out = -1;
}
