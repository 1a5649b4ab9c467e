/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/progress.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "device/netif.h"
#include "engine/burst.h"
#include "engine/shm_ack.h"
#include "host/addresses.h"
#include "host/broker_link.h"
#include "host/capture.h"
#include "host/fabric_link.h"
#include "host/frames.h"
#include "host/inside.h"
#include "host/local_peer.h"
#include "host/mcast_socket.h"
#include "host/source_port.h"
#include "host/suspect_log.h"
#include "host/wait_plan.h"
#include "log/log.h"
#include "memory/copy_nofault.h"
#include "util/bits.h"
#include "util/fd_identity.h"
#include "util/monotonic.h"

#define TURN_ROUNDS 4	     /* batches that one turn reads */
#define LATE_ROUNDS 64	     /* batches that a turn after a long sleep reads */
#define ASLEEP_NS   10000000 /* if a timer is later, the process has slept */
#define VAIN_POLLS  20000    /* about a millisecond of polls */
#define TX_ROUNDS   16	    /* batches that one call of transmit_frames sends */
#define CHECK_NS    1000000 /* between calls of progress_has_files */
#define EVENT_BATCH 16
#define QUIT_NS	    1000000000 /* how long progress_quit waits for the lock */
#define QUIT_NAP_NS 50000      /* between two tries */
#define REST_NS	    1000000000 /* how long send_rest waits for room */
#define PUBLISH_NS  100000000  /* between writes of the counters */

int progress_init(struct progress *p, struct engine *e, int fd,
		  const struct host_sink *sink, struct udp_offload allowed,
		  bool one_port)
{
	int err;

	memset(p, 0, sizeof(*p));
	err = udp_init(&p->wire, fd, allowed, one_port);
	if (err)
		return err;
	p->wire.seal = burst_seal_segment;
	lock_init(&p->lock);
	p->engine = e;
	p->sink = *sink;
	clock_init(&p->clock);
	p->last_turn_ns = p->now_ns = p->published_ns = clock_now(&p->clock);
	poll_policy_init(&p->policy);
	p->wake.awaited_fd = p->wake.fd = p->tx.full_fd = -1;
	direct_select_init(&p->direct_select);
	post_lock_init_all(&p->posts);
	stream_set_init(&p->streams);
	shared_store(&p->activity.posted_on, UINT32_MAX);
	return 0;
}

void progress_fini(struct progress *p)
{
	engine_publish(p->engine);
	stream_set_drain(&p->streams);
	stream_set_fini(&p->streams);
	engine_free(p->engine);
	udp_fini(&p->wire);
	post_lock_fini_all(&p->posts);
	lock_fini(&p->lock);
}

/*
 * Disables cancellation of the thread that holds the lock, until the thread
 * releases the lock.  Called before the holder's first call that is a
 * cancellation point: a post or a poll without packets makes no such call, and
 * need not pay for this function.
 */
static void shield_holder(struct progress *p)
{
	if (!p->is_shielded)
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &p->cancel);
	p->is_shielded = true;
}

bool progress_is_behind(const struct progress *p)
{
	return !engine_is_choked(p->engine) &&
	       (p->batch.next < p->batch.count || p->wire.is_behind ||
		fabric_link_is_behind());
}

/* Gives the engine a page that it wants.  False: none is wanted or known. */
static bool find_page(struct progress *p)
{
	uint32_t qpn = engine_wants_page(p->engine);
	const void *page;

	if (!qpn)
		return false;
	shield_holder(p);
	page = engine_page_of(p->engine, qpn);
	if (!broker_link_page_of(qpn, &page))
		return false;
	engine_page(p->engine, qpn, page);
	return true;
}

/* Sends the bytes of the QPs that engine_tx has found to have streams. */
static bool send_streams(struct progress *p)
{
	if (!stream_set_is_open(&p->streams))
		return false;
	shield_holder(p);
	return stream_set_send(&p->streams, p->engine, p->now_ns);
}

static void transmit_frames(struct progress *p)
{
	struct engine_frame *f = p->tx.made;
	size_t n = UDP_BATCH, sent = UDP_BATCH;
	bool more = false;

	for (unsigned r = 0; r < TX_ROUNDS && (more || (n && sent == n)); r++) {
		n = engine_tx(p->engine, f, UDP_BATCH, p->now_ns);
		if (n || engine_has_wakes(p->engine))
			shield_holder(p);
		sent = frames_send(p, f, n);
		engine_tx_done(p->engine, sent);
		more = send_streams(p) && sent == n;
	}
	direct_select_wake(p->engine);
}

