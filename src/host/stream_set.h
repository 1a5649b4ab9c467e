/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connections of the queue pairs of iWARP devices.  The set moves bytes
 * between the sockets of TCP and the engine (engine.h: engine_stream_*), or
 * messages between the engine and descriptors of associations of SCTP
 * (wire/sctp.h).
 *
 *	stream_set_open     rdma_cm gives a connection to a queue pair
 *	stream_set_receive  sockets -> engine
 *	stream_set_send     engine -> sockets
 *
 * Up to four sockets are read in turn.  With more sockets, or while a socket is
 * full or lingers, an epoll set tells which of them have bytes.  The thread
 * that waits for work waits on the epoll set.
 *
 * If a socket is full, the set keeps the bytes that the socket did not take,
 * and the engine makes no more bytes for this queue pair until the socket has
 * taken them.  So a slow peer lets the send queue fill, but uses no more
 * memory than one buffer.  A connection whose socket is not full has no buffer.
 * Most buffers are those of stream_buffer.h.  If more bytes are left than such
 * a buffer holds, the socket keeps the larger buffer tx, from which the set
 * sends, and a spare buffer becomes tx.  While no spare is left, the set sends
 * at most STREAM_SET_BYTES at once, so that no further socket needs a buffer of
 * that size.
 *
 * When a QP is done with its connection, or the peer has sent FIN and the set
 * still keeps bytes, the connection lingers: the set sends the bytes that it
 * keeps, sends FIN, and reads and drops the peer's bytes until the peer closes,
 * for five seconds at most.  Closing the socket at once would lose bytes of
 * requests that have completed: those that the set keeps, and, if the socket
 * has unread bytes, also those in the socket, because the kernel then sends
 * RST.
 *
 * Owner: struct progress; lock: the progress lock.
 */
#ifndef HOST_STREAM_SET_H
#define HOST_STREAM_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"
#include "host/host.h"
#include "host/stream_buffer.h"
#include "host/stream_burst.h"
#include "util/list.h"
#include "util/map.h"
#include "util/shared.h"

struct stream_socket;

/* The most spares that a set makes. */
enum { STREAM_SET_SPARES = 16 };

struct stream_set {
	/* The connections (struct stream_socket) that QPs use.  The socket that
	 * is read next comes first. */
	struct list open;
	struct list lingering; /* struct stream_socket without a QP */
	struct map by_qpn;     /* QPN -> struct stream_socket in `open` */
	uint32_t full;	       /* how many sockets have not taken all bytes */
	/* The epoll set's descriptor + 1; 0: there is none yet.  The thread
	 * that waits for work reads this without the lock. */
	shared_u32 waits_on;
	/* When the epoll set's descriptor was last checked to be adverb's. */
	uint64_t checked_ns;
	/* When stream_set_tick looks at the deadlines of the sockets. */
	uint64_t due_ns;
	uint8_t *rx; /* STREAM_SET_BYTES; owned */
	/* STREAM_BURST_BYTES each; owned.  When a full socket keeps tx, the
	 * last of `spares` becomes tx.  Up to STREAM_SET_SPARES connections
	 * that are open at once have a spare each, so a peer that reads nothing
	 * takes no spare from another connection.  A spare takes memory only
	 * once it was tx. */
	uint8_t *tx, *spares[STREAM_SET_SPARES];
	/* spare_count: entries of spares[].  spares_made: these, and those that
	 * sockets keep. */
	uint32_t spare_count, spares_made;
	struct stream_buffers buffers; /* for the full sockets */
	/* The socket whose bytes lie in rx and wait for stream_set_receive;
	 * NULL: none. */
	struct stream_socket *got;
	int64_t got_result; /* the result of tcp_receive for `got` */
	/* The socket that had bytes last.  NULL: none, or HOT_LOOKS looks at it
	 * were in vain since then. */
	struct stream_socket *hot;
	/* Counts looks while there is a hot socket: one look in ALL_LOOKS is at
	 * all sockets. */
	uint32_t looks;
	uint32_t turns;	     /* counts the turns that began with a `got` */
	uint32_t vain_looks; /* looks in a row at `hot` that found nothing */
	/* The last receive probably left bytes in a socket. */
	bool has_more;
};

/* The size of rx, and what a connection sends at once if others wait. */
#define STREAM_SET_BYTES STREAM_BUFFER_BYTES

