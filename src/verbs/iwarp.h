/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of adverb's libibverbs.so.1 for librdmacm.so.1, about queue pairs of
 * iWARP devices.  librdmacm makes the TCP connection or the SCTP association,
 * exchanges a request and a reply with the peer (iwarp/startup.h), and then
 * gives the connection or association to the queue pair, which enters RTS.
 *
 * librdmacm looks up the symbol ibv_adverb_iwarp by dlsym and is not linked to
 * it, because another libibverbs.so.1, or another release of adverb, may lack
 * the symbol.
 */
#ifndef VERBS_IWARP_H
#define VERBS_IWARP_H

#include <infiniband/verbs.h>

#include "host/host.h"

/* The version of struct verbs_iwarp, and of the structs that its calls take. */
#define VERBS_IWARP_VERSION 3

struct verbs_iwarp {
	/* Returns whether ip is an address by which this iWARP device is found
	 * (netif_has_address); IPv4 is written as ::ffff:a.b.c.d. */
	bool (*has_address)(struct ibv_context *context, const uint8_t ip[16]);
	/* Calls host_stream_open, which gives the connection s to the queue
	 * pair qpn.  Returns 0: libibverbs owns s->fd.  Returns -errno with a
	 * message: the caller still owns s->fd. */
	int (*open)(struct ibv_context *context, uint32_t qpn,
		    const struct host_stream *s);
	/* Calls host_stream_close: the queue pair qpn sends what was posted,
	 * then the end of its direction (TCP: FIN, SCTP: SHUTDOWN), and the
	 * event HOST_STREAM_ENDED is reported at the end.
	 * Does nothing in a forked child, or if the queue pair's connection was
	 * opened with another arg (host_stream.arg). */
	void (*close)(struct ibv_context *context, uint32_t qpn,
		      const void *arg);
	/* Calls host_stream_abort: ends the connection of the queue pair qpn at
	 * once, and no event of the connection is reported afterwards.  Does
	 * nothing in a forked child, or if the connection was opened with
	 * another arg (host_stream.arg). */
	void (*abort)(struct ibv_context *context, uint32_t qpn,
		      const void *arg);
	/* Writes a TCP connection that ends without a queue pair into the
	 * capture, if there is one (capture_stream_refused of
	 * host/capture_stream.h).  Takes only the locks that host/capture.h
	 * names.  The caller keeps s->fd. */
	void (*capture_refused)(const struct host_stream *s);
	/* Writes a packet of SCTP, which was sent or received, into the
	 * capture, if there is one (capture_sctp of host/capture.h).  The ports
	 * of `from` and `to` are those of UDP, or 0 without UDP. */
	void (*capture)(const struct inaddr *from, const struct inaddr *to,
			const uint8_t *packet, size_t bytes);
};

/* Returns the calls, which are static, or NULL if `version` is not the
 * VERBS_IWARP_VERSION of this library. */
const struct verbs_iwarp *ibv_adverb_iwarp(uint32_t version);
/* The type of ibv_adverb_iwarp, for dlsym. */
typedef const struct verbs_iwarp *verbs_iwarp_calls(uint32_t version);

#endif
