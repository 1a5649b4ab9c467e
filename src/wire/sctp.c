/* SPDX-License-Identifier: BSD-2-Clause */
/* The thread of the associations, and the functions that their owners call. */
#include "wire/sctp.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "util/bits.h"
#include "util/fd_identity.h"
#include "util/monotonic.h"
#include "util/random.h"
#include "util/scm_rights.h"
#include "wire/sctp_conn.h"

#define HEAD	    12	/* bytes of a packet of SCTP before its chunks */
#define BUSY_MS	    10	/* period of the library's timers while busy */
#define IDLE_MS	    100 /* their period otherwise */
#define BUSY_NS	    1000000000ull /* busy: this long after busy_ns */
#define DRAIN_STEPS 200		  /* the most waits for acknowledgements */
#define DRAIN_NS    10000000	  /* the length of one such wait */
#define PORTS_FROM  0xc000	  /* the first dynamic port */
#define PORTS	    0x4000	  /* dynamic ports */

/* A raw socket, or a socket at the UDP port of all services (options.udp_port),
 * that was returned by sctp_bind or sctp_unlisten.  Its owner may close the
 * descriptor at any time. */
struct bound {
	struct list link; /* in `bounds` */
	int fd;
	ino_t file;		/* the inode number of the socket */
	struct sockaddr_in6 at; /* its address and UDP port (0: raw socket) */
	in_port_t port;		/* the port of SCTP, in network order */
};

static struct list bounds = {&bounds, &bounds};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t thread_number; /* a thread with another number ends */
static uint64_t ticked_ns;     /* until when the library's timers have run */

static void wake_thread(void)
{
	uint64_t one = 1;

	if (fd_identity_holds(sctp_conn_all.wake_fd) &&
	    write(sctp_conn_all.wake_fd, &one, sizeof(one)) < 0)
		errno = 0; /* the eventfd is full, so the thread is awake */
}

/* ---- packets ---- */

/* Passes a packet to the capture of the options, if there is one. */
static void show_packet(const struct sctp_path *p, bool is_sent,
			const void *packet, size_t n)
{
	struct sockaddr_in6 own = p->socket->at;

	if (!sctp_conn_all.options.capture)
		return;
	own.sin6_addr = p->local;
	if (is_sent)
		sctp_conn_all.options.capture(&own, &p->remote, packet, n);
	else
		sctp_conn_all.options.capture(&p->remote, &own, packet, n);
}

static int send_packet(void *id, void *packet, size_t n, uint8_t tos,
		       uint8_t set_df)
{
	uint64_t number = (uint64_t)(uintptr_t)id;
	const struct sctp_path *p = NULL;
	const uint8_t *bytes = packet;

	list_for_each (at, sctp_conn_bucket(number)) {
		struct sctp_conn *c = CONTAINER_OF(at, struct sctp_conn, by_id);

		if (c->path.id != number)
			continue;
		p = &c->path;
		if (n >= HEAD && !memcmp(bytes, &c->port, 2) &&
		    !memcmp(bytes + 2, &c->peer_port, 2))
			memcpy(&c->tag, bytes + 4, sizeof(c->tag));
	}
	if (!p && sctp_conn_all.current && sctp_conn_all.current->id == number)
		p = sctp_conn_all.current;
	if (p && sctp_conn_is_ours(p->socket->fd, &p->socket->checked_ns) &&
	    sctp_path_send(p, packet, n))
		show_packet(p, true, packet, n);
	sctp_conn_all.busy_ns = monotonic_ns();
	return 0;
}

/* Does a connection of the socket have the packet's SCTP port?  A raw socket
 * also receives the packets of other processes, and those of another raw socket
 * of this process if this or the other socket is bound to all addresses. */
static bool has_port(const struct sctp_socket *s, const uint8_t *packet)
{
	list_for_each (n, &sctp_conn_all.conns) {
		const struct sctp_conn *c =
			CONTAINER_OF(n, struct sctp_conn, link);

		if (c->path.socket == s && !memcmp(packet + 2, &c->port, 2))
			return true;
	}
	return false;
}

