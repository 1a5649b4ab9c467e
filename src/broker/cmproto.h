/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages between librdmacm and the broker.  They go over a connection of
 * their own to the socket of proto.h, one struct for each, in host order.  The
 * broker answers each request by one DONE with the request's serial; TAKEN, and
 * RELEASE of an object, have no answer.  The broker sends events without being
 * asked.
 *
 * An object stands for one rdma_cm id of a program in the broker: a port, a
 * listener or a conversation.  The broker names it in BIND's answer, or in the
 * new_id of an event.
 *
 * DONE and EVENT have a note of the object's conversation as it is then.  When
 * the broker is killed, the client gives its successor the note by RESUME, and
 * the conversation continues; the client repeats requests that have no answer.
 */
#ifndef BROKER_CMPROTO_H
#define BROKER_CMPROTO_H

#include <stdint.h>

#define CMPROTO_MAGIC	0x61647663u
#define CMPROTO_VERSION 3
#define CMPROTO_PRIVATE 224
#define CMPROTO_NOTE	352
#define CMPROTO_BYTES	736 /* of struct cmproto */

enum cmproto_kind {
	CMPROTO_BIND = 1,   /* space, local (or any_*), local_port */
	CMPROTO_LISTEN,	    /* backlog */
	CMPROTO_CONNECT,    /* all that a REQ or SIDR_REQ says; call_* */
	CMPROTO_ACCEPT,	    /* all that a REP or SIDR_REP says */
	CMPROTO_REJECT,	    /* status, private data */
	CMPROTO_ESTABLISH,  /* the active side is ready, the passive has data */
	CMPROTO_DISCONNECT, /* sends a DREQ, or answers the peer's */
	CMPROTO_TAKEN,	    /* the program has read the CMPROTO_REQUEST */
	CMPROTO_RELEASE,    /* frees the object; id 0: that of the note */
	CMPROTO_RESUME,	    /* note; space and local_port: as BIND's, or 0 */
	CMPROTO_DONE,	    /* err: 0 or -errno */
	CMPROTO_EVENT,
};

enum cmproto_event {
	CMPROTO_REQUEST, /* id: the listener; new_id: the conversation */
	CMPROTO_RESPONSE,
	CMPROTO_ESTABLISHED,
	CMPROTO_REJECTED,     /* status: the reason of the REJ */
	CMPROTO_UNREACHABLE,  /* status: -ETIMEDOUT, or the SIDR_REP's */
	CMPROTO_DISCONNECTED, /* status: -ETIMEDOUT: the peer never answered */
	CMPROTO_TIMEWAIT_EXIT,
	CMPROTO_RESOLVED, /* SIDR: qpn and qkey */
	/* id 0: the client did not read its messages, which are lost, and its
	 * connection to the broker ends */
	CMPROTO_DROPPED,
};

/* The addresses and ports of a conversation; IPv4 as ::ffff:a.b.c.d. */
struct cmproto_address {
	uint8_t local[16], peer[16];
	uint16_t space, local_port, peer_port;
	uint32_t scope; /* interface of link-local addresses */
};

/* Fields of the CM messages about a queue pair; times are exponents n of
 * 4.096 us * 2^n. */
struct cmproto_qp {
	uint8_t responder_resources, initiator_depth, flow_control;
	uint8_t retry_count, rnr_retry, has_srq, transport, mtu;
	uint8_t ack_timeout, ack_delay, traffic_class, hop_limit;
	uint16_t pkey;
	uint64_t ca_guid;
	uint32_t qpn, psn, qkey;
	uint32_t ece_vendor, ece_options;
};

struct cmproto {
	uint32_t magic;
	uint16_t version, kind;
	uint32_t serial;
	int32_t err;
	uint32_t id, new_id;
	uint32_t event; /* enum cmproto_event */
	int32_t status;
	struct cmproto_address at;
	uint8_t any_v4, any_v6, may_share;
	uint8_t is_datagram; /* SIDR */
	uint8_t only_own;    /* BIND: only clients of this broker may connect */
	uint32_t backlog;
	/* how the conversation repeats its messages */
	uint8_t is_strict, max_retries, timeout;
	uint8_t private_bytes;
	struct cmproto_qp qp;
	uint8_t private_data[CMPROTO_PRIVATE];
	/* CONNECT: random; a repetition of the request has the same */
	uint32_t call_id;
	uint64_t call_transaction;
	/* with its seal (cm_seal.h), opaque to the client; all 0: none */
	uint8_t note[CMPROTO_NOTE];
};

_Static_assert(sizeof(struct cmproto) == CMPROTO_BYTES,
	       "tests/system/broker/mallory.py sends it");

#endif
