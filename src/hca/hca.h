/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What verbs name, without protocol: protection domains, memory regions,
 * completion queues, work queues, queue pairs (IBTA Vol 1, 10 and 11).
 *
 * Shared structures lie in the arena and hold no pointers.  struct hca is one
 * process's view of one arena.  Numbers of enums are those of the public API
 * and pinned to it by static asserts in verbs/pin.c.
 *
 * Locks: creation and destruction under the adapter's ctx lock; a QP's
 * protocol side under its lane; a CQ under cq->lock; a WQ's program side
 * under the face's own locks.
 */
#ifndef HCA_HCA_H
#define HCA_HCA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hca/arena.h"
#include "hca/comp.h"
#include "hca/cq.h"
#include "hca/space.h"
#include "util/count.h"
#include "util/list.h"
#include "util/ring.h"
#include "util/rng.h"

#define HCA_MAX_MR	  65536
#define HCA_MAX_SGE	  32
#define HCA_MAX_INLINE	  512
#define HCA_MAX_WR	  16384
#define HCA_MAX_CQE	  (1 << 20)
#define HCA_MAX_RD_ATOMIC 128
#define HCA_MAX_QP	  10000 /* a test makes so many */
#define HCA_MAX_MESSAGE	  (1u << 31)
#define HCA_MAX_PD	  65536
#define HCA_MAX_CQ	  16384
#define HCA_MAX_SRQ	  4096
#define HCA_MAX_AH	  65536
#define HCA_MAX_ATTACH	  256 /* queue pairs to a multicast group */

/* Access rights, values of IBV_ACCESS_*. */
enum hca_access {
	HCA_LOCAL_WRITE = 1,
	HCA_REMOTE_WRITE = 2,
	HCA_REMOTE_READ = 4,
	HCA_REMOTE_ATOMIC = 8,
	HCA_MW_BIND = 16,
	HCA_ZERO_BASED = 32,
};

/* Completion status, values of IBV_WC_*. */
enum hca_status {
	HCA_SUCCESS = 0,
	HCA_LOC_LEN_ERR = 1,
	HCA_LOC_QP_OP_ERR = 2,
	HCA_LOC_PROT_ERR = 4,
	HCA_WR_FLUSH_ERR = 5,
	HCA_MW_BIND_ERR = 6,
	HCA_REM_INV_REQ_ERR = 9,
	HCA_REM_ACCESS_ERR = 10,
	HCA_REM_OP_ERR = 11,
	HCA_RETRY_EXC_ERR = 12,
	HCA_RNR_RETRY_EXC_ERR = 13,
};

/* Work request opcodes, values of IBV_WR_*. */
enum hca_wr {
	HCA_WR_RDMA_WRITE = 0,
	HCA_WR_RDMA_WRITE_IMM = 1,
	HCA_WR_SEND = 2,
	HCA_WR_SEND_IMM = 3,
	HCA_WR_RDMA_READ = 4,
	HCA_WR_ATOMIC_CAS = 5,
	HCA_WR_ATOMIC_FADD = 6,
	HCA_WR_LOCAL_INV = 7,
	HCA_WR_BIND_MW = 8,
	HCA_WR_SEND_INV = 9,
	HCA_WR_ATOMIC_WRITE = 15,
};

/* What every service has; and with WRITEs, what UC has (IBTA 9.8.2). */
static inline bool hca_wr_is_send(uint8_t opcode)
{
	return opcode == HCA_WR_SEND || opcode == HCA_WR_SEND_IMM;
}

static inline bool hca_wr_is_message(uint8_t opcode)
{
	return hca_wr_is_send(opcode) || opcode == HCA_WR_RDMA_WRITE ||
	       opcode == HCA_WR_RDMA_WRITE_IMM;
}

/* Completion opcodes, values of IBV_WC_*. */
enum hca_wc {
	HCA_WC_SEND = 0,
	HCA_WC_RDMA_WRITE = 1,
	HCA_WC_RDMA_READ = 2,
	HCA_WC_COMP_SWAP = 3,
	HCA_WC_FETCH_ADD = 4,
	HCA_WC_BIND_MW = 5,
	HCA_WC_LOCAL_INV = 6,
	HCA_WC_ATOMIC_WRITE = 9,
	HCA_WC_RECV = 128,
	HCA_WC_RECV_RDMA_WITH_IMM = 129,
};

/* Completion flags, values of IBV_WC_*. */
enum { HCA_WC_GRH = 1, HCA_WC_WITH_IMM = 2, HCA_WC_WITH_INV = 8 };

/* Send flags, values of IBV_SEND_*. */
enum {
	HCA_SEND_FENCE = 1,
	HCA_SEND_SIGNALED = 2,
	HCA_SEND_SOLICITED = 4,
	HCA_SEND_INLINE = 8,
};

