/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/broker_link.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker/client.h"
#include "broker/steer.h"
#include "device/netif.h"
#include "host/host.h"
#include "host/local_peer.h"
#include "host/source_port.h"
#include "log/log.h"
#include "util/shared.h"
#include "wire/udp.h"

#define ROCEV2_UDP_PORT 4791
/* The most open questions; beyond that the engine has to ask again later. */
#define QUESTIONS 256
#define NS_PER_MS 1000000u
/* When a question without an answer is asked again.  The broker answers within
 * half a second, but drops an answer for which this process's socket has no
 * room. */
#define AGAIN_NS 2000000000u

/*
 * A question whether a peer lives.  qpn: the QP of this process; connection: of
 * the event by which the QP asks; dest_qpn: the peer's QP; self, host: the
 * addresses of this host and of the peer's host, all 0 if the peer is on this
 * host; scope: the interface of a link-local `self`, or 0.
 */
struct peer_question {
	uint32_t qpn, connection, dest_qpn, scope;
	uint8_t self[16], host[16];
	/* The broker is asked this question.  The other questions about the
	 * same process are not asked: the broker's answer also serves them,
	 * except for the answer LEFT (is_answered). */
	bool is_asked;
	bool is_owed;	 /* not sent yet: no broker, or no room in the socket */
	bool is_over;	 /* the process has ended; see broker_link_reap_dead */
	uint64_t put_ns; /* when the question was last sent, or was to be */
};

static struct client broker;
static bool has_broker;
static struct peer_question question[QUESTIONS];
static uint32_t questions;
static bool wants_turn; /* an answer is outstanding */
/* Since when questions of source_port.c have been outstanding all the time, or
 * when these were last asked again; 0: none is outstanding. */
static uint64_t sources_ns;
static bool has_dead; /* is_over is set in a question */
/* The thread that waits reads seen_fd and changes, and writes woken, without a
 * lock.  seen_fd: the descriptor + 1; woken: the descriptor is readable;
 * changes: counts changes of the descriptor, of the file behind it, and of
 * broker_link_due_ns. */
static shared_u32 seen_fd, woken, changes;
/* At the last change: the inode number of the file, 0 if there is no file, and
 * broker_link_due_ns. */
static ino_t seen_file;
static uint64_t seen_due_ns;

/* Publishes the descriptor.  `changes` stays the same if nothing that it counts
 * has changed: otherwise each turn while an answer is outstanding would end the
 * wait of the thread that waits, and have that thread make a new epoll set. */
static void publish_fd(void)
{
	uint64_t due_ns = broker_link_due_ns();
	int fd = has_broker ? client_fd(&broker) : -1;
	struct stat s;
	/* The descriptor of a later connection may have the same number. */
	ino_t file = fd >= 0 && !fstat(fd, &s) ? s.st_ino : 0;

	if (shared_own(&seen_fd) == (uint32_t)(fd + 1) && file == seen_file &&
	    due_ns == seen_due_ns)
		return;
	seen_file = file;
	seen_due_ns = due_ns;
	shared_store(&seen_fd, (uint32_t)(fd + 1));
	/* `changes` is stored after seen_fd: a thread that loads the new
	 * `changes` then loads the new seen_fd.  In the other order the thread
	 * could note the new `changes` with the old seen_fd, and then wait on
	 * the old descriptor. */
	shared_store(&changes, shared_own(&changes) + 1);
}

static void judge_broker(void)
{
	if (broker.is_named)
		log_say(LOG_BROKER_FOREIGN, 0,
			"this process uses the broker adverbd of user %u, "
			"because ADVERB_BROKER_USER names that user: the user "
			"can read and change what this process sends, receives "
			"and registers; unset ADVERB_BROKER_USER unless you "
			"trust the user",
			(unsigned)broker.broker.user);
	if (broker.hides_arena)
		log_say(LOG_BROKER_HIDDEN, 0,
			"the broker adverbd cannot pass on this process's "
			"memory, because this user has more descriptors in "
			"flight than the hard limit on open files allows: "
			"other processes of this host send packets instead, "
			"which is slower; have root raise the limit (ulimit "
			"-Hn)");
}

static void say_word(enum client_word word, const char *sentence)
{
	log_say(LOG_BROKER_CLIENT, word, "%s", sentence);
}

/*
 * Binds UDP port 4791 without a broker.  @err: why there is no broker.  Does
 * not try to bind if another program has the port, or if there is a broker that
 * this process cannot use.  Returns a descriptor, or -errno: `err` if the bind
 * was not tried or another socket has the port, else the error of udp_bind.
 */
