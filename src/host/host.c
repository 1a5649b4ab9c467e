/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/host.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hca/guest.h"
#include "engine/board.h"
#include "host/arena_map.h"
#include "host/capture.h"
#include "host/groups.h"
#include "host/guard.h"
#include "host/lane.h"
#include "host/minder.h"
#include "host/neighbour.h"
#include "host/netif.h"
#include "host/offload.h"
#include "host/peer.h"
#include "host/source.h"
#include "host/space_self.h"
#include "host/sysfs.h"
#include "host/thread.h"
#include "host/wish.h"
#include "util/bits.h"
#include "util/random.h"

#define WINDOW_PACKETS	 512
#define PATIENCE_DEFAULT 60 /* seconds */
#define PATIENCE_MAX	 1000000000
#define MTU_ANY		 5 /* 4096 bytes */
#define QPN_TRIES	 256
#define QPN_MULTICAST	 0xffffff /* IBTA 9.6.1 */
#define POLL_YIELD	 64	  /* empty polls before the core is given up */
#define SWITCH_MIN_NS	 600	  /* longer: somebody else had the core */
#define SAY_RANDOM	 0xd1
#define SWITCH_MAX_NS	 50000 /* shorter: and gave it back by himself */

struct host {
	int pid; /* a fork's child is not us */
	uint32_t users;
	struct arena_map map;
	struct space_self space;
	struct hca hca;
	struct lane lane;
	struct lock ctx;
	int cancel; /* under it: pthread_setcancelstate's of before */
	ring_index yield_every; /* empty polls; a guess */
	ring_index is_after;	/* this look is: somebody ran for a moment */
};

static struct host *the_host;
static int the_owner; /* the process that made it, or was about to */
static struct lock host_once;
static int once_cancel; /* under it, as host.cancel */

/* What is done with these locks opens and closes files: nobody is cancelled
 * with them. */
static void take_shielded(struct lock *l, int *cancel) NO_LOCK_ANALYSIS
{
	lock_take(l);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, cancel);
}

static void give_shielded(struct lock *l, int cancel) NO_LOCK_ANALYSIS
{
	lock_give(l);
	pthread_setcancelstate(cancel, NULL);
}

static bool is_set(const char *name)
{
	const char *value = secure_getenv(name);

	return value && *value && strcmp(value, "0") != 0;
}

static bool is_off(const char *name)
{
	const char *value = secure_getenv(name);

	return value && !strcmp(value, "0");
}

static uint64_t patience_ns(void)
{
	const char *text = secure_getenv("ADVERB_PATIENCE");
	long seconds = text ? strtol(text, NULL, 10) : PATIENCE_DEFAULT;

	if (seconds <= 0)
		seconds = PATIENCE_DEFAULT;
	return (seconds < PATIENCE_MAX ? (uint64_t)seconds : PATIENCE_MAX) *
	       1000000000u;
}

/* By which others tell our devices: each process numbers its own. */
static void name_links(struct hca *hca)
{
	const struct host_device *devices;
	uint32_t count = host_devices(&devices);

	for (uint32_t i = 0; i < count; i++)
		hca->shared->links[i] = devices[i].ifindex;
}

static void show_tree(void)
{
	const struct host_device *devices;
	int fd = host_sysfs() && host_devices(&devices) ? sysfs_devices() : -1;

	if (fd >= 0)
		peer_tree(fd);
}