static void take_packets(struct sctp_socket *s)
{
	static uint8_t packet[1 << 16];
	struct sctp_path path;
	ssize_t n;

	for (int i = 0; i < SCTP_CONN_TURN; i++) {
		n = sctp_path_receive(s, packet, sizeof(packet), &path);
		if (n < 0)
			return;
		if (n <= HEAD || (s->is_raw && !has_port(s, packet)))
			continue;
		show_packet(&path, false, packet, (size_t)n);
		sctp_conn_all.current = &path;
		sctp_conn_all.usr->conninput((void *)(uintptr_t)path.id, packet,
					     (size_t)n, 0);
		sctp_conn_serve_all();
		sctp_conn_all.current = NULL;
	}
}

/* An ICMP error says that the peer's UDP port has no socket.  Ends the
 * association whose packet the error quotes (RFC 6951 5.5). */
static void take_refusal(const struct sctp_path *p, const uint8_t *packet)
{
	list_for_each_safe (n, &sctp_conn_all.conns) {
		struct sctp_conn *c = CONTAINER_OF(n, struct sctp_conn, link);

		if (c->state != SCTP_CONN_LISTENING &&
		    c->path.socket == p->socket &&
		    sctp_conn_is_same(&c->path.remote, &p->remote) &&
		    !memcmp(packet, &c->port, 2) &&
		    !memcmp(packet + 2, &c->peer_port, 2) &&
		    !memcmp(packet + 4, &c->tag, sizeof(c->tag)))
			sctp_conn_end(c, ECONNREFUSED);
	}
}

static void take_errors(struct sctp_socket *s)
{
	uint8_t packet[512];
	struct sctp_path path;
	ssize_t n;

	s->users++; /* the loop may end the connections that use s */
	for (int i = 0; i < SCTP_CONN_TURN; i++) {
		n = sctp_path_refused(s, packet, sizeof(packet), &path);
		if (n < 0)
			break;
		if (n >= HEAD)
			take_refusal(&path, packet);
	}
	sctp_conn_release_socket(s);
}

static void take_event(const struct epoll_event *e)
{
	void *object = map_find(&sctp_conn_all.objects, e->data.u32);
	uint64_t tokens;

	if (!e->data.u32 && fd_identity_holds(sctp_conn_all.wake_fd) &&
	    read(sctp_conn_all.wake_fd, &tokens, sizeof(tokens)) < 0)
		errno = 0;
	if (object && e->data.u32 & 1) {
		struct sctp_conn *c = object;

		c->has_bytes |= (e->events & ~(uint32_t)EPOLLOUT) != 0;
		c->has_left |= (e->events & (EPOLLHUP | EPOLLRDHUP)) != 0;
		if (e->events & EPOLLOUT)
			c->is_full = false;
		/* the owner has closed the descriptor of a listener, or of a
		 * connection that is not open yet */
		if (c->state < SCTP_CONN_OPEN &&
		    e->events & (EPOLLHUP | EPOLLRDHUP))
			sctp_conn_free(c);
		else
			sctp_conn_touch(c);
	} else if (object) {
		struct sctp_socket *s = object;

		s->users++;
		if (e->events & EPOLLERR)
			take_errors(s);
		if (sctp_conn_is_ours(s->fd, &s->checked_ns))
			take_packets(s);
		sctp_conn_release_socket(s);
	}
}

static void run_time(void)
{
	uint64_t now = monotonic_ns(), ms = (now - ticked_ns) / 1000000u;

	if (ms < BUSY_MS)
		return;
	ticked_ns += ms * 1000000u;
	sctp_conn_all.usr->handle_timers((uint32_t)bits_min_u64(ms, 60000));
	list_for_each_safe (n, &sctp_conn_all.conns)
		sctp_conn_tick(CONTAINER_OF(n, struct sctp_conn, link), now);
}

/* Returns the timeout of epoll_wait in ms; -1: no timer runs. */
static int wait_ms(void)
{
	if (!list_is_empty(&sctp_conn_all.dirty))
		return 0;
	list_for_each (n, &sctp_conn_all.conns)
		if (CONTAINER_OF(n, struct sctp_conn, link)->state !=
		    SCTP_CONN_LISTENING)
			return monotonic_ns() - sctp_conn_all.busy_ns < BUSY_NS
				       ? BUSY_MS
				       : IDLE_MS;
	return -1;
}

