/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Questions to the subnet administration and its answers (IBTA Vol 1, 15):
 * MCMemberRecord to join and leave multicast groups (15.2.5.17), PathRecord for
 * the path to a GID (15.2.5.16).  After the common header of hdr/mad.h:
 *
 *	24  header of RMPP
 *	36  SM_Key
 *	44  AttributeOffset
 *	48  ComponentMask: the fields of the record that a question gives
 *	56  the record
 */
#ifndef HDR_SA_H
#define HDR_SA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hdr/mad.h"

#define SA_CLASS   3
#define SA_VERSION 2

/* How a port is a member of a group (IBTA Vol 1, 15.2.5.17). */
enum sa_join_state {
	SA_JOIN_FULL = 1,
	SA_JOIN_SEND_ONLY = 4,
	/* sends only, and keeps the group in being as a full member does */
	SA_JOIN_FULL_SENDER = 8,
};

enum sa_kind {
	SA_MEMBER, /* the answer to a join */
	SA_LEFT,   /* the answer to a leave */
	SA_PATH,   /* the answer to a question for a path */
};

/* A member of a group, and the parameters of the group. */
struct sa_member {
	uint8_t mgid[16], port_gid[16];
	uint32_t qkey;
	uint32_t flow_label; /* 20 bits */
	uint16_t mlid;
	uint16_t pkey;
	uint8_t mtu;  /* 1 to 5: 256 to 4096 bytes */
	uint8_t rate; /* as enum ibv_rate */
	uint8_t sl;
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint8_t join_state; /* bits of enum sa_join_state */
};

/* Fields that a question for a path may leave out: bits of the component mask
 * of a PathRecord. */
enum sa_path_field {
	SA_PATH_SERVICE = 3 << 0, /* both parts of the ServiceID */
	SA_PATH_TRAFFIC_CLASS = 1 << 10,
	SA_PATH_PKEY = 1 << 13,
	SA_PATH_SL = 1 << 15,
};

struct sa_path {
	uint64_t service_id;
	uint8_t dgid[16], sgid[16];
	uint32_t flow_label; /* 20 bits */
	uint16_t dlid, slid;
	uint16_t pkey;
	uint8_t mtu;  /* 1 to 5: 256 to 4096 bytes */
	uint8_t rate; /* as enum ibv_rate */
	uint8_t sl;
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint8_t life_time; /* an exponent: 4.096 us * 2^life_time */
};

struct sa_answer {
	enum sa_kind kind;
	uint32_t id;	 /* the id of the question */
	uint16_t status; /* 0: success, and `member` or `path` is set */
	union {
		struct sa_member member; /* SA_MEMBER; none for SA_LEFT */
		struct sa_path path;	 /* SA_PATH */
	};
};

/* Writes a request by which the port m->port_gid joins the group m->mgid with
 * m->pkey in the states m->join_state.  The answer has the same id.  If `makes`
 * is true and the group does not exist, the administration creates the group
 * with the parameters of *m; if m->mtu is 0, the administration chooses MTU,
 * rate and hop limit. */
void sa_write_join(uint8_t mad[MAD_BYTES], uint32_t id,
		   const struct sa_member *m, bool makes);
/* Writes a request by which the port m->port_gid leaves the group m->mgid in
 * the states m->join_state.  The answer has the same id. */
void sa_write_leave(uint8_t mad[MAD_BYTES], uint32_t id,
		    const struct sa_member *m);
/* Writes a question for one reversible path from path->sgid to path->dgid with
 * those fields of *path that are in `fields` (enum sa_path_field).  The answer
 * has the same id. */
void sa_write_path(uint8_t mad[MAD_BYTES], uint32_t id,
		   const struct sa_path *path, uint32_t fields);
/* Returns the id of a question or an answer. */
uint32_t sa_id(const uint8_t mad[MAD_BYTES]);
/* Reads an answer.  Returns false, with *answer undefined, if `bytes` is not
 * MAD_BYTES, if the MAD is no answer of enum sa_kind, or if its status is 0 and
 * its record has impossible values. */
bool sa_read(const uint8_t *mad, size_t bytes, struct sa_answer *answer);

#endif
