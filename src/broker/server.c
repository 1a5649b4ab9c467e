/* SPDX-License-Identifier: BSD-2-Clause */
/* The broker's loop; see server.h. */
#include "broker/server.h"

#include "broker/admission.h"
#include "broker/answer.h"
#include "broker/counter_tree.h"
#include "broker/inside.h"
#include "broker/sysfs_gc.h"
#include "broker/unread.h"
#include "broker/user.h"
#include "broker/poll_sparse.h"
#include "util/monotonic.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* How long a hello waits for the fd store of a dead broker, and how often the
 * port is tried meanwhile. */
#define FD_STORE_MS 10000
#define RETRY_MS    50
#define CLAIM_MS    1000 /* between two attempts at a port that is held */
#define BACKLOG	    1024
/* in one turn: messages of one client, and new connections */
#define BATCH 16
/* the most messages of a dead client: more than a socket holds */
#define CM_LAST 1024

static void relay_datagram(void *user, uint32_t class,
			   const struct udp_dgram *d)
{
	reuseport_group_relay(user, class, d);
}

static void open_gsi(struct server *s)
{
	s->gsi.relay = relay_datagram;
	s->gsi.relay_user = &s->group;
	gsi_open(&s->gsi, s->group.member[0].fd);
}

/*
 * Binds the port, once nobody has it, before a client asks for a class: for
 * server_hold_port, and for connection management, which needs no class.  If a
 * process ends before a client has brought the fd store, and no other process
 * has the store, the peers of that process must still be told of its end.
 */
static void claim_port(struct server *s)
{
	if (gsi_fd(&s->gsi) < 0 && (s->holds_port || cmserver_is_busy(s->cm)) &&
	    reuseport_group_claim(&s->group))
		open_gsi(s);
}

/*
 * Answers a hello by PROTO_WELCOME.  A client of the broker's own user, which
 * can read this port in any case, gets the fd store.  A client of another user
 * gets the sending end of its relay.  Either one is for a successor of this
 * broker.
 */
static int welcome_client(struct server *s, struct conn *c)
{
	const struct reuseport_group_member *member =
		reuseport_group_at(&s->group, c->class);
	int kept = member->is_other_user		  ? member->relay_fd
		   : user_is_same(c->user, s->group.user) ? s->group.fd_store.fd
							  : -1;
	struct proto m = {.kind = PROTO_WELCOME,
			  .value = c->class,
			  .about = (uint32_t)getpid()};
	int fds[PROTO_FDS], n = 0;

	/* Member 0 exists since the first class was given. */
	if (gsi_fd(&s->gsi) < 0)
		open_gsi(s);
	if (!c->hello.value) {
		m.brings |= PROTO_FD_SOCKET;
		fds[n++] = member->fd;
	}
	if (!c->hello.value && member->page_fd >= 0) {
		m.brings |= PROTO_FD_PAGE;
		fds[n++] = member->page_fd;
	}
	if (kept >= 0) {
		m.brings |= PROTO_FD_STORE;
		fds[n++] = kept;
	}
	return answer_send(c, &c->hello, &m, fds);
}

/* Gives a client of an earlier broker the class that it had.  False: the class
 * is not that of the client's process. */
static bool recognise_client(struct server *s, struct conn *c)
{
	uint32_t class = c->hello.value;

	for (uint32_t i = 0; i < s->conns; i++)
		if (s->conn[i].class == class && s->conn[i].fd >= 0)
			return false;
	if (!reuseport_group_recognise(&s->group, class, c->user, c->pid,
				       c->hello_fd, &c->relay_fd))
		return false;
	for (uint32_t i = 0; i < s->conns; i++)
		if (s->conn[i].class == class)
			/* the entry that take_over made: c has the class now */
			s->conn[i].class = 0;
	c->class = class;
	c->is_inherited = true;
	return true;
}

/* Refuses a hello, and names the limit that was reached if err is about a
 * limit.  Releases a class that the client got with this hello. */
static void refuse_for(struct server *s, struct conn *c, int err,
		       const char *why)
{
	char limit[sizeof(c->hello.why)];

	if (err == -EMFILE || err == -ENFILE || err == -ETOOMANYREFS) {
		refuse_full_why(-err, limit, sizeof(limit));
		why = limit;
		err = -EMFILE;
	}
	answer_refuse(c, &c->hello, -err, why);
	if (c->class && !c->hello.value) {
		reuseport_group_release(&s->group, c->class, monotonic_ms());
		c->class = 0;
	}
}

