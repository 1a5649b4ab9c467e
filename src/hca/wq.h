/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work queues (IBTA Vol 1, 10.8): rings of work requests in the arena.
 *
 * The program posts under a lock of the front end: v_qp.send, v_qp.recv or
 * v_srq.post (verbs/object.h).  A thread takes requests from a send queue, and
 * completes them, under the QP's post lock (host/post_lock.h), which the holder
 * of the progress lock takes, too.  A poll frees slots under the CQ's lock
 * (cq_poll).  rq.h and srq.h say how receives are taken and completed.
 *
 * Peers of this host read the queues of receives, and write the slots of a QP's
 * receive queue.  So the contents of these slots are checked before they are
 * used.
 */
#ifndef HCA_WQ_H
#define HCA_WQ_H

#include <stdbool.h>
#include <stdint.h>

#include "hca/adapter.h"
#include "hca/cq.h"
#include "util/ring.h"

/* A scatter/gather element (SGE). */
struct wq_sge {
	uint64_t va;
	uint32_t bytes;
	uint32_t lkey;
};

/*
 * One work request, in a slot of wq->stride bytes.  Its SGEs or its inline data
 * follow it.  The slot of a receive that has completed holds the completion
 * until the owner collects it (rq.c).
 */
struct wqe {
	uint64_t wr_id;
	uint8_t opcode; /* enum hca_wr; in a completed receive enum hca_wc */
	/* HCA_SEND_*; HCA_SEND_SIGNALED is set also for a QP with sq_sig_all.
	 * In a completed receive enum hca_status. */
	uint8_t flags;
	uint8_t num_sge;      /* SGEs in the slot; 0 with inline data */
	_Atomic uint8_t left; /* a receive: marks a completion (rq.c) */
	/* The length of the whole message; in a posted receive that of its
	 * SGEs. */
	uint32_t bytes;
	/* The immediate, the rkey to invalidate, or the lkey of the window to
	 * bind. */
	uint32_t imm_be;
	/* The remote key, or the key that a bind gives to the window.  In a
	 * completed receive src_qpn, wc_flags and sl (rq_complete). */
	uint32_t rkey;
	/* The remote address, or the start of the memory that a bind gives to
	 * the window.  In a completed receive cqe.at_ns. */
	uint64_t va;
	union {
		struct {
			/* Operands of an atomic or a bind (ibt/local_wr.c). */
			uint64_t swap_add, compare;
		};
		uint8_t few[16]; /* a receive: a short eager message */
	};
	/* A receive: the address to which its eager message is copied, or 0.  A
	 * bind that the program has not posted yet: the front end's struct
	 * ibv_mw. */
	uint64_t at;
};

/*
 * Bytes at the end of a receive's slot for an eager message.  With one SGE a
 * slot has 512 bytes, and a message of up to 56 bytes uses only two cache lines
 * of it (docs/decisions/015).
 */
#define WQE_EAGER_BYTES 440u

/* Bytes of a bounce buffer, and how many a receive queue has at most.  Their
 * pages take memory once a message has used them. */
#define WQ_BOUNCE_BYTES 8192u
#define WQ_BOUNCES	8u

/* The members of hca_ah that a datagram by LID needs. */
struct wq_lid {
	uint16_t dlid; /* a unicast LID, or the MLID of a multicast group */
	uint8_t sl;
	uint8_t path_bits; /* hca_ah.src_path_bits */
	uint8_t port_num;  /* hca_ah.port_num */
};

/*
 * The destination of a datagram, from its address handle and its request.  Lies
 * at the end of each slot of a UD queue pair's send queue.
 */
struct wq_to {
	uint8_t from[16], to[16]; /* GIDs; by LID those of the GRH */
	uint32_t qpn, qkey;
	/* IPv4's TOS and TTL, IPv6's or a GRH's traffic class and hop limit. */
	uint8_t tos, ttl;
	uint8_t bursts;	 /* hca_ah.bursts */
	uint8_t mtu;	 /* IBV_MTU_* of the port; 0: the request has no AH */
	uint8_t local;	 /* hca_ah.local */
	uint8_t has_grh; /* by LID: hca_ah.is_global */
	uint16_t port;	 /* hca_ah.port */
	union {
		uint32_t link; /* hca_ah.link */
		struct wq_lid lid;
	};
	uint32_t flow_label; /* by LID, if has_grh */
};

