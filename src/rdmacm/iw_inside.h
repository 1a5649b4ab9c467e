/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Declarations that the files of iWARP's connections share.
 *
 *	iw_link.c	objects, and the thread adverb-iw, which serves them
 *	iw_sctp.c	associations of SCTP in place of TCP connections
 *	iw_socket.c	sockets: options, addresses, bytes
 *	iw_stream.c	connections that queue pairs have: beginning, news, end
 *	iw_listen.c	listeners, and connections before their request
 *	iw_connect.c	connect, accept, reject
 *	iw_id.c		the objects of ids: made, bound, taken away
 *
 * A file calls functions only of the files above it in this list.  The thread,
 * in iw_link.c, calls functions of the other files through the object's role.
 *
 * A struct r_iw, called an object, stands for one TCP socket, or with
 * ADVERB_SCTP for one descriptor of wire/sctp.  The id that refers to the
 * object owns it.  An object to which no id refers belongs to the thread
 * adverb-iw: the object of an incoming connection before its request, or after
 * a rejection.
 *
 * A half is an incoming connection whose MPA request is not complete.
 *
 * Lock: r_lock.  A thread releases r_lock for a call of libibverbs about an
 * object, and in rdma_connect for connect(2).  During the call the state is
 * R_IW_BUSY, and other threads neither change nor free the object, but they
 * may add news to it (r_iw_add_news).
 */
#ifndef RDMACM_IW_INSIDE_H
#define RDMACM_IW_INSIDE_H

#include "rdmacm/iw.h"

#include <netinet/in.h>

#include "iwarp/startup.h"

struct host_stream;
struct sctp_news;

enum r_iw_state {
	R_IW_IDLE, /* there is no socket yet, or a socket that is only bound */
	R_IW_LISTENING, /* fd is a listener */
	R_IW_CALLING,	/* connect(2) or sctp_connect is under way, or will be
			 * repeated when the deadline comes */
	R_IW_STARTING,	/* the peer's frame of MPA is not complete */
	R_IW_REQUESTED, /* the program has yet to accept or reject */
	R_IW_BUSY,	/* a thread calls libibverbs, or connect(2) */
	R_IW_OPEN,	/* the queue pair has the connection */
	R_IW_LINGERING, /* rejected by this side; the peer has yet to close */
	R_IW_OVER,	/* the connection has ended */
};

/* The functions by which the thread adverb-iw handles an object, under
 * r_lock. */
struct r_iw_role {
	/*
	 * The object's socket has an event or, if is_due, the object's deadline
	 * has come and is no longer set.  May free the object.  NULL: the
	 * thread no longer waits for the socket.
	 */
	void (*serve)(struct r_iw *iw, bool is_due);
	/*
	 * The object has a deadline, and no thread will serve the object, since
	 * the program has closed the thread's descriptor.  May free the object.
	 * NULL: the next thread will serve the object.
	 */
	void (*lost)(struct r_iw *iw);
	/* The object has news.  NULL: no queue pair has the connection. */
	void (*settle)(struct r_iw *iw);
};

/* State that is needed only until the queue pair has the connection. */
struct r_iw_start {
	struct startup mpa; /* the exchange of frames, also on SCTP */
	/* out_bytes: the length of the frame in `out`.  out_sent: how many of
	 * these bytes were sent. */
	uint16_t out_bytes, out_sent;
	uint8_t out[MPA_FRAME_MAX]; /* this side's frame */
	/* The initiator's private data and its length in bytes, kept to send
	 * the request again. */
	uint8_t private_bytes, private_data[UINT8_MAX];
	/* TCP, for a capture: host_stream_start.begun_ns and request_ns; 0: not
	 * yet. */
	uint64_t begun_ns, request_ns;
	/* When the initiator gives up, as a time of monotonic_ns. */
	uint64_t give_up_ns;
	/* Until this time of monotonic_ns, the initiator tries a refused
	 * connection again; 0: not at all. */
	uint64_t hold_ns;
};

/* A listener's connections that the program has not taken. */
struct r_iw_queue {
	struct list halves;    /* nodes r_iw.half, oldest first */
	uint32_t halves_count; /* entries of halves */
	uint32_t waiting; /* requests whose event the program has not taken */
	/* No connection is accepted while `waiting` is this high. */
	uint32_t backlog;
};