/* Values of IBV_QPS_*. */
enum hca_qp_state {
	HCA_QP_RESET = 0,
	HCA_QP_INIT = 1,
	HCA_QP_RTR = 2,
	HCA_QP_RTS = 3,
	HCA_QP_SQD = 4,
	HCA_QP_SQE = 5,
	HCA_QP_ERR = 6,
};

enum { HCA_QPT_RC = 2, HCA_QPT_UC = 3, HCA_QPT_UD = 4 };

/* Modify masks, values of IBV_QP_*. */
enum {
	HCA_QP_STATE = 1 << 0,
	HCA_QP_CUR_STATE = 1 << 1,
	HCA_QP_EN_SQD_ASYNC = 1 << 2,
	HCA_QP_ACCESS_FLAGS = 1 << 3,
	HCA_QP_PKEY_INDEX = 1 << 4,
	HCA_QP_PORT = 1 << 5,
	HCA_QP_QKEY = 1 << 6,
	HCA_QP_AV = 1 << 7,
	HCA_QP_PATH_MTU = 1 << 8,
	HCA_QP_TIMEOUT = 1 << 9,
	HCA_QP_RETRY_CNT = 1 << 10,
	HCA_QP_RNR_RETRY = 1 << 11,
	HCA_QP_RQ_PSN = 1 << 12,
	HCA_QP_MAX_QP_RD_ATOMIC = 1 << 13,
	HCA_QP_ALT_PATH = 1 << 14,
	HCA_QP_MIN_RNR_TIMER = 1 << 15,
	HCA_QP_SQ_PSN = 1 << 16,
	HCA_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
	HCA_QP_PATH_MIG_STATE = 1 << 18,
	HCA_QP_CAP = 1 << 19,
	HCA_QP_DEST_QPN = 1 << 20,
	HCA_QP_RATE_LIMIT = 1 << 25,
};

/* ---- memory regions and windows (mr.c, mw.c) ---- */

enum mr_kind { MR_FREE, MR_REGION, MR_WINDOW_1, MR_WINDOW_2 };

/* One row of the table in the arena. */
struct mr {
	uint32_t lkey, rkey; /* of a region equal; all 32 bits compared */
	uint32_t kind;	     /* enum mr_kind */
	uint32_t pd;
	uint32_t access; /* enum hca_access */
	uint64_t iova;	 /* what work requests and peers call its start */
	uint64_t addr;	 /* where it lies in the owner's memory */
	uint64_t bytes;
	uint32_t next_free;
	uint32_t bound; /* windows on a region; the region of a window */
	uint32_t qpn;	/* the only one that may use it; 0: all of the domain */
	uint32_t share; /* the face's, see share.h */
};

/* Why a key, address and length do not name usable memory. */
enum mr_verdict {
	MR_OK,
	MR_BAD_KEY,  /* no region has this key */
	MR_BAD_PD,   /* it belongs to another protection domain */
	MR_NO_RIGHT, /* it lacks the right asked for */
	MR_OUTSIDE,  /* the range is not inside it */
	MR_BAD_QP,   /* a window of another QP */
	/* Of a binding: */
	MR_IS_BOUND,   /* a window of type 2 that is bound already */
	MR_NO_BYTES,   /* a window of type 2 to nothing */
	MR_ZERO_BASED, /* a window of type 1, or a region, from address 0 on */
};

/* ---- work queues (wq.c) ---- */

struct wq_sge {
	uint64_t va;
	uint32_t bytes;
	uint32_t lkey;
};

/* One work request, in a slot of wq->stride bytes; sges or inline data
 * follow it. */
struct wqe {
	uint64_t wr_id;
	uint8_t opcode; /* enum hca_wr; of a receive: what was left, rq.c */
	uint8_t flags;	/* HCA_SEND_* ; signaled already includes sq_sig_all */
	uint8_t num_sge;
	_Atomic uint8_t left; /* of a receive: rq.c */
	uint32_t bytes;	      /* of the whole message */
	uint32_t imm_be; /* immediate as the program gave it, or rkey to inv. */
	uint32_t rkey;
	uint64_t va; /* remote */
	union {
		struct {
			uint64_t swap_add, compare; /* of a bind: see local.c */
		};
		uint8_t few[16]; /* of a receive, as `at`: see eager.c */
	};
	uint64_t at;
};

/*
 * Room at the end of a receive's slot for a message, in bytes.  With one
 * element a slot is 512 bytes, of which a message of 56 touches two cache lines
 * (docs/decisions/015).
 */
#define WQE_EAGER_BYTES 440u

/* A small message, which stays with its receive until it is collected. */
struct eager {
	uint64_t at; /* where it belongs in the owner's memory; 0: nothing */
	uint8_t bytes[WQE_EAGER_BYTES];
};

/*
 * Where a datagram goes: what an address handle says, and the request.  At the
 * end of a slot of a UD queue pair's send queue.
 */