static int bind_alone(int err)
{
	int fd;

	if (err == -EADDRINUSE || err == -ETIMEDOUT ||
	    err == -EPROTONOSUPPORT || err == -EACCES)
		return err;
	fd = udp_bind(ROCEV2_UDP_PORT);
	return fd == -EADDRINUSE ? err : fd;
}

int broker_link_socket(int arena_fd, int peer_wake_fd, uint64_t patience_ns)
{
	const struct client_want want = {.arena_fd = arena_fd,
					 .peer_wake_fd = peer_wake_fd,
					 .patience_ms = patience_ns / NS_PER_MS,
					 .say = say_word};
	const char *why = "";
	int err = client_open(&broker, &want, &why);

	has_broker = !err;
	questions = 0;
	has_dead = false;
	if (!err) {
		/* progress and the client each close their own descriptor */
		int fd = fcntl(broker.udp_fd, F_DUPFD_CLOEXEC, 0);

		err = fd < 0 ? -errno : 0;
		if (err)
			broker_link_close();
		else
			judge_broker();
		publish_fd();
		return err ? err : fd;
	}
	log_say(LOG_BROKER_NONE, 0, "%s", why);
	return bind_alone(err);
}

void broker_link_close(void)
{
	if (has_broker)
		client_close(&broker);
	has_broker = false;
	publish_fd();
}

void broker_link_tree(int devices_fd)
{
	if (has_broker)
		client_tree(&broker, devices_fd);
	else
		close(devices_fd);
}

uint32_t broker_link_qpn(uint32_t random)
{
	return has_broker ? steer_qpn(broker.class, random & 0x3fff)
			  : random & 0xffffff;
}

uint32_t broker_link_class(uint32_t qpn)
{
	return steer_class(qpn);
}

void *broker_link_page(void)
{
	return has_broker ? client_page(&broker) : NULL;
}

bool broker_link_page_of(uint32_t qpn, const void **page)
{
	if (!has_broker)
		return !*page;
	if (client_page_of(&broker, steer_class(qpn), page))
		return true;
	wants_turn = true;
	return false;
}

static bool is_same_process(const struct peer_question *a,
			    const struct peer_question *b)
{
	return !memcmp(a->host, b->host, 16) &&
	       steer_class(a->dest_qpn) == steer_class(b->dest_qpn);
}

static bool is_here(const struct peer_question *q)
{
	static const uint8_t here[16];

	return !memcmp(q->host, here, 16);
}

static void put_question(struct peer_question *q, uint64_t now_ns)
{
	q->put_ns = now_ns;
	q->is_owed = is_here(q)
			     ? !client_ask(&broker, q->dest_qpn)
			     : !client_ask_remote(&broker, q->dest_qpn, q->self,
						  q->host, q->scope);
}

/* Does a question wait for an answer?  Questions that are over wait for
 * broker_link_reap_dead. */
static bool awaits_answer(void)
{
	for (uint32_t i = 0; i < questions; i++)
		if (!question[i].is_over)
			return true;
	return false;
}

/* Has the question waited so long that its answer may be lost? */
static bool is_late(const struct peer_question *q, uint64_t now_ns)
{
	return q->is_asked && !q->is_over && now_ns - q->put_ns >= AGAIN_NS;
}

/* Sends the questions that could not be sent before, and those that have no
 * answer for long, until one cannot be sent now. */
static void put_owed(uint64_t now_ns)
{
	for (uint32_t i = 0; i < questions; i++) {
		if (question[i].is_owed || is_late(&question[i], now_ns))
			put_question(&question[i], now_ns);
		if (question[i].is_owed)
			return;
	}
}

/* Asks the questions of source_port.c again if some have no answer for long. */
static void put_sources(uint64_t now_ns)
{
	bool is_asking = source_port_is_asking();

	if (is_asking && sources_ns && now_ns - sources_ns < AGAIN_NS)
		return;
	if (is_asking && sources_ns)
		source_port_ask_again();
	sources_ns = is_asking ? now_ns : 0;
}

/* Gives the engine an answer to the question q. */
static void tell_engine(struct engine *engine, const struct peer_question *q,
			enum engine_peer state, uint64_t now_ns)
{
	engine_peer_state(engine, q->qpn, q->connection, state, now_ns);
}

