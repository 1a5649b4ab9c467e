/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connection that an interface in connected mode makes with a neighbour
 * (RFC 4755), and the private data of the CM's messages for it:
 *
 *	+---------------+-----------------------------------------------+
 *	|       0       |      QPN of the sender's UD queue pair        |
 *	+---------------+-----------------------------------------------+
 *	|   bytes of the longest packet that the sender receives        |
 *	+---------------------------------------------------------------+
 *
 * Pure.
 */
#ifndef IPOIB_CONN_H
#define IPOIB_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONN_DATA_BYTES	   8
#define CONN_PAUSE_MS	   1000 /* after the first failure */
#define CONN_PAUSE_MOST_MS 60000
#define CONN_SHORT_MS	   2000 /* short: open for less than this time */
#define CONN_SHORTS	   2	/* short connections that are no failures */

enum conn_state {
	CONN_NONE,
	CONN_ASKED, /* the neighbour has not answered yet */
	CONN_OPEN,
};

/* All zero: there is no connection. */
struct neigh_conn {
	enum conn_state state;
	uint32_t id;	   /* only if state is not CONN_NONE */
	uint32_t most;	   /* bytes of a packet; only if state is CONN_OPEN */
	uint32_t failures; /* in sequence */
	uint32_t shorts;   /* short connections in sequence, not failures */
	uint16_t lid;	   /* of the neighbour, when it was asked */
	uint64_t retry_ms; /* before this time no connection is asked for */
	/* When a packet was last sent, or when the connection was asked for or
	 * opened, if that is later. */
	uint64_t used_ms;
	uint64_t opened_ms; /* only if state is CONN_OPEN */
};

/* The contents of the private data of a message. */
struct conn_data {
	uint32_t qpn;  /* of the sender's UD queue pair, 24 bits */
	uint32_t most; /* bytes of the longest packet that the sender takes */
};

/* Writes the private data. */
void conn_write(const struct conn_data *d, uint8_t p[CONN_DATA_BYTES]);
/* Reads the private data, which may be longer than CONN_DATA_BYTES.  Returns
 * false if the private data is shorter, or if its sender receives no packet. */
bool conn_read(const uint8_t *p, size_t bytes, struct conn_data *d);
/* May a connection be requested now? */
bool conn_may_begin(const struct neigh_conn *c, uint64_t now_ms);
/* Has exactly one request failed, and is the short pause after it not over? */
bool conn_is_soon(const struct neigh_conn *c, uint64_t now_ms);
/* Notes that the neighbour is asked for the connection `id`. */
void conn_begin(struct neigh_conn *c, uint32_t id, uint64_t now_ms);
/* Notes that the neighbour has accepted, and receives packets of at most `most`
 * bytes. */
void conn_open(struct neigh_conn *c, uint32_t most, uint64_t now_ms);
/* Notes that the request for a connection has failed.  The next connection is
 * asked for after a pause, which doubles with each failure until it is at least
 * CONN_PAUSE_MOST_MS. */
void conn_fail(struct neigh_conn *c, uint64_t now_ms);
/* Notes that there is no connection: the neighbour has refused it, has ended it
 * or has not answered, or the connection is broken.  This counts as a failure
 * (conn_fail) if the connection was never open.  It also counts as a failure if
 * the connection was short (open for less than CONN_SHORT_MS) and CONN_SHORTS
 * short connections came before it.  Otherwise another connection may begin at
 * once: a cut link or a neighbour that starts again ends one or two short
 * connections. */
void conn_lose(struct neigh_conn *c, uint64_t now_ms);
/* Notes that the neighbour asks for a connection, and so may accept again: ends
 * the pause, unless the pause follows more than CONN_SHORTS failures.
 * Without this exception, two ends whose connections break at once would end
 * each other's pauses for ever. */
void conn_asked(struct neigh_conn *c);
/* Forgets the connection, which this side has closed or which has ended after
 * CONN_SHORT_MS or more, and forgets the failures: another connection may begin
 * at once. */
void conn_end(struct neigh_conn *c);

#endif
