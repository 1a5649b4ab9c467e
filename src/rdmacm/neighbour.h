/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waits for neighbours that the kernel has to ask for by ARP or neighbour
 * discovery: rdma_resolve_addr ends only when the kernel knows the hardware
 * address of the next hop.
 */
#ifndef RDMACM_NEIGHBOUR_H
#define RDMACM_NEIGHBOUR_H

#include "rdmacm/object.h"
#include "wire/neighbour.h"

/* ---- neighbour_wait.c ---- */

/* Called in a thread without r_lock: the wait of an id has ended.  err is 0,
 * with the neighbour's MAC as neighbour_look stores it; -ETIMEDOUT; -ENOENT: as
 * -ETIMEDOUT, but the kernel does not show that it has asked; or another
 * -errno. */
typedef void r_neighbour_end(struct r_id *id, int err, const uint8_t mac[6]);
/* Lets a thread wait until the kernel knows the MAC of the neighbour *hop, or
 * timeout_ms have passed, and then call `end`.  old: the neighbour's MAC, if
 * the fabric knows no interface with this MAC; else NULL.  The thread waits for
 * another MAC than `old`.  If none comes in time, `end` gets `old`, or
 * -ETIMEDOUT if the kernel does not have `old` any more.  Returns 0 or
 * -errno. */
int r_neighbour_await(struct r_id *id, const struct neighbour_hop *hop,
		      const uint8_t *old, int timeout_ms, r_neighbour_end *end);
/* Under r_lock: the id is about to be destroyed.  Ends its r_neighbour_await,
 * and waits while the thread uses the id. */
void r_neighbour_stop(const struct r_id *id);
/* Called in a forked child, which does not have the thread of its parent: drops
 * the parent's waits. */
void r_neighbour_forked(void);

/* ---- ip_peer.c: destinations of RoCE and iWARP ---- */

/* Returns whether the destination may be reached over a neighbour: whether it
 * is an IP address, and neither a loopback nor a multicast address. */
bool r_ip_has_neighbour(const struct sockaddr *to);
/*
 * Finds out whether the next hop to the id's destination answers ARP or
 * neighbour discovery, for at most timeout_ms.  state.is_resolving is set
 * before the call.  ADDR_RESOLVED or ADDR_ERROR (-ETIMEDOUT, as the kernel's)
 * follows, but not before the id is bound.  If the kernel does not tell the
 * next hop, or does not show its neighbours, ADDR_RESOLVED follows.  The caller
 * does not use the id after this call.
 */
void r_ip_find_peer(struct r_id *id, int timeout_ms);

#endif
