/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The UD queue pair of an IPoIB interface, and its connection to the subnet
 * administration: an ordinary program over libibverbs and libibumad.  One
 * thread; no lock.
 */
#ifndef TOOLS_IPOIB_VERBS_H
#define TOOLS_IPOIB_VERBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "ipoib/ipoib.h"

#define IPOIB_VERBS_RECEIVES 512
#define IPOIB_VERBS_SENDS    128
#define IPOIB_VERBS_BATCH    64 /* sends that are posted together */

/* Sends that are still to be posted, by one call. */
struct ipoib_verbs_batch {
	struct ibv_send_wr wr[IPOIB_VERBS_BATCH];
	struct ibv_sge sge[IPOIB_VERBS_BATCH];
	uint32_t count;
};

struct ipoib_verbs {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *receive_cq, *send_cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *memory; /* of receives, then of sends */
	uint8_t port;
	uint16_t wanted_pkey; /* 0: the one at index 0 */
	uint16_t pkey_index;  /* of the port as last queried */
	uint16_t used_index;  /* of the queue pair */
	bool is_started;      /* the queue pair is in RTS */
	uint32_t qkey;	      /* of the partition */
	uint32_t round;	      /* how often it was started */
	uint8_t sl;	      /* to the subnet manager */
	uint16_t sm_lid;
	/* The places of sends that are free: a stack. */
	uint16_t free[IPOIB_VERBS_SENDS];
	uint32_t free_count;
	struct ipoib_verbs_batch batch;
	int umad, agent;
};

/* Opens the device and makes the queue pair.  port 0: the first port that has a
 * link.  pkey 0: the P_Key at index 0.  Returns 0, or -1 after a sentence
 * on stderr. */
int ipoib_verbs_open(struct ipoib_verbs *v, uint8_t port, uint16_t pkey);
void ipoib_verbs_close(struct ipoib_verbs *v);
/* Asks what the port is.  Returns 0 or -errno. */
int ipoib_verbs_port(struct ipoib_verbs *v, struct ipoib_port *port);
/* Brings the queue pair to RTS, or changes its Q_Key.  Returns 0 or -errno. */
int ipoib_verbs_start(struct ipoib_verbs *v, uint32_t qkey);
/* Resets the queue pair. */
void ipoib_verbs_stop(struct ipoib_verbs *v);
/* Returns the place for the next frame that is sent, of IPOIB_FRAME_MAX bytes;
 * NULL: all places are in use. */
uint8_t *ipoib_verbs_place(struct ipoib_verbs *v);
/* Sends a packet, which is in the place that was last returned or elsewhere.
 * ipoib_verbs_flush must follow, before the program waits. */
void ipoib_verbs_send(struct ipoib_verbs *v, struct route *r, const uint8_t *p,
		      size_t bytes);
/* Posts the packets that were to be sent. */
void ipoib_verbs_flush(struct ipoib_verbs *v);
void ipoib_verbs_release(struct ipoib_verbs *v, struct route *r);
/* Returns whether the queue pair is attached or detached. */
bool ipoib_verbs_attach(struct ipoib_verbs *v, const uint8_t mgid[16],
			bool attaches);
/* Gives at most `most` packets to an interface.  Returns how many have come. */
int ipoib_verbs_receive(struct ipoib_verbs *v, struct ipoib *m, int most,
			uint64_t now_ms);
/* Asks for an event when a place becomes free.  Returns false if one is free.
 */
bool ipoib_verbs_await_place(struct ipoib_verbs *v);
/* Takes the events of the completion channel. */
void ipoib_verbs_events(struct ipoib_verbs *v);
/* Sends a MAD to the subnet administration. */
void ipoib_verbs_ask(struct ipoib_verbs *v, const uint8_t mad[MAD_BYTES]);
/* Gives the MADs that have come to an interface.  Returns 0, or -errno if no
 * more will come. */
int ipoib_verbs_answers(struct ipoib_verbs *v, struct ipoib *m,
			uint64_t now_ms);

#endif
