/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connection to the broker: requests and their answers, and a thread that
 * receives the broker's messages.  The first request opens the connection,
 * which lasts until the process ends; a forked child opens its own.  When the
 * broker is killed, its successor gets three things: the notes of the
 * conversations, also of those that were released (cmproto.h); requests for the
 * ports and listeners; and the requests that had no answer.  On a host of a
 * fabric the fabric's process is the broker, and has no successor (ib.h).
 */
#include "rdmacm/explain.h"
#include "rdmacm/ib.h"
#include "rdmacm/last_event.h"
#include "rdmacm/link_table.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "broker/cm_inbox.h"
#include "broker/dial.h"
#include "util/fd_identity.h"
#include "util/monotonic.h"
#include "util/process.h"

#define PATIENCE_MS 30000u /* how long a call waits for its answer */
#define SEEK_MS	    1000   /* the longest pause between two attempts */
/* After how long the thread that reads broker_fd looks whether the program has
 * closed that descriptor.  The thread's recvmmsg keeps the connection open, and
 * the broker keeps the connection's ports, until recvmmsg returns. */
#define LOOK_MS 1000

static int broker_fd = -1; /* -1: there is no connection */
/* redial_broker is in dial_open, without r_lock: dial_broker does not connect
 * meanwhile. */
static bool is_dialling;
static uint64_t owner;	     /* the process that opened the connection */
static uint32_t last_serial; /* cmproto.serial of the last message sent */
/* Incremented when a call that got -EPIPE may ask again: by redial_broker and
 * end_fabric. */
static uint32_t dials;

#define CLOSED                                                                 \
	"; this process closes its connection to that broker, and looks for "  \
	"another one"

/* Limits how long each recv (SO_RCVTIMEO) or send (SO_SNDTIMEO) waits; 0:
 * without a limit.  The program may have closed fd meanwhile. */
static void limit_wait(int fd, int option, uint64_t ms)
{
	const struct timeval t = {.tv_sec = (time_t)(ms / 1000),
				  .tv_usec = (suseconds_t)(ms % 1000 * 1000)};

	if (fd_identity_holds(fd))
		setsockopt(fd, SOL_SOCKET, option, &t, sizeof(t));
}

static void limit_waits(int fd, uint64_t ms)
{
	limit_wait(fd, SO_RCVTIMEO, ms);
	limit_wait(fd, SO_SNDTIMEO, ms);
}

/* Called after a failed recv or send.  Returns true if a signal handler has
 * interrupted the wait: the caller then repeats the call, which waits no longer
 * than to the time until_ms.  If a handler has interrupted the wait and that
 * time is over, sets errno to EAGAIN and returns false. */
static bool was_interrupted(int fd, int option, uint64_t until_ms)
{
	uint64_t now = monotonic_ms();

	if (errno != EINTR)
		return false;
	if (now >= until_ms) {
		errno = EAGAIN;
		return false;
	}
	limit_wait(fd, option, until_ms - now);
	return true;
}

/* Shuts the connection down: no later send or recv waits.  Returns -EPIPE. */
static int leave_broker(int fd)
{
	if (fd_identity_holds(fd))
		shutdown(fd, SHUT_RDWR);
	return -EPIPE;
}

/* Says that the broker has not answered for PATIENCE_MS.  Returns -EPIPE. */
static int leave_silent(int fd)
{
	r_say("rdma_cm: the broker does not answer (is it stopped?)" CLOSED);
	return leave_broker(fd);
}

/* Receives one message.  Waits no longer than limit_waits or limit_rest has
 * set; after a signal, no longer than to the time until_ms.  Returns 0, or
 * -EPIPE: no message of the broker will come, or the program has closed fd. */
static int receive_message(int fd, struct cmproto *m, uint64_t until_ms)
{
	ssize_t n;

	do {
		if (!fd_identity_holds(fd))
			return -EPIPE;
		n = recv(fd, m, sizeof(*m), 0);
	} while (n < 0 && was_interrupted(fd, SO_RCVTIMEO, until_ms));
	if (n > 0 && r_table_is_valid(m, n))
		return 0;
	if (n > 0)
		r_say("rdma_cm: the broker sends malformed messages" CLOSED);
	else if (n < 0 && errno == EAGAIN)
		return leave_silent(fd);
	return leave_broker(fd);
}

