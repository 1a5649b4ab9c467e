/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One connection of a set (stream_set.h): its descriptor in the epoll set, the
 * bytes that the socket has not taken, and its end.  For stream_set.c only.
 *
 * Owner and lock: those of the set.
 */
#ifndef HOST_STREAM_SOCKET_H
#define HOST_STREAM_SOCKET_H

#include "host/stream_set.h"
#include "util/bits.h"

#define STREAM_SOCKET_NEVER UINT64_MAX
/* The epoll data of lingering sockets; no QPN is 0. */
#define STREAM_SOCKET_LINGERS 0

struct capture_stream;

struct stream_socket {
	struct list link; /* in set->open or set->lingering */
	struct ibt_qp *q; /* NULL: the connection lingers */
	/* The QPN of the connection's QP, also while the connection lingers. */
	uint32_t qpn;
	int fd;		 /* the connection; owned */
	bool is_session; /* the connection is an association of SCTP */
	bool is_awaited; /* the news HOST_STREAM_READY is still due */
	/* At deadline_ns the QP begins to send without the peer's first FPDU,
	 * and the connection goes on. */
	bool begins_late;
	/* How many WRITEs without bytes may still be sent; the next is sent at
	 * deadline_ns.  nudge_ns: the wait before the next WRITE; each WRITE
	 * doubles this wait. */
	uint8_t nudges;
	uint64_t nudge_ns;
	bool is_closing;   /* stream_set_close was called */
	bool is_emptied;   /* is_closing, and the QP has no more to send */
	bool has_finished; /* FIN was sent */
	bool is_cut;	   /* the kernel refuses to send: the peer is gone */
	bool gets_no_more; /* the peer has sent FIN, or has ended the session */
	/* checked_ns: when fd was last known to be adverb's (fd_identity.h).
	 * deadline_ns: see begins_late and nudges; if neither is set, when the
	 * connection ends at the latest, or STREAM_SOCKET_NEVER. */
	uint64_t checked_ns, deadline_ns;
	/* The bytes that the socket has not taken yet, in a buffer of
	 * set->buffers, or in the former set->tx.  NULL: there are none. */
	uint8_t *left;
	bool keeps_tx; /* `left` is the former set->tx */
	/* left_at: the index of these bytes in `left`.  left_bytes: their
	 * number. */
	uint32_t left_at, left_bytes;
	struct stream_burst burst; /* how many bytes the next call may send */
	/* The message that ends a session, until it is sent behind `left`, and
	 * its length; 0: no message waits. */
	struct {
		uint8_t message[ENGINE_FINISH_BYTES];
		uint32_t bytes;
	} last;
	/* host_stream.news */
	void (*news)(void *arg, enum host_stream_news what);
	void *arg; /* the argument of `news` */
	/* Writes the bytes of the connection to the capture.  Owned; NULL: they
	 * are not captured. */
	struct capture_stream *capture;
};

/* Returns the connection whose `link` is n. */
static inline struct stream_socket *stream_socket_of(struct list *n)
{
	return CONTAINER_OF(n, struct stream_socket, link);
}

/* Returns the descriptor of the epoll set; -1: there is no epoll set yet. */
static inline int stream_socket_epoll(const struct stream_set *set)
{
	return (int)shared_own(&set->waits_on) - 1;
}

/* Makes the struct for the connection of q, and adds it to set->by_qpn.  NULL:
 * no memory. */
struct stream_socket *stream_socket_new(struct stream_set *set,
					struct ibt_qp *q, uint32_t qpn,
					const struct host_stream *hs);
/* Receives up to STREAM_SET_BYTES bytes to set->rx, and captures them.  Returns
 * what tcp_receive returns. */
int64_t stream_socket_receive(struct stream_set *set, struct stream_socket *s);
/* Frees what stream_socket_new has made, and leaves the descriptor open.  s is
 * in no list and not in set->by_qpn any more. */
void stream_socket_free_memory(struct stream_set *set, struct stream_socket *s);
/* Closes the descriptor and frees s.  Does not remove s from set->by_qpn: the
 * caller does so, or frees the whole map. */
void stream_socket_free(struct stream_set *set, struct stream_socket *s);
/* Tells the epoll set for which events of the socket to look.  `how`: the
 * operation of epoll_ctl, EPOLL_CTL_*.  Returns 0 or -errno. */
int stream_socket_watch(struct stream_set *set, struct stream_socket *s,
			int how);
/* Sets s->deadline_ns, and lowers set->due_ns to it. */
void stream_socket_set_deadline(struct stream_set *set, struct stream_socket *s,
				uint64_t deadline_ns);
/* Adds a buffer to set->spares. */
void stream_socket_give_spare(struct stream_set *set, uint8_t *spare);
/* Sends bytes, and keeps those that the socket does not take.  Called while no
 * bytes are kept.  The bytes are STREAM_SET_BYTES at most, or lie in set->tx
 * while set->spare_count is not 0.  False: the connection is broken. */
bool stream_socket_put(struct stream_set *set, struct stream_socket *s,
		       const uint8_t *bytes, uint32_t count);
/* Sends as many of the kept bytes as the socket takes.  False: the connection
 * is broken. */
bool stream_socket_send_left(struct stream_set *set, struct stream_socket *s);
/* Drops the bytes that are kept, and sends no more.  The connection goes on
 * until the bytes that the peer has sent are received. */
void stream_socket_cut(struct stream_set *set, struct stream_socket *s);
/* If the connection is an association of SCTP, makes s->last, the message that
 * ends the session.  Does nothing if s->last waits already or FIN was sent. */
void stream_socket_make_last(struct stream_socket *s);
/* Sends FIN, if the socket has taken all bytes.  A session sends its last
 * message first.  Does nothing if the program has closed the descriptor. */
void stream_socket_finish(struct stream_set *set, struct stream_socket *s);
/* Detaches the connection from its QP, and lets the connection linger. */
void stream_socket_linger(struct stream_set *set, struct stream_socket *s,
			  uint64_t now_ns);
/* Sends the bytes that are kept, and reads and drops the peer's bytes.  False:
 * the connection is broken, or nothing is left to send or to read. */
bool stream_socket_serve_lingering(struct stream_set *set,
				   struct stream_socket *s);

#endif
