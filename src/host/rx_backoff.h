/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decides when to look at the socket again.  A receiver that reads the socket
 * after each datagram of a stream shares cache lines with the sender all the
 * time, which slows both down, the sender by a fifth.  So a look may be
 * followed by a pause, after which the next look finds several datagrams.  Each
 * number is how many datagrams a look finds:
 *
 *	at once	  | 1 | 1 |  | 1 | 1 |	 | 1 | 1 |
 *	paused	  | 5 |		 | 6 |		| 5 |
 *
 * If the sender waits for this receiver's ACKs, a pause gains nothing and only
 * delays the sender.  So looks with pauses and looks without are measured, each
 * for a stretch of the stream.  The faster way is used, but pauses only if they
 * save more than 1/33 of the time.  The other way is tried again now and then.
 *
 * Owner and lock: struct progress and its lock.  Sans-IO.
 */
#ifndef HOST_RX_BACKOFF_H
#define HOST_RX_BACKOFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RX_BACKOFF_NS	   20000     /* a pause */
#define RX_BACKOFF_STRETCH (1 << 20) /* bytes of a measurement */
/* Bytes at the beginning of a stretch that are not measured. */
#define RX_BACKOFF_SETTLE (256 << 10)
/* If a stretch takes longer, its bytes are not a stream. */
#define RX_BACKOFF_STRETCH_NS 2000000
#define RX_BACKOFF_TRIAL      8	 /* stretches between trials, at first */
#define RX_BACKOFF_TRIAL_MAX  64 /* stretches between trials, at most */

struct rx_backoff {
	uint64_t until_ns; /* until when a pause lasts; 0: no pause */
	bool pauses;	   /* the present stretch has pauses */
	bool is_settled;   /* the present stretch is measured */
	uint64_t began_ns; /* when the stretch or its measurement began */
	size_t bytes;	   /* received since began_ns */
	/* ns for each MiB, [0] without and [1] with pauses; 0: unknown. */
	uint64_t cost[2];
	bool is_trial; /* the present stretch tries the other way */
	/* trial: stretches between two trials.  left: stretches before the next
	 * trial. */
	uint32_t trial, left;
};

/* Starts with no measurement, and no pauses. */
void rx_backoff_init(struct rx_backoff *p);
/* Called after a look.  @bytes: the bytes that the look found, or 0; @now_ns:
 * when the engine had taken these bytes. */
void rx_backoff_looked(struct rx_backoff *p, size_t bytes, uint64_t now_ns);
/* Is there no pause, so that the next look may come at any time? */
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
