/* SPDX-License-Identifier: BSD-2-Clause */
/* The broker's loop; see server.h. */
#include "broker/server.h"

#include "broker/admission.h"
#include "broker/answer.h"
#include "broker/cm_gsi.h"
#include "broker/counter_tree.h"
#include "broker/greeting.h"
#include "broker/inside.h"
#include "broker/sysfs_gc.h"
#include "broker/unread.h"
#include "broker/user.h"
#include "broker/poll_sparse.h"
#include "util/monotonic.h"
#include "util/scm_rights.h"

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

#define CLAIM_MS 1000 /* between two attempts at a port that is held */
#define LOOK_MS	 1000 /* between two looks at a process without a pidfd */
#define BACKLOG	 1024
/* in one turn: messages of one client, and new connections */
#define BATCH 16
/* the most messages of a dead client: more than a socket holds */
#define CM_LAST 1024

/*
 * Binds the port, without waiting for a client that asks for a class, if
 * server_hold_port was called or connection management is busy.  Does nothing
 * while another process has the port: server_turn calls this again.  Connection
 * management may need QP1 before any client has a class.  For example, after
 * the death of a broker, a process resumes its conversations here, and ends
 * before a client has brought the fd store.  If no other process has the store,
 * this broker binds the port itself and tells the peers of the process that the
 * process has ended.
 */
static void claim_port(struct server *s)
{
	if (gsi_fd(&s->gsi) < 0 && (s->holds_port || cmserver_is_busy(s->cm)) &&
	    reuseport_group_claim(&s->group))
		greeting_open_gsi(s);
}

static void handle_message(struct server *s, struct conn *c,
			   const struct proto *m, int fds[PROTO_FDS])
{
	if (m->kind == PROTO_HELLO)
		greeting_take(s, c, m, fds);
	else if (m->kind == PROTO_ASK)
		answer_peer(s, c, m);
	else if (m->kind == PROTO_PAGE)
		answer_page(s, c, m);
	else if (m->kind == PROTO_ASK_REMOTE)
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
			      "the broker does not know this request: install "
			      "one version of adverb");
}

/* Is c a client of connection management?  Yes, if a message of that protocol
 * is the next one to read, or has come before. */
static bool is_cm(const struct conn *c)
{
	uint32_t magic = 0;

	return c->cm || (recv(c->in_fd, &magic, sizeof(magic),
			      MSG_PEEK | MSG_DONTWAIT) == sizeof(magic) &&
			 magic == CMPROTO_MAGIC);
}

/* Serves at most CM_INBOX_MESSAGES messages of connection management.  Returns
 * how many it has served, or -1: the client is gone. */
static int serve_cm_batch(struct server *s, struct conn *c)
{
	struct cm_inbox *in = &s->inbox;
	int n;

	/* ECONNRESET comes once: the last messages of the client are next */
	do
		n = cm_inbox_receive(in, c->in_fd, MSG_DONTWAIT | MSG_TRUNC);
	while (n < 0 && errno == ECONNRESET);
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

/* Serves about max messages of connection management.  False: the client is
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

/* Serves one message.  Returns 0, or an error of proto_receive; after -EPROTO,
 * -EPROTONOSUPPORT and -EMFILE the client was told. */
static int serve_message(struct server *s, struct conn *c)
{
	int fds[PROTO_FDS], err;
	struct proto m = {0};

	err = proto_receive(c->in_fd, &m, fds);
	if (err == -EPROTO)
		answer_refuse(c, &m, EPROTO,
			      "this is not the broker's protocol: install one "
			      "version of adverb");
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

	return recv(c->in_fd, &m, sizeof(m), MSG_PEEK | MSG_DONTWAIT) ==
				       sizeof(m) &&
			       m.magic == PROTO_MAGIC
		       ? m.kind
		       : 0;
}

/*
 * Serves one message of a client, or several messages of connection management.
 * A second message would be answered without a new poll: the process that it
 * asks about may have died since this turn's poll, and the client may know of
 * that death.  Several PROTO_ARENA are served in one turn, since an arena
 * itself shows the death of its owner.  False: the client is gone.
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

/* Sends PROTO_DIED to the processes in whose arenas the dead process could
 * write, since it may have left an entry half written there. */
static void tell_death(const struct server *s, const struct conn *dead)
{
	const struct proto none = {0};

	for (uint32_t i = 0; i < s->conns; i++) {
		const struct conn *c = &s->conn[i];
		uint64_t row = dead->access_of[c->class / 64];
		bool was_inside =
			dead->is_inherited || row >> c->class % 64 & 1;
		struct proto m = {.kind = PROTO_DIED};

		if (c != dead && c->class && c->fd >= 0 &&
		    (c->peer_wake_fd >= 0 || c->is_inherited) &&
		    user_is_same(c->user, dead->user) && was_inside)
			answer_send(c, &none, &m, NULL);
	}
}

/* Releases the class of c and, unless is_ending is set, all that c has at
 * cmserver. */
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
	if (c->is_ending)
		return;
	/* messages that the process has sent before its death still count */
	if (c->cm)
		serve_cm(s, c, CM_LAST);
	if (c->cm)
		cmserver_client_free(s->cm, c->cm, monotonic_ns());
	c->cm = NULL;
}

