/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The associations of the thread adverb-sctp (wire/sctp.h): each is a socket of
 * libusrsctp, an end of a socketpair and a path.
 *
 *	receive: library -> `in` -> socketpair	send: socketpair -> `out` ->
 *library
 *
 * A message that one side does not take waits here, and nothing is read of the
 * other side meanwhile.  The library's upcalls, events of descriptors and
 *packets touch a connection; touched connections are served at the end of a
 *turn, where no call of the library is under way.
 *
 * Lock: that of wire/sctp.c, for all functions.
 */
#ifndef WIRE_SCTP_CONN_H
#define WIRE_SCTP_CONN_H

#include <stdbool.h>
#include <stdint.h>

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
	SCTP_CONN_UP, /* it is made, and the peer's indication is to come */
	SCTP_CONN_OPEN,
	SCTP_CONN_CLOSING, /* all is sent or under way, and SHUTDOWN too */
};

/* An association, or a listener. */
struct sctp_conn {
	struct list link, by_id, dirty;
	uint32_t key;
	enum sctp_conn_state state;
	bool is_called;	 /* the peer has called */
	bool has_bytes;	 /* the owner may have sent */
	bool is_waiting; /* the library takes no message now */
	bool is_full;	 /* the owner takes no message now */
	int fd;		 /* the thread's end of the socketpair; -1 */
	struct socket *so;
	struct sctp_path path;
	in_port_t port, peer_port; /* of SCTP, in network order */
	uint32_t tag;		   /* the verification tag of the peer */
	uint64_t checked_ns, deadline_ns;
	uint32_t listener;	      /* its key */
	uint32_t out_bytes, in_bytes; /* of messages that wait */
	uint8_t out[SCTP_MESSAGE_MAX], in[SCTP_MESSAGE_MAX];
};

/* What the files of wire/sctp share. */
struct sctp_process {
	const struct usrsctp_calls *usr; /* NULL: SCTP was not asked for */
	struct sctp_options options;
	struct list sockets, conns, dirty;
	struct list buckets[SCTP_CONN_BUCKETS];
	struct map objects; /* by key: odd: a connection, even: a socket */
	uint32_t last_key;
	int epoll_fd, wake_fd;
	uint64_t busy_ns; /* the last packet */
	/* The path of the packet that is being taken. */
	const struct sctp_path *current;
};

extern struct sctp_process sctp_conn_all;

uint64_t sctp_conn_now(void);
/* Is the descriptor still the one that was opened?  Looked up once in a while.
 */
bool sctp_conn_is_ours(int fd, uint64_t *checked_ns);
/* Has the thread wait for these epoll events of fd.  0 or -errno. */
int sctp_conn_watch(int fd, uint32_t events, uint32_t key);

/* Takes a descriptor, which may be a copy of one that is here.  NULL: no memory
 * is left. */
struct sctp_socket *sctp_conn_take_socket(int fd,
					  const struct sockaddr_in6 *at);
struct sctp_socket *sctp_conn_find_socket(const struct sockaddr_in6 *at);
/* Gives up one use of the socket; the last one closes it. */
void sctp_conn_release_socket(struct sctp_socket *s);
/* Are address and port the same? */
bool sctp_conn_is_same(const struct sockaddr_in6 *a,
		       const struct sockaddr_in6 *b);

/* Returns a connection without socket, or NULL. */
struct sctp_conn *sctp_conn_new(enum sctp_conn_state state);
/* Ends the association at once, and frees the connection. */
void sctp_conn_free(struct sctp_conn *c);
/* The connections whose paths have this number, and others. */
struct list *sctp_conn_bucket(uint64_t id);
/* Gives a connection its path. */
void sctp_conn_set_path(struct sctp_conn *c, const struct sctp_path *p);
/* Makes both ends of the socketpair.  Returns the owner's, or -errno. */
int sctp_conn_make_ends(struct sctp_conn *c);
/* Makes the library's socket, bound to a port.  0 or -errno. */
int sctp_conn_make_so(struct sctp_conn *c, in_port_t port);
/* Sets the longest packet of the association, or of those to come. */
void sctp_conn_set_mtu(struct socket *so, uint32_t mtu);
/* Ends the association and tells its owner why. */
void sctp_conn_end(struct sctp_conn *c, int err);
/* Ends the association in order: what was sent arrives. */
void sctp_conn_close(struct sctp_conn *c);
/* Does the library still have the association? */
bool sctp_conn_is_alive(const struct sctp_conn *c);
/* Has the connection served in this turn. */
void sctp_conn_touch(struct sctp_conn *c);
/* Serves the connections that were touched; what one leaves for lack of a turn
 * waits for the next. */
void sctp_conn_serve_all(void);

#endif
