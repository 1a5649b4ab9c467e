/* SPDX-License-Identifier: BSD-2-Clause */
/* The data of the broker's loop, for server.c, greeting.c, answer.c,
 * admission.c, counter_tree.c and unread.c alone.  user_receiver.c uses only
 * CONN_MAX. */
#ifndef BROKER_INSIDE_H
#define BROKER_INSIDE_H

#include "broker/refuse_full.h"
#include "broker/cm_inbox.h"
#include "broker/cmserver.h"
#include "broker/remote_liveness.h"
#include "broker/reuseport_group.h"
#include "broker/gsi.h"
#include "broker/proto.h"
#include "broker/counter_files.h"
#include "broker/user_receiver.h"

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A process may have two connections: one for its class, and one for rdma_cm.
 */
#define CONN_MAX (2 * STEER_CLASS_MAX + 64)
/* The descriptors that are polled besides those of the clients: the listener,
 * QP1, the inotify descriptor of the counter files, and the refused
 * connections. */
#define FIXED (3 + REFUSE_FULL_SLOTS)
/* The entries by which poll watches one client.  CONN_IN: the socket where the
 * client's messages are read.  CONN_PROCESS: the client's pidfd.  CONN_OUT: the
 * connection, while messages wait to be sent there; for a client of another
 * user also without such messages, until the connection hangs up. */
enum { CONN_IN, CONN_PROCESS, CONN_OUT, PER_CONN };
#define POLLED (FIXED + PER_CONN * CONN_MAX)

/* One client.  An entry with fd -1 has no connection: its process had a class
 * or conversations at a dead broker.  The entry stays until the process ends,
 * or has its class again and has resumed or released these conversations.  The
 * broker owns the descriptors. */
struct conn {
	int fd; /* the connection, for what the broker sends; -1: none */
	/* Where the broker reads what the client sends: fd, or a socket from
	 * the thread of the client's user (user_receiver.h); -1: none. */
	int in_fd;
	/* what the thread of the client's user knows of the connection; NULL:
	 * the client is of the broker's own user, or has no connection */
	struct user_receiver_conn *received;
	/* the pidfd of the client's process; -1: the process cannot be watched
	 * or has ended, or is_unwatched or is_over is set */
	int pidfd;
	/* There is no connection, and no descriptor was left for pidfd.  The
	 * broker tries again, and keeps the class meanwhile. */
	bool is_unwatched;
	uid_t user; /* USER_NONE: cannot be told from other users (user.h) */
	pid_t pid;  /* the client's process; 0: the process is not visible */
	uint32_t class;	    /* 0: the client has none */
	bool is_waiting;    /* PROTO_HELLO has come and is not answered yet */
	struct proto hello; /* the hello, if is_waiting */
	int hello_fd;	    /* the socket that came with the hello; -1: none */
	/* where the arena is that the client shows to processes of its user */
	struct proto_at arena;
	/* the eventfd that wakes the client; -1: none */
	int peer_wake_fd;
	/* The process has ended or has closed the connection; messages of
	 * connection management that it has sent before may still come from the
	 * thread of its user. */
	bool is_ending;
	uint64_t waiting_ms; /* when the hello came, if is_waiting */
	/* the client's state at cmserver; NULL: the client has sent no message
	 * of connection management */
	struct cmserver_client *cm;
	/* the number of this client as an asker of remote_liveness; no number
	 * is used twice; 0: none */
	uint64_t name;
	/* how many of the client's questions about other hosts have no answer
	 * yet */
	uint32_t questions;
	/* One bit for each class whose arena was shown to the client; arenas
	 * that an earlier broker showed are not known. */
	uint64_t access_of[STEER_CLASS_MAX / 64 + 1];
	bool is_inherited; /* an earlier broker gave the class */
	/* the broker serves this connection no more, and closes it when the
	 * client has read what was sent (unread.h) */
	bool is_over;
	/* since when the broker serves no request of the client, because the
	 * client does not read answers (unread.h); 0: it serves them */
	uint64_t behind_ms;
	/* since when no descriptor can be sent to the client (ETOOMANYREFS); 0:
	 * descriptors can be sent */
	uint64_t full_ms;
};

struct server {
	int listen_fd;	  /* the listener */
	int listener_err; /* what server_listener_err returns */
	/* refused connections of the broker's own user */
	struct refuse_full refuse_full;
	struct user_receivers receivers; /* the threads of other users */
	/* the time without clients after which the broker ends, or
	 * SERVER_NEVER */
	uint64_t idle_ms;
	/* when an entry of conn[] was last removed, or last ceased to count as
	 * a client; at first, when the server was made */
	uint64_t idle_since_ms;
	/* when the loop last looked at processes that cannot be watched */
	uint64_t looked_ms;
	/* the server is a thread of a program, and ends with the program */
	bool is_thread;
	bool holds_port; /* server_hold_port was called */
	/* In this turn server_drop_hung_up has polled all connections that are
	 * in the table now. */
	bool has_swept;
	uid_t swept_for;	      /* the user of the last such poll */
	uint32_t conns;		      /* how many entries conn[] has */
	struct conn conn[CONN_MAX];   /* the table of clients */
	struct reuseport_group group; /* the receive sockets and classes */
	struct gsi gsi;		      /* QP1 */
	struct cmserver *cm;	      /* connection management */
	struct cm_inbox inbox;	      /* the messages of serve_cm_batch */
	/* the questions to brokers of other hosts */
	struct remote_liveness *remote_liveness;
	/* the last number that was given to a conn as its name */
	uint64_t names;
	struct counter_files counter_files; /* the files of the sysfs tree */
	struct pollfd polled[POLLED];	    /* the table for poll */
	struct pollfd room[POLLED]; /* scratch memory of poll_sparse_all */
};

/*
 * Ends the connections whose clients have closed them since the last poll, so
 * that `user` is not refused because of them; USER_NONE: so that a connection
 * of any user can be accepted.  Does nothing if the last call was for the same
 * user in this turn and no connection was added since: otherwise each
 * connection that a user at its limit makes would cost a poll of all
 * connections.
 */
void server_drop_hung_up(struct server *s, uid_t user);
/*
 * Returns whether the entry counts as a client.  The broker does not end while
 * it has clients.  An entry that is not a client merely reserves the class that
 * a dead broker gave to a process.  That process has no connection and cannot
 * be watched: if the entry counted, this broker, which may never learn of the
 * process's end, might never end.  If this broker ends before the process, and
 * the process is of the broker's user, the process still holds the port and the
 * fd store for a successor.
 */
bool server_is_client(const struct conn *c);
/* Returns how many entries are clients. */
uint32_t server_clients(const struct server *s);

#endif