/*
 * A send queue, a receive queue or a shared receive queue, in the arena.  The
 * members before `head`, which peers of this host read, change only in
 * srq_resize once the queue is made.  The owner writes the members from `head`
 * on with each request, so they lie in other cache lines; peers read some of
 * these, too.
 */
struct wq {
	uint32_t size;	     /* slots, a power of two */
	uint32_t depth;	     /* requests that may be outstanding, as granted */
	uint32_t stride;     /* bytes of a slot */
	uint32_t max_sge;    /* SGEs for which a slot has room */
	uint32_t max_inline; /* bytes of inline data, in place of SGEs */
	/* A QP's receive queue: the number of bounce buffers, a power of two;
	 * 0: there are none. */
	uint32_t bounces;
	/* The slots; those of a QP's receive queue lie in the part that peers
	 * write. */
	aoff slots;
	/* A QP's receive queue: the wr_ids of the receives, uint64_t[size], in
	 * the owner's part; else 0. */
	aoff ids;
	/* The bounce buffers, of WQ_BOUNCE_BYTES each, in the part that peers
	 * write (eager.h); 0: there are none. */
	aoff bounce;
	/* The next slot to post; written by the program. */
	_Alignas(HCA_APART) ring_index head;
	/* The oldest slot in use; written by polls, or by srq_reserve. */
	ring_index tail;
	/* A send queue: the next request to complete; written under the QP's
	 * post lock. */
	ring_index completed;
	/* A QP's receive queue: the next completion to collect into recv_cq. */
	ring_index collected;
};

/* Makes a queue of @depth requests, with room in each slot for @max_sge SGEs or
 * @max_inline bytes.  Returns 0 or -ENOMEM. */
int wq_init(struct hca *h, struct wq *q, uint32_t depth, uint32_t max_sge,
	    uint32_t max_inline);
/* Makes a send queue of a UD QP: a queue of @depth requests, with room in each
 * slot for a struct wq_to and for @max_sge SGEs or @max_inline bytes.  Returns
 * 0 or -ENOMEM. */
int wq_init_ud(struct hca *h, struct wq *q, uint32_t depth, uint32_t max_sge,
	       uint32_t max_inline);
/* Makes the receive queue of a QP, whose slots peers of this host write: a
 * queue of @depth receives, with room in each slot for @max_sge SGEs and
 * WQE_EAGER_BYTES bytes.  Returns 0 or -ENOMEM. */
int wq_init_recv(struct hca *h, struct wq *q, uint32_t depth, uint32_t max_sge);
/* Frees the slots, wr_ids and bounce buffers of q.  q may be zeroed, or partly
 * initialised. */
void wq_fini(struct hca *h, struct wq *q);
/*
 * Does the whole queue lie inside the arena, is each slot aligned for a request
 * (struct wqe), and has the slot room for the request, its SGEs and @extra
 * bytes?  For a copy of a queue that another process has written.
 */
bool wq_is_sound(const struct hca *h, const struct wq *q, uint32_t extra);
/* Returns the slot of a free-running index. */
struct wqe *wq_at(const struct hca *h, const struct wq *q, uint32_t index);
/* Returns the slot that the caller fills next and then posts by wq_commit;
 * NULL: the queue is full. */
struct wqe *wq_reserve(const struct hca *h, struct wq *q);
/* Returns the slot @ahead slots after that of wq_reserve, for a caller that
 * fills several slots before it calls wq_commit_all.  NULL: the queue is
 * full. */
struct wqe *wq_reserve_after(const struct hca *h, struct wq *q, uint32_t ahead);

/* Posts @count filled slots.  The release store of head orders the contents of
 * the slots before it, for the acquire of the thread or peer that reads head.
 * Otherwise that thread or peer could read a slot that is not filled yet. */
