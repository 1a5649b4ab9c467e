/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of iWARP's connections share.
 *
 *	iw_link.c	the thread adverb-iw, which waits for all sockets
 *	iw_socket.c	sockets: options, addresses, bytes
 *	iw_listen.c	listeners, and connections before their request
 *	iw_connect.c	connect, accept, reject
 *	iw_stream.c	connections of queue pairs: their begin, news and end
 *
 * A struct r_iw is a TCP socket.  Its owner is the id that refers to it, or the
 * thread, if no id does: before a request, and after a rejection.  Lock:
 * r_lock.  It is released while a thread is in a call of libibverbs; then the
 * state is R_IW_BUSY, and other threads leave the object alone.
 */
#ifndef RDMACM_IW_INSIDE_H
#define RDMACM_IW_INSIDE_H

#include "rdmacm/iw.h"

#include "iwarp/startup.h"

struct host_stream;

enum r_iw_state {
	R_IW_IDLE,	/* bound, or not even that */
	R_IW_LISTENING, /* fd is a listener */
	R_IW_CALLING,	/* connect(2) is under way */
	R_IW_STARTING,	/* MPA: the peer's frame is to come */
	R_IW_REQUESTED, /* the program decides about the peer's request */
	R_IW_BUSY,	/* a thread is in a call of libibverbs about it */
	R_IW_OPEN,	/* the queue pair has the connection */
	R_IW_LINGERING, /* a rejection is sent, and the peer closes */
	R_IW_OVER,	/* there is no connection any more */
};

/* The part that lives until the queue pair has the connection. */
struct r_iw_start {
	struct startup mpa;
	uint16_t out_bytes, out_sent; /* of `out` */
	uint8_t out[MPA_FRAME_MAX];   /* this side's frame */
	/* The initiator's, for a second connection. */
	uint8_t private_bytes, private_data[UINT8_MAX];
	uint64_t give_up_ns; /* the initiator's deadline */
	uint64_t hold_ns;    /* until then a refused connection is repeated */
};

/* What belongs to a listener. */
struct r_iw_queue {
	struct list halves; /* without their request; oldest first */
	uint32_t halves_count;
	uint32_t waiting; /* requests that the program has not taken */
	uint32_t backlog;
};

struct r_iw {
	struct list by_serial; /* in the thread's table */
	struct list timed; /* on the thread's list, if there is a deadline */
	struct list news;  /* on the list of streams with news */
	struct list half;  /* on the listener's list */
	uint64_t serial;   /* never used again; not 0 */
	pid_t owner;	   /* the process that made it */
	enum r_iw_state state;
	int fd;		  /* -1: none, or the queue pair has it */
	uint32_t watched; /* the epoll events that are waited for; 0: none */
	uint64_t deadline_ns; /* UINT64_MAX: none */
	struct r_id *id;
	/* Until the program takes the request; NULL if the listener is gone. */
	struct r_iw *listener;
	struct r_iw_start *start; /* NULL: the start is over */
	struct r_iw_queue queue;
	/* ---- of a connection that its queue pair has ---- */
	struct ibv_context *verbs;
	const struct verbs_iwarp *calls;
	uint32_t qpn;
	uint8_t ird, ord;
	bool is_established; /* ESTABLISHED is posted */
	/* Bits of 1 << enum host_stream_news, under a lock of iw_link.c. */
	uint32_t told;
};

/* ---- iw_link.c, under r_lock ---- */

/* Returns a new object without a socket, or NULL and errno.  Starts the thread
 * if it does not run. */
