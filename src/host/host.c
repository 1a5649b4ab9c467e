/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/host.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "device/netif.h"
#include "device/sysfs.h"
#include "engine/shm_ack.h"
#include "hca/access.h"
#include "host/broker_link.h"
#include "host/capture.h"
#include "host/fabric_link.h"
#include "host/inside.h"
#include "host/lid_path.h"
#include "host/local_peer.h"
#include "host/mcast_socket.h"
#include "host/path.h"
#include "host/path_check.h"
#include "host/progress.h"
#include "host/progress_thread.h"
#include "host/source_port.h"
#include "log/env.h"
#include "log/log.h"
#include "memory/arena_map.h"
#include "memory/copy_nofault.h"
#include "memory/space_self.h"
#include "util/bits.h"
#include "util/fd_table.h"
#include "util/map.h"
#include "util/monotonic.h"
#include "util/process.h"
#include "util/random.h"
#include "util/remedy.h"

#define WINDOW_PACKETS	 512 /* engine_config.window */
#define PATIENCE_DEFAULT 60  /* seconds */
#define PATIENCE_MAX	 1000000000
#define QPN_TRIES	 256 /* random QPNs that free_qpn tries */
#define NS_PER_MS	 1000000u
#define QPN_MULTICAST	 0xffffff /* IBTA 9.6.1 */
#define FILES_FEW	 6	  /* look_for_files warns if fewer are left */

static struct host *the_host;
/* the process that made the_host, or is making it (process_number); 0: none */
static uint64_t the_owner;
static struct lock host_once;
static int once_cancel; /* the cancel state from before host_once was taken */

/* Takes l, and disables cancellation of the thread until give_shielded, because
 * the code under host_once and ctx opens and closes files. */
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

static uint64_t patience_ns(void)
{
	const char *text = env_text("ADVERB_PATIENCE");
	long seconds = text ? strtol(text, NULL, 0) : PATIENCE_DEFAULT;

	if (seconds <= 0)
		seconds = PATIENCE_DEFAULT;
	return (seconds < PATIENCE_MAX ? (uint64_t)seconds : PATIENCE_MAX) *
	       1000000000u;
}

static struct engine_without read_without(void)
{
	return (struct engine_without){
		.credits = env_is_without(ENV_CREDITS),
		.acks = env_is_without(ENV_ACKS),
		.eager = env_is_without(ENV_EAGER),
	};
}

/* Stores the interface and kind of each device.  engine_publish shows them to
 * the broker beside the device's counters, because one index may mean different
 * devices in different processes. */
static void store_links(struct hca *hca)
{
	const struct device *devices;
	uint32_t count = device_list(&devices);

	for (uint32_t i = 0; i < count; i++)
		hca->shared->links[i] = device_link(&devices[i]);
}

static void show_tree(void)
{
	const struct device *devices;
	int fd = sysfs_path() && device_list(&devices) ? sysfs_devices() : -1;

	if (fd >= 0)
		broker_link_tree(fd);
}

/* Returns the InfiniBand device of this process; NULL: the process is not on a
 * host of a fabric. */
static const struct device *ib_device(void)
{
	const struct device *devices;

	return device_list(&devices) && devices[0].kind == DEVICE_IB ? devices
								     : NULL;
}

/* Calls local_peer_open, unless the fabric forbids direct requests.  Returns
 * the socket that receives datagrams, or -errno.  On a host of a fabric, whose
 * device is `ib`, the socket is not bound and receives no datagrams, and no
 * broker is needed.  @patience: how many ns to wait for the broker. */
static int open_socket(struct host *h, const struct device *ib,
		       uint64_t patience)
{
	if (!ib || ib->may_go_direct)
		local_peer_open(&h->hca, !env_is_without(ENV_MAPPED));
	if (ib)
		return udp_unbound();
	return broker_link_socket(local_peer_is_open() ? h->map.fd : -1,
				  local_peer_wake_fd(), patience);
}

/* Opens the link of the InfiniBand device, and shares the arena with the other
 * programs of the subnet, if this process and the fabric permit that.
 * @patience: how many ns to wait for each answer.  Returns 0 or -errno. */
static int open_link(struct host *h, struct engine *e, uint64_t patience)
{
	uint64_t ms = bits_min_u64(patience / NS_PER_MS, INT32_MAX);
	int err = fabric_link_open(e, 0, (uint32_t)ms);

	if (!err && local_peer_is_open() &&
	    !fabric_link_share(e, h->map.fd, local_peer_wake_fd()))
		local_peer_withdraw();
	return err;
}

