/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/netif.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "device/ib.h"
#include "device/netdev.h"
#include "device/netlink.h"
#include "device/sysfs.h"
#include "log/env.h"
#include "log/log.h"
#include "util/check.h"
#include "util/inaddr.h"
#include "util/lock.h"
#include "util/remedy.h"
#include "util/shared.h"
#include "util/fd_identity.h"

/* device_count devices, made once and never freed; NULL: none. */
static struct device *devices;
static uint32_t device_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;
/* Protects the devices' ports, ib_news and watch.wake_fd. */
static struct lock ports;
/* Always odd, so never 0.  Stored under the lock `ports`, after the ports were
 * changed.  So a thread that loads a new number and then takes the lock finds
 * the changed ports.  If the number were stored before the lock was taken, the
 * thread could read the old ports, and keep its answer under the new number
 * (host/addresses.c). */
static shared_u32 version = 1;

/* How long a fabric may take for each answer while the list of devices is
 * made. */
#define FABRIC_PATIENCE_MS 60000
/* When the interfaces are read again after a read that failed, for example
 * because the process had no free descriptor. */
#define RETRY_MS 1000

static struct {
	bool runs; /* netif_watch has started the thread */
	pthread_t thread;
	/* The first read of the interfaces failed.  Written before the thread
	 * starts. */
	bool is_stale;
	int netlink_fd; /* the socket of netlink_watch; -1: none */
	/* An eventfd that wakes the thread, which then ends or reports ib_news;
	 * -1: none.  Written under the lock `ports`, since netif_set_port uses
	 * it. */
	int wake_fd;
	netif_on_port *port; /* NULL: events are not reported */
} watch = {.netlink_fd = -1, .wake_fd = -1};
/* The events of the ports of an InfiniBand device that the thread has not
 * reported yet, as sets of 1 << enum device_event; under the lock `ports`. */
static uint32_t ib_news[HCA_MAX_PORTS];
/* Changes with each netif_watch and netif_unwatch.  A thread that finds another
 * number than at its start ends without a use of its descriptors: if
 * netif_unwatch could not wake the thread, the descriptors may by then be the
 * program's. */
static shared_u32 generation;

static void next_generation(void)
{
	shared_store(&generation, shared_own(&generation) + 1);
}

/* Initialises the locks in the child of a fork, in which the thread that held
 * them does not exist. */
static void after_fork(void)
{
	lock_init(&ports);
	sysfs_forked();
}

/* A constructor registers the handler, because a fork that has begun skips the
 * handlers that another thread registers meanwhile. */
__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, after_fork);
}

/* Returns why the token of ADVERB_DEVICES, which has len bytes, becomes no
 * device, as words for a message. */
static const char *why_missing(const struct netdev_scene *scene,
			       const char *token, size_t len)
{
	const size_t prefix = strlen(NETDEV_IWARP_PREFIX);

	if (device_count == DEVICE_MAX && netdev_fits(scene, token, len))
		return "a process has at most 8 devices; name fewer";
	if (!memchr(token, ':', len))
		return "there is no such interface; see \"ip link\"";
	if (len < prefix || memcmp(token, NETDEV_IWARP_PREFIX, prefix) != 0)
		return "only \"iwarp\" can stand before a colon";
	return "there is no such interface after the colon; see \"ip link\"";
}

static void say_missing(const struct netdev_scene *scene, const char *named)
{
	int len = 0;
	const char *token =
		netdev_missing(scene, named, devices, device_count, &len);

	_Static_assert(DEVICE_MAX == 8, "why_missing has this number");
	if (token && (device_count || memchr(token, ':', (size_t)len)))
		log_say(LOG_DEVICE_NAMED, 0,
			"%.*s of ADVERB_DEVICES becomes no device: %s", len,
			token, why_missing(scene, token, (size_t)len));
	else if (!device_count)
		log_say(LOG_DEVICE_NAMED, 0,
			"no interface is named in ADVERB_DEVICES=%s, so there "
			"are no devices; name interfaces of \"ip link\", or "
			"unset the variable",
			named);
}

/* Called if the user has named no interfaces.  Prints a message if some
 * interfaces become no devices because there are DEVICE_MAX already. */