static inline void wq_commit_all(struct wq *q, uint32_t count)
{
	shared_store(&q->head, shared_own(&q->head) + count);
}

/* Posts one filled slot. */
static inline void wq_commit(struct wq *q)
{
	wq_commit_all(q, 1);
}

/* Posts one filled receive, and keeps its wr_id in q->ids, where peers cannot
 * write. */
static inline void wq_commit_recv(const struct hca *h, struct wq *q,
				  uint64_t wr_id)
{
	uint64_t *ids = (uint64_t *)arena_at(&h->arena, q->ids);

	if (ids)
		ids[shared_own(&q->head) & (q->size - 1)] = wr_id;
	wq_commit(q);
}

/* Returns the room for an eager message in a receive's slot. */
static inline uint8_t *wq_eager_bytes(const struct wq *q, struct wqe *w)
{
	return (uint8_t *)w + q->stride - WQE_EAGER_BYTES;
}

/* Returns the bounce buffer of the receive at @index.  q->bounces is not 0. */
static inline uint8_t *wq_bounce(const struct hca *h, const struct wq *q,
				 uint32_t index)
{
	uint64_t i = index & (q->bounces - 1);

	return (uint8_t *)arena_at(&h->arena, q->bounce + i * WQ_BOUNCE_BYTES);
}

/* Returns how many bytes, from the start of a receive's slot, hold the receive
 * and a message of @bytes bytes.  A message of more than WQE_EAGER_BYTES is not
 * in the slot. */
static inline uint32_t wq_used(const struct wq *q, uint32_t bytes)
{
	return q->stride - WQE_EAGER_BYTES +
	       (bytes <= WQE_EAGER_BYTES ? bytes : 0);
}

/* Returns the destination of a UD request. */
static inline struct wq_to *wq_to(const struct wq *q, struct wqe *w)
{
	return (struct wq_to *)(void *)((uint8_t *)w + q->stride -
					sizeof(struct wq_to));
}

/*
 * Copies the members that wq_at and wq_is_sound need.  Reads each word once,
 * because another process may write or replace the queue at any time.  The
 * caller checks the copy by wq_is_sound, and then uses only the copy.
 */
static inline void wq_copy_places(struct wq *to, const struct wq *from)
{
	to->size = __atomic_load_n(&from->size, __ATOMIC_RELAXED);
	to->depth = __atomic_load_n(&from->depth, __ATOMIC_RELAXED);
	to->stride = __atomic_load_n(&from->stride, __ATOMIC_RELAXED);
	to->max_sge = __atomic_load_n(&from->max_sge, __ATOMIC_RELAXED);
	to->slots = __atomic_load_n(&from->slots, __ATOMIC_RELAXED);
	to->ids = 0;
}

/* Returns the SGEs of a request, which follow it in its slot. */
static inline struct wq_sge *wqe_sges(struct wqe *w)
{
	return (struct wq_sge *)(void *)(w + 1);
}

/* Returns the number of SGEs of a receive whose slot peers write, at most
 * HCA_MAX_SGE.  The word is read once. */
static inline uint32_t wqe_sge_count(const struct wqe *w)
{
	uint32_t count = __atomic_load_n(&w->num_sge, __ATOMIC_RELAXED);

	return count < HCA_MAX_SGE ? count : HCA_MAX_SGE;
}

/* Returns a copy of SGE i of a receive whose slot peers write.  Each word is
 * read once; the caller checks and uses only the copy. */
static inline struct wq_sge wqe_sge_read(const struct wqe *w, uint32_t i)
{
	const struct wq_sge *s = (const struct wq_sge *)(const void *)(w + 1);
	struct wq_sge one = {
		.va = __atomic_load_n(&s[i].va, __ATOMIC_RELAXED),
		.bytes = __atomic_load_n(&s[i].bytes, __ATOMIC_RELAXED),
		.lkey = __atomic_load_n(&s[i].lkey, __ATOMIC_RELAXED),
	};

	return one;
}

#endif