struct wq_to {
	uint8_t from[16], to[16]; /* addresses as GIDs */
	uint32_t qpn, qkey;
	uint8_t tos, ttl;
	uint8_t bursts; /* as in hca_ah */
	uint8_t mtu;	/* IBV_MTU_*, of the port; 0: there is no address */
	uint8_t local;	/* as in hca_ah */
	uint8_t reserved;
	uint16_t port; /* the same */
	uint32_t link; /* and this */
};

/*
 * In the arena; one of a QP's two queues.  Peers on this host read what never
 * changes, and its owner writes the rest, HCA_APART.
 */
struct wq {
	uint32_t size;	/* slots, a power of two */
	uint32_t depth; /* what was granted: at most this many outstanding */
	uint32_t stride;
	uint32_t max_sge;
	uint32_t max_inline;
	uint32_t reserved;
	aoff slots; /* of receives of a queue pair: where peers may write */
	aoff ids;   /* of those: their wr_id again, uint64_t[size]; or 0 */
	/* next to post; the program writes it */
	_Alignas(HCA_APART) ring_index head;
	ring_index tail; /* oldest slot in use; polling writes it */
	ring_index done; /* of sends: next to complete; the lane writes it */
	ring_index told; /* of receives: their completion is in recv_cq */
};

/*
 * In the arena; a queue of receives that several QPs take from, of several
 * processes and without a lock (srq.c).  A slot is free as soon as a message
 * has its receive.  The program posts at wq.head, under its own lock, which is
 * also resizing's.
 */
struct srq {
	struct wq wq;	  /* tail: see srq_reserve; done is not used */
	uint64_t peer_at; /* of struct srq_shared, bytes from here */
	uint32_t pd;
	uint64_t user; /* cookie of the face, carried by events */
};

/* What who takes one writes. */
struct srq_shared {
	_Atomic uint64_t next; /* to take; who took the one before; SRQ_SHUT */
	/* With fewer posted an event is owed; 0: disarmed.  SRQ_OWED: one is,
	 * until it is told. */
	_Atomic uint32_t limit;
};

static inline struct srq_shared *srq_shared(const struct srq *s)
{
	return (struct srq_shared *)((uintptr_t)s + s->peer_at);
}

static inline struct wq_sge *wqe_sges(struct wqe *w)
{
	return (struct wq_sge *)(void *)(w + 1);
}

/*
 * Of a receive, whose slot peers write: how many elements, no more than a slot
 * may have, and one of them as it is now.  Each word is read once, and what was
 * read is what is used.
 */
static inline uint32_t wqe_sge_count(const struct wqe *w)
{
	uint32_t count = __atomic_load_n(&w->num_sge, __ATOMIC_RELAXED);

	return count < HCA_MAX_SGE ? count : HCA_MAX_SGE;
}

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

/* ---- queue pairs (qp.c, qp_modify.c) ---- */

struct hca_ah {
	uint8_t dgid[16];
	uint8_t sgid_index;
	uint8_t hop_limit;
	uint8_t traffic_class;
	uint8_t is_global;
	uint32_t flow_label;
	uint16_t dlid;
	uint8_t sl;
	uint8_t src_path_bits;
	uint8_t static_rate;
	uint8_t port_num;
	/* The host's: may frames hold several packets; is the peer in this
	 * namespace, by an adapter like ours? */
	uint8_t bursts, local;
	uint16_t port; /* the UDP port to send from; 0: RoCEv2's own */
	uint32_t link; /* the interface that had the source; 0: any */
};

/* The attributes of a QP, host order; fields as IBTA 11.2.5.2 names them. */
struct hca_qp_attr {
	uint32_t qp_state, cur_qp_state;
	uint32_t path_mtu; /* values of IBV_MTU_*: 1..5 */
	uint32_t path_mig_state;
	uint32_t qkey;
	uint32_t rq_psn, sq_psn;
	uint32_t dest_qpn;
	uint32_t access_flags;
	struct hca_ah ah, alt_ah;
	uint16_t pkey_index, alt_pkey_index;
	uint8_t en_sqd_async_notify, sq_draining;
	uint8_t max_rd_atomic, max_dest_rd_atomic;
	uint8_t min_rnr_timer, port_num, timeout, retry_cnt, rnr_retry;
	uint8_t alt_port_num, alt_timeout;
	uint32_t rate_limit;
};

/* What keeps a QP from sending. */
enum qp_wait {
	QP_WAIT_NONE,	 /* nothing to send */
	QP_WAIT_ANSWER,	 /* all is sent; the peer has yet to acknowledge */
	QP_WAIT_WINDOW,	 /* as much is under way as may be */
	QP_WAIT_READS,	 /* READs and atomics: max_rd_atomic, or a fence */
	QP_WAIT_RECEIVE, /* the peer has no receive posted: RNR */
	QP_WAIT_SILENT,	 /* the peer is silent; it is sent again */
	QP_WAITS
};