/* Everything but the socket's owner; undone in reverse. */
static int start(struct host *h, const struct host_sink *sink)
{
	struct engine_config config = {.hca = &h->hca,
				       .window = WINDOW_PACKETS,
				       .strict = is_set("ADVERB_STRICT"),
				       .patience_ns = patience_ns()};
	struct udp_offload allowed = {.gso = !is_off("ADVERB_GSO"),
				      .gro = !is_off("ADVERB_GRO")};
	struct engine *e;
	uint64_t seed[4];
	int fd, err;

	if (!random_fill(seed, sizeof seed, true) ||
	    !random_fill(&config.seed, sizeof config.seed, true)) {
		host_say(
			SAY_RANDOM,
			"the kernel gives no random numbers, of which keys and "
			"queue pairs are made: allow getrandom(2) where a "
			"sandbox refuses it, or show it /dev/urandom");
		return -ENOSYS;
	}
	err = arena_map_new(&h->map);
	if (err)
		return err;
	space_self_init(&h->space);
	guard_open();
	err = hca_init(&h->hca, h->map.arena, &h->space.space, seed);
	if (err)
		goto close_neighbours;
	name_links(&h->hca);
	h->hca.active_mtu = MTU_ANY; /* host_qp_modify asks the port */
	neighbour_open(&h->hca);
	fd = peer_socket(neighbour_is_open() ? h->map.fd : -1,
			 neighbour_kick_fd(), config.patience_ns);
	if (fd < 0) {
		err = fd;
		goto close_neighbours;
	}
	show_tree();
	if (peer_page())
		config.class_of = peer_class;
	config.direct = neighbour_is_open();
	config.asks_sources = true;
	source_forget();
	e = engine_new(&config, clock_real());
	err = e ? lane_init(&h->lane, e, fd, sink, allowed,
			    is_off("ADVERB_SPORT"))
		: -ENOMEM;
	if (!err) {
		engine_inbox(e, peer_page(), peer_class(peer_qpn(0)),
			     udp_buffer_bytes(&h->lane.wire),
			     !h->lane.wire.has.gro);
		capture_open();
		/* a capture shows all that a wire would carry */
		if (!capture_is_open() && !config.strict)
			board_open(engine_board(e), peer_page());
		netif_watch(sink->port);
		return 0;
	}
	if (e)
		engine_free(e);
	close(fd);
	peer_close();
close_neighbours:
	neighbour_close();
	guard_close();
	space_self_fini(&h->space);
	arena_map_free(&h->map);
	return err;
}

static struct host *new_host(const struct host_sink *sink)
{
	struct host *h = calloc(1, sizeof *h);
	int err;

	if (!h) {
		errno = ENOMEM;
		return NULL;
	}
	h->pid = getpid();
	h->users = 1;
	ring_store(&h->yield_every, POLL_YIELD);
	wish_check();
	lock_init(&h->ctx);
	err = start(h, sink);
	if (err) {
		lock_fini(&h->ctx);
		free(h);
		errno = -err;
		return NULL;
	}
	capture_open();
	/* Who sleeps must still see the broker die: its successor needs us. */
	if (peer_fd() >= 0)
		thread_start(&h->lane);
	return h;
}

/* Who held the lock, making the host or ending it, is not in the child. */
static void forked(void)
{
	lock_init(&host_once);
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forked);
}

/* What a fork's child inherited stays untouched, and may be half made. */
static void leave_behind(void)
{
	the_host = NULL;
	thread_forget();
	netif_forget();
	neighbour_forget();
	peer_close();
}

struct host *host_get(const struct host_sink *sink)
{
	struct host *h;

	take_shielded(&host_once, &once_cancel);
	if (the_owner && the_owner != getpid())
		leave_behind();
	the_owner = getpid();
	if (the_host)
		the_host->users++;
	else
		the_host = new_host(sink);
	h = the_host;
	give_shielded(&host_once, once_cancel);
	return h;
}

/* A program may end without destroying anything, and while a thread of it
 * makes the host or ends it. */
__attribute__((destructor)) static void quit(void) NO_LOCK_ANALYSIS
{
	if (the_owner != getpid() || !lock_try(&host_once))
		return;
	if (the_host)
		lane_quit(&the_host->lane);
	lock_give(&host_once);
}

void host_put(struct host *h)
{
	if (!host_is_ours(h))
		return;
	take_shielded(&host_once, &once_cancel);
	if (--h->users == 0) {
		netif_unwatch();
		if (!thread_stop(&h->lane)) {
			/* it sleeps in what would be freed */
			leave_behind();
			give_shielded(&host_once, once_cancel);
			return;
		}
		neighbour_close();
		lane_fini(&h->lane);
		capture_close();
		peer_close();
		guard_close();
		space_self_fini(&h->space);
		arena_map_free(&h->map);
		lock_fini(&h->ctx);
		free(h);
		the_host = NULL;
	}
	give_shielded(&host_once, once_cancel);
}

bool host_is_ours(const struct host *h)
{
	return h->pid == getpid();
}

struct hca *host_hca(struct host *h)
{
	return &h->hca;
}

void host_lock(struct host *h)
{
	take_shielded(&h->ctx, &h->cancel);
}

void host_unlock(struct host *h)
{
	give_shielded(&h->ctx, h->cancel);
}

static uint32_t free_qpn(struct host *h)
{
	for (int i = 0; i < QPN_TRIES; i++) {
		uint32_t random, qpn;

		if (!random_fill(&random, sizeof random, true))
			return 0;
		qpn = peer_qpn(random);
		if (qpn > 1 && qpn < QPN_MULTICAST &&
		    !engine_qpn_is_used(h->lane.engine, qpn))
			return qpn;
	}
	return 0;
}

