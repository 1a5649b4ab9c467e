/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What librdmacm and the broker say to each other, over a connection of the
 * same socket as proto.h's but of its own: one struct a message, host order.
 * Each request is answered by one DONE with its serial, but for TAKEN and for
 * RELEASE of an object.  Events
 * come by themselves.
 *
 * An object is what a program's id is in the broker: a port, a listener, a
 * conversation.  The broker names it, by BIND's answer or an event's new_id.
 *
 * DONE and EVENT bring a note of the object's conversation as it is then.  When
 * the broker is killed, RESUME gives that to its successor, which goes on where
 * the note was written; requests without an answer are made again.
 */
#ifndef BROKER_CMPROTO_H
#define BROKER_CMPROTO_H

#include <stdint.h>

#define CMPROTO_MAGIC	0x61647663u
#define CMPROTO_VERSION 2
#define CMPROTO_PRIVATE 224
#define CMPROTO_NOTE	352

enum cmproto_kind {
	CMPROTO_BIND = 1,   /* space, local (or any_*), local_port */
	CMPROTO_LISTEN,	    /* backlog */
	CMPROTO_CONNECT,    /* all that a REQ or SIDR_REQ says; call_* */
	CMPROTO_ACCEPT,	    /* all that a REP or SIDR_REP says */
	CMPROTO_REJECT,	    /* status, private data */
	CMPROTO_ESTABLISH,  /* the active side is ready, the passive has data */
	CMPROTO_DISCONNECT, /* */
	CMPROTO_TAKEN,	    /* the program has seen the request */
	CMPROTO_RELEASE,    /* the object is no more; id 0: that of the note */
	CMPROTO_RESUME,	    /* note; space and local_port: as BIND's, or 0 */
	CMPROTO_DONE,	    /* err: 0 or -errno */
	CMPROTO_EVENT,
};

enum cmproto_event {
	CMPROTO_REQUEST, /* id: the listener; new_id: the conversation */
	CMPROTO_RESPONSE,
	CMPROTO_ESTABLISHED,
	CMPROTO_REJECTED,     /* status: the reason of the REJ */
	CMPROTO_UNREACHABLE,  /* status: -ETIMEDOUT, or SIDR's */
	CMPROTO_DISCONNECTED, /* status: -ETIMEDOUT: the peer never answered */
	CMPROTO_TIMEWAIT_EXIT,
	CMPROTO_RESOLVED, /* SIDR: qpn and qkey */
	/* id 0: the client did not read what waited for it, which is lost, and
	 * its connection to the broker ends */
	CMPROTO_DROPPED,
};

struct cmproto {
	uint32_t magic;
	uint16_t version, kind;
	uint32_t serial;
	int32_t err;
	uint32_t id, new_id;
	uint32_t event; /* enum cmproto_event */
	int32_t status;
	/* where: addresses as ::ffff:a.b.c.d for IPv4 */
	uint8_t local[16], peer[16];
	uint16_t space, local_port, peer_port;
	uint8_t any_v4, any_v6, may_share;
	uint8_t is_datagram; /* SIDR */
	uint8_t only_own;    /* BIND: for callers of this namespace alone */
	uint32_t scope;	     /* interface of link-local addresses */
	uint32_t backlog;
	/* of the conversation */
	uint8_t is_strict, max_retries, timeout;
	/* what the messages carry; times are exponents of 4.096 us */
	uint8_t responder_resources, initiator_depth, flow_control;
	uint8_t retry_count, rnr_retry, has_srq, transport, mtu;
	uint8_t ack_timeout, ack_delay, traffic_class, hop_limit;
	uint8_t private_bytes;
	uint16_t pkey;
	uint64_t ca_guid;
	uint32_t qpn, psn, qkey;
	uint32_t ece_vendor, ece_options;
	uint8_t private_data[CMPROTO_PRIVATE];
	/* CONNECT: random, the same when it is made again */
	uint32_t call_id;
	uint64_t call_transaction;
	uint8_t note[CMPROTO_NOTE]; /* the broker's words; all 0: none */
};

#endif
