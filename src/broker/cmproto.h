/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages between librdmacm and the broker.  They go over a connection of
 * their own to the address of proto.h.  Each message is one struct cmproto in
 * host order.  TAKEN, and RELEASE of an object, have no answer.  The broker
 * answers each other request by one DONE with the request's serial.  The broker
 * sends an EVENT when something has happened.
 *
 * A program on a host of an emulated subnet has no broker: the process of the
 * fabric takes the broker's part (FABRIC_PROTO_CM), but does not answer
 * INTERFACE and LEAVE.  The addresses are then GIDs of InfiniBand ports, and
 * is_ib is set in BIND, CONNECT and RESUME.
 *
 * An object of the broker is a port, a listener or a conversation.  It belongs
 * to one rdma_cm id of a program or, at a fabric, to the listener or a
 * connection of an IPoIB interface.  The broker gives the object's number in
 * the answer to BIND or RESUME, or in the new_id of an event.
 *
 * DONE and EVENT bring a note of the state of the object's conversation.  When
 * the broker has been killed, the client gives the note to the successor by
 * RESUME, and the conversation continues.  The client then repeats the requests
 * that have had no answer.
 *
 * Each request about an object can fail with -ENOENT: the client has no such
 * object, or the object has no conversation; -EINVAL: the object's state, or a
 * field of the message, does not allow the request; -EDQUOT: the client's user
 * has its share of objects, listeners or conversations (share.h); -ENOMEM: no
 * further object, listener or conversation is free.  -EOPNOTSUPP: the receiver
 * does not serve requests of this kind.  The kinds below name their further
 * errors.
 */
#ifndef BROKER_CMPROTO_H
#define BROKER_CMPROTO_H

#include <stdint.h>

#define CMPROTO_MAGIC	0x61647663u
#define CMPROTO_VERSION 9
#define CMPROTO_PRIVATE 224 /* bytes of private data, at most */
#define CMPROTO_NOTE	352 /* bytes for a note with its seal */
#define CMPROTO_BYTES	848 /* of struct cmproto */

/* The kinds of messages.  `Fields` lists the members of struct cmproto that the
 * receiver reads, in addition to id. */
enum cmproto_kind {
	/* makes an object with a port (at.local_port 0: the broker chooses the
	 * port), or with at.service_id in place of a port.  Fields: at.space,
	 * at.local or any_v4 and any_v6, at.local_port, at.service_id,
	 * may_share, only_own, is_ip, is_datagram.  The answer has new_id and
	 * at.local_port.  -EINVAL: at.service_id is the service ID of a port,
	 * at.service_id and is_ip are both set, or is_ib is set for a broker or
	 * not set for a fabric; -EACCES: the client's process may not bind that
	 * port; -EADDRINUSE: the port, or each ephemeral port, is taken. */
	CMPROTO_BIND = 1,
	/* makes the object a listener.  Fields: backlog.  -EADDRINUSE: another
	 * listener of the service has one of the addresses. */
	CMPROTO_LISTEN,
	/* sends a REQ or SIDR_REQ.  Fields: at, qp, private data, is_datagram,
	 * call_id, call_transaction, is_strict, max_retries, timeout; and with
	 * is_ib: path, alternate, and at.service_id, the service ID to which
	 * the request goes.  at.service_id 0: the service ID of the port
	 * at.peer_port in the space at.space; at.space 0: the object's space.
	 */
	CMPROTO_CONNECT,
	/* sends a REP or SIDR_REP.  Fields: qp, private data, and with is_ib:
	 * alternate.failover. */
	CMPROTO_ACCEPT,
	/* sends a REJ or SIDR_REP.  Fields: status, private data. */
	CMPROTO_REJECT,
	/* the active side has its queue pair ready, and sends an RTU; or the
	 * passive side has received data before the RTU */
	CMPROTO_ESTABLISH,
	/* sends a DREQ, or answers the peer's DREQ.  -EINVAL, and not -ENOENT:
	 * the object has no conversation. */
	CMPROTO_DISCONNECT,
	CMPROTO_TAKEN, /* the program has read the CMPROTO_REQUEST */
	/* frees the object `id`; id 0: ends the conversation of the note.
	 * Fields: note, if id is 0. */
	CMPROTO_RELEASE,
	/* makes an object for the conversation of the note.  Fields: note,
	 * is_datagram, at.space; and, as in the BIND of the object that the
	 * conversation had, at.local, at.local_port and may_share.
	 * at.local_port 0: the object had no port of its own.  The answer has
	 * new_id.  -EPERM: the client has no right to the note; -EEXIST: the
	 * conversation exists already. */
	CMPROTO_RESUME,
	/* asks the subnet administration for a path; a broker refuses by
	 * -EOPNOTSUPP.  Fields: at.local; at.peer; the service for which the
	 * path is (at.service_id or, if that is 0, the service of at.space and
	 * at.peer_port); path.traffic_class; path.pkey and path.sl (0: any);
	 * timeout.  The answer has path; -ENETUNREACH: there is no path;
	 * -EREMOTEIO: the port of the subnet manager answers that no subnet
	 * administration is there, or that the administration is busy;
	 * -ETIMEDOUT: no subnet manager answers; -ENETDOWN: the port at.local
	 * is not active, or the host has no such port; -ENOBUFS: the client has
	 * too many open queries. */
	CMPROTO_ROUTE,
	/* the client is an interface of IPoIB.  Fields: at.local (its GID),
	 * qp.qpn, path.pkey (of its partition), group (its broadcast group;
	 * group.mtu 0: none).  A later message replaces the earlier one.
	 * The fabric does not answer; a broker refuses by -EOPNOTSUPP. */
	CMPROTO_INTERFACE,
	/* asks for the interface of IPoIB that has a MAC (ipoib/hwaddr.h), on
	 * any host of the subnet; a broker refuses by -EOPNOTSUPP.  Fields:
	 * at.peer, whose first 6 bytes are the MAC.  The answer has at.local,
	 * path.pkey and group; -ENODEV: there is no such interface. */
	CMPROTO_INTERFACE_OF,
	/* joins a multicast group; a broker refuses by -EOPNOTSUPP.  Fields:
	 * at.local (the port's GID), at.peer (the group's; all zeroes: the
	 * subnet administration chooses one), path.pkey, group, call_id (a
	 * number that the client chooses for this membership).  The answer has
	 * at.peer, path.pkey and group; -ECONNREFUSED: the subnet
	 * administration refuses the join; -EREMOTEIO, -ETIMEDOUT and
	 * -ENETDOWN as for ROUTE; -ENOBUFS: the client or the host has too many
	 * memberships; -EINVAL: clients of this host have joined the group with
	 * another Q_Key or P_Key; -ECANCELED: the client has left before the
	 * answer came. */
	CMPROTO_JOIN,
	/* ends the membership call_id.  The fabric does not answer; a broker
	 * refuses by -EOPNOTSUPP. */
	CMPROTO_LEAVE,
	CMPROTO_DONE,  /* the answer to a request; err: 0 or -errno */
	CMPROTO_EVENT, /* from the broker; event: enum cmproto_event */
};

