/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric_server.h"

#include "fabric_connection.h"
#include "fabric_process.h"
#include "fabric_request.h"
#include "heeded.h"

#include "util/bits.h"
#include "util/monotonic.h"
#include "util/remedy.h"
#include "util/rlimit.h"

#include <errno.h>
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
	EVENTS = 64,		/* events of one epoll_wait */
	READS = 64,		/* datagrams of one port in one turn */
	CONNECTIONS_MAX = 8192, /* the most connections of all programs */
	SAY_MS = 10000,		/* between two sentences of say_closed */
	RETRY_MS = 1000, /* pause of accepting at ENFILE, ENOMEM, ENOBUFS */
	/* Most turns in a row that do not ask epoll for events.  All packets
	 * that a program sends in these turns and in the next one fit into the
	 * ring of one receiver. */
	TURNS_WITHOUT_EVENTS = 5,
};

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
			"adverb: further programs of the fabric have to "
			"wait: %s; %s.\n",
			strerror(err),
			err == EMFILE ? "end other programs of the fabric, or "
					"start the fabric with a higher limit "
					"(ulimit -n)"
				      : remedy_of(err, NULL));
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

/* Says why the connection fd is closed.  A program that connects again and
 * again causes one sentence in SAY_MS. */
static void say_closed(struct fabric_server *s, int fd, const char *why,
		       const char *remedy)
{
	uint64_t now_ms = monotonic_ms();
	int pid = fabric_process_pid(fd);

	if (now_ms < s->say_ms)
		return;
	s->say_ms = now_ms + SAY_MS;
	fprintf(stderr,
		"adverb: the fabric has closed the connection of the process "
		"%d%s: %s; %s.\n",
		pid, pid ? "" : " (of another PID namespace)", why, remedy);
}

/* Returns a connection that owns fd, which epoll does not watch yet.  NULL: fd
 * is not served, and the user is told why. */
static struct connection *new_connection(struct fabric_server *s, int fd)
{
	struct connection *c = NULL;

	if (!fabric_process_is_own(fd))
		say_closed(
			s, fd,
			"the fabric serves only programs of its own user",
			"run the program as the user of the fabric, or start "
			"a fabric as the user of the program");
	else if (s->connection_count >= CONNECTIONS_MAX)
		say_closed(s, fd, "the fabric has the most connections already",
			   "end other programs of the fabric");
	else if (!(c = calloc(1, sizeof(*c))))
		say_closed(s, fd, strerror(ENOMEM), remedy_of(ENOMEM, NULL));
	if (!c)
		return NULL;
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
	return c;
}

static void accept_one(struct fabric_server *s)
{
	int fd = accept4(s->listener.fd, NULL, NULL,
			 SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct connection *c;
	int err;

	if (fd < 0) {
		pause_accepting(s, errno);
		return;
	}
	c = new_connection(s, fd);
	if (!c) {
		close(fd);
		return;
	}
	err = fabric_watch_add(s->epoll, &c->control, EPOLLIN);
	if (!err)
		return;
	/* ENOSPC: fs.epoll.max_user_watches */
	say_closed(s, fd, strerror(-err),
		   remedy_of(-err, "end programs, or raise "
				   "fs.epoll.max_user_watches"));
	fabric_connection_free(s, c);
}

static void print_deadlock(struct fabric *f)
{
	const char *text = deadlock_news(f);

	if (text)
		fprintf(stderr, "adverb: %s.\n", text);
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
		fabric_request_read(s, c);
	} else if (w->kind == FABRIC_WATCH_PROCESS) {
		fabric_connection_end(s, c);
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
			fabric_connection_read_port(s, c, READS);
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

/* Serves the events that there are; if there are none, waits until one comes or
 * a timer is due.  While packets come in rings, five turns of six do not ask
 * for events, since the system call takes as long as a packet, and programs may
 * be woken once for packets of six turns. */
static void serve_events(struct fabric_server *s)
{
	struct epoll_event events[EVENTS];
	int n;

	if (s->had_packets && s->turns_without_events < TURNS_WITHOUT_EVENTS) {
		s->turns_without_events++;
		return;
	}
	s->turns_without_events = 0;
	fabric_data_wake(&s->data);
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
	/* The page of fabric_direct.h gets the new number of changes before the
	 * MADs of this turn are sent: a program that has learned of a change
	 * from a MAD must not find the old number in the page. */
	fabric_direct_show(&s->direct, reach_changes(s->fabric));
	print_deadlock(s->fabric);
	while ((end = fabric_ready(s->fabric)))
		read_end(end);
	fabric_data_turn(&s->data, monotonic_ms());
	if (fabric_cm_turn(s->cm))
		s->has_closed = true;
	list_for_each_safe (l, &s->connections) {
		struct connection *c = (struct connection *)l;

		if (c->is_dead && !fabric_connection_has_data(c))
			fabric_connection_free(s, c);
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
	heeded_add(&set, SIGINT);
	heeded_add(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Makes connection management, and lets epoll watch its descriptor, the
 * listener and the signals.  Returns 0 or -errno. */
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
		      struct fabric_capture *capture, bool is_direct,
		      void (*ready)(void))
{
	struct fabric_server s = {
		.fabric = f, .listener.fd = listener, .direct.page_fd = -1};
	struct stat own = {.st_ino = 0};
	int err = 0;

	if (lstat(path, &own))
		own.st_ino = 0;
	/* a sentence to a pipe whose reader has ended then fails, and does not
	 * end the fabric */
	signal(SIGPIPE, SIG_IGN);
	/* A connection needs a descriptor, and more of them for its port, its
	 * data ends, its client of connection management and its arena.  The
	 * soft limit of most systems, 1024, is for programs that use select(2).
	 */
	rlimit_raise(RLIMIT_NOFILE);
	list_init(&s.connections);
	s.buffer = malloc(FABRIC_CONNECTION_MESSAGE);
	s.signals.fd = open_signals();
	s.epoll = epoll_create1(EPOLL_CLOEXEC);
	s.data = (struct fabric_data){.fabric = f,
				      .epoll = s.epoll,
				      .buffer = s.buffer,
				      .size = FABRIC_CONNECTION_MESSAGE};
	fabric_data_init_all(&s.data);
	if (!s.buffer || s.signals.fd < 0 || s.epoll < 0)
		err = s.buffer ? -errno : -ENOMEM;
	if (!err)
		err = fabric_direct_open(&s.direct, is_direct);
	if (!err)
		err = watch_all(&s);
	if (!err && ready)
		ready();
	while (!err && !s.stops) {
		run_turn(&s);
		fabric_capture_flush(capture);
	}
	/* The socket is removed before the connections are closed: when `adverb
	 * fabric --stop` sees the end of its own connection, another fabric can
	 * be started at this path. */
	if (!err) {
		remove_socket(path, &own);
		shutdown(listener, SHUT_RDWR);
	}
	list_for_each_safe (l, &s.connections)
		fabric_connection_free(&s, (struct connection *)l);
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
