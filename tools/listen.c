/* SPDX-License-Identifier: BSD-2-Clause */
#include "listen.h"

#include <dirent.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
	LISTEN_STEP = 512,     /* by which inodes.room grows */
	PORT_FIRST = 20000,    /* the first port that is tried */
	PORT_COUNT = 8000,     /* how many ports are tried */
	TCP_STATE_LISTEN = 10, /* the kernel's number of the state */
};

/* The listening sockets of this network namespace, by their inode numbers. */
struct inodes {
	unsigned long *list; /* owned */
	size_t count, room;  /* entries in use, and allocated */
	int port;	     /* a port to look for; 0: none */
	bool has_port;	     /* a socket listens at that port */
};

/* The sockets that this process had at the last listen_leave_out. */
static struct inodes left_out;

static bool is_listed(const struct inodes *in, unsigned long inode)
{
	for (size_t i = 0; i < in->count; i++) {
		if (in->list[i] == inode)
			return true;
	}
	return false;
}

/* Adds the socket to the list, or leaves it out if no memory is left. */
static void add_inode(struct inodes *in, unsigned long inode)
{
	if (in->count == in->room) {
		size_t room = in->room + LISTEN_STEP;
		unsigned long *list =
			realloc(in->list, room * sizeof(*in->list));

		if (!list)
			return;
		in->list = list;
		in->room = room;
	}
	in->list[in->count++] = inode;
}

/* Is this the end of the answer?  *failed says whether an error has ended it:
 * NLMSG_DONE, too, has a negative errno if the dump has failed. */
static bool is_end(const struct nlmsghdr *h, bool *failed)
{
	int err = 0;

	*failed = h->nlmsg_type == NLMSG_ERROR;
	if (h->nlmsg_type == NLMSG_DONE &&
	    h->nlmsg_len >= NLMSG_LENGTH(sizeof(err))) {
		memcpy(&err, NLMSG_DATA(h), sizeof(err));
		*failed = err < 0;
	}
	return *failed || h->nlmsg_type == NLMSG_DONE;
}

/* Adds the sockets of a part of the answer.  True: the answer is over; *failed
 * says whether an error has ended it. */
static bool take_answer(const struct nlmsghdr *h, size_t n, struct inodes *in,
			bool *failed)
{
	for (; NLMSG_OK(h, n); h = NLMSG_NEXT(h, n)) {
		const struct inet_diag_msg *m = NLMSG_DATA(h);

		if (is_end(h, failed))
			return true;
		add_inode(in, m->idiag_inode);
		in->has_port |=
			in->port && ntohs(m->id.idiag_sport) == in->port;
	}
	return false;
}

/*
 * Asks the kernel for the listening sockets by SOCK_DIAG; false: there is no
 * answer.  /proc/net/tcp lists the sockets too, but for each read the kernel
 * visits every bucket of its table of connections, which is large on large
 * machines: fifty processes that wait for servers would leave the servers no
 * time to start.
 */
static bool ask_kernel(int family, struct inodes *in)
{
	_Alignas(struct nlmsghdr) char buffer[16384];
	struct {
		struct nlmsghdr h;
		struct inet_diag_req_v2 r;
	} q = {.h = {.nlmsg_len = sizeof(q),
		     .nlmsg_type = SOCK_DIAG_BY_FAMILY,
		     .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
	       .r = {.sdiag_family = (uint8_t)family,
		     .sdiag_protocol = IPPROTO_TCP,
		     .idiag_states = 1u << TCP_STATE_LISTEN}};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	bool failed = fd < 0 || send(fd, &q, sizeof(q), 0) != sizeof(q);
	bool over = failed;

	while (!over) {
		/* The kernel makes each part while it takes the request, or
		 * while the part before is received, so no call need wait. */
		ssize_t n = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT);

		failed = n <= 0;
		over = failed || take_answer((const struct nlmsghdr *)buffer,
					     (size_t)n, in, &failed);
	}
	if (fd >= 0)
		close(fd);
	return !failed;
}

/* Adds the listening sockets in a table of /proc/net; none if the table cannot
 * be read. */
static void read_table(const char *path, struct inodes *in)
{
	char line[512];
	FILE *f = fopen(path, "re");

	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		unsigned long inode;
		unsigned state;

		if (sscanf(line, "%*s %*s %*s %x %*s %*s %*s %*s %*s %lu",
			   &state, &inode) == 2 &&
		    state == TCP_STATE_LISTEN)
			add_inode(in, inode);
	}
	fclose(f);
}