enum cmproto_event {
	/* a REQ or SIDR_REQ came; id: the listener; new_id: the conversation */
	CMPROTO_REQUEST,
	CMPROTO_RESPONSE,    /* a REP came */
	CMPROTO_ESTABLISHED, /* the connection is established */
	/* status: the reason of the REJ; 0: there was no REJ, and the peer has
	 * begun another connection with the same queue pair */
	CMPROTO_REJECTED,
	/* status: -ETIMEDOUT, or the status of the SIDR_REP */
	CMPROTO_UNREACHABLE,
	/* status: 0; or -ETIMEDOUT: the peer has not answered the DREQ */
	CMPROTO_DISCONNECTED,
	CMPROTO_TIMEWAIT_EXIT, /* the connection's TIMEWAIT is over */
	CMPROTO_RESOLVED,      /* a SIDR_REP came: qp.qpn and qp.qkey */
	/* the client did not read its messages, which are lost, and the broker
	 * closes the client's connection; id: 0 */
	CMPROTO_DROPPED,
	/* the membership call_id of a JOIN has ended, since its port went down,
	 * has another LID, no longer has the GID of the JOIN, has left the
	 * partition of the group or, after a restart of the subnet manager, has
	 * to register again; id: 0.  The client may join again. */
	CMPROTO_GROUP_LOST,
};

/* The addresses and ports of a conversation.  Addresses are IPv6, or IPv4 as
 * ::ffff:a.b.c.d. */
struct cmproto_address {
	uint8_t local[16], peer[16];
	/* the port space as in the service id: 0x0106 is RDMA_PS_TCP */
	uint16_t space;
	uint16_t local_port, peer_port; /* in host order; 0: none */
	uint32_t scope; /* the interface of link-local addresses; 0: none */
	/* InfiniBand: a whole service ID; 0: that of `space` and a port */
	uint64_t service_id;
};

/* Fields of the CM messages about a queue pair (IBTA Vol 1, 12.6).  A time is
 * an exponent n, and means 4.096 us * 2^n. */
struct cmproto_qp {
	uint8_t responder_resources, initiator_depth, flow_control;
	uint8_t retry_count, rnr_retry, has_srq, transport, mtu;
	uint8_t ack_timeout, ack_delay, traffic_class, hop_limit;
	uint16_t pkey;
	uint64_t ca_guid;
	uint32_t qpn, psn, qkey;
	uint32_t ece_vendor, ece_options;
};

