/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the process that has port 4791; see port_holder.h. */
#include "broker/port_holder.h"

#include "broker/user.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/printable.h"

#define ROCEV2_UDP_PORT 4791
#define SHOWN_BYTES	16 /* bytes of a process's name */

/* A row of /proc/net/udp or /proc/net/udp6. */
struct socket_row {
	unsigned user;	     /* the user that made the socket */
	unsigned long inode; /* 0: a socket of the kernel itself */
};

/* Finds the first row of the port in a table of the kernel. */
static bool find_row(const char *path, struct socket_row *row)
{
	FILE *f = fopen(path, "re");
	char line[512];
	bool found = false;
	unsigned port;

	while (f && !found && fgets(line, sizeof(line), f))
		found = sscanf(line,
			       "%*s %*[0-9A-F]:%x %*s %*s %*s %*s %*s %u %*s "
			       "%lu",
			       &port, &row->user, &row->inode) == 3 &&
			port == ROCEV2_UDP_PORT;
	if (f)
		fclose(f);
	return found;
}

/* Whether a process has a socket. */
enum has {
	HAS_NOT,
	HAS_IT,
	/* This user may not see the process's descriptors, or the process has
	 * ended. */
	HAS_HIDDEN,
};

static enum has has_socket(const char *pid, unsigned long inode)
{
	char path[300], want[64], link[64];
	enum has has = HAS_NOT;
	struct dirent *entry;
	DIR *dir;

	snprintf(want, sizeof(want), "socket:[%lu]", inode);
	snprintf(path, sizeof(path), "/proc/%s/fd", pid);
	dir = opendir(path);
	if (!dir)
		return HAS_HIDDEN;
	while (has != HAS_IT && (entry = readdir(dir))) {
		ssize_t n = readlinkat(dirfd(dir), entry->d_name, link,
				       sizeof(link) - 1);

		if (n < 0 && errno == EACCES)
			has = HAS_HIDDEN;
		link[n > 0 ? n : 0] = '\0';
		if (!strcmp(link, want))
			has = HAS_IT;
	}
	closedir(dir);
	return has;
}

/* Returns the pid of a process that has the socket, and writes the name of that
 * process.  0: this user sees no such process; the name is "a program". */
static int find_process(unsigned long inode, char name[SHOWN_BYTES])
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	char path[300];
	FILE *f;
	int pid = 0;

	while (dir && !pid && (entry = readdir(dir)))
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
		    has_socket(entry->d_name, inode) == HAS_IT)
			pid = atoi(entry->d_name);
	if (dir)
		closedir(dir);
	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	f = pid ? fopen(path, "re") : NULL;
	if (!f || !fgets(name, SHOWN_BYTES, f))
		snprintf(name, SHOWN_BYTES, "a program");
	name[strcspn(name, "\n")] = '\0';
	printable_make(name); /* the name may have any characters */
	if (f)
		fclose(f);
	return pid;
}

static unsigned owner_of(int pid)
{
	char path[32];
	struct stat s = {0};

	snprintf(path, sizeof(path), "/proc/%d", pid);
	stat(path, &s);
	return s.st_uid;
}

static bool find_holder(struct socket_row *row)
{
	return find_row("/proc/net/udp", row) ||
	       find_row("/proc/net/udp6", row);
}

bool port_holder_user(uid_t *user)
{
	struct socket_row row;

	if (!find_holder(&row) || !row.inode)
		return false;
	*user = (uid_t)row.user;
	return true;
}

bool port_holder_is_other_user(void)
{
	uid_t user;

	return port_holder_user(&user) && user != geteuid();
}

bool port_holder_may_be(uid_t user, pid_t pid)
{
	struct socket_row row;
	char name[16];

	if (!find_holder(&row) || !row.inode || !user_is_same(row.user, user))
		return false;
	snprintf(name, sizeof(name), "%d", (int)pid);
	return pid <= 0 || has_socket(name, row.inode) != HAS_NOT;
}

bool port_holder_name(char *text, size_t size)
{
	struct socket_row row;
	char name[SHOWN_BYTES];
	int pid;

	if (!find_holder(&row))
		return false;
	pid = row.inode ? find_process(row.inode, name) : 0;
	/* A socket belongs to the user that made it, but by now a process of
	 * another user may have it. */
	if (pid && owner_of(pid) != row.user)
		snprintf(text, size, "%s (process %d), by a socket of user %u",
			 name, pid, row.user);
	else if (pid)
		snprintf(text, size, "%s (process %d of user %u)", name, pid,
			 row.user);
	else if (!row.user && !access("/sys/module/rdma_rxe", F_OK))
		snprintf(text, size,
			 "the kernel's Soft-RoCE (rdma_rxe) or by root");
	else
		snprintf(text, size,
			 "a process of user %u, which this user cannot see",
			 row.user);
	return true;
}
