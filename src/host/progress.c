/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/progress.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "engine/shm_ack.h"
#include "engine/burst.h"
#include "host/capture.h"
#include "host/suspect_log.h"
#include "host/mcast_socket.h"
#include "log/log.h"
#include "memory/copy_nofault.h"
#include "device/netif.h"
#include "host/broker_link.h"
#include "host/source_port.h"
#include "util/bits.h"
#include "util/fd_identity.h"

#define TURN_ROUNDS  4	/* batches read in one turn */
#define LATE_ROUNDS  64 /* and when we have been asleep */
#define ASLEEP_NS    10000000
#define TX_ROUNDS    16
#define JUNK_SAID    1000
#define SAY_JUNK     0xb8
#define SAY_CLOSED   0xb9
#define CHECK_NS     1000000 /* between looks whether descriptors are ours */
#define EVENT_BATCH  16
#define STILL_POLLS  8
#define STREAM_POSTS 4 /* of a stream, between looks for what was accepted */
#define DRY_LOOKS    8 /* before who polls tells that the socket is empty */
#define BULK_BYTES   16384
#define BULK_COUNT   8
#define POSTING_NS   20000u /* between the looks of who posts a stream, */
#define IN_VAIN_MAX  3	    /* doubled so often when they find nothing */
#define LOOK_NS	     500    /* what a look in vain takes where slowness is 1 */
#define SLOWNESS_MAX 64
/* Requests that nothing answers: between two looks of our thread for what has
 * gathered, after so many, and for how long after the last. */
#define MIND_NS	     100000u
#define MIND_AFTER   8
#define MIND_FOR_NS  1000000u
#define POSTED_TICKS 8	       /* so old may `posted` be */
#define PUBLISH_NS   100000000 /* how old the counters in our page may be */

int progress_init(struct progress *l, struct engine *e, int fd,
		  const struct host_sink *sink, struct udp_offload allowed,
		  bool one_port)
{
	int err;

	memset(l, 0, sizeof(*l));
	err = udp_init(&l->wire, fd, allowed, one_port);
	if (err)
		return err;
	l->wire.alone = burst_part;
	lock_init(&l->lock);
	l->engine = e;
	l->sink = *sink;
	clock_init(&l->clock);
	l->last_turn_ns = l->now_ns = l->published_ns = clock_now(&l->clock);
	rx_backoff_init(&l->rx_backoff);
	l->awaited_fd = l->wake_fd = -1;
	l->slowness = 1;
	direct_select_init(&l->direct_select);
	shared_store(&l->posted_on, UINT32_MAX);
	return 0;
}

void progress_fini(struct progress *l)
{
	engine_publish(l->engine);
	engine_free(l->engine);
	udp_fini(&l->wire);
	lock_fini(&l->lock);
}

/*
 * Who has the lane is not cancelled with it, from before the first call on in
 * which that could be, until the lane is given back.  To post and to poll takes
 * no such call where there are no packets.
 */
static void shield(struct progress *l)
{
	if (!l->is_shielded)
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &l->cancel);
	l->is_shielded = true;
}

/* A capture shows what a wire carries. */
static void capture(const struct inaddr *from, const struct inaddr *to,
		    const uint8_t *bytes, size_t len, size_t segment,
		    uint8_t tos, uint8_t ttl)
{
	for (uint16_t id = 0; capture_is_open() && len; id++) {
		size_t n = bits_min_u64(len, segment);

		capture_frame(from, to, bytes, n, id, tos, ttl);
		bytes += n;
		len -= n;
	}
}

/* As it came: a foreign sender's id is found by the ICRC. */
static void capture_rx(const struct engine_dgram *d)
{
	const uint8_t *bytes = d->bytes;
	size_t len = capture_is_open() ? d->len : 0;

	for (uint16_t i = 0; len; i++) {
		size_t n = bits_min_u64(len, d->segment);

		capture_frame(&d->from, &d->to, bytes, n,
			      engine_dgram_id(d, bytes, n, i), d->tos, 64);
		bytes += n;
		len -= n;
	}
}

