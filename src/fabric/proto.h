/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages between a program and the process of a fabric, on a Unix socket of
 * type SOCK_SEQPACKET.  Request and answer are each one struct fabric_proto.
 * The answer to FABRIC_PROTO_OPEN carries a descriptor, a SOCK_SEQPACKET
 * socket.  Each message on it, in both directions, is struct ib_user_mad and a
 * MAD.  The port stays open, and a host stays taken (FABRIC_PROTO_TAKE), until
 * the program closes the connection on which it sent the request.
 *
 * The answer to FABRIC_PROTO_DATA carries a SOCK_SEQPACKET socket, too.  Its
 * messages are packets of an InfiniBand link, in both directions, and from the
 * fabric also struct fabric_proto_news, which is shorter than a packet.  While
 * the receivers do not read a program's packets, the fabric does not read the
 * program's socket, which then fills.
 *
 * Each side checks the other side's user (SO_PEERCRED), the message's size and
 * version, and then every field.
 */
#ifndef FABRIC_PROTO_H
#define FABRIC_PROTO_H

#include "fabric/data.h"
#include "fabric/fabric.h"

#define FABRIC_PROTO_VERSION 0x41464203u /* "AFB", 3 */

/* For each kind, the members that a request uses, then those of its answer. */
enum fabric_proto_kind {
	FABRIC_PROTO_TAKE = 1,	 /* host: a name or ""; answer: the host's ID */
	FABRIC_PROTO_CA,	 /* host; answer: ca, text */
	FABRIC_PROTO_PORT,	 /* host, number; answer: port */
	FABRIC_PROTO_OPEN,	 /* host, number; answer: a descriptor */
	FABRIC_PROTO_REGISTER,	 /* agent; answer: number */
	FABRIC_PROTO_UNREGISTER, /* number: the agent's */
	FABRIC_PROTO_SHOW,	 /* number: index of the node in the file;
				    answer: host, ca, text; number: groups */
	FABRIC_PROTO_STOP,	 /* no members; ends the fabric's process */
	FABRIC_PROTO_DATA,  /* host, number: of a port; answer: a descriptor;
			       number: the data end's */
	FABRIC_PROTO_JOIN,  /* number: of a port; gid: the group that the data
			       end there joins */
	FABRIC_PROTO_LEAVE, /* number: of a port; gid: the group that the data
			       end there leaves */
};

enum {
	FABRIC_PROTO_NAME = 72, /* bytes of a name, with its NUL */
	/* A connection may have a data end at each port of one host up to this
	 * number.  Its data ends have the same number. */
	FABRIC_PROTO_PORTS = 4,
};

struct fabric_proto {
	uint32_t version;
	uint32_t kind;
	int32_t err; /* of an answer: 0 or -errno */
	uint32_t number;
	char host[FABRIC_PROTO_NAME]; /* ends with a byte 0 */
	char text[FABRIC_PROTO_NAME]; /* the node's description */
	union {
		struct fabric_ca ca;
		struct fabric_port port;
		struct fabric_agent agent;
		uint8_t gid[16];
	};
};

struct fabric_proto_news {
	uint32_t changes; /* set of enum data_change */
};

#endif
