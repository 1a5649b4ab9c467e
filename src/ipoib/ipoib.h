/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPoIB (RFC 4391, RFC 4755): one interface, between the frames of a TAP device
 * and the packets of a UD queue pair and, in connected mode (ipoib/stream.h),
 * of connections.  The kernel resolves neighbours itself, as on Ethernet: ARP
 * and neighbour discovery are translated between MACs and hardware addresses of
 * IPoIB.  Sans-IO: the caller passes in frames, packets, answers of the subnet
 * administration and the time in milliseconds; the functions of struct
 * ipoib_sink take the results.
 *
 * Owner: the caller, one thread; no lock.  No function of a sink calls a
 * function of this header.
 */
#ifndef IPOIB_IPOIB_H
#define IPOIB_IPOIB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hdr/mad.h"
#include "hdr/sa.h"
#include "ipoib/announce.h"
#include "ipoib/conn.h"
#include "ipoib/hwaddr.h"
#include "ipoib/joined.h"
#include "ipoib/route.h"

#define IPOIB_HEADER_BYTES 4 /* of a packet: EtherType, then 2 zero bytes */
/* The bytes in front of a packet, which ipoib_packet may overwrite. */
#define IPOIB_HEADROOM	    10
#define IPOIB_PACKET_MAX    4096 /* bytes of a packet, with its header */
#define IPOIB_FRAME_MAX	    (IPOIB_PACKET_MAX + IPOIB_HEADROOM)
#define IPOIB_NEVER	    UINT64_MAX
#define IPOIB_CONNECTED_MTU 65520
/* bytes of a packet in connected mode, with its header */
#define IPOIB_STREAM_MAX (IPOIB_CONNECTED_MTU + IPOIB_HEADER_BYTES)

struct ipoib;

/* The port, as the subnet manager has configured it. */
struct ipoib_port {
	bool is_active;	 /* PortState is ACTIVE */
	bool has_pkey;	 /* the port's table has the P_Key, with full membership
			  */
	uint16_t pkey;	 /* the partition's, with the bit of full membership */
	uint16_t lid;	 /* the base LID; 0: none */
	uint16_t sm_lid; /* 0: the port knows no subnet manager */
	uint8_t mtu;	 /* the active MTU: 1 to 5, for 256 to 4096 bytes */
	uint8_t gid[16];
};

/* The interface: its MAC and, if it is up, values of its broadcast group. */
struct ipoib_link {
	bool is_up;
	uint8_t mac[HWADDR_MAC_BYTES];
	uint32_t mtu;		    /* of IP; only if is_up */
	struct sa_member broadcast; /* its qkey is the queue pair's; if is_up */
};

/* The sender of a packet. */
struct ipoib_from {
	uint32_t qpn;	/* of the sender's UD queue pair */
	uint16_t lid;	/* 0: the packet has come by a connection */
	bool is_global; /* the GIDs are known: those of a GRH or a connection */
	uint8_t sgid[16], dgid[16];
};

/* The functions by which the interface gives its results to the caller.  ctx is
 * that of ipoib_new. */
struct ipoib_sink {
	/* Asks the neighbour at the end of the route for a connection, with the
	 * private data.  True: stream_opened or stream_closed follows.  False:
	 * no more connections can be made now.  This function and the
	 * next two are called only in connected mode. */
	bool (*connect)(void *ctx, uint32_t id, const struct route *r,
			const uint8_t data[CONN_DATA_BYTES]);
	/* Sends a packet by a connection. */
	void (*stream)(void *ctx, uint32_t id, const uint8_t *p, size_t bytes);
	/* Closes a connection, or withdraws the request for one. */
	void (*close)(void *ctx, uint32_t id);
	/* Gives a frame to the kernel. */
	void (*frame)(void *ctx, const uint8_t *p, size_t bytes);
	/* Sends a packet.  May store an address handle in r->handle. */
	void (*packet)(void *ctx, struct route *r, const uint8_t *p,
		       size_t bytes);
	/* Frees r->handle, which is not NULL. */
	void (*release)(void *ctx, struct route *r);
	/* Sends a request to the subnet administration. */
	void (*ask)(void *ctx, const uint8_t mad[MAD_BYTES]);
	/* Attaches the queue pair to a group or, if `attaches` is false,
	 * detaches the queue pair from the group.  Returns whether attaching
	 * succeeded; detaching does not fail. */
	bool (*attach)(void *ctx, const uint8_t mgid[16], bool attaches);
	/* Takes the new state of the interface, which comes up, is down, or
	 * has changed.  If link->is_up is false, the queue pair was detached
	 * from all groups before. */
	void (*link)(void *ctx, const struct ipoib_link *link);
	/* Asks the caller to call ipoib_joined soon, because the kernel may
	 * have joined or left groups. */
	void (*look)(void *ctx);
	/* Stores the interface's addresses, at most `room`, without IPv6
	 * addresses that are not yet known to be unique.  Returns how many. */
	uint32_t (*addresses)(void *ctx, struct announce_address *all,
			      uint32_t room);
	/* Tells the user a sentence, without its full stop. */
	void (*say)(void *ctx, const char *text);
};

