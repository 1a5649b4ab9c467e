/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/user_receiver.h"

#include "broker/cmproto.h"
#include "broker/inside.h"
#include "broker/poll_sparse.h"
#include "broker/proto.h"
#include "broker/refuse_full.h"
#include "broker/user.h"
#include "util/monotonic.h"
#include "util/shared.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

/* How many messages of one connection are passed on in a turn, before
 * user_receiver_finish. */
#define BATCH 16
/* How many messages of a connection are passed on after user_receiver_finish,
 * at most: more than a socket holds. */
#define LAST 1024
/* How many refused connections of a user may be silent.  Each further one is
 * answered before it has sent anything. */
#define SILENT 8
/* More than any message of a protocol of the broker: a longer one is passed on
 * with this length, which is wrong in every protocol. */
#define MESSAGE_BYTES (CMPROTO_BYTES + 8)
#define CONNS_MAX     (CONN_MAX + USER_RECEIVER_UNCLOSED)
#define STACK_BYTES   (128 << 10)
#define SIGNAL_MS     2	  /* between two signals to a thread */
#define INLINE_TURNS  64  /* for one call of user_receiver_turn */
#define END_MS	      100 /* how long user_receiver_end awaits a thread */

_Static_assert(MESSAGE_BYTES > sizeof(struct proto), "fits every message");

/* If a member's comment ends with `lock`, the lock of `of` covers the member.
 * If it ends with "the thread's", only the thread of `of` uses the member; if
 * with "the loop's", only the broker's loop does; if with "fixed", no thread
 * changes the member once add_conn has been called. */
struct user_receiver_conn {
	struct user_receiver_conn *next; /* of the same user; `lock` */
	struct user_receiver *of;	 /* receives from fd; set by add_conn */
	int fd;				 /* the connection; fixed */
	/* this thread's socket of the pair whose other socket the broker's loop
	 * reads; -1: the connection is over, or refused; the thread's */
	int pair_fd;
	bool is_finishing; /* user_receiver_finish was called; `lock` */
	bool is_closing;   /* the thread has to close it; `lock` */
	bool is_refused;   /* made by user_receiver_refuse; fixed */
	struct refuse_full_slot refusal; /* if is_refused; the thread's */
	/* how many bytes of message[] wait to be passed on; 0: none; the
	 * thread's */
	size_t held;
	/* how many messages were passed on since is_finishing; the thread's */
	uint32_t finished;
	/* the held message, which was received and not passed on yet; the
	 * thread's */
	uint8_t message[MESSAGE_BYTES];
};

/* A copy of a thread's list of connections for one turn.  During the turn the
 * broker's loop may change the list. */
struct receiver_turn {
	uint32_t conns;	  /* how many connections the copy has */
	bool has_refused; /* one of the connections is refused */
	/* a connection ends in this turn without an event */
	bool has_finishing;
	struct user_receiver_conn *conn[CONNS_MAX];
	bool is_finishing[CONNS_MAX]; /* is_finishing of conn[i] */
	/* polled[0]: wake_fd; polled[1 + i]: conn[i] */
	struct pollfd polled[1 + CONNS_MAX];
	struct pollfd room[1 + CONNS_MAX]; /* for poll_sparse_all */
};

struct user_receiver {
	struct user_receiver *next; /* the loop's */
	uid_t user;		    /* the loop's */
	pthread_t thread;	    /* the loop's; unset without threads */
	int wake_fd; /* an eventfd: a member that the lock covers has changed */
	/* covers the members from here to is_left, and those members of
	 * connections whose comments say so */
	pthread_mutex_t lock;
	struct user_receiver_conn *conn; /* list of connections */
	/* connections that the loop has given up, and that are still open */
	uint32_t unclosed;
	bool is_spare; /* has no user yet, and does not end */
	bool is_over;  /* the thread has ended, or ends */
	bool is_left;  /* nobody joins the thread, which frees this struct */
	struct receiver_turn turn; /* the thread's */
};

/* user_receiver_interrupt_by_signal has installed the handler of SIGURG.  The
 * flag is stored after sigaction(2).  So a thread that loads true, and then
 * unblocks SIGURG, has the handler.  Without the handler, the signal would end
 * no wait. */
static shared_flag has_signal;

