/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Looks for the host of an IP address, as the kernel's rdma_resolve_addr does:
 * the first hop to the address must answer ARP or neighbour discovery.
 * Otherwise rdma_connect to a host that is down would take nearly a minute to
 * fail.
 */
#include "rdmacm/neighbour.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "rdmacm/explain.h"
#include "util/inaddr.h"

bool r_ip_has_neighbour(const struct sockaddr *to)
{
	return !r_addr_is_ib(to) && !r_addr_is_any(to) &&
	       !r_addr_is_loopback(to) && !r_addr_is_multicast(to);
}

/* The search for the destination ends; err: 0 or -errno. */
static void end_search(struct r_id *id, int err)
{
	r_take();
	r_id_found(id, err);
	r_give();
}

/* Prints that no neighbour has answered. */
static void say_silent(const struct r_id *id)
{
	const uint8_t *ip = id->path.peer;
	bool is_v4 = inaddr_is_v4(ip);
	char text[INET6_ADDRSTRLEN];

	inet_ntop(is_v4 ? AF_INET : AF_INET6, is_v4 ? ip + 12 : ip, text,
		  sizeof(text));
	r_say("rdma_resolve_addr: ADDR_ERROR: no host answers %s for %s, or for "
	      "the gateway to it; check that the host is up, the address and "
	      "the route (ip neigh shows the neighbours)",
	      is_v4 ? "ARP" : "neighbour discovery", text);
}

/* The wait for the next hop ends. */
static void end_wait(struct r_id *id, int err, const uint8_t mac[6])
{
	if (err == -ETIMEDOUT)
		say_silent(id);
	end_search(id, err == -ETIMEDOUT ? err : 0);
}

/* Lets the id wait for its next hop.  Returns false if there is no wait, since
 * the kernel knows the next hop or does not tell. */
static bool begin_wait(struct r_id *id, int timeout_ms)
{
	struct neighbour_hop hop;
	uint8_t mac[NEIGHBOUR_MAC_BYTES];
	int err;

	if (!memcmp(id->path.local, id->path.peer, 16) ||
	    neighbour_find_hop(id->path.peer, id->path.local, id->path.scope,
			       &hop))
		return false;
	err = neighbour_look(hop.ifindex, hop.ip, mac);
	return (err == -EAGAIN || err == -ENOENT) &&
	       !r_neighbour_await(id, &hop, NULL, timeout_ms, end_wait);
}

void r_ip_find_peer(struct r_id *id, int timeout_ms)
{
	int cancel;

	/* A thread that is cancelled here would leak a socket, and leave the id
	 * without a result. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	if (!begin_wait(id, timeout_ms))
		end_search(id, 0);
	pthread_setcancelstate(cancel, NULL);
}
