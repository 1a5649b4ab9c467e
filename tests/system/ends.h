/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ends: one end of an RC connection, for test programs that misbehave.
 *
 * Everything goes through the public verbs; the program is built against the
 * system's headers and runs under `adverb run`.  A failure of the set-up ends
 * the program: only what follows is under test.  One thread, no lock.
 */
#ifndef SYSTEM_ENDS_H
#define SYSTEM_ENDS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	ENDS_SIZE = 8192,     /* bytes of a region */
	ENDS_WAIT_MS = 20000, /* a completion later than this is none */
	ENDS_GUARD = 0xC5,    /* fills the pages around a region */
	ENDS_FILL = 0x3A,     /* fills a region */
	ENDS_GID_INDEX = 1,   /* IPv4, RoCEv2 */
	ENDS_DEPTH = 64,      /* of every queue */
	ENDS_ALL_REMOTE = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			  IBV_ACCESS_REMOTE_ATOMIC,
};

/* Owns all it points to, from ends_open to ends_close. */
struct ends {
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

/* What one end tells the other, by whatever way. */
struct ends_address {
	union ibv_gid gid;
	uint64_t region;
	uint32_t qpn, psn, rkey;
};

/* Readable and writable memory of @bytes, private; with ENDS_SHARED=1 in the
 * environment of a file that others may map.  Never NULL; ends_memory_free. */
void *ends_memory(size_t bytes);
void ends_memory_free(void *p, size_t bytes);
/* @access and @qp_access: IBV_ACCESS_* of the region and the queue pair. */
void ends_open(struct ends *e, int access, int qp_access);
/* Destroys the queue pair and takes @qp, which is in RESET, to INIT. */
void ends_replace_qp(struct ends *e, struct ibv_qp *qp, int qp_access);
void ends_close(struct ends *e);
/* One that shares all with e but a queue pair of its own, which is in INIT and
 * the caller's to destroy.  @srq may be NULL. */
struct ends ends_beside(const struct ends *e, struct ibv_srq *srq,
			int qp_access);

void ends_address_get(const struct ends *e, struct ends_address *address);
void ends_to_rtr(struct ends *e, const struct ends_address *peer);
void ends_to_rts(struct ends *e, const struct ends_address *self,
		 uint8_t rnr_retry);

/* Both, to RTS, with each other. */
void ends_connect(struct ends *a, struct ends *b);

/* Two of this process, with all rights, connected; and closes them. */
void ends_open_pair(struct ends e[2]);
void ends_close_pair(struct ends e[2]);

/* Waits for one completion.  False if none came in time. */
bool ends_wait(struct ends *e, struct ibv_wc *wc);

enum ibv_qp_state ends_state(const struct ends *e);

/* Is every byte outside the region what it was? */
bool ends_guarded(const struct ends *e);

/* Is every byte of the region what it was? */
bool ends_untouched(const struct ends *e);

#endif