/* Sends a message, and waits for room no longer than to the time until_ms.
 * Returns 0, or -EPIPE if the broker is gone, or reads no messages. */
static int send_message(int fd, const struct cmproto *m, uint64_t until_ms)
{
	ssize_t n;

	do
		n = send(fd, m, sizeof(*m), MSG_NOSIGNAL);
	while (n < 0 && was_interrupted(fd, SO_SNDTIMEO, until_ms));
	if (n == sizeof(*m))
		return 0;
	if (n < 0 && errno == EAGAIN && r_ib_is_used())
		r_say("rdma_cm: the fabric reads no messages (is its process "
		      "stopped?); this process leaves the fabric");
	else if (n < 0 && errno == EAGAIN)
		r_say("rdma_cm: the broker reads no messages (is it "
		      "stopped?)" CLOSED);
	return leave_broker(fd);
}

/* Sends the request m.  Returns 0, or -EPIPE if the broker is gone or reads no
 * messages, or if the program has closed fd. */
static int tell_broker(int fd, struct cmproto *m, uint16_t kind,
		       uint32_t handle, uint64_t until_ms)
{
	m->magic = CMPROTO_MAGIC;
	m->version = CMPROTO_VERSION;
	m->kind = kind;
	m->id = handle;
	m->serial = ++last_serial;
	if (!fd_identity_holds(fd))
		return -EPIPE;
	limit_waits(fd, PATIENCE_MS);
	return send_message(fd, m, until_ms);
}

/* Limits the next recv to the time until_ms.  After that time recv takes only
 * messages that have come already, since the answer may be among them if this
 * process was stopped.  Returns 0; or, PATIENCE_MS after that time, -EPIPE with
 * a message to the user. */
static int limit_rest(int fd, uint64_t until_ms)
{
	uint64_t now = monotonic_ms();

	if (now >= until_ms + PATIENCE_MS)
		return leave_silent(fd);
	limit_wait(fd, SO_RCVTIMEO, now < until_ms ? until_ms - now : 1);
	return 0;
}

/* Sends the request m and waits for the answer, which replaces m.  Handles the
 * messages that come before the answer, which do not lengthen the wait.  No
 * other thread reads fd meanwhile.  Returns 0, -EPIPE if the broker is gone or
 * silent, or another -errno of r_table_result. */
static int ask_broker(int fd, struct cmproto *m, uint16_t kind, uint32_t handle)
{
	uint64_t until_ms = monotonic_ms() + PATIENCE_MS;
	int err = tell_broker(fd, m, kind, handle, until_ms);
	uint32_t serial = last_serial;

	if (err)
		return err;
	for (;;) {
		if (receive_message(fd, m, until_ms))
			return -EPIPE;
		if (m->kind == CMPROTO_DONE && m->serial == serial)
			return r_table_result(kind, m);
		r_table_message(m);
		if (limit_rest(fd, until_ms))
			return -EPIPE;
	}
}

/* The successor refuses the port of an id without a conversation, or the port's
 * listener: another process may have taken the port in the meantime. */
static void lose_port(struct r_id *id, int err)
{
	r_say("rdma_cm: the broker has died, and its successor does not give "
	      "port %u back to this process: %s; the id gets DEVICE_REMOVAL",
	      r_addr_port(&id->base.route.addr.src_addr), r_reason(-err));
	r_post_removed(id);
}

/* Releases the port that the successor has bound for the id, because the
 * successor refuses the listener.  Otherwise the process would have the port
 * until the program destroys the id. */
static void give_port_back(int fd, struct r_id *id)
{
	struct cmproto m = {0};

	tell_broker(fd, &m, CMPROTO_RELEASE, id->handle,
		    monotonic_ms() + PATIENCE_MS);
	r_table_unlink(id);
}

/*
 * Gives an id to the broker's successor: by the note of the id's conversation,
 * or by requests for the id's port and listener.
 */