static void say_left_out(const struct netdev_scene *scene)
{
	int len;

	if (device_count == DEVICE_MAX &&
	    netdev_missing(scene, "roce", devices, device_count, &len))
		log_say(LOG_DEVICE_NAMED, 0,
			"this machine has more than 8 interfaces for RDMA "
			"devices, and a process has at most 8 devices, so the "
			"interfaces after %s become none; name up to 8 in "
			"ADVERB_DEVICES",
			devices[DEVICE_MAX - 1].netdev);
}

static void find_adapter(void)
{
	device_count = ib_find(devices, FABRIC_PATIENCE_MS) ? 0 : 1;
}

static void find_interfaces(void)
{
	struct netdev_scene scene;
	const char *named = env_text("ADVERB_DEVICES");
	int err = netlink_read(&scene, true);

	if (err) {
		log_say(LOG_DEVICE_READ, 0,
			"the network interfaces cannot be read by netlink, so "
			"there are no devices: %s; %s",
			strerror(-err),
			err == -EINTR
				? "start the program again when the interfaces "
				  "do not change"
				: remedy_of(-err, "a sandbox must allow "
						  "sockets of AF_NETLINK"));
		return;
	}
	device_count = netdev_choose(&scene, named, devices);
	if (named)
		say_missing(&scene, named);
	else
		say_left_out(&scene);
	netlink_free(&scene);
}

/* Makes the table of devices.  Gives back the memory beyond the devices that
 * were found, since some programs run under low limits of ulimit -d. */
static void make_table(void)
{
	struct device *kept;

	devices = calloc(DEVICE_MAX, sizeof(*devices));
	if (!devices) {
		log_say(LOG_DEVICE_READ, 0,
			"no memory is left for the table of devices, so there "
			"are no devices; raise ulimit -v and -d");
		return;
	}
	if (ib_is_used())
		find_adapter();
	else
		find_interfaces();
	kept = realloc(devices, (device_count + 1) * sizeof(*devices));
	if (kept)
		devices = kept;
}

/* Called once.  A thread that is cancelled in the calls that ask the kernel or
 * a fabric would leave descriptors open, and the table half made. */
static void enumerate_devices(void)
{
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	make_table();
	pthread_setcancelstate(cancel, NULL);
}

uint32_t device_list(const struct device **out)
{
	pthread_once(&once, enumerate_devices);
	*out = devices;
	return device_count;
}

static bool has_port(const struct device *dev, uint32_t number)
{
	return number && number <= dev->port_count;
}

bool device_port(const struct device *dev, uint32_t number,
		 struct device_port *port)
{
	if (!has_port(dev, number)) {
		memset(port, 0, sizeof(*port));
		return false;
	}
	lock_take(&ports);
	*port = dev->ports[number - 1];
	lock_give(&ports);
	return true;
}

bool device_gid(const struct device *dev, uint32_t number, uint32_t index,
		struct device_gid *gid)
{
	bool found;

	if (!has_port(dev, number))
		return false;
	lock_take(&ports);
	found = netdev_gid(dev, &dev->ports[number - 1], index, gid);
	lock_give(&ports);
	return found;
}

static void say_changes(const struct device *d, uint32_t changes)
{
	if (changes & NETDEV_DOWN)
		log_say(LOG_DEVICE_DOWN, d->ifindex,
			"device %s: the interface %s is down; requests wait, "
			"and fail unless the interface comes up again",
			d->name, d->netdev);
}

static void tell_changes(const uint32_t *changes)
{
	static const struct {
		uint32_t change;
		enum device_event event;
	} rows[] = {
		{NETDEV_GIDS, DEVICE_EVENT_GIDS},
		{NETDEV_DOWN, DEVICE_EVENT_DOWN},
		{NETDEV_UP, DEVICE_EVENT_UP},
	};

	uint32_t any = 0;

	for (uint32_t i = 0; i < device_count; i++) {
		uint32_t seen = changes[i];

		say_changes(&devices[i], changes[i]);
		any |= changes[i];
		/* Programs see only one GID of an iWARP device, and that GID
		 * does not change. */
		if (devices[i].kind == DEVICE_IWARP)
			seen &= ~(uint32_t)NETDEV_GIDS;
		for (size_t k = 0; k < sizeof(rows) / sizeof(*rows); k++)
			if (seen & rows[k].change && watch.port)
				watch.port(&devices[i], 1, rows[k].event);
	}
	if (any)
		sysfs_refresh();
}