/* Makes the engine ask the question q again later, until its patience ends.
 * The answer UNKNOWN could fail the QP of a peer that lives. */
static void put_off(struct engine *engine, const struct peer_question *q,
		    uint64_t now_ns)
{
	tell_engine(engine, q, ENGINE_PEER_ALIVE, now_ns);
}

void broker_link_ask(struct engine *engine, const struct engine_event *e,
		     uint64_t now_ns)
{
	struct peer_question q = {.qpn = e->qpn,
				  .connection = e->connection,
				  .dest_qpn = e->dest_qpn,
				  .is_asked = true};

	/* The broker knows no QPs of other hosts of a fabric. */
	if (!has_broker || inaddr_is_lid(e->peer.ip)) {
		tell_engine(engine, &q, ENGINE_PEER_UNKNOWN, now_ns);
		return;
	}
	if (!netif_is_local(e->peer.ip)) {
		q.scope = netif_scope(e->self.ip, 0);
		memcpy(q.self, e->self.ip, 16);
		memcpy(q.host, e->peer.ip, 16);
	}
	for (uint32_t i = 0; i < questions; i++) {
		if (!is_same_process(&question[i], &q))
			continue;
		if (question[i].qpn == q.qpn) {
			/* The answer to come may be about an earlier
			 * connection of the QP. */
			if (question[i].connection != q.connection)
				put_off(engine, &q, now_ns);
			return;
		}
		q.is_asked &= !question[i].is_asked;
		q.is_over |= question[i].is_over;
	}
	if (questions == QUESTIONS) { /* there is no room for this question */
		put_off(engine, &q, now_ns);
		return;
	}
	if (q.is_asked)
		put_question(&q, now_ns);
	question[questions++] = q;
	wants_turn = true;
}

bool broker_link_ask_arena(uint32_t class)
{
	if (!has_broker || !client_ask_arena(&broker, class))
		return false;
	wants_turn = true;
	return true;
}

bool broker_link_ask_source(uint32_t class, const struct inaddr *from,
			    const struct inaddr *to)
{
	if (!has_broker || !client_ask_source(&broker, class, from, to))
		return false;
	wants_turn = true;
	return true;
}

static enum engine_peer engine_word(enum client_peer state)
{
	switch (state) {
	case CLIENT_PEER_GONE:
		return ENGINE_PEER_GONE;
	case CLIENT_PEER_ALIVE:
		return ENGINE_PEER_ALIVE;
	case CLIENT_PEER_CLOSED:
		return ENGINE_PEER_CLOSED;
	case CLIENT_PEER_LEFT:
		return ENGINE_PEER_LEFT;
	case CLIENT_PEER_UNKNOWN:
		break;
	}
	return ENGINE_PEER_UNKNOWN;
}

/* Asks the broker one of the questions about the peer's process that `about`
 * names, unless one of them is asked already, or that process has ended. */
static void ask_next(const struct peer_question *about, uint64_t now_ns)
{
	struct peer_question *next = NULL;

	for (uint32_t i = 0; i < questions; i++) {
		if (!is_same_process(&question[i], about))
			continue;
		if (question[i].is_asked || question[i].is_over)
			return;
		if (!next)
			next = &question[i];
	}
	if (!next)
		return;
	next->is_asked = true;
	put_question(next, now_ns);
}

/* Does the broker's answer about a queue pair answer the question q about the
 * same process? */
static bool is_answered(const struct peer_question *q,
			const struct client_news *news)
{
	/* LEFT says nothing about the process, nor about its other queue
	 * pairs. */
	return news->peer != CLIENT_PEER_LEFT || q->dest_qpn == news->qpn;
}

/* Acts on an answer to the question q, which is not over.  True: q has to wait
 * for broker_link_reap_dead. */
static bool take_answer(struct engine *engine, struct peer_question *q,
			const struct client_news *news, uint64_t now_ns)
{
	enum client_peer peer = news->peer;

	if (peer == CLIENT_PEER_GONE) {
		q->is_over = has_dead = true;
		return true;
	}
	/* The answer is about another queue pair of the process, so for this
	 * question it says only that the process lives. */
	if (peer == CLIENT_PEER_CLOSED && q->dest_qpn != news->qpn)
		peer = CLIENT_PEER_ALIVE;
	tell_engine(engine, q, engine_word(peer), now_ns);
	return false;
}