/*
 * What a QP has done, for others to look at while it does (`adverb top`).
 * Written by the lane alone, with plain stores.
 */
struct qp_stats {
	uint64_t tx_packets, tx_bytes, rx_packets, rx_bytes; /* BTH to ICRC */
	uint64_t retransmits, timeouts, rnr_waits, out_of_order;
	uint32_t wait; /* enum qp_wait, when it last ran out of work */
	uint32_t row;  /* of the table of QPs */
};

/* What a peer asks the owner of the memory to do (struct qp_target). */
enum far_ask {
	TARGET_ASK_NONE,
	TARGET_ASK_POSTED,
	TARGET_ASK_ANSWERED,
	TARGET_ASK_REFUSED
};

/* Why a peer found that the QP fails: struct explain without pointers. */
struct target_failure {
	uint32_t verdict, cause, opcode, detail;
	uint32_t key, mr_verdict, need;
	uint64_t wr_id, va, bytes, region_va, region_bytes;
};

/* Letters to a QP's own process, bits. */
enum qp_notify {
	QP_NOTIFY_HEARD = 1,  /* the first request has come */
	QP_NOTIFY_CQ = 2,     /* an event of recv_cq is owed */
	QP_NOTIFY_LATER = 4,  /* it is owed in hold_ns */
	QP_NOTIFY_FULL = 8,   /* recv_cq has overflowed */
	QP_NOTIFY_LIMIT = 16, /* the shared queue's limit was reached */
	QP_NOTIFY_ASK = 32,   /* see ask */
	QP_NOTIFY_FAIL = 64,  /* see note */
	QP_NOTIFY_ROOM = 128, /* completions are to be collected: rq_is_full */
	QP_NOTIFY_LOST = 256, /* a message found no memory: see rq_lost */
	QP_NOTIFY_ALL = 511,
};

/*
 * The side of a QP that peers on this host work at themselves (src/direct).
 * `lock` is the responder's: under it they read state and attr, take receives
 * and write all of this.  Under it the owner changes attr and state, but for
 * ERR, which it enters at once: what a peer has begun ends as it would have,
 * and the receives are flushed when it has left.
 */
struct qp_target {
	/* What each of their requests writes: one cache line. */
	struct alock lock;
	aoff next;	       /* on the list of recv_cq */
	uint64_t held;	       /* a message has a receive, see rq.c */
	uint64_t rx_bytes;     /* what they have brought, and in how many */
	uint32_t rx_packets;   /* pieces */
	uint32_t posted;       /* rq.head, when it was last looked at */
	ring_index done;       /* receives completed */
	shared_flag is_queued; /* it is on that list, will be, or is watched */
	shared_flag is_wanted; /* peers shall not begin anything */
	ring_index eager_end;  /* the receive after the last that carries */
	_Atomic uint32_t notify; /* enum qp_notify, see notify.c */
	uint8_t has_failed; /* note says why; nothing is accepted any more */
	uint8_t is_heard;
	uint8_t is_torn; /* a peer died in the lock: see rq_settle */
	/* UC: the peer goes by packets from here on; set without the lock. */
	uint8_t is_left;
	/* And what few do. */
	uint64_t tx_bytes;    /* what READs have fetched */
	_Atomic uint32_t ask; /* enum far_ask */
	uint32_t ask_opcode;  /* enum hca_wr */
	uint32_t ask_rkey;
	uint64_t ask_va, ask_swap_add, ask_compare, ask_found;
	struct target_failure note;
	struct comp comp;
};

/*
 * In the arena, in the owner's part; what peers write is in the other, so far
 * from here.
 */
struct qp {
	aoff self; /* where it lies, as long as there is one */
	uint32_t qpn;
	uint32_t serial; /* of all that were made here: tells it from those */
	uint32_t type;	 /* HCA_QPT_* */
	uint32_t state;	 /* enum hca_qp_state; changes only in qp_enter */
	uint32_t pd, recv_pd; /* recv_pd: of the memory of its receives */
	uint32_t sq_sig_all;
	uint32_t device;       /* which of the host's; its counters count */
	uint32_t connection;   /* how often it has become ready to receive */
	aoff send_cq, recv_cq; /* struct cq */
	aoff srq;	       /* struct srq, instead of rq; or 0 */
	uint64_t user;	       /* cookie of the face, carried by events */
	uint64_t peer_at; /* of struct qp_target, bytes from here: qp_target */
	/* What the owner writes and what a peer reads as it takes receives are
	 * kept apart. */
	struct wq sq;
	struct qp_stats stats;
	_Alignas(HCA_APART) struct hca_qp_attr attr; /* as set by modify */
	struct wq rq;
	/* Where memory was not there any more for what a receive carried; the
	 * owner's, under recv_cq's lock. */
	uint64_t rq_lost, rq_lost_id; /* where, and of which wr_id */
	uint32_t rq_lost_key;
};