/* Gives the device layer the states of the ports that the fabric reported while
 * the link was opened. */
static void show_ports(struct host *h)
{
	progress_take(&h->progress);
	fabric_link_show(h->progress.ib, true);
	progress_give(&h->progress);
}

/* Starts all parts of the host.  Returns 0; or -errno, after it has closed the
 * parts that were started. */
static int start_host(struct host *h, const struct host_sink *sink)
{
	struct engine_config config = {.hca = &h->hca,
				       .window = WINDOW_PACKETS,
				       .strict = env_is_on("ADVERB_STRICT"),
				       .patience_ns = patience_ns(),
				       .without = read_without()};
	struct udp_offload allowed = {.gso = !env_is_off("ADVERB_GSO"),
				      .gro = !env_is_off("ADVERB_GRO")};
	const struct device *ib = ib_device();
	struct engine *e;
	uint64_t seed[4];
	int fd, err;

	if (!random_fill(seed, sizeof(seed), true)) {
		log_say(LOG_RANDOM, 0,
			"the kernel gives no random numbers, which adverb "
			"needs for keys and queue pair numbers: allow "
			"getrandom(2) in the sandbox, or make /dev/urandom "
			"readable there");
		return -ENOSYS;
	}
	err = arena_map_new(&h->map);
	if (err)
		return err;
	space_self_init(&h->space);
	copy_nofault_open();
	err = hca_init(&h->hca, h->map.arena, &h->space.space, seed);
	if (err)
		goto close_peers;
	store_links(&h->hca);
	fd = open_socket(h, ib, config.patience_ns);
	if (fd < 0) {
		err = fd;
		goto close_peers;
	}
	show_tree();
	if (broker_link_page())
		config.class_of = broker_link_class;
	config.direct = local_peer_is_open();
	config.asks_sources = true;
	source_port_forget();
	e = engine_new(&config, monotonic_ns());
	err = e ? 0 : -ENOMEM;
	if (!err && ib)
		err = open_link(h, e, config.patience_ns);
	if (!err) {
		err = progress_init(&h->progress, e, fd, sink, allowed,
				    env_is_off("ADVERB_SPORT"));
		fd = -1; /* progress_init owns fd also after an error */
	}
	if (!err) {
		h->progress.ib = ib;
		show_ports(h);
		if (env_is_without(ENV_ADAPTIVE))
			poll_policy_fix(&h->progress.policy);
		engine_inbox(e, broker_link_page(),
			     broker_link_class(broker_link_qpn(0)),
			     udp_buffer_bytes(&h->progress.wire),
			     !h->progress.wire.has.gro);
		capture_open(ib);
		/* A capture shows packets only.  So if a capture is open, this
		 * process sends and reads ACKs in packets. */
		if (!capture_is_open() && !config.strict)
			shm_ack_open(engine_shm_ack(e), broker_link_page());
		netif_watch(sink->port);
		return 0;
	}
	fabric_link_close();
	if (e)
		engine_free(e);
	if (fd >= 0)
		close(fd);
	broker_link_close();
close_peers:
	local_peer_close();
	copy_nofault_close();
	space_self_fini(&h->space);
	arena_map_free(&h->map);
	return err;
}

/* Prints a message if the program can open only few more files: once it has
 * opened them, its own calls fail, and adverb cannot say why. */
static void look_for_files(void)
{
	struct rlimit limit;
	int lowest = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);

	if (lowest >= 0)
		close(lowest);
	else if (errno != EMFILE)
		return; /* the program has closed standard error */
	if (getrlimit(RLIMIT_NOFILE, &limit) || !limit.rlim_cur ||
	    (lowest >= 0 && (rlim_t)lowest + FILES_FEW <= limit.rlim_cur))
		return;
	log_say(LOG_FILES_FEW, 0,
		"the device is open, but this program has almost reached its "
		"limit of %llu open files, of which adverb needs about 20: "
		"raise ulimit -n",
		(unsigned long long)limit.rlim_cur);
}

/* Starts the progress thread before a queue pair needs it.  This process must
 * notice the death of the broker even while the program sleeps: the broker's
 * successor needs the descriptors of this process.  A host of a fabric must
 * notice changes of its ports.  If the thread does not start, the device can be
 * used nevertheless: start_thread tries again, and its failure is that of
 * ibv_modify_qp. */
static void start_early(struct host *h)
{
	int err = progress_thread_start(&h->progress);

	if (err)
		log_say(LOG_THREAD_PROGRESS, 0,
			"the device is open, but the progress thread cannot "
			"be started: %s: until a queue pair enters RTR and "
			"starts the thread, this process does not notice %s "
			"while the program sleeps; %s",
			strerror(-err),
			fabric_link_is_open() ? "changes of its ports"
					      : "the end of the broker",
			remedy_of(-err, "raise ulimit -u and -n"));
}

