/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric_server.h"

#include "fabric_cm.h"
#include "fabric_data.h"
#include "fabric_direct.h"
#include "fabric_process.h"
#include "fabric_watch.h"

#include "fabric/fabric_client.h"
#include "fabric/proto.h"
#include "util/bits.h"
#include "util/list.h"
#include "util/monotonic.h"
#include "util/rlimit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	EVENTS = 64,
	READS = 64,  /* datagrams of one port in one turn */
	REST = 1024, /* datagrams of a port whose program has ended */
	CONNECTIONS_MAX = 8192, /* the most connections of all programs */
	BUFFER_BYTES = 1 << 20, /* SO_SNDBUF of both ends of a port */
	MESSAGE_MAX = FABRIC_UMAD_BYTES + FABRIC_MAD_MAX,
	RETRY_MS = 1000, /* pause of accepting at ENFILE, ENOMEM, ENOBUFS */
	TURNS_WITHOUT_EVENTS = 3,
};

struct connection {
	struct list list;
	struct fabric_watch control, port, process;
	struct fabric_data_socket data[FABRIC_PROTO_PORTS]; /* of port 1... */
	struct fabric_cm_reader reader; /* of the open port */
	struct fabric_cm_client *cm;	/* NULL: no connection management */
	struct end *end;		/* the open port, or NULL */
	struct node *held; /* the host that the program took, or NULL */
	struct fabric_program program; /* number 0: shares no arena */
	/* The program has ended.  The connection is freed at the end of the
	 * turn in which its last data end is closed. */
	bool is_dead;
};

struct fabric_server {
	struct fabric *fabric;
	struct list connections;
	uint32_t connection_count;
	int epoll;
	struct fabric_watch listener, signals, cm_watched;
	struct fabric_data data;
	struct fabric_direct direct;
	struct fabric_cm *cm;
	/* 0: the listener is watched.  Otherwise a connection could not be
	 * accepted, and the listener is watched again at this time in ms, or
	 * earlier if a descriptor is closed. */
	uint64_t accept_ms;
	bool has_closed; /* a descriptor was closed in this turn */
	/* How many of the latest turns had packets in rings, and have not
	 * looked for events. */
	uint32_t turns_without_events;
	bool had_packets; /* the latest turn had packets in rings */
	bool has_said;	  /* the message of pause_accepting was printed */
	bool stops;
	uint8_t *buffer; /* one message, of at most MESSAGE_MAX bytes */
};

static void close_port(struct fabric_server *s, struct connection *c)
{
	if (c->port.fd < 0)
		return;
	s->has_closed = true;
	close(c->port.fd);
	c->port.fd = -1;
	fabric_close(c->end);
	c->end = NULL;
}

/* Reads up to `most` messages of the program's agents. */
static void read_port(struct fabric_server *s, struct connection *c, int most)
{
	for (int i = 0; i < most; i++) {
		/* MSG_TRUNC: n is the length of the whole message */
		ssize_t n = recv(c->port.fd, s->buffer, MESSAGE_MAX,
				 MSG_DONTWAIT | MSG_TRUNC);

		if (n < 0 && errno == ECONNRESET)
			continue; /* the program left messages unread */
		if (n < 0)
			return;
		if (!n) { /* the program has closed its socket */
			close_port(s, c);
			return;
		}
		/* a message that fabric_send refuses, for example one that is
		 * longer than the buffer, is lost, as on a wire */
		fabric_send(c->end, s->buffer, (size_t)n);
	}
}

/* The program has ended.  Its data ends still send the packets that are in
 * their sockets. */
static void end_connection(struct fabric_server *s, struct connection *c)
{
	if (c->is_dead)
		return;
	if (c->port.fd >= 0)
		read_port(s, c, REST);
	close_port(s, c);
	for (int i = 0; i < FABRIC_PROTO_PORTS; i++)
		fabric_data_leave(&s->data, &c->data[i]);
	if (c->cm)
		fabric_cm_hang_up(c->cm);
	if (fabric_direct_leave(&s->direct, &c->program))
		data_tell_death(s->fabric);
	if (c->held)
		fabric_release(c->held);
	c->held = NULL;
	close(c->control.fd);
	if (c->process.fd >= 0)
		close(c->process.fd);
	c->control.fd = c->process.fd = -1;
	s->has_closed = true;
	c->is_dead = true;
}