/* Retires c, whose process has ended or has closed the connection.  If a thread
 * receives for c (user_receiver.h), that thread may still have messages of
 * connection management: is_ending of c is set until in_fd is at its end. */
static void finish_client(struct server *s, struct conn *c)
{
	c->is_ending = c->received && c->cm && !c->is_over;
	retire_client(s, c);
	if (c->is_ending)
		user_receiver_finish(c->received);
}

/* Releases what the process of c had, since it has ended: it will not resume
 * the conversations that it had at an earlier broker. */
static void end_process(struct server *s, struct conn *c)
{
	finish_client(s, c);
	cmserver_process_ended(s->cm, c->pid, monotonic_ns());
}

/* Must the broker learn when c's process ends? */
static bool is_awaited(const struct server *s, const struct conn *c)
{
	return c->class || (c->pidfd >= 0 && cmserver_awaits(s->cm, c->pid));
}

/* Releases all that c had, except its connection and its pidfd. */
static void end_client(struct server *s, struct conn *c)
{
	retire_client(s, c);
	greeting_end(c);
	if (c->name)
		remote_liveness_forget(s->remote_liveness, c->name);
	c->name = 0;
	c->questions = 0;
	greeting_close_wake_fd(c);
}

static void close_pidfd(struct conn *c)
{
	if (c->pidfd >= 0)
		close(c->pidfd);
	c->pidfd = -1;
}

/* Closes the connection of c.  If c is of another user, that user's thread
 * closes the connection. */
static void close_fds(struct conn *c)
{
	if (c->in_fd >= 0)
		close(c->in_fd);
	if (c->received)
		user_receiver_close(c->received);
	c->received = NULL;
	c->fd = c->in_fd = -1;
}

/* Closes entry i's descriptors, and moves the last entry into its place. */
static void remove_conn(struct server *s, uint32_t i)
{
	struct conn *c = &s->conn[i];

	close_fds(c);
	close_pidfd(c);
	*c = s->conn[--s->conns];
	s->idle_since_ms = monotonic_ms();
}

/* Closes the connection of c, or keeps it open (is_over) until the client has
 * read what was sent there. */
static void close_conn(struct conn *c)
{
	c->is_over = c->fd >= 0 && unread_bytes(c->fd);
	c->behind_ms = 0;
	if (!c->is_over)
		close_fds(c);
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
	close_pidfd(c);
}

/* Ends the connection of entry i.  The entry stays if its process has something
 * left at the broker. */
static void leave_conn(struct server *s, uint32_t i)
{
	struct conn *c = &s->conn[i];

	c->is_ending = false;
	end_client(s, c);
	if (is_awaited(s, c))
		close_conn(c);
	else
		drop_conn(s, i);
}

/* Does c stand for a process that has no connection and that no pidfd watches,
 * but whose pid may show its end? */
