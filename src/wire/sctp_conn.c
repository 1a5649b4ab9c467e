/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/sctp_conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/bits.h"
#include "util/fd_identity.h"
#include "util/monotonic.h"
#include "util/scm_rights.h"

#define PPID_BYTES 4
#define OVERHEAD   80 /* bytes of a packet for the headers of its chunks */
#define ADAPTATION 1  /* the indication of DDP, RFC 5043 5.1 */
#define SPACE	   (256 << 10)	  /* bytes of each buffer of an association */
#define CLOSE_NS   10000000000ull /* how long SHUTDOWN may take */
#define BEGIN_NS   10000000000ull /* how long a caller's indication may take */
#define HALVES_MAX 128 /* associations of a listener that lack indications */
#define CHECK_NS   1000000ull /* how long sctp_conn_is_ours trusts a check */

struct sctp_process sctp_conn_all = {
	.sockets = {&sctp_conn_all.sockets, &sctp_conn_all.sockets},
	.conns = {&sctp_conn_all.conns, &sctp_conn_all.conns},
	.dirty = {&sctp_conn_all.dirty, &sctp_conn_all.dirty},
	.epoll_fd = -1,
	.wake_fd = -1};

/* The program may have opened a file of its own at the descriptor's number. */
bool sctp_conn_is_ours(int fd, uint64_t *checked_ns)
{
	uint64_t now = monotonic_ns();

	if (fd < 0)
		return false;
	if (*checked_ns && now - *checked_ns <= CHECK_NS)
		return true;
	*checked_ns = fd_identity_holds(fd) ? now : 0;
	return *checked_ns;
}

static uint32_t next_key(bool is_conn)
{
	do
		sctp_conn_all.last_key += 2;
	while (!sctp_conn_all.last_key ||
	       map_find(&sctp_conn_all.objects,
			sctp_conn_all.last_key | is_conn));
	return sctp_conn_all.last_key | is_conn;
}

int sctp_conn_watch(int fd, uint32_t events, uint32_t key)
{
	struct epoll_event e = {.events = events, .data.u32 = key};

	return epoll_ctl(sctp_conn_all.epoll_fd, EPOLL_CTL_ADD, fd, &e) ? -errno
									: 0;
}

/* ---- sockets ---- */

/* Removes the socket from the epoll set.  close(2) does not remove the socket
 * while another descriptor of it is open, as after sctp_unlisten, and the
 * thread would wake for packets that it does not read. */
static void unwatch_socket(const struct sctp_socket *s)
{
	if (fd_identity_holds(sctp_conn_all.epoll_fd) &&
	    fd_identity_holds(s->fd))
		epoll_ctl(sctp_conn_all.epoll_fd, EPOLL_CTL_DEL, s->fd, NULL);
}

void sctp_conn_release_socket(struct sctp_socket *s)
{
	if (--s->users)
		return;
	list_remove(&s->link);
	map_remove(&sctp_conn_all.objects, s->key);
	unwatch_socket(s);
	fd_identity_close(s->fd);
	free(s);
}

bool sctp_conn_is_same(const struct sockaddr_in6 *a,
		       const struct sockaddr_in6 *b)
{
	return a->sin6_port == b->sin6_port &&
	       IN6_ARE_ADDR_EQUAL(&a->sin6_addr, &b->sin6_addr);
}

struct sctp_socket *sctp_conn_find_socket(const struct sockaddr_in6 *at)
{
	list_for_each (n, &sctp_conn_all.sockets) {
		struct sctp_socket *s =
			CONTAINER_OF(n, struct sctp_socket, link);

		if (sctp_conn_is_same(&s->at, at))
			return s;
	}
	return NULL;
}

struct sctp_socket *sctp_conn_take_socket(int fd, const struct sockaddr_in6 *at)
{
	struct sctp_socket *s = sctp_conn_find_socket(at);

	if (s) {
		s->users++;
		fd_identity_close(fd);
		return s;
	}
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->key = next_key(false);
	if (map_add(&sctp_conn_all.objects, s->key, s) ||
	    sctp_conn_watch(fd, EPOLLIN, s->key)) {
		map_remove(&sctp_conn_all.objects, s->key);
		free(s);
		return NULL;
	}
	s->users = 1;
	fd_identity_mark(fd);
	s->fd = fd;
	s->is_raw = sctp_conn_all.options.is_raw;
	s->is_ipv4 = sctp_path_is_ipv4(fd);
	s->at = *at;
	list_push_tail(&sctp_conn_all.sockets, &s->link);
	return s;
}