/* Makes the socket join datagrams (GRO), and tells the peers, which may send
 * more at once from then on. */
static void join_datagrams(struct progress *p)
{
	if (p->wire.joins || !p->wire.has.gro)
		return;
	udp_join_datagrams(&p->wire);
	if (p->wire.joins)
		engine_joins(p->engine);
}

static void receive_one(struct progress *p, const struct udp_dgram *got,
			uint64_t now)
{
	int device = addresses_device(&p->addresses, got->to.ip, got->ifindex);
	struct engine_dgram d = {
		.from = got->from,
		.to = got->to,
		.bytes = got->bytes,
		.len = got->len,
		.segment = got->segment,
		.tos = got->tos,
		.local = addresses_is_local(&p->addresses, got->from.ip),
		.device = device < 0 ? 0 : (uint32_t)device,
		.is_stray = device < 0,
	};

	capture_received(&d);
	engine_rx(p->engine, &d, now);
	source_port_find(p->engine, now);
	poll_policy_received(&p->policy, got->len, got->segment);
}

/* Gives the datagrams of the batch to the engine until the engine is choked.
 * Returns the number of bytes given. */
static size_t receive_batch(struct progress *p, uint64_t now)
{
	struct progress_batch *b = &p->batch;
	size_t bytes = 0;

	while (b->next < b->count && !engine_is_choked(p->engine)) {
		const struct udp_dgram *got = &b->got[b->next++];

		receive_one(p, got, now);
		bytes += got->len;
	}
	return bytes;
}

/* Reads the next batch if the last one is used up. */
static bool fill_batch(struct progress *p)
{
	struct progress_batch *b = &p->batch;

	if (b->next != b->count)
		return false;
	b->count = (uint32_t)udp_receive(&p->wire, b->got);
	b->next = 0;
	return true;
}

/* Reads up to @rounds batches; false if the engine got no datagram. */
static bool receive_rounds(struct progress *p, unsigned rounds, uint64_t now)
{
	size_t bytes = 0, count = p->batch.count - p->batch.next;

	do {
		if (fill_batch(p))
			count += p->batch.count;
		/* A peer may have written an ACK before it sent a packet of
		 * this batch, and the program must get the completions in that
		 * order. */
		shm_ack_look(engine_shm_ack(p->engine), now);
		bytes += receive_batch(p, now);
		/* The sender waits for the ACKs of this batch. */
		if (rounds > 1 && progress_is_behind(p) &&
		    engine_has_tx(p->engine))
			transmit_frames(p);
	} while (--rounds && progress_is_behind(p));
	if (poll_policy_joins(bytes, count))
		join_datagrams(p);
	poll_policy_looked(
		&p->policy, bytes,
		p->wire.is_drained && p->batch.next == p->batch.count, now,
		bytes < POLL_POLICY_BULK ? now : clock_now(&p->clock));
	if (poll_policy_is_empty(&p->policy, p->rest))
		engine_rx_empty(p->engine);
	return bytes;
}

/* Looks at the ACKs in shared memory, and at the socket unless @rounds is 0 or
 * the backoff forbids it; false if no packet came. */
static bool look_at_peers(struct progress *p, unsigned rounds, uint64_t now)
{
	bool any, may_look = rounds &&
			     poll_policy_may_look(&p->policy,
						  progress_is_behind(p), now);

	if (!may_look) {
		if (rounds)
			poll_policy_skipped(&p->policy);
		shm_ack_look(engine_shm_ack(p->engine), now);
		return false;
	}
	any = receive_rounds(p, rounds, now);
	if (!any)
		engine_hold_acks(p->engine, false);
	return any;
}

/* Does each QP have a connection of iWARP, and does no datagram wait for the
 * engine?  Then a poll does not look for datagrams, since none is for a QP.
 * The thread that waits for work drops those that come. */
static bool has_only_streams(const struct progress *p)
{
	uint32_t count = stream_set_count(&p->streams);

	return count && count == engine_qp_count(p->engine) &&
	       !progress_is_behind(p);
}

/* Receives the bytes that have come over streams; false if none have come. */
static bool receive_streams(struct progress *p)
{
	bool any = false;

	if (stream_set_is_open(&p->streams))
		for (unsigned r = 0;
		     r < TURN_ROUNDS && (!r || p->streams.has_more); r++)
			any |= stream_set_receive(&p->streams, p->engine,
						  p->now_ns);
	/* After the bytes, which may have come while this process was stopped.
	 * Also without a stream: a deadline in the past would end each wait. */
	stream_set_tick(&p->streams, p->engine, p->now_ns);
	if (any)
		poll_policy_news(&p->policy);
	return any;
}