/* Returns false if the interfaces cannot be read. */
static bool refresh_ports(void)
{
	uint32_t changes[DEVICE_MAX];
	struct netdev_scene scene;

	if (netlink_read(&scene, false))
		return false;
	lock_take(&ports);
	netdev_update(&scene, devices, device_count, changes);
	shared_store(&version, shared_own(&version) + 2);
	lock_give(&ports);
	netlink_free(&scene);
	tell_changes(changes);
	return true;
}

/* Returns the events of a port that the thread has not reported yet, and
 * removes them.  *is_up: whether the port is active now. */
static uint32_t take_news(uint32_t number, bool *is_up)
{
	uint32_t news;

	lock_take(&ports);
	news = ib_news[number - 1];
	ib_news[number - 1] = 0;
	*is_up = devices[0].ports[number - 1].is_up;
	lock_give(&ports);
	return news;
}

static void tell_event(uint32_t news, uint32_t number, enum device_event what)
{
	if (news & 1u << what && watch.port)
		watch.port(&devices[0], number, what);
}

/* Reports the events of one port.  If the port both went down and became active
 * since the last report, the event of its present state comes last. */
static void tell_port(uint32_t number)
{
	bool is_up;
	uint32_t news = take_news(number, &is_up);

	if (news & 1u << DEVICE_EVENT_DOWN && !is_up)
		log_say(LOG_DEVICE_DOWN, number,
			"device %s: port %u is not active any more; requests "
			"wait, and fail unless the subnet manager makes the "
			"port active again",
			devices[0].name, number);
	tell_event(news, number, is_up ? DEVICE_EVENT_DOWN : DEVICE_EVENT_UP);
	for (uint32_t e = DEVICE_EVENT_GIDS; e < DEVICE_EVENTS; e++)
		tell_event(news, number, (enum device_event)e);
	tell_event(news, number, is_up ? DEVICE_EVENT_UP : DEVICE_EVENT_DOWN);
	if (news)
		sysfs_refresh();
}

static bool is_ib(void)
{
	return device_count && devices[0].kind == DEVICE_IB;
}

static void tell_ib(void)
{
	for (uint32_t n = 1; is_ib() && n <= devices[0].port_count; n++)
		tell_port(n);
}

/* The program may have closed a descriptor and reused its number. */
static bool are_ours(const struct pollfd fds[2])
{
	return fd_identity_holds(fds[1].fd) &&
	       (fds[0].fd < 0 || fd_identity_holds(fds[0].fd));
}

static void *run_watch(void *number)
{
	struct pollfd fds[2] = {
		{.fd = watch.netlink_fd, .events = POLLIN},
		{.fd = watch.wake_fd, .events = POLLIN},
	};
	uint32_t mine = (uint32_t)(uintptr_t)number;
	bool is_stale = watch.is_stale;
	uint64_t count;

	/* netif_unwatch stores `generation` before it writes to wake_fd, and
	 * this thread reads wake_fd before it loads `generation` again.  So if
	 * one read has taken the counts that netif_set_port and netif_unwatch
	 * have added to the eventfd, the thread ends and does not sleep again.
	 * In another order netif_unwatch would wait for the thread for ever. */
	while (shared_load(&generation) == mine) {
		poll(fds, 2, is_stale ? RETRY_MS : -1);
		if (shared_load(&generation) != mine || !are_ours(fds))
			break;
		if (fds[1].revents &&
		    read(fds[1].fd, &count, sizeof(count)) > 0)
			tell_ib();
		/* POLLERR alone means that the kernel could not report a
		 * change. */
		if (fds[0].revents) {
			netlink_drain(fds[0].fd);
			is_stale = true;
		}
		is_stale = is_stale && !refresh_ports();
	}
	return NULL;
}

/* Returns 0, or a positive errno with a message. */
static int start_thread(void)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&watch.thread, NULL, run_watch,
			     (void *)(uintptr_t)shared_own(&generation));
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!err)
		pthread_setname_np(watch.thread, "adverb-netif");
	else
		log_say(LOG_THREAD_PORTS, 0,
			"the device is open, but the thread that watches its "
			"ports cannot be started: %s: ibv_get_async_event "
			"gets no event of a port, and the state of a port may "
			"be out of date; %s, and start the program again",
			strerror(err), remedy_of(err, "raise ulimit -u"));
	return err;
}