static uint32_t device_index(const struct host_device *dev)
{
	const struct host_device *devices;

	host_devices(&devices);
	return (uint32_t)(dev - devices);
}

struct qp *host_qp_new(struct host *h, const struct host_device *dev,
		       uint32_t type, uint32_t pd, struct cq *send_cq,
		       struct cq *recv_cq, const struct hca_qp_cap *cap,
		       bool sq_sig_all, uint64_t user,
		       struct ibt_qp **side) NO_LOCK_ANALYSIS
{
	struct qp *qp = NULL;
	uint32_t qpn;

	lane_take(&h->lane);
	qpn = free_qpn(h);
	if (qpn)
		qp = qp_new(&h->hca, qpn, type, pd, send_cq, recv_cq, cap,
			    sq_sig_all);
	if (qp)
		qp->device = device_index(dev);
	*side = qp ? engine_qp_add(h->lane.engine, qp) : NULL;
	if (qp && !*side) {
		qp_withdraw(&h->hca, qp);
		qp_free(&h->hca, qp);
		qp = NULL;
	}
	if (qp)
		qp->user = user;
	if (qp && type != HCA_QPT_RC)
		lane_join(&h->lane);
	lane_give(&h->lane);
	if (!qp)
		errno = ENOMEM;
	return qp;
}

/* What it sends from now; 0: it has no path. */
static uint16_t port_of(struct host *h, const struct ibt_qp *side)
{
	struct hca_qp_attr now;

	engine_qp_query(h->lane.engine, side, &now);
	return now.ah.port;
}

void host_qp_withdraw(struct host *h, struct qp *qp) NO_LOCK_ANALYSIS
{
	lane_take(&h->lane);
	lane_catch_up(&h->lane);
	qp_withdraw(&h->hca, qp);
	lane_give(&h->lane);
	guest_wait(&h->hca, guest_qp(qp->qpn));
}

void host_qp_free(struct host *h, struct qp *qp,
		  struct ibt_qp *side) NO_LOCK_ANALYSIS
{
	lane_take(&h->lane);
	lane_catch_up(&h->lane);
	sport_give(&h->lane.wire.sports, port_of(h, side));
	engine_qp_remove(h->lane.engine, side);
	ways_part(h->lane.engine);
	groups_sweep(&h->lane);
	lane_give(&h->lane);
	qp_free(&h->hca, qp);
}

/* The address of the source GID that the path asks for, and its interface. */
static int source(const struct host_device *dev, const struct hca_ah *ah,
		  uint8_t from[16], uint32_t *link, const char **why)
{
	struct host_gid gid;

	if (!host_gid(dev, ah->sgid_index, &gid)) {
		*why = "the GID table has nothing at sgid_index";
		return -EINVAL;
	}
	if (gid.type != HOST_GID_ROCE_V2) {
		*why = "sgid_index is a RoCE v1 GID; index 1 is RoCE v2";
		return -EINVAL;
	}
	memcpy(from, gid.gid, 16);
	*link = gid.ifindex;
	return 0;
}

/*
 * From where and to what a datagram for an IPv6 group goes.  The kernel has no
 * way to one from ::1, as it has from 127.0.0.1.
 */
static void to_group(uint8_t from[16], uint8_t dest[16])
{
	static const uint8_t lo4[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};
	uint8_t gid[16];

	if (!memcmp(from, &in6addr_loopback, 16))
		memcpy(from, lo4, 16);
	if (!inaddr_is_v4(from))
		return;
	memcpy(gid, dest, 16);
	groups_alias(gid, dest);
}

int host_path(struct host *h, const struct host_device *dev,
	      const struct hca_ah *ah, struct wq_to *to, const char **why)
{
	struct host_port port;
	uint8_t from[16], dest[16];
	uint32_t link;
	int err = source(dev, ah, from, &link, why);

	if (err)
		return err;
	host_say_unreachable(from, ah);
	memcpy(dest, ah->dgid, 16);
	if (inaddr_is_multicast(dest) && !inaddr_is_v4(dest))
		to_group(from, dest);
	if (inaddr_is_v4(from) != inaddr_is_v4(dest)) {
		*why = "source and destination GID are not both IPv4 or both "
		       "IPv6";
		return -EINVAL;
	}
	host_port(dev, &port);
	*to = (struct wq_to){.mtu = (uint8_t)port.active_mtu,
			     .tos = ah->traffic_class,
			     .ttl = ah->hop_limit,
			     .local = netif_is_local(ah->dgid),
			     .link = link};
	to->bursts = h->lane.wire.has.gso && offload_is_known(from, dest);
	memcpy(to->from, from, 16);
	memcpy(to->to, dest, 16);
	return 0;
}

