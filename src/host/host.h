/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The adapter of this process: devices, arena, progress, sockets, threads.  The
 * front ends (verbs, rdmacm, umad) use this header, and hca's.
 *
 * A process has one struct host, made by the first host_get and freed by the
 * last host_put.  No thread runs before host_get.  The child of a fork must not
 * use its parent's struct host: host_is_ours tells the two apart.
 */
#ifndef HOST_HOST_H
#define HOST_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"
#include "engine/engine.h"
#include "hca/access.h"
#include "hca/hca.h"

#define HOST_MAX_GROUPS 8 /* multicast */

struct host;
struct stream_config; /* iwarp/stream.h */

/* Calls to the front end, which queues what it is told and calls nothing of
 * this header. */
struct host_sink {
	/* Under the progress lock. */
	void (*event)(const struct engine_event *e);
	/* By netif's thread, without a lock; may be NULL. */
	void (*port)(const struct device *dev, enum device_event what);
	/* All devices have failed, since the program has closed adverb's
	 * descriptors.  Called once, under the progress lock; may be NULL. */
	void (*fatal)(void);
};

/* Makes the host, or counts one more user; the first caller's sink is used.
 * On failure returns NULL and sets errno. */
struct host *host_get(const struct host_sink *sink);
/* Ends one use of h; the last call frees h.  Does nothing in a forked child. */
void host_put(struct host *h);
/* False in a forked child that inherited h. */
bool host_is_ours(const struct host *h);
/* Returns the adapter of h, which h owns. */
struct hca *host_hca(struct host *h);
/* Takes the ctx lock, the outermost lock: for creation and destruction of
 * objects.  The thread cannot be cancelled until host_unlock. */
void host_lock(struct host *h);
/* Gives the ctx lock. */
void host_unlock(struct host *h);

/*
 * Creates a QP with its protocol state in *side, and a random QPN of this
 * process's class.  The first QP of a process opens its sockets.  NULL and
 * errno.
 */
struct qp *host_qp_new(struct host *h, const struct device *dev, uint32_t type,
		       uint32_t pd, struct cq *send_cq, struct cq *recv_cq,
		       const struct hca_qp_cap *cap, bool sq_sig_all,
		       uint64_t user, struct ibt_qp **side);
/*
 * After the return no peer of this host works at the QP.  Waits for peers that
 * do, also for a stopped peer, so the caller holds no lock.  The caller then
 * calls host_qp_free.
 */
void host_qp_withdraw(struct host *h, struct qp *qp);
/* Frees a QP after host_qp_withdraw, and its protocol state. */
void host_qp_free(struct host *h, struct qp *qp, struct ibt_qp *side);
/*
 * Modifies a QP, whose source GID is looked up on `dev`.  0, or -errno with
 * *why.  -EBUSY: a peer of this host works at the QP; the caller calls
 * host_qp_wait, which waits a little, and tries again.  On the way to RESET no
 * thread may poll the QP's completion queues.
 */
int host_qp_modify(struct host *h, const struct device *dev,
		   struct ibt_qp *side, const struct hca_qp_attr *attr,
		   uint32_t mask, const char **why);
/* Waits a little for the peer that works at the QP; *wait is the state of the
 * wait, over all calls.  The caller holds no lock. */
void host_qp_wait(struct ibt_qp *side, struct alock_wait *wait);
/* Fills *to with where a datagram along `ah` goes.  0 or -errno with *why. */
int host_path(struct host *h, const struct device *dev, const struct hca_ah *ah,
	      struct wq_to *to, const char **why);
/* Sets to->port, the UDP source port, once to->qpn is set. */
void host_aim(struct host *h, struct wq_to *to);
/* Attaches the QP to a multicast group.  0 or -errno with *why. */
int host_mcast_attach(struct host *h, const struct device *dev,
		      struct ibt_qp *side, const uint8_t gid[16],
		      const char **why);
/* Detaches the QP from a multicast group.  0 or -errno with *why. */
int host_mcast_detach(struct host *h, struct ibt_qp *side,
		      const uint8_t gid[16], const char **why);
/* Fills *attr with the attributes that host_qp_modify set, and the current
 * PSNs. */
void host_qp_query(struct host *h, struct ibt_qp *side,
		   struct hca_qp_attr *attr);
/* The events of a QP's stream. */
enum host_stream_news {
	/* The peer's first FPDU has come: it is in full operation. */
	HOST_STREAM_READY,
	/* The connection is closed, and the QP is in ERR.  Nothing follows. */
	HOST_STREAM_ENDED,
};