static void *run_thread(void *number)
{
	struct epoll_event events[SCTP_CONN_TURN];
	int n, ms, fd;

	pthread_mutex_lock(&lock);
	while ((uint32_t)(uintptr_t)number == thread_number &&
	       fd_identity_holds(sctp_conn_all.epoll_fd)) {
		fd = sctp_conn_all.epoll_fd;
		ms = wait_ms();
		pthread_mutex_unlock(&lock);
		n = epoll_wait(fd, events, SCTP_CONN_TURN, ms);
		pthread_mutex_lock(&lock);
		/* The timers run before the events are taken, so that a timer
		 * which an event starts does not count the time that epoll_wait
		 * took. */
		run_time();
		for (int i = 0; i < n; i++)
			take_event(&events[i]);
		sctp_conn_serve_all();
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* ---- sockets that are only bound ---- */

static void free_bound(struct bound *b)
{
	list_remove(&b->link);
	free(b);
}

/* Returns the inode number of a file; 0: the descriptor is closed. */
static ino_t file_of(int fd)
{
	struct stat s;

	return fstat(fd, &s) ? 0 : s.st_ino;
}

/* Forgets the descriptor, which now belongs to a connection or a listener, or
 * is the number of a new socket. */
static void forget_bound(int fd)
{
	list_for_each_safe (n, &bounds) {
		struct bound *b = CONTAINER_OF(n, struct bound, link);

		if (b->fd == fd)
			free_bound(b);
	}
}

static void forget_all_bound(void)
{
	struct list *n;

	while ((n = list_pop_head(&bounds)))
		free(CONTAINER_OF(n, struct bound, link));
}

/* Notes that fd is bound to `at`, with this port of SCTP, and is not passed to
 * sctp_listen or sctp_connect yet.  A socket with a UDP port of its own is not
 * noted, since the kernel knows the port.  If memory is short, fd is not noted
 * either: then a later bind to the UDP port of all services fails, and a later
 * bind directly over IP may get the same port. */
static void note_bound(int fd, const struct sockaddr_in6 *at, in_port_t port)
{
	struct bound *b = NULL;

	forget_bound(fd);
	if (sctp_conn_all.options.is_raw ||
	    (sctp_conn_all.options.udp_port && at->sin6_port))
		b = calloc(1, sizeof(*b));
	if (!b)
		return;
	*b = (struct bound){
		.fd = fd, .file = file_of(fd), .at = *at, .port = port};
	list_push_tail(&bounds, &b->link);
}

/* Returns a socket at this address; NULL: there is none.  *has_port: a socket
 * at this address has this port of SCTP.  Forgets the sockets that their owners
 * have closed. */
static struct bound *find_bound(const struct sockaddr_in6 *at, in_port_t port,
				bool *has_port)
{
	struct bound *found = NULL;

	*has_port = false;
	list_for_each_safe (n, &bounds) {
		struct bound *b = CONTAINER_OF(n, struct bound, link);

		if (!b->file || file_of(b->fd) != b->file) {
			free_bound(b);
		} else if (sctp_conn_is_same(&b->at, at)) {
			found = b;
			*has_port |= b->port == port;
		}
	}
	return found;
}

/* ---- the start, and forks ---- */

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&lock);
}

/* The child has no thread, and the associations stay with its parent. */
static void in_child(void)
{
	pthread_mutex_unlock(&lock);
	list_for_each (at, &sctp_conn_all.sockets) {
		struct sctp_socket *s =
			CONTAINER_OF(at, struct sctp_socket, link);

		fd_identity_close(s->fd);
		s->fd = -1;
	}
	/* The child does not share its parent's sockets. */
	forget_all_bound();
	fd_identity_close(sctp_conn_all.epoll_fd);
	fd_identity_close(sctp_conn_all.wake_fd);
	sctp_conn_all.epoll_fd = sctp_conn_all.wake_fd = -1;
	thread_number++;
	sctp_conn_forget_all();
	usrsctp_forget();
	sctp_conn_all.usr = NULL;
}

/* A constructor registers the handlers, before other threads exist: a fork that
 * is in progress skips a handler that another thread registers. */
__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(before_fork, after_fork, in_child);
}

static int create_thread(void)
{
	sigset_t all, before;
	pthread_t thread;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&thread, NULL, run_thread,
			     (void *)(uintptr_t)++thread_number);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err)
		return -err;
	pthread_setname_np(thread, "adverb-sctp");
	pthread_detach(thread);
	return 0;
}