/* ---- connections ---- */

struct list *sctp_conn_bucket(uint64_t id)
{
	return &sctp_conn_all.buckets[id % SCTP_CONN_BUCKETS];
}

void sctp_conn_touch(struct sctp_conn *c)
{
	if (!list_is_linked(&c->dirty))
		list_push_tail(&sctp_conn_all.dirty, &c->dirty);
}

static void on_upcall(struct socket *so, void *arg, int flags)
{
	sctp_conn_touch(arg);
}

struct sctp_conn *sctp_conn_new(enum sctp_conn_state state)
{
	struct sctp_conn *c = malloc(sizeof(*c));

	if (!c)
		return NULL;
	memset(c, 0, offsetof(struct sctp_conn, out));
	c->key = next_key(true);
	if (map_add(&sctp_conn_all.objects, c->key, c)) {
		free(c);
		return NULL;
	}
	list_init(&c->link);
	list_init(&c->by_id);
	list_init(&c->dirty);
	list_push_tail(&sctp_conn_all.conns, &c->link);
	c->state = state;
	c->fd = -1;
	c->deadline_ns = UINT64_MAX;
	return c;
}

/* Closes the socket.  Sends ABORT, unless the association has ended. */
static void abort_so(struct socket *so)
{
	struct linger now = {.l_onoff = 1, .l_linger = 0};

	sctp_conn_all.usr->set_upcall(so, NULL, NULL);
	sctp_conn_all.usr->setsockopt(so, SOL_SOCKET, SO_LINGER, &now,
				      sizeof(now));
	sctp_conn_all.usr->close(so);
}

/* Deregisters the address of the path, unless another connection has the same
 * path.  Two associations between the same two addresses have the same path if
 * no UDP ports tell them apart.  usrsctp does not count registrations, and
 * finds no association at an address that is not registered. */
static void drop_path(struct sctp_conn *c)
{
	uint64_t id = c->path.id;

	list_remove(&c->by_id);
	if (!id)
		return;
	list_for_each (n, sctp_conn_bucket(id))
		if (CONTAINER_OF(n, struct sctp_conn, by_id)->path.id == id)
			return;
	sctp_conn_all.usr->deregister_address((void *)(uintptr_t)id);
}

void sctp_conn_free(struct sctp_conn *c)
{
	if (c->so)
		abort_so(c->so);
	drop_path(c);
	list_remove(&c->link);
	list_remove(&c->dirty);
	map_remove(&sctp_conn_all.objects, c->key);
	fd_identity_close(c->fd);
	if (c->path.socket)
		sctp_conn_release_socket(c->path.socket);
	free(c);
}

void sctp_conn_forget_all(void)
{
	struct list *n;

	while ((n = list_pop_head(&sctp_conn_all.conns))) {
		struct sctp_conn *c = CONTAINER_OF(n, struct sctp_conn, link);

		c->so = NULL;
		c->path.id = 0;
		sctp_conn_free(c);
	}
}

void sctp_conn_set_path(struct sctp_conn *c, const struct sctp_path *p)
{
	c->path = *p;
	list_push_tail(sctp_conn_bucket(p->id), &c->by_id);
	sctp_conn_all.usr->register_address((void *)(uintptr_t)p->id);
}

int sctp_conn_make_ends(struct sctp_conn *c)
{
	struct stat end = {0};
	int ends[2], err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC,
		       0, ends))
		return -errno;
	ends[0] = fd_identity_note(ends[0]);
	err = sctp_conn_watch(
		ends[0], EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, c->key);
	if (err) {
		fd_identity_close(ends[0]);
		close(ends[1]);
		return err;
	}
	fstat(ends[1], &end);
	c->end = end.st_ino;
	c->fd = ends[0];
	return ends[1];
}

