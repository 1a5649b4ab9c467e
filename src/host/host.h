/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The adapter of this process: devices, arena, progress, sockets, threads.  The
 * front ends (verbs, rdmacm, umad) use this header and those of hca.
 *
 * A process has one struct host, made by the first host_get and freed by the
 * last host_put.  No thread of the host runs before host_get.  The child of a
 * fork must not use its parent's struct host: host_is_ours returns false there.
 */
#ifndef HOST_HOST_H
#define HOST_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"
#include "engine/engine.h"
#include "hca/access.h"
#include "hca/hca.h"

/* The most multicast groups that a process may join by UDP.  There are so few
 * because Linux lets a socket join only 20 pairs of IPv4 group and interface.
 */
#define HOST_MAX_GROUPS 8
/* The most multicast groups that a process may join at the ports of an
 * InfiniBand device: IPoIB needs one for each group of IP. */
#define HOST_MAX_LID_GROUPS 64

struct host;
struct map;
struct stream_config; /* iwarp/stream.h */

/* Functions of the front end that the host calls to report events.  A function
 * queues the event, and calls no function of this header. */
struct host_sink {
	/* Reports an event of the engine; *e is valid during the call.  Called
	 * under the progress lock. */
	void (*event)(const struct engine_event *e);
	/* Reports a change of port `number` of dev.  Called by netif's thread,
	 * without a lock, or by the host_get that makes the host; may be
	 * NULL. */
	void (*port)(const struct device *dev, uint32_t number,
		     enum device_event what);
	/* Reports that all devices have failed, because the program has closed
	 * adverb's descriptors, or because the link to a fabric has ended.
	 * Called once, under the progress lock; may be NULL. */
	void (*fatal)(void);
};

/* Makes the host, or counts one more user of it.  The call that makes the host
 * copies *sink; later calls ignore it.  On failure returns NULL and sets errno:
 * ENOSYS: the kernel gives no random numbers; ENOMEM; or the error of
 * broker_link_socket, of fabric_link_open or of a system call. */
struct host *host_get(const struct host_sink *sink);
/* Ends one use of h; the last call frees h.  Does nothing in a forked child. */
void host_put(struct host *h);
/* Returns whether this process made h; false in a forked child that inherited
 * h. */
bool host_is_ours(const struct host *h);
/* Returns the adapter of h, which h owns. */
struct hca *host_hca(struct host *h);
/* Returns the map whose keys are the numbers of the protection domains that
 * exist.  The front end allocates the values by malloc(3).  The last host_put
 * frees the values that are left.  The front end uses the map under the ctx
 * lock. */
struct map *host_domains(struct host *h);
/* Takes the ctx lock, under which objects are created and destroyed.
 * verbs/object.h names the locks that a thread may already have then.  The
 * thread cannot be cancelled until host_unlock. */
void host_lock(struct host *h);
/* Releases the ctx lock. */
void host_unlock(struct host *h);

/*
 * Creates a QP with a random QPN of this process's class, and stores a pointer
 * to its protocol state in *side.  The caller frees both by host_qp_withdraw
 * and then host_qp_free.  type: HCA_QPT_*.  pd: the number of the protection
 * domain.  sq_sig_all: each send request has a completion.  user: the front
 * end's cookie, which events of the QP carry.  On failure returns NULL and sets
 * errno.  ENOMEM: there is no memory, no free QPN, or no room for another QP;
 * EIO: the link to the fabric has ended.
 */
struct qp *host_qp_new(struct host *h, const struct device *dev, uint32_t type,
		       uint32_t pd, struct cq *send_cq, struct cq *recv_cq,
		       const struct hca_qp_cap *cap, bool sq_sig_all,
		       uint64_t user, struct ibt_qp **side);
/*
 * Ends the access of this host's peers to the QP, and returns when no peer
 * works at the QP any more.  A stopped peer can make this function wait for
 * long, so the caller holds no lock.  The caller then calls host_qp_free.
 */
void host_qp_withdraw(struct host *h, struct qp *qp);
/* Frees a QP and its protocol state, after host_qp_withdraw.  Ends the QP's
 * connection, if the QP is of an iWARP device and has one. */
void host_qp_free(struct host *h, struct qp *qp, struct ibt_qp *side);
/*
 * Modifies a QP.  attr->ah.sgid_index is an index into the GID table of `dev`.
 * Returns 0, or -errno with a sentence in *why.  -EINVAL: the attributes or the
 * change of state are not allowed; -EBUSY: a peer of this host works at the QP;
 * -EIO: the link to the fabric has ended; -ENOMEM or another -errno: there is
 * no memory, or the progress thread cannot be started.  After -EBUSY the caller
 * calls host_qp_wait and then this function again, without HCA_QP_CUR_STATE if
 * the new state is RESET.  While a QP is modified to RESET, no thread may poll
 * its completion queues.
 */
int host_qp_modify(struct host *h, const struct device *dev,
		   struct ibt_qp *side, const struct hca_qp_attr *attr,
		   uint32_t mask, const char **why);