static bool is_unseen(const struct conn *c)
{
	return c->fd < 0 && c->pidfd < 0 && c->class && c->pid;
}

/* Looks at the process of entry i, for which is_unseen is true, and watches the
 * process if that is possible now.  Releases what the process had if it has
 * ended.  False: no descriptor is left. */
static bool look_at_process(struct server *s, uint32_t i)
{
	struct conn *c = &s->conn[i];
	bool was_unwatched = c->is_unwatched;
	int pidfd = greeting_watch(s, c->class);

	c->is_unwatched = fd_store_is_short(pidfd);
	if (pidfd >= 0)
		c->pidfd = pidfd;
	else if (was_unwatched && !c->is_unwatched)
		s->idle_since_ms = monotonic_ms();
	if (pidfd == -ESRCH) {
		end_process(s, c);
		drop_conn(s, i);
	}
	return !fd_store_is_short(pidfd);
}

/*
 * Looks at the processes for which no descriptor was left (is_unwatched).
 * Every LOOK_MS also looks at the processes that cannot be watched, for example
 * because the kernel has no pidfd_open.  Stops when no descriptor is left.  The
 * caller calls this late in a turn, when the turn has closed descriptors.
 */
static void look_at_processes(struct server *s)
{
	uint64_t now = monotonic_ms();
	bool is_due = now - s->looked_ms >= LOOK_MS;

	if (is_due)
		s->looked_ms = now;
	for (uint32_t i = s->conns; i-- > 0;)
		if (is_unseen(&s->conn[i]) &&
		    (is_due || s->conn[i].is_unwatched) &&
		    !look_at_process(s, i))
			break;
}

/* Closes the connections that have ended and whose messages the client has
 * read.  Removes the entries of processes that have nothing left at the broker,
 * or that have connected again. */
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

bool server_is_client(const struct conn *c)
{
	return c->fd >= 0 || c->pidfd >= 0 || c->is_unwatched;
}

uint32_t server_clients(const struct server *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->conns; i++)
		n += server_is_client(&s->conn[i]);
	return n;
}

/* Returns the shorter of `wait`, where -1 means without an end, and the time
 * until an entry of the table has to be looked at, in milliseconds. */
static int conn_patience(const struct server *s, int wait)
{
	for (uint32_t i = 0; i < s->conns; i++) {
		const struct conn *c = &s->conn[i];

		if (c->is_waiting || c->is_unwatched)
			wait = sooner_of(wait, GREETING_RETRY_MS);
		else if (is_unseen(c))
			wait = sooner_of(wait, LOOK_MS);
		if (c->cm && cmserver_lacks_memory(c->cm))
			wait = sooner_of(wait, CMSERVER_MEMORY_MS);
	}
	return wait;
}

/* Returns how many milliseconds remain until a broker without clients ends. */
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

	if (s->idle_ms != SERVER_NEVER && !server_clients(s) &&
	    !cmserver_is_busy(s->cm))
		wait = until_idle(s, now);
	if (s->holds_port && gsi_fd(&s->gsi) < 0)
		wait = sooner_of(wait, CLAIM_MS);
	wait = conn_patience(s, sooner_of(wait, rest));
	wait = refuse_full_patience(&s->refuse_full, wait);
	wait = user_receiver_turn(&s->receivers, wait);
	return counter_tree_refresh(
		s, qp1_patience(s, unread_patience(s, now, wait)), now);
}

/* Sends what waits for c, and serves the messages of c.  False: the client is
 * gone. */
static bool serve_one(struct server *s, struct conn *c, const struct pollfd *p)
{
	if (p[CONN_OUT].revents & POLLOUT && c->cm && !c->is_ending &&
	    !cmserver_output(c->cm))
		return false;
	return !p[CONN_IN].revents || serve_client(s, c);
}

/* Ends entry i, whose process has ended.  If last messages of that process may
 * still come, closes only the pidfd. */
static void drop_process(struct server *s, uint32_t i)
{
	if (s->conn[i].is_ending)
		close_pidfd(&s->conn[i]);
	else
		drop_conn(s, i);
}

