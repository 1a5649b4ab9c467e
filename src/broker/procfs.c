/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The number of the start time's field in the file stat, if the state's is 1
 * (in proc(5) they are 22 and 3). */
#define TICKS_FIELD 20
/* More bytes than the file status has, unless the process is in hundreds of
 * groups. */
#define TEXT		  8192
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

/* Returns the text after `beginning` in the line that begins with it; NULL:
 * there is none.  `beginning` starts with a newline.  The name of a process can
 * forge no line, since the kernel escapes a newline in it. */
static const char *find_line(const char *status, const char *beginning)
{
	const char *at = strstr(status, beginning);

	return at ? at + strlen(beginning) : NULL;
}

/* Reads the process's user ids: real, effective, saved, file system. */
static bool parse_users(const char *text, unsigned user[4])
{
	const char *line = find_line(text, "\nUid:");

	return line && sscanf(line, "%u %u %u %u", &user[0], &user[1], &user[2],
			      &user[3]) == 4;
}

bool procfs_is_stopped(pid_t id)
{
	struct procfs_stat p;

	return procfs_look(id, &p) && (p.state == 'T' || p.state == 't');
}

bool procfs_acts_as(pid_t id, uid_t user)
{
	char text[TEXT];
	unsigned has[4];

	return read_text(open_file(id, "status"), text, sizeof(text)) > 0 &&
	       parse_users(text, has) && has[3] == user;
}

static unsigned long unprivileged_port(void)
{
	char text[32];
	int fd = open("/proc/sys/net/ipv4/ip_unprivileged_port_start",
		      O_RDONLY | O_CLOEXEC);

	return read_text(fd, text, sizeof(text)) > 0 ? strtoul(text, NULL, 10)
						     : UNPRIVILEGED_PORT;
}

/* Is the process in this user namespace?  The kernel shows ns/user of a process
 * to few processes, but uid_map to all.  A user namespace that an ordinary user
 * has made has another map than its parent, unless the parent itself maps only
 * ids of this user, each to the same number. */
static bool has_our_users(pid_t id)
{
	char ours[TEXT], its[TEXT];
	ssize_t n =
		read_text(open_file(getpid(), "uid_map"), ours, sizeof(ours));

	return n >= 0 &&
	       read_text(open_file(id, "uid_map"), its, sizeof(its)) == n &&
	       !memcmp(ours, its, (size_t)n);
}

static bool has_capability(const char *status, unsigned bit)
{
	const char *line = find_line(status, "\nCapEff:");

	return line && strtoull(line, NULL, 16) >> bit & 1;
}

bool procfs_may_bind(pid_t id, uid_t user, uint16_t port)
{
	char text[TEXT];
	unsigned has[4];
	struct stat s;
	int fd;

	if (port >= unprivileged_port())
		return true;
	fd = open_file(id, "status");
	if (fd < 0)
		return user == 0;
	/* A process to which an exec gave more rights is not dumpable, and root
	 * owns its files in /proc. */
	if (fstat(fd, &s))
		s.st_uid = (uid_t)-1;
	if (read_text(fd, text, sizeof(text)) < 0 || !parse_users(text, has))
		return false;
	for (int i = 0; i < 4; i++)
		if (has[i] != user)
			return false;
	return s.st_uid == user && has_our_users(id) &&
	       has_capability(text, CAP_NET_BIND_SERVICE);
}