/* Waits a little for the peer that works at the QP.  *wait keeps the state of
 * the wait from call to call; the caller zeroes it before the first call.  The
 * caller holds no lock. */
void host_qp_wait(struct ibt_qp *side, struct alock_wait *wait);
/* Attaches the QP to the multicast group `gid`.  Returns 0, or -errno with a
 * sentence in *why (mcast_socket_attach).  -EINVAL: gid is no multicast GID, or
 * the QP is by LID and has no port; -ENOSPC: there are too many groups, members
 * or attachments; -ENOMEM; -EIO: the link to the fabric has ended; another
 * -errno: no interface can join the group. */
int host_mcast_attach(struct host *h, const struct device *dev,
		      struct ibt_qp *side, const uint8_t gid[16],
		      const char **why);
/* Detaches the QP from the multicast group `gid`.  Returns 0, or -EINVAL with a
 * sentence in *why: the QP is not attached to the group. */
int host_mcast_detach(struct host *h, struct ibt_qp *side,
		      const uint8_t gid[16], const char **why);
/* Fills *attr with the attributes that host_qp_modify has set, the current
 * state and the current PSNs. */
void host_qp_query(struct host *h, struct ibt_qp *side,
		   struct hca_qp_attr *attr);
/* The events of a QP's stream. */
enum host_stream_news {
	/* The peer's first FPDU has come, so the peer is in full operation. */
	HOST_STREAM_READY,
	/* The connection has ended, and the QP is in ERR.  No more events
	 * follow, though the socket may stay open for a while. */
	HOST_STREAM_ENDED,
};

/* How a TCP connection began, for a capture.  Times are those of
 * CLOCK_REALTIME in ns. */
struct host_stream_start {
	bool is_initiator; /* this side has sent the request of MPA */
	uint64_t begun_ns; /* when this side knew that TCP was connected */
	/* When the initiator had sent its request, or the responder had
	 * received it. */
	uint64_t request_ns;
	/* The frames of MPA.  At the initiator `sent` is the request, and `got`
	 * the reply.  At the responder `got` is the request, and sent_bytes is
	 * 0.  host_stream_open copies both. */
	const uint8_t *sent, *got;
	uint32_t sent_bytes, got_bytes; /* the lengths of `sent` and `got` */
};

/* A connection whose start-up (iwarp/startup.h) has succeeded: a TCP connection
 * or an SCTP association (wire/sctp.h), as *config says. */
struct host_stream {
	int fd; /* O_NONBLOCK and O_CLOEXEC */
	/* The result of the start-up.  host_stream_open copies it. */
	const struct stream_config *config;
	/* The peer's address, IPv4 as ::ffff:a.b.c.d, for messages to the
	 * user. */
	uint8_t peer[16];
	/* How the connection began, if the connection is one of TCP.  NULL: a
	 * capture has only the bytes from now on. */
	const struct host_stream_start *start;
	/* For an association: messages that the peer sent after its reply and
	 * that overtook the reply.  Over TCP: the bytes that came together with
	 * the reply.  Both in the form of `early` in struct startup
	 * (iwarp/startup.h).  host_stream_open reads them before it returns. */
	const uint8_t *early;
	uint32_t early_bytes; /* the length of `early`; 0: there is none */
	/* Bytes that this side sends before its first FPDU: the responder's
	 * reply.  host_stream_open copies them. */
	const uint8_t *first;
	/* The length of `first`; at most HOST_STREAM_FIRST. */
	uint32_t first_bytes;
	/* The connection ends unless the peer's first FPDU comes within this
	 * time; 0: no limit. */
	uint64_t ready_within_ns;
	/* For TCP, if ready_within_ns is 0: how long this side waits for the
	 * peer's first FPDU before it sends what was posted.  0: this side
	 * waits without limit. */
	uint64_t begin_after_ns;
	/* For the initiator, by TCP: as long as the peer has sent nothing, this
	 * side sends up to four WRITEs without bytes.  The wait before the
	 * first one is nudge_after_ns, and each further wait is twice as long
	 * as the previous one.  0: this side sends no such WRITE. */
	uint64_t nudge_after_ns;
	/* Reports an event.  Called by any thread, under the progress lock, so
	 * this function waits only for locks under which no other lock is
	 * taken, and calls no function of this header. */
	void (*news)(void *arg, enum host_stream_news what);
	/* The argument of `news`, by which host_stream_close and
	 * host_stream_abort also recognise the connection. */
	void *arg;
};

/* The most bytes of `first` in struct host_stream. */
#define HOST_STREAM_FIRST 1024

/*
 * Gives a connection to the QP `qpn` of an iWARP device, and moves the QP to
 * RTS.  0: the host owns s->fd.  -errno with a sentence in *why: the caller
 * keeps s->fd.  -ENOENT: there is no such QP; -EINVAL: the QP's device is not
 * an iWARP device, or *s->config is out of range; -EISCONN: the QP is not in
 * INIT or RTR, for example because it already had a connection; another -errno:
 * memory, descriptors or threads have run out, or the program has closed a
 * descriptor of the adapter.
 */
