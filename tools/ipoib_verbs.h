/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The UD queue pair of an IPoIB interface, and the interface's connection to
 * the subnet administration.  The code calls libibverbs and libibumad as any
 * program does, and runs in one thread, without a lock.
 */
#ifndef TOOLS_IPOIB_VERBS_H
#define TOOLS_IPOIB_VERBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "ipoib/ipoib.h"

#define IPOIB_VERBS_RECEIVES 512 /* receives of the UD queue pair */
/* Bytes of memory for a receive: before each packet there is room for a GRH. */
#define IPOIB_VERBS_RECEIVE_BYTES (40 + IPOIB_PACKET_MAX)
#define IPOIB_VERBS_SENDS	  256 /* in connected mode; else half as many */
#define IPOIB_VERBS_BATCH	  64  /* sends that are posted together */

/* Sends that are still to be posted, by one call. */
struct ipoib_verbs_batch {
	struct ibv_send_wr wr[IPOIB_VERBS_BATCH];
	struct ibv_sge sge[IPOIB_VERBS_BATCH]; /* of wr, one for each */
	uint32_t count;			       /* entries in use */
};

/* The sends of one RC queue pair, whose number in flight is limited. */
struct ipoib_verbs_flow {
	uint32_t in_flight; /* sends that are not complete */
	uint32_t complete;  /* sends that are complete */
	bool is_broken; /* a send or a receive has failed, so the queue pair is
			   in ERR */
};

/* The use of a place, which is memory for the packet of one send. */
struct ipoib_verbs_use {
	uint32_t number; /* of the send, in its wr_id; 0: the place is free */
	struct ipoib_verbs_flow *flow; /* NULL: by UD */
};

/* The places, whose memory follows that of the receives. */
struct ipoib_verbs_places {
	uint32_t bytes; /* of a place */
	uint32_t count; /* of places */
	/* The indices of the free places: a stack of free_count entries. */
	uint16_t free[IPOIB_VERBS_SENDS];
	uint32_t free_count;
	struct ipoib_verbs_use uses[IPOIB_VERBS_SENDS]; /* by index */
	uint32_t last_number;				/* of the last send */
};

/* The UD queue pair of an interface and its objects.  All members are owned. */
struct ipoib_verbs {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel; /* of all CQs of the interface */
	struct ibv_cq *receive_cq, *send_cq;
	struct ibv_qp *qp;    /* the UD queue pair */
	struct ibv_mr *mr;    /* of memory */
	uint8_t *memory;      /* of receives, then of sends */
	uint8_t port;	      /* the number of the port */
	uint16_t wanted_pkey; /* 0: the one at index 0 */
	/* pkey_index: the index of the P_Key in the port's table, as last
	 * queried.  used_index: the index that the queue pair uses. */
	uint16_t pkey_index, used_index;
	bool is_started; /* the queue pair is in RTS */
	uint32_t qkey;	 /* of the partition */
	uint32_t round;	 /* how often the queue pair was started */
	/* The SL and the LID of the subnet manager, as last queried. */
	uint8_t sl;
	uint16_t sm_lid;
	struct ipoib_verbs_places places;
	struct ipoib_verbs_batch batch;
	int umad;  /* the port in libibumad; -1: not open */
	int agent; /* of umad, for the MADs of the SA */
};

/* Opens the device and makes the queue pair.  port 0: the first port that has a
 * link, or port 1 if none has.  pkey 0: the P_Key at index 0.  is_connected:
 * places have room for frames of the connected mode.  Returns 0, or -1 after a
 * sentence on stderr.  In both cases the caller calls ipoib_verbs_close. */
int ipoib_verbs_open(struct ipoib_verbs *v, uint8_t port, uint16_t pkey,
		     bool is_connected);
/* Closes the port and the device, and destroys and frees all objects of *v, as
 * far as ipoib_verbs_open has made them. */
void ipoib_verbs_close(struct ipoib_verbs *v);
/* Queries the port, and keeps the index of the P_Key and the LID and SL of the
 * subnet manager in *v.  Returns 0 or -errno. */
