/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/greeting.h"

#include "broker/answer.h"
#include "broker/user.h"
#include "util/monotonic.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* How long a hello waits for the fd store of a dead broker. */
#define FD_STORE_MS 10000

static void relay_datagram(void *user, uint32_t class,
			   const struct udp_dgram *d)
{
	reuseport_group_relay(user, class, d);
}

void greeting_open_gsi(struct server *s)
{
	s->gsi.relay = relay_datagram;
	s->gsi.relay_user = &s->group;
	gsi_open(&s->gsi, s->group.member[0].fd);
}

/* Returns whether c is a client of the broker's own user.  The broker takes
 * descriptors only from such clients. */
static bool is_own(const struct server *s, const struct conn *c)
{
	return user_is_same(c->user, s->group.user);
}

/* Adds fd, as the descriptor of `bit`, to the *n descriptors that m brings.
 * Does nothing if fd is -1.  Callers add the lowest bit first. */
static void bring_fd(struct proto *m, uint32_t bit, int fd, int fds[PROTO_FDS],
		     int *n)
{
	if (fd < 0)
		return;
	m->brings |= bit;
	fds[(*n)++] = fd;
}

/*
 * Answers a hello by PROTO_WELCOME.  Returns 0 or -errno.  A client of the
 * broker's own user gets the fd store for a successor of this broker: the store
 * lets its holder read all packets of the port, which the broker's user can do
 * in any case.  A client of another user gets a token for the successor.
 */
static int welcome_client(struct server *s, struct conn *c)
{
	const struct reuseport_group_member *member =
		reuseport_group_at(&s->group, c->class);
	bool is_new = !c->hello.value, is_relayed = member->is_other_user;
	struct proto m = {.kind = PROTO_WELCOME,
			  .value = c->class,
			  .about = (uint32_t)getpid(),
			  .token = member->token};
	int fds[PROTO_FDS], n = 0, err;

	/* c has a class, so the group has member 0. */
	if (gsi_fd(&s->gsi) < 0)
		greeting_open_gsi(s);
	bring_fd(&m, PROTO_FD_SOCKET, is_new || is_relayed ? member->fd : -1,
		 fds, &n);
	bring_fd(&m, PROTO_FD_PAGE, is_new ? member->page_fd : -1, fds, &n);
	bring_fd(&m, PROTO_FD_STORE, is_own(s, c) ? s->group.fd_store.fd : -1,
		 fds, &n);
	bring_fd(&m, PROTO_FD_WAKE, is_relayed ? c->peer_wake_fd : -1, fds, &n);
	err = answer_send(c, &c->hello, &m, fds);
	/* A client that had its class before this hello goes on without a new
	 * copy of the fd store.  If the client were refused, it would close the
	 * connection, and its class would be released although its process
	 * lives. */
	if (err && m.brings == PROTO_FD_STORE) {
		m.brings = 0;
		err = answer_send(c, &c->hello, &m, NULL);
	}
	reuseport_group_sent(&s->group, c->class);
	return err;
}

/* Gives a client of an earlier broker the class that the client had there.
 * Returns 0; -ESTALE: another client has the class, or the class is not that of
 * the client's process; or the -errno with which no relay could be made for a
 * client of another user. */
static int recognise_client(struct server *s, struct conn *c)
{
	uint32_t class = c->hello.value;
	int err;

	for (uint32_t i = 0; i < s->conns; i++)
		if (s->conn[i].class == class && s->conn[i].fd >= 0)
			return -ESTALE;
	err = reuseport_group_recognise(&s->group, class, c->user, c->pid,
					c->hello_fd, c->hello.token);
	if (err)
		return err;
	for (uint32_t i = 0; i < s->conns; i++)
		if (s->conn[i].class == class)
			/* the entry that take_over made: c has the class now */
			s->conn[i].class = 0;
	c->class = class;
	c->is_inherited = true;
	return 0;
}

/* Refuses a hello, and names the limit that was reached if err is about a
 * limit on descriptors.  Releases a class that the client got with this hello.
 */
static void refuse_for(struct server *s, struct conn *c, int err,
		       const char *why)
{
	char limit[sizeof(c->hello.why)];

	if (err == -EMFILE || err == -ENFILE || err == -ETOOMANYREFS) {
		refuse_full_why(-err, limit, sizeof(limit));
		why = limit;
		if (err == -ETOOMANYREFS)
			err = -EMFILE;
	}
	answer_refuse(c, &c->hello, -err, why);
	if (c->class && !c->hello.value) {
		reuseport_group_release(&s->group, c->class, monotonic_ms());
		c->class = 0;
	}
}

void greeting_end(struct conn *c)
{
	if (c->hello_fd >= 0)
		close(c->hello_fd);
	c->hello_fd = -1;
	c->is_waiting = false;
}

/* Writes to `why` a sentence about a welcome that cannot be sent because of
 * err, a -errno, and returns `why`.  If err is about a limit on descriptors,
 * refuse_for replaces the sentence. */
static const char *explain_unsent(int err, char *why, size_t size)
{
	if (err == -ENOMEM || err == -ENOBUFS)
		refuse_full_why(ENOMEM, why, size);
	else
		snprintf(why, size,
			 "the broker adverbd cannot answer: %s: start the "
			 "program again",
			 strerror(-err));
	return why;
}

/* As explain_unsent, about a class that the client does not get back because of
 * err.  port: what reuseport_group_port has said, or an empty string. */
static const char *explain_lost(const struct server *s, int err,
				const char *port, char *why, size_t size)
{
	if (err != -ESTALE)
		return explain_unsent(err, why, size);
	return s->group.count || !*port
		       ? "the broker no longer knows this program's class: "
			 "start the program again"
		       : port;
}