/* Serves n clients.  Client i has PER_CONN entries in p, which poll_conn has
 * filled. */
static void serve_all(struct server *s, const struct pollfd *p, uint32_t n)
{
	/* Deaths come first, so that the answers of this turn tell of them. */
	for (uint32_t i = 0; i < n; i++) {
		const struct pollfd *of = &p[PER_CONN * i];

		if (of[CONN_PROCESS].revents)
			end_process(s, &s->conn[i]);
		else if (of[CONN_IN].revents & POLLHUP)
			retire_client(s, &s->conn[i]);
		else if (of[CONN_OUT].revents & POLLHUP)
			finish_client(s, &s->conn[i]);
	}
	/* The loop begins at the end: when remove_conn moves the last entry,
	 * that entry has been served, or take_over added it in this turn. */
	for (uint32_t i = n; i-- > 0;) {
		const struct pollfd *of = &p[PER_CONN * i];

		if (of[CONN_PROCESS].revents)
			drop_process(s, i);
		else if (of[CONN_IN].revents & POLLHUP ||
			 (of[CONN_OUT].revents & POLLHUP &&
			  !s->conn[i].is_ending) ||
			 !serve_one(s, &s->conn[i], of))
			leave_conn(s, i);
	}
}

void server_drop_hung_up(struct server *s, uid_t user)
{
	struct pollfd p[CONN_MAX], room[CONN_MAX];
	uint32_t n = s->conns;

	if (s->has_swept && s->swept_for == user)
		return;
	s->has_swept = true;
	s->swept_for = user;
	for (uint32_t i = 0; i < n; i++) {
		const struct conn *c = &s->conn[i];

		p[i] = (struct pollfd){.fd = c->fd};
		if (c->is_over || c->is_ending)
			p[i].fd = -1;
	}
	poll_sparse_all(p, room, n, 0);
	for (uint32_t i = n; i-- > 0;) {
		struct conn *c = &s->conn[i];

		if (!(p[i].revents & POLLHUP))
			continue;
		finish_client(s, c);
		if (!c->is_ending)
			leave_conn(s, i);
	}
}

static bool may_accept(const struct server *s)
{
	return refuse_full_may_accept(&s->refuse_full) &&
	       user_receiver_may_accept(&s->receivers);
}

/* Notes that the listener accepts no more, if poll has found so.  After a
 * shutdown(2) accept4 fails with EAGAIN, as if no connection waited. */
static void check_listener(struct server *s, short revents)
{
	if (revents & POLLNVAL)
		s->listener_err = -EBADF;
	else if (revents & (POLLERR | POLLHUP | POLLRDHUP))
		s->listener_err = -ESHUTDOWN;
}

static void serve_ready(struct server *s, const struct pollfd *p, uint32_t n)
{
	if (p[2].revents)
		counter_files_looked(&s->counter_files, monotonic_ms());
	serve_all(s, p + FIXED, n);
	check_listener(s, p[0].revents);
	for (int i = 0; p[0].revents && i < BATCH; i++)
		if (!may_accept(s) || !admission_accept(s))
			break;
}

/* Sends frames before messages to clients: when a client is told of a MAD, that
 * MAD has been sent, unless more frames wait than one gsi_flush sends. */
static void send_all(struct server *s)
{
	gsi_flush(&s->gsi);
	for (uint32_t i = 0; i < s->conns; i++)
		if (s->conn[i].cm && cmserver_has_output(s->conn[i].cm))
			cmserver_output(s->conn[i].cm);
}

/* Fills the PER_CONN entries of c at p.  The connection of another user is
 * polled even without output, because it hangs up before in_fd does; but not
 * after is_ending or is_over was set. */
