/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The addresses of IPoIB interfaces.  The kernel tells the interface of an
 * address, the next hop to a destination, and the next hop's MAC.  The MAC of
 * an IPoIB interface is a hash of its GID and its QPN.  The fabric knows all
 * these interfaces, and tells the GID of a MAC.
 */
#include "rdmacm/ib.h"

#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "rdmacm/explain.h"
#include "rdmacm/neighbour.h"
#include "util/bits.h"
#include "util/remedy.h"
#include "wire/neighbour.h"

/* The fabric has not answered; -ETIMEDOUT means that a neighbour has not. */
#define SILENT (-EREMOTEIO)
/* The shortest time limit of a question to the fabric, even if the timeout of
 * rdma_resolve_addr is shorter: the fabric's answer comes from this machine and
 * does not depend on the subnet. */
#define ASK_LEAST_MS 1000
#define REASON	     200 /* bytes of a text of why_unanswered */

/* Writes why the fabric has not answered a question, and what to do, to text.
 * err: SILENT, or another -errno of r_call.  Returns text. */
static const char *why_unanswered(int err, char text[REASON])
{
	if (err == SILENT)
		snprintf(text, REASON,
			 "the fabric has not answered in time; if the process "
			 "of adverb fabric is stopped, continue it (kill "
			 "-CONT)");
	else if (err == -EPIPE || err == -ECONNRESET || err == -ECONNREFUSED)
		snprintf(text, REASON,
			 "the fabric has ended; start it by adverb fabric "
			 "FILE, and then this program again");
	else
		snprintf(text, REASON, "%s; %s", strerror(-err),
			 remedy_of(-err, "see by adverb fabric --show whether "
					 "the fabric runs"));
	return text;
}

/* Stores the GID and the P_Key of the interface with the MAC.  Returns as
 * r_ib_interface does, but SILENT in place of -ETIMEDOUT. */
static int find_mac(struct r_id *id, const uint8_t mac[NEIGHBOUR_MAC_BYTES],
		    uint8_t gid[16], uint16_t *pkey)
{
	struct cmproto m;
	int err = r_ib_interface(id, mac, &m);

	if (err)
		return err == -ETIMEDOUT ? SILENT : err;
	memcpy(gid, m.at.local, 16);
	*pkey = m.path.pkey;
	return 0;
}

/* Finds the interface of the address, and its GID.  Returns 0, or -1 and errno
 * with a message, as r_ib_take_ip does. */
static int find_own(struct r_id *id, const struct sockaddr *addr,
		    uint8_t gid[16])
{
	struct neighbour_interface i;
	char text[R_ADDR_TEXT], why[REASON];
	uint8_t ip[16];
	int err;

	r_addr_ip(addr, ip);
	r_addr_text(addr, text);
	err = neighbour_own(ip, r_addr_scope(addr), &i);
	if (err == -EADDRNOTAVAIL)
		return r_fail(
			ENODEV,
			"rdma_cm: %s is no address of an interface of "
			"this network namespace; give an address of an "
			"IPoIB interface (adverb ipoib), or a GID (AF_IB)",
			text);
	if (err)
		return r_fail(-err,
			      "rdma_cm: the kernel does not tell which "
			      "interface has the address %s: %s; %s",
			      text, strerror(-err),
			      remedy_of(-err, "allow netlink sockets in the "
					      "sandbox"));
	err = find_mac(id, i.mac, gid, &id->path.pkey);
	if (err == -ENODEV)
		return r_fail(ENODEV,
			      "rdma_cm: %s is an address of the interface %s, "
			      "which is no IPoIB interface of the fabric; make "
			      "one by adverb ipoib --address, and use its "
			      "address, or a GID (AF_IB)",
			      text, i.name);
	if (err)
		return r_fail(err == SILENT ? ETIMEDOUT : -err,
			      "rdma_cm: the fabric does not tell the GID of "
			      "the interface %s, which has the address %s: %s",
			      i.name, text, why_unanswered(err, why));
	id->path.ifindex = i.ifindex;
	return 0;
}