static void revive_id(int fd, struct r_id *id)
{
	struct cmproto m = {0};
	uint32_t handle = id->handle;
	bool has_conversation = r_table_has_note(id);
	int err = 0;

	r_table_unlink(id);
	if (!id->state.is_passive)
		r_bind_message(id, &id->base.route.addr.src_addr, &m);
	else
		m.at.space = (uint16_t)id->base.ps;
	if (has_conversation) {
		memcpy(m.note, id->note, sizeof(m.note));
		err = ask_broker(fd, &m, CMPROTO_RESUME, 0);
	} else if (!id->state.is_passive) {
		err = ask_broker(fd, &m, CMPROTO_BIND, 0);
	} else {
		return; /* the conversation has ended */
	}
	/* After -EPIPE the id keeps handle and note, for the next successor. */
	if (!err || err == -EPIPE)
		r_link(id, err ? handle : m.new_id);
	/* The successor's note replaces its predecessor's. */
	if (!err && has_conversation)
		memcpy(id->note, m.note, sizeof(id->note));
	else if (has_conversation && err != -EPIPE)
		r_post_lost(id);
	if (!err && id->state.is_listening) {
		m = (struct cmproto){.backlog = id->backlog};
		err = ask_broker(fd, &m, CMPROTO_LISTEN, id->handle);
		if (err && err != -EPIPE)
			give_port_back(fd, id);
	}
	if (err && err != -EPIPE && !has_conversation)
		lose_port(id, err);
}

/* Repeats the requests that the last broker has not answered. */
static void ask_pending(int fd)
{
	struct list open = {&open, &open};

	/* The requests are moved to a list of their own, so that a message that
	 * ask_broker handles settles none of them. */
	list_take_all(&open, r_table_pending());
	while (!list_is_empty(&open)) {
		struct r_pending *p = (struct r_pending *)(void *)open.next;
		struct cmproto m = p->request;

		if (!p->id->handle && m.kind != CMPROTO_BIND)
			m.err = -ENOENT; /* the program has got an event */
		else if (ask_broker(fd, &m, m.kind, p->id->handle) == -EPIPE)
			break;
		r_table_settle(p, &m);
	}
	list_take_all(r_table_pending(), &open);
}

/* Repeats the release of ids: the last broker may not have told their peers. */
static void release_again(int fd)
{
	list_for_each (n, r_table_released()) {
		struct cmproto m = {0};

		memcpy(m.note, ((struct r_released *)(void *)n)->note,
		       sizeof(m.note));
		if (ask_broker(fd, &m, CMPROTO_RELEASE, 0) == -EPIPE)
			return;
	}
}

/*
 * Under r_lock: gives all ids to the successor of a broker that was killed.
 * fd, the connection to the successor, was marked by fd_identity_note.
 *
 * A successor that is stopped blocks the caller, and so all calls that take
 * r_lock, for no longer than PATIENCE_MS after the last request that it has
 * answered.
 *
 * Listeners come last: if a peer repeats a request, the successor must already
 * know the request's conversation, and so not take the request for a new one.
 */
static void revive_all(int fd)
{
	struct list all = {&all, &all}, last = {&last, &last};

	broker_fd = fd;
	r_table_take_ids(&all, &last);
	while (!list_is_empty(&all))
		revive_id(fd, r_table_id(list_pop_head(&all)));
	while (!list_is_empty(&last))
		revive_id(fd, r_table_id(list_pop_head(&last)));
	ask_pending(fd);
	release_again(fd);
	limit_wait(fd, SO_SNDTIMEO, 0);
	limit_wait(fd, SO_RCVTIMEO, LOOK_MS);
}

static void tell_word(enum client_word word, const char *sentence)
{
	r_say_of(word, sentence);
}

/* Returns whether an id needs a broker and there is none. */
static bool misses_broker(void)
{
	bool misses;

	r_take();
	misses = broker_fd < 0 && r_table_has_ids();
	r_give();
	return misses;
}

/*
 * Looks for a broker at growing intervals, since no event tells when a broker
 * exists or can be started.  Returns the descriptor, or -1 if no id needs a
 * broker, or another thread has connected first or dials.
 */