static void serve_answers(struct engine *engine, const struct client_news *news,
			  uint64_t now_ns)
{
	struct peer_question about = {.dest_qpn = news->qpn};
	uint32_t kept = 0;

	memcpy(about.host, news->host, 16);
	for (uint32_t i = 0; i < questions; i++) {
		struct peer_question *q = &question[i];

		if (!is_same_process(q, &about) || q->is_over ||
		    !is_answered(q, news) ||
		    take_answer(engine, q, news, now_ns))
			question[kept++] = *q;
	}
	questions = kept;
	ask_next(&about, now_ns);
}

bool broker_link_has_dead(void)
{
	return has_dead;
}

void broker_link_reap_dead(struct engine *engine, uint64_t now_ns)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < questions; i++) {
		if (question[i].is_over)
			tell_engine(engine, &question[i], ENGINE_PEER_GONE,
				    now_ns);
		else
			question[kept++] = question[i];
	}
	questions = kept;
	has_dead = false;
	/* Another process may now have the ports of the dead one. */
	engine_forget_sources(engine);
}

/* Asks a new broker the questions that its predecessor has not answered. */
static void ask_again(uint64_t now_ns)
{
	judge_broker();
	for (uint32_t i = 0; i < questions; i++)
		if (question[i].is_asked && !question[i].is_over)
			put_question(&question[i], now_ns);
	local_peer_forget_questions();
	source_port_ask_again();
}

/* Says what becomes of open connections without a broker.  Packets come by the
 * process's own socket, unless its class is from another user's broker, which
 * has relayed them, or the successor does not know the class (-ESTALE). */
static const char *fate_of_connections(void)
{
	if (broker.token || broker.err == -ESTALE)
		return "packets may no longer reach this process; open "
		       "connections that need packets then fail";
	return "open connections continue without a broker";
}

/* Ends the questions that no broker has answered, since no broker can be used.
 * ALIVE about a peer of this host lets its connection continue until the
 * engine's patience ends. */
static void give_up(struct engine *engine, uint64_t now_ns)
{
	uint32_t kept = 0;

	log_say(LOG_BROKER_ALONE, 0,
		"the broker adverbd has died, and this process cannot use its "
		"successor: %s; %s",
		broker.reason, fate_of_connections());
	for (uint32_t i = 0; i < questions; i++) {
		if (question[i].is_over)
			question[kept++] = question[i];
		else
			tell_engine(engine, &question[i],
				    is_here(&question[i]) ? ENGINE_PEER_ALIVE
							  : ENGINE_PEER_UNKNOWN,
				    now_ns);
	}
	questions = kept;
	local_peer_forget_questions();
	source_port_give_up(engine, now_ns);
}

void broker_link_turn(struct engine *engine, uint64_t now_ns)
{
	struct client_news news;

	if (!has_broker || (!wants_turn && !shared_load(&woken) &&
			    now_ns / NS_PER_MS < client_due_ms(&broker)))
		return;
	/* 0 is stored before client_turn reads the descriptor.  In the other
	 * order this store could overwrite the 1 that the thread that waits
	 * stores when data arrives after the read (broker_link_woken). */
	shared_store(&woken, 0);
	while (client_turn(&broker, &news)) {
		if (news.what == CLIENT_NEWS_BACK)
			ask_again(now_ns);
		else if (news.what == CLIENT_NEWS_ARENA)
			local_peer_answered(&news);
		else if (news.what == CLIENT_NEWS_SOURCE)
			source_port_answered(engine, &news, now_ns);
		else if (news.what == CLIENT_NEWS_DIED) {
			local_peer_died();
			if (engine) /* NULL in a test */
				engine_forget_sources(engine);
		} else
			serve_answers(engine, &news, now_ns);
	}
	if (broker.state == CLIENT_ALONE)
		give_up(engine, now_ns);
	put_owed(now_ns);
	put_sources(now_ns);
	wants_turn = awaits_answer() || local_peer_is_asking() ||
		     source_port_is_asking();
	publish_fd();
}

int broker_link_new_relay(void)
{
	return has_broker ? client_new_relay(&broker) : -1;
}

int broker_link_fd(void)
{
	return (int)shared_load(&seen_fd) - 1;
}

uint32_t broker_link_changes(void)
{
	return shared_load(&changes);
}

uint64_t broker_link_due_ns(void)
{
	uint64_t due = has_broker ? client_due_ms(&broker) : UINT64_MAX;

	if (has_dead)
		return 0;
	return due == UINT64_MAX ? due : due * NS_PER_MS;
}

void broker_link_woken(void)
{
	shared_store(&woken, 1);
}
