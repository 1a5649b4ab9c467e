/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Resolves an address to a device and a path.  The kernel's routing tables give
 * the source address at once.  Nevertheless ADDR_RESOLVED of an id without an
 * iWARP device is posted only after the broker or the fabric has bound a port
 * for the id and, on a host of a fabric, the GID of an IP address is found
 * (ib_ip.c).
 */
#include "device/netdev.h"
#include "rdmacm/explain.h"
#include "rdmacm/ib.h"
#include "rdmacm/iw.h"
#include "rdmacm/neighbour.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/remedy.h"

#define PORT_ANY     4791 /* for connect(2), which needs a port */
#define PKEY	     0xffff
#define TIMEOUT_MAX  31 /* the longest time: 4.096 us * 2^31 */
#define RATE_10_GBPS 3
#define LIFE_TIME    16 /* 4.096 us * 2^16, as the kernel's for RoCE */
#define HOP_LIMIT    64
#define PATH_MTU     0x3f /* the bits of the MTU, below the selector's */

/* Returns the path MTU (IBV_MTU_*) that fits into the MTU of a connected
 * socket, or 0 if the kernel does not know that MTU.  The kernel takes the MTU
 * from the route, or from what a router has reported. */
static uint8_t mtu_of(int fd, int family)
{
	int mtu = 0;
	socklen_t size = sizeof(mtu);
	bool is_v4 = family == AF_INET;

	if (getsockopt(fd, is_v4 ? IPPROTO_IP : IPPROTO_IPV6,
		       is_v4 ? IP_MTU : IPV6_MTU, &mtu, &size) ||
	    mtu <= 0)
		return 0;
	return (uint8_t)netdev_path_mtu((uint32_t)mtu);
}

/* Binds the socket, which looks for a route, to the address `from`.  Returns
 * false if the kernel has no such address. */
static bool bind_lookup(int fd, const struct sockaddr *from,
			const struct sockaddr *to)
{
	struct sockaddr_storage at = {0};
	struct sockaddr *a = (struct sockaddr *)&at;

	memcpy(&at, from, r_addr_size(from));
	r_addr_set_port(a, 0);
	if (a->sa_family == AF_INET6 && !r_addr_scope(a))
		((struct sockaddr_in6 *)&at)->sin6_scope_id = r_addr_scope(to);
	return !bind(fd, a, r_addr_size(from));
}

/*
 * Stores the local address from which the kernel sends to the address `to`, and
 * the path MTU; 0: the path MTU is unknown.  If src is not NULL, the kernel
 * looks for the route of packets from the address src.  If src is no address of
 * this host, stores src: the search for its device will fail.  Returns 0 or
 * -errno.
 */
static int route_to(const struct sockaddr *to, const struct sockaddr *src,
		    struct sockaddr_storage *from, uint8_t *mtu)
{
	struct sockaddr_storage there = {0};
	socklen_t size = sizeof(*from);
	int fd = socket(to->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), err = 0;
	int cancel;

