/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_cm on a host of an emulated InfiniBand subnet (`adverb fabric`).  The
 * fabric's process takes the broker's part: it has the conversations of this
 * process's ids, and asks the subnet administration for paths.  The addresses
 * of ids are GIDs (AF_IB).
 *
 * The fabric's process has no successor.  When it ends, the device has failed,
 * and each id gets DEVICE_REMOVAL.
 */
#ifndef RDMACM_IB_H
#define RDMACM_IB_H

#include "rdmacm/object.h"

/* ---- ib_link.c: the connection to the fabric, under r_lock ---- */

/* Is this process on a host of a fabric?  The first call decides for the
 * process and its forked children.  Needs no lock. */
bool r_ib_is_used(void);
/* Returns the word for the process that has the conversations: "fabric" or
 * "broker".  Needs no lock. */
const char *r_ib_server(void);
/*
 * Connects to the fabric, and stores the descriptor for messages of cmproto.h,
 * which the caller owns, in *fd.  The connection that brought it stays open
 * here.  Waits at most 30 s for the connection, and for each of two answers.
 * Returns 0, or -errno with a message; -ENODEV: r_ib_end was called in this
 * process.
 */
int r_ib_dial(int *fd);
/* Ends the connection for good.  The first call prints a message. */
void r_ib_end(void);
/* Closes what an earlier connection has left here: the parent's connection in a
 * forked child, or one that link.c could not use.  The process may connect
 * again. */
void r_ib_forget(void);

/* ---- ib_route.c: paths ---- */

/* Stores the GID of the first port that is active in gid.  Returns false, and
 * stores zeroes, if there is no such port. */
bool r_ib_own_gid(uint8_t gid[16]);
/*
 * Stores the source address for the destination `to`, without a port, in *from:
 * the GID itself if it is one of this host, else a GID of an active port that
 * has the subnet prefix of the destination.  The port is in the partition of
 * the destination's P_Key, if that is not 0.  Returns 0, or -1 and errno ENODEV
 * with a message.
 */
int r_ib_source(const struct sockaddr *to, struct sockaddr_storage *from);
/* Checks that an id may have the service ID of the address, or none.  Returns
 * 0, or -1 and errno EPROTONOSUPPORT with a message. */
int r_ib_check_space(const struct r_id *id, const struct sockaddr *addr);
/* Under r_lock: handles the fabric's answer m to CMPROTO_ROUTE. */
void r_ib_routed(struct r_id *id, const struct cmproto *m);
/* The program takes ROUTE_RESOLVED: gives the path of e->message to the id.  If
 * no memory is left, the event becomes ROUTE_ERROR. */
void r_ib_take_route(struct r_event *e);
/* The program takes CONNECT_REQUEST: gives the new id the record of the path
 * that the request names, if it names one and memory is left. */
void r_ib_take_request(struct r_id *id);
/* Gives the id the path r of the program (RDMA_OPTION_IB_PATH).  Returns 0, or
 * -1 and errno with a message. */
int r_ib_give_route(struct r_id *id, const struct ibv_path_record *r);
/* Fills in the members of *a, which is all zeroes before, for the id's path. */
void r_ib_fill_av(const struct r_id *id, struct ibv_ah_attr *a);
/* Returns the local ACK timeout for the id's path and a peer with this ack
 * delay, as the kernel's CM computes it. */
uint8_t r_ib_ack_timeout(const struct r_id *id, uint8_t ack_delay);
/* Stores the index of the id's P_Key at its port.  Returns 0, or EINVAL with a
 * message. */
int r_ib_pkey_index(const struct r_id *id, uint16_t *index);

#endif