static void free_connection(struct fabric_server *s, struct connection *c)
{
	end_connection(s, c);
	for (int i = 0; i < FABRIC_PROTO_PORTS; i++)
		fabric_data_close(&s->data, &c->data[i]);
	list_remove(&c->list);
	s->connection_count--;
	free(c);
}

static bool has_data(const struct connection *c)
{
	for (int i = 0; i < FABRIC_PROTO_PORTS; i++)
		if (c->data[i].end)
			return true;
	return false;
}

/* Lets further connections wait, after accept4 has failed for want of a
 * descriptor or of memory.  If epoll still watched the listener, it would
 * report the waiting connection at once, again and again. */
static void pause_accepting(struct fabric_server *s, int err)
{
	if (err != EMFILE && err != ENFILE && err != ENOMEM && err != ENOBUFS)
		return;
	fabric_watch_change(s->epoll, &s->listener, 0);
	/* at EMFILE only this process can free a descriptor */
	s->accept_ms = err == EMFILE ? FABRIC_NEVER : monotonic_ms() + RETRY_MS;
	if (!s->has_said)
		fprintf(stderr,
			"adverb: programs that join the fabric now have to "
			"wait: %s; end other programs of the fabric, or start "
			"the fabric with a higher limit (ulimit -n).\n",
			strerror(err));
	s->has_said = true;
}

static void resume_accepting(struct fabric_server *s)
{
	if (s->accept_ms && (s->has_closed || s->accept_ms <= monotonic_ms())) {
		s->accept_ms = 0;
		fabric_watch_change(s->epoll, &s->listener, EPOLLIN);
	}
	s->has_closed = false;
}