/* From this host?  Whoever sends, sends more. */
static bool is_local(struct progress *l, const uint8_t ip[16])
{
	uint32_t version = netif_version();

	if (l->last_at != version || !inaddr_has_same_ip(ip, l->last_from)) {
		memcpy(l->last_from, ip, 16);
		l->last_at = version;
		l->last_is_local = netif_is_local(ip);
	}
	return l->last_is_local;
}

/* Is there more to receive than the last turn did? */
static bool is_behind(const struct progress *l)
{
	return !engine_is_choked(l->engine) &&
	       (l->got_next < l->got_count || l->wire.is_behind);
}

/* The device that a datagram is for; -1: none.  Mostly it is as before. */
static int device_of(struct progress *l, const struct udp_dgram *d)
{
	uint32_t version = netif_version();
	int device;

	if (l->own_at == version && inaddr_has_same_ip(l->own, d->to.ip))
		return (int)l->own_device;
	device = netif_device(d->to.ip, d->ifindex);
	if (device < 0 || inaddr_is_multicast(d->to.ip))
		return device;
	memcpy(l->own, d->to.ip, 16);
	l->own_device = (uint32_t)device;
	l->own_at = version;
	return device;
}

/* A group is sent to out of the interface that the source belongs to. */
static uint32_t out_of(const struct engine_frame *f)
{
	return inaddr_is_multicast(f->to.ip) ? netif_index(f->from.ip, f->link)
					     : netif_scope(f->from.ip, f->link);
}

/* The page of a process that the engine sends to and does not know. */
static bool find_page(struct progress *l)
{
	uint32_t qpn = engine_wants_page(l->engine);
	const void *page;

	if (!qpn)
		return false;
	shield(l);
	if (!broker_link_page_of(qpn, &page))
		return false;
	engine_page(l->engine, qpn, page);
	return true;
}

/* Much at once, in bytes or in packets, is part of a stream. */
static bool is_bulk(size_t len, size_t segment)
{
	return len >= BULK_BYTES || (segment && len > BULK_COUNT * segment);
}

static void transmit(struct progress *l)
{
	struct engine_frame f[UDP_BATCH];
	struct udp_dgram d[UDP_BATCH];
	size_t n = UDP_BATCH, sent = UDP_BATCH;

	for (unsigned r = 0; r < TX_ROUNDS && n && sent == n; r++) {
		n = engine_tx(l->engine, f, UDP_BATCH, l->now_ns);
		if (n || engine_has_kicks(l->engine))
			shield(l);
		for (size_t i = 0; i < n; i++)
			d[i] = (struct udp_dgram){
				.from = f[i].from,
				.to = f[i].to,
				.ifindex = out_of(&f[i]),
				.bytes = f[i].bytes,
				.len = f[i].len,
				.segment = f[i].segment,
				.tos = f[i].tos,
				.ttl = f[i].ttl,
			};
		sent = n ? udp_send(&l->wire, d, n) : 0;
		for (size_t i = 0; i < sent; i++)
			capture(&f[i].from, &f[i].to, f[i].bytes, f[i].len,
				f[i].segment, f[i].tos, f[i].ttl);
		if (sent && is_bulk(f[sent - 1].len, f[sent - 1].segment)) {
			shared_store(&l->streak, shared_own(&l->streak) + 1);
			l->bulk++;
			l->inflow = 0;
		}
		engine_tx_done(l->engine, sent);
	}
	direct_select_kick(l->engine);
	l->is_full = sent < n;
}

/* The socket first, then who sends is told. */
static void join_datagrams(struct progress *l)
{
	if (l->wire.joins || !l->wire.has.gro)
		return;
	udp_join_datagrams(&l->wire);
	if (l->wire.joins)
		engine_joins(l->engine);
}