static void poll_conn(struct conn *c, struct pollfd *p)
{
	bool has_output = c->cm && cmserver_has_output(c->cm);
	bool waits_for_room = has_output && !cmserver_lacks_memory(c->cm);
	bool is_polled = (has_output || c->received) && !c->is_ending;

	p[CONN_IN] = (struct pollfd){c->in_fd, unread_poll(c), 0};
	p[CONN_PROCESS] = (struct pollfd){c->pidfd, POLLIN, 0};
	p[CONN_OUT] = (struct pollfd){is_polled ? c->fd : -1,
				      waits_for_room ? POLLOUT : 0, 0};
	if (c->is_over)
		p[CONN_IN].fd = p[CONN_OUT].fd = -1;
}

bool server_turn(struct server *s)
{
	struct pollfd *p = s->polled;
	uint32_t n = s->conns, clients = server_clients(s);
	/* poll_patience is called before may_accept.  Only the loop adds
	 * connections that a thread has to close.  So if may_accept returns
	 * false because of such connections, poll_patience has seen them, too,
	 * and has limited the wait.  Otherwise poll could wait without an end,
	 * and without the listener. */
	int ready, patience = poll_patience(s);

	s->has_swept = false;
	/* While may_accept returns false, for example because no descriptor is
	 * left, new connections wait at the listener. */
	p[0] = (struct pollfd){.fd = may_accept(s) ? s->listen_fd : -1,
			       .events = POLLIN | POLLRDHUP};
	p[1] = (struct pollfd){.fd = gsi_fd(&s->gsi), .events = POLLIN};
	p[2] = (struct pollfd){.fd = counter_files_fd(&s->counter_files),
			       .events = POLLIN};
	refuse_full_poll(&s->refuse_full, &p[3]);
	for (uint32_t i = 0; i < n; i++)
		poll_conn(&s->conn[i], &p[FIXED + PER_CONN * i]);
	ready = poll_sparse_all(p, s->room, FIXED + PER_CONN * (nfds_t)n,
				patience);
	greeting_retry(s);
	refuse_full_turn(&s->refuse_full, monotonic_ms());
	/*
	 * Timers run after the frames that have arrived, which were in time
	 * even if this process is late.  Timers run before the requests of
	 * clients: the messages for these requests leave at the end of the
	 * turn, and a timer that ran in between would take them for lost.
	 */
	if (ready > 0 && p[1].revents)
		gsi_turn(&s->gsi, monotonic_ns());
	cmserver_tick(s->cm, monotonic_ns());
	if (ready > 0)
		serve_ready(s, p, n);
	sweep_conns(s);
	look_at_processes(s);
	claim_port(s);
	remote_liveness_tick(s->remote_liveness, monotonic_ns());
	answer_remote_all(s, monotonic_ns());
	send_all(s);
	return !s->listener_err &&
	       (ready || clients || cmserver_is_busy(s->cm) ||
		monotonic_ms() - s->idle_since_ms < s->idle_ms);
}

int server_listener_err(const struct server *s)
{
	return s->listener_err;
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
	s->cm = cm_gsi_new(&s->gsi, &s->group.fd_store, monotonic_ns());
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
	/* If another program, for example systemd, has made the listener,
	 * clients may be able to send descriptors until this call. */
	scm_rights_let_bring(listen_fd, false);
	s->listen_fd = listen_fd;
	refuse_full_init(&s->refuse_full);
	user_receiver_init(&s->receivers, config->no_threads);
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
		*why = "the broker adverbd cannot open port 4791; run adverb "
		       "doctor";
	return false;
}

void server_free(struct server *s)
{
	gsi_close(&s->gsi);
	reuseport_group_close(&s->group);
	while (s->conns) {
		/* reuseport_group_close has released the class */
		s->conn[s->conns - 1].class = 0;
		s->conn[s->conns - 1].is_ending = false;
		end_client(s, &s->conn[s->conns - 1]);
		remove_conn(s, s->conns - 1);
	}
	user_receiver_end(&s->receivers);
	if (s->counter_files.tree_fd >= 0)
		sysfs_gc_own(s->counter_files.tree_fd);
	counter_files_close(&s->counter_files);
	free_agents(s);
	/* Drops the last frames of the agents: the socket of QP1 is closed. */
	gsi_flush(&s->gsi);
	close(s->listen_fd);
	refuse_full_close(&s->refuse_full);
	free(s);
}
