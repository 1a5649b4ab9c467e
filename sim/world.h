/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The simulated world: a virtual clock, hosts with plain memory, the frames
 * between them, and what goes wrong.  Everything follows from the seed.  One
 * thread.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "engine/credit.h"
#include "engine/engine.h"
#include "hca/access.h"
#include "sim/memory.h"
#include "util/rng.h"

#define WORLD_HOSTS	5
#define WORLD_MEM	(12u << 20) /* bytes of application memory a host */
#define WORLD_FRAME_MAX 4400	    /* bytes, headers and ICRC included */
#define WORLD_INBOX	64	    /* frames that a socket holds */
#define WORLD_TAPS	2
#define WORLD_SOURCES	16
#define WORLD_INTRUDER	0x4242 /* the port of one who forges frames */
#define WORLD_ASKS	64
#define WORLD_MS	1000000ull

struct world;
struct flow;
struct pair;

/* A frame in flight. */
struct flight {
	uint64_t at_ns, order; /* order breaks ties */
	struct inaddr from, to;
	uint8_t to_host, tos;
	bool checksummed;
	size_t len;
	uint8_t bytes[WORLD_FRAME_MAX];
};

/* A completion queue and how its program waits for it. */
struct tap {
	struct cq *cq;
	uint32_t cqe;
	bool by_event, armed, fired;
};

/*
 * An adapter's process, from node_boot to node_kill.  Its arena outlives it
 * until no queue pair of another host refers to it, as a mapping of it does.
 */
struct process {
	struct host *host;
	uint8_t *arena;
	struct hca view; /* the adapter as other processes reach it */
	struct memory_elsewhere elsewhere;    /* the memory behind the view */
	struct access *accesses[WORLD_HOSTS]; /* each other host's slot */
	uint32_t users; /* queue pairs of other hosts that refer to it */
	bool has_ended;
};

struct host {
	struct memory memory; /* of WORLD_MEM bytes; up to what is handed out */
	struct world *world;
	uint8_t index;
	uint8_t *shadow; /* what they must be in the end */
	struct inaddr addr;
	bool dead;
	uint64_t skew_ns;      /* its clock is ahead of the world's */
	uint64_t stalled_ns;   /* its process stands still until then */
	uint64_t unplugged_ns; /* no frame gets in or out until then */
	uint64_t reborn_ns;    /* dead until then */
	uint64_t turned_ns;    /* its clock when its loop last turned */
	uint32_t qpns, lives;  /* handed out so far */
	/* Of this life: */
	struct process *process;
	uint64_t arena_used; /* before any object */
	struct hca hca;
	bool is_kicked; /* an initiator has set notify bits */
	struct credit_page page;
	struct engine *engine;
	struct tap taps[WORLD_TAPS];
	struct flight *inbox[WORLD_INBOX];
	uint32_t inbox_count;
	/* Ports of other hosts that the engine asked about, yet to be told. */
	struct engine_source sources[WORLD_SOURCES];
	uint32_t source_count;
};

/* Chances in millionths a frame. */
struct faults {
	uint32_t drop, duplicate, reorder, corrupt, truncate;
};

/* What the engine hears when it asks whether a peer lives. */
enum liveness {
	LIVENESS_PROMPT,
	LIVENESS_LATE,
	LIVENESS_MUTE,
	LIVENESS_FOREIGN
};

struct ask {
	uint64_t at_ns;
	struct host *from;
	uint32_t qpn;
};

/* Bytes of which nothing is known until the round's end. */
struct vague {
	struct host *host;
	uint32_t off, bytes;
};

struct world {
	uint64_t now_ns, order, hash;
	uint64_t app_ns;      /* the programs run next */
	uint64_t mischief_ns; /* the next disturbance */
	uint64_t quiet_ns;    /* no faults from here on */
	uint64_t deadline_ns; /* everything must be over */
	struct rng rng;
	struct faults faults;
	enum liveness liveness;
	bool strict;
	bool direct;	  /* the hosts are processes of one host */
	bool boards;	  /* so they are, and read each other's board.h */
	bool sources;	  /* so they are, beside an intruder of another user */
	bool is_mapped;	  /* they have all memory mapped */
	bool has_atomics; /* ... that can do them in each other's memory */
	uint32_t host_count;
	struct host hosts[WORLD_HOSTS];
	struct flight **heap;
	size_t flying, room;
	struct ask asks[WORLD_ASKS];
	uint32_t ask_count;
	struct pair *pairs;
	struct flow *flows; /* two a pair */
	uint32_t pair_count, flow_count;
	struct vague *vague;
	size_t vague_count, vague_room;
	/* turns.h, or NULL: one host after the other, and nobody waits. */
	void (*take_turns)(struct world *w, bool programs);
	void (*take_lane)(struct world *w, struct host *h);
	char failure[200]; /* the first one; empty while all is well */
};

/* How most RC connections go: also without packets; and hosts work at once. */
enum world_way { WORLD_PACKETS, WORLD_DIRECT, WORLD_TURNS };

/* w is zero, or has been through world_fini: memory is used again. */
void world_init(struct world *w, uint64_t seed, uint32_t loss_percent,
		enum world_way way);
void world_fini(struct world *w);
void world_free(struct world *w);
/* Run until the workload is over, something fails, or the deadline. */
void world_run(struct world *w);
/* Note a failure; the first one counts. */
void world_fail(struct world *w, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void world_hash(struct world *w, const void *data, size_t bytes);
/* The programs work at the engine of h, or of all if NULL, from here on. */
void world_take_lane(struct world *w, struct host *h);
/* Put a frame into the air; f is owned by the world from here on. */
void world_fly(struct world *w, struct flight *f);
/* The engine of h wants to know about qpn's peer. */
void world_ask(struct world *w, struct host *h, uint32_t qpn);
bool world_is_quiet(const struct world *w);

#endif