static void end_greeting(struct conn *c)
{
	if (c->hello_fd >= 0)
		close(c->hello_fd);
	if (c->relay_fd >= 0)
		close(c->relay_fd);
	c->hello_fd = c->relay_fd = -1;
	c->is_waiting = false;
}

/* Answers a hello; it waits up to FD_STORE_MS for a dead broker's fd store. */
static void greet_client(struct server *s, struct conn *c)
{
	const char *why = "";
	int err = 0;

	if (!s->group.count &&
	    reuseport_group_port(&why) == REUSEPORT_PORT_OURS &&
	    monotonic_ms() - c->waiting_ms < FD_STORE_MS)
		return;
	if (!c->hello.value)
		err = reuseport_group_take(&s->group, c->user, c->pid,
					   monotonic_ms(), &why, &c->class);
	else if (!recognise_client(s, c)) {
		err = -ESTALE;
		if (s->group.count)
			why = "the broker knows this program's class no "
			      "more: start the program again";
	}
	if (!err && welcome_client(s, c) == -ETOOMANYREFS)
		err = -ETOOMANYREFS;
	if (err)
		refuse_for(s, c, err, why);
	end_greeting(c);
}

static void greet_waiting(struct server *s)
{
	for (uint32_t i = 0; i < s->conns; i++)
		if (s->conn[i].is_waiting)
			greet_client(s, &s->conn[i]);
}

/* Takes over from a dead broker by its fd store; takes fd_store_fd. */
static void take_over(struct server *s, int fd_store_fd)
{
	if (reuseport_group_adopt(&s->group, fd_store_fd, s->listen_fd,
				  monotonic_ms()))
		return;
	s->counter_files.is_successor = true;
	for (uint32_t i = 1; i <= STEER_CLASS_MAX && s->conns < CONN_MAX; i++) {
		uint32_t class = steer_class_at(&s->group.key, i);
		const struct fd_store_entry e = s->group.fd_store.ledger->at[i];
		int pidfd;

		if (!reuseport_group_is_owned(&s->group, class))
			continue;
		pidfd = fd_store_process(&e);
		if (pidfd < 0 && e.pid) {
			reuseport_group_release(&s->group, class,
						monotonic_ms());
			continue;
		}
		s->conn[s->conns++] = (struct conn){.fd = -1,
						    .pidfd = pidfd,
						    .user = e.user,
						    .pid = e.pid,
						    .hello_fd = -1,
						    .relay_fd = -1,
						    .kick_fd = -1,
						    .class = class,
						    .is_inherited = true};
	}
	if (gsi_fd(&s->gsi) < 0)
		open_gsi(s);
	cmserver_succeed(s->cm, monotonic_ns());
	greet_waiting(s);
}

static void close_kick(struct conn *c)
{
	if (c->kick_fd >= 0)
		close(c->kick_fd);
	c->kick_fd = -1;
}

/* Whether the client has given its own pid, by which other processes open its
 * arena.  The broker can compare pids only within its own PID namespace.  In
 * another one, a peer compares the pid with that in the arena. */
static bool says_its_pid(const struct conn *c)
{
	return c->arena.pid_space != proto_pid_space() ||
	       c->arena.pid == (uint32_t)c->pid;
}

static void take_hello(struct server *s, struct conn *c, const struct proto *m,
		       int fds[PROTO_FDS])
{
	if (c->class || c->is_waiting) {
		answer_refuse(c, m, EBUSY, "this client has a class");
		return;
	}
	c->hello = *m;
	c->hello_fd = fds[0];
	c->is_waiting = true;
	c->waiting_ms = monotonic_ms();
	fds[0] = -1;
	close_kick(c);
	c->arena = m->arena;
	if (says_its_pid(c)) {
		c->kick_fd = fds[4];
		fds[4] = -1;
	}
	if (fds[2] >= 0 && !user_is_same(c->user, s->group.user)) {
		c->relay_fd = fds[2];
		fds[2] = -1;
	} else if (fds[2] >= 0 && !s->group.count) {
		take_over(s, fds[2]);
		fds[2] = -1;
	}
	if (c->is_waiting)
		greet_client(s, c);
}

