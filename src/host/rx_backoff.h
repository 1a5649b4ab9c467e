/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When to look at the socket again.  A receiver that looks after each datagram
 * of a stream shares cache lines with the sender all the time: both get slower,
 * the sender by a fifth.  So after a look at a stream there may be a pause, and
 * the next look finds several datagrams:
 *
 *	at once	  | 1 | 1 |  | 1 | 1 |	 | 1 | 1 |
 *	paused	  | 5 |		 | 6 |		| 5 |
 *
 * A pause only delays a sender that waits for this receiver's answers.  So
 * looks with and without pauses are measured, each for a stretch of the stream;
 * the faster way is used, and the slower way is tried again now and then.
 *
 * Owner and lock: struct progress and its lock.  Sans-IO.
 */
#ifndef HOST_RX_BACKOFF_H
#define HOST_RX_BACKOFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RX_BACKOFF_NS	   20000
#define RX_BACKOFF_STRETCH (1 << 20) /* bytes of a measurement */
/* Bytes after a change of the way, before the measurement. */
#define RX_BACKOFF_SETTLE     (256 << 10)
#define RX_BACKOFF_STRETCH_NS 2000000 /* a slower flow is no stream */
#define RX_BACKOFF_TRIAL      8	      /* stretches between trials */
#define RX_BACKOFF_TRIAL_MAX  64      /* stretches between trials, at most */

struct rx_backoff {
	uint64_t until_ns; /* no look before; 0: at once */
	bool pauses;	   /* the present stretch has pauses */
	bool is_settled;   /* the present stretch is measured */
	uint64_t began_ns; /* when the measurement began */
	size_t bytes;	   /* received since then */
	uint64_t cost[2];  /* ns a MiB without and with pauses; 0: unknown */
	bool is_trial;	   /* the present stretch tries the slower way */
	/* Stretches between two trials, and stretches left before the next. */
	uint32_t trial, left;
};

/* Starts with no measurement, and no pauses. */
void rx_backoff_init(struct rx_backoff *p);
/* A look has brought @bytes, 0 if it found nothing, which were served by
 * now_ns. */
void rx_backoff_looked(struct rx_backoff *p, size_t bytes, uint64_t now_ns);
/* May the next look come at once, whatever the time is? */
static inline bool rx_backoff_is_off(const struct rx_backoff *p)
{
	return !p->until_ns;
}
/* Is it too soon for a look? */
static inline bool rx_backoff_waits(const struct rx_backoff *p, uint64_t now_ns)
{
	return now_ns < p->until_ns;
}

#endif