int ipoib_verbs_port(struct ipoib_verbs *v, struct ipoib_port *port);
/* Brings the queue pair to RTS with this Q_Key and receives posted.  If the
 * queue pair is in RTS already, changes its Q_Key only.  Returns 0 or -errno.
 */
int ipoib_verbs_start(struct ipoib_verbs *v, uint32_t qkey);
/* Resets the queue pair, drops the sends of the batch, and leaves no place
 * free.  Until ipoib_verbs_start only the places of RC sends become free. */
void ipoib_verbs_stop(struct ipoib_verbs *v);
/* Returns the place for the next frame that is sent, of v->places.bytes bytes;
 * NULL: all places are in use. */
uint8_t *ipoib_verbs_place(struct ipoib_verbs *v);
/* Adds a send of a packet by UD to the batch, and makes r->handle if r->handle
 * is NULL.  If the packet is not in the place that ipoib_verbs_place returns
 * now, copies the packet into this place.  Drops the packet if there is no
 * place or no address handle, or if the packet is longer than a place.
 * ipoib_verbs_flush must follow before the program waits. */
void ipoib_verbs_send(struct ipoib_verbs *v, struct route *r, const uint8_t *p,
		      size_t bytes);
/*
 * Takes the place that ipoib_verbs_place returns now, for a send of the flow
 * (NULL: none) by a queue pair whose send CQ is v->send_cq.  Copies the packet
 * into the place if the packet is elsewhere.  Fills in sge, and returns the
 * wr_id.  0: there is no place, or the packet is longer than a place.
 */
uint64_t ipoib_verbs_take_place(struct ipoib_verbs *v,
				struct ipoib_verbs_flow *flow, const uint8_t *p,
				size_t bytes, struct ibv_sge *sge);
/* Frees the place of a send that is complete or was not posted; does nothing if
 * another send has the place now.  has_failed: the send has failed, so its flow
 * is broken. */
void ipoib_verbs_free_place(struct ipoib_verbs *v, uint64_t wr_id,
			    bool has_failed);
/* Frees the places of a flow whose queue pair is destroyed. */
void ipoib_verbs_end_flow(struct ipoib_verbs *v,
			  const struct ipoib_verbs_flow *flow);
/* Frees the places of sends that are complete, as the send CQ tells. */
void ipoib_verbs_collect(struct ipoib_verbs *v);
/* Posts the sends of the batch.  Drops those that cannot be posted. */
void ipoib_verbs_flush(struct ipoib_verbs *v);
/* Posts the sends of the batch, and destroys the address handle of a route,
 * which must have one. */
void ipoib_verbs_release(struct ipoib_verbs *v, struct route *r);
/* Attaches the queue pair to a group, or detaches it.  Returns false on
 * failure. */
bool ipoib_verbs_attach(struct ipoib_verbs *v, const uint8_t mgid[16],
			bool attaches);
/* Gives packets to an interface, in batches of 32, until none is left or `most`
 * or more have come.  Returns how many have come. */
int ipoib_verbs_receive(struct ipoib_verbs *v, struct ipoib *m, int most,
			uint64_t now_ms);
/* Asks for an event when a place becomes free.  Returns true; false if a place
 * is free, or if the queue pair is not in RTS: then no event need come. */
bool ipoib_verbs_await_place(struct ipoib_verbs *v);
/* Takes the events of the completion channel.  After an event of a receive CQ,
 * asks for the next event of this CQ.  Does not ask if the CQ is that of the UD
 * queue pair and the queue pair is not in RTS. */
void ipoib_verbs_events(struct ipoib_verbs *v);
/* Sends a MAD to the subnet administration.  If that fails, the question counts
 * as lost. */
void ipoib_verbs_ask(struct ipoib_verbs *v, const uint8_t mad[MAD_BYTES]);
/* Receives the MADs that have come, and gives them to the interface *m.
 * Returns 0, or -errno if no more will come. */
int ipoib_verbs_answers(struct ipoib_verbs *v, struct ipoib *m,
			uint64_t now_ms);

#endif