static void accept_one(struct fabric_server *s)
{
	int fd = accept4(s->listener.fd, NULL, NULL,
			 SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct connection *c;

	if (fd < 0) {
		pause_accepting(s, errno);
		return;
	}
	c = fabric_process_is_own(fd) && s->connection_count < CONNECTIONS_MAX
		    ? calloc(1, sizeof(*c))
		    : NULL;
	if (!c) {
		close(fd);
		return;
	}
	list_init(&c->list);
	c->control = (struct fabric_watch){.connection = c, .fd = fd};
	c->port = (struct fabric_watch){
		.connection = c, .kind = FABRIC_WATCH_PORT, .fd = -1};
	c->process = (struct fabric_watch){
		.connection = c, .kind = FABRIC_WATCH_PROCESS, .fd = -1};
	for (int i = 0; i < FABRIC_PROTO_PORTS; i++)
		fabric_data_init(&c->data[i], c);
	list_push_tail(&s->connections, &c->list);
	s->connection_count++;
	if (fabric_watch_add(s->epoll, &c->control, EPOLLIN))
		free_connection(s, c);
}

static struct node *named_node(const struct fabric_server *s,
			       const struct fabric_proto *m)
{
	return *m->host ? fabric_find(s->fabric, m->host)
			: fabric_node(s->fabric, 0);
}

static void set_name(char to[FABRIC_PROTO_NAME], const char *from)
{
	snprintf(to, FABRIC_PROTO_NAME, "%s", from);
}

static int take_host(struct fabric_server *s, struct connection *c,
		     struct fabric_proto *m)
{
	if (c->held)
		return -EBUSY;
	c->held = fabric_take(s->fabric, m->host);
	if (!c->held)
		return *m->host ? -ENODEV : -EUSERS;
	set_name(m->host, fabric_id(c->held));
	return 0;
}

static int show_ca(const struct fabric_server *s, struct fabric_proto *m)
{
	const struct node *node = named_node(s, m);

	if (!node)
		return -ENODEV;
	fabric_show_ca(node, &m->ca);
	m->number = s->direct.is_allowed;
	set_name(m->text, fabric_description(node));
	return 0;
}

static int show_node(const struct fabric_server *s, struct fabric_proto *m)
{
	const struct node *node = fabric_node(s->fabric, m->number);

	if (!node)
		return -ENOENT;
	fabric_show_ca(node, &m->ca);
	m->number = fabric_groups(node);
	set_name(m->host, fabric_id(node));
	set_name(m->text, fabric_description(node));
	return 0;
}

static int show_deadlock(const struct fabric_server *s, struct fabric_proto *m)
{
	const char *text = deadlock_text(s->fabric);

	snprintf(m->said, sizeof(m->said), "%s", text ? text : "");
	return 0;
}

static void print_deadlock(struct fabric *f)
{
	const char *text = deadlock_news(f);

	if (text)
		fprintf(stderr, "adverb: %s.\n", text);
}

/* Makes the sockets of a port; ends[1] is the program's. */
static int make_sockets(int ends[2])
{
	int bytes = BUFFER_BYTES;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	for (int i = 0; i < 2; i++)
		setsockopt(ends[i], SOL_SOCKET, SO_SNDBUF, &bytes,
			   sizeof(bytes));
	return 0;
}

/* Sends a program the messages of its port until none is left or the port's
 * socket is full. */
static void flush_port(void *user, struct end *end)
{
	struct fabric_server *s = user;
	struct connection *c =
		CONTAINER_OF(fabric_owner(end), struct connection, reader);
	const uint8_t *message;
	size_t bytes;

	while ((message = fabric_fetch(end, &bytes))) {
		ssize_t n = send(c->port.fd, message, bytes,
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN) {
			fabric_pause(end);
			fabric_watch_change(s->epoll, &c->port,
					    EPOLLIN | EPOLLOUT);
			return;
		}
		if (n < 0 && errno == EMSGSIZE)
			fprintf(stderr,
				"adverb: a datagram of %zu bytes to a program "
				"is lost: it is longer than this machine's "
				"socket buffers take; raise the sysctl "
				"net.core.wmem_max.\n",
				bytes);
		fabric_fetched(end);
	}
}

static int open_port(struct fabric_server *s, struct connection *c,
		     const struct fabric_proto *m, int *given)
{
	struct node *node = named_node(s, m);
	int ends[2], err;

	if (!node || c->end)
		return node ? -EBUSY : -ENODEV;
	err = make_sockets(ends);
	if (err)
		return err;
	c->reader = (struct fabric_cm_reader){.read = flush_port, .user = s};
	c->end = fabric_open(node, m->number, &c->reader, &err);
	if (!err) {
		c->port.fd = ends[0];
		*given = ends[1];
		err = fabric_watch_add(s->epoll, &c->port, EPOLLIN);
		if (!err)
			return 0;
		close_port(s, c);
	} else {
		close(ends[0]);
	}
	close(ends[1]);
	*given = -1;
	return err;
}

/* Returns the place of a port's data end; NULL: the port can have none. */
static struct fabric_data_socket *data_at(struct connection *c, uint32_t port)
{
	return port && port <= FABRIC_PROTO_PORTS ? &c->data[port - 1] : NULL;
}

/* Makes a data end at the port for the place d.  All data ends of a connection
 * are at one host. */
static struct data_end *make_data_end(struct connection *c, struct node *node,
				      uint32_t port,
				      struct fabric_data_socket *d, int *err)
{
	const struct data_end *other = NULL;

	for (int i = 0; i < FABRIC_PROTO_PORTS && !other; i++)
		other = c->data[i].end;
	*err = -EBUSY;
	if (d->end || (other && data_node(other) != node))
		return NULL;
	return other ? data_open_beside(other, port, d, err)
		     : data_open(node, port, d, err);
}

static int open_data(struct fabric_server *s, struct connection *c,
		     struct fabric_proto *m, int *given)
{
	struct node *node = named_node(s, m);
	struct fabric_data_socket *d = data_at(c, m->number);
	struct data_end *end;
	int ends[2], err;

	if (!node || !d)
		return -ENODEV;
	err = make_sockets(ends);
	if (err)
		return err;
	end = make_data_end(c, node, m->number, d, &err);
	if (end)
		err = fabric_data_open(&s->data, d, ends[0], end);
	else
		close(ends[0]);
	if (err) {
		close(ends[1]);
		return err;
	}
	m->number = data_number(d->end);
	*given = ends[1];
	return 0;
}

/* Gives a data end rings, and takes the descriptor *brought for them. */
static int open_ring(struct fabric_server *s, struct connection *c,
		     const struct fabric_proto *m, int *brought, int *given)
{
	struct fabric_data_socket *d = data_at(c, m->number);
	int fd;

	if (!d || !d->end)
		return -EINVAL;
	fd = fabric_data_ring(&s->data, d, fabric_process_pid(c->control.fd),
			      *brought);
	if (fd < 0)
		return fd;
	*brought = -1;
	*given = fd;
	return 0;
}

/* Gives the connection's process a client of connection management. */
static int open_cm(struct fabric_server *s, struct connection *c,
		   const struct fabric_proto *m, int *given)
{
	int fd;

	if (c->cm)
		return -EBUSY;
	fd = fabric_cm_open(s->cm, m->gid, fabric_process_pid(c->control.fd),
			    &c->cm);
	if (fd < 0)
		return fd;
	*given = fd;
	return 0;
}

/* Watches for the end of the program, whose children may keep the connection
 * open.  Returns 0 or -errno. */
static int watch_process(struct fabric_server *s, struct connection *c)
{
	int fd, err;

	if (c->process.fd >= 0)
		return 0;
	fd = fabric_process_open(c->control.fd);
	if (fd < 0)
		return fd == -EOPNOTSUPP ? 0 : fd;
	c->process.fd = fd;
	err = fabric_watch_add(s->epoll, &c->process, EPOLLIN);
	if (err) {
		close(fd);
		c->process.fd = -1;
	}
	return err;
}

/* Takes the descriptor *brought if the program may share its arena. */
static int share_arena(struct fabric_server *s, struct connection *c,
		       struct fabric_proto *m, int *brought, int *given)
{
	int fd = fcntl(s->direct.page_fd, F_DUPFD_CLOEXEC, 0), err;

	if (s->direct.is_allowed && fd < 0)
		return -errno;
	err = s->direct.is_allowed ? watch_process(s, c) : 0;
	if (!err)
		err = fabric_direct_share(&s->direct, &c->program, &m->arena,
					  fabric_process_pid(c->control.fd),
					  *brought);
	if (err) {
		if (fd >= 0)
			close(fd);
		return err;
	}
	*brought = -1;
	*given = fd;
	m->number = c->program.number;
	return 0;
}

/* Says which program the packets of a queue pair reach, if both programs share
 * their arenas. */
static int find_reached(struct fabric_server *s, struct connection *c,
			struct fabric_proto *m)
{
	const struct fabric_data_socket *d = data_at(c, m->number), *there;
	struct fabric_reached reached = {.changes = reach_changes(s->fabric)};
	struct data_end *end;

	if (!c->program.number || !d || !d->end)
		return -EINVAL;
	end = reach_find(d->end, &m->reach, &reached.peer);
	there = end ? data_owner(end) : NULL;
	if (!there || !there->watch.connection->program.number)
		return -EHOSTUNREACH;
	reached.program = there->watch.connection->program.number;
	m->reached = reached;
	return 0;
}

static int show_arena(struct fabric_server *s, const struct connection *c,
		      struct fabric_proto *m, int *given)
{
	const struct fabric_program *p =
		fabric_direct_find(&s->direct, m->number);

	if (!c->program.number || !p)
		return -ESRCH;
	*given = fcntl(p->wake_fd, F_DUPFD_CLOEXEC, 0);
	if (*given < 0)
		return -errno;
	m->arena = p->arena;
	return 0;
}

static int change_group(struct connection *c, const struct fabric_proto *m)
{
	const struct fabric_data_socket *d = data_at(c, m->number);

	if (!d || !d->end)
		return -EINVAL;
	return m->kind == FABRIC_PROTO_JOIN ? data_join(d->end, m->gid)
					    : data_leave(d->end, m->gid);
}

static int register_agent(const struct connection *c, struct fabric_proto *m)
{
	int id = c->end ? fabric_register(c->end, &m->agent) : -EINVAL;

	if (id < 0)
		return id;
	m->number = (uint32_t)id;
	return 0;
}

static int run_request(struct fabric_server *s, struct connection *c,
		       struct fabric_proto *m, int *brought, int *given)
{
	struct node *node;

	switch ((enum fabric_proto_kind)m->kind) {
	case FABRIC_PROTO_TAKE:
		return take_host(s, c, m);
	case FABRIC_PROTO_CA:
		return show_ca(s, m);
	case FABRIC_PROTO_PORT:
		node = named_node(s, m);
		return node ? fabric_show_port(node, m->number, &m->port)
			    : -ENODEV;
	case FABRIC_PROTO_OPEN:
		return open_port(s, c, m, given);
	case FABRIC_PROTO_REGISTER:
		return register_agent(c, m);
	case FABRIC_PROTO_UNREGISTER:
		return c->end ? fabric_unregister(c->end, m->number) : -EINVAL;
	case FABRIC_PROTO_SHOW:
		return show_node(s, m);
	case FABRIC_PROTO_STOP:
		s->stops = true;
		return 0;
	case FABRIC_PROTO_DATA:
		return open_data(s, c, m, given);
	case FABRIC_PROTO_JOIN:
	case FABRIC_PROTO_LEAVE:
		return change_group(c, m);
	case FABRIC_PROTO_CM:
		return open_cm(s, c, m, given);
	case FABRIC_PROTO_DEADLOCK:
		return show_deadlock(s, m);
	case FABRIC_PROTO_SHARE:
		return share_arena(s, c, m, brought, given);
	case FABRIC_PROTO_REACH:
		return find_reached(s, c, m);
	case FABRIC_PROTO_ARENA:
		return show_arena(s, c, m, given);
	case FABRIC_PROTO_RING:
		return open_ring(s, c, m, brought, given);
	}
	return -EOPNOTSUPP;
}

/* Returns false if the answer cannot be sent. */
static bool send_answer(const struct connection *c, struct fabric_proto *m,
			int given)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec part = {.iov_base = m, .iov_len = sizeof(*m)};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	if (given >= 0) {
		struct cmsghdr *h = &control.align;

		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(h), &given, sizeof(given));
	}
	return sendmsg(c->control.fd, &message, MSG_NOSIGNAL) == sizeof(*m);
}