int host_stream_open(struct host *h, uint32_t qpn, const struct host_stream *s,
		     const char **why);
/* Ends the connection of the QP `qpn` in order: the QP sends what was posted,
 * then the socket sends FIN (SCTP: SHUTDOWN), and HOST_STREAM_ENDED is reported
 * at the end.
 * Does nothing if the connection was opened with another `arg`, since the QPN
 * may belong to another QP by now. */
void host_stream_close(struct host *h, uint32_t qpn, const void *arg);
/* Ends the connection of the QP `qpn` at once, if it was opened with this
 * `arg`: the QP enters ERR.  After the return no event of the connection is
 * reported.  (host_qp_free also ends a QP's connection, but reports
 * HOST_STREAM_ENDED.) */
void host_stream_abort(struct host *h, uint32_t qpn, const void *arg);

/* Handles the packets that have arrived for any QP, and sends their responses
 * (progress_catch_up).  Returns whether completions of the QP with this QPN
 * wait to be polled; false for a QP in ERR (engine_qp_has_comps). */
bool host_catch_up(struct host *h, uint32_t qpn);
/* Frees a CQ that no QP uses. */
void host_cq_free(struct host *h, struct cq *cq);
/* Changes the depth of an SRQ to `depth` receives, under the progress lock.
 * The caller keeps threads from posting to the SRQ meanwhile.  Returns 0;
 * -EINVAL: more receives are posted; -ENOMEM. */
int host_srq_resize(struct host *h, struct srq *s, uint32_t depth);
/*
 * Called before memory is registered: lets peers of this host map the memory,
 * if it is a shared mapping of a file.  Returns a number, which the caller
 * passes to host_unshare once the region is deregistered and no peer works in
 * its memory any more.  0: peers may not map the memory, and host_unshare(h, 0)
 * does nothing.
 */
uint32_t host_share(struct host *h, const void *addr, size_t bytes);
/* Ends the sharing for which host_share returned `number`. */
void host_unshare(struct host *h, uint32_t number);
/* Serves all doorbells under the progress lock.  After the return the engine
 * knows all requests that were posted before the call, and each copy of payload
 * that progress had begun before the call has ended. */
void host_quiesce(struct host *h);
/* Returns when no peer of this host copies by the keys in `what` or works at
 * the QP in `what`.  Moves all eager messages into the memory of their
 * receives. */
void host_await_accesses(struct host *h, access_set what);

/* Called after work of about `bytes` bytes, headers included, was posted to the
 * QP: executes or sends the work, or lets it wait for more work (host/post.h).
 */
void host_doorbell(struct host *h, struct ibt_qp *side, uint64_t bytes);
/* Counts the polls of one object; initially all zero.  If several threads poll
 * the object at once, some polls may not be counted. */
struct host_polls {
	shared_u32 empty;   /* polls in a row that found nothing */
	shared_u32 skipped; /* polls in a row that made no progress */
	/* Empty polls between two yields of the core; 0: no poll has yielded
	 * yet. */
	shared_u32 yield_every;
	/* In the last yield another thread ran for a moment. */
	shared_flag is_after;
};

/* Called before a thread looks for completions in cq: executes requests that
 * wait for more requests to be posted (post_gather.h). */
void host_before_poll(struct host *h, const struct cq *cq);
/* Called by a poll that found nothing yet.  Ends the wait of a QP for a receive
 * of its peer, if the QP has the same post lock as the QPs that complete into
 * cq (post_resume); cq NULL: ends none.  If no such wait has ended, makes
 * progress if the progress lock is free.  While all traffic goes through
 * arenas, most calls skip progress.  Yields the processor after many polls in a
 * row that found nothing; while the peer probably runs on this processor, after
 * each such poll or after 16 of them.  After many polls in a row that found the
 * lock held, waits for the lock.  *polls: the counts of the polled object. */
void host_poll(struct host *h, const struct cq *cq, struct host_polls *polls);
/* Called after each poll.  @empty: the poll found no completion.  Counts the
 * poll in *polls, and wakes the progress thread if that thread has to serve a
 * notify bit of this process. */
void host_polled(struct host *h, struct host_polls *polls, bool empty);
/* Called after a CQ was armed: from here on the progress thread makes progress
 * while the program sleeps. */
void host_armed(struct host *h);
/* Called before the program waits for an event: sends requests that wait for
 * the program's next poll. */
void host_awaits(struct host *h);
/* The condition for which a thread of the program sleeps. */
struct host_sleep {
	/* Called before each wait, with and without the progress lock. */
	bool (*is_over)(void *arg);
	void *arg; /* the argument of is_over */
};

/*
 * Sleeps until s->is_over returns true; the calling thread may be the leader
 * meanwhile (leader.h).  1: s->is_over has returned true.  0: the caller has to
 * sleep by itself and then to call host_slept, also if its thread is cancelled.
 * -EINTR: a signal ended the sleep.
 */
int host_sleep(struct host *h, const struct host_sleep *s);
/* Ends a sleep for which host_sleep returned 0. */
void host_slept(void);
/* Wakes the thread that waits for work. */
void host_wake(struct host *h);

#endif
