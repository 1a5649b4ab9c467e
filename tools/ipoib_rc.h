/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The RC queue pairs of an IPoIB interface in connected mode.  All receive into
 * one shared receive queue, and use the send CQ and the places of the UD queue
 * pair.  A connection has the number that ipoib/stream has given it.  One
 * thread; no lock.
 */
#ifndef TOOLS_IPOIB_RC_H
#define TOOLS_IPOIB_RC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "broker/cmproto.h"
#include "ipoib/route.h"
#include "ipoib_verbs.h"

#define IPOIB_RC_LINKS	  384 /* most queue pairs */
#define IPOIB_RC_RECEIVES 256 /* receives in the shared queue */
#define IPOIB_RC_SENDS	  64  /* most sends in flight of one queue pair */
/* In ms.  If packets of a connection are in flight and none of them is
 * acknowledged for this time, the connection has failed: the neighbour has
 * stopped. */
#define IPOIB_RC_STUCK_MS 8000

/* A connection and its queue pair. */
struct ipoib_rc_link {
	/* 0: the queue pair, if there is one, is to be destroyed */
	uint32_t id;
	struct ibv_qp *qp;	      /* NULL: the entry is free */
	struct ipoib_verbs_flow flow; /* the sends of the queue pair */
	uint32_t complete;	      /* flow.complete at the time moved_ms */
	/* The time at which ipoib_rc_broken last found a further completed send
	 * or no send in flight, or first looked at this connection; 0: it has
	 * not looked yet. */
	uint64_t moved_ms;
	/* The path of a connection that this side has asked for. */
	struct route route;
	uint32_t psn; /* the PSN of the first packet that this side sends */
	bool is_open; /* the queue pair is in RTS */
	/* If id is 0: the value of ipoib_rc.ended when this connection had just
	 * ended. */
	uint32_t end;
	uint32_t end_taken; /* the value of ipoib_rc.taken at that time */
};

/* The connections of an interface. */
struct ipoib_rc {
	struct ipoib_verbs *v; /* borrowed */
	struct ibv_srq *srq;
	struct ibv_cq *receive_cq; /* the receive CQ of all RC queue pairs */
	struct ibv_mr *mr;	   /* the memory region of `memory` */
	uint8_t *memory;	   /* a place for each receive; owned */
	struct ipoib_rc_link links[IPOIB_RC_LINKS];
	struct ipoib_rc_link *last; /* the link that was found last, or NULL */
	uint64_t ca_guid; /* of this adapter, in host order; 0: not known */
	bool has_closed;  /* queue pairs are to be destroyed */
	uint32_t ended;	  /* how many connections have ended */
	uint32_t taken;	  /* how many completions of receives were taken */
	/* The value of `ended` before the last poll that emptied the receive
	 * CQ. */
	uint32_t drained;
};

/* Makes the shared receive queue.  v is borrowed.  Returns 0, or -1 after a
 * sentence on stderr.  In both cases the caller calls ipoib_rc_close. */
int ipoib_rc_open(struct ipoib_rc *r, struct ipoib_verbs *v);
/* Destroys the queue pairs and the shared receive queue.  The caller calls this
 * before ipoib_verbs_close. */
void ipoib_rc_close(struct ipoib_rc *r);
/*
 * Makes the queue pair of a connection for which this side asks.  Fills in *m,
 * as for CMPROTO_CONNECT, except for the addresses and the private data.
 * Returns false if the route has no valid MTU, or no queue pair can be made.
 */
bool ipoib_rc_ask(struct ipoib_rc *r, uint32_t id, const struct route *route,
		  const struct ipoib_port *port, struct cmproto *m);
/* The neighbour has accepted by the message m: brings the queue pair to RTS.
 * Returns false if that fails, or if the connection does not wait for an
 * acceptance. */
bool ipoib_rc_accepted(struct ipoib_rc *r, uint32_t id,
		       const struct cmproto *m);
/* Has the request m of a neighbour a transport, a path and a partition that
 * ipoib_rc_serve can use?  pkey: the interface's P_Key. */
bool ipoib_rc_may_serve(const struct cmproto *m, uint16_t pkey);
/* Makes the queue pair of the request m of a neighbour, brings it to RTS, and
 * fills in *reply, as for CMPROTO_ACCEPT, except for the private data.  Returns
 * false if that fails. */
bool ipoib_rc_serve(struct ipoib_rc *r, uint32_t id, const struct cmproto *m,
		    struct cmproto *reply);
/* Copies a packet and sends the copy.  Drops the packet if there is no such
 * connection, if its queue pair is not in RTS or has failed, or if the
 * connection has as many packets in flight as it may have now. */
void ipoib_rc_send(struct ipoib_rc *r, uint32_t id, const uint8_t *p,
		   size_t bytes);
/* Returns whether the connection has a queue pair. */
bool ipoib_rc_has(struct ipoib_rc *r, uint32_t id);
/* Ends a connection, if there is one with the number. */
void ipoib_rc_end(struct ipoib_rc *r, uint32_t id);
/* Returns a connection whose queue pair has failed, or whose packets have not
 * been acknowledged for IPOIB_RC_STUCK_MS; 0: there is none.  The loop calls
 * this in each turn. */
uint32_t ipoib_rc_broken(struct ipoib_rc *r, uint64_t now_ms);
/* Gives packets to an interface, in batches of 32, until none is left or `most`
 * or more have come.  Returns how many have come.  Destroys the queue pairs of
 * connections that have ended. */
int ipoib_rc_receive(struct ipoib_rc *r, struct ipoib *m, int most,
		     uint64_t now_ms);

#endif