static struct host *new_host(const struct host_sink *sink)
{
	struct host *h = aligned_alloc(alignof(struct host), sizeof(*h));
	int err;

	if (!h) {
		errno = ENOMEM;
		return NULL;
	}
	memset(h, 0, sizeof(*h));
	h->process = process_number();
	h->users = 1;
	env_check();
	lock_init(&h->ctx);
	fd_table_enlarge(); /* a child of fork has a small table again */
	err = start_host(h, sink);
	if (err) {
		lock_fini(&h->ctx);
		free(h);
		errno = -err;
		return NULL;
	}
	if (broker_link_fd() >= 0 || fabric_link_is_open())
		start_early(h);
	look_for_files();
	return h;
}

/* If a thread of the parent held the lock, no thread of the child would release
 * it. */
static void after_fork(void)
{
	lock_init(&host_once);
}

/* Many programs have threads once they open a device, but few have threads when
 * this library is loaded. */
__attribute__((constructor)) static void enlarge_early(void)
{
	fd_table_enlarge();
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, after_fork);
}

/* Forgets the host without touching its objects.  In the child of a fork they
 * may be half made; in host_put the progress thread still uses them. */
static void leave_behind(void)
{
	the_host = NULL;
	progress_thread_forget();
	netif_forget();
	local_peer_forget();
	broker_link_close();
	fabric_link_forget();
}

struct host *host_get(const struct host_sink *sink)
{
	struct host *h;

	take_shielded(&host_once, &once_cancel);
	if (the_owner && the_owner != process_number())
		leave_behind();
	the_owner = process_number();
	if (the_host)
		the_host->users++;
	else
		the_host = new_host(sink);
	h = the_host;
	give_shielded(&host_once, once_cancel);
	return h;
}

/* Called when the program ends.  If the program has not destroyed its objects,
 * sends what is still to be sent.  Does nothing while a thread makes or frees
 * the host. */
__attribute__((destructor)) static void quit(void) NO_LOCK_ANALYSIS
{
	if (the_owner != process_number() || !lock_try(&host_once))
		return;
	if (the_host)
		progress_quit(&the_host->progress);
	lock_give(&host_once);
}

void host_put(struct host *h)
{
	if (!host_is_ours(h))
		return;
	take_shielded(&host_once, &once_cancel);
	if (--h->users == 0) {
		netif_unwatch();
		if (!progress_thread_stop(&h->progress)) {
			/* The progress thread could not be woken, and would use
			 * freed memory. */
			leave_behind();
			give_shielded(&host_once, once_cancel);
			return;
		}
		progress_send_rest(&h->progress);
		local_peer_close();
		progress_fini(&h->progress);
		fabric_link_close();
		capture_close();
		broker_link_close();
		copy_nofault_close();
		space_self_fini(&h->space);
		arena_map_free(&h->map);
		lock_fini(&h->ctx);
		map_free(&h->domains);
		free(h);
		the_host = NULL;
	}
	give_shielded(&host_once, once_cancel);
}

bool host_is_ours(const struct host *h)
{
	return h->process == process_number();
}

struct hca *host_hca(struct host *h)
{
	return &h->hca;
}

struct map *host_domains(struct host *h)
{
	return &h->domains;
}

struct progress *host_progress(struct host *h)
{
	return &h->progress;
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

		if (!random_fill(&random, sizeof(random), true))
			return 0;
		qpn = fabric_link_is_open() ? fabric_link_qpn(random)
					    : broker_link_qpn(random);
		if (qpn > 1 && qpn < QPN_MULTICAST &&
		    !engine_qp_find(h->progress.engine, qpn))
			return qpn;
	}
	return 0;
}

static uint32_t device_index(const struct device *dev)
{
	const struct device *devices;

	device_list(&devices);
	return (uint32_t)(dev - devices);
}