/* A path of InfiniBand (IBTA Vol 1, 15.2.5.16), seen from the receiver of the
 * message: local_lid is a LID of this host's port, remote_lid one of the peer's
 * port.  All zeroes: not known. */
struct cmproto_path {
	uint16_t local_lid, remote_lid, pkey;
	uint8_t sl, mtu, rate, life_time;
	uint8_t hop_limit, traffic_class;
	/* The packets need a GRH: the two ports are in different subnets. */
	uint8_t is_global;
	uint8_t reserved[3];
};

/* The alternate path of a connection of InfiniBand (IBTA Vol 1, 12.6.5), seen
 * from the receiver of the message. */
struct cmproto_alternate {
	uint8_t local[16], peer[16]; /* the GIDs of its two ends */
	/* remote_lid 0: there is no alternate path.  The pkey and the mtu are
	 * those of the connection's path. */
	struct cmproto_path path;
	uint8_t ack_timeout; /* as in struct cmproto_qp */
	/* ACCEPT, and EVENT with CMPROTO_RESPONSE: whether the passive side
	 * accepts the path (CMMSG_FAILOVER_*). */
	uint8_t failover;
	uint8_t reserved[6];
};

/* A multicast group of InfiniBand (IBTA Vol 1, 15.2.5.17). */
struct cmproto_group {
	uint32_t qkey, flow_label;
	uint16_t mlid; /* in answers */
	uint8_t mtu, rate, sl, traffic_class, hop_limit;
	uint8_t join_state; /* enum sa_join_state */
	/* JOIN: the client has made the kernel a member of the IP multicast
	 * group.  So the fabric does not leave the group when the last client
	 * has left: the interface of IPoIB at the port does. */
	uint8_t is_shared;
	uint8_t reserved[7];
};

struct cmproto {
	uint32_t magic;	  /* CMPROTO_MAGIC */
	uint16_t version; /* CMPROTO_VERSION */
	uint16_t kind;	  /* enum cmproto_kind */
	uint32_t serial;  /* a request's number; DONE: that of its request */
	int32_t err;	  /* DONE: 0 or -errno */
	/* objects: the one that the message is about, and one that the broker
	 * has made */
	uint32_t id, new_id;
	uint32_t event; /* enum cmproto_event */
	/* REJECT: the reason of the REJ (IBTA 12.6.7.2); EVENT: see enum
	 * cmproto_event */
	int32_t status;
	struct cmproto_address at;
	struct {
		/* BIND: any_v4 and any_v6 bind the port at every IPv4 or IPv6
		 * address of the host, in place of at.local; may_share lets
		 * other objects with may_share have the same port */
		uint8_t any_v4, any_v6, may_share;
		uint8_t is_datagram; /* the messages are those of SIDR */
		/* BIND: only requests of clients of this broker are taken */
		uint8_t only_own;
	};
	/* LISTEN: how many requests may wait until the program reads them; 0:
	 * the broker chooses */
	uint32_t backlog;
	/* CONNECT: an unanswered message of the conversation is sent again up
	 * to max_retries times.  The wait before each retry is `timeout` (an
	 * exponent, see struct cmproto_qp).  Unless is_strict is set, the first
	 * waits are shorter. */
	uint8_t is_strict, max_retries, timeout;
	uint8_t private_bytes; /* how many bytes private_data has */
	/* the addresses are GIDs of InfiniBand.  Clients write and read IP
	 * addressing (IBTA A11) in the private data of REQ and SIDR_REQ; the
	 * server neither adds nor removes IP addressing. */
	uint8_t is_ib;
	/* BIND with is_ib: the addresses are IP addresses.  The object gets
	 * only requests whose IP addressing names such an address. */
	uint8_t is_ip;
	struct cmproto_qp qp;
	/* CONNECT: the path of the conversation; EVENT with CMPROTO_REQUEST:
	 * the path that the REQ names */
	struct cmproto_path path;
	struct {
		/* CONNECT, and EVENT with CMPROTO_REQUEST: the alternate
		 * path */
		struct cmproto_alternate alternate;
		/* JOIN, INTERFACE and the answers of INTERFACE_OF and JOIN */
		struct cmproto_group group;
	};
	uint8_t private_data[CMPROTO_PRIVATE];
	/*
	 * CONNECT: the id and the transaction id of the conversation, which the
	 * client draws; 0: the broker draws them.  When a client repeats the
	 * request to a successor it gives the same two, so that the peer takes
	 * the second REQ for a retry of the first.
	 */
	uint32_t call_id;
	uint64_t call_transaction;
	/* DONE, EVENT, RESUME, and RELEASE with id 0: a note with its seal
	 * (cm_seal.h), which the client does not read; all 0: none */
	uint8_t note[CMPROTO_NOTE];
};

_Static_assert(sizeof(struct cmproto) == CMPROTO_BYTES,
	       "tests/system/broker/mallory.py sends it");

#endif
