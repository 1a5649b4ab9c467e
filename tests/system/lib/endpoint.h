/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * endpoint: one end of an RC connection, for test programs.
 *
 * All functions call the public verbs; the program is built against the
 * system's headers and runs under `adverb run`.  A verb that fails here ends
 * the program with a sentence on stdout.  One thread, no lock.
 */
#ifndef TESTS_SYSTEM_LIB_ENDPOINT_H
#define TESTS_SYSTEM_LIB_ENDPOINT_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	ENDPOINT_SIZE = 8192,	  /* bytes of a region */
	ENDPOINT_WAIT_MS = 20000, /* processor time of endpoint_wait */
	ENDPOINT_GUARD = 0xC5,	  /* fills the pages around a region */
	ENDPOINT_FILL = 0x3A,	  /* fills a region */
	ENDPOINT_GID_INDEX = 1,	  /* IPv4, RoCEv2 */
	ENDPOINT_DEPTH = 64,	  /* requests of each queue */
	ENDPOINT_ALL_REMOTE = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			      IBV_ACCESS_REMOTE_ATOMIC,
};

/* Owns all objects that it points to, from endpoint_open to endpoint_close. */
struct endpoint {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel; /* the channel of cq */
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *map; /* guard page, region, guard page */
	uint8_t *region;
	size_t map_size; /* bytes */
};

/* The facts that one end tells the other, by any means. */
struct endpoint_address {
	union ibv_gid gid;
	uint64_t region;
	uint32_t qpn, psn, rkey;
};

/* Returns @bytes of memory, readable and writable, never NULL: private, or,
 * with ENDS_SHARED=1 in the environment, of a memfd that other processes may
 * map.  The caller frees the memory by endpoint_memory_free. */
void *endpoint_memory(size_t bytes);
/* Unmaps memory of endpoint_memory and closes its file; @bytes: as there. */
void endpoint_memory_free(void *p, size_t bytes);
/* Opens the first device and makes e's objects; the queue pair is in INIT.
 * @access and @qp_access: IBV_ACCESS_* of the region and the queue pair. */
void endpoint_open(struct endpoint *e, int access, int qp_access);
/* Destroys e's queue pair; @qp, which is in RESET, becomes e's and goes to
 * INIT.
 */
void endpoint_replace_qp(struct endpoint *e, struct ibv_qp *qp, int qp_access);
/* Destroys all objects of e, closes the device, and frees the region. */
void endpoint_close(struct endpoint *e);
/* Returns an endpoint with the objects of e, which e still owns, and a queue
 * pair of its own, which is in INIT and which the caller destroys.  @srq: its
 * shared receive queue, or NULL. */
struct endpoint endpoint_beside(const struct endpoint *e, struct ibv_srq *srq,
				int qp_access);

/* Sets *address to the facts that e's peer needs. */
void endpoint_address_get(const struct endpoint *e,
			  struct endpoint_address *address);
/* Takes e from INIT to RTR, connected to *peer. */
void endpoint_to_rtr(struct endpoint *e, const struct endpoint_address *peer);
/* Takes e from RTR to RTS; *self is what endpoint_address_get said of e. */
void endpoint_to_rts(struct endpoint *e, const struct endpoint_address *self,
		     uint8_t rnr_retry);

/* Connects a and b, which are in INIT, to each other, up to RTS. */
void endpoint_connect(struct endpoint *a, struct endpoint *b);

/* Opens two endpoints with all access rights and connects them to each other.
 */
void endpoint_open_pair(struct endpoint e[2]);
/* Closes the two endpoints of endpoint_open_pair. */
void endpoint_close_pair(struct endpoint e[2]);

/* Polls e's CQ for one completion.  False: none came within ENDPOINT_WAIT_MS of
 * this thread's processor time. */
bool endpoint_wait(struct endpoint *e, struct ibv_wc *wc);

/* Returns the state of e's queue pair, as ibv_query_qp says it. */
enum ibv_qp_state endpoint_state(const struct endpoint *e);

/* Returns whether no byte of the pages around the region has changed. */
bool endpoint_guarded(const struct endpoint *e);

/* Returns whether no byte of the region has changed since endpoint_open. */
bool endpoint_untouched(const struct endpoint *e);

#endif