int host_mcast_attach(struct host *h, const struct host_device *dev,
		      struct ibt_qp *side, const uint8_t gid[16],
		      const char **why) NO_LOCK_ANALYSIS
{
	int err;

	lane_take(&h->lane);
	err = groups_attach(&h->lane, dev, side, gid, why);
	lane_give(&h->lane);
	return err;
}

int host_mcast_detach(struct host *h, struct ibt_qp *side,
		      const uint8_t gid[16], const char **why) NO_LOCK_ANALYSIS
{
	int err;

	lane_take(&h->lane);
	err = groups_detach(&h->lane, side, gid, why);
	lane_give(&h->lane);
	return err;
}

static int check_mtu(const struct host_device *dev,
		     const struct hca_qp_attr *attr, const char **why)
{
	struct host_port port;

	host_port(dev, &port);
	if (attr->path_mtu <= port.active_mtu)
		return 0;
	*why = "path_mtu is above the port's active_mtu";
	return -EINVAL;
}

/* The UDP port that a connected QP sends from; taken. */
static uint16_t source_port(struct host *h, const struct ibt_qp *side,
			    const struct hca_qp_attr *attr, uint32_t mask)
{
	struct hca_qp_attr now;

	engine_qp_query(h->lane.engine, side, &now);
	if (mask & HCA_QP_DEST_QPN)
		now.dest_qpn = attr->dest_qpn;
	return sport_take(&h->lane.wire.sports, attr->ah.dgid,
			  peer_class(now.dest_qpn), clock_now(&h->lane.clock));
}

void host_aim(struct host *h, struct wq_to *to) NO_LOCK_ANALYSIS
{
	struct sports *sports = &h->lane.wire.sports;
	uint32_t class = peer_class(to->qpn);

	to->port = sport_find(sports, to->to, class);
	if (to->port)
		return;
	lane_take(&h->lane);
	to->port = sport_open(sports, to->to, class, clock_now(&h->lane.clock));
	lane_give(&h->lane);
}

/* Whom a request would go to without packets, if it is on this host. */
static void expect(struct host *h, const struct ibt_qp *side)
{
	struct hca_qp_attr now;

	engine_qp_query(h->lane.engine, side, &now);
	if (now.ah.local && now.dest_qpn)
		neighbour_expect(now.dest_qpn);
}

static int modify(struct host *h, struct ibt_qp *side, struct hca_qp_attr *own,
		  uint32_t mask, const uint8_t from[16],
		  const char **why) NO_LOCK_ANALYSIS
{
	uint16_t port;
	int err;

	lane_take(&h->lane);
	if (mask & HCA_QP_STATE &&
	    (own->qp_state == HCA_QP_RESET || own->qp_state == HCA_QP_ERR))
		lane_catch_up(&h->lane);
	else
		lane_flush(&h->lane);
	port = port_of(h, side);
	own->ah.port = 0;
	if (mask & HCA_QP_AV)
		own->ah.port = source_port(h, side, own, mask);
	err = engine_qp_modify(h->lane.engine, side, own, mask, from,
			       clock_now(&h->lane.clock), why);
	if (err)
		port = own->ah.port;
	else if (!(mask & HCA_QP_AV) && port == port_of(h, side))
		port = 0;
	sport_give(&h->lane.wire.sports, port);
	if (!err && mask & HCA_QP_STATE && own->qp_state == HCA_QP_RTS)
		expect(h, side);
	lane_give(&h->lane);
	return err;
}

int host_qp_modify(struct host *h, const struct host_device *dev,
		   struct ibt_qp *side, const struct hca_qp_attr *attr,
		   uint32_t mask, const char **why) NO_LOCK_ANALYSIS
{
	struct hca_qp_attr own = *attr;
	uint8_t from[16] = {0};
	int err = 0;

	if ((mask & HCA_QP_AV) && attr->ah.is_global)
		err = source(dev, &attr->ah, from, &own.ah.link, why);
	if (!err && (mask & HCA_QP_PATH_MTU))
		err = check_mtu(dev, attr, why);
	if (err)
		return err;
	if ((mask & HCA_QP_AV) && attr->ah.is_global)
		host_say_unreachable(from, &attr->ah);
	if ((mask & HCA_QP_STATE) && attr->qp_state == HCA_QP_RTR) {
		host_lock(h);
		err = thread_start(&h->lane);
		host_unlock(h);
	}
	if (err) {
		*why = "the adapter's thread cannot be started";
		return err;
	}
	own.ah.local = netif_is_local(attr->ah.dgid);
	own.ah.bursts = (mask & HCA_QP_AV) && h->lane.wire.has.gso &&
			offload_is_known(from, attr->ah.dgid);
	return modify(h, side, &own, mask, from, why);
}