/* Answers the hello of c.  Leaves the hello waiting, for FD_STORE_MS at most,
 * if the fd store of a dead broker has yet to come. */
static void greet_client(struct server *s, struct conn *c)
{
	const char *why = "";
	char unsent[sizeof(c->hello.why)];
	int err = 0;

	if (!s->group.count &&
	    reuseport_group_port(&why) == REUSEPORT_PORT_OURS &&
	    monotonic_ms() - c->waiting_ms < FD_STORE_MS)
		return;
	if (!c->hello.value) {
		err = reuseport_group_take(&s->group, c->user, c->pid,
					   monotonic_ms(), &why, &c->class);
	} else {
		err = recognise_client(s, c);
		if (err)
			why = explain_lost(s, err, why, unsent, sizeof(unsent));
	}
	if (!err) {
		err = welcome_client(s, c);
		if (err)
			why = explain_unsent(err, unsent, sizeof(unsent));
	}
	if (err)
		refuse_for(s, c, err, why);
	greeting_end(c);
}

void greeting_retry(struct server *s)
{
	for (uint32_t i = 0; i < s->conns; i++)
		if (s->conn[i].is_waiting)
			greet_client(s, &s->conn[i]);
}

/*
 * Adds an entry for the process that has `class`.  Releases the class if that
 * process has ended.  If the broker cannot tell, for example because no
 * descriptor is left for a pidfd, the class stays: a living process would
 * otherwise share it with the next owner.
 */
static void inherit_class(struct server *s, uint32_t class,
			  const struct fd_store_entry *e)
{
	bool has_pid = fd_store_has_pid(e, fd_store_pid_space());
	int pidfd = fd_store_process(e);

	if (pidfd == -ESRCH) {
		reuseport_group_release(&s->group, class, monotonic_ms());
		return;
	}
	s->conn[s->conns++] =
		(struct conn){.fd = -1,
			      .in_fd = -1,
			      .pidfd = pidfd < 0 ? -1 : pidfd,
			      .is_unwatched = fd_store_is_short(pidfd),
			      .user = e->user,
			      .pid = has_pid ? e->pid : 0,
			      .hello_fd = -1,
			      .peer_wake_fd = -1,
			      .class = class,
			      .is_inherited = true};
}

/* Takes over from a dead broker by its fd store.  Takes ownership of
 * fd_store_fd. */
static void take_over(struct server *s, int fd_store_fd)
{
	if (reuseport_group_adopt(&s->group, fd_store_fd, s->listen_fd,
				  monotonic_ms()))
		return;
	s->counter_files.is_successor = true;
	for (uint32_t i = 1; i <= STEER_CLASS_MAX && s->conns < CONN_MAX; i++) {
		uint32_t class = steer_class_at(&s->group.key, i);
		const struct fd_store_entry e = s->group.fd_store.ledger->at[i];

		if (reuseport_group_is_owned(&s->group, class))
			inherit_class(s, class, &e);
	}
	if (gsi_fd(&s->gsi) < 0)
		greeting_open_gsi(s);
	cmserver_succeed(s->cm, monotonic_ns());
	greeting_retry(s);
}

int greeting_watch(const struct server *s, uint32_t class)
{
	const struct fd_store_entry e =
		s->group.fd_store.ledger->at[steer_index(&s->group.key, class)];

	return fd_store_process(&e);
}

void greeting_close_wake_fd(struct conn *c)
{
	if (c->peer_wake_fd >= 0)
		close(c->peer_wake_fd);
	c->peer_wake_fd = -1;
}

/* Returns whether the client has given its own pid, by which other processes
 * open its arena.  The broker can compare pids only within its own PID
 * namespace.  So the result is true for a client in another PID namespace:
 * there the peer that opens the arena compares the pid with the pid in the
 * arena. */
static bool says_its_pid(const struct conn *c)
{
	return c->arena.pid_space != proto_pid_space() ||
	       c->arena.pid == (uint32_t)c->pid;
}

/*
 * Notes where the client's arena is, for other processes of its user, and the
 * eventfd by which they wake the client.  A client of the broker's user has
 * sent its eventfd, *fd.  A client of another user brings no descriptor: if
 * that client wants a new class and has an arena, the broker makes an eventfd,
 * which it sends with the class.  A client that gave the pid of another process
 * has no eventfd here, so its arena is shown to nobody.
 */
static void take_arena(const struct server *s, struct conn *c, int *fd)
{
	greeting_close_wake_fd(c);
	c->arena = c->hello.arena;
	if (!says_its_pid(c))
		return;
	if (!is_own(s, c)) {
		c->peer_wake_fd =
			c->arena.pid && !c->hello.value
				? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)
				: -1;
		return;
	}
	c->peer_wake_fd = *fd;
	*fd = -1;
}

void greeting_take(struct server *s, struct conn *c, const struct proto *m,
		   int fds[PROTO_FDS])
{
	if (c->class || c->is_waiting) {
		answer_refuse(c, m, EBUSY,
			      "this client has a class, or waits for one: "
			      "install one version of adverb");
		return;
	}
	c->hello = *m;
	c->hello_fd = fds[0];
	c->is_waiting = true;
	c->waiting_ms = monotonic_ms();
	fds[0] = -1;
	take_arena(s, c, &fds[4]);
	if (fds[2] >= 0 && is_own(s, c) && !s->group.count) {
		take_over(s, fds[2]);
		fds[2] = -1;
	}
	if (c->is_waiting)
		greet_client(s, c);
}