/* Reports a failure of all devices, once. */
static void tell_fatal(struct progress *p)
{
	if (p->said.fatal)
		return;
	p->said.fatal = true;
	shield_holder(p);
	if (p->sink.fatal)
		p->sink.fatal();
}

/* Receives what has come over the link to a fabric, and gives the device layer
 * the changes of its ports; false if nothing has come. */
static bool receive_link(struct progress *p, unsigned rounds, bool was_woken)
{
	bool any = fabric_link_turn(p->engine, rounds, was_woken, p->now_ns);

	if (any) {
		poll_policy_news(&p->policy);
		fabric_link_show(p->ib, false);
	}
	if (fabric_link_has_ended())
		tell_fatal(p);
	return any;
}

/* Waits until there is room in the full socket or ring, or something comes over
 * the link to a fabric; at most @ns nanoseconds and one millisecond.  Receives
 * what has come over the link: after the end of the link its frames are
 * dropped, and need no room. */
static void await_room(struct progress *p, uint64_t ns)
{
	bool looks = !engine_is_choked(p->engine);
	struct pollfd waits[] = {
		{.fd = p->tx.full_fd, .events = POLLOUT},
		{.fd = looks ? fabric_link_fd() : -1, .events = POLLIN}};

	if (!fabric_link_wants_room(p->tx.full_fd))
		return;
	poll(waits, 2, (int)(ns / 1000000) + 1);
	if (waits[1].revents)
		receive_link(p, 1, true);
}

/*
 * Sends the frames that a full socket has left with the engine.  Called before
 * the process ends, or before the struct host is freed: the requests of these
 * frames may have completed, and a hardware adapter would have sent the frames.
 * Waits for room for at most REST_NS, since the fabric does not read from a
 * process whose receivers have stopped.
 */
static void send_rest(struct progress *p)
{
	uint64_t end = monotonic_ns() + REST_NS, now;

	shield_holder(p);
	while (p->tx.full_fd >= 0 && (now = monotonic_ns()) < end) {
		await_room(p, end - now);
		transmit_frames(p);
	}
}

/* Prints the sentence about a failure, once per cause and QP.  Each reason of a
 * drop counts as a cause. */
static void explain_failure(const struct explain *x)
{
	char text[512];

	explain_text(x, text, sizeof(text));
	log_say(LOG_QP_FAILURE, explain_key(x), "%s", text);
}

/* Reports the engine's events.  True: an event was a question to the broker,
 * whose answer may give the engine new work. */
static bool report_events(struct progress *p)
{
	struct engine_event ev[EVENT_BATCH];
	bool answered = false;
	size_t n;

	do {
		n = engine_events(p->engine, ev, EVENT_BATCH);
		if (n)
			shield_holder(p);
		for (size_t i = 0; i < n; i++) {
			if (ev[i].type == ENGINE_EXPLAIN) {
				explain_failure(&ev[i].explain);
			} else if (ev[i].type == ENGINE_ASK_PEER) {
				broker_link_ask(p->engine, &ev[i], p->now_ns);
				answered = true;
			} else {
				p->sink.event(&ev[i]);
				if (ev[i].type == ENGINE_CQ_EVENT)
					shared_store(
						&p->activity.events,
						shared_own(
							&p->activity.events) +
							1);
			}
		}
	} while (n == EVENT_BATCH);
	return answered;
}

/* Finds the processes whose QPs may be reached without packets. */
static bool find_local_peers(struct progress *p)
{
	if (!engine_is_undecided(p->engine))
		return false;
	shield_holder(p);
	return direct_select_find(p->engine);
}

void progress_settle(struct progress *p)
{
	do
		transmit_frames(p);
	while (report_events(p) || find_page(p) || find_local_peers(p));
}

void progress_count_unanswered(struct progress *p, const struct ibt_qp *q)
{
	if (engine_qp_is_unanswered(q))
		poll_policy_unanswered(&p->policy, p->now_ns);
}

