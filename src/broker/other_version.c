/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/other_version.h"

#include "broker/proto.h"
#include "broker/reason.h"
#include "broker/trust.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ANSWER_MS 500

unsigned other_version_find(void)
{
	static const char name[] = " @adverbd-";
	FILE *f = fopen("/proc/net/unix", "re");
	unsigned version, found = 0;
	char line[256];

	while (f && !found && fgets(line, sizeof(line), f)) {
		const char *at = strstr(line, name);

		if (at && sscanf(at + strlen(name), "%u", &version) == 1 &&
		    version != PROTO_VERSION)
			found = version;
	}
	if (f)
		fclose(f);
	return found;
}

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
	struct proto m = {.version = (uint16_t)other_version_find()};
	int fd = m.version ? reach_broker(m.version) : -1;

	if (fd < 0)
		return false;
	ask_broker(fd, &m);
	snprintf(text, size, "%s", held);
	other_version_say(fd, &m, text + strlen(text), size - strlen(text));
	close(fd);
	return true;
}
