/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/dial.h"

#include "broker/port_holder.h"
#include "broker/other_version.h"
#include "broker/reason.h"
#include "broker/start.h"
#include "broker/trust.h"
#include "util/monotonic.h"
#include "util/printable.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define OPEN_MS	  15000 /* how long to try to reach or to start a broker */
#define ANSWER_MS 30000 /* how long to wait for the broker's answer */
/* how often to try to connect while another process starts the broker */
#define SEEK_MS 1
/* If the dead broker was of another user, the time for which only that user's
 * programs start a broker. */
#define OTHER_USER_MS 1000
#define ERRNO_END     4096 /* no errno of the kernel is so large */

struct call {
	uint64_t end_ms; /* when the search for a broker ends */
	/* until when only programs of another user start a broker; 0: this
	 * process may start one now */
	uint64_t other_user_ms;
	bool has_looked;    /* may_start has decided other_user_ms */
	client_say *say;    /* the caller's, or NULL */
	struct start start; /* the start, and the sentence about a failure */
};

/* Held during a call: this library has one start at a time (start.h). */
static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
/* The broker of the last call; 0: none.  Each new call counts this broker as
 * lost (start_lost). */
static pid_t last;

/* A child of fork has only one thread: the lock may be held by a thread that
 * the child does not have. */
static void after_fork(void)
{
	pthread_mutex_init(&one, NULL);
	last = 0;
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, after_fork);
}

static void wait_for(int fd, uint64_t end_ms)
{
	struct pollfd p = {fd, POLLIN, 0};
	uint64_t now = monotonic_ms();

	if (end_ms > now)
		poll(&p, 1, (int)(end_ms - now));
}

static bool may_start(struct call *c)
{
	if (!c->has_looked && port_holder_is_other_user())
		c->other_user_ms = monotonic_ms() + OTHER_USER_MS;
	c->has_looked = true;
	return monotonic_ms() >= c->other_user_ms;
}

/* Starts a broker, and waits until it serves.  Returns 0 or -errno. */
static int start_broker(struct call *c)
{
	int err = start_begin(&c->start, monotonic_ms(), OPEN_MS);

	while (err == -EINPROGRESS) {
		wait_for(c->start.status_fd, c->start.limit_ms);
		err = start_turn(&c->start, monotonic_ms());
	}
	if (!err && *c->start.sentence && c->say)
		c->say(CLIENT_SAYS_THREAD, c->start.sentence);
	return err;
}

static int check_trust(struct call *c, const struct ucred *who)
{
	if (trust_in(who->uid) != TRUST_NOT)
		return 0;
	trust_refusal(who->uid, who->pid, c->start.sentence,
		      sizeof(c->start.sentence));
	return -EACCES;
}

/* Connects to the broker if the broker is trusted.  Returns the socket or
 * -errno. */
static int connect_trusted(struct call *c)
{
	struct ucred who;
	int err = proto_look(PROTO_VERSION, &who);

	if (!err)
		err = check_trust(c, &who);
	return err ? err : proto_connect(PROTO_VERSION);
}

/* Connects to the broker, and starts one if there is none.  Returns the socket
 * or -errno. */
static int reach_broker(struct call *c)
{
	int err;

	for (;;) {
		int fd = connect_trusted(c);

		if (fd != -ECONNREFUSED && fd != -EAGAIN)
			return fd;
		err = -EAGAIN;
		if (fd == -ECONNREFUSED && may_start(c))
			err = start_broker(c);
		if (err && err != -EAGAIN)
			return err;
		if (monotonic_ms() >= c->end_ms)
			return -ETIMEDOUT;
		if (err)
			poll(NULL, 0, SEEK_MS);
	}
}

/* Asks for the broker's introduction, and stores in *m the broker's answer, an
 * introduction or a refusal.  Returns 0 or -errno. */
static int ask_broker(int fd, struct proto *m)
{
	struct proto who = {.magic = PROTO_MAGIC,
			    .version = PROTO_VERSION,
			    .kind = PROTO_WHO};
	uint64_t end = monotonic_ms() + ANSWER_MS;
	int fds[PROTO_FDS], err = proto_send(fd, &who, NULL);

	if (err && err != -EPIPE)
		return err;
	for (;;) {
		*m = (struct proto){0};
		err = proto_receive(fd, m, fds);
		for (int i = 0; i < PROTO_FDS; i++)
			if (fds[i] >= 0)
				close(fds[i]);
		if (err == -ECONNRESET)
			/* -ECONNRESET comes once: the broker's last message is
			 * next */
			continue;
		if (err != -EAGAIN)
			return err;
		if (monotonic_ms() >= end)
			return -ETIMEDOUT;
		wait_for(fd, end);
	}
}

