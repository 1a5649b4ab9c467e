/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_cm on a host of an emulated InfiniBand subnet (`adverb fabric`).  There
 * is no broker: the fabric's process has the conversations of this process's
 * ids, and asks the subnet administration for paths.  The addresses of ids are
 * GIDs (AF_IB), or IP addresses of IPoIB interfaces.
 *
 * The fabric's process has no successor.  When it ends, the device has failed,
 * and each id gets DEVICE_REMOVAL.
 */
#ifndef RDMACM_IB_H
#define RDMACM_IB_H

#include "hdr/cmmsg.h"
#include "rdmacm/object.h"

/* ---- ib_link.c: the connection to the fabric, under r_lock ---- */

/* Returns whether this process is on a host of a fabric.  The first call
 * decides for the process and its forked children.  Needs no lock. */
bool r_ib_is_used(void);
/* Returns whether r_ib_is_used is true and the address is an IP address.  Needs
 * no lock. */
bool r_ib_is_ip(const struct sockaddr *a);
/* Returns the word for the process that has the conversations: "fabric" or
 * "broker".  Needs no lock. */
const char *r_ib_server(void);
/*
 * Connects to the fabric, and stores the descriptor of a socket for messages of
 * cmproto.h in *fd.  The caller owns this descriptor.  The connection to the
 * fabric stays open here.  Waits at most 30 s for the connection, and for each
 * of two answers.  Returns 0, or -errno with a message; -ENODEV without a
 * message: r_ib_end was called, and r_ib_forget was not called since.
 */
int r_ib_dial(int *fd);
/* Ends the connection.  r_ib_dial fails from now on, until r_ib_forget.  Only
 * the first call prints a message. */
void r_ib_end(void);
/* Closes what an earlier connection has left here: the parent's connection in a
 * forked child, or one that link.c could not use.  The process may connect
 * again. */
void r_ib_forget(void);

/* ---- ib_ip.c: addresses of IPoIB interfaces (adverb ipoib) ---- */

/* Called when rdma_resolve_addr with this timeout begins.  From now on each
 * question about an IPoIB interface (r_ib_interface) waits for the fabric no
 * longer than timeout_ms, but 1 s at least. */
void r_ib_limit_asking(struct r_id *id, int timeout_ms);
/* Gives the id the adapter and the GID of the IPoIB interface that has the
 * address; for a loopback address, those of the first active port.  Returns 0,
 * or -1 and errno with a message.  ENODEV: no such interface of this host of
 * the fabric has the address, or no port is active; ETIMEDOUT: the fabric has
 * not answered; another errno: the question to the kernel or to the fabric has
 * failed. */
int r_ib_take_ip(struct r_id *id, const struct sockaddr *addr);
/*
 * Finds the GID of the id's destination, an IP address, by the kernel's routes
 * and neighbours.  state.is_resolving is set before the call.  ADDR_RESOLVED or
 * ADDR_ERROR follows, but not before the id is bound.  The kernel has at most
 * timeout_ms to find the neighbour; the questions to the fabric take additional
 * time, each at most as long as r_ib_limit_asking says.  The caller does not
 * use the id after this call.
 */
void r_ib_find_peer(struct r_id *id, int timeout_ms);

/* ---- ib_interface.c: IPoIB interfaces, as the fabric knows them ---- */

/* Asks the fabric for the interface with the MAC; *m is the answer.  Returns 0;
 * -ENODEV: no IPoIB interface of the subnet has the MAC; or another -errno of
 * r_call. */
int r_ib_interface(struct r_id *id, const uint8_t mac[6], struct cmproto *m);
/* Stores group and path.pkey in *m: those of the broadcast group of the IPoIB
 * interface that has the id's address.  Sets id->path.ifindex.  Returns 0;
 * -ENODEV: the id's address is not that of an IPoIB interface; -EADDRNOTAVAIL:
 * the interface has no such group; or another -errno. */
int r_ib_broadcast(struct r_id *id, struct cmproto *m);
/* Fails the call for this result of r_ib_broadcast, with a message that begins
 * with the name of the call.  Returns -1 and errno. */
int r_ib_fail_broadcast(const struct r_id *id, const char *call, int err);
/* Gives an id of RDMA_PS_IPOIB the Q_Key of its interface's broadcast group.
 * Other ids, and ids with a GID, keep their Q_Key.  Returns 0, or -1 and errno
 * with a message that begins with the name of the call. */
int r_ib_take_qkey(struct r_id *id, const char *call);

/* ---- ib_gid.c: P_Keys, and the GIDs of groups ---- */

/* Returns the id's P_Key, or that of the default partition if it has none. */
uint16_t r_ib_pkey(const struct r_id *id);

/* Stores the GID that IP uses for the group, at the interface with the id's
 * address. */
void r_ib_group_gid(const struct r_id *id, const struct sockaddr *group,
		    uint8_t gid[16]);
