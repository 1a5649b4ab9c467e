/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/procfs.h"

#include "broker/thread_state.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* In the file stat, the state is field 3, and the start time is field 22
 * (proc(5)).  If the state is counted as field 1, the start time is this field.
 */
#define TICKS_FIELD 20
/* More bytes than a uid_map has: 340 lines of 33 bytes. */
#define MAP_TEXT	  12288
#define NAMESPACE_TEXT	  32   /* more than "user:[4294967295]" */
#define UNPRIVILEGED_PORT 1024 /* the kernel's default */

/* Reads a file, but at most room - 1 bytes of it, to text as a string, and
 * closes fd, which may be -1.  Returns the number of bytes; -1: the file cannot
 * be read. */
static ssize_t read_text(int fd, char *text, size_t room)
{
	size_t at = 0;
	ssize_t n = fd < 0 ? -1 : 1;

	while (n > 0 && at < room - 1) {
		n = read(fd, text + at, room - 1 - at);
		at += n > 0 ? (size_t)n : 0;
	}
	if (fd >= 0)
		close(fd);
	text[at] = '\0';
	return n < 0 ? -1 : (ssize_t)at;
}

static int open_file(pid_t id, const char *name)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)id, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

bool procfs_look(pid_t id, struct procfs_stat *p)
{
	char text[512], *at;

	errno = 0;
	if (read_text(open_file(id, "stat"), text, sizeof(text)) < 0)
		return false;
	at = strrchr(text, ')'); /* a name may have any characters */
	if (!at || at[1] != ' ')
		return false;
	p->state = at[2];
	for (int i = 0; at && i < TICKS_FIELD; i++)
		at = strchr(at + 1, ' ');
	if (!at)
		return false;
	p->start = strtoull(at + 1, NULL, 10);
	return true;
}

/* Facts of the file status of a process. */
struct status {
	bool has_users;	       /* user[] is set */
	unsigned user[4];      /* real, effective, saved, file system */
	uint64_t capabilities; /* the effective ones */
};

/* Takes a line of the file status.  The name of a process can forge no line,
 * since the kernel escapes a newline in it. */
static void take_line(struct status *s, const char *line)
{
	if (sscanf(line, "Uid: %u %u %u %u", &s->user[0], &s->user[1],
		   &s->user[2], &s->user[3]) == 4)
		s->has_users = true;
	else if (!strncmp(line, "CapEff:", 7))
		s->capabilities = strtoull(line + 7, NULL, 16);
}

/* Reads the file status, whose line of groups may be long, and closes fd, which
 * may be -1.  False: the file cannot be read. */
static bool read_status(int fd, struct status *s)
{
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	bool begins = true;
	char line[128];

	*s = (struct status){.has_users = false};
	while (f && fgets(line, sizeof(line), f)) {
		if (begins)
			take_line(s, line);
		begins = strchr(line, '\n');
	}
	if (f)
		fclose(f);
	else if (fd >= 0)
		close(fd);
	return s->has_users;
}

bool procfs_is_stopped(pid_t id)
{
	struct procfs_stat p;

	return procfs_look(id, &p) && (p.state == 'T' || p.state == 't');
}

bool procfs_acts_as(pid_t id, uid_t user)
{
	struct status s;

	return read_status(open_file(id, "status"), &s) && s.user[3] == user;
}

/* If the sysctl cannot be read, for want of a descriptor, returns the value
 * that was read last. */
static unsigned long unprivileged_port(void)
{
	char text[32];
	int fd = open("/proc/sys/net/ipv4/ip_unprivileged_port_start",
		      O_RDONLY | O_CLOEXEC);
	bool is_read = read_text(fd, text, sizeof(text)) > 0;
	struct thread_state *s = thread_state_get();

	if (is_read && s)
		s->ports_after = strtoul(text, NULL, 10) + 1;
	if (is_read)
		return strtoul(text, NULL, 10);
	return s && s->ports_after ? s->ports_after - 1 : UNPRIVILEGED_PORT;
}

/* Reads the name of the user namespace of the process with this id.  False:
 * there is no such process, or the kernel does not let this process see the
 * namespace (PTRACE_MODE_READ of ptrace(2)). */
static bool read_namespace(pid_t id, char text[NAMESPACE_TEXT])
{
	char path[40];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)id);
	n = readlink(path, text, NAMESPACE_TEXT - 1);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* Reads the map of users, which the kernel shows to all processes. */
static bool read_map(pid_t id, char text[MAP_TEXT])
{
	ssize_t n = read_text(open_file(id, "uid_map"), text, MAP_TEXT);

	return n > 0 && n < MAP_TEXT - 1;
}

/* Can an ordinary user of this namespace, which has this map, make another
 * namespace with an equal map?  In a namespace that an ordinary user makes, the
 * user can map one id, its own. */
static bool is_repeatable(const char *map)
{
	unsigned inside, outside, count;

	return sscanf(map, "%u %u %u", &inside, &outside, &count) == 3 &&
	       inside == outside && count == 1;
}

/* Is the process in this user namespace?  A process in a namespace that its own
 * user has made has all capabilities there, and none here. */
static bool has_our_users(pid_t id)
{
	char ours[MAP_TEXT], its[MAP_TEXT];

	if (read_namespace(getpid(), ours) && read_namespace(id, its))
		return !strcmp(ours, its);
	return read_map(getpid(), ours) && read_map(id, its) &&
	       !strcmp(ours, its) && !is_repeatable(ours);
}

bool procfs_is_low_port(uint16_t port)
{
	return port < unprivileged_port();
}

bool procfs_may_bind(pid_t id, uid_t user, uint16_t port)
{
	struct status now;
	struct stat s;
	int fd;

	if (!procfs_is_low_port(port))
		return true;
	fd = open_file(id, "status");
	if (fd < 0)
		return user == 0;
	/* A process to which an exec gave more rights is not dumpable, and root
	 * owns its files in /proc. */
	if (fstat(fd, &s))
		s.st_uid = (uid_t)-1;
	if (!read_status(fd, &now))
		return false;
	for (int i = 0; i < 4; i++)
		if (now.user[i] != user)
			return false;
	return s.st_uid == user && has_our_users(id) &&
	       now.capabilities >> CAP_NET_BIND_SERVICE & 1;
}