static struct ucred peer_of(int fd)
{
	struct ucred who = {0};
	socklen_t length = sizeof(who);

	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length);
	return who;
}

static void note_broker(int fd, const struct proto *m, struct dial_broker *b)
{
	struct ucred who = peer_of(fd);

	*b = (struct dial_broker){
		.pid = who.pid, .user = who.uid, .idle_s = m->idle_s};
	memcpy(b->release, m->release, sizeof(b->release) - 1);
	printable_make(b->release);
}

static void explain_failure(const struct call *c, int err,
			    char why[START_SENTENCE])
{
	if (err == -ETIMEDOUT && last)
		snprintf(why, START_SENTENCE,
			 "the broker adverbd (process %d) does not answer: let "
			 "it run (kill -CONT, a debugger), or end it",
			 (int)last);
	else if (*c->start.sentence)
		snprintf(why, START_SENTENCE, "%s", c->start.sentence);
	else
		reason_unreached(err == -ETIMEDOUT ? EAGAIN : -err, why);
}

/* Writes to `why` a sentence about m, the broker's refusal.  err: the result of
 * ask_broker, 0 or -EPROTONOSUPPORT.  Returns -errno. */
static int explain_refusal(int fd, int err, const struct proto *m,
			   char why[START_SENTENCE])
{
	const struct ucred who = peer_of(fd);

	if (err) {
		snprintf(why, START_SENTENCE, "the broker adverbd, ");
		other_version_say(&who, m, why + strlen(why),
				  START_SENTENCE - strlen(why));
		return err;
	}
	snprintf(why, START_SENTENCE, "%.*s", (int)sizeof(m->why) - 1, m->why);
	printable_make(why);
	return m->value && m->value < ERRNO_END ? -(int)m->value : -EPROTO;
}

/* Connects to a broker, and stores its answer in *m.  Tries again while brokers
 * end before they answer.  Returns 0 or -errno.  After 0 and -EPROTONOSUPPORT,
 * *fd is open. */
static int call_broker(struct call *c, int *fd, struct proto *m)
{
	struct ucred who;
	int err;

	do {
		*fd = reach_broker(c);
		if (*fd < 0)
			return *fd;
		c->start.sentence[0] = '\0';
		who = peer_of(*fd);
		last = who.pid;
		/* Since connect_trusted looked, another process may have taken
		 * over the address. */
		err = check_trust(c, &who);
		if (!err)
			err = ask_broker(*fd, m);
		if (!err || err == -EPROTONOSUPPORT)
			return err;
		close(*fd);
		/* After -EPIPE the broker has ended: the next attempt finds or
		 * starts another one. */
		start_lost(last, monotonic_ms());
		if (err == -EPIPE)
			last = 0; /* the next broker is another process */
	} while (err == -EPIPE && monotonic_ms() < c->end_ms);
	return err;
}

static int open_one(struct call *c, int *fd, struct dial_broker *broker,
		    char why[START_SENTENCE])
{
	struct proto m;
	int err;

	start_lost(last, monotonic_ms());
	last = 0;
	err = call_broker(c, fd, &m);
	if (err && err != -EPROTONOSUPPORT) {
		explain_failure(c, err, why);
		return err;
	}
	if (err || m.kind != PROTO_WHO_IS) {
		err = explain_refusal(*fd, err, &m, why);
		close(*fd);
		return err;
	}
	if (broker)
		note_broker(*fd, &m, broker);
	fcntl(*fd, F_SETFL, 0); /* it was non-blocking */
	return 0;
}

int dial_open(int *fd, struct dial_broker *broker, client_say *say,
	      char why[START_SENTENCE])
{
	struct call c = {.say = say};
	int err;

	pthread_mutex_lock(&one);
	c.end_ms = monotonic_ms() + OPEN_MS;
	err = open_one(&c, fd, broker, why);
	pthread_mutex_unlock(&one);
	if (err)
		*fd = -1; /* not the number of a socket that is closed now */
	return err;
}
