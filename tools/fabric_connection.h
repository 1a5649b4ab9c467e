/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of a fabric's process, and the connections of its programs: how a
 * connection ends, and the messages of its port.  Owner: the process's one
 * thread.
 */
#ifndef TOOLS_FABRIC_CONNECTION_H
#define TOOLS_FABRIC_CONNECTION_H

#include "fabric_cm.h"
#include "fabric_data.h"
#include "fabric_direct.h"
#include "fabric_watch.h"

#include "fabric/proto.h"
#include "util/list.h"

/* The longest message of a port, in bytes. */
#define FABRIC_CONNECTION_MESSAGE (FABRIC_UMAD_BYTES + FABRIC_MAD_MAX)

/* The connection of a program.  fabric_server.c makes it. */
struct connection {
	struct list list;	     /* in fabric_server.connections */
	struct fabric_watch control; /* the socket of requests and answers */
	struct fabric_watch port;    /* the socket of the open port */
	struct fabric_watch process; /* readable once the program has ended */
	/* The data ends at port 1, 2... */
	struct fabric_data_socket data[FABRIC_PROTO_PORTS];
	/* The owner of `end` (fabric_owner), which sends the messages of `end`
	 * to the program. */
	struct fabric_cm_reader reader;
	struct fabric_cm_client *cm; /* NULL: no connection management */
	struct end *end;	     /* the open port, or NULL */
	struct node *held; /* the host that the program took, or NULL */
	/* number 0: the program shares no arena */
	struct fabric_program program;
	/* The program has ended.  The connection is freed at the end of the
	 * turn in which its last data end is closed. */
	bool is_dead;
};

/* The state of a fabric's process.  fabric_server_run makes it. */
struct fabric_server {
	struct fabric *fabric;	   /* borrowed */
	struct list connections;   /* struct connection.list */
	uint32_t connection_count; /* connections, dead ones included */
	int epoll;		   /* watches the descriptors of the process */
	struct fabric_watch listener;	/* the socket that accepts programs */
	struct fabric_watch signals;	/* a signalfd: heeded.h */
	struct fabric_watch cm_watched; /* fabric_cm_fd(cm) */
	struct fabric_data data;	/* the data ends of all connections */
	struct fabric_direct direct;	/* the programs that share arenas */
	struct fabric_cm *cm;		/* connection management of programs */
	/* 0: the listener is watched.  Otherwise a connection could not be
	 * accepted, and the listener is watched again at this time, in ms of
	 * monotonic_ms, or earlier if this process closes a descriptor. */
	uint64_t accept_ms;
	/* The earliest time of the next sentence about a connection that is not
	 * served, in ms of monotonic_ms. */
	uint64_t say_ms;
	bool has_closed; /* a descriptor was closed in this turn */
	/* How many turns in a row, up to the latest, have not asked epoll for
	 * events. */
	uint32_t turns_without_events;
	bool had_packets; /* the latest turn had packets in rings */
	bool has_said;	  /* the message of pause_accepting was printed */
	bool stops;	  /* a program or a signal ends the process */
	uint8_t *buffer;  /* FABRIC_CONNECTION_MESSAGE bytes, for one message */
};

/* Closes the port that the program has open, if there is one. */
void fabric_connection_close_port(struct fabric_server *s,
				  struct connection *c);
/* Gives the fabric up to `most` messages of the program's agents, and closes
 * the port if the program has closed the port's socket.  The caller calls this
 * only while the port is open. */
void fabric_connection_read_port(struct fabric_server *s, struct connection *c,
				 int most);
/* The program has ended: sends the last datagrams of its port, releases its
 * host, ends its connection management and the sharing of its arena, and closes
 * all descriptors of the connection but those of its data ends, which still
 * send the packets in their sockets and rings.  Does nothing if the connection
 * is dead. */
void fabric_connection_end(struct fabric_server *s, struct connection *c);
/* Ends the connection, closes its data ends, and frees the connection. */
void fabric_connection_free(struct fabric_server *s, struct connection *c);
/* Has the connection a data end? */
bool fabric_connection_has_data(const struct connection *c);

#endif