static inline struct qp_target *qp_target(const struct qp *qp)
{
	return (struct qp_target *)((uintptr_t)qp + qp->peer_at);
}

_Static_assert(offsetof(struct qp_target, tx_bytes) == 64,
	       "what a peer's request writes: one cache line");

struct hca_qp_cap {
	uint32_t send_wr, recv_wr, send_sge, recv_sge, inline_bytes;
	struct srq *srq; /* takes the place of a receive queue; or NULL */
};

/* ---- the adapter ---- */

#define HCA_MAX_DEVICES 8

/* Of who maps it read-only: its structs are ours or they are not. */
#define HCA_SHAPE                                                              \
	((uint32_t)(sizeof(struct hca_shared) << 18 ^ sizeof(struct qp) << 6 ^ \
		    sizeof(struct cq) ^ sizeof(struct srq) << 12 ^             \
		    sizeof(struct qp_target) << 8))

/* What peers write of no queue in particular, in the part for that. */
struct hca_peer_area {
	/* notify.c: who has mail. */
	shared_flag notify_pending;
	shared_flag has_eager; /* a peer has left a message with a receive */
	_Atomic uint64_t notify[(HCA_MAX_QP + 63) / 64]; /* by row of qps */
	_Atomic uint64_t takes[HCA_MAX_QP];		 /* the same: srq.c */
	uint32_t gone[HCA_MAX_MR]; /* keys of windows that were invalidated */
	/* Where an offset leads that makes no sense (hca_peer_area_at). */
	_Alignas(HCA_APART) uint8_t nowhere[HCA_APART];
};

/* At arena root. */
struct hca_shared {
	uint32_t shape;	    /* HCA_SHAPE */
	uint32_t qp_top;    /* rows of qps ever used */
	uint32_t qp_lowest; /* rows before it are taken */
	aoff qps;	    /* aoff[HCA_MAX_QP] of struct qp; 0: a free row */
	aoff peer_area;	    /* struct hca_peer_area */
	aoff counters;	    /* struct engine_counters[HCA_MAX_DEVICES] */
	aoff suspects;	    /* struct engine_suspect[ENGINE_SUSPECTS] */
	uint64_t key_secret[2]; /* of the permutation of keys */
	aoff mrs;		/* struct mr[HCA_MAX_MR] */
	uint32_t mr_top, mr_free_head, mr_free_tail;
	uint32_t next_pd, next_cq, next_qp;
	struct alock mr_lock;
	/* For other processes that map this arena, host/local_peer.h: */
	aoff accesses;	   /* struct guest[ACCESS_MAX] */
	aoff shares;	   /* struct share[SHARE_MAX] */
	uint64_t owner;	   /* its alock_owner */
	uint64_t nonce;	   /* random, and where it lies in the owner's */
	uint64_t nonce_va; /* memory */
	uint32_t pid;
	shared_u32 share_version;
	/* The network interface of each device; 0: there are no more. */
	uint32_t links[HCA_MAX_DEVICES];
	/* Begins with the word that hca_is_alive reads. */
	union {
		shared_u32 word;
		uint64_t room[8];
	} pulse;
	shared_flag is_asleep; /* nobody would look whether there is mail */
};

/* One process's view of an adapter. */
#define HCA_HINTS 16

struct hca {
	struct arena arena;
	struct hca_shared *shared;	 /* in the arena */
	struct mr *mrs;			 /* in the arena */
	struct hca_peer_area *peer_area; /* in the arena */
	struct space *space;	     /* the application's memory; borrowed */
	struct rng rng;		     /* seeded by the caller, see hca_init */
	uint32_t active_mtu;	     /* IBV_MTU_*: limit of path_mtu */
	shared_u32 hints[HCA_HINTS]; /* rows where mr_find found keys lately */
	uint32_t pds, cqs, srqs;     /* that there are; under the ctx lock */
	struct list share_looks;     /* struct share_look; the same lock */
	struct count ahs;	     /* the same, without it */
};

/*
 * Format the arena and make an adapter in it.  `seed` is from a CSPRNG in
 * real processes; keys are drawn from it.  0 or -ENOMEM.
 */
int hca_init(struct hca *h, struct arena arena, struct space *space,
	     uint64_t seed[4]);

/*
 * What lies peer_at bytes from `from`, a queue of h, which may be another's: in
 * the part that peers write, or nowhere.  At most HCA_APART bytes.
 */
static inline void *hca_peer_area_at(const struct hca *h, const void *from,
				     uint64_t peer_at)
{
	aoff off = (aoff)((uintptr_t)from - (uintptr_t)h->arena.base) + peer_at;

	return arena_shares(&h->arena, off, HCA_APART) ? h->arena.base + off
						       : h->peer_area->nowhere;
}