void sctp_conn_set_path_options(struct socket *so, uint32_t mtu)
{
	struct usrsctp_paddrparams path = {.heartbeat_ms = 2000,
					   .path_mtu = mtu,
					   .flags = USRSCTP_HEARTBEAT |
						    USRSCTP_FIXED_MTU};

	sctp_conn_all.usr->setsockopt(so, IPPROTO_SCTP,
				      USRSCTP_PEER_ADDR_PARAMS, &path,
				      sizeof(path));
}

static void want_event(struct socket *so, enum usrsctp_event_type type)
{
	struct usrsctp_event e = {.type = (uint16_t)type, .is_on = 1};

	sctp_conn_all.usr->setsockopt(so, IPPROTO_SCTP, USRSCTP_EVENT, &e,
				      sizeof(e));
}

static void set_options(struct socket *so)
{
	uint32_t indication = ADAPTATION;
	int on = 1, space = SPACE;
	struct usrsctp_initmsg init = {.streams_out = 1, .streams_in = 1};
	struct usrsctp_rtoinfo rto = {
		.initial_ms = 500, .max_ms = 2000, .min_ms = 50};
	struct usrsctp_sack_info sack = {.delay_ms = 20, .frequency = 2};

	sctp_conn_all.usr->set_non_blocking(so, 1);
	sctp_conn_all.usr->setsockopt(so, SOL_SOCKET, SO_SNDBUF, &space,
				      sizeof(space));
	sctp_conn_all.usr->setsockopt(so, SOL_SOCKET, SO_RCVBUF, &space,
				      sizeof(space));
	sctp_conn_all.usr->setsockopt(so, IPPROTO_SCTP, USRSCTP_NODELAY, &on,
				      sizeof(on));
	sctp_conn_all.usr->setsockopt(so, IPPROTO_SCTP, USRSCTP_RECVRCVINFO,
				      &on, sizeof(on));
	sctp_conn_all.usr->setsockopt(so, IPPROTO_SCTP, USRSCTP_INITMSG, &init,
				      sizeof(init));
	sctp_conn_all.usr->setsockopt(so, IPPROTO_SCTP, USRSCTP_RTOINFO, &rto,
				      sizeof(rto));
	sctp_conn_all.usr->setsockopt(so, IPPROTO_SCTP, USRSCTP_DELAYED_SACK,
				      &sack, sizeof(sack));
	sctp_conn_all.usr->setsockopt(so, IPPROTO_SCTP,
				      USRSCTP_ADAPTATION_LAYER, &indication,
				      sizeof(indication));
	want_event(so, USRSCTP_ASSOC_CHANGE);
	want_event(so, USRSCTP_SHUTDOWN_EVENT);
	want_event(so, USRSCTP_ADAPTATION_INDICATION);
}

int sctp_conn_make_so(struct sctp_conn *c, in_port_t port)
{
	struct usrsctp_address at = {.family = USRSCTP_AF_CONN, .port = port};

	c->so = sctp_conn_all.usr->socket(USRSCTP_AF_CONN, SOCK_STREAM,
					  IPPROTO_SCTP, NULL, NULL, 0, NULL);
	if (!c->so)
		return errno ? -errno : -ENOMEM;
	set_options(c->so);
	sctp_conn_all.usr->set_upcall(c->so, on_upcall, c);
	if (sctp_conn_all.usr->bind(c->so, (struct sockaddr *)&at, sizeof(at)))
		return -errno;
	c->port = port;
	return 0;
}

/* ---- news ---- */

static struct sockaddr_in6 address_of(const struct in6_addr *ip, in_port_t port)
{
	return (struct sockaddr_in6){
		.sin6_family = AF_INET6, .sin6_addr = *ip, .sin6_port = port};
}

static struct sctp_news news_of(const struct sctp_conn *c, int err)
{
	struct sctp_news news = {
		.err = err,
		.segment_bytes = sctp_path_mtu(&c->path) - OVERHEAD,
		.local = address_of(&c->path.local, c->port),
		.remote = address_of(&c->path.remote.sin6_addr, c->peer_port),
	};

	news.remote.sin6_scope_id = c->path.remote.sin6_scope_id;
	return news;
}