void host_qp_wait(struct ibt_qp *side, struct alock_wait *wait)
{
	alock_wait(wait, engine_qp_guest(side));
}

void host_qp_query(struct host *h, struct ibt_qp *side,
		   struct hca_qp_attr *attr) NO_LOCK_ANALYSIS
{
	lane_take(&h->lane);
	engine_mail(h->lane.engine);
	engine_qp_query(h->lane.engine, side, attr);
	lane_give(&h->lane);
}

void host_cq_free(struct host *h, struct cq *cq) NO_LOCK_ANALYSIS
{
	lane_take(&h->lane);
	engine_cq_remove(h->lane.engine, cq);
	lane_give(&h->lane);
	cq_free(&h->hca, cq);
}

int host_srq_resize(struct host *h, struct srq *s,
		    uint32_t depth) NO_LOCK_ANALYSIS
{
	int err;

	lane_take(&h->lane);
	err = srq_resize(&h->hca, s, depth);
	lane_give(&h->lane);
	return err;
}

void host_quiesce(struct host *h) NO_LOCK_ANALYSIS
{
	lane_take(&h->lane);
	lane_ring(&h->lane);
	lane_give(&h->lane);
}

/* Who collects what peers have left may have a letter about it for our thread,
 * and no peer wakes that. */
static void wake_for_mail(struct host *h)
{
	if (mail_is_there(&h->hca) && ring_load(&h->hca.shared->is_asleep))
		lane_wake(&h->lane);
}

void host_await_guests(struct host *h, guest_set what)
{
	host_quiesce(h);
	guest_wait(&h->hca, what);
	host_lock(h);
	carry_settle(&h->hca);
	host_unlock(h);
	wake_for_mail(h);
}

void host_doorbell(struct host *h, struct ibt_qp *side, uint64_t bytes)
{
	lane_doorbell(&h->lane, side,
		      (uint32_t)bits_min_u64(bytes, UINT32_MAX / 2));
}

/*
 * Give the core up, and then look.  When that let somebody run for a moment
 * and something came of it, in packets or right into the queue that is polled,
 * the peer shares our core: then every look is better preceded by it.  A switch
 * to who computes takes longer.
 */
static void yield_poll(struct host *h, uint32_t every)
{
	uint32_t news = ring_load(&h->lane.news);
	uint64_t began = clock_real(), took;
	bool ran;

	sched_yield();
	took = clock_real() - began;
	ran = took > SWITCH_MIN_NS && took < SWITCH_MAX_NS;
	lane_poll(&h->lane);
	every = ran && ring_load(&h->lane.news) != news
			? 1
			: bits_min_u32(2 * every, POLL_YIELD);
	ring_store(&h->yield_every, every);
	ring_store(&h->is_after, ran);
}

void host_poll(struct host *h, uint32_t empty)
{
	uint32_t every = ring_own(&h->yield_every);

	/* these polls cost next to nothing, but where the peer has our core */
	if (ways_is_quiet(&h->lane.ways))
		every *= every > 1 ? 4 : 1;
	else if (ring_load(&h->lane.is_paced))
		every *= 16;
	if ((empty + 1) % every == 0)
		yield_poll(h, every);
	else
		lane_poll(&h->lane);
}

void host_polled(struct host *h, bool empty)
{
	if (ring_own(&h->lane.is_hungry) != empty)
		ring_store(&h->lane.is_hungry, empty);
	if (ring_own(&h->is_after)) {
		ring_store(&h->is_after, false);
		/* wrongly, it is doubled back within a few polls */
		if (!empty)
			ring_store(&h->yield_every, 1);
	}
	wake_for_mail(h);
}

void host_armed(struct host *h)
{
	thread_armed(&h->lane);
	lane_serve(&h->lane);
}

void host_awaits(struct host *h)
{
	lane_serve(&h->lane);
}

int host_sleep(struct host *h, const struct host_sleep *s)
{
	return minder_sleep(&h->lane, s);
}

void host_slept(void)
{
	minder_slept();
}

void host_wake(struct host *h)
{
	lane_wake(&h->lane);
}
