/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The simulated world: a virtual clock, hosts with plain memory, and the
 * frames between them.  Everything follows from the seed.  One thread.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "engine/engine.h"
#include "util/rng.h"

#define WORLD_HOSTS	2
#define WORLD_MEM	(10u << 20) /* bytes of application memory a host */
#define WORLD_FRAME_MAX 4400	    /* bytes, headers and ICRC included */

struct world;
struct flow;

struct host {
	struct space space; /* first: the callbacks get this */
	uint8_t *mem;	    /* WORLD_MEM bytes, called va + offset */
	uint8_t *shadow;    /* what mem must be in the end */
	uint8_t *vague;	    /* 1: a failed request may have written it */
	uint64_t va;
	uint32_t brk; /* first byte not handed out */
	uint8_t *arena;
	struct hca hca;
	struct engine *engine;
	struct inaddr addr;
};

/* A frame in flight. */
struct flight {
	uint64_t at_ns, order; /* order breaks ties */
	struct inaddr from, to;
	uint8_t to_host, tos;
	bool checksummed;
	size_t len;
	uint8_t bytes[WORLD_FRAME_MAX];
};

/* Chances in millionths a frame. */
struct faults {
	uint32_t drop, duplicate, reorder, corrupt, truncate;
};

struct world {
	uint64_t now_ns, order, hash;
	uint64_t app_ns;      /* the programs run next */
	uint64_t quiet_ns;    /* no faults from here on */
	uint64_t deadline_ns; /* everything must be over */
	uint64_t cut_ns;      /* the round ends here, whatever is under way */
	uint32_t round;
	struct rng rng;
	struct faults faults;
	bool verbose;
	struct host hosts[WORLD_HOSTS];
	struct flight **heap;
	size_t flying, room;
	struct flow *flows;
	uint32_t flow_count;
	char failure[200]; /* the first one; empty while all is well */
};

void world_init(struct world *w, uint64_t seed, uint32_t loss_percent);
void world_fini(struct world *w);
/* Run until the workload is over, something fails, or the deadline. */
void world_run(struct world *w);
/* Note a failure; the first one counts. */
void world_fail(struct world *w, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void world_hash(struct world *w, const void *data, size_t bytes);
/* Put a frame into the air; f is owned by the world from here on. */
void world_fly(struct world *w, struct flight *f);
/* Hand out application memory, behind a guard nothing may write to. */
uint32_t world_alloc(struct host *h, uint32_t bytes);

#endif