/* Counts of the frames and packets that the interface has dropped. */
struct ipoib_counters {
	/* Frames and packets that are malformed, too long for the interface or
	 * for a group, or not translatable; frames with a foreign source. */
	uint64_t bad;
	/* Frames to unknown MACs, or to groups for which there is no room. */
	uint64_t unknown;
	/* Packets that waited for a path, a join or a connection until a
	 * question to the subnet administration failed or their neighbour or
	 * group was forgotten, and packets that came soon after such a failed
	 * question.  Also packets whose place a newer packet has taken, and
	 * packets for which no memory was left. */
	uint64_t waited;
	/* Packets that are longer than the neighbour takes.  A packet that
	 * waited for a connection counts here if none could be made. */
	uint64_t too_long;
	/* Frames and packets while the interface was down, and frames after
	 * ipoib_leave. */
	uint64_t down;
};

/* Makes the interface of the UD queue pair qpn.  sink is borrowed; its
 * functions get ctx.  The caller frees the interface by ipoib_free.  NULL: out
 * of memory. */
struct ipoib *ipoib_new(const struct ipoib_sink *sink, void *ctx, uint32_t qpn);
/* Frees the interface; calls only the sink's release and close. */
void ipoib_free(struct ipoib *m);
/* Takes the present state of the port, and makes the MAC from the QPN and the
 * port's GID.  Calls the sink's link, with is_up false, in the first call; when
 * the P_Key, the MTU or the GID has changed; and when the port has become able
 * or unable to carry the interface. */
void ipoib_port(struct ipoib *m, const struct ipoib_port *port,
		uint64_t now_ms);
/* Has ipoib_turn join all groups again, and discards all paths, because the
 * subnet manager may no longer know the groups and paths of this port. */
void ipoib_reregister(struct ipoib *m, uint64_t now_ms);
/* Takes the list of the groups that the kernel has joined. */
void ipoib_joined(struct ipoib *m, const struct joined *j, uint64_t now_ms);
/* Sends a frame of the kernel as a packet.  Overwrites the frame. */
void ipoib_frame(struct ipoib *m, uint8_t *p, size_t bytes, uint64_t now_ms);
/* Gives the kernel, as a frame, a packet that the queue pair or a connection
 * (stream_from) has received.  Overwrites the packet and the IPOIB_HEADROOM
 * bytes in front of it. */
void ipoib_packet(struct ipoib *m, const struct ipoib_from *from, uint8_t *p,
		  size_t bytes, uint64_t now_ms);
/* Takes a MAD from the subnet administration; ignores a MAD that is no answer.
 */
void ipoib_answer(struct ipoib *m, const uint8_t *mad, size_t bytes,
		  uint64_t now_ms);
/* Leaves all groups, and joins none from now on.  Returns whether each leave
 * was answered or given up. */
bool ipoib_leave(struct ipoib *m, uint64_t now_ms);
/* Does the work that is due: joins, leaves, path requests, announcements. */
void ipoib_turn(struct ipoib *m, uint64_t now_ms);
/* Returns when ipoib_turn must be called; IPOIB_NEVER: it need not be. */
uint64_t ipoib_deadline(const struct ipoib *m);
/* Returns the interface's counters, which ipoib_free frees. */
const struct ipoib_counters *ipoib_counters(const struct ipoib *m);

#endif