struct qp *host_qp_new(struct host *h, const struct device *dev, uint32_t type,
		       uint32_t pd, struct cq *send_cq, struct cq *recv_cq,
		       const struct hca_qp_cap *cap, bool sq_sig_all,
		       uint64_t user, struct ibt_qp **side) NO_LOCK_ANALYSIS
{
	struct qp *qp = NULL;
	uint32_t qpn;

	progress_take(&h->progress);
	post_lock_add(&h->progress.posts, engine_post_lock_of(send_cq));
	qpn = free_qpn(h);
	if (qpn)
		qp = qp_new(&h->hca, qpn, type, pd, send_cq, recv_cq, cap,
			    sq_sig_all);
	if (qp) {
		qp->device = device_index(dev);
		qp->is_iwarp = dev->kind == DEVICE_IWARP;
		qp->is_by_lid = dev->kind == DEVICE_IB;
	}
	*side = qp ? engine_qp_add(h->progress.engine, qp) : NULL;
	if (qp && !*side)
		qp_withdraw(&h->hca, qp);
	if (*side)
		qp->user = user;
	if (*side && type != HCA_QPT_RC)
		progress_join(&h->progress);
	progress_give(&h->progress);
	if (qp && !*side) {
		/* a peer may have found the QP before it was withdrawn */
		access_wait(&h->hca, access_qp(qp->qpn));
		progress_take(&h->progress);
		qp_free(&h->hca, qp);
		progress_give(&h->progress);
		qp = NULL;
	}
	if (!qp)
		errno = fabric_link_has_ended() ? EIO : ENOMEM;
	return qp;
}

/* Handles what has come for a QP before the QP ends.  No packet of the sockets
 * is for a QP of an iWARP device, so the sockets are then not read. */
static void catch_up(struct host *h, const struct qp *qp)
	REQUIRES(&h->progress.lock)
{
	if (qp->is_iwarp)
		progress_flush(&h->progress);
	else
		progress_catch_up(&h->progress);
}

void host_qp_withdraw(struct host *h, struct qp *qp) NO_LOCK_ANALYSIS
{
	progress_take(&h->progress);
	catch_up(h, qp);
	qp_withdraw(&h->hca, qp);
	progress_give(&h->progress);
	access_wait(&h->hca, access_qp(qp->qpn));
}

void host_qp_free(struct host *h, struct qp *qp,
		  struct ibt_qp *side) NO_LOCK_ANALYSIS
{
	progress_take(&h->progress);
	catch_up(h, qp);
	stream_set_drop(&h->progress.streams, h->progress.engine, qp->qpn,
			h->progress.now_ns);
	sport_give(&h->progress.wire.sports, path_port(h, side));
	engine_qp_remove(h->progress.engine, side);
	direct_select_part(h->progress.engine);
	mcast_socket_sweep(&h->progress);
	qp_free(&h->hca, qp);
	progress_give(&h->progress);
}

int host_mcast_attach(struct host *h, const struct device *dev,
		      struct ibt_qp *side, const uint8_t gid[16],
		      const char **why) NO_LOCK_ANALYSIS
{
	int err;

	progress_take(&h->progress);
	err = mcast_socket_attach(&h->progress, dev, side, gid, why);
	progress_give(&h->progress);
	return err;
}

int host_mcast_detach(struct host *h, struct ibt_qp *side,
		      const uint8_t gid[16], const char **why) NO_LOCK_ANALYSIS
{
	int err;

	progress_take(&h->progress);
	err = mcast_socket_detach(&h->progress, side, gid, why);
	progress_give(&h->progress);
	return err;
}

/* Asks the broker for the arena of a connected QP's peer, before a request
 * needs the arena, if the peer is on this host. */
static void expect_peer(struct host *h, const struct ibt_qp *side)
{
	struct hca_qp_attr now;

	engine_qp_query(h->progress.engine, side, &now);
	if (now.ah.local && now.dest_qpn)
		local_peer_expect(now.dest_qpn);
}

/* Modifies a QP under the progress lock, and gives the QP another UDP source
 * port if its path changes.  @from: the source GID; @has_udp: the QP's packets
 * go by UDP.  Returns 0, or -errno with a sentence in *why. */
static int modify_qp(struct host *h, struct ibt_qp *side,
		     struct hca_qp_attr *own, uint32_t mask,
		     const uint8_t from[16], bool has_udp,
		     const char **why) NO_LOCK_ANALYSIS
{
	uint16_t port;
	int err;

	progress_take(&h->progress);
	if (mask & HCA_QP_STATE &&
	    (own->qp_state == HCA_QP_RESET || own->qp_state == HCA_QP_ERR))
		progress_catch_up(&h->progress);
	else
		progress_flush(&h->progress);
	port = path_port(h, side);
	own->ah.port = 0;
	if (mask & HCA_QP_AV && has_udp)
		own->ah.port = path_take_port(h, side, own, mask);
	err = engine_qp_modify(h->progress.engine, side, own, mask, from,
			       clock_now(&h->progress.clock), why);
	if (err)
		port = own->ah.port;
	else if (!(mask & HCA_QP_AV) && port == path_port(h, side))
		port = 0;
	sport_give(&h->progress.wire.sports, port);
	if (!err && mask & HCA_QP_STATE && own->qp_state == HCA_QP_RTS)
		expect_peer(h, side);
	progress_give(&h->progress);
	return err;
}