static void do_nothing(int signal)
{
	(void)signal;
}

void user_receiver_interrupt_by_signal(void)
{
	/* without SA_RESTART: the signal has to end a wait */
	const struct sigaction nothing = {.sa_handler = do_nothing};

	if (!sigaction(SIGURG, &nothing, NULL))
		shared_store(&has_signal, true);
}

static void free_receiver(struct user_receiver *r)
{
	pthread_mutex_destroy(&r->lock);
	close(r->wake_fd);
	free(r);
}

/* Unlinks the connections that are to be closed, and returns them. */
static struct user_receiver_conn *take_closing(struct user_receiver *r)
{
	struct user_receiver_conn **at = &r->conn, *closing = NULL;

	while (*at) {
		struct user_receiver_conn *c = *at;

		if (!c->is_closing) {
			at = &c->next;
			continue;
		}
		*at = c->next;
		c->next = closing;
		closing = c;
	}
	return closing;
}

static bool is_over(const struct user_receiver_conn *c)
{
	return c->pair_fd < 0 && !c->is_refused;
}

static struct pollfd events_of(const struct user_receiver_conn *c)
{
	if (is_over(c))
		return (struct pollfd){.fd = -1};
	if (c->held)
		return (struct pollfd){.fd = c->pair_fd, .events = POLLOUT};
	return (struct pollfd){.fd = c->fd, .events = POLLIN};
}

static void copy_list(const struct user_receiver *r, struct receiver_turn *t)
{
	t->conns = 0;
	t->has_refused = t->has_finishing = false;
	t->polled[0] = (struct pollfd){.fd = r->wake_fd, .events = POLLIN};
	for (struct user_receiver_conn *c = r->conn; c && t->conns < CONNS_MAX;
	     c = c->next) {
		t->conn[t->conns] = c;
		t->is_finishing[t->conns] = c->is_finishing;
		t->has_refused |= c->is_refused;
		t->has_finishing |= c->is_finishing && !c->held && !is_over(c);
		t->polled[++t->conns] = events_of(c);
	}
}

/* Ends the pair to the broker's loop.  Because of the shutdown, the loop finds
 * the end of file in its socket even if a child of fork has copies of both
 * sockets. */
static void end_pair(struct user_receiver_conn *c)
{
	if (c->pair_fd < 0)
		return;
	shutdown(c->pair_fd, SHUT_RDWR);
	close(c->pair_fd);
	c->pair_fd = -1;
}

/* Closes these connections; each close may wait. */
static void close_all(struct user_receiver *r, struct user_receiver_conn *c)
{
	uint32_t closed = 0;

	while (c) {
		struct user_receiver_conn *next = c->next;

		end_pair(c);
		close(c->fd);
		closed++;
		free(c);
		c = next;
	}
	pthread_mutex_lock(&r->lock);
	r->unclosed -= closed;
	pthread_mutex_unlock(&r->lock);
}

/* Receives one message, which becomes the held one.  The call may wait, since
 * it closes the descriptors that the message brings.  Returns 1; 0: there is no
 * message; -1: the connection is over. */
static int receive_one(struct user_receiver_conn *c)
{
	ssize_t n;

	/* ECONNRESET comes once: the last messages of the client are next */
	do
		n = recv(c->fd, c->message, sizeof(c->message), MSG_DONTWAIT);
	while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	if (n <= 0)
		return n < 0 && errno == EAGAIN ? 0 : -1;
	c->held = (size_t)n;
	return 1;
}

/* Passes the held message on.  False: there is no room for it. */
static bool pass_on(struct user_receiver_conn *c)
{
	if (send(c->pair_fd, c->message, c->held, MSG_DONTWAIT | MSG_NOSIGNAL) <
		    0 &&
	    (errno == EAGAIN || errno == EINTR || errno == ENOBUFS))
		return false;
	c->held = 0;
	return true;
}

/* Passes on some messages of c.  After user_receiver_finish, passes on at most
 * LAST messages and ends the pair: another process that has the connection open
 * may go on sending. */
static void forward_messages(struct user_receiver_conn *c, bool is_finishing)
{
	int left = is_finishing ? LAST - (int)c->finished : BATCH, got = 1;

	while (left-- > 0) {
		if (!c->held)
			got = receive_one(c);
		if (got <= 0)
			break;
		if (!pass_on(c))
			return;
		c->finished += is_finishing;
	}
	if (got < 0 || is_finishing)
		end_pair(c);
}