static void handle_message(struct server *s, struct conn *c,
			   const struct proto *m, int fds[PROTO_FDS])
{
	if (m->kind == PROTO_HELLO)
		take_hello(s, c, m, fds);
	else if (m->kind == PROTO_ASK)
		answer_peer(s, c, m);
	else if (m->kind == PROTO_PAGE)
		answer_page(s, c, m);
	else if (m->kind == PROTO_ASK_FAR)
		answer_remote(s, c, m, monotonic_ns());
	else if (m->kind == PROTO_TREE)
		counter_tree_take(s, c, &fds[3]);
	else if (m->kind == PROTO_ARENA)
		answer_arena(s, c, m, monotonic_ms());
	else if (m->kind == PROTO_WHO)
		answer_who(s, c, m);
	else if (m->kind == PROTO_SOURCE)
		answer_source(s, c, m);
	else
		answer_refuse(c, m, EOPNOTSUPP,
			      "the broker does not know this request");
}

/* Whether c is a client of connection management, by its first message. */
static bool is_cm(const struct conn *c)
{
	uint32_t magic = 0;

	return c->cm || (recv(c->fd, &magic, sizeof(magic),
			      MSG_PEEK | MSG_DONTWAIT) == sizeof(magic) &&
			 magic == CMPROTO_MAGIC);
}

/* Serves at most CM_INBOX_MESSAGES messages of connection management.  Returns
 * how many it has served, or -1: the client is gone. */
static int serve_cm_batch(struct server *s, struct conn *c)
{
	struct cm_inbox *in = &s->inbox;
	int n = cm_inbox_receive(in, c->fd, MSG_DONTWAIT | MSG_TRUNC);

	if (n <= 0)
		return n && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
	if (!c->cm)
		c->cm = cmserver_client_new(s->cm, c->fd, c->user, c->pid);
	for (int i = 0; i < n; i++)
		if (!c->cm ||
		    !cmserver_handle(s->cm, c->cm, &in->messages[i],
				     in->of[i].msg_len, monotonic_ns()))
			return -1;
	return n;
}

/* Serves about @max messages of connection management.  False: the client is
 * gone. */
static bool serve_cm(struct server *s, struct conn *c, int max)
{
	int n;

	do {
		n = serve_cm_batch(s, c);
		max -= n;
	} while (n == CM_INBOX_MESSAGES && max > 0);
	return n >= 0;
}

static void refuse_full(const struct conn *c, const struct proto *m)
{
	char why[sizeof(m->why)];

	refuse_full_why(EMFILE, why, sizeof(why));
	answer_refuse(c, m, EMFILE, why);
}

/* Serves one message.  0 or -errno: -EAGAIN: there is none; -EPROTO: it is not
 * of this protocol; -EMFILE: no room was left for its descriptor. */
