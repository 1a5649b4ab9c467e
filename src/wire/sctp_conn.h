/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The associations of the thread adverb-sctp (wire/sctp.h).  Each has a socket
 * of libusrsctp, one end of a socketpair and a path.
 *
 *	receive: library -> `in` -> socketpair
 *	send:    socketpair -> `out` -> library
 *
 * A message that the socketpair does not take waits in `in`.  Until it is sent,
 * nothing more is read from the library.  A message that the library does not
 * take waits in `out`.  Until it is sent, nothing more is read from the
 * socketpair.
 *
 * An upcall of the library and an event of a descriptor touch a connection,
 * that is, put it on a list.  The connections of the list are served after each
 * packet and at the end of the thread's turn, when no call of the library is in
 * progress.
 *
 * Lock: that of wire/sctp.c, which the caller of each function holds.
 */
#ifndef WIRE_SCTP_CONN_H
#define WIRE_SCTP_CONN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/list.h"
#include "util/map.h"
#include "wire/sctp.h"
#include "wire/sctp_path.h"
#include "wire/usrsctp.h"

#define SCTP_CONN_TURN	  64 /* packets, messages or events in a turn */
#define SCTP_CONN_BUCKETS 256

enum sctp_conn_state {
	SCTP_CONN_LISTENING,
	SCTP_CONN_CALLING, /* the association is being made */
	/* the association is made; the peer's indication has not come yet */
	SCTP_CONN_UP,
	SCTP_CONN_OPEN, /* the peer has announced DDP; messages may flow */
	/* the library has all messages, and sends SHUTDOWN after them */
	SCTP_CONN_CLOSING,
};

/* An association, or a listener. */
struct sctp_conn {
	/* in `conns`, `buckets` and `dirty` of sctp_conn_all */
	struct list link, by_id, dirty;
	uint32_t key; /* in `objects` and in the epoll set; odd */
	enum sctp_conn_state state;
	bool is_called;	   /* the peer has started the association */
	bool has_bytes;	   /* the owner may have sent messages */
	bool is_waiting;   /* the library takes no message now */
	bool is_full;	   /* the socketpair takes no message now */
	bool has_left;	   /* the owner has shut down or closed its end */
	int fd;		   /* the thread's end of the socketpair; -1: none */
	ino_t end;	   /* the inode number of the owner's end */
	struct socket *so; /* the library's socket; NULL: none yet */
	struct sctp_path path;
	in_port_t port, peer_port; /* SCTP ports, in network order */
	uint32_t tag; /* the peer's verification tag, in network order */
	/* checked_ns: when sctp_conn_is_ours last checked `fd`.  deadline_ns:
	 * when the connection is freed; UINT64_MAX: at no set time. */
	uint64_t checked_ns, deadline_ns;
	uint32_t listener; /* the key of the listener that the peer called */
	/* the bytes of the message in `out` and of that in `in`, PPID included;
	 * 0: there is no message */
	uint32_t out_bytes, in_bytes;
	uint8_t out[SCTP_MESSAGE_MAX], in[SCTP_MESSAGE_MAX];
};

/* The state that wire/sctp.c and wire/sctp_conn.c share. */
struct sctp_process {
	const struct usrsctp_calls *usr; /* NULL: the library is not loaded */
	struct sctp_options options;
	/* sockets: all struct sctp_socket.  conns: all struct sctp_conn.
	 * dirty: the connections that were touched. */
	struct list sockets, conns, dirty;
	struct list buckets[SCTP_CONN_BUCKETS]; /* connections by path.id */
	struct map objects;    /* by key; odd: a connection, even: a socket */
	uint32_t last_key;     /* the last key given, without its lowest bit */
	int epoll_fd, wake_fd; /* -1: there is no thread */
	/* when the last packet was sent, or sctp_connect was last called */
	uint64_t busy_ns;
	/* The path of the packet that the library is processing; NULL: none. */
	const struct sctp_path *current;
};

extern struct sctp_process sctp_conn_all;

/* Is the descriptor still the file that was opened?  A program may have closed
 * the descriptor, whose number then may be that of another file.  Asks the
 * kernel, unless a check less than a millisecond ago found the file.
 * *checked_ns, at first 0, is the time of that check; 0: there was none. */
bool sctp_conn_is_ours(int fd, uint64_t *checked_ns);
/* Adds fd to the thread's epoll set.  `key` goes into the data of its events.
 * Returns 0 or -errno. */
int sctp_conn_watch(int fd, uint32_t events, uint32_t key);

/* Returns the socket with the address `at`, and counts one more use of it.  If
 * there is such a socket, closes fd; otherwise makes a socket that owns fd.
 * NULL: the socket could not be made, and fd stays open. */
struct sctp_socket *sctp_conn_take_socket(int fd,
					  const struct sockaddr_in6 *at);
/* Returns the socket with the address `at`, or NULL.  Counts no use. */
struct sctp_socket *sctp_conn_find_socket(const struct sockaddr_in6 *at);
/* Ends one use of the socket.  The end of the last use closes and frees it. */
void sctp_conn_release_socket(struct sctp_socket *s);
/* Have a and b the same address and port?  Ignores their scopes. */
bool sctp_conn_is_same(const struct sockaddr_in6 *a,
		       const struct sockaddr_in6 *b);

/* Returns a connection that has no socket yet; NULL: no memory is left.  The
 * connection stays in sctp_conn_all until sctp_conn_free. */
struct sctp_conn *sctp_conn_new(enum sctp_conn_state state);
/* Aborts the association, if there is one, closes the thread's end of the
 * socketpair, ends the use of c->path.socket and frees the connection. */
void sctp_conn_free(struct sctp_conn *c);
/* Frees all connections without a call of the library: in a child of fork their
 * associations are the parent's. */
void sctp_conn_forget_all(void);
/* Returns the bucket with all connections whose path.id is `id`.  It may hold
 * connections with another id too. */
struct list *sctp_conn_bucket(uint64_t id);
/* Copies *p into the connection, and makes p->id known to the library. */
void sctp_conn_set_path(struct sctp_conn *c, const struct sctp_path *p);
/* Makes the socketpair.  Returns the owner's end, or -errno. */
int sctp_conn_make_ends(struct sctp_conn *c);
/* Makes the library's socket and binds it to an SCTP port in network order.
 * Returns 0 or -errno. */
int sctp_conn_make_so(struct sctp_conn *c, in_port_t port);
/* Sets two options of the association of `so` or, if there is none yet, of the
 * next one: how many bytes of chunks a packet may have (mtu, from
 * sctp_path_mtu), and the interval of the heartbeats, two seconds. */
void sctp_conn_set_path_options(struct socket *so, uint32_t mtu);
/* Frees the connection.  An owner that called sctp_connect and still waits for
 * the struct sctp_news first receives it, with the positive errno `err`. */
void sctp_conn_end(struct sctp_conn *c, int err);
/* Shuts the association down: the library first sends the peer the messages
 * that the library already has. */
void sctp_conn_close(struct sctp_conn *c);
/* Frees the connection if its deadline has passed, or if its association has
 * been shut down.  Touches the connection if the message in `in`, for the
 * owner, waits for memory. */
void sctp_conn_tick(struct sctp_conn *c, uint64_t now_ns);
/* Puts the connection on the list of connections that the next
 * sctp_conn_serve_all serves. */
void sctp_conn_touch(struct sctp_conn *c);
/* Serves the connections that were touched: at most SCTP_CONN_TURN messages of
 * each, in each direction.  Touches a connection that has more messages, for
 * the next call. */
void sctp_conn_serve_all(void);

#endif
