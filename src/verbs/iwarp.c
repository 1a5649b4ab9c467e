/* SPDX-License-Identifier: BSD-2-Clause */
#include "verbs/iwarp.h"

#include <errno.h>

#include "device/netif.h"
#include "host/capture.h"
#include "host/capture_stream.h"
#include "verbs/fail.h"
#include "verbs/object.h"

static bool has_address(struct ibv_context *context, const uint8_t ip[16])
{
	return netif_has_address(v_context(context)->dev, ip);
}

static int open_stream(struct ibv_context *context, uint32_t qpn,
		       const struct host_stream *s)
{
	struct v_context *c = v_context(context);
	const char *why = "the adapter gives no reason";
	int err;

	if (!v_is_ours(c))
		return -v_fail(EPERM, V_FORKED, "rdma_connect or rdma_accept");
	err = host_stream_open(c->host, qpn, s, &why);
	if (err)
		v_fail(-err, V_CONNECT, why);
	return err;
}

static void close_stream(struct ibv_context *context, uint32_t qpn,
			 const void *arg)
{
	if (v_is_ours(v_context(context)))
		host_stream_close(v_context(context)->host, qpn, arg);
}

static void abort_stream(struct ibv_context *context, uint32_t qpn,
			 const void *arg)
{
	if (v_is_ours(v_context(context)))
		host_stream_abort(v_context(context)->host, qpn, arg);
}

const struct verbs_iwarp *ibv_adverb_iwarp(uint32_t version)
{
	static const struct verbs_iwarp calls = {
		.has_address = has_address,
		.open = open_stream,
		.close = close_stream,
		.abort = abort_stream,
		.capture_refused = capture_stream_refused,
		.capture = capture_sctp,
	};

	return version == VERBS_IWARP_VERSION ? &calls : NULL;
}
