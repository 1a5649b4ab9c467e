/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * adverbd: one per network namespace, started by its first client.  Owns the
 * receive sockets of port 4791 and lends one to each process; watches the
 * processes and says which are alive.
 */
#include "broker/proto.h"
#include "broker/server.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define IDLE_MS	 10000
#define CLAIM_MS 1000

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/*
 * Whoever binds the address is the broker.  The loser returns once the winner
 * answers, so that its starter finds somebody there.
 */
static int claim(int *listen_fd)
{
	struct sockaddr_un a;
	socklen_t length = proto_address(&a);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	*listen_fd = fd;
	if (fd < 0)
		return -errno;
	if (!bind(fd, (struct sockaddr *)&a, length))
		return listen(fd, 1024) ? -errno : 0;
	if (errno != EADDRINUSE)
		return -errno;
	/* Between its bind and its listen a winner refuses. */
	for (uint64_t end = now_ms() + CLAIM_MS; now_ms() < end; sched_yield())
		if (!connect(fd, (struct sockaddr *)&a, length))
			break;
	return -EADDRINUSE;
}

/* Did our starter give us the listener as standard input? */
static bool is_given(void)
{
	int listens = 0;
	socklen_t length = sizeof(listens);

	return !getsockopt(0, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) &&
	       listens;
}

/* Nothing of the program that started us stays but the listener, *fd or -1. */
static void detach(bool foreground, int *fd)
{
	struct rlimit files;
	cpu_set_t all;
	sigset_t none;
	int null;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, foreground ? SIG_DFL : SIG_IGN);
	if (!getrlimit(RLIMIT_NOFILE, &files)) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	/* One program's taskset is not for all: the cgroup's limits stay. */
	memset(&all, 0xff, sizeof(all));
	sched_setaffinity(0, sizeof(all), &all);
	syscall(SYS_close_range, 3u, ~0u, 0u);
	*fd = is_given() ? fcntl(0, F_DUPFD_CLOEXEC, 3) : -1;
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0 || chdir("/"))
		exit(1);
	if (foreground)
		return;
	for (int i = 0; i < 3; i++)
		dup2(null, i);
	setsid();
}

static int options(int argc, char **argv, bool *foreground,
		   struct server_config *config)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--foreground")) {
			*foreground = true;
		} else if (!strcmp(argv[i], "--idle") && i + 1 < argc) {
			config->idle_ms = strtoul(argv[++i], NULL, 10) * 1000;
		} else if (!strcmp(argv[i], "--no-bpf")) {
			config->no_bpf = true;
		} else {
			fprintf(stderr, "usage: adverbd [--foreground] "
					"[--idle SECONDS] [--no-bpf]\n");
			return -EINVAL;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	bool foreground = false;
	struct server_config config = {.idle_ms = IDLE_MS};
	struct server *s;
	int error, fd;

	if (options(argc, argv, &foreground, &config))
		return 2;
	detach(foreground, &fd);
	error = fd >= 0 ? 0 : claim(&fd);
	s = error ? NULL : server_new(fd, &config);
	if (!s) {
		fprintf(stderr, "adverbd: %s\n",
			error == -EADDRINUSE
				? "another one is running"
				: strerror(error ? -error : ENOMEM));
		return error == -EADDRINUSE ? 0 : 1;
	}
	while (server_turn(s))
		;
	server_free(s);
	return 0;
}
