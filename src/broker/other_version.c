/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/other_version.h"

#include "broker/port_holder.h"
#include "broker/proto.h"
#include "broker/reason.h"
#include "broker/trust.h"
#include "broker/user.h"
#include "wire/listeners.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ANSWER_MS 500 /* how long ask_broker waits for the answer */
/* No broker has this version or a higher one.  Any user may listen at the names
 * of all versions, so this also limits how many listeners find_broker looks at.
 */
#define VERSIONS 4096
#define LISTENS	 0x10000 /* the kernel's __SO_ACCEPTCON */
#define WORD	 64	 /* bits of an entry of search.seen */

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

/* The search for the broker of another version that has the port. */
struct search {
	uid_t holder; /* the user that has the port */
	/* The bit of each version at which the search has looked. */
	uint64_t seen[VERSIONS / WORD];
	unsigned found;	  /* the version of the broker; 0: none was found */
	struct ucred who; /* its process; pid 0: not known */
};

/* May the process that listens as the broker of that version have the port?
 * owner: the user that made the listener, or USER_NONE if that is not known.
 * Looks at the descriptors of the process only if the process is of the user
 * that has the port. */
static bool has_port(struct search *s, unsigned version, uid_t owner)
{
	int err = proto_look(version, &s->who);

	/* The queue of the listener is full, so the process is not known. */
	if (err == -EAGAIN && user_is_same(owner, s->holder))
		s->who = (struct ucred){.uid = owner, .gid = (gid_t)-1};
	else if (err)
		return false;
	return user_is_same(user_of(&s->who), s->holder) &&
	       port_holder_may_be(s->holder, s->who.pid);
}

/* Returns the version of the broker that has this abstract name, which has
 * `bytes` bytes.  0: no broker has such a name, or the version is that of this
 * library.  Only one name stands for a version: 007 and 7x do not stand for 7.
 */
static unsigned version_named(const char *name, size_t bytes)
{
	char text[32] = {0}, own[32];
	unsigned version;

	if (bytes >= sizeof(text))
		return 0;
	memcpy(text, name, bytes);
	if (sscanf(text, "adverbd-%u", &version) != 1)
		return 0;
	snprintf(own, sizeof(own), "adverbd-%u", version);
	return strlen(own) == bytes && !strcmp(text, own) &&
			       version != PROTO_VERSION && version < VERSIONS
		       ? version
		       : 0;
}

/* Returns the version that a line of /proc/net/unix names (version_named), if
 * the line is of a socket that listens as a broker does; else 0. */
static unsigned version_of(const char *line)
{
	unsigned flags, type;
	const char *end;
	int name = 0;

	if (sscanf(line, "%*s %*s %*s %x %x %*s %*s @%n", &flags, &type,
		   &name) != 2 ||
	    !name || !(flags & LISTENS) || type != SOCK_SEQPACKET)
		return 0;
	end = strchr(line + name, '\n');
	return end ? version_named(line + name,
				   (size_t)(end - line) - (size_t)name)
		   : 0;
}

/* Adds the version to those at which the search has looked.  False: it has
 * looked at the version already. */
static bool is_first(struct search *s, unsigned version)
{
	uint64_t *word = &s->seen[version / WORD], bit = 1ull << version % WORD;
	bool is_new = !(*word & bit);

	*word |= bit;
	return is_new;
}

static void look_at_version(struct search *s, unsigned version, uid_t owner)
{
	if (version && is_first(s, version) && has_port(s, version, owner))
		s->found = version;
}

/*
 * Looks once at each version that /proc/net/unix names, however many lines name
 * it.  Any user can make such lines: a name may have a newline, and the rest of
 * the name then looks like a line of its own.  The search has no limit below
 * VERSIONS, since names of other users could otherwise hide the broker.
 */
static void search_names(struct search *s)
{
	FILE *f = fopen("/proc/net/unix", "re");
	char line[256];

	while (f && !s->found && fgets(line, sizeof(line), f))
		look_at_version(s, version_of(line), USER_NONE);
	if (f)
		fclose(f);
}

/* Looks at a listener of the user who has the port, or of root: systemd, for
 * example, listens for brokers of other users.  False: the search has ended. */
static bool look_at_listener(void *arg, const struct listener *l)
{
	struct search *s = arg;

	if (l->user == s->holder || l->user == 0)
		look_at_version(s, version_named(l->name, l->bytes), l->user);
	return !s->found;
}

/* Finds the broker of another version that has the port.  Returns its version;
 * 0: there is no such broker.  Where the kernel tells who listens, the search
 * connects only to listeners of root and of the user that has the port. */
static unsigned find_broker(struct ucred *who)
{
	struct search s = {0};

	if (!port_holder_user(&s.holder))
		return 0;
	if (!listeners_each(look_at_listener, &s) && !s.found) {
		memset(s.seen, 0, sizeof(s.seen));
		search_names(&s);
	}
	*who = s.who;
	return s.found;
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