static int serve_message(struct server *s, struct conn *c)
{
	int fds[PROTO_FDS], err;
	struct proto m = {0};

	err = proto_receive(c->fd, &m, fds);
	if (err == -EPROTO)
		answer_refuse(c, &m, EPROTO,
			      "this is not the broker's protocol");
	else if (err == -EPROTONOSUPPORT)
		answer_version(s, c, &m);
	else if (err == -EMFILE)
		refuse_full(c, &m);
	else if (!err)
		handle_message(s, c, &m, fds);
	for (int i = 0; i < PROTO_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return err;
}

/* Returns the kind of the next message; 0: there is none, or it is not one of
 * this protocol. */
static unsigned next_kind(const struct conn *c)
{
	struct proto m = {0};

	return recv(c->fd, &m, sizeof(m), MSG_PEEK | MSG_DONTWAIT) ==
				       sizeof(m) &&
			       m.magic == PROTO_MAGIC
		       ? m.kind
		       : 0;
}

/*
 * Serves one message of a client.  A process that the message asks about may
 * have died since the poll, and the asker may know that: so the next poll comes
 * before the next answer.  Several PROTO_ARENA are served in one turn, since an
 * arena itself shows the death of its owner.  False: the client is gone.
 */
static bool serve_client(struct server *s, struct conn *c)
{
	unsigned kind;
	int left = BATCH, err;

	if (is_cm(c))
		return serve_cm(s, c, BATCH);
	kind = next_kind(c);
	do {
		if ((kind == PROTO_PAGE || kind == PROTO_ARENA) &&
		    !unread_may_send(c, monotonic_ms()))
			return true;
		err = serve_message(s, c);
		kind = next_kind(c);
	} while (!err && --left && kind == PROTO_ARENA);
	return !err || err == -EAGAIN || err == -EPROTO ||
	       err == -EPROTONOSUPPORT || err == -EMFILE;
}

/* Tells the processes in whose arenas the dead process could write: it may have
 * left an entry half written there. */
static void tell_death(const struct server *s, const struct conn *dead)
{
	const struct proto none = {0};

	for (uint32_t i = 0; i < s->conns; i++) {
		const struct conn *c = &s->conn[i];
		uint64_t row = dead->access_of[c->class / 64];
		bool was_inside =
			dead->is_inherited || row >> c->class % 64 & 1;
		struct proto m = {.kind = PROTO_DIED};

		if (c != dead && c->class && c->fd >= 0 && c->kick_fd >= 0 &&
		    user_is_same(c->user, dead->user) && was_inside)
			answer_send(c, &none, &m, NULL);
	}
}

static void retire_client(struct server *s, struct conn *c)
{
	if (c->class)
		tell_death(s, c);
	if (c->class && user_is_same(c->user, s->group.user))
		counter_files_end(&s->counter_files,
				  reuseport_group_page(&s->group, c->class));
	if (c->class)
		reuseport_group_release(&s->group, c->class, monotonic_ms());
	c->class = 0;
	/* messages that the process has sent before its death still count */
	if (c->cm)
		serve_cm(s, c, CM_LAST);
	if (c->cm)
		cmserver_client_free(s->cm, c->cm, monotonic_ns());
	c->cm = NULL;
}

/* Releases what the process of c had, since it has ended: it will not resume
 * the conversations that it had at an earlier broker. */
static void end_process(struct server *s, struct conn *c)
{
	retire_client(s, c);
	cmserver_process_ended(s->cm, c->pid, monotonic_ns());
}

/* Whether the broker must learn when c's process ends. */
static bool is_awaited(const struct server *s, const struct conn *c)
{
	return c->class || (c->pidfd >= 0 && cmserver_awaits(s->cm, c->pid));
}

/* Releases all that c had, except its connection and its pidfd. */
static void end_client(struct server *s, struct conn *c)
{
	retire_client(s, c);
	end_greeting(c);
	if (c->name)
		remote_liveness_forget(s->remote_liveness, c->name);
	c->name = 0;
	c->questions = 0;
	close_kick(c);
}

/* Closes entry i's descriptors, and moves the last entry into its place. */
static void remove_conn(struct server *s, uint32_t i)
{
	struct conn *c = &s->conn[i];

	if (c->fd >= 0)
		close(c->fd);
	if (c->pidfd >= 0)
		close(c->pidfd);
	*c = s->conn[--s->conns];
	s->idle_since_ms = monotonic_ms();
}

/* Closes the connection of c, or keeps it open (is_over) until the client has
 * read what was sent there. */
static void close_conn(struct conn *c)
{
	c->is_over = c->fd >= 0 && unread_bytes(c->fd);
	c->behind_ms = 0;
	if (c->is_over || c->fd < 0)
		return;
	close(c->fd);
	c->fd = -1;
}

/* Ends entry i, whose process has ended or has nothing left at the broker. */
static void drop_conn(struct server *s, uint32_t i)
{
	struct conn *c = &s->conn[i];

	end_client(s, c);
	close_conn(c);
	if (!c->is_over) {
		remove_conn(s, i);
		return;
	}
	if (c->pidfd >= 0)
		close(c->pidfd);
	c->pidfd = -1;
}

/* Ends the connection of entry i.  The entry stays if its process has something
 * left at the broker. */
static void leave_conn(struct server *s, uint32_t i)
{
	struct conn *c = &s->conn[i];

	end_client(s, c);
	if (is_awaited(s, c))
		close_conn(c);
	else
		drop_conn(s, i);
}

/* Closes the connections that have ended and that the client has read.  Removes
 * the entries of processes that have nothing left at the broker, or that have
 * connected again. */
static void sweep_conns(struct server *s)
{
	for (uint32_t i = s->conns; i-- > 0;) {
		struct conn *c = &s->conn[i];

		if (c->is_over)
			close_conn(c);
		if (c->fd < 0 && !is_awaited(s, c))
			drop_conn(s, i);
	}
}

/* Accepts or refuses one connection.  False: no connection is waiting, or no
 * descriptor is left. */
static bool admit_client(struct server *s)
{
	int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	struct rlimit files = {0};
	struct ucred who;
	socklen_t length = sizeof(who);
	char why[96];
	uid_t user;

	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE)
			refuse_full_accept(&s->refuse_full, s->listen_fd,
					   monotonic_ms());
		return false;
	}
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length)) {
		close(fd);
		return true;
	}
	user = user_of(&who);
	getrlimit(RLIMIT_NOFILE, &files);
	if (admission_check(s, files.rlim_cur, user, why, sizeof(why))) {
		refuse_full_take(&s->refuse_full, fd, user, why,
				 monotonic_ms());
		return true;
	}
	/* Both fds are polled: a child of a dead client may keep fd open. */
	s->conn[s->conns++] = (struct conn){
		.fd = fd,
		.pidfd = who.pid > 0 ? (int)syscall(SYS_pidfd_open, who.pid, 0)
				     : -1,
		.user = user,
		.pid = who.pid,
		.hello_fd = -1,
		.relay_fd = -1,
		.kick_fd = -1};
	return true;
}