/* Makes an empty set, which needs no descriptor and no memory. */
void stream_set_init(struct stream_set *set);
/* Sends the bytes that full sockets have not taken, because the process or the
 * set is about to end.  Waits for peers that read slowly, for two seconds in
 * total.  A peer that does not read holds up no other peer. */
void stream_set_drain(struct stream_set *set);
/* Closes all connections at once, without news, and frees what the set owns. */
void stream_set_fini(struct stream_set *set);
/* Adds a connection of q, which is about to enter RTS.  0: the set owns s->fd.
 * -ENOMEM, -EINVAL (*s->config is out of range), -EBADF (the program has closed
 * the epoll set), or the -errno of epoll_create1 or epoll_ctl: the caller keeps
 * s->fd. */
int stream_set_open(struct stream_set *set, struct engine *e, struct ibt_qp *q,
		    const struct host_stream *s, uint64_t now_ns);
/* Sends s->first, with which the peer learns that it is connected, and gives
 * the engine what came before stream_set_open (s->early).  Called
 * once q is in RTS. */
void stream_set_begin(struct stream_set *set, struct engine *e,
		      struct ibt_qp *q, const struct host_stream *s,
		      uint64_t now_ns);
/* Undoes stream_set_open for the QP `qpn`, before stream_set_begin: the caller
 * owns the descriptor again, and nothing was sent. */
void stream_set_cancel(struct stream_set *set, uint32_t qpn);
/* Ends the connection of the QP `qpn` in order: sends what was posted, then
 * FIN, and ends when the peer has closed, or after ten seconds, which begin
 * when the QP may send (host_stream.begin_after_ns).  Does nothing unless the
 * connection was opened with this host_stream.arg. */
void stream_set_close(struct stream_set *set, struct engine *e, uint32_t qpn,
		      const void *arg, uint64_t now_ns);
/* Ends the connection of the QP `qpn`, if it has one, at once, because the
 * program ends it: the QP fails without a message to the user, the news
 * HOST_STREAM_ENDED is reported, and the connection lingers. */
void stream_set_drop(struct stream_set *set, struct engine *e, uint32_t qpn,
		     uint64_t now_ns);
/* Detaches the connection of the QP `qpn` at once, without news: the connection
 * lingers, and the caller fails the QP.  False: the QP has no connection that
 * was opened with this host_stream.arg. */
bool stream_set_abort(struct stream_set *set, uint32_t qpn, const void *arg,
		      uint64_t now_ns);
/* Does the set have a connection, open or lingering? */
static inline bool stream_set_is_open(const struct stream_set *set)
{
	return set->by_qpn.count || !list_is_empty(&set->lingering);
}
/* Returns how many QPs have a connection. */
static inline uint32_t stream_set_count(const struct stream_set *set)
{
	return set->by_qpn.count;
}
/* Does the coming turn of progress leave out the UDP socket, because bytes of a
 * connection wait?  One turn in eight looks at the UDP socket even then,
 * unless each QP has a connection (has_only_streams in progress.c). */
static inline bool stream_set_goes_first(struct stream_set *set)
{
	return set->got && ++set->turns % 8;
}
/* Did a socket have bytes a short time ago?  Then more will probably come, and
 * a look at the adapter's UDP socket would delay them. */
static inline bool stream_set_is_hot(const struct stream_set *set)
{
	return set->hot;
}
/* May stream_set_receive find bytes?  Always true if the set uses epoll.  While
 * stream_set_is_hot, most calls look only at the socket that had bytes last, so
 * bytes of another socket may be found some calls later. */
bool stream_set_has_news(struct stream_set *set, uint64_t now_ns);
/* Passes the sockets' received bytes to the engine, and ends connections that
 * the peer has closed.  True: bytes came, or a connection has ended. */
bool stream_set_receive(struct stream_set *set, struct engine *e,
			uint64_t now_ns);
/* Sends the bytes of the engine's queue pairs, in turn: at most
 * STREAM_SET_BYTES of a QP or, if no other QP waits and a spare is left, as
 * many as stream_burst.h permits.  True: some bytes were sent. */
bool stream_set_send(struct stream_set *set, struct engine *e, uint64_t now_ns);
/* Handles the connections whose deadline has passed.  Does nothing before
 * set->due_ns, which is at most 5 ms after the earliest deadline. */
void stream_set_tick(struct stream_set *set, struct engine *e, uint64_t now_ns);

#endif
