/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An emulated InfiniBand subnet (fabric/fabric.h) between the hosts.  Cables
 * are cut and repaired, and routes and P_Keys change, while traffic runs
 * (cables.h).
 *
 *	node_turn --> link_send --> subnet_enter --> switches --> node_receive
 *
 * The subnet loses no packet for lack of room: a host sends only while
 * subnet_may_send returns true, and a host whose socket is full receives
 * nothing until subnet_resume.
 */
#ifndef SIM_SUBNET_H
#define SIM_SUBNET_H

#include "sim/workload.h"

struct subnet;

/* Makes the subnet of w, whose hosts have no process yet.  Sets w->subnet. */
void subnet_init(struct world *w);
/* Frees the subnet, if w has one. */
void subnet_fini(struct world *w);
/* Attaches the new process of h to the two ports of h: sets the range of its
 * QPNs, and tells its engine the ports' LIDs and P_Keys. */
void subnet_attach(struct host *h);
/* The process of h ends: packets to it are dropped from here on. */
void subnet_detach(struct host *h);
/* May h send now?  After false, h wakes (host.woken.writable) as soon as h may
 * send. */
bool subnet_may_send(struct host *h);
/* Gives the subnet a packet that host f->to_host has sent; the subnet owns f
 * from here on.  Drops the packet if the process that has sent it has ended. */
void subnet_enter(struct world *w, struct flight *f);
/* The socket of h has room again: lets the subnet deliver packets to h. */
void subnet_resume(struct host *h);
/* Returns the world's time at which subnet_turn is due; UINT64_MAX: not before
 * the next input. */
uint64_t subnet_next(const struct world *w);
/* Moves packets through the subnet and into the sockets of the hosts, repairs
 * cables, restores P_Keys, and runs the subnet manager. */
void subnet_turn(struct world *w);
/* Cuts a cable that the seed draws, or changes the P_Key of a port, for a
 * while; does nothing if that cable or port is changed already. */
void subnet_disturb(struct world *w);
/* Tells the engine of h the LIDs and P_Keys of its ports. */
void subnet_tell_ports(struct host *h);
/* Are packets on their way in the subnet? */
bool subnet_is_busy(const struct world *w);
/* Answers the question of h for the path of a QP (engine_wants_path).  If the
 * subnet delivers the QP's packets and the answers to them, calls
 * engine_set_way, and returns the host that the packets reach.  NULL: the QP
 * has to send packets. */
struct host *subnet_ask(struct host *h, const struct engine_want *want);
/* Sets the members of *ah by which packets of f's QP go from port `number`, 1
 * or 2, of the sender to the port with the same number of the receiver. */
void subnet_address(const struct flow *f, uint32_t number, struct hca_ah *ah);
/* Calls subnet_address, and draws whether the packets have a GRH. */
void subnet_draw_path(const struct flow *f, uint32_t number, struct hca_ah *ah);
/* Checks at the end of a world that the subnet has delivered each packet once,
 * unchanged, and in the order of the sender's packets with the same ports and
 * SL.  Checks nothing if the routes are not lossless (struct cables), a cable
 * was cut, a P_Key has changed, a host has died, or packets are on their way.
 */
void subnet_check(struct world *w);

#endif