void sctp_conn_end(struct sctp_conn *c, int err)
{
	struct sctp_news news;

	if (!c->is_called && c->state < SCTP_CONN_OPEN &&
	    sctp_conn_is_ours(c->fd, &c->checked_ns)) {
		news = news_of(c, err);
		send(c->fd, &news, sizeof(news), MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	sctp_conn_free(c);
}

/* Makes the socketpair of a connection, and sends one end of the socketpair to
 * the owner of the connection's listener.  False: that failed, and the
 * connection is freed. */
static bool hand_over(struct sctp_conn *c)
{
	struct sctp_conn *l = map_find(&sctp_conn_all.objects, c->listener);
	struct sctp_news news = news_of(c, 0);
	int end = l && sctp_conn_is_ours(l->fd, &l->checked_ns)
			  ? sctp_conn_make_ends(c)
			  : -1;
	bool is_sent;

	if (end < 0) {
		sctp_conn_free(c);
		return false;
	}
	/* EAGAIN: the listener's socketpair has no room for one more connection
	 * that waits for the owner. */
	is_sent = scm_rights_send(l->fd, &news, sizeof(news), &end, 1,
				  MSG_DONTWAIT) >= 0;
	close(end);
	if (!is_sent)
		sctp_conn_free(c);
	return is_sent;
}

/* Opens the connection of a peer that has announced DDP, and sends the owner a
 * struct sctp_news.  False: that failed, and the connection is freed. */
static bool open_conn(struct sctp_conn *c)
{
	struct sctp_news news;

	c->state = SCTP_CONN_OPEN;
	c->deadline_ns = UINT64_MAX;
	c->has_bytes = true;
	if (c->is_called)
		return hand_over(c);
	news = news_of(c, 0);
	if (sctp_conn_is_ours(c->fd, &c->checked_ns) &&
	    send(c->fd, &news, sizeof(news), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		return true;
	sctp_conn_free(c);
	return false;
}

void sctp_conn_close(struct sctp_conn *c)
{
	if (c->state == SCTP_CONN_CLOSING)
		return;
	c->state = SCTP_CONN_CLOSING;
	c->deadline_ns = monotonic_ns() + CLOSE_NS;
	sctp_conn_all.usr->shutdown(c->so, SHUT_WR);
}

/* Called when the peer has shut the association down.  SCTP has no half-closed
 * state, so the owner's descriptor reports the end of the stream at once.  The
 * library completes the shutdown. */
static void hang_up(struct sctp_conn *c)
{
	sctp_conn_close(c);
	fd_identity_close(c->fd);
	c->fd = -1;
}

/* ---- from the peer to the owner ---- */

static int error_of(const struct sctp_conn *c)
{
	int err = 0;
	socklen_t size = sizeof(err);

	if (sctp_conn_all.usr->getsockopt(c->so, SOL_SOCKET, SO_ERROR, &err,
					  &size) ||
	    !err)
		err = ETIMEDOUT;
	return err;
}

/* False: the connection is freed. */
static bool take_change(struct sctp_conn *c,
			const struct usrsctp_assoc_change *e)
{
	switch (e->state) {
	case USRSCTP_COMM_UP:
		if (c->state == SCTP_CONN_CALLING)
			c->state = SCTP_CONN_UP;
		sctp_conn_set_path_options(c->so, sctp_path_mtu(&c->path));
		return true;
	case USRSCTP_CANT_START:
		sctp_conn_end(c, e->error ? ECONNREFUSED : error_of(c));
		return false;
	default: /* lost, shut down, or restarted by the peer */
		sctp_conn_end(c, ECONNRESET);
		return false;
	}
}

/* False: the connection is freed. */
static bool take_notification(struct sctp_conn *c, size_t n)
{
	union {
		uint16_t type;
		struct usrsctp_assoc_change change;
		struct usrsctp_adaptation adaptation;
	} e = {.type = 0};

	memcpy(&e, c->in + PPID_BYTES, bits_min_u64(n, sizeof(e)));
	if (e.type == USRSCTP_ASSOC_CHANGE)
		return take_change(c, &e.change);
	if (e.type == USRSCTP_SHUTDOWN_EVENT && c->state < SCTP_CONN_OPEN) {
		sctp_conn_end(c, ECONNRESET);
		return false;
	}
	if (e.type != USRSCTP_ADAPTATION_INDICATION || c->state != SCTP_CONN_UP)
		return true;
	if (e.adaptation.indication == ADAPTATION)
		return open_conn(c);
	sctp_conn_end(c, EPROTO);
	return false;
}

/* Sends the owner the message of `in`.  False: the socketpair is full; or the
 * kernel has no memory for the message (ENOBUFS), and sctp_conn_tick tries
 * again, because no event of the socketpair reports that memory is free. */
static bool pass_in(struct sctp_conn *c)
{
	ssize_t n = -1;

	if (sctp_conn_is_ours(c->fd, &c->checked_ns))
		n = send(c->fd, c->in, c->in_bytes,
			 MSG_DONTWAIT | MSG_NOSIGNAL);
	else
		errno = EBADF;
	if (n < 0 && (errno == EAGAIN || errno == ENOBUFS)) {
		c->is_full = errno == EAGAIN;
		return false;
	}
	/* After another error the owner has closed its end, or the program has
	 * closed fd: the message is dropped. */
	c->in_bytes = 0;
	return true;
}

/* Takes the next message or notification from the library.  1: there may be
 * more; 0: there is no more now; -1: the connection is freed. */
static int receive_one(struct sctp_conn *c)
{
	union usrsctp_peer from;
	struct usrsctp_rcvinfo info = {.ppid = 0};
	socklen_t from_size = sizeof(from), info_size = sizeof(info);
	unsigned int type = 0;
	int flags = MSG_DONTWAIT;
	ssize_t n = sctp_conn_all.usr->recvv(
		c->so, c->in + PPID_BYTES, sizeof(c->in) - PPID_BYTES,
		(struct sockaddr *)&from, &from_size, &info, &info_size, &type,
		&flags);

	if (n < 0 &&
	    (errno == EAGAIN || errno == EINPROGRESS || errno == ENOTCONN))
		return 0;
	if (!n && c->state >= SCTP_CONN_OPEN) {
		hang_up(c);
		return 0;
	}
	if (n <= 0) {
		sctp_conn_end(c, n < 0 ? errno : ECONNRESET);
		return -1;
	}
	if (flags & USRSCTP_NOTIFICATION)
		return take_notification(c, (size_t)n) ? 1 : -1;
	/* A message of a session (RFC 5043) fits in `in`, and comes after the
	 * indication. */
	if (!(flags & MSG_EOR) || c->state < SCTP_CONN_OPEN) {
		sctp_conn_end(c, EPROTO);
		return -1;
	}
	memcpy(c->in, &info.ppid, PPID_BYTES);
	c->in_bytes = (uint32_t)n + PPID_BYTES;
	return 1;
}

/* False: the connection is freed. */
static bool serve_in(struct sctp_conn *c)
{
	int got = 1;

	for (int i = 0; i < SCTP_CONN_TURN && got > 0; i++) {
		if (c->in_bytes && (c->is_full || !pass_in(c)))
			return true;
		got = receive_one(c);
	}
	if (got > 0)
		sctp_conn_touch(c); /* the rest comes in the next turn */
	return got >= 0;
}

/* ---- from the owner to the peer ---- */

/* Reads the owner's next message into `out`.  False: there is no message, or
 * the message has no bytes after the PPID and is dropped. */
static bool read_out(struct sctp_conn *c)
{
	ssize_t n;

	if (!sctp_conn_is_ours(c->fd, &c->checked_ns)) {
		sctp_conn_close(c);
		return false;
	}
	n = recv(c->fd, c->out, sizeof(c->out), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		c->has_bytes = errno == EINTR;
		return false;
	}
	c->has_bytes = n > 0;
	if (n <= 0)
		sctp_conn_close(c);
	c->out_bytes = n > 0 ? (uint32_t)n : 0;
	return n > PPID_BYTES;
}

/* Gives the message of `out` to the library.  False: the library cannot take it
 * now, or the association is ending.  While it is ending, the peer's messages
 * are still read. */
static bool send_one(struct sctp_conn *c)
{
	struct usrsctp_sndinfo info = {.flags = USRSCTP_UNORDERED};
	ssize_t n;

	memcpy(&info.ppid, c->out, PPID_BYTES);
	n = sctp_conn_all.usr->sendv(
		c->so, c->out + PPID_BYTES, c->out_bytes - PPID_BYTES, NULL, 0,
		&info, sizeof(info), USRSCTP_WITH_SNDINFO, MSG_DONTWAIT);
	if (n >= 0) {
		c->out_bytes = 0;
		c->deadline_ns = UINT64_MAX;
		return true;
	}
	c->is_waiting = errno == EAGAIN || errno == ENOBUFS;
	if (!c->is_waiting)
		sctp_conn_close(c);
	return false;
}

static void serve_out(struct sctp_conn *c)
{
	int i = 0;

	c->is_waiting = false;
	while (c->state == SCTP_CONN_OPEN && i++ < SCTP_CONN_TURN)
		if (c->out_bytes <= PPID_BYTES && !read_out(c))
			break;
		else if (!send_one(c))
			break;
	if (c->state == SCTP_CONN_OPEN && c->has_bytes && !c->is_waiting)
		sctp_conn_touch(c);
	/* read_out, which would find that the owner has closed its end, is not
	 * called while a message waits. */
	if (c->is_waiting && c->has_left && c->deadline_ns == UINT64_MAX)
		c->deadline_ns = monotonic_ns() + CLOSE_NS;
}

/* ---- turns ---- */

/* If HALVES_MAX associations of the listener still lack the peer's indication,
 * aborts the oldest of them, so that a flood of callers cannot use up memory.
 */
static void make_room(const struct sctp_conn *l)
{
	struct sctp_conn *oldest = NULL;
	int count = 0;

	list_for_each (n, &sctp_conn_all.conns) {
		struct sctp_conn *c = CONTAINER_OF(n, struct sctp_conn, link);

		if (!c->is_called || c->state >= SCTP_CONN_OPEN ||
		    c->listener != l->key)
			continue;
		if (!oldest)
			oldest = c;
		count++;
	}
	if (count >= HALVES_MAX)
		sctp_conn_free(oldest);
}

/* Accepts the associations that peers have made with the listener.  The library
 * makes an association while it processes a packet of the peer, so the
 * association has the path `current` of that packet.  An association with the
 * id of another path is aborted, because that path is not known here. */
static void accept_all(struct sctp_conn *l)
{
	struct usrsctp_address from;
	socklen_t size = sizeof(from);
	struct socket *so;
	struct sctp_conn *c;

	if (!sctp_conn_is_ours(l->fd, &l->checked_ns)) {
		sctp_conn_free(l);
		return;
	}
	while ((so = sctp_conn_all.usr->accept(l->so, (struct sockaddr *)&from,
					       &size))) {
		make_room(l);
		c = NULL;
		if (sctp_conn_all.current &&
		    from.id == (void *)(uintptr_t)sctp_conn_all.current->id)
			c = sctp_conn_new(SCTP_CONN_CALLING);
		size = sizeof(from);
		if (!c) {
			abort_so(so);
			continue;
		}
		c->so = so;
		c->is_called = true;
		c->listener = l->key;
		c->deadline_ns = monotonic_ns() + BEGIN_NS;
		c->port = l->port;
		c->peer_port = from.port;
		sctp_conn_set_path(c, sctp_conn_all.current);
		sctp_conn_all.current->socket->users++;
		sctp_conn_all.usr->set_non_blocking(so, 1);
		sctp_conn_all.usr->set_upcall(so, on_upcall, c);
		sctp_conn_touch(c);
	}
}

static void serve_conn(struct sctp_conn *c)
{
	if (c->state == SCTP_CONN_LISTENING)
		accept_all(c);
	else if (serve_in(c))
		serve_out(c);
}

void sctp_conn_serve_all(void)
{
	struct list now = {&now, &now}, *n;

	list_take_all(&now, &sctp_conn_all.dirty);
	while ((n = list_pop_head(&now)))
		serve_conn(CONTAINER_OF(n, struct sctp_conn, dirty));
}

/* Does the library still have the association? */
static bool is_alive(const struct sctp_conn *c)
{
	struct usrsctp_status s;
	socklen_t size = sizeof(s);

	return !sctp_conn_all.usr->getsockopt(c->so, IPPROTO_SCTP,
					      USRSCTP_STATUS, &s, &size);
}

void sctp_conn_tick(struct sctp_conn *c, uint64_t now_ns)
{
	if (c->deadline_ns <= now_ns ||
	    (c->state == SCTP_CONN_CLOSING && !is_alive(c)))
		sctp_conn_free(c);
	else if (c->in_bytes && !c->is_full)
		sctp_conn_touch(c);
}