/* Returns the shorter of two waits, where -1 means without an end. */
static int sooner_of(int wait, int other)
{
	return wait < 0 || (other >= 0 && other < wait) ? other : wait;
}

/* Returns the shorter of `wait`, where -1 means without an end, and the time
 * until QP1 has something to do, in milliseconds. */
static int qp1_patience(const struct server *s, int wait)
{
	uint64_t due = cmserver_deadline(s->cm),
		 remote_liveness = remote_liveness_deadline(s->remote_liveness);
	uint64_t now = monotonic_ns(), left;

	wait = sooner_of(wait, gsi_patience(&s->gsi));
	if (remote_liveness < due)
		due = remote_liveness;
	if (due == UINT64_MAX)
		return wait;
	left = due > now ? (due - now + 999999) / 1000000 : 0;
	return sooner_of(wait, left < INT_MAX ? (int)left : INT_MAX);
}

/* Milliseconds until a broker without clients ends. */
static int until_idle(const struct server *s, uint64_t now)
{
	uint64_t idle = now - s->idle_since_ms, left;

	left = idle < s->idle_ms ? s->idle_ms - idle : 0;
	return left < INT_MAX ? (int)left : INT_MAX;
}

/* Returns how long poll may wait, in milliseconds; -1: without an end. */
static int poll_patience(struct server *s)
{
	uint64_t now = monotonic_ms();
	int rest = reuseport_group_tick(&s->group, now), wait = -1;

	if (s->idle_ms != SERVER_NEVER && !s->conns && !cmserver_is_busy(s->cm))
		wait = until_idle(s, now);
	if (s->holds_port && gsi_fd(&s->gsi) < 0)
		wait = sooner_of(wait, CLAIM_MS);
	for (uint32_t i = 0; i < s->conns; i++)
		if (s->conn[i].is_waiting)
			wait = RETRY_MS;
	wait = sooner_of(wait, rest);
	wait = refuse_full_patience(&s->refuse_full, wait);
	return counter_tree_refresh(
		s, qp1_patience(s, unread_patience(s, now, wait)), now);
}

static bool serve_one(struct server *s, struct conn *c, short events)
{
	if (events & POLLOUT && c->cm && !cmserver_output(c->cm))
		return false;
	return !(events & ~POLLOUT) || serve_client(s, c);
}

/* Serves n clients.  Client i has two entries at p: p[2 i] is of its
 * connection, p[2 i + 1] of its process. */
static void serve_all(struct server *s, const struct pollfd *p, uint32_t n)
{
	/* Deaths first: a client that asks later in this turn is told. */
	for (uint32_t i = 0; i < n; i++)
		if (p[2 * i + 1].revents)
			end_process(s, &s->conn[i]);
		else if (p[2 * i].revents & POLLHUP)
			retire_client(s, &s->conn[i]);
	/* From the end: remove_conn moves the last entry, which was served. */
	for (uint32_t i = n; i-- > 0;) {
		if (p[2 * i + 1].revents)
			drop_conn(s, i);
		else if (p[2 * i].revents & POLLHUP ||
			 !serve_one(s, &s->conn[i], p[2 * i].revents))
			leave_conn(s, i);
	}
}

static void serve_ready(struct server *s, const struct pollfd *p, uint32_t n)
{
	if (p[2].revents)
		counter_files_looked(&s->counter_files, monotonic_ms());
	serve_all(s, p + FIXED, n);
	for (int i = 0; p[0].revents && i < BATCH; i++)
		if (!admit_client(s))
			break;
}

/* Sends frames before messages to clients: when a client is told of a MAD, that
 * MAD is on its way. */
static void send_all(struct server *s)
{
	gsi_flush(&s->gsi);
	for (uint32_t i = 0; i < s->conns; i++)
		if (s->conn[i].cm && cmserver_has_output(s->conn[i].cm))
			cmserver_output(s->conn[i].cm);
}

