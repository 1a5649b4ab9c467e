/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connection management of a network namespace, or of a host of an emulated
 * subnet: it holds the conversations of cm/ over QP1 and the port spaces of
 * rdma_cm (cm/ports.h) for all clients.  When a client dies, its conversations
 * are released, so that their peers are told, and its ports and listeners are
 * freed.  Part of its caller's loop (the broker's, or that of the fabric's
 * process): one thread, no lock, no call waits.  All times are those of
 * CLOCK_MONOTONIC.
 */
#ifndef BROKER_CMSERVER_H
#define BROKER_CMSERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "broker/cmproto.h"
#include "broker/fd_store.h"
#include "cm/cm.h"
#include "cm/live.h"

struct cmserver;
struct cmserver_client;

/* How a server reaches other hosts.  Each call gets `user`. */
struct cmserver_wire {
	void *user;
	/* Sends a MAD from QP1 of f->from to QP1 of f->to, and does not wait.
	 * The MAD may be lost. */
	void (*send)(void *user, const struct cm_frame *f);
	/* Is this an address of this host? */
	bool (*is_own)(void *user, const uint8_t ip[16]);
	/* The addresses are GIDs of InfiniBand ports: the server accepts only
	 * requests with is_ib.  False: only requests without is_ib. */
	bool is_ib;
};

/* Makes a server.  Copies *wire, and borrows the fd store until cmserver_free;
 * the store may still be empty.  The caller passes each MAD of class
 * CMMSG_CLASS that comes to QP1 to cmserver_receive.  NULL: there is no memory,
 * or no random number. */
struct cmserver *cmserver_new(const struct cmserver_wire *wire,
			      struct fd_store *fd_store, uint64_t now_ns);
/* Handles a MAD of MAD_BYTES bytes and any contents, which has come from QP1 of
 * `from` to QP1 of `to`; by: see cm_rx. */
void cmserver_receive(struct cmserver *s, const uint8_t from[16],
		      const uint8_t to[16], const struct cm_way *by,
		      const uint8_t *mad, uint64_t now_ns);
/* Frees s, after the caller has freed all clients. */
void cmserver_free(struct cmserver *s);
/*
 * Begins to succeed a dead broker, whose fd store the caller has opened.  Some
 * clients of that broker may have died since: tells their peers.  The other
 * clients need some seconds to bring back their listeners and conversations.
 * During that time a request that finds no listener is held, not refused.
 */
void cmserver_succeed(struct cmserver *s, uint64_t now_ns);
/* Does the process pid have conversations of an earlier broker that the process
 * has not resumed yet? */
bool cmserver_awaits(const struct cmserver *s, pid_t pid);
/* Tells the peers of the conversations that the process pid, which has ended,
 * has not resumed. */
void cmserver_process_ended(struct cmserver *s, pid_t pid, uint64_t now_ns);
/* Makes a client for process pid of `user` (USER_NONE: a user that cannot be
 * told from others).  Borrows fd, the connection to the client.  NULL: there is
 * no memory. */
struct cmserver_client *cmserver_client_new(struct cmserver *s, int fd,
					    uid_t user, pid_t pid);
/* Frees c and releases all that c has, since the client's process or connection
 * has ended. */
void cmserver_client_free(struct cmserver *s, struct cmserver_client *c,
			  uint64_t now_ns);
/* Handles a message of the client, `length` bytes of any contents.  False: the
 * message is none of this protocol and version, or the client does not read its
 * messages; the caller drops the client. */
bool cmserver_handle(struct cmserver *s, struct cmserver_client *c,
		     const struct cmproto *m, size_t length, uint64_t now_ns);
/* Queues the answer to a request of the client that the caller has handled
 * itself, for example a CMPROTO_ROUTE.  If the client does not read its
 * messages, the answer is lost, as an answer of cmserver_handle is. */
void cmserver_tell(struct cmserver *s, struct cmserver_client *c,
		   const struct cmproto *m);
/* Do messages wait for the client, or is the client to be dropped?  If so, the
 * caller calls cmserver_output when the client's socket has room. */
bool cmserver_has_output(const struct cmserver_client *c);
/* Has the last cmserver_output failed for a lack of memory?  If so, the caller
 * does not wait for room, but calls cmserver_output after CMSERVER_MEMORY_MS.
 */
#define CMSERVER_MEMORY_MS 20
bool cmserver_lacks_memory(const struct cmserver_client *c);
/* Sends as many of the messages that wait for the client as its socket takes.
 * False: the caller drops the client. */
bool cmserver_output(struct cmserver_client *c);
/* Has a connection of that user with the peer's queue pair ended lately (see
 * cm_has_ended)?  A user learns nothing of the connections of other users.
 * False for USER_NONE, since it stands for several users. */
bool cmserver_has_ended(struct cmserver *s, uid_t user, const uint8_t peer[16],
			uint32_t qpn);
/*
 * Sets *about to a doubted peer (cm_doubts.h): a REQ from another host says
 * that this peer has lost its connection with a client.  False: there is none.
 * The caller asks the peer's host whether the peer's queue pair lives.  If the
 * host was asked and does not say that the queue pair lives, the caller calls
 * cmserver_stale.  In each case, even if the host cannot be asked, the caller
 * then calls cmserver_settle.
 */
bool cmserver_doubts(struct cmserver *s, struct live_peer *about);
/* Frees the place of a peer that cmserver_doubts has given. */
void cmserver_settle(struct cmserver *s, const struct live_peer *about);
/* Does `peers`, the server of the peer's host in the caller's process, have the
 * peer's end of the connection (see cm_has_peer)? */
bool cmserver_has_peer(struct cmserver *s, struct cmserver *peers,
		       const struct live_peer *about);
/* Ends the connection with the peer's queue pair, since the peer has lost that
 * connection (see cm_stale). */
void cmserver_stale(struct cmserver *s, const struct live_peer *about,
		    uint64_t now_ns);
/* Expires the timers that are due, and sends the messages that this causes. */
void cmserver_tick(struct cmserver *s, uint64_t now_ns);
/* Returns the time of the next cmserver_tick that is needed, in nanoseconds;
 * UINT64_MAX: none. */
uint64_t cmserver_deadline(const struct cmserver *s);
/* Are there conversations, in any state? */
bool cmserver_is_busy(const struct cmserver *s);

#endif