static void answer_request(struct fabric_server *s, struct connection *c,
			   struct fabric_proto *m, int *brought)
{
	int given = -1;
	bool sent;

	m->host[FABRIC_PROTO_NAME - 1] = m->text[FABRIC_PROTO_NAME - 1] = '\0';
	m->err = run_request(s, c, m, brought, &given);
	sent = send_answer(c, m, given);
	if (given >= 0)
		close(given);
	if (!sent)
		end_connection(s, c);
}

static void read_control(struct fabric_server *s, struct connection *c)
{
	struct fabric_proto m;
	bool is_cut;
	int brought;
	int n = fabric_client_receive(c->control.fd, &m, 0, &is_cut, &brought);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n != sizeof(m) || m.version != FABRIC_PROTO_VERSION)
		end_connection(s, c);
	else
		answer_request(s, c, &m, &brought);
	if (brought >= 0)
		close(brought);
}

static void handle_event(struct fabric_server *s, const struct epoll_event *e)
{
	struct fabric_watch *w = e->data.ptr;
	struct connection *c = w->connection;

	if (w == &s->listener) {
		accept_one(s);
	} else if (w == &s->signals) {
		s->stops = true;
	} else if (w == &s->cm_watched) {
		fabric_cm_serve(s->cm);
	} else if (c->is_dead || w->fd < 0) {
		return; /* ended earlier in this turn */
	} else if (w->kind == FABRIC_WATCH_CONTROL) {
		read_control(s, c);
	} else if (w->kind == FABRIC_WATCH_PROCESS) {
		end_connection(s, c);
	} else if (w->kind == FABRIC_WATCH_DATA) {
		fabric_data_serve(
			&s->data,
			CONTAINER_OF(w, struct fabric_data_socket, watch),
			e->events);
	} else {
		if (e->events & EPOLLOUT) {
			fabric_watch_change(s->epoll, &c->port, EPOLLIN);
			fabric_resume(c->end);
		}
		if (e->events & (EPOLLIN | EPOLLHUP | EPOLLERR))
			read_port(s, c, READS);
	}
}

