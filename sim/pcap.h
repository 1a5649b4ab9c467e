/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A world's traffic as a capture in the pcapng format, at the times of the
 * world's clock.
 *
 * A frame is written when its sender sends it, as the sender made it.  Its
 * comment says what the link does with it.  The bytes of a byte stream are
 * written when they arrive, in TCP segments (iwarp/tcp_segment.h).  The
 * simulation does not simulate MPA's exchange: a connection begins with a
 * configuration.  pcap_connect writes an exchange that would lead to that
 * configuration.
 *
 * Without world.pcap.write the functions do nothing.  A capture changes nothing
 * in the world.  Sans-IO.
 */
#ifndef SIM_PCAP_H
#define SIM_PCAP_H

#include "sim/workload.h"

struct pcap_stream;
struct stream_config;

/* Bits that say how the link treats a frame. */
enum pcap_fate {
	PCAP_LOST = 1,	     /* drops it */
	PCAP_CHANGED = 2,    /* flips one bit */
	PCAP_CUT = 4,	     /* delivers only its first bytes */
	PCAP_LATE = 8,	     /* delays it */
	PCAP_COPY = 16,	     /* delivers it beside the original */
	PCAP_FORGED = 32,    /* delivers it, though its sender is an intruder */
	PCAP_UNPLUGGED = 64, /* drops it, since its sender is unplugged */
};

/* Begins a capture: from now on, `write` takes the bytes of the capture, with
 * `arg`.  The link type is that of the world's packets. */
void pcap_begin(struct world *w,
		void (*write)(void *arg, const void *bytes, size_t n),
		void *arg);
/* Writes the packet of frame f that begins at offset `off`.  fate: bits of enum
 * pcap_fate. */
void pcap_frame(struct world *w, const struct engine_frame *f, size_t off,
		unsigned fate);

/* Writes the packet of an InfiniBand link at p, from LRH to VCRC.  fate: bits
 * of enum pcap_fate. */
void pcap_packet(struct world *w, const uint8_t *p, size_t n, unsigned fate);

/* Writes the beginning of a new connection between the QPs of f[0], which is
 * MPA's initiator, and f[1].  c[i]: the configuration at the QP of f[i]. */
void pcap_connect(struct world *w, const struct flow *f,
		  const struct stream_config *c);
/* Writes the n bytes at p of f's stream, which arrive now. */
void pcap_bytes(const struct flow *f, const uint8_t *p, uint32_t n);
/* Writes the end of f's stream, of which the receiver learns now. */
void pcap_end(const struct flow *f);
/* Writes a reset if the connection *p has not ended in both directions, frees
 * **p, and sets *p to NULL.  Does nothing if *p is NULL. */
void pcap_disconnect(struct pcap_stream **p);

#endif