static void open_wake_fd(void)
{
	lock_take(&ports);
	/* Changes of the ports before netif_watch are no events. */
	memset(ib_news, 0, sizeof(ib_news));
	watch.wake_fd =
		fd_identity_note(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	lock_give(&ports);
}

void netif_watch(netif_on_port *port)
{
	const struct device *all;

	device_list(&all);
	watch.port = port;
	next_generation();
	open_wake_fd();
	if (!is_ib()) {
		watch.netlink_fd = fd_identity_note(netlink_watch());
		/* Interfaces may have changed before the socket was opened. */
		watch.is_stale = !refresh_ports();
	}
	watch.runs = (is_ib() || watch.netlink_fd >= 0) && watch.wake_fd >= 0 &&
		     start_thread() == 0;
	if (!watch.runs)
		netif_forget();
}

static void wake_thread(void)
{
	const uint64_t one = 1;

	while (write(watch.wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

/* Returns the events of a port, as a set of 1 << enum device_event.  changes:
 * what the fabric has reported, a set of enum data_change. */
static uint32_t events_of(uint32_t changes, bool was_up, bool is_up)
{
	static const struct {
		enum data_change change;
		enum device_event event;
	} rows[] = {
		{DATA_LID, DEVICE_EVENT_LID},
		{DATA_SM, DEVICE_EVENT_SM},
		{DATA_PKEYS, DEVICE_EVENT_PKEYS},
		{DATA_GIDS, DEVICE_EVENT_GIDS},
		{DATA_REREGISTER, DEVICE_EVENT_REREGISTER},
	};
	uint32_t events = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (changes & (uint32_t)rows[i].change)
			events |= 1u << rows[i].event;
	if (was_up != is_up)
		events |= 1u << (is_up ? DEVICE_EVENT_UP : DEVICE_EVENT_DOWN);
	/* The port went down and has come up again. */
	if (changes & DATA_STATE && was_up && is_up)
		events |= 1u << DEVICE_EVENT_DOWN | 1u << DEVICE_EVENT_UP;
	return events;
}

void netif_set_port(const struct device *dev, uint32_t number,
		    const struct fabric_port *said, uint32_t changes)
{
	struct device_port *port;
	uint32_t events;
	bool was_up;

	CHECK(dev == devices && dev->kind == DEVICE_IB && number &&
	      number <= dev->port_count);
	port = &devices[0].ports[number - 1];
	lock_take(&ports);
	was_up = port->is_up;
	ib_set_port(port, said);
	events = events_of(changes, was_up, port->is_up);
	ib_news[number - 1] |= events;
	shared_store(&version, shared_own(&version) + 2);
	if (events && fd_identity_holds(watch.wake_fd))
		wake_thread();
	lock_give(&ports);
}

void netif_unwatch(void)
{
	if (!watch.runs)
		return;
	next_generation();
	if (!fd_identity_holds(watch.wake_fd)) {
		/* The thread cannot be woken.  It ends at the next change of an
		 * interface; with an InfiniBand device it sleeps until the
		 * process ends. */
		pthread_detach(watch.thread);
		netif_forget();
		return;
	}
	wake_thread();
	pthread_join(watch.thread, NULL);
	netif_forget();
}

void netif_forget(void)
{
	lock_take(&ports);
	fd_identity_close(watch.netlink_fd);
	fd_identity_close(watch.wake_fd);
	memset(&watch, 0, sizeof(watch));
	watch.netlink_fd = watch.wake_fd = -1;
	lock_give(&ports);
}

/* Returns an entry with this address, of either RoCE version, in the GID table
 * of a RoCE device, and the device in *dev; NULL: there is none.  If there
 * are several, the result is one of interface `link`, or else the first. */
static const struct device_gid *
find_address(const uint8_t ip[16], uint32_t link, const struct device **dev)
{
	const struct device_gid *first = NULL;

	for (uint32_t i = 0; i < device_count; i++)
		for (uint32_t k = 0; k < DEVICE_MAX_GIDS; k++) {
			const struct device_gid *g =
				&devices[i].ports[0].gids[k];

			if (devices[i].kind != DEVICE_ROCE || !g->ifindex ||
			    !inaddr_has_same_ip(g->gid, ip) ||
			    (first && g->ifindex != link))
				continue;
			*dev = &devices[i];
			first = g;
			if (!link || g->ifindex == link)
				return g;
		}
	return first;
}

uint32_t netif_version(void)
{
	return shared_load(&version);
}

bool netif_has_address(const struct device *dev, const uint8_t ip[16])
{
	bool found = false;

	lock_take(&ports);
	for (uint32_t i = 0; i < DEVICE_MAX_GIDS && !found; i++) {
		const struct device_gid *g = &dev->ports[0].gids[i];

		/* An entry of RoCE v1 repeats another entry, or is not an
		 * address of the interface (netdev.h). */
		found = g->ifindex && g->type == DEVICE_GID_ROCE_V2 &&
			inaddr_has_same_ip(g->gid, ip);
	}
	lock_give(&ports);
	return found;
}

bool netif_is_local(const uint8_t ip[16])
{
	const struct device *dev;
	bool found;

	lock_take(&ports);
	found = find_address(ip, 0, &dev);
	lock_give(&ports);
	return found;
}

/* Returns the index of the RoCE device of interface `link`, or else of the
 * first RoCE device, or else -1. */
static int group_device(uint32_t link)
{
	int first = -1;

	for (uint32_t i = 0; i < device_count; i++) {
		if (devices[i].kind != DEVICE_ROCE)
			continue;
		if (devices[i].ifindex == link)
			return (int)i;
		if (first < 0)
			first = (int)i;
	}
	return first;
}

int netif_device(const uint8_t ip[16], uint32_t link)
{
	const struct device *dev;
	const struct device_gid *g;

	if (inaddr_is_multicast(ip))
		return group_device(link);
	lock_take(&ports);
	g = find_address(ip, link, &dev);
	lock_give(&ports);
	return g ? (int)(dev - devices) : -1;
}

uint32_t netif_index(const uint8_t ip[16], uint32_t link)
{
	const struct device *dev;
	const struct device_gid *g;
	uint32_t ifindex;

	lock_take(&ports);
	g = find_address(ip, link, &dev);
	ifindex = g ? g->ifindex : 0;
	lock_give(&ports);
	return ifindex;
}

uint32_t netif_scope(const uint8_t ip[16], uint32_t link)
{
	return inaddr_is_link_local(ip) ? netif_index(ip, link) : 0;
}

/* Returns the device of this kind whose own interface has the address; NULL:
 * there is none.  The first device of a kind also has addresses of other
 * interfaces in its GID table. */
static const struct device *find_own(enum device_kind kind,
				     const uint8_t ip[16])
{
	for (uint32_t i = 0; i < device_count; i++)
		for (uint32_t k = 0; k < DEVICE_MAX_GIDS; k++) {
			const struct device *d = &devices[i];
			const struct device_gid *g = &d->ports[0].gids[k];

			if (d->kind == kind && g->ifindex &&
			    g->ifindex == d->ifindex &&
			    inaddr_has_same_ip(g->gid, ip))
				return d;
		}
	return NULL;
}

void netif_mac(const uint8_t ip[16], uint8_t mac[6])
{
	const struct device *dev;

	memset(mac, 0, 6);
	lock_take(&ports);
	dev = find_own(DEVICE_ROCE, ip);
	if (!dev)
		dev = find_own(DEVICE_IWARP, ip);
	if (dev)
		memcpy(mac, dev->mac, 6);
	lock_give(&ports);
}

static const char *address_text(const uint8_t ip[16], char *text)
{
	bool is_v4 = inaddr_is_v4(ip);

	inet_ntop(is_v4 ? AF_INET : AF_INET6, is_v4 ? ip + 12 : ip, text,
		  INET6_ADDRSTRLEN);
	return text;
}

void netif_say_unreachable(const uint8_t from[16], const struct hca_ah *ah)
{
	char here[INET6_ADDRSTRLEN] = "", there[INET6_ADDRSTRLEN] = "";

	if (!inaddr_is_loopback(from) || inaddr_is_loopback(ah->dgid) ||
	    inaddr_is_multicast(ah->dgid) || netif_is_local(ah->dgid))
		return;
	log_say(LOG_DEVICE_LOOPBACK, 0,
		"the GID at index %u is %s, which only this machine can "
		"reach, but the peer is %s, so no packet can arrive; use the "
		"index of an address that the peer can reach (ibv_devinfo -v), "
		"or another device (adverb run --device NAME)",
		ah->sgid_index, address_text(from, here),
		address_text(ah->dgid, there));
}
