/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory regions, and the verdict on an access to memory (IBTA Vol 1, 10.6).
 * Regions and windows are rows of a table in the arena, which peers of this
 * host read.  Creation and destruction take the lock of mr_enter; lookups take
 * no lock.
 */
#ifndef HCA_MR_H
#define HCA_MR_H

#include <stdint.h>

#include "hca/adapter.h"
#include "hca/peer_area.h"

struct qp;

/* The use of a row; MR_WINDOW_2: a window of type 2B. */
enum mr_kind { MR_FREE, MR_REGION, MR_WINDOW_1, MR_WINDOW_2 };

/* One row of the table: a memory region or a memory window. */
struct mr {
	/* The keys, of which all 32 bits are compared.  A region's lkey and
	 * rkey are equal; the top of mw.c describes the keys of a window. */
	uint32_t lkey, rkey;
	uint32_t kind;	 /* enum mr_kind */
	uint32_t pd;	 /* the protection domain's number */
	uint32_t access; /* enum hca_access */
	/* Twice the number of times that the row was bound as a window; odd
	 * while the row is being bound (mr_binding). */
	uint32_t bindings;
	uint64_t iova;	    /* the start, as work requests and peers name it */
	uint64_t addr;	    /* the start, as the owner's address */
	uint64_t bytes;	    /* the length */
	uint32_t next_free; /* the next row on the list of free rows */
	/* A region: how many windows are bound to it.  A window: the row of the
	 * region that it is bound to, or 0. */
	uint32_t bound;
	uint32_t qpn; /* the only QP that may use the row; 0: every QP of pd */
	uint32_t share; /* the number from host_share, for the front end */
};

/* The result of judging a request to use a key: the request is permitted, or
 * the reason why it is not. */
enum mr_verdict {
	/* The access is permitted, or the window was bound or invalidated. */
	MR_OK,
	/* No region has this lkey, or no region or bound window has this rkey.
	 * A bind request: no window or no region has the key. */
	MR_BAD_KEY,
	MR_BAD_PD, /* the region or window is of another protection domain */
	/* The region or window lacks a right that the request needs.  A request
	 * that invalidates a key: the key is not that of a window of type 2. */
	MR_NO_RIGHT,
	MR_OUTSIDE, /* the range is not inside the region or window */
	MR_BAD_QP,  /* the window is bound to another QP */
	/* Verdicts only on a bind request: */
	MR_IS_BOUND, /* a window of type 2 is bound already */
	MR_NO_BYTES, /* a window of type 2 would have length 0 */
	/* The region is zero-based, or a window of type 1 would be. */
	MR_ZERO_BASED,
};

/*
 * Registers the memory [addr, addr + bytes), which work requests and peers name
 * [iova, iova + bytes).  @pd: the number of the protection domain; @access:
 * enum hca_access, which the caller has checked.  Returns the row, or NULL if
 * the table is full.
 */
struct mr *mr_new(struct hca *h, uint32_t pd, uint64_t addr, uint64_t bytes,
		  uint64_t iova, uint32_t access);
/* Deregisters a region.  Returns 0, or -EBUSY if windows are bound to the
 * region.  The caller then waits for the peers that copy by its keys
 * (access_wait). */
int mr_free(struct hca *h, struct mr *mr);
/* Returns the row with this lkey or rkey, or NULL.  Takes no lock. */
struct mr *mr_find(struct hca *h, uint32_t key);
/*
 * Judges an access to [va, va + bytes) by a local key.  @need: 0 or
 * HCA_LOCAL_WRITE.  MR_OK: *addr is the owner's address of va.
 */
enum mr_verdict mr_local(struct hca *h, uint32_t pd, uint32_t lkey, uint64_t va,
			 uint64_t bytes, uint32_t need, uint64_t *addr);
/* Judges an access of qp's peer to [va, va + bytes) by rkey.  @need: one of
 * HCA_REMOTE_*.  MR_OK: *addr is the owner's address of va. */
enum mr_verdict mr_remote(struct hca *h, const struct qp *qp, uint32_t rkey,
			  uint64_t va, uint64_t bytes, uint32_t need,
			  uint64_t *addr);
/* Takes the table's lock, for a thread of the owner; peers never take it. */
void mr_enter(struct hca *h) ACQUIRE(&h->shared->mr_lock);
/* Releases the table's lock. */
void mr_leave(struct hca *h) RELEASE(&h->shared->mr_lock);
/* Takes a free row and draws its keys.  Returns NULL if the table is full.
 * Called under mr_enter. */
struct mr *mr_row_take(struct hca *h);
/* Puts a row on the list of free rows.  Called under mr_enter. */
void mr_row_give(struct hca *h, struct mr *mr);

/*
 * Returns the number of the row's present binding.  The caller calls this
 * function before it checks the row's key, protection domain and QP, and passes
 * the number to key_remote.  A program may bind a window anew by the key that
 * the window had before, so the key alone does not tell one binding from
 * another.
 */
static inline uint32_t mr_binding(const struct mr *mr)
{
	/* Acquire: orders this load before those of the members.  With an even
	 * number, the members have the values that bind_window stored before
	 * that number, or later ones.  Otherwise a peer could load a member of
	 * the previous binding and then the new number.  key_remote would find
	 * this number unchanged, and the peer would access memory of the
	 * previous binding. */
	return __atomic_load_n(&mr->bindings, __ATOMIC_ACQUIRE);
}

/* Returns the rkey by which peers reach mr now; 0: mr is a free row, an unbound
 * window, or a window of type 2 that was invalidated. */
static inline uint32_t mr_key(const struct hca *h, const struct mr *mr)
{
	uint32_t key = __atomic_load_n(&mr->rkey, __ATOMIC_RELAXED);

	if (mr->kind == MR_WINDOW_2 &&
	    __atomic_load_n(&h->peer_area->gone[mr - h->mrs],
			    __ATOMIC_RELAXED) == key)
		return 0;
	return key;
}

#endif
