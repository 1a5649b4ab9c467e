/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * misfit: programs start it in place of adverbd (broker/start.h).  The name by
 * which a program starts misfit selects what misfit does.  Each run adds a line
 * to the file PATH.runs, where PATH is the path by which misfit was started.
 * The line is the id of the process that started misfit and created the
 * listening socket.
 *
 *	message	  prints why it fails, as adverbd does, and ends
 *	escape	  prints 100 long lines with control characters
 *	silent	  ends without a message
 *	killed	  is killed before it serves
 *	stopped	  is stopped before it serves
 *	slow	  becomes adverbd after a sleep of three seconds
 *	version	  introduces itself as another version
 *	crash	  serves, and ends once a client has sent something
 *	socket	  sends a client a socket of another UDP port
 *	colour	  refuses each client, with control characters in the reason
 */
#include "broker/proto.h"
#include "util/scm_rights.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SLOW_S	   3
#define OTHER_PORT 4792

static void note_run(const char *self)
{
	struct ucred starter = {0};
	socklen_t length = sizeof(starter);
	char path[4096];
	FILE *f;

	getsockopt(0, SOL_SOCKET, SO_PEERCRED, &starter, &length);
	snprintf(path, sizeof(path), "%s.runs", self);
	f = fopen(path, "ae");
	if (!f || fprintf(f, "%d\n", (int)starter.pid) < 0 || fclose(f))
		abort();
}

static void send_proto(unsigned version, enum proto_kind kind, uint32_t value)
{
	struct proto m = {.magic = PROTO_MAGIC,
			  .version = (uint16_t)version,
			  .kind = (uint16_t)kind,
			  .value = value,
			  .release = "9.8.7"};

	send(2, &m, sizeof(m), 0);
}

/* Executes the real adverbd with the arguments and descriptors of this process.
 */
static void become_adverbd(char **argv)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 64);
	char *slash;

	path[n > 0 ? n : 0] = '\0';
	slash = strrchr(path, '/');
	if (slash)
		strcpy(slash, "/../../lib/adverbd");
	execve(path, argv, (char *[]){NULL});
	perror(path);
}

/* Ends when the first client has sent something.  Before that, a client makes a
 * connection on which it sends nothing, to learn which process listens. */
static void serve_badly(void)
{
	char byte;
	int fd;

	send_proto(PROTO_VERSION, PROTO_WHO_IS, 0);
	do
		fd = accept(0, NULL, NULL);
	while (fd >= 0 && recv(fd, &byte, 1, MSG_PEEK) != 1 && !close(fd));
	if (fd >= 0)
		close(fd);
}

static int udp_socket(uint16_t port)
{
	struct sockaddr_in6 a = {.sin6_family = AF_INET6,
				 .sin6_port = htons(port)};
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)))
		abort();
	return fd;
}

static void answer_hello(const char *name, int fd, const struct proto *hello)
{
	struct proto m = {.magic = PROTO_MAGIC,
			  .version = PROTO_VERSION,
			  .kind = PROTO_WELCOME,
			  .serial = hello->serial,
			  .value = 1,
			  .brings = PROTO_FD_SOCKET};
	int lent = udp_socket(OTHER_PORT);

	if (!strcmp(name, "colour")) {
		m.kind = PROTO_REFUSED;
		m.value = EUSERS;
		m.brings = 0;
		strcpy(m.why, "\033[31mred\007");
	}
	if (proto_send(fd, &m, &lent))
		abort();
	close(lent);
}

static void answer_who(int fd, const struct proto *who)
{
	const struct proto m = {.magic = PROTO_MAGIC,
				.version = PROTO_VERSION,
				.kind = PROTO_WHO_IS,
				.serial = who->serial};

	if (proto_send(fd, &m, NULL))
		abort();
}

/* Serves one client after the other: answers HELLO as the mode `name` says. */
static void serve_clients(const char *name)
{
	send_proto(PROTO_VERSION, PROTO_WHO_IS, 0);
	/* Standard output is that of the program that started misfit.  The
	 * suite reads that output until each process has closed it. */
	close(STDOUT_FILENO);
	for (;;) {
		struct proto m = {0};
		int fd = accept(0, NULL, NULL);

		scm_rights_let_bring(fd, true);
		while (recv(fd, &m, sizeof(m), 0) == sizeof(m))
			if (m.kind == PROTO_HELLO)
				answer_hello(name, fd, &m);
			else if (m.kind == PROTO_WHO)
				answer_who(fd, &m);
		close(fd);
	}
}

int main(int argc, char **argv)
{
	const char *slash = strrchr(argv[0], '/');
	const char *name = slash ? slash + 1 : argv[0];

	note_run(argv[0]);
	if (!strcmp(name, "message"))
		fprintf(stderr, "one line\nadverbd: the disk is full\n");
	for (int i = 0; i < 100 && !strcmp(name, "escape"); i++)
		fprintf(stderr, "\033[2J\001%05d \377%0500d\n", i, i);
	if (!strcmp(name, "killed"))
		raise(SIGKILL);
	if (!strcmp(name, "stopped"))
		raise(SIGSTOP);
	if (!strcmp(name, "slow")) {
		sleep(SLOW_S);
		become_adverbd(argv);
	}
	if (!strcmp(name, "version"))
		send_proto(PROTO_VERSION + 86, PROTO_REFUSED, EPROTONOSUPPORT);
	if (!strcmp(name, "crash"))
		serve_badly();
	if (!strcmp(name, "socket") || !strcmp(name, "colour"))
		serve_clients(name);
	return 1;
}