/* A number; 0: there are HCA_MAX_PD. */
uint32_t hca_pd_new(struct hca *h);
void hca_pd_free(struct hca *h);
/* Room for an address handle; false: there are HCA_MAX_AH.  Takes no lock. */
static inline bool hca_ah_new(struct hca *h)
{
	return count_up_to(&h->ahs, HCA_MAX_AH);
}
static inline void hca_ah_free(struct hca *h)
{
	count_down(&h->ahs);
}

/*
 * Is there still somebody who serves this arena?  The word is that of a
 * robust lock which a thread of the owner holds: the kernel changes it when
 * the process dies or executes another program (get_robust_list(2)), so this
 * costs a load.  False also before the owner is ready and after it closed.
 */
static inline bool hca_is_alive(const struct hca *h)
{
	uint32_t word = shared_load(&h->shared->pulse.word);

	return word && !(word & 0x40000000u); /* FUTEX_OWNER_DIED */
}

/*
 * mr.c.  Register [addr, addr + bytes) as [iova, ...): a row, or NULL when
 * the table is full.  The caller has checked the access flags.
 */
struct mr *mr_new(struct hca *h, uint32_t pd, uint64_t addr, uint64_t bytes,
		  uint64_t iova, uint32_t access);
/* 0, or -EBUSY: windows are bound to it. */
int mr_free(struct hca *h, struct mr *mr);
struct mr *mr_find(struct hca *h, uint32_t key);
/* Memory named by a local key; `need` is 0 or HCA_LOCAL_WRITE. */
enum mr_verdict mr_local(struct hca *h, uint32_t pd, uint32_t lkey, uint64_t va,
			 uint64_t bytes, uint32_t need, uint64_t *addr);
/* Memory named by qp's peer; `need` is one of HCA_REMOTE_*. */
enum mr_verdict mr_remote(struct hca *h, const struct qp *qp, uint32_t rkey,
			  uint64_t va, uint64_t bytes, uint32_t need,
			  uint64_t *addr);
/* mr_lock, of the owner's threads. */
void mr_enter(struct hca *h) ACQUIRE(&h->shared->mr_lock);
void mr_leave(struct hca *h) RELEASE(&h->shared->mr_lock);
/* A free row with keys, and back; under mr_lock. */
struct mr *mr_row_take(struct hca *h);
void mr_row_give(struct hca *h, struct mr *mr);

/* What to bind to what. */
struct mw_bind {
	uint32_t window;    /* its lkey */
	uint32_t rkey;	    /* the new one: its lower 8 bits count */
	uint32_t region;    /* its lkey */
	uint32_t access;    /* HCA_REMOTE_*, HCA_ZERO_BASED */
	uint64_t va, bytes; /* inside the region; 0 bytes unbind type 1 */
};

/* mw.c.  An unbound window of type 1 or 2; NULL when the table is full. */
struct mr *mw_new(struct hca *h, uint32_t pd, uint32_t type);
void mw_free(struct hca *h, struct mr *w);
enum mr_verdict mw_bind(struct hca *h, const struct qp *qp,
			const struct mw_bind *b);
/* Take off their regions the windows that have been invalidated; mr_lock. */
void mw_settle(struct hca *h) REQUIRES(&h->shared->mr_lock);
/* By qp itself or by its peer, without a lock; only windows of type 2. */
enum mr_verdict mw_invalidate(struct hca *h, const struct qp *qp,
			      uint32_t rkey);

/*
 * Of a queue that others write, or replace, at any time: what says where its
 * slots are, each word read once.  wq_is_sound tells whether the copy may
 * be used; the queue itself may not.
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

/* wq.c.  Is it a queue inside the arena, whoever wrote it, with `extra` bytes
 * in each slot beside the request and its elements? */
bool wq_is_sound(const struct hca *h, const struct wq *q, uint32_t extra);
/* 0 or -ENOMEM. */
int wq_init(struct hca *h, struct wq *q, uint32_t depth, uint32_t max_sge,
	    uint32_t max_inline);
/* The same for UD, with a struct wq_to in each slot. */
int wq_init_ud(struct hca *h, struct wq *q, uint32_t depth, uint32_t max_sge,
	       uint32_t max_inline);
/* For receives that peers on this host fill, with WQE_EAGER_BYTES in each slot.
 */
