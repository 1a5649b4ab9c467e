/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The adapter of this process: devices, arena, lane, sockets, threads.  The
 * faces (verbs, rdmacm, umad) stand on this header alone besides hca.
 *
 * One struct host a process, made by the first host_get and gone with the
 * last host_put.  Nothing runs before host_get.  A fork's child must not use
 * its parent's: host_is_ours tells.
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

/* What the face gets told: queue it, do not call back. */
struct host_sink {
	void (*event)(const struct engine_event *e); /* under lane's lock */
	/* by netif's thread, without a lock; NULL: nobody wants it */
	void (*port)(const struct device *dev, enum device_event what);
	/* All devices are lost, as the program has closed what they stand on:
	 * once, under lane's lock; NULL: the same. */
	void (*fatal)(void);
};

/* NULL and errno.  The first caller's sink is used. */
struct host *host_get(const struct host_sink *sink);
void host_put(struct host *h);
/* False in a forked child that inherited h. */
bool host_is_ours(const struct host *h);
struct hca *host_hca(struct host *h);
/* Creation and destruction of objects; outermost lock. */
void host_lock(struct host *h);
void host_unlock(struct host *h);

/*
 * A QP with the engine's side, a random QPN of this process's class and, at
 * first, its sockets.  NULL and errno.
 */
struct qp *host_qp_new(struct host *h, const struct device *dev, uint32_t type,
		       uint32_t pd, struct cq *send_cq, struct cq *recv_cq,
		       const struct hca_qp_cap *cap, bool sq_sig_all,
		       uint64_t user, struct ibt_qp **side);
/*
 * From its return on no peer of this host works at it.  Waits for those who do,
 * also if they are stopped, so not under a lock; then host_qp_free.
 */
void host_qp_withdraw(struct host *h, struct qp *qp);
void host_qp_free(struct host *h, struct qp *qp, struct ibt_qp *side);
/*
 * 0 or -errno with *why; resolves the source GID on `dev`.  -EBUSY: a peer of
 * this host is at work at it and has to leave; host_qp_wait, which waits a
 * little, and again.  To RESET no poller may be inside its completion queues.
 */
int host_qp_modify(struct host *h, const struct device *dev,
		   struct ibt_qp *side, const struct hca_qp_attr *attr,
		   uint32_t mask, const char **why);
void host_qp_wait(struct ibt_qp *side, struct alock_wait *wait);
/* Where a datagram along `ah` goes; 0 or -errno with *why. */
int host_path(struct host *h, const struct device *dev, const struct hca_ah *ah,
	      struct wq_to *to, const char **why);
/* Its UDP source port, once to->qpn is set too. */
void host_aim(struct host *h, struct wq_to *to);
/* Multicast: 0 or -errno with *why. */
int host_mcast_attach(struct host *h, const struct device *dev,
		      struct ibt_qp *side, const uint8_t gid[16],
		      const char **why);
int host_mcast_detach(struct host *h, struct ibt_qp *side,
		      const uint8_t gid[16], const char **why);
void host_qp_query(struct host *h, struct ibt_qp *side,
		   struct hca_qp_attr *attr);
/* Free a CQ that no QP uses. */
void host_cq_free(struct host *h, struct cq *cq);
/* srq_resize, while no message takes a receive. */
int host_srq_resize(struct host *h, struct srq *s, uint32_t depth);
/*
 * mr_file.c: memory is about to be registered: may peers of this host map it,
 * too?  The number that host_unshare takes after the region has gone, when no
 * guest works there any more; 0: they may not, and it takes that as well.
 */
uint32_t host_share(struct host *h, const void *addr, size_t bytes);
void host_unshare(struct host *h, uint32_t number);
/* No frame borrows, no placement is under way after this returns, and what
 * was posted before has been looked at. */
void host_quiesce(struct host *h);
/* The same for placement by peers of this host into what they may touch; and
 * what they have left with receives lies where it belongs. */
void host_await_accesses(struct host *h, access_set what);

/* Work of about `bytes`, headers included, was posted: send it from here if
 * the lane is free, or gather it. */
void host_doorbell(struct host *h, struct ibt_qp *side, uint64_t bytes);
/* Drive the lane if it is free; never waits.  For poll_cq; `empty` polls in a
 * row let it yield the core. */
void host_poll(struct host *h, uint32_t empty);
/* What came of the poll after host_poll. */
void host_polled(struct host *h, bool empty);
/* A CQ was armed: somebody must drive the lane while the program sleeps. */
void host_armed(struct host *h);
/* The program is about to look for an event: send what it left for its next
 * poll. */
void host_awaits(struct host *h);
/* What a program sleeps for. */
struct host_sleep {
	bool (*is_over)(void *arg); /* looked at when it is woken */
	void *arg;
};

/*
 * A program sleeps.  1: it is over.  0: it is to sleep without us, and then to
 * call host_slept, also if its thread is cancelled.  -EINTR.
 */
int host_sleep(struct host *h, const struct host_sleep *s);
void host_slept(void);
void host_wake(struct host *h);

#endif
