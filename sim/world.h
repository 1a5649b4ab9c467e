/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The simulated world: a virtual clock, hosts with plain memory, the frames
 * between them, and faults.  The seed decides everything.  There is one thread.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "engine/credit.h"
#include "engine/engine.h"
#include "hca/access.h"
#include "sim/memory.h"
#include "util/rng.h"

#define WORLD_HOSTS	5
#define WORLD_MEM	(12u << 20) /* bytes of application memory of a host */
#define WORLD_FRAME_MAX 4400	    /* bytes, headers and ICRC included */
#define WORLD_INBOX	64	    /* frames that a socket holds */
#define WORLD_TAPS	2	    /* CQs of a host */
#define WORLD_SOURCES	16	    /* open questions of a host about ports */
#define WORLD_INTRUDER	0x4242 /* source port of the user who forges frames */
#define WORLD_ASKS	64     /* open questions about peers */
#define WORLD_MS	1000000ull /* nanoseconds */

struct world;
struct flow;
struct pair;
struct subnet;

/* A frame in flight.  By LID: a packet that host to_host has sent, on its way
 * into the subnet, or a packet in the socket of host to_host. */
struct flight {
	uint64_t at_ns;		/* when the frame arrives */
	uint64_t order;		/* frames of one at_ns arrive in this order */
	struct inaddr from, to; /* not used by LID */
	/* The index of the receiving host or, by LID on the way into the
	 * subnet, of the sending host. */
	uint8_t to_host;
	uint8_t tos;	     /* IP's TOS */
	uint32_t starts;     /* by LID: host.starts when the packet was sent */
	uint32_t port;	     /* by LID: the number of the port of to_host */
	struct flight *next; /* by LID: in the subnet's list of lent packets */
	bool checksummed;    /* has a valid UDP checksum, which GRO requires */
	size_t len;	     /* bytes of `bytes` in use */
	uint8_t bytes[WORLD_FRAME_MAX];
};

/* A completion queue and how its program waits for completions.  by_event: the
 * program waits for events instead of polling; armed: an event was requested;
 * fired: an event has come, and the program polls. */
struct tap {
	struct cq *cq;
	uint32_t cqe; /* the size of cq */
	bool by_event, armed, fired;
};

/*
 * An adapter's process, from node_boot to node_kill.  Its arena stays as long
 * as queue pairs of other hosts refer to the process, as a mapped arena does.
 */
struct process {
	struct host *host;
	uint8_t *arena;	 /* owned */
	struct hca view; /* the adapter as other processes reach it */
	struct memory_elsewhere elsewhere;    /* the memory behind the view */
	struct access *accesses[WORLD_HOSTS]; /* the access slot of each host */
	uint32_t users; /* queue pairs of other hosts that refer to this process
			 */
	bool has_ended; /* node_kill was called */
};

/* A host, and the process that runs on it. */
struct host {
	struct memory memory; /* size: the bytes that node_alloc gave out */
	struct world *world;
	uint8_t index;	       /* in world.hosts */
	uint8_t *shadow;       /* the bytes that memory must have in the end */
	struct inaddr addr;    /* of every process of the host */
	bool dead;	       /* the host has no process */
	uint64_t skew_ns;      /* the host's clock minus the world's */
	uint64_t stalled_ns;   /* the process does not run until then */
	uint64_t unplugged_ns; /* the link drops every frame until then */
	uint64_t restart_ns;   /* dead: a new process starts then */
	uint64_t turned_ns;    /* node_now at the latest node_turn */
	uint32_t qpns;	       /* the next QPN */
	uint32_t starts;       /* processes so far */
	struct engine_without without; /* mechanisms that its processes lack */
	/* The members from here on belong to the present process. */
	struct process *process;
	uint64_t arena_used; /* bytes, before any object is made */
	struct hca hca;
	/* Why the host makes progress at once. */
	struct {
		bool by_peer; /* node_wake: an initiator set notify bits */
		/* a byte stream, or the subnet, takes bytes again */
		bool writable;
		/* changes at ports by LID, a set of enum data_change */
		uint32_t ports;
	} woken;
	struct credit_page page; /* ACKs in shared memory come here */
	struct engine *engine;	 /* NULL while the host is dead */
	struct tap taps[WORLD_TAPS];
	struct flight *inbox[WORLD_INBOX]; /* the socket; owned */
	uint32_t inbox_count;		   /* entries of inbox */
	/* The engine's questions about source ports, not answered yet. */
	struct engine_source sources[WORLD_SOURCES];
	uint32_t source_count; /* entries of sources */
};

/* The chance, in millionths, that each of these faults hits a frame. */
struct faults {
	uint32_t drop, duplicate, reorder, corrupt, truncate;
};

/* How brokers answer the engine's question whether a peer is alive. */
enum liveness {
	LIVENESS_PROMPT,  /* at once */
	LIVENESS_LATE,	  /* after up to 200 ms */
	LIVENESS_MUTE,	  /* never */
	LIVENESS_FOREIGN, /* at once, but always ENGINE_PEER_UNKNOWN */
};