/* A TCP connection whose start-up (iwarp/startup.h) has succeeded. */
struct host_stream {
	int fd; /* O_NONBLOCK and O_CLOEXEC */
	const struct stream_config *config;
	/* Bytes that precede the first FPDU of this side: the responder's
	 * reply.  Copied; at most HOST_STREAM_FIRST. */
	const uint8_t *first;
	uint32_t first_bytes;
	/* If the peer's first FPDU has not come within that time, the
	 * connection ends; 0: the peer may take its time. */
	uint64_t ready_within_ns;
	/* Called under the progress lock, by any thread; it may take leaf locks
	 * alone, and calls nothing of this header. */
	void (*news)(void *arg, enum host_stream_news what);
	void *arg;
};

#define HOST_STREAM_FIRST 1024

/*
 * Gives a connection to the QP `qpn` of an iWARP device, which enters RTS.  0:
 * the host owns s->fd.  -errno with *why: the caller keeps s->fd.  -ENOENT:
 * there is no such QP; -EISCONN: the QP has or had a connection.
 */
int host_stream_open(struct host *h, uint32_t qpn, const struct host_stream *s,
		     const char **why);
/* Ends the connection in order: what was posted is sent, then FIN; the news
 * HOST_STREAM_ENDED follows.  Does nothing if the QP has no connection that was
 * given with this `arg`: the number may be another QP's by now. */
void host_stream_close(struct host *h, uint32_t qpn, const void *arg);
/* Ends the QP's connection of this `arg` at once, if there is one: the QP
 * enters ERR.  No news follow after the return.  host_qp_free ends it too, with
 * the news HOST_STREAM_ENDED. */
void host_stream_abort(struct host *h, uint32_t qpn, const void *arg);

/* Frees a CQ that no QP uses. */
void host_cq_free(struct host *h, struct cq *cq);
/* Resizes an SRQ (srq_resize) under the progress lock.  0 or -errno. */
int host_srq_resize(struct host *h, struct srq *s, uint32_t depth);
/*
 * Memory is about to be registered: lets peers of this host map it, if it is a
 * shared mapping of a file.  Returns a number for host_unshare, which is called
 * after the region is gone and no peer works there any more; 0: peers may not
 * map the memory, and host_unshare does nothing.
 */
uint32_t host_share(struct host *h, const void *addr, size_t bytes);
/* Ends what host_share began. */
void host_unshare(struct host *h, uint32_t number);
/* After the return no payload is being copied by progress, and requests that
 * were posted before have been looked at. */
void host_quiesce(struct host *h);
/* After the return no peer of this host copies to or from what the set names,
 * and eager messages lie where they belong. */
void host_await_accesses(struct host *h, access_set what);

/* Work of about `bytes`, headers included, was posted: sends it if the progress
 * lock is free, or gathers it. */
void host_doorbell(struct host *h, struct ibt_qp *side, uint64_t bytes);
/* The polls of one object; initially all zero.  Threads that poll the object at
 * once may lose counts. */
struct host_polls {
	shared_u32 empty;   /* polls in a row that found nothing */
	shared_u32 skipped; /* polls in a row that made no progress */
};

/* A thread is about to look for completions in cq: executes the requests that
 * wait for more to be posted (post_gather.h). */
void host_before_poll(struct host *h, const struct cq *cq);
/* A poll makes progress if the lock is free, and never waits.  After many polls
 * that found nothing it yields the processor. */
void host_poll(struct host *h, struct host_polls *polls);
/* Called after host_poll; @empty: the poll found no completion. */
void host_polled(struct host *h, bool empty);
/* A CQ was armed: the progress thread makes progress while the program
 * sleeps. */
void host_armed(struct host *h);
/* The program is about to wait for an event: sends what was gathered for its
 * next poll. */
void host_awaits(struct host *h);
/* The condition for which a thread of the program sleeps. */
struct host_sleep {
	bool (*is_over)(void *arg); /* asked after each wake-up */
	void *arg;
};

/*
 * A thread of the program sleeps until s is over, and may lead meanwhile
 * (leader.h).  1: s is over.  0: the caller sleeps by itself, and then calls
 * host_slept, also if its thread is cancelled.  -EINTR: a signal ended the
 * sleep.
 */
int host_sleep(struct host *h, const struct host_sleep *s);
/* Ends a sleep for which host_sleep returned 0. */
void host_slept(void);
/* Wakes the thread that waits for work. */
void host_wake(struct host *h);

#endif
