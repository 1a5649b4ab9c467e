/* SPDX-License-Identifier: BSD-2-Clause */
/* The broker's loop; see server.h. */
#include "broker/server.h"

#include "broker/group.h"
#include "broker/gsi.h"
#include "broker/page.h"
#include "broker/proto.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CONN_MAX (STEER_CLASS_MAX + 64)

/* One client.  The broker owns both descriptors. */
struct conn {
	int fd;
	int pidfd; /* -1: its process is not visible */
	uid_t user;
	uint32_t class; /* 0: has not said hello */
};

struct server {
	int listen_fd, spare_fd;
	uint64_t idle_ms, idle_since_ms;
	uint32_t conns;
	struct conn conn[CONN_MAX];
	struct group group;
	struct gsi gsi;
	struct pollfd polled[2 + 2 * CONN_MAX];
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t now_ms(void)
{
	return now_ns() / 1000000;
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

static void hello(struct server *s, struct conn *c, const struct proto *m)
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
	error = group_take(&s->group, c->user, &why, &c->class);
	if (error) {
		refuse(c, m->serial, -error, why);
		return;
	}
	/* Member 0 came with the first class; without it there is no QP1. */
	if (gsi_fd(&s->gsi) < 0)
		gsi_open(&s->gsi, s->group.member[0].fd);
	reply.value = c->class;
	member = &s->group.member[c->class];
	answer(c, &reply, (int[]){member->fd, member->page_fd},
	       member->page_fd < 0 ? 1 : 2);
}

/* To whoever asks, of any user: it says how much has been taken, no more. */
static void show_page(const struct server *s, const struct conn *c,
		      const struct proto *m)
{
	struct proto reply = {.magic = PROTO_MAGIC,
			      .version = PROTO_VERSION,
			      .kind = PROTO_PAGE_IS,
			      .serial = m->serial,
			      .value = m->value};
	int fd = group_is_owned(&s->group, m->value)
			 ? page_reader(s->group.member[m->value].page_fd)
			 : -ENOENT;

	answer(c, &reply, &fd, fd < 0 ? 0 : 1);
	if (fd >= 0)
		close(fd);
}

static enum proto_peer peer_state(const struct server *s, uint32_t qpn)
{
	uint32_t class = steer_class(qpn);

	if (!class || class > STEER_CLASS_MAX)
		return PROTO_PEER_UNKNOWN;
	return group_is_owned(&s->group, class) ? PROTO_PEER_ALIVE
						: PROTO_PEER_GONE;
}

static void handle(struct server *s, struct conn *c, const struct proto *m,
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
		hello(s, c, m);
	} else if (m->kind == PROTO_ASK) {
		reply.value = peer_state(s, m->value);
		answer(c, &reply, NULL, 0);
	} else if (m->kind == PROTO_PAGE) {
		show_page(s, c, m);
	} else {
		refuse(c, m->serial, EOPNOTSUPP, "an unknown request");
	}
}

/* False when the client is gone.  Descriptors sent to us go nowhere: there is
 * no buffer for them. */
static bool serve(struct server *s, struct conn *c)
{
	struct proto m = {0};
	ssize_t n = recv(c->fd, &m, sizeof(m), MSG_DONTWAIT | MSG_TRUNC);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (!n)
		return false;
	handle(s, c, &m, (size_t)n);
	return true;
}

static void retire(struct server *s, struct conn *c)
{
	if (c->class)
		group_release(&s->group, c->class, now_ms());
	c->class = 0;
}

/* The last one takes its place. */
static void drop(struct server *s, uint32_t i)
{
	struct conn *c = &s->conn[i];

	retire(s, c);
	close(c->fd);
	if (c->pidfd >= 0)
		close(c->pidfd);
	*c = s->conn[--s->conns];
	s->idle_since_ms = now_ms();
}

/* Out of descriptors: turn the caller away rather than spin on the listener. */
static void turn_away(struct server *s)
{
	close(s->spare_fd);
	close(accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC));
	s->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void admit(struct server *s)
{
	int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	struct ucred who;
	socklen_t length = sizeof(who);

	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE)
			turn_away(s);
		return;
	}
	if (s->conns == CONN_MAX ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length)) {
		close(fd);
		return;
	}
	/* A fork of the client may keep the connection open: watch both. */
	s->conn[s->conns++] = (struct conn){
		.fd = fd,
		.pidfd = who.pid > 0 ? (int)syscall(SYS_pidfd_open, who.pid, 0)
				     : -1,
		.user = who.uid};
}

/* How long poll may wait: to the next rest's end or to the idle end. */
static int patience(struct server *s)
{
	uint64_t now = now_ms(), idle = now - s->idle_since_ms;
	int rest = group_tick(&s->group, now), wait = -1;

	if (!s->conns)
		wait = idle < s->idle_ms ? (int)(s->idle_ms - idle) : 0;
	return rest >= 0 && (wait < 0 || rest < wait) ? rest : wait;
}

/* p: two for each of the n clients, its connection and its process. */
static void serve_all(struct server *s, const struct pollfd *p, uint32_t n)
{
	/* The dead first: who asks after a death hears of it. */
	for (uint32_t i = 0; i < n; i++)
		if (p[2 * i + 1].revents || p[2 * i].revents & POLLHUP)
			retire(s, &s->conn[i]);
	/* From the end, so that the one moved into a hole has been served. */
	for (uint32_t i = n; i-- > 0;)
		if (p[2 * i + 1].revents || p[2 * i].revents & POLLHUP ||
		    (p[2 * i].revents && !serve(s, &s->conn[i])))
			drop(s, i);
}

bool server_turn(struct server *s)
{
	struct pollfd *p = s->polled;
	uint32_t n = s->conns;
	int ready;

	p[0] = (struct pollfd){.fd = s->listen_fd, .events = POLLIN};
	p[1] = (struct pollfd){.fd = gsi_fd(&s->gsi), .events = POLLIN};
	for (uint32_t i = 0; i < n; i++) {
		p[2 + 2 * i] = (struct pollfd){s->conn[i].fd, POLLIN, 0};
		p[3 + 2 * i] = (struct pollfd){s->conn[i].pidfd, POLLIN, 0};
	}
	ready = poll(p, 2 + 2 * (nfds_t)n, patience(s));
	if (!ready && !n && now_ms() - s->idle_since_ms >= s->idle_ms)
		return false;
	if (ready <= 0)
		return true;
	if (p[1].revents)
		gsi_turn(&s->gsi, now_ns());
	serve_all(s, p + 2, n);
	if (p[0].revents)
		admit(s);
	return true;
}

struct server *server_new(int listen_fd, uint64_t idle_ms)
{
	struct server *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	fcntl(listen_fd, F_SETFL, O_NONBLOCK);
	s->listen_fd = listen_fd;
	s->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	s->idle_ms = idle_ms;
	s->idle_since_ms = now_ms();
	return s;
}

void server_free(struct server *s)
{
	gsi_close(&s->gsi);
	group_close(&s->group);
	while (s->conns) {
		s->conn[s->conns - 1].class = 0; /* it went with the group */
		drop(s, s->conns - 1);
	}
	close(s->listen_fd);
	close(s->spare_fd);
	free(s);
}
