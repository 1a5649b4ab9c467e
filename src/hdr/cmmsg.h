/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of the communication manager (IBTA Vol 1, 12.6).  One struct has the
 * fields of all kinds of message, of which each kind uses some; tables in
 * cmmsg.c have the place of each field in the message.  struct cmmsg_ip is the
 * header that RDMA IP CM puts before a program's private data (IBTA A11.3):
 *
 *	+-------+-------+-------+-------+-------------------------------+
 *	| major | minor | IP v. | rsvd  |          source port          |
 *	+-------+-------+-------+-------+-------------------------------+
 *	|  source address, 16 bytes; IPv4 in the last four bytes        |
 *	+---------------------------------------------------------------+
 *	|  destination address, 16 bytes; IPv4 in the last four bytes   |
 *	+---------------------------------------------------------------+
 *
 * Pure; a struct owns nothing.
 */
#ifndef HDR_CMMSG_H
#define HDR_CMMSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CMMSG_CLASS	    0x07 /* management class */
#define CMMSG_CLASS_VERSION 2
#define CMMSG_METHOD_SEND   0x03
#define CMMSG_PRIVATE_MAX   224 /* the most bytes of private data of any kind */
#define CMMSG_INFO_MAX	    72	/* the most bytes of additional information */
#define CMMSG_IP_BYTES	    36	/* the header of RDMA IP CM */

/* Attribute IDs (IBTA 12.6.1, 16.7.2). */
enum cmmsg_kind {
	CMMSG_REQ = 0x10,
	CMMSG_MRA = 0x11,
	CMMSG_REJ = 0x12,
	CMMSG_REP = 0x13,
	CMMSG_RTU = 0x14,
	CMMSG_DREQ = 0x15,
	CMMSG_DREP = 0x16,
	CMMSG_SIDR_REQ = 0x17,
	CMMSG_SIDR_REP = 0x18,
	CMMSG_LAP = 0x19,
	CMMSG_APR = 0x1a,
};

/* REJ reasons (IBTA 12.6.7.2). */
enum {
	CMMSG_REJ_NO_RESOURCES = 3,
	CMMSG_REJ_TIMEOUT = 4,
	CMMSG_REJ_BAD_COMM_ID = 6,
	CMMSG_REJ_BAD_SERVICE_ID = 8,
	CMMSG_REJ_BAD_SERVICE_TYPE = 9,
	CMMSG_REJ_STALE = 10,
	CMMSG_REJ_BAD_GID = 12,
	CMMSG_REJ_CONSUMER = 28,
};

/* The kind of message that an MRA or a REJ answers (IBTA 12.6.6.1, 12.6.7.1).
 */
enum { CMMSG_OF_REQ, CMMSG_OF_REP, CMMSG_OF_OTHER };

/* SIDR_REP status (IBTA 12.11.2.2). */
enum {
	CMMSG_SIDR_OK,
	CMMSG_SIDR_NO_SERVICE,
	CMMSG_SIDR_REJECTED,
	CMMSG_SIDR_NO_QP,
};

/* Failover Accepted of a REP (IBTA 12.6.8): what becomes of the alternate path
 * of the REQ. */
enum { CMMSG_FAILOVER_ACCEPTED, CMMSG_FAILOVER_UNSUPPORTED };

/* APR status (IBTA 12.8.2.1). */
enum { CMMSG_APR_BAD_COMM_ID = 1, CMMSG_APR_UNSUPPORTED = 2 };

/* The values of cmmsg_qp.transport that adverb uses. */
enum { CMMSG_TRANSPORT_RC, CMMSG_TRANSPORT_UC };

/* The primary or the alternate path in a REQ, with names as in the table of
 * IBTA 12.6.5.  local_*: the sender's end.  ack_timeout: the time 4.096 us *
 * 2^ack_timeout. */
struct cmmsg_path {
	uint16_t local_lid, remote_lid;
	uint8_t local_gid[16], remote_gid[16];
	uint32_t flow_label;
	uint8_t rate, traffic_class, hop_limit, sl, subnet_local, ack_timeout;
};

/* The attributes of a queue pair or an end-to-end context in a message.  They
 * are those of the sender, except remote_eecn and the qpn of a DREQ, which name
 * the receiver's end-to-end context and queue pair. */
struct cmmsg_qp {
	uint32_t qkey, qpn, psn, eecn, remote_eecn;
	uint8_t responder_resources, initiator_depth;
	uint8_t transport, extended_transport, flow_control;
	uint8_t retry_count, rnr_retry;
	uint16_t pkey;
	uint8_t mtu, rdc_exists, has_srq;
};

