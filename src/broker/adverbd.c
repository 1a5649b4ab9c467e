/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * adverbd: one per network namespace, started by its first client.  Owns the
 * receive sockets of port 4791 and lends one to each process; watches the
 * processes and says which are alive.  One thread, one poll; no data path.
 */
#include "broker/group.h"
#include "broker/page.h"
#include "broker/proto.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CONN_MAX (STEER_CLASS_MAX + 64)
#define IDLE_MS	 10000

/* One client.  The broker owns both descriptors. */
struct conn {
	int fd;
	int pidfd; /* -1: its process is not visible */
	uid_t user;
	uint32_t class; /* 0: has not said hello */
};

struct broker {
	int listen_fd, spare_fd;
	uint64_t idle_ms, idle_since_ms;
	uint32_t conns;
	struct conn conn[CONN_MAX];
	struct group group;
};

static struct broker broker;

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Never waits: a client that does not read loses its answers. */
static void answer(const struct conn *c, const struct proto *m, const int *fds,
		   size_t n)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(PROTO_FDS * sizeof(int))];
	} control = {0};
	struct iovec iov = {(void *)m, sizeof(*m)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (n) {
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(&control.head), fds, n * sizeof(int));
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
	}
	sendmsg(c->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void refuse(const struct conn *c, uint32_t serial, int error,
		   const char *why)
{
	struct proto m = {.magic = PROTO_MAGIC,
			  .version = PROTO_VERSION,
			  .kind = PROTO_REFUSED,
			  .serial = serial,
			  .value = (uint32_t)error};

	snprintf(m.why, sizeof(m.why), "%s", why);
	answer(c, &m, NULL, 0);
}

static void hello(struct broker *b, struct conn *c, const struct proto *m)
{
	struct proto reply = {.magic = PROTO_MAGIC,
			      .version = PROTO_VERSION,
			      .kind = PROTO_WELCOME,
			      .serial = m->serial};
	const struct group_member *member;
	const char *why = "";
	int error;

	if (c->class) {
		refuse(c, m->serial, EBUSY, "this client has a class");
		return;
	}
	error = group_take(&b->group, c->user, &why, &c->class);
	if (error) {
		refuse(c, m->serial, -error, why);
		return;
	}
	reply.value = c->class;
	member = &b->group.member[c->class];
	answer(c, &reply, (int[]){member->fd, member->page_fd},
	       member->page_fd < 0 ? 1 : 2);
}

/* To whoever asks, of any user: it says how much has been taken, no more. */
static void show_page(const struct broker *b, const struct conn *c,
		      const struct proto *m)
{
	struct proto reply = {.magic = PROTO_MAGIC,
			      .version = PROTO_VERSION,
			      .kind = PROTO_PAGE_IS,
			      .serial = m->serial,
			      .value = m->value};
	int fd = group_is_owned(&b->group, m->value)
			 ? page_reader(b->group.member[m->value].page_fd)
			 : -ENOENT;

	answer(c, &reply, &fd, fd < 0 ? 0 : 1);
	if (fd >= 0)
		close(fd);
}

static enum proto_peer peer_state(const struct broker *b, uint32_t qpn)
{
	uint32_t class = steer_class(qpn);

	if (!class || class > STEER_CLASS_MAX)
		return PROTO_PEER_UNKNOWN;
	return group_is_owned(&b->group, class) ? PROTO_PEER_ALIVE
						: PROTO_PEER_GONE;
}

static void handle(struct broker *b, struct conn *c, const struct proto *m,
		   size_t length)
{
	struct proto reply = {.magic = PROTO_MAGIC,
			      .version = PROTO_VERSION,
			      .kind = PROTO_ANSWER,
			      .serial = m->serial};

	if (length != sizeof(*m) || m->magic != PROTO_MAGIC) {
		refuse(c, 0, EPROTO, "this is not the broker's protocol");
	} else if (m->version != PROTO_VERSION) {
		refuse(c, m->serial, EPROTONOSUPPORT,
		       "the broker is of another version of adverb");
	} else if (m->kind == PROTO_HELLO) {
		hello(b, c, m);
	} else if (m->kind == PROTO_ASK) {
		reply.value = peer_state(b, m->value);
		answer(c, &reply, NULL, 0);
	} else if (m->kind == PROTO_PAGE) {
		show_page(b, c, m);
	} else {
		refuse(c, m->serial, EOPNOTSUPP, "an unknown request");
	}
}

/* False when the client is gone.  Descriptors sent to us go nowhere: there is
 * no buffer for them. */
static bool serve(struct broker *b, struct conn *c)
{
	struct proto m = {0};
	ssize_t n = recv(c->fd, &m, sizeof(m), MSG_DONTWAIT | MSG_TRUNC);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (!n)
		return false;
	handle(b, c, &m, (size_t)n);
	return true;
}

static void retire(struct broker *b, struct conn *c)
{
	if (c->class)
		group_release(&b->group, c->class, now_ms());
	c->class = 0;
}

/* The last one takes its place. */
static void drop(struct broker *b, uint32_t i)
{
	struct conn *c = &b->conn[i];

	retire(b, c);
	close(c->fd);
	if (c->pidfd >= 0)
		close(c->pidfd);
	*c = b->conn[--b->conns];
	b->idle_since_ms = now_ms();
}

/* Out of descriptors: turn the caller away rather than spin on the listener. */
static void turn_away(struct broker *b)
{
	close(b->spare_fd);
	close(accept4(b->listen_fd, NULL, NULL, SOCK_CLOEXEC));
	b->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void admit(struct broker *b)
{
	int fd = accept4(b->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	struct ucred who;
	socklen_t length = sizeof(who);

	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE)
			turn_away(b);
		return;
	}
	if (b->conns == CONN_MAX ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length)) {
		close(fd);
		return;
	}
	/* A fork of the client may keep the connection open: watch both. */
	b->conn[b->conns++] = (struct conn){
		.fd = fd,
		.pidfd = who.pid > 0 ? (int)syscall(SYS_pidfd_open, who.pid, 0)
				     : -1,
		.user = who.uid};
}