/* Finds the next socket in a folder /proc/PID/fd.  False: there is none. */
static bool next_socket(DIR *dir, unsigned long *inode)
{
	struct dirent *entry;

	while ((entry = readdir(dir))) {
		char link[64];
		ssize_t n = readlinkat(dirfd(dir), entry->d_name, link,
				       sizeof(link) - 1);

		if (n <= 0)
			continue;
		link[n] = '\0';
		if (sscanf(link, "socket:[%lu]", inode) == 1)
			return true;
	}
	return false;
}

static bool holds_socket(pid_t pid, const struct inodes *in)
{
	char path[64];
	unsigned long inode;
	bool found = false;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	while (dir && !found && next_socket(dir, &inode))
		found = is_listed(in, inode) && !is_listed(&left_out, inode);
	if (dir)
		closedir(dir);
	return found;
}

static bool tree_holds_socket(pid_t pid, const struct inodes *in, int depth);

/* Has a descendant, in at most `depth` generations, of this thread of the
 * process one of the sockets? */
static bool child_holds_socket(pid_t pid, const char *thread,
			       const struct inodes *in, int depth)
{
	char path[64];
	bool found = false;
	int child;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%.20s/children", pid,
		 thread);
	f = fopen(path, "re");
	while (f && !found && fscanf(f, "%d", &child) == 1)
		found = tree_holds_socket(child, in, depth - 1);
	if (f)
		fclose(f);
	return found;
}

/* Has the process, or a descendant in at most `depth` generations, one of the
 * sockets?  The kernel lists the children of each thread separately. */
static bool tree_holds_socket(pid_t pid, const struct inodes *in, int depth)
{
	char path[64];
	struct dirent *entry;
	bool found = holds_socket(pid, in);
	DIR *dir;

	if (found || depth == 0)
		return found;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && !found && (entry = readdir(dir)))
		found = entry->d_name[0] != '.' &&
			child_holds_socket(pid, entry->d_name, in, depth);
	if (dir)
		closedir(dir);
	return found;
}

/* Is /proc missing?  Then a socket's process cannot be found. */
static bool lacks_proc(void)
{
	return access("/proc/self/fd", F_OK) != 0;
}

void listen_leave_out(void)
{
	unsigned long inode;
	DIR *dir = opendir("/proc/self/fd");

	left_out.count = 0;
	while (dir && next_socket(dir, &inode))
		add_inode(&left_out, inode);
	if (dir)
		closedir(dir);
}

bool listen_is_ready(pid_t pid, int port)
{
	struct inodes in = {.port = port};
	bool ready;

	if (!ask_kernel(AF_INET, &in) || !ask_kernel(AF_INET6, &in)) {
		read_table("/proc/net/tcp", &in);
		read_table("/proc/net/tcp6", &in);
	}
	ready = in.count > 0 &&
		(lacks_proc() ? in.has_port : tree_holds_socket(pid, &in, 4));
	free(in.list);
	return ready;
}

/* Binds a socket to an abstract name with @port in it, as a lock that ends when
 * the socket is closed.  Returns the socket; -EADDRINUSE: another process has
 * the lock; or another -errno. */
static int lock_port(int port)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int len, err;

	if (fd < 0)
		return -errno;
	len = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1,
		       "adverb-pair-port-%d", port);
	if (bind(fd, (struct sockaddr *)&name,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			     (size_t)len)) < 0) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

static bool port_is_free(int port)
{
	struct sockaddr_in6 any = {
		.sin6_family = AF_INET6,
		.sin6_port = htons((in_port_t)port),
		.sin6_addr = IN6ADDR_ANY_INIT,
	};
	struct sockaddr_in any4 = {
		.sin_family = AF_INET,
		.sin_port = htons((in_port_t)port),
	};
	const struct sockaddr *sa = (const struct sockaddr *)&any;
	socklen_t len = sizeof(any);
	int one = 1;
	bool free;
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0) {
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		sa = (const struct sockaddr *)&any4;
		len = sizeof(any4);
	}
	if (fd < 0)
		return false;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	free = bind(fd, sa, len) == 0;
	close(fd);
	return free;
}

int listen_port_get(void)
{
	int start = getpid() % PORT_COUNT;

	for (int i = 0; i < PORT_COUNT; i++) {
		int port = PORT_FIRST + (start + i) % PORT_COUNT;
		int lock = lock_port(port);

		if (lock < 0 && lock != -EADDRINUSE)
			return lock;
		if (lock >= 0 && port_is_free(port))
			return port; /* the lock stays open */
		if (lock >= 0)
			close(lock);
	}
	return -EADDRINUSE;
}
