/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of an interface, which the files of this folder share. */
#ifndef IPOIB_INSIDE_H
#define IPOIB_INSIDE_H

#include <stdlib.h>

#include "hdr/sa.h"
#include "ipoib/group.h"
#include "ipoib/ipoib.h"
#include "ipoib/neigh.h"
#include "ipoib/waiting.h"

/* The reasons why an interface is down.  The user is not told the same reason
 * twice in a row. */
enum ipoib_reason {
	IPOIB_REASON_NONE,
	IPOIB_REASON_PORT,     /* the port is not active, or has no LID */
	IPOIB_REASON_PKEY,     /* no full membership in the partition */
	IPOIB_REASON_MANAGER,  /* the port knows no subnet manager */
	IPOIB_REASON_SILENT,   /* the subnet administration does not answer */
	IPOIB_REASON_NO_GROUP, /* there is no broadcast group */
	IPOIB_REASON_REFUSED,  /* the join is refused for another reason */
};

#define STREAM_ACCEPTED_MAX 128 /* connections that neighbours have made */
#define STREAM_PER_PORT_MAX 8	/* such connections from one GID */

/* A connection that a neighbour has made. */
struct stream_accepted {
	uint32_t id;	    /* 0: the entry is free */
	struct hwaddr peer; /* the neighbour's address */
	/* when a packet was last received; before the first packet: when the
	 * connection was accepted */
	uint64_t used_ms;
};

struct ipoib {
	const struct ipoib_sink *sink; /* borrowed */
	void *ctx;		       /* for the functions of the sink */
	struct hwaddr self;	       /* the interface's own address */
	uint8_t mac[HWADDR_MAC_BYTES]; /* that of `self` */
	struct ipoib_port port;	       /* as ipoib_port was last told */
	bool has_port;		       /* ipoib_port was called */
	bool is_up;    /* the port has joined the broadcast group */
	bool ends;     /* ipoib_leave was called */
	bool was_full; /* the user knows that a joined group has no room */
	/* The reason that the user was told last; IPOIB_REASON_NONE: none since
	 * the interface was up. */
	enum ipoib_reason told;
	/* The parameters of the broadcast group; only if is_up. */
	struct sa_member broadcast;
	/* The MTU that is used, 1 to 5 for 256 to 4096 bytes: the smaller one
	 * of the broadcast group's MTU and the port's MTU; only if is_up. */
	uint8_t mtu;
	struct announce announce;
	struct group_table groups;
	struct neigh_table neighs;
	uint32_t last_id;	/* the id of the last question */
	uint64_t collision_ms;	/* when a collision of MACs may be told again */
	uint64_t deadline_ms;	/* the result of ipoib_deadline */
	uint32_t connected_mtu; /* the MTU of IP; 0: datagram mode */
	uint32_t last_stream;	/* the number of the newest connection */
	struct stream_accepted accepted[STREAM_ACCEPTED_MAX];
	struct ipoib_counters counters;
	uint8_t scratch[IPOIB_FRAME_MAX]; /* a translated packet or frame */
};

/* Returns the id of a new question. */
static inline uint32_t ipoib_next_id(struct ipoib *m)
{
	m->last_id++;
	m->last_id += !m->last_id;
	return m->last_id;
}

/* Gives back the address handle of a route that is to change or to end. */
static inline void ipoib_release_route(struct ipoib *m, struct route *r)
{
	if (r->handle)
		m->sink->release(m->ctx, r);
	r->handle = NULL;
}

/* Sends the packets that have waited for the route. */
static inline void ipoib_send_waiting(struct ipoib *m, struct route *r,
				      struct waiting *waiting)
{
	struct waiting_packet w;

	while ((w = waiting_take(waiting)).p) {
		m->sink->packet(m->ctx, r, w.p, w.bytes);
		free(w.p);
	}
}

#endif
