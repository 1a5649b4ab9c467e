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
	struct list list;
	struct fabric_watch control, port, process;
	struct fabric_data_socket data[FABRIC_PROTO_PORTS]; /* of port 1... */
	struct fabric_cm_reader reader; /* of the open port */
	struct fabric_cm_client *cm;	/* NULL: no connection management */
	struct end *end;		/* the open port, or NULL */
	struct node *held; /* the host that the program took, or NULL */
	struct fabric_program program; /* number 0: shares no arena */
	/* The program has ended.  The connection is freed at the end of the
	 * turn in which its last data end is closed. */
	bool is_dead;
};

/* The state of a fabric's process.  fabric_server_run makes it. */
struct fabric_server {
	struct fabric *fabric;
	struct list connections;
	uint32_t connection_count;
	int epoll;
	struct fabric_watch listener, signals, cm_watched;
	struct fabric_data data;
	struct fabric_direct direct;
	struct fabric_cm *cm;
	/* 0: the listener is watched.  Otherwise a connection could not be
	 * accepted, and the listener is watched again at this time in ms, or
	 * earlier if a descriptor is closed. */
	uint64_t accept_ms;
	bool has_closed; /* a descriptor was closed in this turn */
	/* How many of the latest turns had packets in rings, and have not
	 * looked for events. */
	uint32_t turns_without_events;
	bool had_packets; /* the latest turn had packets in rings */
	bool has_said;	  /* the message of pause_accepting was printed */
	bool stops;	  /* a program or a signal ends the process */
	uint8_t *buffer;  /* FABRIC_CONNECTION_MESSAGE bytes, for one message */
};

/* Closes the port that the program has open, if there is one. */
void fabric_connection_close_port(struct fabric_server *s,
				  struct connection *c);
/* Reads up to `most` messages of the program's agents, and closes the port if
 * the program has closed its socket.  The port is open. */
void fabric_connection_read_port(struct fabric_server *s, struct connection *c,
				 int most);
/* The program has ended: closes all descriptors of the connection but those of
 * its data ends, which still send the packets that are in their sockets.  Does
 * nothing if the connection is dead. */
void fabric_connection_end(struct fabric_server *s, struct connection *c);
/* Ends the connection, closes its data ends, and frees the connection. */
void fabric_connection_free(struct fabric_server *s, struct connection *c);
/* Has the connection a data end? */
bool fabric_connection_has_data(const struct connection *c);

#endif
