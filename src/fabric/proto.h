/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages between a program and the process of a fabric, on a Unix socket of
 * type SOCK_SEQPACKET.  Each request and each answer is one struct
 * fabric_proto.  A host stays taken (FABRIC_PROTO_TAKE) until the program
 * closes the connection on which it sent the request.  A connection takes at
 * most one host, opens at most one port and has at most one socket for
 * connection management: another request for these gets -EBUSY.
 *
 * The answer to FABRIC_PROTO_OPEN carries a descriptor, a SOCK_SEQPACKET
 * socket.  Each message on this socket, in both directions, is a struct
 * ib_user_mad and a MAD.  The port stays open until the program closes the
 * socket or the connection, and is the port of FABRIC_PROTO_REGISTER and
 * FABRIC_PROTO_UNREGISTER on this connection.
 *
 * The answer to FABRIC_PROTO_DATA carries the SOCK_SEQPACKET socket of a data
 * end (data.h).  The program and the fabric send packets of an InfiniBand link
 * on this socket.  A message is one packet or several, one behind the other
 * (lrh_first), of at most FABRIC_PROTO_BURST_BYTES bytes in all.  The fabric
 * drops a message that is longer, and the packets of a message after the first
 * FABRIC_PROTO_BURST_PACKETS.  The fabric also sends struct fabric_proto_news,
 * which is shorter than any packet.  The program sends a received packet back
 * if it drops the packet because of the packet's Q_Key: as a message of its
 * own, with FABRIC_PROTO_REFUSED as LVer in the first byte.  While too many of
 * the program's packets wait for their receivers, the fabric does not read the
 * socket, so the socket fills; but it always reads the socket of a data end
 * that uses rings.  The data end exists until the program closes the socket or
 * the connection.
 *
 * The answer to FABRIC_PROTO_RING carries a memory file with two rings for the
 * packets of a data end (packet_ring.h).  The request carries an eventfd.  If
 * the program can map the file, it sends struct fabric_proto_news with
 * DATA_RING on the socket.  From then on both sides put packets into the rings
 * only, and the fabric drops packets that come by the socket; packets that are
 * sent back, and news, still go by the socket.  A message with DATA_RING also
 * wakes a side that waits: the other side sends the message after it has put
 * packets into a ring (packet_ring_publish), and a program also after it has
 * made room (packet_ring_release).  A side leaves this message out if the
 * socket is full, since the other side then finds messages in the socket
 * anyway.  A program that waits for room in its ring sets the count of the
 * eventfd to the limit, and the fabric reads the eventfd when there is room.
 * Without rings packets go by the socket.
 *
 * The answer to FABRIC_PROTO_CM carries a SOCK_SEQPACKET socket for connection
 * management at the host with the GID.  Each message on this socket is one
 * struct cmproto (broker/cmproto.h).  The program's ports and conversations
 * exist until the program closes the socket or the connection.
 *
 * By FABRIC_PROTO_SHARE a program lets the other programs of the subnet map its
 * arena, if the fabric permits that (`adverb fabric --direct`).  The answer
 * carries a memfd whose first 32-bit word is the subnet's number of changes
 * (reach.h).  The fabric writes the new number before a change has an effect
 * that a program can see.  The answer to FABRIC_PROTO_REACH names the program
 * at which the packets of a queue pair arrive, and the number of changes for
 * which this is so; -EHOSTUNREACH: the packets or the answers do not arrive, or
 * that program does not share its arena.  FABRIC_PROTO_ARENA then asks where
 * the arena of that program is.
 *
 * Each side checks that both sides run as the same user (SO_PEERCRED).  It then
 * checks the size and the version of each message, and the members that it
 * uses.
 */
#ifndef FABRIC_PROTO_H
#define FABRIC_PROTO_H

#include "fabric/data.h"
#include "fabric/deadlock.h"
#include "fabric/fabric.h"
#include "fabric/reach.h"

#define FABRIC_PROTO_VERSION 0x4146420eu /* "AFB", 14 */

/* For each kind, the members that a request uses, then those that its answer
 * uses. */
