/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connected mode (RFC 4755).  An interface sends by the connections that it
 * has made, and receives by those that its neighbours have made.  So two
 * interfaces that send to each other have two connections, one for each
 * direction.  Packets to a neighbour without a connection go by UD, if they are
 * short enough.
 */
#ifndef IPOIB_STREAM_H
#define IPOIB_STREAM_H

#include "ipoib/ipoib.h"

struct neigh;

/* ---- for the program ---- */

/* Turns the connected mode on, before the first ipoib_port.  mtu: of IP, at
 * most IPOIB_CONNECTED_MTU. */
void stream_enable(struct ipoib *m, uint32_t mtu);
/* Takes a request for a connection, with private data, from the interface at a
 * GID.  Returns the id of the connection, and stores the private data
 * of the answer; 0: the connection is refused, since this interface is down,
 * ends or is in datagram mode, the private data are wrong, or there is no room
 * for a connection. */
uint32_t stream_asked(struct ipoib *m, const uint8_t gid[16],
		      const uint8_t *data, size_t bytes,
		      uint8_t answer[CONN_DATA_BYTES], uint64_t now_ms);
/* Notes that a neighbour has accepted a connection, with private data, and
 * sends the packets that have waited.  Returns false if no such connection was
 * requested, or if the private data are wrong: the caller closes the
 * connection, and calls stream_closed. */
bool stream_opened(struct ipoib *m, uint32_t id, const uint8_t *data,
		   size_t bytes, uint64_t now_ms);
/* Notes that the neighbour has refused the connection `id` or not answered, or
 * that the connection has ended.  Then, if the path is known, calls stream_send
 * for each packet that waited for the connection.  Does not call the sink's
 * close for this connection. */
void stream_closed(struct ipoib *m, uint32_t id, uint64_t now_ms);
/* Stores the sender of a packet that has come by a connection, for
 * ipoib_packet.  Returns false if the connection is not known. */
bool stream_from(struct ipoib *m, uint32_t id, struct ipoib_from *from,
		 uint64_t now_ms);

/* ---- for this folder ---- */

/*
 * Sends a packet to a neighbour whose path is known: by the connection, or by
 * UD.  Asks for a connection if there is none.  A packet that is too long for
 * UD waits while a request for a connection has no answer, and during the short
 * pause after the first failed request (conn_is_soon).  If otherwise neither UD
 * nor the connection can take the packet, the kernel is told how long a packet
 * may be.
 */
void stream_send(struct ipoib *m, struct neigh *n, const uint8_t *p,
		 size_t bytes, uint64_t now_ms);
/* Sends the packets that wait for the path or the connection. */
void stream_send_waiting(struct ipoib *m, struct neigh *n, uint64_t now_ms);
/* Closes the connection that this side has made with a neighbour or has asked
 * for, if there is one, and forgets the failures of earlier requests. */
void stream_forget(struct ipoib *m, struct neigh *n);
/* Closes all connections. */
void stream_end(struct ipoib *m);
/* Closes connections that are not used, and asks again for those for which
 * packets wait.  Returns the time of the next call, or IPOIB_NEVER. */
uint64_t stream_turn(struct ipoib *m, uint64_t now_ms);

#endif