/* Makes the owner of an end fetch the messages of the end. */
static void read_end(struct end *end)
{
	const struct fabric_cm_reader *r = fabric_owner(end);

	r->read(r->user, end);
}

/* Returns how many ms the turn may wait for events; -1: without limit. */
static int turn_timeout(const struct fabric_server *s)
{
	uint64_t now = monotonic_ms();
	uint64_t due = bits_min_u64(fabric_deadline(s->fabric),
				    fabric_cm_deadline(s->cm));

	due = bits_min_u64(due, fabric_data_deadline(&s->data));
	if (s->accept_ms)
		due = bits_min_u64(due, s->accept_ms);
	if (due == FABRIC_NEVER)
		return -1;
	return due <= now ? 0 : (int)bits_min_u64(due - now, INT_MAX / 2);
}

/* Serves the events that there are, or waits for some.  While packets come in
 * rings, most turns do not ask for events: the system call takes as long as a
 * packet. */
static void serve_events(struct fabric_server *s)
{
	struct epoll_event events[EVENTS];
	int n;

	if (s->had_packets && s->turns_without_events < TURNS_WITHOUT_EVENTS) {
		s->turns_without_events++;
		return;
	}
	s->turns_without_events = 0;
	n = epoll_wait(s->epoll, events, EVENTS, turn_timeout(s));
	fabric_set_time(s->fabric, monotonic_ms());
	for (int i = 0; i < n; i++)
		handle_event(s, &events[i]);
}