struct r_iw *r_iw_new(struct r_id *id);
/* Closes the socket and frees the object. */
void r_iw_free(struct r_iw *iw);
/* Waits for these epoll events of iw->fd; 0: for none. */
void r_iw_watch(struct r_iw *iw, uint32_t events);
/* Sets the deadline, a time of r_iw_now; UINT64_MAX: none. */
void r_iw_set_timer(struct r_iw *iw, uint64_t deadline_ns);
/* Notes the socket as this object's.  -1 is returned as it is. */
int r_iw_keep_fd(struct r_iw *iw, int fd);
/* The socket is no longer this object's: returns it, for another owner. */
int r_iw_give_fd(struct r_iw *iw);
/* Closes the socket, also for children of fork. */
void r_iw_close_fd(struct r_iw *iw);
/* Was the object made by a process that has forked this one? */
bool r_iw_is_foreign(const struct r_iw *iw);
/* Calls the function for each object of this process. */
void r_iw_each(void (*each)(struct r_iw *iw, void *arg), void *arg);
/* By any thread, under any lock: there is news, told bits. */
void r_iw_tell(struct r_iw *iw, uint32_t told);
/* Takes the bits of the news. */
uint32_t r_iw_told(struct r_iw *iw);
uint64_t r_iw_now(void);

/* ---- iw_socket.c, under r_lock ---- */

/* Makes a socket for the id, not bound.  0 or -errno. */
int r_iw_socket(struct r_iw *iw, const struct r_id *id, int family);
/* Sets the id's traffic class. */
void r_iw_use_tos(const struct r_iw *iw);
/* Binds as for a program: another socket's port is refused, but not one whose
 * old connections are ending.  0 or -errno. */
int r_iw_bind_socket(struct r_iw *iw, const struct r_id *id,
		     const struct sockaddr *addr);
/* Stores the addresses of a connected socket.  0 or -errno. */
int r_iw_local(const struct r_iw *iw, struct sockaddr_storage *addr);
int r_iw_remote(const struct r_iw *iw, struct sockaddr_storage *addr);
/* Sends what is left of the frame.  0: all is sent, or waits for room; -errno:
 * the connection is lost. */
int r_iw_send_start(struct r_iw *iw);
/* Reads for the start, until nothing is left.  0, or -errno: the connection is
 * lost. */
int r_iw_take_start(struct r_iw *iw);
/* Returns the payload of a TCP segment, in bytes. */
uint32_t r_iw_segment(int fd);

/* ---- what the thread calls, under r_lock ---- */

void r_iw_accept_ready(struct r_iw *listener);
void r_iw_listener_due(struct r_iw *listener);
void r_iw_passive_ready(struct r_iw *iw, bool is_due);
void r_iw_active_ready(struct r_iw *iw, bool is_due);
void r_iw_lingering_ready(struct r_iw *iw, bool is_due);
void r_iw_settle(struct r_iw *iw); /* the news */

/* ---- among the files ---- */

/* iw_listen.c, under r_lock: the connection no longer counts at its
 * listener. */
void r_iw_leave_listener(struct r_iw *iw);
/* iw_listen.c, under r_lock: drops the connections that have no id yet. */
void r_iw_drop_halves(struct r_iw *listener);
/* iw_connect.c, under r_lock: fills in the offer of this side. */
struct startup_offer r_iw_offer(const struct r_id *id);
/* iw_connect.c, under r_lock: refuses the request by a reply with this data,
 * and leaves the object to the thread. */
void r_iw_refuse(struct r_iw *iw, const void *data, uint8_t bytes);
/*
 * iw_stream.c, under r_lock, which is released meanwhile: gives the connection
 * of a start that is STARTUP_ACCEPTED to the queue pair id->own.qpn, with the
 * bytes of start->out that precede the first FPDU.  Posts ESTABLISHED, unless
 * the peer's first FPDU has to come before.  0, also if the connection has
 * ended again.  -errno: the state is R_IW_OVER, with the socket and the start
 * as before, and libibverbs has said why.
 */
int r_iw_open(struct r_iw *iw);
/*
 * iw_stream.c, under r_lock: posts an event of a connection, or of a request to
 * the listener, with the private data of the peer's frame.  f: NULL: there is
 * none.  False: no memory is left.
 */
bool r_iw_post(struct r_id *id, struct rdma_cm_id *listener,
	       enum rdma_cm_event_type type, int status,
	       const struct mpa_frame *f);
#endif