/* A question of host `from` about the peer of its QP qpn. */
struct ask {
	uint64_t at_ns; /* when the question is answered */
	struct host *from;
	uint32_t qpn, connection; /* of the event */
};

/* Bytes that oracle_round does not compare. */
struct vague {
	struct host *host;
	uint32_t off, bytes; /* in the host's memory */
};

/* A list of such bytes. */
struct vagues {
	struct vague *list; /* owned */
	size_t count, room; /* entries in use, and allocated */
};

/* A heap of the frames that are under way, the first to arrive at its top. */
struct flights {
	struct flight **heap; /* owned, with its frames */
	size_t count, room;   /* entries in use, and allocated */
};

/* Times of a world's clock, in nanoseconds. */
struct schedule {
	uint64_t app_ns;      /* when the programs run next */
	uint64_t mischief_ns; /* when mischief_step is due */
	uint64_t quiet_ns;    /* from then on there are no faults */
	uint64_t deadline_ns; /* when every pair must be OVER */
};

/* The arrangement that the hosts of a world simulate. */
struct world_kind {
	bool direct; /* queue pairs may use src/direct: the hosts are processes
			of one machine */
	bool has_shm_ack; /* the hosts are processes of one machine, with ACKs
			     in shared memory */
	bool sources;	/* the hosts are processes of one machine, where another
			   user forges frames */
	bool is_mapped; /* direct: each process has mapped all memory */
	/* direct: all queue pairs are as those of one process, in which an
	 * initiator can execute every atomic */
	bool has_atomics;
	bool has_streams; /* all connections are iWARP's */
};

/* The capture of a world (sim/pcap.h). */
struct world_pcap {
	/* Takes the next bytes of the capture; NULL: there is no capture. */
	void (*write)(void *arg, const void *bytes, size_t n);
	void *arg;	      /* of `write` */
	uint32_t connections; /* byte streams' connections so far */
};

struct world {
	/* The clock; the order of the next frame; the hash of all that has
	 * happened. */
	uint64_t now_ns, order, hash;
	struct schedule due;
	struct rng rng;
	struct faults faults;	/* until due.quiet_ns */
	enum liveness liveness; /* of all brokers */
	bool strict;		/* engine_config.strict */
	struct world_kind kind;
	uint32_t host_count;
	struct host hosts[WORLD_HOSTS];
	struct flights flights;
	struct ask asks[WORLD_ASKS]; /* the questions that wait */
	uint32_t ask_count;	     /* entries of asks */
	struct pair *pairs;	     /* owned */
	struct flow *flows;	     /* two for each pair; owned */
	uint32_t pair_count, flow_count;
	struct vagues vagues;  /* of the latest oracle_round */
	struct subnet *subnet; /* connections are by LID; else NULL */
	/* turns_take; NULL: the hosts make progress one after the other. */
	void (*take_turns)(struct world *w, bool programs);
	/* take_lock of turns.c, set by turns_take; NULL: the lock is always
	 * free. */
	void (*take_lock)(struct world *w, struct host *h);
	struct world_pcap pcap;
	char failure[200]; /* the first failure; empty: none */
};

/* The path of most RC connections, or of all connections. */
enum world_path {
	WORLD_PACKETS,
	WORLD_DIRECT,  /* without packets (src/direct) */
	WORLD_TURNS,   /* direct, and hosts make progress at the same time */
	WORLD_STREAMS, /* byte streams (src/iwarp) */
	WORLD_SUBNET,  /* packets by LID, through an emulated subnet; in half of
			  the worlds direct */
};

/* Makes the world of a seed, whose links lose loss_percent of the frames or,
 * with WORLD_STREAMS, delay so many deliveries of bytes.  The caller passes *w
 * as zeroes, or as world_fini left the previous world; then the hosts' memory
 * is used again. */
void world_init(struct world *w, uint64_t seed, uint32_t loss_percent,
		enum world_path path);
/* Ends the hosts, and frees everything but their memory. */
void world_fini(struct world *w);
/* Frees the hosts' memory. */
void world_free(struct world *w);
/* Runs until every pair is OVER, a check fails, or the deadline has passed,
 * which is a failure; then makes the checks of the world's end. */
void world_run(struct world *w);
/* Notes a failure in w->failure; only the first failure is kept. */
void world_fail(struct world *w, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Adds data to the hash, which must be the same in each run of the seed. */
void world_hash(struct world *w, const void *data, size_t bytes);
/* Takes the progress lock of h, or of all hosts if h is NULL, for the programs:
 * waits until the hosts' turns are over. */
void world_take_lock(struct world *w, struct host *h);
/* Puts frame f in flight; the world owns f from here on. */
void world_fly(struct world *w, struct flight *f);
/* Answers e, an event ENGINE_ASK_PEER of the engine of h, as w->liveness says:
 * now, later or never.  A question that would be answered later is lost if
 * WORLD_ASKS are open. */
void world_ask(struct world *w, struct host *h, const struct engine_event *e);
/* Is the time of faults over? */
bool world_is_quiet(const struct world *w);

#endif