int wq_init_recv(struct hca *h, struct wq *q, uint32_t depth, uint32_t max_sge);
static inline uint8_t *wq_eager_bytes(const struct wq *q, struct wqe *w)
{
	return (uint8_t *)w + q->stride - WQE_EAGER_BYTES;
}
/* The bytes of its slot that a message of so many touches. */
static inline uint32_t wq_used(const struct wq *q, uint32_t bytes)
{
	return q->stride - WQE_EAGER_BYTES +
	       (bytes <= WQE_EAGER_BYTES ? bytes : 0);
}
static inline struct wq_to *wq_to(const struct wq *q, struct wqe *w)
{
	return (struct wq_to *)(void *)((uint8_t *)w + q->stride -
					sizeof(struct wq_to));
}
void wq_fini(struct hca *h, struct wq *q);
/* The slot of a free-running index. */
struct wqe *wq_at(const struct hca *h, const struct wq *q, uint32_t index);
/* The slot to fill next, NULL when the queue is full; then wq_commit. */
struct wqe *wq_reserve(const struct hca *h, struct wq *q);
/* The one after `ahead` that are filled and not committed. */
struct wqe *wq_reserve_after(const struct hca *h, struct wq *q, uint32_t ahead);
static inline void wq_commit_all(struct wq *q, uint32_t count)
{
	shared_store(&q->head, shared_own(&q->head) + count);
}
static inline void wq_commit(struct wq *q)
{
	wq_commit_all(q, 1);
}
/* Of receives: what the program is told of this one, which peers that write the
 * slot do not change. */
static inline void wq_commit_recv(const struct hca *h, struct wq *q,
				  uint64_t wr_id)
{
	uint64_t *ids = (uint64_t *)arena_at(&h->arena, q->ids);

	if (ids)
		ids[shared_own(&q->head) & (q->size - 1)] = wr_id;
	wq_commit(q);
}

/* The key by which peers reach mr now; 0: a window that has none. */
static inline uint32_t mr_key(const struct hca *h, const struct mr *mr)
{
	uint32_t key = __atomic_load_n(&mr->rkey, __ATOMIC_RELAXED);

	if (mr->kind == MR_WINDOW_2 &&
	    __atomic_load_n(&h->peer_area->gone[mr - h->mrs],
			    __ATOMIC_RELAXED) == key)
		return 0;
	return key;
}

/* srq.c.  NULL: there is no memory, or HCA_MAX_SRQ of them. */
struct srq *srq_new(struct hca *h, uint32_t pd, uint32_t depth,
		    uint32_t max_sge, uint64_t user);
void srq_free(struct hca *h, struct srq *s);
/* -EINVAL when more than `depth` wait; -ENOMEM.  Caller keeps posters away. */
int srq_resize(struct hca *h, struct srq *s, uint32_t depth);
/* As wq_reserve: a slot is free as soon as a message has its receive. */
struct wqe *srq_reserve(const struct hca *h, struct srq *s);
/* The index of the one that is taken next. */
uint32_t srq_next(const struct srq *s);
/* Ask for one event below `limit`; true when it is owed at once. */
bool srq_arm(struct hca *h, struct srq *s, uint32_t limit);
/* Take the oldest receive: qp holds its copy; false when there is none.  low:
 * an event is owed. */
bool srq_take(struct hca *h, struct srq *s, struct qp *qp, bool *low);
/* Was an event owed?  It is the caller's now. */
bool srq_owed(struct srq *s);
/* Is there one to take?  Is none to be had just now, as it is resized? */
bool srq_has(const struct hca *h, const struct srq *s);
bool srq_is_shut(const struct hca *h, const struct srq *s);
/* The limit that is armed, or 0. */
uint32_t srq_limit(const struct srq *s);
/* Who worked for qp died: does it hold what it was about to take? */
void srq_settle(struct hca *h, struct srq *s, struct qp *qp);
/* A row of the table of QPs has a new one. */
void srq_forget(struct hca *h, uint32_t row);

/*
 * rq.c: receives on their way into messages, under the lane.  A message holds
 * one from its first packet on; a service that gives a message up (UC) leaves
 * it held, for the next.
 */
/*
 * The receive for the next message, held from now on; NULL: none is posted.
 * low: a limit event is owed to qp->srq's user.
 */
struct wqe *rq_take(struct hca *h, struct qp *qp, bool *low);
/* Is there one to take, or one that is held? */
bool rq_has(struct hca *h, const struct qp *qp);
/* The one that is held, or NULL. */
struct wqe *rq_held(struct hca *h, const struct qp *qp);
/* Its slot, or that of the next; and hold what stands there: srq.c's. */
struct wqe *rq_slot(const struct hca *h, const struct qp *qp);
void rq_hold(struct qp *qp);
/* Its message has ended: give it up, and fill wr_id and the queue of c. */
void rq_done(struct hca *h, struct qp *qp, struct cqe *c);
/*
 * The responder's lock, for peers on this host and for who keeps them away.
 * What one of them left half done when it died is put right first: its receive
 * completes once, by its completion or by the flush.  rq_settle does that
 * alone, and waits for nobody; false: somebody lives inside.
 */
bool rq_settle(struct hca *h, struct qp *qp);
/* False: somebody has it who does not let go soon. */
bool rq_enter(struct hca *h, struct qp *qp)
	TRY_ACQUIRE(true, &qp_target(qp)->lock);
/* The owner: also from a peer that was stopped amid copying (access.h). */
bool rq_enter_own(struct hca *h, struct qp *qp)
	TRY_ACQUIRE(true, &qp_target(qp)->lock);