/* Read up to `rounds` batches; false if there was nothing. */
static bool receive(struct progress *l, unsigned rounds, uint64_t now)
{
	size_t bytes = 0, count = l->got_count - l->got_next;

	do {
		if (l->got_next == l->got_count) {
			l->got_count = (uint32_t)udp_receive(&l->wire, l->got);
			l->got_next = 0;
			count += l->got_count;
		}
		while (l->got_next < l->got_count &&
		       !engine_is_choked(l->engine)) {
			const struct udp_dgram *got = &l->got[l->got_next++];
			int device = device_of(l, got);
			struct engine_dgram d = {
				.from = got->from,
				.to = got->to,
				.bytes = got->bytes,
				.len = got->len,
				.segment = got->segment,
				.tos = got->tos,
				.local = is_local(l, got->from.ip),
				.device = device < 0 ? 0 : (uint32_t)device,
				.is_stray = device < 0,
			};

			capture_rx(&d);
			engine_rx(l->engine, &d, now);
			source_port_find(l->engine, now);
			if (is_bulk(got->len, got->segment)) {
				l->bulk++;
				l->inflow++;
				shared_store(&l->streak, 0);
			}
			bytes += got->len;
		}
		/* the sender waits for the ACKs of this batch */
		if (rounds > 1 && is_behind(l) && engine_has_tx(l->engine))
			transmit(l);
	} while (--rounds && is_behind(l));
	if (bytes >= BULK_BYTES || count >= BULK_COUNT)
		join_datagrams(l);
	l->is_dry = l->wire.is_drained && l->got_next == l->got_count;
	l->dry_looks = l->is_dry ? l->dry_looks + 1 : 0;
	if (l->is_dry && (l->rest || l->dry_looks > DRY_LOOKS))
		engine_rx_empty(l->engine);
	rx_backoff_looked(&l->rx_backoff, bytes,
			  bytes < BULK_BYTES ? now : clock_now(&l->clock));
	if (shared_own(&l->is_paced) == rx_backoff_is_off(&l->rx_backoff))
		shared_store(&l->is_paced, !rx_backoff_is_off(&l->rx_backoff));
	return bytes;
}

/* Is it too soon to look at the socket again? */
static bool is_pausing(const struct progress *l, uint64_t now)
{
	return rx_backoff_waits(&l->rx_backoff, now) && !is_behind(l);
}

/* The same, unless that would be too soon; false if there was nothing. */
static bool look(struct progress *l, unsigned rounds, uint64_t now)
{
	bool any;

	l->is_dry = false;
	if (is_pausing(l, now))
		return false;
	any = receive(l, rounds, now);
	if (any)
		shared_store(&l->news, shared_own(&l->news) + 1);
	else
		engine_hold_acks(l->engine, false);
	l->looked_ns = now;
	l->in_vain = any ? 0 : bits_min_u32(l->in_vain + 1, IN_VAIN_MAX);
	return any;
}

/* One cause is one sentence: the kind of failure, of one QP. */
static void explain(const struct explain *x)
{
	char text[512];

	explain_text(x, text, sizeof(text));
	log_say((uint64_t)x->cause << 32 | x->qpn, "%s", text);
}

/* Returns whether an answer went back into the engine. */
static bool report(struct progress *l)
{
	struct engine_event ev[EVENT_BATCH];
	bool answered = false;
	size_t n;

	do {
		n = engine_events(l->engine, ev, EVENT_BATCH);
		if (n)
			shield(l);
		for (size_t i = 0; i < n; i++) {
			if (ev[i].type == ENGINE_EXPLAIN) {
				explain(&ev[i].explain);
			} else if (ev[i].type == ENGINE_ASK_PEER) {
				broker_link_ask(l->engine, &ev[i], l->now_ns);
				answered = true;
			} else {
				l->sink.event(&ev[i]);
				if (ev[i].type == ENGINE_CQ_EVENT)
					shared_store(&l->told,
						     shared_own(&l->told) + 1);
			}
		}
	} while (n == EVENT_BATCH);
	return answered;
}

/* The memory of those whose QPs are to be reached without packets. */
static bool find_ways(struct progress *l)
{
	if (!engine_is_undecided(l->engine))
		return false;
	shield(l);
	return direct_select_find(l->engine);
}