static int start_thread(void)
{
	int err;

	sctp_conn_all.epoll_fd = fd_identity_note(epoll_create1(EPOLL_CLOEXEC));
	sctp_conn_all.wake_fd =
		fd_identity_note(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
	err = sctp_conn_all.epoll_fd < 0 || sctp_conn_all.wake_fd < 0
		      ? -errno
		      : sctp_conn_watch(sctp_conn_all.wake_fd, EPOLLIN, 0);
	if (!err)
		err = create_thread();
	if (!err)
		return 0;
	fd_identity_close(sctp_conn_all.epoll_fd);
	fd_identity_close(sctp_conn_all.wake_fd);
	sctp_conn_all.epoll_fd = sctp_conn_all.wake_fd = -1;
	return err;
}

/* Called by sctp_start while the library is not loaded.  A child of fork loads
 * it again (in_child). */
static int begin_library(const struct sctp_options *o, const char **why)
{
	static bool is_drained_at_exit;

	*why = "the kernel gives no random numbers, which associations need; "
	       "allow getrandom(2) in the sandbox";
	if (!sctp_path_begin())
		return -EIO;
	sctp_conn_all.usr = usrsctp_load(send_packet, why);
	if (!sctp_conn_all.usr)
		return -ELIBACC;
	for (int i = 0; i < SCTP_CONN_BUCKETS; i++)
		list_init(&sctp_conn_all.buckets[i]);
	sctp_conn_all.options = *o;
	ticked_ns = monotonic_ns();
	if (!is_drained_at_exit)
		is_drained_at_exit = !atexit(sctp_drain);
	return 0;
}

int sctp_start(const struct sctp_options *o, const char **why)
{
	int err = 0;

	pthread_mutex_lock(&lock);
	if (!sctp_conn_all.usr)
		err = begin_library(o, why);
	if (!err && !fd_identity_holds(sctp_conn_all.epoll_fd)) {
		*why = "a thread or a descriptor for SCTP cannot be made; "
		       "raise the limits on processes and open files (ulimit "
		       "-u, -n)";
		err = start_thread();
	}
	pthread_mutex_unlock(&lock);
	return err;
}

/* ---- the owners' calls ---- */

/* Returns the address of the UDP or raw socket that carries the SCTP port of
 * `at`. */
static struct sockaddr_in6 carrier_of(const struct sockaddr_in6 *at)
{
	struct sockaddr_in6 carrier = *at;

	if (sctp_conn_all.options.is_raw)
		carrier.sin6_port = 0;
	else if (sctp_conn_all.options.udp_port && at->sin6_port)
		carrier.sin6_port = htons(sctp_conn_all.options.udp_port);
	return carrier;
}

static bool is_listening(const struct sctp_socket *s, in_port_t port)
{
	list_for_each (n, &sctp_conn_all.conns) {
		const struct sctp_conn *c =
			CONTAINER_OF(n, struct sctp_conn, link);

		if (c->state == SCTP_CONN_LISTENING && c->path.socket == s &&
		    c->port == port)
			return true;
	}
	return false;
}

/* Duplicates the descriptor of a socket of this process, to a number that is no
 * standard descriptor's.  @file: the socket's inode number; 0: any.  Returns a
 * descriptor; -EADDRINUSE: `of` is no longer that socket; or another -errno. */
static int share_socket(int of, ino_t file)
{
	int fd = fcntl(of, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

	if (fd < 0)
		return -errno;
	if (!file || file_of(fd) == file)
		return fd;
	close(fd); /* the owner has closed the socket just now */
	return -EADDRINUSE;
}

/* Duplicates the descriptor of s, which the program may have closed: -EBADF. */
static int share_used(const struct sctp_socket *s)
{
	return fd_identity_holds(s->fd) ? share_socket(s->fd, 0) : -EBADF;
}

/* Opens a socket.  If a listener or a connection uses a socket at this address
 * of UDP, or a socket there is only bound, shares that socket instead.  Returns
 * a descriptor; -EADDRINUSE: a bound socket or a listener there has this port
 * of SCTP; -EBADF: the program has closed the socket; or another -errno. */
static int open_socket(struct sockaddr_in6 *carrier, in_port_t port,
		       bool is_v6_only)
{
	struct sctp_socket *s =
		carrier->sin6_port ? sctp_conn_find_socket(carrier) : NULL;
	bool has_port;
	struct bound *b = find_bound(carrier, port, &has_port);

	if (has_port || (s && is_listening(s, port)))
		return -EADDRINUSE;
	if (s)
		return share_used(s);
	if (b && carrier->sin6_port)
		return share_socket(b->fd, b->file);
	return sctp_path_open(carrier, is_v6_only,
			      sctp_conn_all.options.is_raw);
}

/* Returns whether a connection, a listener or a bound socket of this process
 * has the port, at any address: libusrsctp gives a port to one socket. */
static bool has_owner(in_port_t port)
{
	list_for_each (n, &bounds)
		if (CONTAINER_OF(n, struct bound, link)->port == port)
			return true;
	list_for_each (n, &sctp_conn_all.conns)
		if (CONTAINER_OF(n, struct sctp_conn, link)->port == port)
			return true;
	return false;
}

/* Returns a dynamic port that is free in this process, or 0.  The kernel gives
 * raw sockets no port. */
static in_port_t choose_port(void)
{
	uint16_t first = 0;

	if (!random_fill(&first, sizeof(first), false))
		return 0;
	for (uint32_t k = 0; k < PORTS; k++) {
		in_port_t port =
			htons((uint16_t)(PORTS_FROM | (first + k) % PORTS));

		if (!has_owner(port))
			return port;
	}
	return 0;
}

int sctp_bind(struct sockaddr_in6 *at, bool is_v6_only)
{
	struct sockaddr_in6 carrier = carrier_of(at);
	in_port_t port = at->sin6_port;
	int fd;

	pthread_mutex_lock(&lock);
	fd = fd_identity_note(open_socket(&carrier, port, is_v6_only));
	/* after open_socket, which forgets bound sockets that are closed */
	if (fd >= 0 && !port && sctp_conn_all.options.is_raw) {
		port = choose_port();
		if (!port) {
			fd_identity_close(fd);
			fd = -EADDRINUSE;
		}
	}
	if (fd >= 0 && port)
		note_bound(fd, &carrier, port);
	pthread_mutex_unlock(&lock);
	if (fd >= 0)
		at->sin6_port = port ? port : carrier.sin6_port;
	return fd;
}

/* Returns a new connection or listener that owns the socket fd; NULL: it cannot
 * be made, and fd is closed. */
static struct sctp_conn *begin_conn(enum sctp_conn_state state, int fd)
{
	struct sockaddr_in6 at;
	struct sctp_socket *s = NULL;
	struct sctp_conn *c;

	forget_bound(fd);
	/* usr is NULL in a child of fork that has not called sctp_start */
	if (sctp_conn_all.usr && sctp_path_address(fd, &at))
		s = sctp_conn_take_socket(fd, &at);
	if (!s) {
		fd_identity_close(fd);
		return NULL;
	}
	c = sctp_conn_new(state);
	if (!c) {
		sctp_conn_release_socket(s);
		return NULL;
	}
	c->path.socket = s;
	return c;
}

/* Returns the owner's end of the socketpair.  If `err` is a -errno, or the
 * socketpair cannot be made, frees the connection and returns the -errno. */
static int finish_begin(struct sctp_conn *c, int err)
{
	int end = err ? err : sctp_conn_make_ends(c);

	if (end < 0)
		sctp_conn_free(c);
	else
		wake_thread(); /* so that wait_ms counts the connection */
	return end;
}

int sctp_listen(int fd, const struct sockaddr_in6 *at, int backlog)
{
	struct sctp_conn *c;
	int end = -ENOMEM;

	pthread_mutex_lock(&lock);
	c = begin_conn(SCTP_CONN_LISTENING, fd);
	if (c) {
		int err = sctp_conn_make_so(c, at->sin6_port);

		if (!err && sctp_conn_all.usr->listen(c->so, backlog))
			err = -errno;
		end = finish_begin(c, err);
	}
	pthread_mutex_unlock(&lock);
	return end;
}

/* Returns the listener whose owner has the descriptor; NULL: there is none. */
static struct sctp_conn *listener_of(int fd)
{
	struct stat end;

	if (fstat(fd, &end))
		return NULL;
	list_for_each (n, &sctp_conn_all.conns) {
		struct sctp_conn *c = CONTAINER_OF(n, struct sctp_conn, link);

		if (c->state == SCTP_CONN_LISTENING && c->end == end.st_ino)
			return c;
	}
	return NULL;
}

int sctp_unlisten(int listener)
{
	struct sctp_conn *c;
	int fd = -EBADF;

	pthread_mutex_lock(&lock);
	c = listener_of(listener);
	close(listener); /* first, so that its number is free for fd */
	if (c)
		fd = share_used(c->path.socket);
	if (fd >= 0)
		note_bound(fd, &c->path.socket->at, c->port);
	if (c)
		sctp_conn_free(c);
	pthread_mutex_unlock(&lock);
	return fd;
}

int sctp_accept(int listener, struct sctp_news *news)
{
	struct iovec piece = {.iov_base = news, .iov_len = sizeof(*news)};
	union {
		struct cmsghdr head;
		uint8_t bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr m = {.msg_iov = &piece,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	ssize_t n;
	/* If no descriptor were free, recvmsg would lose the descriptor of the
	 * connection. */
	int fd = fcntl(listener, F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	close(fd);
	n = recvmsg(listener, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return -errno;
	return scm_rights_take(&m, &fd, n == sizeof(*news)) ? fd
							    : -ECONNABORTED;
}

/* Returns the path to the peer's service. */
static struct sctp_path path_to(struct sctp_socket *s,
				const struct sockaddr_in6 *from,
				const struct sockaddr_in6 *to)
{
	struct sctp_path p = {
		.socket = s, .local = from->sin6_addr, .remote = *to};

	p.remote = carrier_of(to);
	sctp_path_number(&p);
	return p;
}

static int call_peer(struct sctp_conn *c, const struct sockaddr_in6 *from,
		     const struct sockaddr_in6 *to)
{
	struct sctp_path path = path_to(c->path.socket, from, to);
	struct usrsctp_address peer = {.family = USRSCTP_AF_CONN,
				       .port = to->sin6_port,
				       .id = (void *)(uintptr_t)path.id};
	int err;

	sctp_conn_set_path(c, &path);
	c->peer_port = to->sin6_port;
	err = sctp_conn_make_so(c, from->sin6_port);
	if (err)
		return err;
	sctp_conn_set_path_options(c->so, sctp_path_mtu(&c->path));
	if (sctp_conn_all.usr->connect(c->so, (struct sockaddr *)&peer,
				       sizeof(peer)) &&
	    errno != EINPROGRESS)
		return -errno;
	return 0;
}

int sctp_connect(int fd, const struct sockaddr_in6 *from,
		 const struct sockaddr_in6 *to)
{
	struct sctp_conn *c;
	int end = -ENOMEM;

	pthread_mutex_lock(&lock);
	if (sctp_conn_all.usr) /* else begin_conn fails */
		run_time();
	sctp_conn_all.busy_ns = monotonic_ns();
	c = begin_conn(SCTP_CONN_CALLING, fd);
	if (c)
		end = finish_begin(c, call_peer(c, from, to));
	pthread_mutex_unlock(&lock);
	return end;
}

/* ---- the end of the process ---- */

static bool has_unsent(const struct sctp_conn *c)
{
	struct usrsctp_status s;
	socklen_t size = sizeof(s);

	if (c->state != SCTP_CONN_OPEN)
		return false;
	return c->has_bytes || c->out_bytes ||
	       (!sctp_conn_all.usr->getsockopt(c->so, IPPROTO_SCTP,
					       USRSCTP_STATUS, &s, &size) &&
		(s.unacknowledged || s.pending));
}

/* If `closes`, shuts all associations down.  Returns whether messages are not
 * acknowledged yet or, if `closes`, an association is not shut down yet. */
static bool drain_conns(bool closes)
{
	bool waits = false;

	pthread_mutex_lock(&lock);
	/* Perhaps the thread has not read the owners' last messages yet. */
	list_for_each (n, &sctp_conn_all.conns) {
		struct sctp_conn *c = CONTAINER_OF(n, struct sctp_conn, link);

		c->has_bytes = true;
		sctp_conn_touch(c);
	}
	sctp_conn_serve_all();
	list_for_each (n, &sctp_conn_all.conns) {
		struct sctp_conn *c = CONTAINER_OF(n, struct sctp_conn, link);

		if (closes && c->state == SCTP_CONN_OPEN)
			sctp_conn_close(c);
		waits |= has_unsent(c) ||
			 (closes && c->state == SCTP_CONN_CLOSING);
	}
	pthread_mutex_unlock(&lock);
	return waits;
}

void sctp_drain(void)
{
	const struct timespec step = {.tv_nsec = DRAIN_NS};

	for (int i = 0; i < DRAIN_STEPS && drain_conns(false); i++)
		nanosleep(&step, NULL);
	for (int i = 0; i < DRAIN_STEPS / 4 && drain_conns(true); i++)
		nanosleep(&step, NULL);
}
