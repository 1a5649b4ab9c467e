/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An adverbd that does not do its work; which one, its name says.  A program
 * starts it as it starts adverbd (broker/start.h).  Each run adds a line to the
 * file beside it whose name has ".runs" behind: the process that started it,
 * which is who listens.
 *
 *	words	  says why, as adverbd does, and ends
 *	escape	  the same, on and on, with control characters
 *	mute	  ends without a word
 *	killed	  is killed before it serves
 *	stopped	  is stopped before it serves
 *	slow	  serves after three seconds' sleep
 *	version	  is of another version
 *	crash	  serves, and ends once a client has come
 */
#include "broker/proto.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SLOW_S 3

static void note_run(const char *self)
{
	struct ucred who = {0};
	socklen_t length = sizeof(who);
	char path[4096];
	FILE *f;

	getsockopt(0, SOL_SOCKET, SO_PEERCRED, &who, &length);
	snprintf(path, sizeof(path), "%s.runs", self);
	f = fopen(path, "ae");
	if (!f || fprintf(f, "%d\n", (int)who.pid) < 0 || fclose(f))
		abort();
}

static void introduce(unsigned version, enum proto_kind kind, uint32_t value)
{
	struct proto m = {.magic = PROTO_MAGIC,
			  .version = (uint16_t)version,
			  .kind = (uint16_t)kind,
			  .value = value,
			  .release = "9.8.7"};

	send(2, &m, sizeof(m), 0);
}

/* With what it was given, and so in its place. */
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

static void serve_badly(void)
{
	int fd;

	introduce(PROTO_VERSION, PROTO_WHO_IS, 0);
	fd = accept(0, NULL, NULL);
	if (fd >= 0)
		close(fd);
}

int main(int argc, char **argv)
{
	const char *slash = strrchr(argv[0], '/');
	const char *name = slash ? slash + 1 : argv[0];

	note_run(argv[0]);
	if (!strcmp(name, "words"))
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
		introduce(PROTO_VERSION + 86, PROTO_REFUSED, EPROTONOSUPPORT);
	if (!strcmp(name, "crash"))
		serve_badly();
	return 1;
}