/* Stores the GID of the group that the id joins by this address; all zeroes:
 * the subnet administration chooses one. */
void r_ib_choose_gid(const struct r_id *id, const struct sockaddr *group,
		     uint8_t gid[16]);
/* Returns whether the id joins, by this address, the group that IP uses. */
bool r_ib_is_of_ip(const struct r_id *id, const struct sockaddr *group);

/* ---- ib_group.c, ib_joined.c: membership ---- */

/* ib_group.c: asks for the membership of the id's port, and adds the group m to
 * the id.  MULTICAST_JOIN or MULTICAST_ERROR follows.  Returns 0, or -1 and
 * errno with a message; after -1, m is still the caller's. */
int r_ib_join(struct r_id *id, struct r_multicast *m);
/* ib_group.c: ends the membership of r_ib_join and that of the kernel, if there
 * is any. */
void r_ib_leave(struct r_multicast *m);
/* ib_joined.c, under r_lock: handles the fabric's answer to CMPROTO_JOIN, for
 * the membership with this number. */
void r_ib_joined(struct r_id *id, uint32_t number, const struct cmproto *m);
/* ib_joined.c, under r_lock: the membership with this number has ended.  If it
 * is the id's, posts MULTICAST_ERROR and returns true. */
bool r_ib_lost(struct r_id *id, uint32_t number);

/* ---- ib_header.c ---- */

/* Puts the addresses of the id before the private data of a REQ or SIDR_REQ
 * (IBTA A11.3). */
void r_ib_put_header(const struct r_id *id, struct cmproto *m);
/* Takes these addresses out of the private data of a request.  The private data
 * may have any contents.  Returns false if there are no such addresses. */
bool r_ib_take_header(struct cmproto *m, struct cmmsg_ip *ip);

/* ---- ib_route.c: paths ---- */

/* Stores the GID of the first active port in gid.  Returns false, and stores
 * zeroes, if no port is active. */
bool r_ib_own_gid(uint8_t gid[16]);
/*
 * Stores the source address for the destination `to` in *from, without a
 * service ID: the GID of `to` if it is that of a usable port of this host, else
 * the first GID of a usable port that has the subnet prefix of `to`.  A port is
 * usable if it is active and in the partition of the P_Key of `to`; with the
 * P_Key 0, if it is active.  Returns 0, or -1 and errno ENODEV with a message.
 */
int r_ib_source(const struct sockaddr *to, struct sockaddr_storage *from);
/* Checks that an id may have the service ID of the address; any id may have an
 * address without a service ID.  Returns 0, or -1 and errno EPROTONOSUPPORT
 * with a message. */
int r_ib_check_space(const struct r_id *id, const struct sockaddr *addr);
/* Under r_lock: handles the fabric's answer m to CMPROTO_ROUTE. */
void r_ib_routed(struct r_id *id, const struct cmproto *m);
/* The program takes ROUTE_RESOLVED: gives the path of e->message to the id.  If
 * no memory is left, the event becomes ROUTE_ERROR. */
void r_ib_take_route(struct r_event *e);
/* The program takes CONNECT_REQUEST: gives the new id the record of the path
 * that the request names, if it names one and memory is left. */
void r_ib_take_request(struct r_id *id);
/* Gives the id the path r of the program (RDMA_OPTION_IB_PATH), and `other` as
 * its alternate path (NULL: none).  Returns 0, or -1 and errno with a
 * message. */
int r_ib_give_route(struct r_id *id, const struct ibv_path_record *r,
		    const struct ibv_path_record *other);
/* Returns whether the alternate path begins at a port of the id's device that
 * is in the path's partition. */
bool r_ib_is_alternate(const struct r_id *id,
		       const struct cmproto_alternate *a);
/* Removes the alternate path of the peer's REQ if the id cannot use it. */
void r_ib_check_alternate(struct r_id *id);
/* Fills in the members of *a about the id's alternate path, for the transition
 * to a->qp_state: RTR or RTS.  Returns their bits of the mask; 0: the id has no
 * alternate path, the peer has refused it, or it no longer begins at a port of
 * this host (r_ib_is_alternate). */
int r_ib_fill_alternate(const struct r_id *id, struct ibv_qp_attr *a);
/* Fills in the members of *a, which is all zeroes before, for the id's path. */
void r_ib_fill_av(const struct r_id *id, struct ibv_ah_attr *a);
/* Returns the local ACK timeout, an exponent n of 4.096 us * 2^n, for the id's
 * path and the ack delay of the end that acknowledges, as the kernel's CM
 * computes it. */
uint8_t r_ib_ack_timeout(const struct r_id *id, uint8_t ack_delay);
/* Stores the index of the id's P_Key at its port.  Returns 0, or EINVAL with a
 * message. */
int r_ib_pkey_index(const struct r_id *id, uint16_t *index);

#endif
