/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * endpoint: one end of an RC connection, for test programs.
 *
 * All functions call the public verbs; the program is built against the
 * system's headers and runs under `adverb run`.  If a verb or a system call
 * fails in one of these functions, the program prints a message on stdout and
 * exits with status 1.  No function takes a lock: one thread uses an endpoint
 * at a time, and one thread calls endpoint_memory and endpoint_memory_free.
 */
#ifndef TESTS_SYSTEM_LIB_ENDPOINT_H
#define TESTS_SYSTEM_LIB_ENDPOINT_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	ENDPOINT_SIZE = 8192,	  /* size of a region, in bytes */
	ENDPOINT_WAIT_MS = 20000, /* limit of endpoint_wait: processor time */
	ENDPOINT_GUARD = 0xC5,	  /* the byte that fills the guard pages */
	ENDPOINT_FILL = 0x3A,	  /* the byte that fills a new region */
	ENDPOINT_GID_INDEX = 1,	  /* index of the GID: IPv4, RoCEv2 */
	ENDPOINT_DEPTH = 64,	  /* requests in each work queue */
	ENDPOINT_ALL_REMOTE = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			      IBV_ACCESS_REMOTE_ATOMIC,
	/* limit of a program that sleeps until an event or a byte comes */
	ENDPOINT_EVENT_MS = 200000,
};

/* One end of a connection, with its objects.  endpoint_open makes the objects,
 * and endpoint_close destroys them. */
struct endpoint {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel; /* the channel of cq */
	/* the CQ of both work queues, with 4 * ENDPOINT_DEPTH entries */
	struct ibv_cq *cq;
	struct ibv_qp *qp; /* RC; all requests are signaled */
	struct ibv_mr *mr; /* the registered region */
	uint8_t *map;	   /* guard page, region, guard page */
	uint8_t *region;   /* ENDPOINT_SIZE bytes within map */
	size_t map_size;   /* bytes */
	/* The code of the ACK timeout (IBTA 9.7.6.1.3) for endpoint_to_rts.
	 * endpoint_open sets 14, which is 67 ms. */
	uint8_t timeout;
};

/* The facts of an end that its peer must know; the program sends them to the
 * peer by any means. */
struct endpoint_address {
	union ibv_gid gid; /* the port's GID at ENDPOINT_GID_INDEX */
	uint64_t region;   /* virtual address of the region */
	/* qpn: the QPN of the queue pair; psn: the first PSN that the queue
	 * pair sends; rkey: the rkey of the region. */
	uint32_t qpn, psn, rkey;
};

/* Maps @bytes of memory that is readable and writable, and returns its address,
 * never NULL.  With ENDS_SHARED=1 in the environment the memory is a shared
 * mapping of a memfd, which other processes may map; otherwise the memory is
 * private.  A program may have 64 such memfds at a time.  The caller frees the
 * memory by endpoint_memory_free. */
void *endpoint_memory(size_t bytes);
/* Unmaps the memory at p, which endpoint_memory returned for this number of
 * @bytes, and closes its memfd, if it has one. */
void endpoint_memory_free(void *p, size_t bytes);
/* Opens the first device and makes e's objects; the queue pair is in INIT.
 * @access: IBV_ACCESS_* of the region.  @qp_access: IBV_ACCESS_REMOTE_* of the
 * queue pair. */
void endpoint_open(struct endpoint *e, int access, int qp_access);
/* Destroys e's queue pair and puts @qp, which is in RESET, in its place: e owns
 * @qp from now on, and @qp goes to INIT with the rights @qp_access. */
void endpoint_replace_qp(struct endpoint *e, struct ibv_qp *qp, int qp_access);
/* Destroys all objects of e, closes the device, and frees the region.  If e->mr
 * is NULL, the caller has deregistered the region. */
void endpoint_close(struct endpoint *e);
/* Returns an endpoint that has a new queue pair and otherwise the objects of e,
 * which e still owns.  The new queue pair is in INIT with the rights
 * @qp_access; the caller destroys it.  @srq: the SRQ of the new queue pair, or
 * NULL. */
struct endpoint endpoint_beside(const struct endpoint *e, struct ibv_srq *srq,
				int qp_access);

/* Sets *address to what e's peer must know of e. */
void endpoint_address_get(const struct endpoint *e,
			  struct endpoint_address *address);
/* Moves e's queue pair from INIT to RTR, connected to *peer. */
void endpoint_to_rtr(struct endpoint *e, const struct endpoint_address *peer);
/* Moves e's queue pair from RTR to RTS; *self is the address that
 * endpoint_address_get gave for e.  @rnr_retry: as in struct ibv_qp_attr. */
void endpoint_to_rts(struct endpoint *e, const struct endpoint_address *self,
		     uint8_t rnr_retry);

/* Connects a and b to each other: moves their queue pairs from INIT to RTS,
 * with rnr_retry 0. */
void endpoint_connect(struct endpoint *a, struct endpoint *b);

/* Opens two endpoints with all access rights and connects them to each other.
 */
void endpoint_open_pair(struct endpoint e[2]);
/* Closes the two endpoints of endpoint_open_pair. */
void endpoint_close_pair(struct endpoint e[2]);

/* Polls e's CQ until it gives one completion, in *wc, and returns true.
 * Returns false if no completion comes within ENDPOINT_WAIT_MS of this thread's
 * processor time. */
bool endpoint_wait(struct endpoint *e, struct ibv_wc *wc);

/* Returns the state of e's queue pair, by ibv_query_qp. */
enum ibv_qp_state endpoint_state(const struct endpoint *e);

/* Returns whether all bytes of the guard pages around the region are still
 * ENDPOINT_GUARD. */
bool endpoint_guarded(const struct endpoint *e);

/* Returns whether all bytes of the region are still ENDPOINT_FILL. */
bool endpoint_untouched(const struct endpoint *e);

#endif
