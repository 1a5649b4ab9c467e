/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/other_version.h"

#include "broker/port_holder.h"
#include "broker/proto.h"
#include "broker/reason.h"
#include "broker/trust.h"
#include "broker/user.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ANSWER_MS 500
/* How many listeners find_broker tries: any user may have many. */
#define TRIES	64
#define LISTENS 0x10000 /* the kernel's __SO_ACCEPTCON */

void other_version_say(int fd, const struct proto *m, char *text, size_t size)
{
	struct ucred who = {0};
	socklen_t length = sizeof(who);
	char name[64], end[64];

	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length);
	snprintf(name, sizeof(name), "process %d of user %u", (int)who.pid,
		 (unsigned)who.uid);
	if (m->idle_s == UINT32_MAX)
		snprintf(end, sizeof(end), "it is a thread of that process");
	else if (m->idle_s == PROTO_IDLE_NEVER)
		snprintf(end, sizeof(end), "it does not end by itself");
	else
		snprintf(end, sizeof(end), "it ends %u s after the last one",
			 m->idle_s);
	reason_version(name, m, text, size);
	length = (socklen_t)strlen(text);
	snprintf(text + length, size - length,
		 ": use one version, or end that broker's programs (%s)", end);
}

/* Connects to the broker of that version.  Returns the socket or -errno. */
static int reach_broker(unsigned version)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
			0);
	int length;

	if (fd < 0)
		return -errno;
	length = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "adverbd-%u",
			  version);
	if (!connect(fd, (struct sockaddr *)&a,
		     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
				 (size_t)length)))
		return fd;
	length = errno;
	close(fd);
	return -length;
}

/* Whether the process that listens at the other end of fd may have the port. */
static bool has_port(int fd)
{
	struct ucred who;
	socklen_t length = sizeof(who);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length) &&
	       port_holder_may_be(user_of(&who), who.pid);
}

/* Returns the version that a line of /proc/net/unix names, if the line is of a
 * socket that listens as a broker of another version does; else 0. */
static unsigned version_of(const char *line)
{
	unsigned flags, version;

	if (sscanf(line, "%*s %*s %*s %x %*s %*s %*s @adverbd-%u", &flags,
		   &version) != 2 ||
	    !(flags & LISTENS) || version == PROTO_VERSION ||
	    version > UINT16_MAX)
		return 0;
	return version;
}

/* Connects to the broker of another version that has the port, and sets
 * *version.  Returns the socket; -1: there is no such broker. */
static int find_broker(unsigned *version)
{
	FILE *f = fopen("/proc/net/unix", "re");
	int fd = -1, tries = TRIES;
	char line[256];

	while (f && fd < 0 && tries && fgets(line, sizeof(line), f)) {
		*version = version_of(line);
		if (!*version)
			continue;
		tries--;
		fd = reach_broker(*version);
		if (fd >= 0 && !has_port(fd)) {
			close(fd);
			fd = -1;
		}
	}
	if (f)
		fclose(f);
	return fd < 0 ? -1 : fd;
}

bool other_version_has_port(void)
{
	unsigned version;
	int fd = find_broker(&version);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Asks the broker to introduce itself, and stores its introduction in *m.
 * Leaves *m as it is if the broker is not trusted or does not answer. */
static void ask_broker(int fd, struct proto *m)
{
	struct proto who = {.magic = PROTO_MAGIC,
			    .version = PROTO_VERSION,
			    .kind = PROTO_WHO};
	struct pollfd p = {fd, POLLIN, 0};
	struct proto answer = {0};
	int fds[PROTO_FDS], err;
	uid_t user;
	pid_t pid;

	if (trust_peer(fd, &user, &pid) == TRUST_NOT)
		return;
	if (proto_send(fd, &who, NULL) || poll(&p, 1, ANSWER_MS) != 1)
		return;
	err = proto_receive(fd, &answer, fds);
	for (int i = 0; i < PROTO_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	if (err == -EPROTONOSUPPORT)
		*m = answer;
}

bool other_version_name(char *text, size_t size)
{
	static const char held[] = "port 4791 is held by the broker of another "
				   "version of adverb: ";
	struct proto m = {0};
	unsigned version;
	int fd = find_broker(&version);

	if (fd < 0)
		return false;
	m.version = (uint16_t)version;
	ask_broker(fd, &m);
	snprintf(text, size, "%s", held);
	other_version_say(fd, &m, text + strlen(text), size - strlen(text));
	close(fd);
	return true;
}