static int seek_broker(void)
{
	char why[START_SENTENCE];
	int fd = -1, wait_ms = 1;

	while (misses_broker() && dial_open(&fd, NULL, tell_word, why)) {
		poll(NULL, 0, wait_ms);
		wait_ms = wait_ms < SEEK_MS / 2 ? 2 * wait_ms : SEEK_MS;
	}
	if (fd < 0)
		return -1;
	fd = fd_identity_note(fd);
	r_take();
	/* A call may have connected meanwhile, and the thread of that
	 * connection may have lost it again and be dialling. */
	if (broker_fd < 0 && !is_dialling) {
		revive_all(fd);
	} else {
		fd_identity_close(fd);
		fd = -1;
	}
	r_give();
	return fd;
}

/*
 * Replaces the connection that broke.  Returns the new descriptor, or -1 if no
 * id needs a broker, or another thread has connected first.  dial_open is
 * called without r_lock: it may take long, and calls that need no broker take
 * r_lock too.
 */
static int redial_broker(int old)
{
	char why[START_SENTENCE];
	int fd = -1, err;

	r_take();
	/* Posts the withheld events now: this thread, which would post them
	 * later, may wait long for a broker, or end. */
	r_last_event_end(NULL);
	r_table_fail_waiters();
	broker_fd = -1;
	fd_identity_close(old);
	is_dialling = true;
	pthread_mutex_unlock(&r_lock);
	err = dial_open(&fd, NULL, tell_word, why);
	pthread_mutex_lock(&r_lock);
	is_dialling = false;
	if (err) {
		r_say("rdma_cm: the broker is gone, and no other can be "
		      "reached: %s",
		      why);
		r_table_fail_pending();
	} else {
		fd = fd_identity_note(fd);
		revive_all(fd);
	}
	dials++;
	pthread_cond_broadcast(&r_changed);
	r_give();
	return fd < 0 ? seek_broker() : fd;
}

/*
 * Calls redial_broker, after a pause if the last connection lasted less than
 * SEEK_MS.  *pause_ms is the length of that pause, and is increased for the
 * next call.  *dialled_ms is the time at which the last connection was opened;
 * the function stores the time of the new connection there.
 */
static int redial_calmly(int old, uint64_t *dialled_ms, int *pause_ms)
{
	if (monotonic_ms() - *dialled_ms >= SEEK_MS)
		*pause_ms = 0;
	poll(NULL, 0, *pause_ms);
	*pause_ms = *pause_ms < SEEK_MS / 2 ? 2 * *pause_ms + 1 : SEEK_MS;
	old = redial_broker(old);
	*dialled_ms = monotonic_ms();
	return old;
}

/* Ends all ids of a fabric, under r_lock. */
static void end_fabric(void)
{
	r_ib_end();
	r_table_fail_waiters();
	r_table_remove_device();
	dials++; /* the waiters of r_call try again, and fail */
	pthread_cond_broadcast(&r_changed);
}

/* The fabric has closed the connection `old`: ends all ids.  Returns -1, which
 * ends the thread. */
static int lose_fabric(int old)
{
	r_take();
	r_last_event_end(NULL);
	broker_fd = -1;
	fd_identity_close(old);
	end_fabric();
	r_give();
	return -1;
}

/* The connection `old` has ended.  Returns the descriptor that the thread reads
 * next; -1: the thread ends. */
static int replace_link(int old, uint64_t *dialled_ms, int *pause_ms)
{
	return r_ib_is_used() ? lose_fabric(old)
			      : redial_calmly(old, dialled_ms, pause_ms);
}

/* Waits at most a millisecond for a message of the broker.  Returns false if
 * none has come; true if the caller's next receive will not wait, since a
 * message has come, the connection has ended, or fd is closed. */
static bool has_message(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 1) != 0;
}

/* Handles a message under r_lock, which is released meanwhile if the message's
 * event is withheld (last_event.h). */
static void take_message(const struct cmproto *m)
{
	r_table_message(m);
	if (!r_last_event_is_new())
		return;
	r_put_tokens();
	r_give();
	r_last_event_serve(true);
	r_take();
	r_hold_tokens();
}

/* Handles n messages.  Returns whether events are withheld. */
static bool take_messages(const struct cm_inbox *in, int n)
{
	bool waits;

	r_grow_heap();
	r_take();
	r_hold_tokens();
	for (int i = 0; i < n; i++)
		if (r_table_is_valid(&in->messages[i], in->of[i].msg_len))
			take_message(&in->messages[i]);
	r_put_tokens();
	waits = r_last_event_waits();
	r_give();
	return waits;
}

