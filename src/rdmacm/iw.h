/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_cm for iWARP devices: TCP connections of this process, which begin with
 * MPA (iwarp/startup.h) and are then given to the queue pair (verbs/iwarp.h).
 * The broker takes no part.
 *
 * The functions take r_lock, but for the last one.
 */
#ifndef RDMACM_IW_H
#define RDMACM_IW_H

#include "rdmacm/object.h"

/* Gives an id its struct r_iw, without a socket.  0; -1 and errno. */
int r_iw_make(struct r_id *id);
/* Binds a socket of the id.  `addr` has the port; 0: the kernel chooses it. The
 * id's source address becomes addr with the port.  0; -errno without a
 * message. */
int r_iw_bind(struct r_id *id, const struct sockaddr *addr);
/* 0; -1 and errno with a message. */
int r_iw_listen(struct r_id *id, int backlog);
/* Begins a connection by id->own: an event follows.  0; -1 and errno with a
 * message. */
int r_iw_connect(struct r_id *id, const struct rdma_conn_param *p);
/* Accepts the request by id->own.  0; -1 and errno with a message. */
int r_iw_accept(struct r_id *id, const struct rdma_conn_param *p);
/* Rejects the request.  0; -1 and errno with a message. */
int r_iw_reject(struct r_id *id, const void *data, uint8_t bytes);
/* Ends the connection in order.  0: an event follows, or waits to be taken; -1
 * and errno with a message. */
int r_iw_disconnect(struct r_id *id);
/* The program has taken the event of the request. */
void r_iw_taken(struct r_id *id);
/* Ends the connection of a queue pair that is about to be destroyed; the event
 * DISCONNECTED follows if the connection was established. */
void r_iw_abort(struct r_id *id);
/* Ends all, and frees id->iw: no event follows. */
void r_iw_drop(struct r_id *id);

/* Under r_lock: r_iw_drop of an id that the program has never got. */
void r_iw_forget(struct r_id *id);

#endif