/* Starts the progress thread before the QP enters RTR, because packets that the
 * QP receives may need the thread from then on. */
static int start_thread(struct host *h, const struct hca_qp_attr *attr,
			uint32_t mask, const char **why)
{
	int err;

	if (!(mask & HCA_QP_STATE) || attr->qp_state != HCA_QP_RTR)
		return 0;
	host_lock(h);
	err = progress_thread_start(&h->progress);
	host_unlock(h);
	if (err)
		*why = "the progress thread cannot be started; raise the "
		       "limits on processes and open files (ulimit -u, -n)";
	return err;
}

static int modify_by_lid(struct host *h, const struct device *dev,
			 struct ibt_qp *side, struct hca_qp_attr *own,
			 uint32_t mask, const char **why) NO_LOCK_ANALYSIS
{
	int err = lid_path_set(dev, own, mask, why);

	if (!err && fabric_link_has_ended() && mask & HCA_QP_STATE &&
	    own->qp_state != HCA_QP_RESET && own->qp_state != HCA_QP_ERR) {
		*why = "the device has failed, because its link to the fabric "
		       "has ended; start the program again";
		err = -EIO;
	}
	if (!err)
		err = start_thread(h, own, mask, why);
	if (!err)
		err = modify_qp(h, side, own, mask, own->ah.sgid, false, why);
	if (!err && mask & HCA_QP_AV)
		lid_path_say_inactive(dev, own->ah.port_num);
	return err;
}

int host_qp_modify(struct host *h, const struct device *dev,
		   struct ibt_qp *side, const struct hca_qp_attr *attr,
		   uint32_t mask, const char **why) NO_LOCK_ANALYSIS
{
	struct hca_qp_attr own = *attr;
	uint8_t from[16] = {0};
	int err = 0;

	if (dev->kind == DEVICE_IB)
		return modify_by_lid(h, dev, side, &own, mask, why);
	if (mask & HCA_QP_AV && attr->ah.is_global && dev->kind != DEVICE_IWARP)
		err = path_source_gid(dev, &attr->ah, from, &own.ah.link, why);
	if (!err && (mask & HCA_QP_PATH_MTU))
		err = path_check_mtu(dev, 1, attr, why);
	if (!err && dev->kind == DEVICE_IWARP)
		return stream_modify(&h->progress, side, attr, mask, why);
	if (err)
		return err;
	if ((mask & HCA_QP_AV) && attr->ah.is_global)
		netif_say_unreachable(from, &attr->ah);
	err = start_thread(h, attr, mask, why);
	if (err)
		return err;
	path_fill(h, from, mask, &own.ah);
	return modify_qp(h, side, &own, mask, from, true, why);
}

void host_qp_wait(struct ibt_qp *side, struct alock_wait *wait)
{
	alock_wait(wait, engine_qp_accessor(side));
}

void host_qp_query(struct host *h, struct ibt_qp *side,
		   struct hca_qp_attr *attr) NO_LOCK_ANALYSIS
{
	progress_take(&h->progress);
	engine_serve_notify(h->progress.engine);
	engine_qp_query(h->progress.engine, side, attr);
	progress_give(&h->progress);
}

bool host_catch_up(struct host *h, uint32_t qpn) NO_LOCK_ANALYSIS
{
	bool has_comps;

	progress_take(&h->progress);
	progress_catch_up(&h->progress);
	has_comps = engine_qp_has_comps(h->progress.engine, qpn);
	progress_give(&h->progress);
	return has_comps;
}

void host_cq_free(struct host *h, struct cq *cq) NO_LOCK_ANALYSIS
{
	progress_take(&h->progress);
	engine_cq_remove(h->progress.engine, cq);
	progress_give(&h->progress);
	cq_free(&h->hca, cq);
}

int host_srq_resize(struct host *h, struct srq *s,
		    uint32_t depth) NO_LOCK_ANALYSIS
{
	int err;

	progress_take(&h->progress);
	err = srq_resize(&h->hca, s, depth);
	progress_give(&h->progress);
	return err;
}

void host_quiesce(struct host *h) NO_LOCK_ANALYSIS
{
	progress_take(&h->progress);
	progress_serve_doorbells(&h->progress);
	progress_give(&h->progress);
}