struct r_iw {
	struct list by_serial; /* in the table of iw_link.c */
	struct list timed; /* in iw_link.c's list of objects with a deadline */
	struct list news;  /* in iw_link.c's list of objects with news */
	struct list half;  /* in the listener's queue.halves */
	/* The object's number: not 0, and different from the number of any
	 * earlier or later object of this process. */
	uint64_t serial;
	/* How many forks lie between the first process of the program and the
	 * process that made the object. */
	uint32_t generation;
	enum r_iw_state state;
	/* Static.  NULL: all functions of the role are NULL. */
	const struct r_iw_role *role;
	int fd; /* -1: there is none, or the queue pair has it */
	/* SCTP: the news of the association; before there is an association,
	 * only `local` is set, to the address of the socket.  Owned.  TCP:
	 * NULL. */
	struct sctp_news *sctp;
	uint32_t watched; /* the epoll events that are waited for; 0: none */
	uint64_t deadline_ns; /* a time of monotonic_ns; UINT64_MAX: none */
	struct r_id *id;      /* the owner, or NULL */
	/* The listener of an incoming connection, until the program takes the
	 * event of the request.  NULL later, and if the listener was freed. */
	struct r_iw *listener;
	/* Owned.  NULL in a listener, before r_iw_connect, and when the queue
	 * pair has the connection. */
	struct r_iw_start *start;
	struct r_iw_queue queue; /* used by a listener only */
	/* ---- set when the queue pair gets the connection ---- */
	struct ibv_context *verbs;	 /* the queue pair's */
	const struct verbs_iwarp *calls; /* static */
	uint32_t qpn;			 /* the queue pair's number */
	/* The agreed numbers of RDMA Reads at a time, at most 255.  ird: those
	 * that this side takes; ord: those that this side sends. */
	uint8_t ird, ord;
	bool is_established; /* the event ESTABLISHED was posted */
	/* The news: bits of 1 << enum host_stream_news.  Lock: `leaf` of
	 * iw_link.c. */
	uint32_t news_bits;
};

/* ---- iw_link.c, under r_lock ---- */

/* Starts the thread adverb-iw unless it runs.  Called before an object gets a
 * deadline, or a socket for which the thread waits.  Returns 0 or -errno. */
int r_iw_start_thread(void);
/* Calls r_iw_start_thread, unless the caller is the thread adverb-iw, and
 * returns a new object without a socket, or NULL and errno.  id may be NULL.
 * The caller, or the id, owns the object and frees it by r_iw_free. */
struct r_iw *r_iw_new(struct r_id *id);
/* Closes the socket and frees the object.  In a forked child, an object of the
 * parent is freed without closing. */
void r_iw_free(struct r_iw *iw);
/* Sets the state and the role that belongs to it. */
void r_iw_enter(struct r_iw *iw, enum r_iw_state state,
		const struct r_iw_role *role);
/* Makes the thread wait for these epoll events of iw->fd; 0: for none. */
void r_iw_watch(struct r_iw *iw, uint32_t events);
/* Sets the deadline, a time of monotonic_ns; UINT64_MAX: none. */
void r_iw_set_timer(struct r_iw *iw, uint64_t deadline_ns);
/* Makes fd the object's socket, which the object then owns.  Returns iw->fd,
 * the number of the descriptor, which may differ from fd (fd_identity_note).  A
 * negative fd means that there is no socket. */
int r_iw_keep_fd(struct r_iw *iw, int fd);
/* Takes the socket from the object, and returns the descriptor, which the
 * caller then owns. */
int r_iw_give_fd(struct r_iw *iw);
/* Closes the socket, if there is one.  A connection ends even if a child of
 * fork has a copy of the descriptor. */
void r_iw_close_fd(struct r_iw *iw);
/* Returns whether another process made the object: a parent that has forked
 * this process. */
bool r_iw_is_foreign(const struct r_iw *iw);
/* Returns the object of this process with this number; NULL: there is none. */
struct r_iw *r_iw_find(uint64_t serial);
/* Calls the function for each object of this process.  The function must not
 * free an object. */
void r_iw_each(void (*each)(struct r_iw *iw, void *arg), void *arg);
/* Adds `bits` to r_iw.news_bits, and wakes no thread: the caller handles the
 * news.  Any thread may call this function under any lock, and needs no r_lock.
 */
void r_iw_note_news(struct r_iw *iw, uint32_t bits);
/* Adds `bits` to r_iw.news_bits, and wakes the thread adverb-iw, which handles
 * the news.  Any thread may call this function under any lock, and needs no
 * r_lock. */
void r_iw_add_news(struct r_iw *iw, uint32_t bits);
/* Returns the news, and clears them. */
uint32_t r_iw_take_news(struct r_iw *iw);

/* ---- iw_socket.c, under r_lock ---- */

/* Makes a TCP socket of this family for the object, not bound, with the option
 * RDMA_OPTION_ID_AFONLY of the id.  Returns 0 or -errno. */
int r_iw_socket(struct r_iw *iw, const struct r_id *id, int family);
/* Sets the traffic class of the object's id on the socket, unless the class is
 * 0. */
void r_iw_use_tos(const struct r_iw *iw);
/*
 * Binds the socket to addr, as bind(2) does with SO_REUSEADDR: connections that
 * are ending do not keep the port in use.  A port that another socket has bound
 * is in use, unless both ids have RDMA_OPTION_ID_REUSEADDR and neither listens.
 * Returns 0 or -errno.
 */
int r_iw_bind_socket(struct r_iw *iw, const struct r_id *id,
		     const struct sockaddr *addr);
/* Stores the address to which the socket is bound.  Returns 0 or -errno. */
int r_iw_local(const struct r_iw *iw, struct sockaddr_storage *addr);
/* Stores the peer's address of a connected socket.  Returns 0 or -errno. */
int r_iw_remote(const struct r_iw *iw, struct sockaddr_storage *addr);
/* Returns the time of CLOCK_REALTIME in ns. */
uint64_t r_iw_real_ns(void);
/* Sends the rest of start->out, as far as the socket has room.  Returns 0, or
 * -errno if the connection is lost; -EBADF: the program has closed the
 * descriptor. */