static void run_turn(struct fabric_server *s)
{
	struct end *end;

	serve_events(s);
	fabric_set_time(s->fabric, monotonic_ms());
	s->had_packets = fabric_data_take(&s->data);
	fabric_turn(s->fabric, monotonic_ms());
	/* before the MADs of this turn are sent: a program that has learned of
	 * a change from a MAD must not find the old number */
	fabric_direct_show(&s->direct, reach_changes(s->fabric));
	print_deadlock(s->fabric);
	while ((end = fabric_ready(s->fabric)))
		read_end(end);
	fabric_data_turn(&s->data, monotonic_ms());
	if (fabric_cm_turn(s->cm))
		s->has_closed = true;
	list_for_each_safe (l, &s->connections) {
		struct connection *c = (struct connection *)l;

		if (c->is_dead && !has_data(c))
			free_connection(s, c);
	}
	s->has_closed |= s->data.has_closed;
	s->data.has_closed = false;
	resume_accepting(s);
}

/* Removes the listener's socket from the file system, unless another socket has
 * taken its place. */
static void remove_socket(const char *path, const struct stat *own)
{
	struct stat now;

	if (own->st_ino && !lstat(path, &now) && now.st_ino == own->st_ino &&
	    now.st_dev == own->st_dev)
		unlink(path);
}

static int open_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Makes connection management, and watches the descriptors that are no
 * program's.  Returns 0 or -errno. */
static int watch_all(struct fabric_server *s)
{
	int err = fabric_watch_add(s->epoll, &s->listener, EPOLLIN);

	s->cm = fabric_cm_new(s->fabric);
	if (!s->cm)
		return -errno;
	s->cm_watched.kind = FABRIC_WATCH_CM;
	s->cm_watched.fd = fabric_cm_fd(s->cm);
	if (!err)
		err = fabric_watch_add(s->epoll, &s->signals, EPOLLIN);
	return err ? err : fabric_watch_add(s->epoll, &s->cm_watched, EPOLLIN);
}

int fabric_server_run(struct fabric *f, int listener, const char *path,
		      struct fabric_capture *capture, bool is_direct)
{
	struct fabric_server s = {
		.fabric = f, .listener.fd = listener, .direct.page_fd = -1};
	struct stat own = {.st_ino = 0};
	int err = 0;

	if (lstat(path, &own))
		own.st_ino = 0;
	/* A connection needs a descriptor, and an open port one more.  The soft
	 * limit of most systems, 1024, is for programs that use select(2). */
	rlimit_raise(RLIMIT_NOFILE);
	list_init(&s.connections);
	s.buffer = malloc(MESSAGE_MAX);
	s.signals.fd = open_signals();
	s.epoll = epoll_create1(EPOLL_CLOEXEC);
	s.data = (struct fabric_data){.fabric = f,
				      .epoll = s.epoll,
				      .buffer = s.buffer,
				      .size = MESSAGE_MAX};
	fabric_data_init_all(&s.data);
	if (!s.buffer || s.signals.fd < 0 || s.epoll < 0)
		err = s.buffer ? -errno : -ENOMEM;
	if (!err)
		err = fabric_direct_open(&s.direct, is_direct);
	if (!err)
		err = watch_all(&s);
	while (!err && !s.stops) {
		run_turn(&s);
		fabric_capture_flush(capture);
	}
	/* The socket is removed before the connections are closed: when `adverb
	 * fabric --stop` sees the end of its own connection, another fabric can
	 * be started at this path. */
	remove_socket(path, &own);
	shutdown(listener, SHUT_RDWR);
	list_for_each_safe (l, &s.connections)
		free_connection(&s, (struct connection *)l);
	fabric_direct_close(&s.direct);
	if (s.cm)
		fabric_cm_free(s.cm);
	if (s.epoll >= 0)
		close(s.epoll);
	if (s.signals.fd >= 0)
		close(s.signals.fd);
	free(s.buffer);
	return err;
}