void progress_serve_doorbells(struct progress *p)
{
	struct mpsc_node *n;

	/* mpsc_take costs an atomic exchange, so it is not called if the list
	 * seems empty.  If mpsc_seems_empty misses a doorbell, give_locks looks
	 * again. */
	if (mpsc_seems_empty(&p->doorbells))
		return;
	n = mpsc_take(&p->doorbells);
	poll_policy_scattered(&p->policy, p->now_ns);
	while (n) {
		struct ibt_qp *q = engine_qp_of_doorbell(n);

		/* The node leaves the list before the QP is served: a thread
		 * that posts from here on pushes the node again. */
		n = mpsc_next(n);
		progress_count_unanswered(p, q);
		engine_doorbell(p->engine, q, p->now_ns);
	}
}

/* Returns for how many ns this process did not run, if the timer at `due` is
 * late for that reason; else 0. */
static uint64_t slept_ns(const struct progress *p, uint64_t due)
{
	uint64_t now = p->now_ns, quiet = now - p->last_turn_ns;

	return due < now && now - due > ASLEEP_NS && quiet > ASLEEP_NS
		       ? bits_min_u64(now - due, quiet)
		       : 0;
}

/* Writes the counters to the page that `adverb top` reads. */
static void publish_counters(struct progress *p)
{
	if (p->now_ns - p->published_ns <= PUBLISH_NS)
		return;
	engine_publish(p->engine);
	p->published_ns = p->now_ns;
}

void progress_turn(struct progress *p)
{
	uint64_t now = p->now_ns, due = engine_deadline(p->engine);
	uint64_t slept = slept_ns(p, due);
	unsigned rounds = slept ? LATE_ROUNDS : TURN_ROUNDS;
	bool any, skips_socket, has_dead = broker_link_has_dead();

	shield_holder(p);
	/* This precedes the look at the socket, so that no timer expires for a
	 * peer whose datagram has arrived while this process slept. */
	if (slept)
		engine_was_asleep(p->engine, slept, now);
	engine_hold_acks(p->engine, shared_load(&p->activity.is_watched) ||
					    (p->rest && p->rest->holds_acks));
	/* With a dead peer or an expired timer, looks at the socket in any
	 * case: it may hold the peer's last packets, or the awaited ACK.  A
	 * host of a fabric has no bound socket. */
	skips_socket =
		((p->rest ? p->rest->socket_is_empty : has_only_streams(p)) ||
		 stream_set_goes_first(&p->streams) || fabric_link_is_open()) &&
		due > now && !has_dead;
	any = look_at_peers(p, skips_socket ? 0 : rounds, now);
	any |= receive_streams(p);
	any |= receive_link(p, rounds, p->rest);
	progress_serve_doorbells(p);
	if (has_dead && p->policy.looks.is_dry)
		broker_link_reap_dead(p->engine, now);
	engine_tick(p->engine, now);
	broker_link_turn(p->engine, now);
	udp_take_relay(&p->wire, broker_link_new_relay());
	direct_select_look(&p->direct_select, p->engine, now);
	if (any) {
		suspect_log_junk(p->engine, &p->said.junk);
		suspect_log_say(p->engine);
	}
	progress_settle(p);
	publish_counters(p);
	direct_select_turned(&p->direct_select, p->engine, any, now);
	p->last_turn_ns = now;
}

void progress_wake(struct progress *p)
{
	uint64_t one = 1;

	/* syscall is no cancellation point, but write is one, and a thread that
	 * posts must not be cancelled here. */
	if (fd_identity_holds(p->wake.fd) &&
	    syscall(SYS_write, p->wake.fd, &one, sizeof(one)) < 0)
		return; /* the counter is full, so the thread wakes */
}

bool progress_has_files(struct progress *p)
{
	bool has = udp_is_ours(&p->wire) && fabric_link_is_ours() &&
		   (p->wake.fd < 0 || fd_identity_holds(p->wake.fd));

	if (!has) {
		shared_store(&p->wire.is_lost, true);
		log_say(LOG_FILES_CLOSED, 0,
			"the program has closed file descriptors of adverb, or "
			"has lowered ulimit -n below them, so adverb sends and "
			"receives no packets any more; change the program to "
			"close only descriptors that it has opened, or to open "
			"the device afterwards");
	}
	return has;
}

/* Called by a thread that has just taken the lock and all post locks: renews
 * the time, pushes a doorbell for each QP whose requests wait under a post
 * lock, and each CHECK_NS checks the descriptors. */
static void begin_holding(struct progress *p) REQUIRES(&p->lock)
{
	struct ibt_qp *q;

	p->now_ns = clock_now(&p->clock);
	copy_nofault_turn(p->now_ns);
	while ((q = post_lock_take_over(&p->posts, p->now_ns)))
		mpsc_push(&p->doorbells, engine_qp_doorbell(q));
	if (p->now_ns - p->checked_ns <= CHECK_NS)
		return;
	p->checked_ns = p->now_ns;
	shield_holder(p); /* progress_has_files may print a message */
	udp_check_senders(&p->wire);
	if (!progress_has_files(p))
		tell_fatal(p);
}