static void *run_thread(void *arg)
{
	int fd = (int)(intptr_t)arg, pause_ms = 0;
	uint64_t dialled_ms = monotonic_ms();
	struct cm_inbox in;
	/* Events may be withheld: revive_all, too, handles messages. */
	bool waits = true;
	int n;

	cm_inbox_init(&in);
	while (fd >= 0) {
		if (waits && !has_message(fd)) {
			waits = r_last_event_serve(false);
			continue;
		}
		/* The program may have closed fd, and the number may be another
		 * file's now. */
		n = fd_identity_holds(fd)
			    ? cm_inbox_receive(&in, fd, MSG_WAITFORONE)
			    : 0;
		/* EAGAIN: no message has come for LOOK_MS.  After ECONNRESET
		 * earlier messages can still be read. */
		if (n < 0 &&
		    (errno == EINTR || errno == EAGAIN || errno == ECONNRESET))
			continue;
		if (n <= 0) {
			fd = replace_link(fd, &dialled_ms, &pause_ms);
			waits = true;
			continue;
		}
		waits = take_messages(&in, n) && r_last_event_serve(false);
	}
	if (waits) { /* no other thread would post the withheld events */
		r_take();
		r_last_event_end(NULL);
		r_give();
	}
	return NULL;
}

/* Starts the thread that reads fd.  Returns 0 or -errno. */
static int start_thread(int fd)
{
	sigset_t all, old;
	pthread_t thread;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&thread, NULL, run_thread, (void *)(intptr_t)fd);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		return -err;
	pthread_setname_np(thread, "adverb-cm");
	pthread_detach(thread);
	return 0;
}

/* Opens a connection to the broker.  Returns 0, or -errno with a message. */
static int open_link(int *fd)
{
	char why[START_SENTENCE];
	int err = dial_open(fd, NULL, tell_word, why);

	if (err)
		r_say("rdma_cm: there is no connection to the broker: %s", why);
	/* -EPIPE of dial_open means that brokers ended before they answered.
	 * -EPIPE of dial_broker means that the thread is connecting, and the
	 * caller would wait until the thread has finished. */
	return err == -EPIPE ? -ECONNREFUSED : err;
}

/*
 * Connects to the broker unless a connection exists, under r_lock.  Returns 0
 * or -errno; -EPIPE: the thread is connecting, and increments `dials` when it
 * has finished.
 */
static int dial_broker(void)
{
	int err, fd;

	/* a forked child drops its parent's state */
	if (owner != process_number()) {
		fd_identity_close(broker_fd);
		broker_fd = -1;
		r_ib_forget();
		r_table_reset();
		r_last_event_forget();
		is_dialling = false;
		owner = process_number();
	}
	/* If the program has closed the descriptor, the thread connects again,
	 * within LOOK_MS: until then the broker refuses the ports. */
	if (broker_fd >= 0)
		return fd_identity_holds(broker_fd) ? 0 : -EPIPE;
	if (is_dialling)
		return -EPIPE;
	err = r_ib_is_used() ? r_ib_dial(&fd) : open_link(&fd);
	if (err)
		return err;
	fd = fd_identity_note(fd);
	/* Ids may remain of a broker that had no successor until now. */
	revive_all(fd);
	err = start_thread(fd);
	if (err) {
		fd_identity_close(fd);
		broker_fd = -1;
		r_ib_forget();
	}
	return err;
}

/* Sends a message, under r_lock.  Waits at most PATIENCE_MS for room.  Returns
 * 0 or -errno; -EPIPE: the broker is gone or reads no messages, or the thread
 * is connecting. */