static void settle(struct progress *l)
{
	do
		transmit(l);
	while (report(l) || find_page(l) || find_ways(l));
}

/* One of a stream that our thread has to mind? */
static void count_unanswered(struct progress *l, const struct ibt_qp *q)
{
	if (!engine_qp_is_unanswered(q))
		return;
	if (l->now_ns - l->unanswered_ns > MIND_NS)
		l->unanswered = 0;
	l->unanswered++;
	l->unanswered_ns = l->now_ns;
}

void progress_ring(struct progress *l)
{
	struct mpsc_node *n;

	/* to take is to wait until others see what we wrote */
	if (mpsc_seems_empty(&l->bells))
		return;
	n = mpsc_take(&l->bells);
	shared_store(&l->gathered, 0);
	while (n) {
		struct ibt_qp *q = engine_qp_of_kick(n);

		/* off the stack first: work posted from here on rings anew */
		n = mpsc_next(n);
		count_unanswered(l, q);
		engine_doorbell(l->engine, q, l->now_ns);
	}
}

/* A flood is counted and survived; once in a process's life it is said. */
static void watch_junk(struct progress *l)
{
	uint64_t junk = 0;

	for (uint32_t i = 0; !l->is_junk_said && i < HCA_MAX_DEVICES; i++) {
		const struct engine_counters *c = engine_counters(l->engine, i);

		junk += c->rx_malformed + c->rx_bad_icrc + c->rx_unknown_qp;
	}
	if (junk < JUNK_SAID)
		return;
	l->is_junk_said = true;
	log_say(SAY_JUNK,
		"somebody sends junk to UDP port 4791: %llu datagrams that "
		"are no RoCE, damaged, or for queue pairs that do not exist; "
		"they are dropped",
		(unsigned long long)junk);
}

/*
 * Everything that is due.  The socket before the timers: what arrived while
 * we slept must not look lost.
 */
static void turn(struct progress *l) REQUIRES(&l->lock)
{
	uint64_t now = l->now_ns, due = engine_deadline(l->engine);
	bool slept = due < now && now - due > ASLEEP_NS &&
		     now - l->last_turn_ns > ASLEEP_NS;
	bool any, is_deaf, has_dead = broker_link_has_dead();

	shield(l);
	/* what arrived meanwhile must not find our patience used up */
	if (slept)
		engine_was_asleep(
			l->engine,
			bits_min_u64(now - due, now - l->last_turn_ns), now);
	engine_hold_acks(l->engine, shared_load(&l->is_watched) ||
					    (l->rest && l->rest->holds_acks));
	/* timers fire only after a look, and who is buried had his last word
	 * before he died */
	is_deaf = l->rest && l->rest->is_deaf && due > now && !has_dead;
	any = !is_deaf && look(l, slept ? LATE_ROUNDS : TURN_ROUNDS, now);
	shm_ack_look(engine_shm_ack(l->engine), now);
	progress_ring(l);
	if (has_dead && l->is_dry)
		broker_link_reap_dead(l->engine, now);
	engine_tick(l->engine, now);
	broker_link_turn(l->engine, now);
	direct_select_look(&l->direct_select, l->engine, now);
	if (any) {
		watch_junk(l);
		suspect_log_say(l->engine);
	}
	settle(l);
	if (now - l->published_ns > PUBLISH_NS) {
		engine_publish(l->engine);
		l->published_ns = now;
	}
	direct_select_turned(&l->direct_select, l->engine, any, now);
	l->last_turn_ns = now;
}

void progress_wake(struct progress *l)
{
	uint64_t one = 1;

	/* the bare call: who posts must not end here, if it is cancelled */
	if (fd_identity_holds(l->wake_fd) &&
	    syscall(SYS_write, l->wake_fd, &one, sizeof(one)) < 0)
		return; /* it is full, so it wakes */
}

