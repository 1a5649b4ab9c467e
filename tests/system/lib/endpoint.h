/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * endpoint: one end of an RC connection, for test programs that misbehave.
 *
 * Everything goes through the public verbs; the program is built against the
 * system's headers and runs under `adverb run`.  A failure of the set-up ends
 * the program: only what follows is under test.  One thread, no lock.
 */
#ifndef TESTS_SYSTEM_LIB_ENDPOINT_H
#define TESTS_SYSTEM_LIB_ENDPOINT_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	ENDPOINT_SIZE = 8192,	  /* bytes of a region */
	ENDPOINT_WAIT_MS = 20000, /* a completion later than this is none */
	ENDPOINT_GUARD = 0xC5,	  /* fills the pages around a region */
	ENDPOINT_FILL = 0x3A,	  /* fills a region */
	ENDPOINT_GID_INDEX = 1,	  /* IPv4, RoCEv2 */
	ENDPOINT_DEPTH = 64,	  /* of every queue */
	ENDPOINT_ALL_REMOTE = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			      IBV_ACCESS_REMOTE_ATOMIC,
};

/* Owns all it points to, from endpoint_open to endpoint_close. */
struct endpoint {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel; /* of cq */
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

/* Readable and writable memory of @bytes, private; with ENDPOINT_SHARED=1 in
 * the environment of a file that others may map.  Never NULL;
 * endpoint_memory_free. */
void *endpoint_memory(size_t bytes);
void endpoint_memory_free(void *p, size_t bytes);
/* @access and @qp_access: IBV_ACCESS_* of the region and the queue pair. */
void endpoint_open(struct endpoint *e, int access, int qp_access);
/* Destroys the queue pair and takes @qp, which is in RESET, to INIT. */
void endpoint_replace_qp(struct endpoint *e, struct ibv_qp *qp, int qp_access);
void endpoint_close(struct endpoint *e);
/* One that shares all with e but a queue pair of its own, which is in INIT and
 * the caller's to destroy.  @srq may be NULL. */
struct endpoint endpoint_beside(const struct endpoint *e, struct ibv_srq *srq,
				int qp_access);

void endpoint_address_get(const struct endpoint *e,
			  struct endpoint_address *address);
void endpoint_to_rtr(struct endpoint *e, const struct endpoint_address *peer);
void endpoint_to_rts(struct endpoint *e, const struct endpoint_address *self,
		     uint8_t rnr_retry);

/* Both, to RTS, with each other. */
void endpoint_connect(struct endpoint *a, struct endpoint *b);

/* Two of this process, with all rights, connected; and closes them. */
void endpoint_open_pair(struct endpoint e[2]);
void endpoint_close_pair(struct endpoint e[2]);

/* Waits for one completion.  False if none came in time. */
bool endpoint_wait(struct endpoint *e, struct ibv_wc *wc);

enum ibv_qp_state endpoint_state(const struct endpoint *e);

/* Is every byte outside the region what it was? */
bool endpoint_guarded(const struct endpoint *e);

/* Is every byte of the region what it was? */
bool endpoint_untouched(const struct endpoint *e);

#endif