void rq_leave(struct qp *qp) RELEASE(&qp_target(qp)->lock);
/* How many receives have been completed. */
static inline uint32_t rq_cursor(const struct qp *qp)
{
	return shared_load(&qp_target(qp)->done);
}
/*
 * For a peer, under that lock: leave c with the receive that is held, for the
 * owner to find, and then cq_announce.  `carry`: what goes with it, or NULL.
 */
void rq_complete(struct hca *h, struct qp *qp, const struct cqe *c,
		 const struct eager *eager);
/* Both.  CQ_NOTIFY, CQ_LATER: the owner is to be told so. */
enum cq_push rq_leave_done(struct hca *h, struct qp *qp, struct cq *cq,
			   const struct cqe *c, bool solicited,
			   const struct eager *eager);
/* No more fit until the owner has collected some; is there some? */
bool rq_is_full(const struct hca *h, const struct qp *qp);
bool rq_is_behind(const struct qp *qp);
/*
 * For each poll: without the line that peers write.  One that is just leaving
 * a completion, or died there, is behind and has not left it.
 */
bool rq_has_left(const struct hca *h, const struct qp *qp);
/*
 * The owner, under the lock of recv_cq: the oldest completion that was left
 * and not collected, in c.  There is one.
 */
void rq_collect(struct hca *h, struct qp *qp, struct cqe *c);
/* Nothing posted, held or left: RESET. */
void rq_reset(struct qp *qp);
/* The owner is done with the receive at the cursor, and has told of it. */
void rq_pass(struct qp *qp);

/*
 * eager.c: a message of few bytes may stay in the slot of its receive, in the
 * room that is there for that, until the owner collects the completion and puts
 * it where it belongs.  A peer that is to read or write that memory has it
 * collected before.
 */
/* For rq_complete: w, which is held, carries what `carry` says, or nothing.
 */
void eager_leave(struct hca *h, struct qp *qp, struct wqe *w,
		 const struct eager *eager);
/* Is there one that was not collected; and one that belongs there? */
bool eager_is_any(const struct hca *h, const struct qp *qp);
bool eager_is_in_way(const struct hca *h, const struct qp *qp,
		     const struct space_vec *vec, size_t n);
/* The owner, collecting w.  0 or -EFAULT. */
int eager_place(struct hca *h, const struct qp *qp, struct wqe *w);
/* The owner: collect all that is carried, before memory goes away to which it
 * may belong; under the ctx lock. */
void eager_settle(struct hca *h);

/* cq.c, see cq.h. */
/*
 * The owner, under qp's responder lock: a peer died in that, and may have left
 * something and not said so, or said that it would put qp on the list.
 */
void cq_settle(struct hca *h, struct cq *cq, struct qp *qp)
	REQUIRES(&qp_target(qp)->lock);

/*
 * notify.c: letters from peers on this host.  Post is true when the owner
 * sleeps and must be woken.  Take hands out a QP with the letters it had; NULL:
 * none.
 */
bool notify_post(struct hca *h, struct qp *qp, uint32_t bits);
static inline bool notify_pending(const struct hca *h)
{
	return shared_load(&h->peer_area->notify_pending);
}
struct qp *notify_take(struct hca *h, uint32_t *bits);

/*
 * peer_death.c: processes that worked here have died.  Puts right what they
 * left, and leaves to each QP the letters that may not have been sent; who
 * takes a letter looks whether it is true.  The owner, under its lane.  False:
 * somebody is inside who may be dead in a moment.
 */
bool peer_death_repair(struct hca *h);

/* qp.c: rings and attributes only; the engine adds the protocol. */
struct qp *qp_new(struct hca *h, uint32_t qpn, uint32_t type, uint32_t pd,
		  struct cq *send_cq, struct cq *recv_cq,
		  const struct hca_qp_cap *cap, bool sq_sig_all);
/* No peer finds it from here on. */
void qp_withdraw(struct hca *h, struct qp *qp);
void qp_free(struct hca *h, struct qp *qp); /* withdrawn, and no guest inside */
static inline aoff hca_off(const struct hca *h, const void *p)
{
	return p ? (aoff)((const uint8_t *)p - h->arena.base) : 0;
}

/*
 * qp_modify.c: check a modify call against the table of IBTA 11.2.5.2
 * (transitions, required and optional attributes, ranges) and, when it
 * stands, store the attributes.  The state itself is entered by the engine.
 * 0 or -EINVAL, with *why naming the attribute or transition.
 */
int qp_modify_check(const struct hca *h, const struct qp *qp,
		    const struct hca_qp_attr *attr, uint32_t mask,
		    const char **why);
void qp_modify_store(struct qp *qp, const struct hca_qp_attr *attr,
		     uint32_t mask);
const char *qp_state_name(uint32_t state);

#endif
