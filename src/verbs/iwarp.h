/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What librdmacm.so.1 asks of adverb's libibverbs.so.1 for queue pairs of iWARP
 * devices: rdma_cm makes the TCP connection and agrees with the peer by MPA
 * (iwarp/startup.h), and then gives the connection to the queue pair, which
 * enters RTS.
 *
 * The symbol is looked up by dlsym, as that of verbs/release.h: another library
 * or another release of adverb may lack it.
 */
#ifndef VERBS_IWARP_H
#define VERBS_IWARP_H

#include <infiniband/verbs.h>

#include "host/host.h"

#define VERBS_IWARP_VERSION 1

struct verbs_iwarp {
	/* Is `ip`, IPv4 as ::ffff:a.b.c.d, an address of the interface of this
	 * iWARP device? */
	bool (*has_address)(struct ibv_context *context, const uint8_t ip[16]);
	/* host_stream_open; prints a sentence if it fails. */
	int (*open)(struct ibv_context *context, uint32_t qpn,
		    const struct host_stream *s);
	/* host_stream_close */
	void (*close)(struct ibv_context *context, uint32_t qpn,
		      const void *arg);
	/* host_stream_abort */
	void (*abort)(struct ibv_context *context, uint32_t qpn,
		      const void *arg);
};

/* Returns the calls, which are static; NULL: this library has another version
 * of the struct. */
const struct verbs_iwarp *ibv_adverb_iwarp(uint32_t version);
typedef const struct verbs_iwarp *verbs_iwarp_calls(uint32_t version);

#endif
