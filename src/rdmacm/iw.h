/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_cm for iWARP devices.  A connection is a TCP connection of this process,
 * or with ADVERB_SCTP an SCTP association (wire/sctp.h).  It begins with the
 * frames of MPA, or over SCTP with the messages of a DDP stream session
 * (iwarp/startup.h), and is then given to the queue pair (verbs/iwarp.h).  The
 * broker takes no part.
 *
 * r_iw_forget is called under r_lock; all other functions take r_lock.
 */
#ifndef RDMACM_IW_H
#define RDMACM_IW_H

#include "rdmacm/object.h"

/* Gives the id a struct r_iw without a socket, unless id->iw is set.  Returns
 * 0, or -1 and errno with a message. */
int r_iw_make(struct r_id *id);
/*
 * Makes a socket for the id and binds the socket to addr; with port 0 a free
 * port is chosen.  The id's source address becomes addr with the socket's port.
 * Returns 0, or -errno; the caller prints the message.  After a failure id->iw
 * is NULL.
 */
int r_iw_bind(struct r_id *id, const struct sockaddr *addr);
/*
 * Listens on the socket of r_iw_bind.  Connections wait in the kernel until
 * r_iw_serve.  backlog: the number of requests that may wait for the program;
 * 1024 if it is not positive.  Returns 0, or -1 and errno with a message.
 */
int r_iw_listen(struct r_id *id, int backlog);
/* After r_iw_listen: accepts connections from now on, and sets
 * state.is_listening. */
void r_iw_serve(struct r_id *id);
/* After r_iw_listen: stops listening; the port stays bound.  Does nothing
 * after r_iw_serve. */
void r_iw_unlisten(struct r_id *id);
/*
 * Begins a connection to the id's destination, with the depths in id->own and
 * the private data of p, which may be NULL.  Returns 0, and an event reports
 * the result; or returns -1 and errno with a message.
 */
int r_iw_connect(struct r_id *id, const struct rdma_conn_param *p);
/* Accepts the id's connection request, with the depths in id->own and the
 * private data of p, which may be NULL.  Returns 0, or -1 and errno with a
 * message; a request that cannot be accepted is rejected. */
int r_iw_accept(struct r_id *id, const struct rdma_conn_param *p);
/* Rejects the id's connection request, with `bytes` bytes of private data;
 * data may be NULL.  Returns 0, or -1 and errno with a message. */
int r_iw_reject(struct r_id *id, const void *data, uint8_t bytes);
/*
 * Sends what the program has posted, and then closes the id's connection.
 * Returns 0: the event DISCONNECTED or CONNECT_ERROR follows, or DISCONNECTED
 * was posted before.  Returns -1 and errno with a message if the id has no
 * connection.
 */
int r_iw_disconnect(struct r_id *id);
/* Notes that the program has taken the event of the id's connection request.
 * The request then no longer counts towards the listener's backlog. */
void r_iw_taken(struct r_id *id);
/* Ends the connection of a queue pair that is about to be destroyed.  Posts
 * DISCONNECTED if ESTABLISHED was posted, else CONNECT_ERROR; does nothing if
 * there is no connection. */
void r_iw_abort(struct r_id *id);
/* Ends the id's connection, request or listener, and sets id->iw to NULL.  No
 * event follows. */
void r_iw_drop(struct r_id *id);

/* Under r_lock: does the work of r_iw_drop for an id that the program has never
 * got.  Such an id has no queue pair, so no call of libibverbs is needed. */
void r_iw_forget(struct r_id *id);

#endif