bool server_turn(struct server *s)
{
	struct pollfd *p = s->polled;
	uint32_t n = s->conns;
	int ready;

	/* If no descriptor is left, the next connection waits at the
	 * listener. */
	p[0] = (struct pollfd){.fd = refuse_full_may_accept(&s->refuse_full)
					     ? s->listen_fd
					     : -1,
			       .events = POLLIN};
	p[1] = (struct pollfd){.fd = gsi_fd(&s->gsi), .events = POLLIN};
	p[2] = (struct pollfd){.fd = counter_files_fd(&s->counter_files),
			       .events = POLLIN};
	refuse_full_poll(&s->refuse_full, &p[3]);
	for (uint32_t i = 0; i < n; i++) {
		struct conn *c = &s->conn[i];
		struct pollfd *of = &p[FIXED + 2 * i];

		of[0] = (struct pollfd){c->is_over ? -1 : c->fd, unread_poll(c),
					0};
		if (c->cm && cmserver_has_output(c->cm))
			of[0].events |= POLLOUT;
		of[1] = (struct pollfd){c->pidfd, POLLIN, 0};
	}
	ready = poll_sparse_all(p, s->room, FIXED + 2 * (nfds_t)n,
				poll_patience(s));
	greet_waiting(s);
	refuse_full_turn(&s->refuse_full, monotonic_ms());
	/*
	 * Timers run after the frames that have arrived, which were in time
	 * even if this process is late.  Timers run before the requests of
	 * clients, whose messages leave at the end of the turn: a timer would
	 * take these for lost.
	 */
	if (ready > 0 && p[1].revents)
		gsi_turn(&s->gsi, monotonic_ns());
	cmserver_tick(s->cm, monotonic_ns());
	if (ready > 0)
		serve_ready(s, p, n);
	sweep_conns(s);
	claim_port(s);
	remote_liveness_tick(s->remote_liveness, monotonic_ns());
	answer_remote_all(s, monotonic_ns());
	send_all(s);
	return ready || n || cmserver_is_busy(s->cm) ||
	       monotonic_ms() - s->idle_since_ms < s->idle_ms;
}

static void free_agents(struct server *s)
{
	if (s->cm)
		cmserver_free(s->cm);
	if (s->remote_liveness)
		remote_liveness_free(s->remote_liveness);
}

struct server *server_new(int listen_fd, const struct server_config *config)
{
	struct server *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->cm = cmserver_new(&s->gsi, &s->group.fd_store, monotonic_ns());
	s->remote_liveness =
		remote_liveness_new(&s->gsi, answer_state, s, monotonic_ns());
	if (!s->cm || !s->remote_liveness) {
		free_agents(s);
		free(s);
		return NULL;
	}
	user_prepare();
	cm_inbox_init(&s->inbox);
	counter_files_init(&s->counter_files);
	reuseport_group_init(&s->group, !config->no_bpf);
	fcntl(listen_fd, F_SETFL, O_NONBLOCK);
	s->listen_fd = listen_fd;
	refuse_full_init(&s->refuse_full);
	s->idle_ms = config->idle_ms;
	s->is_thread = config->is_thread;
	s->idle_since_ms = monotonic_ms();
	return s;
}

void server_listen(struct server *s)
{
	listen(s->listen_fd, BACKLOG);
}

bool server_hold_port(struct server *s, const char **why)
{
	s->holds_port = true;
	claim_port(s);
	if (gsi_fd(&s->gsi) >= 0)
		return true;
	if (reuseport_group_port(why) == REUSEPORT_PORT_FREE)
		*why = "the broker cannot open a socket on port 4791";
	return false;
}

void server_free(struct server *s)
{
	gsi_close(&s->gsi);
	reuseport_group_close(&s->group);
	while (s->conns) {
		/* reuseport_group_close has released the class */
		s->conn[s->conns - 1].class = 0;
		end_client(s, &s->conn[s->conns - 1]);
		remove_conn(s, s->conns - 1);
	}
	if (s->counter_files.tree_fd >= 0)
		sysfs_gc_own(s->counter_files.tree_fd);
	counter_files_close(&s->counter_files);
	free_agents(s);
	/* Drops their last frames: the socket of QP1 is closed. */
	gsi_flush(&s->gsi);
	close(s->listen_fd);
	refuse_full_close(&s->refuse_full);
	free(s);
}