bool progress_has_files(struct progress *l)
{
	bool has = udp_is_ours(&l->wire) &&
		   (l->wake_fd < 0 || fd_identity_holds(l->wake_fd));

	if (!has) {
		shared_store(&l->wire.is_lost, true);
		log_say(SAY_CLOSED,
			"the program has closed descriptors that adverb had "
			"opened: from here on it reaches nobody by packets; "
			"let it keep them, or open the device after it has "
			"closed all");
	}
	return has;
}

/* The thread sleeps longer than the engine now allows, or cannot know that
 * the socket is full, or waits for a broker that is gone. */
static bool must_wake(const struct progress *l)
{
	return shared_load(&l->is_resting) && l->wake_ns &&
	       ((l->is_full && l->awaited_fd != l->wire.full_fd) ||
		is_behind(l) || engine_has_tx(l->engine) ||
		(l->unanswered >= MIND_AFTER && !shared_own(&l->is_minded)) ||
		l->peer_at != broker_link_changes() ||
		direct_select_look_ns(l->engine, l->now_ns) < l->wake_ns ||
		engine_deadline(l->engine) < l->wake_ns);
}

/* The program hears of it as of an adapter that has failed. */
static void tell_loss(struct progress *l) REQUIRES(&l->lock)
{
	if (l->is_lost_told)
		return;
	l->is_lost_told = true;
	shield(l);
	if (l->sink.fatal)
		l->sink.fatal();
}

/* Whoever has the lane may be another thread than before. */
static void begin(struct progress *l) REQUIRES(&l->lock)
{
	l->now_ns = clock_now(&l->clock);
	copy_nofault_turn(l->now_ns);
	if (l->now_ns - l->checked_ns > CHECK_NS) {
		l->checked_ns = l->now_ns;
		if (!progress_has_files(l))
			tell_loss(l);
	}
}

static bool take_if_free(struct progress *l) NO_LOCK_ANALYSIS
{
	if (!lock_try(&l->lock))
		return false;
	begin(l);
	return true;
}

/* True: who came in the meantime is to be served, by us if it is still free. */
static bool let_go(struct progress *l) NO_LOCK_ANALYSIS
{
	bool wake = must_wake(l), is_shielded = l->is_shielded;
	int cancel = l->cancel;

	if (wake)
		shared_store(&l->is_resting, 0);
	l->is_shielded = false;
	lock_give(&l->lock);
	if (wake)
		progress_wake(l);
	if (is_shielded)
		pthread_setcancelstate(cancel, NULL);
	return !mpsc_seems_empty(&l->bells);
}

static void give(struct progress *l) NO_LOCK_ANALYSIS
{
	while (let_go(l) && take_if_free(l)) {
		progress_ring(l);
		settle(l);
	}
}

static void serve(struct progress *l) NO_LOCK_ANALYSIS
{
	progress_ring(l);
	settle(l);
	give(l);
}

/*
 * Does a poll find nothing to do?  Most do: they look at the socket alone, and
 * only now and then at the clock.  What they receive is left for the turn.
 */
static bool is_still(struct progress *l) REQUIRES(&l->lock)
{
	if (l->still++ % STILL_POLLS == 0 || !mpsc_seems_empty(&l->bells) ||
	    engine_has_tx(l->engine) || engine_owes(l->engine) ||
	    engine_has_notify(l->engine) ||
	    shm_ack_has_news(engine_shm_ack(l->engine)))
		return false;
	if (!rx_backoff_is_off(&l->rx_backoff) &&
	    is_pausing(l, clock_now(&l->clock)))
		return true;
	/* to a stream there is seldom an answer that is not on the board */
	if (l->in_vain == IN_VAIN_MAX &&
	    shared_own(&l->streak) >= PROGRESS_STREAM)
		return l->got_next == l->got_count;
	if (l->got_next == l->got_count && !engine_is_choked(l->engine)) {
		l->got_count = (uint32_t)udp_receive(&l->wire, l->got);
		l->got_next = 0;
	}
	return l->got_next == l->got_count;
}

