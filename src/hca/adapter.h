/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One process's view of an adapter.  Rings and tables lie in an arena and name
 * each other by offset; struct hca_shared is the arena's root.  Each module of
 * this folder has its own header.  peer_area.h describes what processes of one
 * host share, and in which order they access it.
 *
 * Locks: the ctx lock covers creation and destruction of objects.  The progress
 * lock and the post locks cover the protocol state of QPs.  cq->lock covers a
 * CQ.  A lock of the front end covers the program's side of a work queue.
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

/* A hash of the sizes of structures in the arena.  A peer works in an arena
 * only if the hash of the owner's build equals the hash of the peer's build. */
#define HCA_SHAPE                                                              \
	((uint32_t)(sizeof(struct hca_shared) << 18 ^ sizeof(struct qp) << 6 ^ \
		    sizeof(struct cq) ^ sizeof(struct srq) << 12 ^             \
		    sizeof(struct qp_target) << 8))

/* At the arena's root, in the owner's part. */
struct hca_shared {
	uint32_t shape;	    /* HCA_SHAPE of the owner's build */
	uint32_t qp_top;    /* rows of qps that were ever used */
	uint32_t qp_lowest; /* qp_new takes no row before this one */
	aoff qps;	    /* aoff[HCA_MAX_QP] of struct qp; 0: a free row */
	aoff peer_area;	    /* struct hca_peer_area */
	aoff counters;	    /* struct engine_counters[HCA_MAX_DEVICES] */
	aoff suspects;	    /* struct engine_suspect[ENGINE_SUSPECTS] */
	uint64_t key_secret[2]; /* determines the permutation of keys (mr.c) */
	aoff mrs;		/* struct mr[HCA_MAX_MR] */
	/* mr_top: rows of mrs that were ever used.  mr_free_head, mr_free_tail:
	 * the first and the last row of the list of free rows; 0: none. */
	uint32_t mr_top, mr_free_head, mr_free_tail;
	/* The latest number of a PD and of a CQ, and the latest qp.serial. */
	uint32_t next_pd, next_cq, next_qp;
	struct alock mr_lock; /* covers changes of mrs; taken by mr_enter */
	/* The members from here on are for processes that map this arena
	 * (host/local_peer.h). */
	aoff accesses;	/* struct access[ACCESS_MAX] */
	aoff shares;	/* struct share[SHARE_MAX] */
	uint64_t owner; /* the owner's alock_owner */
	/* value: a random number.  va: the address of `value` in the owner's
	 * process.  A peer reads the owner's memory there.  If it finds
	 * `value`, the memory and the arena belong to the same process. */
	struct {
		uint64_t value, va;
	} nonce;
	/* The owner's process ID; 0: the owner does not share the arena. */
	uint32_t pid;
	shared_u32 share_version; /* changes with each change of shares */
	/* The index of each device's network interface, with COUNTERS_IWARP
	 * for an iWARP device; 0: there are no more devices. */
	uint32_t links[HCA_MAX_DEVICES];
	/* A robust mutex, which begins with the word that hca_is_alive
	 * reads. */
	union {
		shared_u32 word;
		uint64_t room[8];
	} pulse;
	/* The owner sleeps, so a peer that sets a notify bit writes the owner's
	 * eventfd. */
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
	struct rng rng;		     /* for keys; in the owner's view */
	uint32_t active_mtu;	     /* IBV_MTU_*: the limit of path_mtu */
	shared_u32 hints[HCA_HINTS]; /* rows where mr_find last found keys */
	/* The row where an initiator has last found a queue pair of this
	 * adapter (direct/target.c). */
	shared_u32 qp_row;
	/* In the arena, and only in the owner's view: a bit for each row of
	 * hca_shared.qps that qp_new has taken and qp_free has not freed yet.
	 * Under the progress lock. */
	uint64_t *rows_taken;
	/* How many PDs, CQs and SRQs there are; under the ctx lock. */
	uint32_t pds, cqs, srqs;
	struct list share_looks; /* struct share_look; under the ctx lock */
	struct count ahs;	 /* how many address handles there are */
};

/*
 * Makes an adapter in an arena that arena_init has formatted.  @space: the
 * application's memory, borrowed.  @seed: random bits, from which keys are
 * drawn; in a real process they come from a cryptographic generator.  Returns
 * 0, or -ENOMEM: the arena is too small.
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
 * Is the owner of this arena alive, and does it serve the arena?  A thread of
 * the owner holds a robust lock, whose word the kernel changes when the process
 * dies or executes another program (get_robust_list(2)).  So the check costs
 * one load.  False also before the owner is ready, and after it has closed the
 * device.
 */
static inline bool hca_is_alive(const struct hca *h)
{
	uint32_t word = shared_load(&h->shared->pulse.word);

	return word && !(word & 0x40000000u); /* FUTEX_OWNER_DIED */
}

/* Returns the offset of p, which lies in the arena; 0 for NULL. */
static inline aoff hca_off(const struct hca *h, const void *p)
{
	return p ? (aoff)((const uint8_t *)p - h->arena.base) : 0;
}

#endif