/* How long poll may wait: to the next rest's end or to the idle end. */
static int patience(struct broker *b)
{
	uint64_t now = now_ms(), idle = now - b->idle_since_ms;
	int rest = group_tick(&b->group, now), wait = -1;

	if (!b->conns)
		wait = idle < b->idle_ms ? (int)(b->idle_ms - idle) : 0;
	return rest >= 0 && (wait < 0 || rest < wait) ? rest : wait;
}

/* p: two for each of the n clients, its connection and its process. */
static void serve_all(struct broker *b, const struct pollfd *p, uint32_t n)
{
	/* The dead first: who asks after a death hears of it. */
	for (uint32_t i = 0; i < n; i++)
		if (p[2 * i + 1].revents || p[2 * i].revents & POLLHUP)
			retire(b, &b->conn[i]);
	/* From the end, so that the one moved into a hole has been served. */
	for (uint32_t i = n; i-- > 0;)
		if (p[2 * i + 1].revents || p[2 * i].revents & POLLHUP ||
		    (p[2 * i].revents && !serve(b, &b->conn[i])))
			drop(b, i);
}

/* False when nothing has wanted us for idle_ms. */
static bool turn(struct broker *b)
{
	static struct pollfd p[2 + 2 * CONN_MAX];
	uint32_t n = b->conns;
	int ready;

	p[0] = (struct pollfd){.fd = b->listen_fd, .events = POLLIN};
	p[1] = (struct pollfd){.fd = b->group.count ? b->group.member[0].fd
						    : -1,
			       .events = POLLIN};
	for (uint32_t i = 0; i < n; i++) {
		p[2 + 2 * i] = (struct pollfd){b->conn[i].fd, POLLIN, 0};
		p[3 + 2 * i] = (struct pollfd){b->conn[i].pidfd, POLLIN, 0};
	}
	ready = poll(p, 2 + 2 * (nfds_t)n, patience(b));
	if (!ready && !n && now_ms() - b->idle_since_ms >= b->idle_ms)
		return false;
	if (ready <= 0)
		return true;
	if (p[1].revents)
		group_drop(&b->group);
	serve_all(b, p + 2, n);
	if (p[0].revents)
		admit(b);
	return true;
}

/*
 * Whoever binds the address is the broker.  The loser returns once the winner
 * answers, so that its starter finds somebody there.
 */
static int claim(struct broker *b)
{
	struct sockaddr_un a;
	socklen_t length = proto_address(&a);

	b->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (b->listen_fd < 0)
		return -errno;
	if (!bind(b->listen_fd, (struct sockaddr *)&a, length)) {
		fcntl(b->listen_fd, F_SETFL, O_NONBLOCK);
		return listen(b->listen_fd, 1024) ? -errno : 0;
	}
	if (errno != EADDRINUSE)
		return -errno;
	/* Between its bind and its listen a winner refuses. */
	for (uint64_t end = now_ms() + 1000; now_ms() < end; sched_yield())
		if (!connect(b->listen_fd, (struct sockaddr *)&a, length))
			break;
	return -EADDRINUSE;
}

/* Nothing of the program that started us stays; closing output says we are up.
 */
static void detach(bool foreground)
{
	struct rlimit files;
	sigset_t none;
	int null;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, foreground ? SIG_DFL : SIG_IGN);
	if (!getrlimit(RLIMIT_NOFILE, &files)) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	syscall(SYS_close_range, 3u, ~0u, 0u);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0 || chdir("/"))
		exit(1);
	if (foreground)
		return;
	dup2(null, 0);
	dup2(null, 2);
	setsid();
}

static int options(int argc, char **argv, bool *foreground)
{
	broker.idle_ms = IDLE_MS;
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--foreground")) {
			*foreground = true;
		} else if (!strcmp(argv[i], "--idle") && i + 1 < argc) {
			broker.idle_ms = strtoul(argv[++i], NULL, 10) * 1000;
		} else {
			fprintf(stderr, "usage: adverbd [--foreground] "
					"[--idle SECONDS]\n");
			return -EINVAL;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	bool foreground = false;
	int error;

	if (options(argc, argv, &foreground))
		return 2;
	detach(foreground);
	error = claim(&broker);
	if (error) {
		fprintf(stderr, "adverbd: %s\n",
			error == -EADDRINUSE ? "another one is running"
					     : strerror(-error));
		return error == -EADDRINUSE ? 0 : 1;
	}
	broker.spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	dup2(broker.spare_fd, 1);
	broker.idle_since_ms = now_ms();
	while (turn(&broker))
		;
	/* The port first: a successor must find it free. */
	group_close(&broker.group);
	return 0;
}