void progress_poll(struct progress *l) NO_LOCK_ANALYSIS
{
	if (direct_select_may_skip(&l->direct_select, l->engine) ||
	    !lock_try(&l->lock))
		return;
	if (is_still(l)) {
		give(l);
		return;
	}
	begin(l);
	engine_polled(l->engine, l->now_ns);
	turn(l);
	shared_store(&l->polled,
		     (uint32_t)(l->last_turn_ns / PROGRESS_TICK_NS));
	give(l);
}

bool progress_is_held(struct progress *l) NO_LOCK_ANALYSIS
{
	if (!lock_try(&l->lock))
		return true;
	give(l);
	return false;
}

uint64_t progress_ago_ns(uint32_t polled)
{
	return ((uint32_t)(clock_real() / PROGRESS_TICK_NS) - polled) *
	       (uint64_t)PROGRESS_TICK_NS;
}

void progress_flush(struct progress *l)
{
	progress_ring(l);
	engine_part(l->engine, true);
	transmit(l);
	engine_part(l->engine, false);
}

void progress_catch_up(struct progress *l)
{
	receive(l, LATE_ROUNDS, l->now_ns);
	progress_flush(l);
}

void progress_join(struct progress *l)
{
	join_datagrams(l);
}

void progress_quit(struct progress *l) NO_LOCK_ANALYSIS
{
	if (!take_if_free(l))
		return;
	shield(l);
	progress_catch_up(l);
	engine_publish(l->engine);
	give(l);
}

/* Until when our thread may sleep while it minds such a stream. */
static uint64_t mind(struct progress *l)
{
	uint64_t now = l->last_turn_ns;
	bool minds = l->unanswered >= MIND_AFTER &&
		     now - l->unanswered_ns < MIND_FOR_NS;

	if (!minds)
		l->unanswered = 0;
	/* whoever leaves a bell now finds this, or give finds the bell */
	shared_store(&l->is_minded, minds);
	return minds ? now + MIND_NS : UINT64_MAX;
}

/* What wakes who minds the lane, and when he wakes by himself. */
static void plan_rest(struct progress *l, struct progress_rest *r)
{
	l->pause_ns = is_behind(l) ? 0 : l->rx_backoff.until_ns;
	l->wake_ns = is_behind(l) ? 0 : engine_deadline(l->engine);
	l->wake_ns = bits_min_u64(l->wake_ns, mind(l));
	direct_select_rest(l->engine, l->last_turn_ns, &l->wake_ns);
	if (engine_owes(l->engine))
		l->wake_ns = 0;
	engine_publish(l->engine);
	l->awaited_fd = l->is_full ? l->wire.full_fd : -1;
	r->until = bits_min_u64(l->wake_ns, broker_link_due_ns());
	r->events = (short)((l->is_full ? POLLOUT : 0) |
			    (engine_is_choked(l->engine) ? 0 : POLLIN));
	l->peer_at = broker_link_changes();
	shared_store(&l->is_resting, 1);
}

bool progress_rest(struct progress *l, struct progress_rest *r) NO_LOCK_ANALYSIS
{
	uint64_t bulk;
	uint32_t news;

	if (!take_if_free(l))
		return false;
	bulk = l->bulk;
	news = shared_own(&l->news);
	l->rest = r;
	turn(l);
	l->rest = NULL;
	l->rest_ns = l->last_turn_ns;
	if (shared_own(&l->news) != news)
		l->heard_ns = l->rest_ns;
	if (l->bulk != bulk && (l->inflow >= PROGRESS_STREAM ||
				shared_own(&l->streak) >= PROGRESS_STREAM))
		l->linger_ns = l->last_turn_ns + PROGRESS_LINGER_NS;
	r->is_over = r->sleep->is_over(r->sleep->arg);
	if (!r->is_over)
		plan_rest(l, r);
	give(l);
	return true;
}

bool progress_pauses(const struct progress *l, uint64_t now)
{
	return now < l->pause_ns;
}