bool progress_try(struct progress *p) NO_LOCK_ANALYSIS
{
	if (!lock_try(&p->lock))
		return false;
	post_lock_take_all(&p->posts);
	begin_holding(p);
	return true;
}

/* Releases the lock and all post locks.  True: another thread has left a
 * doorbell meanwhile, which the caller serves if the lock is still free. */
static bool give_locks(struct progress *p) NO_LOCK_ANALYSIS
{
	bool wake = wait_plan_is_over(p), is_shielded = p->is_shielded;
	int cancel = p->cancel;

	/* is_resting is cleared under the lock, so that no later holder wakes
	 * the leader (leader.h) again. */
	if (wake)
		shared_store(&p->wake.is_resting, 0);
	p->is_shielded = false;
	post_lock_give_all(&p->posts);
	lock_give(&p->lock);
	if (wake)
		progress_wake(p);
	if (is_shielded)
		pthread_setcancelstate(cancel, NULL);
	/* lock_give orders its store that releases the lock before this load.
	 * A thread that posts pushes its doorbell before it tries the lock.  So
	 * if that thread has found the lock held, this load sees the doorbell.
	 * Without that order the load could miss it, and no thread would serve
	 * it. */
	return !mpsc_seems_empty(&p->doorbells);
}

void progress_release(struct progress *p) NO_LOCK_ANALYSIS
{
	while (give_locks(p) && progress_try(p)) {
		progress_serve_doorbells(p);
		progress_settle(p);
	}
}

static void serve_and_give(struct progress *p) NO_LOCK_ANALYSIS
{
	progress_serve_doorbells(p);
	progress_settle(p);
	progress_release(p);
}

/*
 * Is there nothing to do for this poll?  That is so for most polls, which only
 * look at the socket here, and seldom read the clock.  Datagrams that such a
 * look receives stay in the batch for progress_turn.  While most polls skip
 * progress (direct_select_may_skip), a poll that does not skip it makes a full
 * turn.
 */
static bool is_still(struct progress *p) REQUIRES(&p->lock)
{
	if (direct_select_is_quiet(&p->direct_select) ||
	    poll_policy_is_full_turn(&p->policy) ||
	    !mpsc_seems_empty(&p->doorbells) || engine_has_tx(p->engine) ||
	    engine_owes(p->engine) || engine_has_notify(p->engine) ||
	    shm_ack_has_news(engine_shm_ack(p->engine)))
		return false;
	if (stream_set_is_open(&p->streams) &&
	    stream_set_has_news(&p->streams, p->now_ns))
		return false;
	if (fabric_link_has_news())
		return false;
	/* One poll in eight makes a full turn, which looks at the UDP socket
	 * unless there are only streams, or the process is on a host of a
	 * fabric. */
	if (stream_set_is_hot(&p->streams) || has_only_streams(p) ||
	    fabric_link_is_open())
		return p->batch.next == p->batch.count;
	if (!rx_backoff_is_off(&p->policy.looks.backoff) &&
	    !poll_policy_may_look(&p->policy, progress_is_behind(p),
				  clock_now(&p->clock)))
		return true;
	if (!poll_policy_skips_socket(&p->policy) &&
	    !engine_is_choked(p->engine))
		fill_batch(p);
	return p->batch.next == p->batch.count;
}

/*
 * Takes the lock if it is free.  The holder of the lock may be waiting for the
 * core that this thread uses, so after VAIN_POLLS polls in a row that found the
 * lock held, this thread sleeps until the lock is free.
 */
static bool try_or_sleep(struct progress *p)
	TRY_ACQUIRE(true, &p->lock) NO_LOCK_ANALYSIS
{
	static _Thread_local uint32_t vain_polls
		__attribute__((tls_model("initial-exec")));
	bool is_ours = lock_try(&p->lock);

	vain_polls = is_ours ? 0 : vain_polls + 1;
	if (vain_polls < VAIN_POLLS)
		return is_ours;
	vain_polls = 0;
	lock_take(&p->lock);
	return true;
}

/* Takes the post locks for work that may wait for POST_LOCK_VAIN_NS.  False:
 * another thread has one of the locks, and the caller has none. */
