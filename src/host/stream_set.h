/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The TCP connections of the queue pairs of iWARP devices: moves bytes between
 * the sockets and the engine (engine.h: engine_stream_*).
 *
 *	stream_set_open     rdma_cm gives a connection to a queue pair
 *	stream_set_receive  sockets -> engine
 *	stream_set_send     engine -> sockets
 *
 * Few sockets are read in turn; of many, an epoll set names those that have
 * bytes.  The thread that waits for work waits on the epoll set.  What a full
 * socket does not take stays here, and the engine makes no more bytes for its
 * queue pair until the socket has taken them: so a slow peer fills the send
 * queue, and no memory.
 *
 * A connection whose QP is done with it lingers until all bytes are sent and
 * the peer has closed: requests have completed whose bytes are still here, and
 * a socket that is closed with unread bytes sends RST, which would destroy what
 * is on its way.
 *
 * Owner: struct progress; lock: the progress lock.
 */
#ifndef HOST_STREAM_SET_H
#define HOST_STREAM_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"
#include "host/host.h"
#include "util/list.h"
#include "util/map.h"
#include "util/shared.h"

struct stream_socket;

struct stream_set {
	struct list open; /* struct stream_socket; the next to read first */
	struct list lingering; /* struct stream_socket without a QP */
	struct map by_qpn;     /* those of `open` */
	uint32_t full;	       /* sockets that have not taken all bytes */
	/* The epoll set's descriptor + 1, 0: there is none yet.  The thread
	 * that waits reads this without the lock. */
	shared_u32 waits_on;
	uint64_t checked_ns; /* when the descriptor was known to be ours */
	uint64_t due_ns;     /* the earliest deadline of a socket */
	uint8_t *rx, *tx;    /* STREAM_SET_BYTES each; owned */
	struct stream_socket *got; /* whose bytes lie in rx, or NULL */
	int64_t got_result;	   /* of tcp_receive for `got` */
	bool has_more; /* the last look left bytes in a socket, probably */
};

#define STREAM_SET_BYTES (256u << 10)

/* Makes an empty set, which needs no descriptor and no memory. */
void stream_set_init(struct stream_set *set);
/* Sends what full sockets have not taken, as long as that takes a peer that
 * reads, and two seconds at most: the process or the set is about to end. */
void stream_set_drain(struct stream_set *set);
/* Closes all connections at once, without news, and frees the set. */
void stream_set_fini(struct stream_set *set);
/* Begins with a connection of q, which is about to enter RTS.  0; or -errno:
 * the caller keeps s->fd. */
int stream_set_open(struct stream_set *set, struct engine *e, struct ibt_qp *q,
		    const struct host_stream *s, uint64_t now_ns);
/* Takes stream_set_open back: the caller has the descriptor again. */
void stream_set_cancel(struct stream_set *set, uint32_t qpn);
/* Ends the QP's connection of host_stream.arg in order (host_stream_close). */
void stream_set_close(struct stream_set *set, struct engine *e, uint32_t qpn,
		      const void *arg, uint64_t now_ns);
/* Ends the QP's connection as stream_set_abort, with the news that it has
 * ended. */
void stream_set_drop(struct stream_set *set, struct engine *e, uint32_t qpn,
		     uint64_t now_ns);
/* Ends the QP's connection of host_stream.arg at once, without news: nothing is
 * made for it any more, but what was made is sent.  False: it has none. */
bool stream_set_abort(struct stream_set *set, uint32_t qpn, const void *arg,
		      uint64_t now_ns);
/* Has the set a connection? */
static inline bool stream_set_is_open(const struct stream_set *set)
{
	return set->by_qpn.count || !list_is_empty(&set->lingering);
}
/* Has a connection bytes that stream_set_receive would give to the engine? */
bool stream_set_has_news(struct stream_set *set, uint64_t now_ns);
/* Gives the engine what has come.  True: something has. */
bool stream_set_receive(struct stream_set *set, struct engine *e,
			uint64_t now_ns);
/* Sends what the engine's queue pairs have to send, a part of it for each.
 * True: some bytes were sent. */
bool stream_set_send(struct stream_set *set, struct engine *e, uint64_t now_ns);
/* Ends the connections whose time is over; called at due_ns. */
void stream_set_tick(struct stream_set *set, struct engine *e, uint64_t now_ns);

#endif