uint64_t progress_lingers(const struct progress *l, uint64_t now)
{
	return now < l->linger_ns ? l->linger_ns - now : 0;
}

void progress_looked(struct progress *l, uint64_t now)
{
	uint64_t took = now - l->rest_ns;

	if (l->heard_ns == l->rest_ns)
		return;
	if (!l->look_ns || took < l->look_ns)
		l->look_ns = took;
	else
		l->look_ns += bits_min_u64(took - l->look_ns, l->look_ns) / 64;
	l->slowness = (uint32_t)bits_max_u64(
		bits_min_u64(l->look_ns / LOOK_NS, SLOWNESS_MAX), 1);
}

void progress_rested(struct progress *l)
{
	direct_select_rested(l->engine);
	shared_store(&l->is_resting, 0);
}

/* When and where somebody posted lately. */
static void note_post(struct progress *l)
{
	uint32_t tick = (uint32_t)(l->now_ns / PROGRESS_TICK_NS);

	if (tick - shared_own(&l->posted) < POSTED_TICKS)
		return;
	shared_store(&l->posted, tick);
	shared_store(&l->posted_on, (uint32_t)sched_getcpu());
}

/* Who posts for long without a poll has ACKs waiting all the same. */
static void post(struct progress *l) REQUIRES(&l->lock)
{
	uint64_t now = l->now_ns;

	note_post(l);
	if (shared_own(&l->streak) >= PROGRESS_STREAM) {
		if (now - l->looked_ns > POSTING_NS << l->in_vain) {
			turn(l);
			return;
		}
		if (l->posts++ % STREAM_POSTS == 0)
			shm_ack_look(engine_shm_ack(l->engine), now);
	}
	progress_ring(l);
	settle(l);
}

/*
 * Is the poster ahead of its peer?  Then what is small goes together, with the
 * next poll, with the peer's answer, or when it is much.  Where there are no
 * answers it goes by the clock, if our thread minds it.
 */
static bool is_ahead(const struct progress *l, const struct ibt_qp *q)
{
	return engine_qp_flying(q) >= PROGRESS_AHEAD ||
	       (shared_load(&l->is_minded) && engine_qp_is_unanswered(q));
}

static bool gathers(struct progress *l, const struct ibt_qp *q, uint32_t bytes)
{
	uint32_t all = shared_own(&l->gathered) + bytes;

	if (all > PROGRESS_GATHER)
		return false;
	shared_fence(); /* a bell, then a look; the holder the other way round
			 */
	if (!is_ahead(l, q))
		return false;
	shared_store(&l->gathered, all);
	return true;
}

/* What is small and for this host, when there is nothing else: no turn of the
 * wire.  True: it is, and the lane is given back. */
static bool is_done_at_once(struct progress *l,
			    struct ibt_qp *q) NO_LOCK_ANALYSIS
{
	if (!engine_post_direct(l->engine, q, l->now_ns))
		return false;
	note_post(l);
	if (!engine_is_settled(l->engine))
		settle(l);
	give(l);
	return true;
}

void progress_doorbell(struct progress *l, struct ibt_qp *q,
		       uint32_t bytes) NO_LOCK_ANALYSIS
{
	if (!is_ahead(l, q) && take_if_free(l)) {
		if (is_done_at_once(l, q))
			return;
		count_unanswered(l, q);
		engine_doorbell(l->engine, q, l->now_ns);
	} else {
		mpsc_push(&l->bells, engine_qp_kick(q));
		if (gathers(l, q, bytes) || !take_if_free(l))
			return; /* its holder sees what we left */
	}
	post(l);
	give(l);
}

void progress_serve(struct progress *l) NO_LOCK_ANALYSIS
{
	if (mpsc_seems_empty(&l->bells) || !take_if_free(l))
		return;
	serve(l);
}

void progress_take(struct progress *l) NO_LOCK_ANALYSIS
{
	lock_take(&l->lock);
	begin(l);
	shield(l);
}

void progress_give(struct progress *l) NO_LOCK_ANALYSIS
{
	settle(l);
	give(l);
}