static void refuse_conn(struct user_receiver_conn *c, bool at_once)
{
	uint64_t now_ms =
		at_once ? c->refusal.since_ms + REFUSE_FULL_MS : monotonic_ms();

	if (!refuse_full_answer(&c->refusal, now_ms))
		return;
	pthread_mutex_lock(&c->of->lock);
	c->is_closing = true;
	pthread_mutex_unlock(&c->of->lock);
}

/* Serves the connections that have an event or have to end.  A refused
 * connection is looked at in any case, since its time may be over. */
static void serve_turn(struct user_receiver *r)
{
	struct receiver_turn *t = &r->turn;
	uint32_t silent = 0;
	uint64_t count;

	if (t->polled[0].revents &&
	    read(r->wake_fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		return;
	for (uint32_t i = 0; i < t->conns; i++) {
		struct user_receiver_conn *c = t->conn[i];

		if (c->is_refused)
			refuse_conn(c, ++silent > SILENT);
		else if (!is_over(c) && (t->polled[1 + i].revents ||
					 (t->is_finishing[i] && !c->held)))
			forward_messages(c, t->is_finishing[i]);
	}
}

/* Returns how long the turn may wait, in milliseconds.  wait_ms: the wait if no
 * connection limits it; -1: without an end.  A turn with a connection that has
 * to end does not wait: an earlier turn may have read wake_fd after the wake-up
 * for that connection, although its copy of the list was made before
 * is_finishing was set. */
static int patience_of(const struct receiver_turn *t, int wait_ms)
{
	if (t->has_finishing)
		return 0;
	return t->has_refused && wait_ms < 0 ? REFUSE_FULL_MS : wait_ms;
}

/* Takes one turn of a thread, and waits for at most wait_ms until a connection
 * has an event; -1: without an end.  False: the thread has nothing left to do.
 */
static bool take_turn(struct user_receiver *r, int wait_ms)
{
	struct receiver_turn *t = &r->turn;
	struct user_receiver_conn *closing;
	bool is_done;

	pthread_mutex_lock(&r->lock);
	closing = take_closing(r);
	copy_list(r, t);
	is_done = !t->conns && !closing && !r->is_spare;
	r->is_over = is_done;
	pthread_mutex_unlock(&r->lock);
	if (closing)
		close_all(r, closing);
	else if (!is_done && poll_sparse_all(t->polled, t->room, 1 + t->conns,
					     patience_of(t, wait_ms)) >= 0)
		serve_turn(r);
	return !is_done;
}

static void allow_signal(void)
{
	sigset_t one;

	sigemptyset(&one);
	sigaddset(&one, SIGURG);
	if (shared_load(&has_signal))
		pthread_sigmask(SIG_UNBLOCK, &one, NULL);
}

static void *receive_all(void *receiver)
{
	struct user_receiver *r = receiver;
	bool is_left;

	allow_signal();
	while (take_turn(r, -1))
		;
	pthread_mutex_lock(&r->lock);
	is_left = r->is_left;
	pthread_mutex_unlock(&r->lock);
	if (is_left)
		free_receiver(r);
	return NULL;
}

/* Starts the thread of r with all signals blocked: if the broker is a thread of
 * a program, the thread of r must not handle signals of that program. */
static int start_thread(struct user_receiver *r)
{
	pthread_attr_t attr;
	sigset_t all, old;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	err = pthread_create(&r->thread, &attr, receive_all, r);
	/* thread-local memory of a program can be larger than this stack */
	if (err == EINVAL)
		err = pthread_create(&r->thread, NULL, receive_all, r);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return err;
}

/* Makes a thread without a user.  Returns 0 or -errno; -EAGAIN: the kernel
 * starts no thread. */
static int make_spare(const struct user_receivers *s,
		      struct user_receiver **made)
{
	struct user_receiver *r = calloc(1, sizeof(*r));
	int err = 0;

	if (!r)
		return -ENOMEM;
	r->is_spare = true;
	r->user = USER_NONE;
	r->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (r->wake_fd < 0)
		err = errno;
	pthread_mutex_init(&r->lock, NULL);
	if (!err && !s->no_threads && start_thread(r))
		err = EAGAIN;
	if (err)
		free_receiver(r);
	else
		*made = r;
	return -err;
}

static void wake_thread(const struct user_receiver *r)
{
	const uint64_t one = 1;
	/* EAGAIN: the thread has not read 2^64 - 2 earlier wakes */
	ssize_t n = write(r->wake_fd, &one, sizeof(one));

	(void)n;
}

/* Adds c to the connections of r.  False: the thread of r ends. */
static bool add_conn(struct user_receiver *r, struct user_receiver_conn *c)
{
	bool is_added;

	pthread_mutex_lock(&r->lock);
	is_added = !r->is_over;
	if (is_added) {
		c->of = r;
		c->next = r->conn;
		r->conn = c;
		r->is_spare = false;
		r->unclosed += c->is_refused;
	}
	pthread_mutex_unlock(&r->lock);
	if (is_added)
		wake_thread(r);
	return is_added;
}

/* Returns how many connections of r are to be closed.  Sets *is_over, unless
 * is_over is NULL, to whether the thread has ended, or ends. */
static uint32_t count_unclosed(struct user_receiver *r, bool *is_over)
{
	uint32_t unclosed;

	pthread_mutex_lock(&r->lock);
	unclosed = r->unclosed;
	if (is_over)
		*is_over = r->is_over;
	pthread_mutex_unlock(&r->lock);
	return unclosed;
}

/* Joins the thread of r, which ends, and frees r. */
static void join_thread(const struct user_receivers *s, struct user_receiver *r)
{
	if (!s->no_threads)
		pthread_join(r->thread, NULL);
	free_receiver(r);
}

/* Frees the threads that have ended. */
static void free_ended(struct user_receivers *s)
{
	struct user_receiver **at = &s->first;

	while (*at) {
		struct user_receiver *r = *at;
		bool is_over;

		count_unclosed(r, &is_over);
		if (is_over) {
			*at = r->next;
			join_thread(s, r);
		} else {
			at = &r->next;
		}
	}
}

/* Gives c to the thread of `user`, or to the spare thread if that user has
 * none.  Returns 0, or make_spare's -errno if there is no thread. */
static int give_conn(struct user_receivers *s, uid_t user,
		     struct user_receiver_conn *c)
{
	struct user_receiver *r;
	int err = 0;

	for (r = s->first; r; r = r->next)
		if (user_is_same(r->user, user) && add_conn(r, c))
			return 0;
	/* free_ended closes the descriptors of threads that have ended:
	 * make_spare may need one. */
	if (!s->spare) {
		free_ended(s);
		err = make_spare(s, &s->spare);
	}
	r = s->spare;
	s->spare = NULL;
	if (err)
		return err;
	r->user = user;
	r->next = s->first;
	s->first = r;
	s->has_served = true;
	return add_conn(r, c) ? 0 : -EAGAIN;
}

/* Gives c, which is refused, to the thread of some other user, since no further
 * thread can be made.  False: there is none. */
static bool give_any(const struct user_receivers *s,
		     struct user_receiver_conn *c)
{
	struct user_receiver *r = s->first;

	while (r && !add_conn(r, c))
		r = r->next;
	return r;
}

void user_receiver_init(struct user_receivers *s, bool no_threads)
{
	*s = (struct user_receivers){.no_threads = no_threads};
	make_spare(s, &s->spare);
}

int user_receiver_take(struct user_receivers *s, int fd, uid_t user, int *in_fd,
		       struct user_receiver_conn **conn)
{
	struct user_receiver_conn *c = calloc(1, sizeof(*c));
	int pair[2], err;

	if (!c)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
		err = -errno;
		free(c);
		return err;
	}
	c->fd = fd;
	c->pair_fd = pair[1];
	err = give_conn(s, user, c);
	if (!err) {
		*in_fd = pair[0];
		*conn = c;
		return 0;
	}
	close(pair[0]);
	close(pair[1]);
	free(c);
	return err;
}

void user_receiver_refuse(struct user_receivers *s, int fd, uid_t user, int err,
			  const char *why)
{
	struct user_receiver_conn *c = calloc(1, sizeof(*c));

	if (c) {
		c->fd = fd;
		c->pair_fd = -1;
		c->is_refused = true;
		refuse_full_fill(&c->refusal, fd, err, why, monotonic_ms());
	}
	if (c && (!give_conn(s, user, c) || give_any(s, c)))
		return;
	/* There is no thread for the connection, or no memory. */
	free(c);
	close(fd);
}

void user_receiver_finish(struct user_receiver_conn *c)
{
	pthread_mutex_lock(&c->of->lock);
	c->is_finishing = true;
	pthread_mutex_unlock(&c->of->lock);
	wake_thread(c->of);
}

void user_receiver_close(struct user_receiver_conn *c)
{
	struct user_receiver *r = c->of;

	pthread_mutex_lock(&r->lock);
	c->is_closing = true;
	r->unclosed++;
	pthread_mutex_unlock(&r->lock);
	/* The thread may have ended meanwhile.  r is valid nevertheless: before
	 * user_receiver_end, only the caller's thread frees it. */
	wake_thread(r);
}

bool user_receiver_may_accept(const struct user_receivers *s)
{
	uint32_t of_nobody = 0;

	for (struct user_receiver *r = s->first; r; r = r->next) {
		uint32_t unclosed = count_unclosed(r, NULL);

		of_nobody += r->user == USER_NONE ? unclosed : 0;
		if (unclosed >= USER_RECEIVER_UNCLOSED)
			return false;
	}
	return of_nobody < USER_RECEIVER_UNCLOSED;
}

/* Does the work of a thread that does not exist. */
static void work_for(struct user_receiver *r)
{
	for (int i = 0; i < INLINE_TURNS && take_turn(r, 0); i++)
		;
}

static void interrupt_thread(const struct user_receivers *s,
			     const struct user_receiver *r)
{
	if (!s->no_threads && shared_load(&has_signal))
		pthread_kill(r->thread, SIGURG);
}

int user_receiver_turn(struct user_receivers *s, int wait)
{
	struct user_receiver *r;

	for (r = s->first; s->no_threads && r; r = r->next)
		work_for(r);
	free_ended(s);
	for (r = s->first; r; r = r->next) {
		if (!count_unclosed(r, NULL))
			continue;
		interrupt_thread(s, r);
		if (wait < 0 || wait > SIGNAL_MS)
			wait = SIGNAL_MS;
	}
	/* If user_receiver_init could make no spare thread, the loop does not
	 * try again until a thread has got a connection: the attempts might
	 * always fail. */
	if (!s->spare && s->has_served)
		make_spare(s, &s->spare);
	return wait;
}

/* Leaves r to its thread, which frees r when it ends. */
static void leave_receiver(struct user_receiver *r)
{
	pthread_t thread = r->thread;
	bool is_over;

	pthread_mutex_lock(&r->lock);
	is_over = r->is_over;
	r->is_left = !is_over;
	pthread_mutex_unlock(&r->lock);
	if (!is_over) {
		pthread_detach(thread);
		return;
	}
	pthread_join(thread, NULL);
	free_receiver(r);
}

/* Waits for the thread for END_MS at most.  CLOCK_REALTIME would make the wait
 * longer if somebody sets it back meanwhile. */
static void await_thread(struct user_receiver *r)
{
	struct timespec until;

	monotonic_after(END_MS, &until);
	if (pthread_clockjoin_np(r->thread, NULL, CLOCK_MONOTONIC, &until))
		leave_receiver(r);
	else
		free_receiver(r);
}

static void end_receiver(const struct user_receivers *s,
			 struct user_receiver *r)
{
	pthread_mutex_lock(&r->lock);
	r->is_spare = false;
	for (struct user_receiver_conn *c = r->conn; c; c = c->next) {
		r->unclosed += !c->is_closing && !c->is_refused;
		c->is_closing = true;
	}
	pthread_mutex_unlock(&r->lock);
	wake_thread(r);
	interrupt_thread(s, r);
	if (!s->no_threads) {
		await_thread(r);
		return;
	}
	work_for(r);
	free_receiver(r);
}

void user_receiver_end(struct user_receivers *s)
{
	while (s->first) {
		struct user_receiver *r = s->first;

		s->first = r->next;
		end_receiver(s, r);
	}
	if (s->spare)
		end_receiver(s, s->spare);
	s->spare = NULL;
}
