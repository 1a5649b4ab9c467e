/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of adverb's libibverbs.so.1 for librdmacm.so.1, about queue pairs of
 * iWARP devices.  rdma_cm makes the TCP connection, exchanges the frames of MPA
 * with the peer (iwarp/startup.h), and then gives the connection to the queue
 * pair, which enters RTS.
 *
 * librdmacm looks the symbol ibv_adverb_iwarp up by dlsym and is not linked to
 * it: another libibverbs.so.1, or another release of adverb, may lack it.
 */
#ifndef VERBS_IWARP_H
#define VERBS_IWARP_H

#include <infiniband/verbs.h>

#include "host/host.h"

#define VERBS_IWARP_VERSION 2

struct verbs_iwarp {
	/* Returns whether the interface of this iWARP device has the address
	 * ip; IPv4 is written as ::ffff:a.b.c.d. */
	bool (*has_address)(struct ibv_context *context, const uint8_t ip[16]);
	/* Calls host_stream_open, which gives the connection s to the queue
	 * pair qpn.  Returns 0: libibverbs owns s->fd.  Returns -errno with a
	 * message: the caller still owns s->fd. */
	int (*open)(struct ibv_context *context, uint32_t qpn,
		    const struct host_stream *s);
	/* Calls host_stream_close: sends what was posted, then FIN; the news
	 * HOST_STREAM_ENDED follows.  Does nothing if the queue pair has no
	 * connection with this arg. */
	void (*close)(struct ibv_context *context, uint32_t qpn,
		      const void *arg);
	/* Calls host_stream_abort: ends the connection with this arg at once,
	 * if there is one.  No news follow. */
	void (*abort)(struct ibv_context *context, uint32_t qpn,
		      const void *arg);
};

/* Returns the calls, which are static, or NULL if `version` is not the
 * VERBS_IWARP_VERSION of this library. */
const struct verbs_iwarp *ibv_adverb_iwarp(uint32_t version);
typedef const struct verbs_iwarp *verbs_iwarp_calls(uint32_t version);

#endif