static bool take_posts(struct progress *p) REQUIRES(&p->lock)
{
	return post_lock_try_all(&p->posts) ||
	       post_lock_insist(&p->posts, clock_now(&p->clock));
}

void progress_poll(struct progress *p, shared_u32 *skipped) NO_LOCK_ANALYSIS
{
	if (direct_select_may_skip(&p->direct_select, p->engine, skipped) ||
	    !try_or_sleep(p))
		return;
	if (is_still(p)) {
		progress_release(p);
		return;
	}
	if (!take_posts(p)) {
		direct_select_could_not(skipped);
		/* progress_release waits for the post locks if a doorbell was
		 * pushed meanwhile: the thread that pushed the doorbell found
		 * the progress lock taken, so perhaps no other thread serves
		 * the doorbell. */
		progress_release(p);
		return;
	}
	begin_holding(p);
	engine_polled(p->engine, p->now_ns);
	progress_turn(p);
	shared_store(&p->activity.polled,
		     (uint32_t)(p->last_turn_ns / PROGRESS_TICK_NS));
	progress_release(p);
}

bool progress_is_held(struct progress *p) NO_LOCK_ANALYSIS
{
	if (!lock_try(&p->lock))
		return true;
	progress_release(p);
	return false;
}

void progress_flush(struct progress *p)
{
	progress_serve_doorbells(p);
	engine_force_responses(p->engine, true);
	transmit_frames(p);
	engine_force_responses(p->engine, false);
}

void progress_catch_up(struct progress *p)
{
	receive_rounds(p, LATE_ROUNDS, p->now_ns);
	receive_link(p, LATE_ROUNDS, true);
	progress_flush(p);
}

void progress_join(struct progress *p)
{
	join_datagrams(p);
}

/* Takes the lock and all post locks, if all of them are free.  @insists: once
 * all tries for POST_LOCK_VAIN_NS were in vain, waits for the post locks. */
static bool try_all(struct progress *p, bool insists)
	TRY_ACQUIRE(true, &p->lock) NO_LOCK_ANALYSIS
{
	if (!lock_try(&p->lock))
		return false;
	if (!(insists ? take_posts(p) : post_lock_try_all(&p->posts))) {
		lock_give(&p->lock);
		return false;
	}
	begin_holding(p);
	return true;
}

/* Tries for at most ns nanoseconds to take the locks. */
static bool try_for(struct progress *p, uint64_t ns)
	TRY_ACQUIRE(true, &p->lock) NO_LOCK_ANALYSIS
{
	const struct timespec nap = {.tv_nsec = QUIT_NAP_NS};
	uint64_t end = monotonic_ns() + ns;
	bool is_ours;

	while (!(is_ours = try_all(p, false)) && monotonic_ns() < end)
		nanosleep(&nap, NULL);
	return is_ours;
}

void progress_quit(struct progress *p) NO_LOCK_ANALYSIS
{
	if (!try_for(p, QUIT_NS))
		return;
	shield_holder(p);
	progress_catch_up(p);
	send_rest(p);
	stream_set_drain(&p->streams);
	engine_publish(p->engine);
	progress_release(p);
}

void progress_send_rest(struct progress *p)
{
	progress_take(p);
	send_rest(p);
	progress_give(p);
}

bool progress_rest(struct progress *p, struct progress_rest *r) NO_LOCK_ANALYSIS
{
	uint64_t bulk;
	uint32_t news;

	if (!try_all(p, true)) {
		progress_serve(p);
		return false;
	}
	bulk = p->policy.stream.bulk;
	news = shared_own(&p->policy.looks.news);
	p->rest = r;
	progress_turn(p);
	p->rest = NULL;
	poll_policy_rested(&p->policy, bulk, news, p->last_turn_ns);
	r->is_over = r->sleep->is_over(r->sleep->arg);
	if (!r->is_over)
		wait_plan_make(p, r);
	progress_release(p);
	return true;
}

void progress_rested(struct progress *p)
{
	direct_select_rested(p->engine);
	shared_store(&p->wake.is_resting, 0);
}

void progress_serve(struct progress *p) NO_LOCK_ANALYSIS
{
	if (mpsc_seems_empty(&p->doorbells) || !progress_try(p))
		return;
	serve_and_give(p);
}

void progress_take(struct progress *p) NO_LOCK_ANALYSIS
{
	lock_take(&p->lock);
	post_lock_take_all(&p->posts);
	begin_holding(p);
	shield_holder(p);
}

void progress_give(struct progress *p) NO_LOCK_ANALYSIS
{
	progress_settle(p);
	progress_release(p);
}