static int post_message(struct cmproto *m, uint16_t kind, uint32_t handle)
{
	int err;

	/* Filled in before dial_broker: if dial_broker fails, the caller may
	 * keep the complete message for the next broker. */
	m->magic = CMPROTO_MAGIC;
	m->version = CMPROTO_VERSION;
	m->kind = kind;
	m->id = handle;
	err = dial_broker();
	if (err)
		return err;
	m->serial = ++last_serial;
	if (send(broker_fd, m, sizeof(*m), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
		return 0;
	if (errno != EAGAIN)
		return errno == ECONNRESET ? -EPIPE : -errno;
	/* Every call waits for r_lock meanwhile.  If no room comes,
	 * send_message shuts the connection down, so that no later call waits
	 * for room there. */
	limit_wait(broker_fd, SO_SNDTIMEO, PATIENCE_MS);
	return send_message(broker_fd, m, monotonic_ms() + PATIENCE_MS);
}

/* Waits for r_changed, under r_lock, until a time of CLOCK_MONOTONIC, which
 * unlike the real-time clock is never set.  Returns 0 or ETIMEDOUT. */
static int wait_until(const struct timespec *until)
{
	return pthread_cond_clockwait(&r_changed, &r_lock, CLOCK_MONOTONIC,
				      until);
}

/* Sends a request and waits for the answer, under r_lock.  Returns 0 or -errno;
 * -EPIPE: the broker died before it answered, or the thread is connecting;
 * -ETIMEDOUT: no answer has come by the time `until`. */
static int call_broker(struct r_id *id, struct cmproto *m, uint16_t kind,
		       const struct timespec *until)
{
	struct r_waiter w = {.kind = kind, .answer = m, .id = id};
	int err = post_message(m, kind, id->handle);

	if (err)
		return err;
	w.serial = m->serial;
	r_table_await(&w);
	while (!w.is_done && !err)
		err = -wait_until(until);
	list_remove(&w.link);
	return w.is_done ? m->err : err;
}

/*
 * Waits until no other thread of this process is in r_call for the id, under
 * r_lock.  Returns false if that has not happened by the time `until`.  If the
 * broker dies, calls are repeated at its successor; one call at a time keeps
 * their order.  Otherwise a disconnect could overtake the confirmation (RTU),
 * and would have no effect.
 */
static bool begin_call(struct r_id *id, const struct timespec *until)
{
	int waited = 0;

	while (id->caller == process_number() && !waited)
		waited = wait_until(until);
	if (!waited)
		id->caller = process_number();
	return !waited;
}

static void end_call(struct r_id *id)
{
	id->caller = 0;
	pthread_cond_broadcast(&r_changed);
}

int r_call(struct r_id *id, struct cmproto *m, uint16_t kind)
{
	return r_call_within(id, m, kind, PATIENCE_MS);
}

int r_call_within(struct r_id *id, struct cmproto *m, uint16_t kind,
		  uint32_t most_ms)
{
	const struct cmproto request = *m;
	struct timespec until;
	uint32_t asked;
	int err = -EPIPE, waited = 0;

	monotonic_after(bits_min_u32(most_ms, PATIENCE_MS), &until);
	r_take();
	if (!begin_call(id, &until)) {
		r_give();
		return -ETIMEDOUT;
	}
	while (err == -EPIPE && !waited) {
		*m = request;
		asked = dials;
		err = call_broker(id, m, kind, &until);
		/* Waits until the thread has connected to the next broker, or
		 * has failed to. */
		while (err == -EPIPE && dials == asked && !waited)
			waited = wait_until(&until);
	}
	end_call(id);
	r_give();
	return err;
}

int r_do(struct r_id *id, uint16_t kind)
{
	struct cmproto m = {0};

	return r_call(id, &m, kind);
}

int r_request(struct r_id *id, struct cmproto *m, uint16_t kind)
{
	struct r_pending *p = malloc(sizeof(*p));
	int err;

	if (!p)
		return -ENOMEM;
	r_take();
	/* A forked child has no pending requests: the table is its parent's
	 * until dial_broker empties it. */
	while (r_table_is_full(kind) && owner == process_number())
		pthread_cond_wait(&r_changed, &r_lock);
	err = post_message(m, kind, id->handle);
	if (!err || err == -EPIPE) {
		*p = (struct r_pending){.id = id, .request = *m};
		r_table_add(p);
		p = NULL;
		err = 0;
	}
	r_give();
	free(p);
	return err;
}

void r_await_calls(const struct r_id *id)
{
	while (id->caller == process_number())
		pthread_cond_wait(&r_changed, &r_lock);
}

void r_tell_message(struct cmproto *m, uint16_t kind, uint32_t handle)
{
	post_message(m, kind, handle);
}