	if (fd < 0)
		return -errno;
	/* A thread that is cancelled here would leak fd. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	memcpy(&there, to, r_addr_size(to));
	if (!r_addr_port(to))
		r_addr_set_port((struct sockaddr *)&there, PORT_ANY);
	*mtu = 0;
	if (src && !bind_lookup(fd, src, to))
		memcpy(from, src, r_addr_size(src));
	else if (connect(fd, (struct sockaddr *)&there, r_addr_size(to)) ||
		 getsockname(fd, (struct sockaddr *)from, &size))
		err = -errno;
	else
		*mtu = mtu_of(fd, to->sa_family);
	close(fd);
	pthread_setcancelstate(cancel, NULL);
	r_addr_set_port((struct sockaddr *)from, 0);
	return err;
}

/* Stores the destination; an unspecified address becomes this host's. */
static void set_peer(struct r_id *id, const struct sockaddr *to)
{
	struct rdma_addr *a = &id->base.route.addr;

	memcpy(&a->dst_storage, to, r_addr_size(to));
	if (r_addr_is_any(to)) { /* this host, as with sockets */
		uint8_t loop[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};

		if (to->sa_family == AF_INET6)
			memcpy(loop, &in6addr_loopback, 16);
		else if (r_addr_is_ib(to))
			r_ib_own_gid(loop);
		r_addr_move(&a->dst_addr, loop);
	}
	r_addr_ip(&a->dst_addr, id->path.peer);
	if (to->sa_family == AF_INET6)
		id->path.scope = a->dst_sin6.sin6_scope_id;
	memcpy(&a->addr.ibaddr.dgid, id->path.peer, 16);
	a->addr.ibaddr.pkey = htobe16(r_addr_is_ib(to) ? r_addr_pkey(to)
				      : id->path.pkey  ? id->path.pkey
						       : PKEY);
}

/* Returns whether rdma_resolve_addr must bind src as rdma_bind_addr does. */
static bool wants_port(const struct sockaddr *src)
{
	return r_addr_is_any(src) || r_addr_port(src);
}

/* Returns whether src can be the source address of packets to dst.  A loopback
 * address can be the source only if dst is a loopback or multicast address. */
static bool is_source_to(const struct sockaddr *src, const struct sockaddr *dst)
{
	if (!src || r_addr_is_any(src))
		return false;
	return !r_addr_is_loopback(src) || r_addr_is_loopback(dst) ||
	       r_addr_is_multicast(dst);
}

/* An id that was bound for all devices, at the broker and with TCP, now has one
 * device.  Frees the port of the transport that the device does not have. */
static void keep_one_transport(struct r_id *id)
{
	if (!r_is_iwarp(id)) {
		r_iw_drop(id);
		return;
	}
	r_take();
	r_release(id);
	r_give();
}

/* Gives the device with the address `from` to an id that already has a port.
 * Returns 0, or 1 with a message if there is no such device. */
static int set_device(struct r_id *id, const struct sockaddr *from)
{
	struct rdma_addr *a = &id->base.route.addr;
	struct r_device *d;
	uint8_t ip[16];

	r_addr_ip(from, ip);
	if (r_ib_is_ip(from)) {
		if (r_ib_take_ip(id, from))
			return 1;
		r_addr_move(&a->src_addr, ip);
		memcpy(&a->addr.ibaddr.sgid, id->path.local, 16);
		return 0;
	}
	d = r_device_find(ip, r_transports(id), &id->path);
	if (!d) {
		r_fail_device(id, from,
			      "rdma_resolve_addr: the route to the peer starts "
			      "at %s, which is no address of an RDMA device; "
			      "ibv_devinfo -v shows the devices");
		return 1;
	}
	r_device_use(id, d);
	keep_one_transport(id);
	memcpy(id->path.local, ip, 16);
	r_addr_move(&a->src_addr, ip);
	memcpy(&a->addr.ibaddr.sgid, ip, 16);
	return 0;
}

/*
 * Chooses the source address and the device of an id that has no device yet.
 * For an id with a device, only limits the path MTU.  Returns 0; 1, with a
 * message, if rdma_resolve_addr must fail; -errno if there is no route from the
 * source address that the program has named or, if the program has named none,
 * from any address; also -errno if the kernel cannot be asked for the route
 * (explain_route).  *later becomes true if the broker's answer will cause
 * ADDR_RESOLVED.
 */
static int set_source(struct r_id *id, const struct sockaddr *src, bool *later)
{
	struct rdma_addr *a = &id->base.route.addr;
	struct sockaddr_storage from = {0};
	bool is_ib = r_addr_is_ib(&a->dst_addr);
	int err = 0;

	if (r_is_bound(id))
		src = &a->src_addr;
	if (!is_source_to(src, &a->dst_addr))
		src = NULL;
	if (!is_ib)
		err = route_to(&a->dst_addr, src, &from, &id->path.route_mtu);
	/* the path of a subnet has the MTU that its manager says */
	if (r_ib_is_used())
		id->path.route_mtu = 0;
	if (err)
		return err;
	if (r_is_bound(id) && id->device) {
		if (id->path.route_mtu && id->path.route_mtu < id->path.mtu)
			id->path.mtu = id->path.route_mtu;
		return 0;
	}
	if (src) {
		memcpy(&from, src, r_addr_size(src));
		r_addr_set_port((struct sockaddr *)&from, 0);
	} else if (is_ib && r_ib_source(&a->dst_addr, &from)) {
		return 1;
	}
	if (!r_is_bound(id))
		return r_bind_later(id, (struct sockaddr *)&from, later) ? 1
									 : 0;
	return set_device(id, (struct sockaddr *)&from);
}

/* Returns whether the destination has the address family of the source: of the
 * id's address if the id is bound, else of src. */
static bool is_of_family(const struct r_id *id, const struct sockaddr *src,
			 const struct sockaddr *dst)
{
	if (r_is_bound(id))
		src = &id->base.route.addr.src_addr;
	return !src || src->sa_family == dst->sa_family;
}

/* Posts ADDR_RESOLVED.  Returns 0, or -1 and errno with a message. */
static int post_resolved(struct r_id *id)
{
	int err;

	/* wants_route is set before the event can be taken. */
	id->state.wants_route = true;
	err = r_post_local(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	if (err)
		id->state.has_destination = id->state.wants_route = false;
	return err;
}

/* Prints why set_source has returned -err. */
static void explain_route(const struct sockaddr *to, int err)
{
	const char *remedy = err == EAGAIN ? NULL : remedy_of(err, NULL);
	char text[R_ADDR_TEXT];

	r_addr_text(to, text);
	if (remedy)
		r_say("rdma_resolve_addr: ADDR_ERROR: the kernel cannot be "
		      "asked for the route to %s: %s; %s",
		      text, strerror(err), remedy);
	else if (err == EAGAIN)
		r_say("rdma_resolve_addr: ADDR_ERROR: the kernel cannot be "
		      "asked for the route to %s, since no UDP port is free; "
		      "end programs, or widen net.ipv4.ip_local_port_range",
		      text);
	else
		r_say("rdma_resolve_addr: ADDR_ERROR: there is no route to %s: "
		      "%s; check the address, and the routes (ip route)",
		      text, strerror(err));
}

/* Lets ADDR_RESOLVED or ADDR_ERROR follow, for an id that is_resolving. */
static void find_peer(struct r_id *id, int timeout_ms)
{
	if (r_ib_is_ip(&id->base.route.addr.dst_addr))
		r_ib_find_peer(id, timeout_ms);
	else
		r_ip_find_peer(id, timeout_ms);
}

int rdma_resolve_addr(struct rdma_cm_id *base, struct sockaddr *src_addr,
		      struct sockaddr *dst_addr, int timeout_ms)
{
	struct r_id *id = r_id(base);
	struct rdma_addr was;
	bool later = false, is_sync = id->is_sync, is_resolving;
	int err;

	if (r_addr_check(dst_addr, "rdma_resolve_addr") ||
	    (src_addr && r_addr_check(src_addr, "rdma_resolve_addr")))
		return -1;
	is_resolving = r_ib_is_ip(dst_addr) || r_ip_has_neighbour(dst_addr);
	if (id->state.has_destination || id->state.is_passive ||
	    id->state.is_listening)
		return r_fail(EINVAL, "rdma_resolve_addr: the id already has a "
				      "destination, listens, or came with a "
				      "connection request; create another id");
	if (!is_of_family(id, src_addr, dst_addr))
		return r_fail(EINVAL, "rdma_resolve_addr: the addresses of "
				      "source and destination are of different "
				      "families; use two of IPv4, of IPv6 or "
				      "of InfiniBand (AF_IB)");
	if (src_addr && !r_is_bound(id) && wants_port(src_addr) &&
	    r_bind(id, src_addr))
		return -1;
	/* as with the kernel, RDMA_PS_IB connects to any service */
	if (base->ps != RDMA_PS_IB && r_ib_check_space(id, dst_addr))
		return -1;
	was = base->route.addr;
	set_peer(id, dst_addr);
	/* has_destination is set before the broker can answer: r_id_bound may
	 * reset it. */
	id->state.has_destination = true;
	id->state.is_resolving = is_resolving;
	if (r_ib_is_ip(dst_addr))
		r_ib_limit_asking(id, timeout_ms);
	id->state.resolve_err = 0;
	/* If set_source makes `later` true, another thread may take
	 * ADDR_RESOLVED and destroy the id before set_source returns.  If
	 * is_resolving is true, that event also waits for find_peer. */
	err = set_source(id, src_addr, &later);
	if (err)
		id->state.has_destination = id->state.is_resolving = false;
	if (err > 0) {
		base->route.addr = was; /* takes the destination back */
		return -1;
	}
	if (err) {
		explain_route(dst_addr, -err);
		if (r_post_local(id, RDMA_CM_EVENT_ADDR_ERROR, err))
			return -1;
	} else if (is_resolving) {
		find_peer(id, timeout_ms);
	} else if (!later && post_resolved(id)) {
		return -1;
	}
	return is_sync ? r_complete(id) : 0;
}

/* Returns whether the id wants a route.  If so, only the caller may look for
 * the route or set it.  The kernel, too, allows both only in the state after
 * ADDR_RESOLVED. */
static bool begin_route(struct r_id *id)
{
	bool may_begin;

	r_take();
	may_begin = id->state.wants_route;
	id->state.wants_route = false;
	r_give();
	return may_begin;
}

/* Ends begin_route: posts ROUTE_RESOLVED, unless err says that no route was
 * set.  Returns 0, or -1 and errno with a message. */
static int end_route(struct r_id *id, int err)
{
	/* r_route_ended sets has_route before the event can be taken. */
	r_route_ended(id, err);
	if (!err)
		err = r_post_local(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	if (err)
		r_route_ended(id, err);
	return err;
}

/* Gives a RoCE id the record of its path.  Returns 0, or -1 and errno with a
 * message. */
static int set_route(struct r_id *id)
{
	const struct cmproto_path ethernet = {.pkey = PKEY,
					      .rate = RATE_10_GBPS,
					      .life_time = LIFE_TIME,
					      .hop_limit = HOP_LIMIT,
					      .traffic_class = id->options.tos};

	if (r_set_record(id, &ethernet))
		return r_fail(ENOMEM, "rdma_resolve_route: no memory is left; "
				      "free some, or raise ulimit -v and -d");
	return 0;
}

/* Returns the exponent n, at most TIMEOUT_MAX, of the shortest time 4.096 us *
 * 2^n that is not less than timeout_ms. */
static uint8_t exponent_of(int timeout_ms)
{
	uint64_t ns = timeout_ms > 0 ? (uint64_t)timeout_ms * 1000000 : 0;
	uint8_t n = 0;

	while (n < TIMEOUT_MAX && (UINT64_C(4096) << n) < ns)
		n++;
	return n;
}

/* Asks the fabric for a path to the id's destination; ROUTE_RESOLVED or
 * ROUTE_ERROR follows.  Returns 0, or -1 and errno with a message. */
static int ask_route(struct r_id *id, int timeout_ms)
{
	const struct rdma_addr *a = &id->base.route.addr;
	struct cmproto m = {.is_ib = true, .timeout = exponent_of(timeout_ms)};
	int err;

	memcpy(m.at.local, id->path.local, 16);
	memcpy(m.at.peer, id->path.peer, 16);
	if (r_addr_is_ib(&a->dst_addr)) {
		m.at.service_id = r_addr_service(&a->dst_addr);
		/* as the kernel: RDMA_OPTION_ID_TOS has no effect on these
		 * paths */
		m.path.traffic_class = r_addr_traffic_class(&a->src_addr);
	}
	m.at.space = (uint16_t)id->base.ps; /* as in CMPROTO_CONNECT */
	m.at.peer_port = r_addr_port(&a->dst_addr);
	m.path.pkey = be16toh(a->addr.ibaddr.pkey);
	err = r_request(id, &m, CMPROTO_ROUTE);
	if (!err)
		return 0;
	return r_fail(-err,
		      "rdma_resolve_route: the fabric cannot be asked for a "
		      "path: %s",
		      strerror(-err));
}

int rdma_resolve_route(struct rdma_cm_id *base, int timeout_ms)
{
	struct r_id *id = r_id(base);
	bool is_sync = id->is_sync;

	if (!begin_route(id))
		return r_fail(EINVAL, "rdma_resolve_route: the id has no "
				      "destination whose address is resolved, "
				      "or its route is already resolved; call "
				      "rdma_resolve_route once, after "
				      "ADDR_RESOLVED");
	if (r_is_ib(id)) {
		if (ask_route(id, timeout_ms)) {
			r_route_ended(id, -1);
			return -1;
		}
	} else if (end_route(id, r_is_iwarp(id) ? 0 : set_route(id))) {
		/* iWARP has no path records: the kernel routes TCP. */
		return -1;
	}
	return is_sync ? r_complete(id) : 0;
}

/* Sorts the paths of the program.  Returns how many of them are neither the
 * path nor the alternate path. */
static size_t sort_paths(const struct ibv_path_data *paths, size_t count,
			 const struct ibv_path_record **first,
			 const struct ibv_path_record **second)
{
	const uint32_t main_flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY |
				    IBV_PATH_FLAG_BIDIRECTIONAL;
	const uint32_t other_flags =
		IBV_PATH_FLAG_ALTERNATE | IBV_PATH_FLAG_BIDIRECTIONAL;
	size_t unused = 0;

	*first = *second = NULL;
	for (size_t i = 0; i < count; i++) {
		uint32_t flags = paths[i].flags;
		bool is_main = (flags & main_flags) == main_flags;

		if (is_main && !*first)
			*first = &paths[i].path;
		else if (!*second &&
			 (is_main || (flags & other_flags) == other_flags))
			*second = &paths[i].path;
		else
			unused++;
	}
	return unused;
}

/* Gives a RoCE id the path r of the program.  Returns as set_route does. */
static int give_ethernet(struct r_id *id, const struct ibv_path_record *r)
{
	if ((r->mtu & PATH_MTU) && (r->mtu & PATH_MTU) < id->path.mtu)
		id->path.mtu = r->mtu & PATH_MTU;
	return set_route(id);
}

int r_route_given(struct r_id *id, const struct ibv_path_data *paths,
		  size_t size)
{
	const struct ibv_path_record *r, *other;
	size_t unused = sort_paths(paths, size / sizeof(*paths), &r, &other);

	if (!r || size % sizeof(*paths))
		return r_fail(EINVAL,
			      "rdma_set_option: the value of "
			      "RDMA_OPTION_IB_PATH has no path with the flags "
			      "GMP, PRIMARY and BIDIRECTIONAL, or is no whole "
			      "number of struct ibv_path_data; set the flags "
			      "of the path");
	if (!begin_route(id))
		return r_fail(EINVAL, "rdma_set_option: RDMA_OPTION_IB_PATH "
				      "needs an id whose address is resolved "
				      "and which has no route; set it once, "
				      "after ADDR_RESOLVED and in place of "
				      "rdma_resolve_route");
	if (unused || (other && !r_is_ib(id)))
		r_say("rdma_set_option: RDMA_OPTION_IB_PATH gives an id one "
		      "path, and on InfiniBand an alternate path with the "
		      "flags ALTERNATE and BIDIRECTIONAL; the other paths are "
		      "not used");
	/* As with the kernel, iWARP uses no path: RDMA_OPTION_ID_TOS alone sets
	 * the ToS. */
	if (!r_is_iwarp(id))
		id->options.tos = r->tclass;
	return end_route(id, r_is_iwarp(id) ? 0
			     : r_is_ib(id)  ? r_ib_give_route(id, r, other)
					    : give_ethernet(id, r));
}