int r_iw_send_start(struct r_iw *iw);
/* Passes the bytes that have arrived to start->mpa, whose state may change.
 * Returns 0, or -errno if the connection is lost; -EBADF: the program has
 * closed the descriptor. */
int r_iw_take_start(struct r_iw *iw);
/* Returns the payload of a TCP segment, or the longest segment of DDP for an
 * association, in bytes. */
uint32_t r_iw_segment(const struct r_iw *iw);

/* ---- iw_sctp.c, under r_lock ---- */

/* Returns whether connections of iWARP use SCTP (ADVERB_SCTP). */
bool r_iw_uses_sctp(void);
/* Makes a socket for SCTP and binds the socket to addr; with port 0 a free port
 * is chosen.  Returns 0 or -errno. */
int r_iw_sctp_bind(struct r_iw *iw, const struct r_id *id,
		   const struct sockaddr *addr);
/* Makes the bound socket a listener with this backlog (sctp_listen), unless it
 * is one.  Returns 0, or -errno: the object has no socket any more. */
int r_iw_sctp_listen(struct r_iw *iw, int backlog);
/* Ends a listener that has accepted nothing; its socket stays bound.  After a
 * failure the object has no socket. */
void r_iw_sctp_unlisten(struct r_iw *iw);
/* Takes the listener's next connection and fills in *news.  Returns the
 * connection's descriptor, which the caller owns, or -1 and errno, as
 * accept4(2) does. */
int r_iw_sctp_accept(struct r_iw *l, struct sctp_news *news);
/* Begins the association with the id's peer, from the bound socket.  Returns 0,
 * or -errno: the object has no socket any more. */
int r_iw_sctp_call(struct r_iw *iw);
/* After r_iw_sctp_call: returns 0 if the association was made, -EAGAIN if the
 * peer has not answered yet, or another -errno if the association failed. */
int r_iw_sctp_answer(struct r_iw *iw);
/* Sends the Terminate that ends the session of iw->start in order; does nothing
 * if there is no session. */
void r_iw_sctp_end_session(struct r_iw *iw);
/* Stores the address of an association in *to; ::ffff:a.b.c.d becomes an IPv4
 * address. */
void r_iw_sctp_address(const struct sockaddr_in6 *from,
		       struct sockaddr_storage *to);

/* ---- iw_stream.c, under r_lock ---- */

/*
 * Gives the connection to the queue pair iw->id->own.qpn, and releases r_lock
 * meanwhile.  Before the call, start->mpa.state is STARTUP_ACCEPTED, and
 * start->out has the bytes that precede the first FPDU.  Posts ESTABLISHED now,
 * or after the peer's first FPDU if this side must wait for that FPDU.
 *
 * Returns 0, also if the connection has ended meanwhile.  On failure returns
 * -errno after a message: the error of libibverbs, or -EBADF if the program has
 * closed the descriptor.  Then the state is R_IW_OVER, and the object still has
 * the socket and the start.
 */
int r_iw_open(struct r_iw *iw);
/* If there is a capture: writes to it a TCP connection that is about to end and
 * that no queue pair has had.  request: the initiator's request, of
 * request_bytes bytes; not used if this side is the responder.  has_out: the
 * first out_sent bytes of start->out are the last bytes that this side has
 * sent. */
void r_iw_capture_refused(const struct r_iw *iw, const uint8_t *request,
			  uint16_t request_bytes, bool has_out);
/* Ends the connection at once, if a queue pair has it, and releases r_lock
 * meanwhile.  No event follows. */
void r_iw_abort_stream(struct r_iw *iw);
/*
 * Posts an event of the id.  With a listener, the event is a connection request
 * on the listener's channel.  The event has the private data of the peer's
 * frame f; NULL: none.  Returns false if no memory is left.
 */
bool r_iw_post(struct r_id *id, struct rdma_cm_id *listener,
	       enum rdma_cm_event_type type, int status,
	       const struct mpa_frame *f);

/* ---- iw_listen.c, under r_lock ---- */

/* Removes the connection from its listener's counts, so that the listener may
 * accept others.  Does nothing without a listener. */
void r_iw_leave_listener(struct r_iw *iw);
/* For a request whose socket the thread adverb-iw does not watch yet: looks
 * whether the peer has closed the connection, and if so withdraws the request.
 */
void r_iw_look(struct r_iw *iw);
/* Frees the halves of a listener that is about to be freed, and removes the
 * listener from its waiting requests. */
void r_iw_drop_halves(struct r_iw *listener);

/* ---- iw_connect.c, under r_lock ---- */

/* Rejects the request by a reply with this data, which may be NULL.  The id
 * loses the object, which the thread then owns, or which is freed at once if
 * the reply cannot be sent. */
void r_iw_refuse(struct r_iw *iw, const void *data, uint8_t bytes);
#endif
