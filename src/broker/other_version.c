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
/* No broker has such a version.  Any user may listen at the names of all
 * versions, so this also limits how many listeners find_broker looks at. */
#define VERSIONS 4096
#define LISTENS	 0x10000 /* the kernel's __SO_ACCEPTCON */
#define WORD	 64

/* Writes in parentheses what ends the broker; nothing if the broker has not
 * said that. */
static void say_end(uint32_t idle_s, char *text, size_t size)
{
	if (!idle_s)
		snprintf(text, size, "%s", "");
	else if (idle_s == UINT32_MAX)
		snprintf(text, size, " (it is a thread of that process)");
	else if (idle_s == PROTO_IDLE_NEVER)
		snprintf(text, size, " (it does not end by itself)");
	else
		snprintf(text, size, " (it ends %u s after the last one)",
			 idle_s);
}

void other_version_say(const struct ucred *who, const struct proto *m,
		       char *text, size_t size)
{
	char name[REASON_PROCESS], end[64];
	size_t length;

	reason_process(who->pid, who->uid, name);
	say_end(m->idle_s, end, sizeof(end));
	reason_version(name, m, text, size);
	length = strlen(text);
	snprintf(text + length, size - length,
		 ": use one version, or end that broker's programs%s", end);
}

/* Whether the process that listens as the broker of that version may have the
 * port, which `user` has.  *who: that process.  The listeners of other users
 * cost no look at the descriptors of a process. */
static bool has_port(unsigned version, uid_t user, struct ucred *who)
{
	return !proto_look(version, who) && user_is_same(user_of(who), user) &&
	       port_holder_may_be(user, who->pid);
}

/* Returns the version that a line of /proc/net/unix names, if the line is of a
 * socket that listens as a broker of another version does; else 0.  Only one
 * name stands for a version: 007 and 7x do not stand for 7. */
static unsigned version_of(const char *line)
{
	const char *name = strstr(line, " @adverbd-");
	unsigned flags, type, version;
	char own[32];

	if (!name || sscanf(line, "%*s %*s %*s %x %x %*s %*s @adverbd-%u",
			    &flags, &type, &version) != 3)
		return 0;
	snprintf(own, sizeof(own), " @adverbd-%u\n", version);
	if (!(flags & LISTENS) || type != SOCK_SEQPACKET ||
	    strcmp(name, own) != 0 || version == PROTO_VERSION ||
	    version >= VERSIONS)
		return 0;
	return version;
}

/* Adds the version to the set `seen`.  False: the set has it already. */
static bool is_first(uint64_t seen[VERSIONS / WORD], unsigned version)
{
	uint64_t *word = &seen[version / WORD], bit = 1ull << version % WORD;
	bool is_new = !(*word & bit);

	*word |= bit;
	return is_new;
}

/*
 * Finds the broker of another version that has the port.  Returns its version;
 * 0: there is no such broker.  Looks at each version once: a name may have a
 * newline, and what follows then looks like a line of its own.  There is no
 * smaller limit than VERSIONS: names of other users would hide the broker.
 */
static unsigned find_broker(struct ucred *who)
{
	FILE *f = fopen("/proc/net/unix", "re");
	uint64_t seen[VERSIONS / WORD] = {0};
	unsigned version, found = 0;
	char line[256];
	uid_t user;
	bool is_held = port_holder_user(&user);

	while (f && is_held && !found && fgets(line, sizeof(line), f)) {
		version = version_of(line);
		if (version && is_first(seen, version) &&
		    has_port(version, user, who))
			found = version;
	}
	if (f)
		fclose(f);
	return found;
}

bool other_version_has_port(void)
{
	struct ucred who;

	return find_broker(&who);
}

/* Asks the broker to introduce itself, and stores its introduction in *m.
 * Leaves *m as it is if the broker does not answer. */
static void ask_broker(int fd, struct proto *m)
{
	struct proto who = {.magic = PROTO_MAGIC,
			    .version = PROTO_VERSION,
			    .kind = PROTO_WHO};
	struct pollfd p = {fd, POLLIN, 0};
	struct proto answer = {0};
	int fds[PROTO_FDS], err;

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
	struct ucred who;
	unsigned version = find_broker(&who);
	int fd;

	if (!version)
		return false;
	m.version = (uint16_t)version;
	/* nothing is received from a broker that is not trusted */
	fd = trust_in(who.uid) != TRUST_NOT ? proto_connect(version) : -1;
	if (fd >= 0) {
		ask_broker(fd, &m);
		close(fd);
	}
	snprintf(text, size, "%s", held);
	other_version_say(&who, &m, text + strlen(text), size - strlen(text));
	return true;
}