/* The fields of all messages, in host order, with names as in the tables of
 * IBTA 12.6.  The value t of a timeout or a delay stands for 4.096 us * 2^t.
 * Fields that a kind of message does not have are 0. */
struct cmmsg {
	enum cmmsg_kind kind;
	uint64_t transaction_id;
	/* SIDR_REQ and SIDR_REP have the request ID in local_id. */
	uint32_t local_id, remote_id;
	uint64_t service_id;
	uint64_t ca_guid;
	struct cmmsg_qp qp;
	/* The CM response timeouts of a REQ.  remote_timeout: how long the
	 * sender waits for a message of the receiver.  local_timeout: how long
	 * the receiver waits for a message of the sender. */
	uint8_t remote_timeout, local_timeout;
	uint8_t max_cm_retries;
	struct cmmsg_path primary, alternate;
	uint8_t ack_delay, failover; /* REP; failover: CMMSG_FAILOVER_* */
	uint8_t answers;	     /* MRA, REJ: CMMSG_OF_* */
	uint8_t service_timeout;     /* MRA */
	uint16_t reason;	     /* REJ: CMMSG_REJ_* */
	/* REJ, SIDR_REP, APR: how many bytes of `info` are valid. */
	uint8_t info_bytes;
	uint8_t status; /* SIDR_REP: CMMSG_SIDR_*; APR: CMMSG_APR_* */
	uint8_t info[CMMSG_INFO_MAX]; /* additional information */
	uint32_t ece_vendor;	      /* REQ, REP: 24 bits */
	uint32_t ece_options;	      /* the MAD's attribute modifier */
	/* The first cmmsg_private_bytes(kind) bytes are used. */
	uint8_t private_data[CMMSG_PRIVATE_MAX];
};

/* Makes the refusal of a REQ or a SIDR_REQ that belongs to no conversation.
 * REQ: a REJ with this reason (CMMSG_REJ_*).  SIDR_REQ: a SIDR_REP with the
 * status CMMSG_SIDR_NO_QP if the reason is CMMSG_REJ_NO_RESOURCES, else with
 * CMMSG_SIDR_NO_SERVICE. */
void cmmsg_refuse(const struct cmmsg *request, uint16_t reason,
		  struct cmmsg *refusal);
/* Makes the answer to a message that belongs to no conversation: a DREP to a
 * DREQ, a REJ with CMMSG_REJ_BAD_COMM_ID to a REP or RTU.  Returns false, with
 * *answer undefined, for a message of another kind, which needs no answer. */
bool cmmsg_answer_stray(const struct cmmsg *m, struct cmmsg *answer);

/* The header of RDMA IP CM in the private data; IPv4 addresses are stored as
 * ::ffff:a.b.c.d. */
struct cmmsg_ip {
	uint16_t src_port; /* in host order */
	uint8_t src[16], dst[16];
};

/* Returns how many bytes of private data a message of this kind has; they are
 * always sent in full. */
size_t cmmsg_private_bytes(enum cmmsg_kind kind);
/*
 * Reads a MAD of len bytes into *m.  Returns false, with *m undefined, if len <
 * MAD_BYTES, if the MAD is not a Send of base version 1 and of this class and
 * class version with an attribute of enum cmmsg_kind, or if info_bytes exceeds
 * CMMSG_INFO_MAX.  A LAP gives *m only the fields of its MAD header, local_id
 * and remote_id.
 */
bool cmmsg_parse(const uint8_t *mad, size_t len, struct cmmsg *m);
/* Writes MAD_BYTES at mad.  m->kind must not be CMMSG_LAP: adverb sends no LAP.
 */
void cmmsg_write(uint8_t *mad, const struct cmmsg *m);

/* Reads CMMSG_IP_BYTES at p.  Returns false, with *ip undefined, for an unknown
 * version of the header or of IP. */
bool cmmsg_ip_parse(const uint8_t *p, struct cmmsg_ip *ip);
/* Writes CMMSG_IP_BYTES at p.  The IP version is 4 if ip->dst is an IPv4
 * address, else 6; ip->src is of the same version. */
void cmmsg_ip_write(uint8_t *p, const struct cmmsg_ip *ip);

/* Returns the service ID of a port space, for example RDMA_PS_TCP, and of a
 * port in host order (IBTA A11.2). */
static inline uint64_t cmmsg_service_id(uint16_t space, uint16_t port)
{
	return (uint64_t)space << 16 | port;
}

/* Is the service ID that of a port space and a port (IBTA A11.2)? */
static inline bool cmmsg_is_port(uint64_t service_id)
{
	return service_id >> 24 == 1;
}

#endif
