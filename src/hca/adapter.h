/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One process's view of an adapter.  Rings and tables lie in an arena and name
 * each other by offset; struct hca_shared is the arena's root.  Each module of
 * this folder has a header of its own: mr, mw, wq, srq, qp, rq, cq; what
 * processes of one host share, and in which order, is in peer_area.h.
 *
 * Locks: creation and destruction under the adapter's ctx lock; a QP's protocol
 * state under the progress lock; a CQ under cq->lock; the program's side of a
 * work queue under a lock of the front end.
 */
#ifndef HCA_ADAPTER_H
#define HCA_ADAPTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hca/arena.h"
#include "hca/types.h"
#include "util/count.h"
#include "util/list.h"
#include "util/lock.h"
#include "util/rng.h"
#include "util/shared.h"

struct hca_peer_area;
struct mr;
struct space;

/* A peer works in an arena only if its build has structures of one shape with
 * the owner's. */
#define HCA_SHAPE                                                              \
	((uint32_t)(sizeof(struct hca_shared) << 18 ^ sizeof(struct qp) << 6 ^ \
		    sizeof(struct cq) ^ sizeof(struct srq) << 12 ^             \
		    sizeof(struct qp_target) << 8))

/* At the arena's root, in the owner's part. */
struct hca_shared {
	uint32_t shape;	    /* HCA_SHAPE of the owner's build */
	uint32_t qp_top;    /* rows of qps that were ever used */
	uint32_t qp_lowest; /* no row before this one is free */
	aoff qps;	    /* aoff[HCA_MAX_QP] of struct qp; 0: a free row */
	aoff peer_area;	    /* struct hca_peer_area */
	aoff counters;	    /* struct engine_counters[HCA_MAX_DEVICES] */
	aoff suspects;	    /* struct engine_suspect[ENGINE_SUSPECTS] */
	uint64_t key_secret[2]; /* the secret from which keys are drawn */
	aoff mrs;		/* struct mr[HCA_MAX_MR] */
	uint32_t mr_top, mr_free_head, mr_free_tail;
	uint32_t next_pd, next_cq, next_qp;
	struct alock mr_lock;
	/* The members from here on are for processes that map this arena
	 * (host/local_peer.h). */
	aoff accesses;	/* struct access[ACCESS_MAX] */
	aoff shares;	/* struct share[SHARE_MAX] */
	uint64_t owner; /* the owner's alock_owner */
	/* A random number, and its copy's address in the owner's memory. */
	struct {
		uint64_t value, va;
	} nonce;
	uint32_t pid;
	shared_u32 share_version;
	/* The network interface of each device, with COUNTERS_IWARP; 0: there
	 * are no more. */
	uint32_t links[HCA_MAX_DEVICES];
	/* Begins with the word that hca_is_alive reads. */
	union {
		shared_u32 word;
		uint64_t room[8];
	} pulse;
	/* The owner sleeps: a peer that sets a notify bit writes its eventfd.
	 */
	shared_flag is_asleep;
};

#define HCA_HINTS 16

/* A process's view of its own arena, or of another process's. */
struct hca {
	struct arena arena;
	struct hca_shared *shared;	 /* in the arena */
	struct mr *mrs;			 /* in the arena */
	struct hca_peer_area *peer_area; /* in the arena */
	struct space *space;	     /* the application's memory; borrowed */
	struct rng rng;		     /* seeded by hca_init's caller */
	uint32_t active_mtu;	     /* IBV_MTU_*: the limit of path_mtu */
	shared_u32 hints[HCA_HINTS]; /* rows where mr_find found keys lately */
	/* How many objects there are; under the ctx lock. */
	uint32_t pds, cqs, srqs;
	struct list share_looks; /* struct share_look; under the ctx lock */
	struct count ahs;	 /* how many address handles there are */
};

/*
 * Formats the arena and makes an adapter in it.  @seed comes from a
 * cryptographic generator in real processes, since keys are drawn from it.  0
 * or -ENOMEM.
 */
int hca_init(struct hca *h, struct arena arena, struct space *space,
	     uint64_t seed[4]);

/* Counts one more protection domain, and returns a new number for it; 0: there
 * are HCA_MAX_PD.  Under the ctx lock. */
uint32_t hca_pd_new(struct hca *h);
/* Counts one protection domain less.  Under the ctx lock. */
void hca_pd_free(struct hca *h);

/* Counts one more address handle; false: there are HCA_MAX_AH.  Takes no
 * lock. */
static inline bool hca_ah_new(struct hca *h)
{
	return count_up_to(&h->ahs, HCA_MAX_AH);
}

/* Counts one address handle less.  Takes no lock. */
static inline void hca_ah_free(struct hca *h)
{
	count_down(&h->ahs);
}

/*
 * Does the owner of this arena live and serve it?  A thread of the owner holds
 * a robust lock with this word: the kernel changes the word when the process
 * dies or executes another program (get_robust_list(2)), so the check costs one
 * load.  False also before the owner is ready and after it has closed the
 * device.
 */
static inline bool hca_is_alive(const struct hca *h)
{
	uint32_t word = shared_load(&h->shared->pulse.word);

	return word && !(word & 0x40000000u); /* FUTEX_OWNER_DIED */
}

/* The offset of p, which lies in the arena; 0 for NULL. */
static inline aoff hca_off(const struct hca *h, const void *p)
{
	return p ? (aoff)((const uint8_t *)p - h->arena.base) : 0;
}

#endif