/* Finds the GID by which the id sends from the address.  Returns 0, or -1 and
 * errno with a message. */
static int find_gid(struct r_id *id, const struct sockaddr *addr,
		    uint8_t gid[16])
{
	if (!r_addr_is_loopback(addr))
		return find_own(id, addr, gid);
	id->path.ifindex = 0;
	id->path.pkey = 0;
	if (r_ib_own_gid(gid))
		return 0;
	return r_fail(ENODEV,
		      "rdma_cm: no port of advib0 is active, since no "
		      "subnet manager has configured it, or its link is "
		      "down; start opensm on a host of the fabric, and "
		      "wait until ibv_devinfo shows PORT_ACTIVE");
}

void r_ib_limit_asking(struct r_id *id, int timeout_ms)
{
	id->ask_ms = bits_max_u32(timeout_ms > 0 ? (uint32_t)timeout_ms : 0,
				  ASK_LEAST_MS);
}

int r_ib_take_ip(struct r_id *id, const struct sockaddr *addr)
{
	struct rdma_addr *a = &id->base.route.addr;
	char text[R_ADDR_TEXT];
	struct r_device *d;
	uint8_t gid[16];
	int cancel, err;

	/* A thread that is cancelled here would leak a socket. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	err = find_gid(id, addr, gid);
	pthread_setcancelstate(cancel, NULL);
	if (err)
		return -1;
	d = r_device_find(gid, R_ROCE, &id->path);
	if (!d)
		return r_fail(ENODEV,
			      "rdma_cm: the IPoIB interface with the address "
			      "%s is not of this host of the fabric; run the "
			      "program on the host of that interface (adverb "
			      "run --host)",
			      r_addr_text(addr, text));
	r_device_use(id, d);
	memcpy(id->path.local, gid, 16);
	if (id->path.pkey)
		a->addr.ibaddr.pkey = htobe16(id->path.pkey);
	return 0;
}

/* Returns whether err, a -errno, is the kernel's answer that packets to an
 * address have no route, or may not be sent. */
static bool is_of_route(int err)
{
	return err == -ENETUNREACH || err == -EHOSTUNREACH ||
	       err == -ENETDOWN || err == -EACCES || err == -EINVAL;
}

/* Prints why the destination has no GID. */
static void explain_error(const struct r_id *id, int err)
{
	const struct sockaddr *to = &id->base.route.addr.dst_addr;
	const struct sockaddr *from = &id->base.route.addr.src_addr;
	char text[R_ADDR_TEXT], own[R_ADDR_TEXT], why[REASON];

	r_addr_text(to, text);
	if (err == -ETIMEDOUT)
		r_say("rdma_resolve_addr: ADDR_ERROR: no neighbour has told "
		      "its hardware address for %s in time; check the address "
		      "and the partition, and that adverb ipoib runs on that "
		      "host (ip neigh shows the neighbours)",
		      text);
	else if (err == -ENODEV)
		r_say("rdma_resolve_addr: ADDR_ERROR: the route to %s does not "
		      "lead, or no longer leads, to an IPoIB interface of the "
		      "fabric; if the address is another host's, start adverb "
		      "ipoib on that host; if it is this host's, give the "
		      "address of the interface of adverb ipoib",
		      text);
	else if (is_of_route(err))
		r_say("rdma_resolve_addr: ADDR_ERROR: there is no route to %s "
		      "over the IPoIB interface with the address %s: %s; add a "
		      "route over that interface (ip route get shows which one "
		      "is used)",
		      text, r_addr_text(from, own), strerror(-err));
	else
		r_say("rdma_resolve_addr: ADDR_ERROR: the GID of %s cannot be "
		      "found: %s",
		      text, why_unanswered(err, why));
}

/* The search for the destination's GID ends.  err: 0, and gid is valid; or
 * -errno. */
static void end_search(struct r_id *id, int err, const uint8_t gid[16])
{
	if (err)
		explain_error(id, err);
	r_take();
	if (!err) {
		memcpy(id->path.peer, gid, 16);
		memcpy(&id->base.route.addr.addr.ibaddr.dgid, gid, 16);
	}
	r_id_found(id, err == SILENT ? -ETIMEDOUT : err);
	r_give();
}

/* Finds the GID of an address of this network namespace.  Returns 0;
 * -EADDRNOTAVAIL: no interface has the address; or another result of find_mac
 * or neighbour_own. */
static int find_self(struct r_id *id, const uint8_t ip[16], uint8_t gid[16])
{
	struct neighbour_interface i;
	uint16_t pkey;
	int err = neighbour_own(ip, id->path.scope, &i);

	return err ? err : find_mac(id, i.mac, gid, &pkey);
}

/* Finds the GID of the neighbour `hop`.  Returns 0; -EAGAIN: the kernel has to
 * ask for the neighbour; -ESTALE: the fabric does not know the MAC in `mac`;
 * or another -errno. */
static int find_neighbour(struct r_id *id, const uint8_t hop[16],
			  uint8_t gid[16], uint8_t mac[NEIGHBOUR_MAC_BYTES])
{
	int err = neighbour_look(id->path.ifindex, hop, mac);
	uint16_t pkey;

	if (err)
		return err == -ENOENT ? -EAGAIN : err;
	err = find_mac(id, mac, gid, &pkey);
	return err == -ENODEV ? -ESTALE : err;
}

/* Finds the GID of the destination.  Returns as find_neighbour does: after
 * -EAGAIN and -ESTALE, `hop` is the neighbour. */
static int find_peer(struct r_id *id, uint8_t gid[16], uint8_t hop[16],
		     uint8_t mac[NEIGHBOUR_MAC_BYTES])
{
	uint8_t to[16];
	int err;

	r_addr_ip(&id->base.route.addr.dst_addr, to);
	if (r_addr_is_multicast(&id->base.route.addr.dst_addr)) {
		r_ib_group_gid(id, &id->base.route.addr.dst_addr, gid);
		return 0;
	}
	if (!id->path.ifindex) {
		memcpy(gid, id->path.local, 16);
		return 0;
	}
	/* The route over one interface does not lead to the address of another
	 * interface of this namespace. */
	err = find_self(id, to, gid);
	if (err != -EADDRNOTAVAIL)
		return err;
	err = neighbour_route(to, id->path.ifindex, hop);
	if (err)
		return err;
	return find_neighbour(id, hop, gid, mac);
}

/* The wait for a neighbour ends. */
static void finish_wait(struct r_id *id, int err,
			const uint8_t mac[NEIGHBOUR_MAC_BYTES])
{
	uint8_t gid[16];
	uint16_t pkey;

	if (!err)
		err = find_mac(id, mac, gid, &pkey);
	end_search(id, err == -ENOENT ? -ETIMEDOUT : err, gid);
}

/* Ends the search at once, or lets it wait for the neighbour. */
static void begin_search(struct r_id *id, int timeout_ms)
{
	uint8_t gid[16], mac[NEIGHBOUR_MAC_BYTES];
	struct neighbour_hop hop = {.ifindex = id->path.ifindex};
	int err = find_peer(id, gid, hop.ip, mac);
	bool is_old = err == -ESTALE;

	if (err == -EAGAIN || is_old) {
		err = r_neighbour_await(id, &hop, is_old ? mac : NULL,
					timeout_ms, finish_wait);
		if (!err)
			return;
	}
	end_search(id, err, gid);
}

void r_ib_find_peer(struct r_id *id, int timeout_ms)
{
	int cancel;

	/* A thread that is cancelled here would leak a socket, and leave the id
	 * without a result. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	begin_search(id, timeout_ms);
	pthread_setcancelstate(cancel, NULL);
}