enum fabric_proto_kind {
	FABRIC_PROTO_TAKE = 1, /* host: a name or ""; answer: the host's ID */
	FABRIC_PROTO_CA,       /* host; answer: ca, text; number: 1 if programs
				  may share their arenas, else 0 */
	FABRIC_PROTO_PORT,     /* host, number; answer: port */
	FABRIC_PROTO_OPEN,     /* host, number; answer: a descriptor */
	FABRIC_PROTO_REGISTER, /* agent; answer: number */
	FABRIC_PROTO_UNREGISTER, /* number: the agent's */
	FABRIC_PROTO_SHOW,	 /* number: index of the node in the file;
				    answer: host, ca, text; number: how many
				    groups of processes have the node as their
				    host (fabric_take) */
	FABRIC_PROTO_STOP,	 /* no members; ends the fabric's process */
	FABRIC_PROTO_DATA,  /* host, number: of a port; answer: a descriptor;
			       number: the data end's (data_number) */
	FABRIC_PROTO_JOIN,  /* number: of a port; gid: the group that the data
			       end there joins */
	FABRIC_PROTO_LEAVE, /* number: of a port; gid: the group that the data
			       end there leaves */
	FABRIC_PROTO_CM,    /* gid: of a port of the host; answer: a
			       descriptor */
	FABRIC_PROTO_DEADLOCK, /* no members; answer: said */
	FABRIC_PROTO_SHARE,    /* arena, and the descriptor of the eventfd that
				  wakes the program; answer: number: the
				  program's; a descriptor */
	FABRIC_PROTO_REACH,    /* number: of a port; reach; answer: reached */
	FABRIC_PROTO_ARENA,    /* number: of a program; answer: arena; a
				  descriptor: the program's eventfd */
	FABRIC_PROTO_RING,     /* number: of a port with a data end, and the
				  descriptor of the eventfd; answer: a
				  descriptor */
};

enum {
	FABRIC_PROTO_NAME = 72, /* bytes of a name, with its NUL */
	/* A connection may have a data end at each of the ports 1 to
	 * FABRIC_PROTO_PORTS of one host.  All data ends of a connection have
	 * the same data_number. */
	FABRIC_PROTO_PORTS = 4,
	/* The most bytes and the most packets of a message of packets. */
	FABRIC_PROTO_BURST_BYTES = 65536,
	FABRIC_PROTO_BURST_PACKETS = 64,
	/* LVer of a packet that a program sends back; other packets have 0. */
	FABRIC_PROTO_REFUSED = 15,
};

/* Where the arena of a program is. */
struct fabric_arena {
	uint64_t pid_space; /* the inode number of the PID namespace of pid */
	uint32_t pid;
	int32_t fd; /* the number of the arena's descriptor in that process */
};

/* The program at which the packets of a connected queue pair arrive. */
struct fabric_reached {
	struct reach_peer peer; /* how the program's packets come back */
	uint32_t program;	/* the program's number, 1 to DATA_NUMBER_MAX */
	/* The subnet's number of changes.  The answer holds as long as the
	 * memfd of FABRIC_PROTO_SHARE has this number. */
	uint32_t changes;
};

/* A request or an answer.  All members are in host order. */
struct fabric_proto {
	uint32_t version; /* FABRIC_PROTO_VERSION */
	uint32_t kind;	  /* enum fabric_proto_kind; equal in the answer */
	int32_t err;	  /* of an answer: 0 or -errno */
	uint32_t number;  /* enum fabric_proto_kind says which number */
	/* A number that the program gives a request; equal in the answer.  By
	 * this number a program that has stopped waiting for an answer tells
	 * the late answer from the answer to its next request. */
	uint32_t serial;
	/* ID or description of a node, with a NUL.  "" is the file's first node
	 * or, in FABRIC_PROTO_TAKE, the first adapter that is no host yet. */
	char host[FABRIC_PROTO_NAME];
	char text[FABRIC_PROTO_NAME]; /* the node's description, with a NUL */
	union {
		struct fabric_ca ca;	   /* the node */
		struct fabric_port port;   /* the port */
		struct fabric_agent agent; /* the agent to register */
		uint8_t gid[16];	   /* of a multicast group or a port */
		struct reach reach;	   /* the packets of a queue pair */
		struct fabric_reached reached; /* their receiver */
		struct fabric_arena arena;     /* of a program */
		/* the sentence of deadlock_text, with a NUL; "": there is no
		 * deadlock */
		char said[DEADLOCK_TEXT];
	};
};

/* The fabric's message to a data end whose port has changed, and each side's
 * message about the rings. */
struct fabric_proto_news {
	uint32_t changes; /* set of enum data_change */
};

#endif
