/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/frames.h"

#include "host/addresses.h"
#include "host/capture.h"
#include "host/fabric_link.h"

/* Sends the first k of n frames by UDP, and returns k. */
static size_t send_datagrams(struct progress *p, const struct engine_frame *f,
			     size_t n)
{
	struct udp_dgram d[UDP_BATCH];
	size_t sent;

	for (size_t i = 0; i < n; i++)
		d[i] = (struct udp_dgram){
			.from = f[i].from,
			.to = f[i].to,
			.ifindex = addresses_interface(&f[i]),
			.bytes = f[i].bytes,
			.len = f[i].len,
			.segment = f[i].segment,
			.tos = f[i].tos,
			.ttl = f[i].ttl,
		};
	sent = udp_send(&p->wire, d, n);
	for (size_t i = 0; i < sent; i++)
		capture_sent(&f[i]);
	if (sent)
		poll_policy_sent(&p->policy, f[sent - 1].len,
				 f[sent - 1].segment);
	return sent;
}

size_t frames_send(struct progress *p, const struct engine_frame *f, size_t n)
{
	size_t sent = 0;

	p->full_fd = -1;
	while (sent < n && p->full_fd < 0) {
		const struct engine_frame *first = f + sent;
		size_t run = 1, k;

		while (sent + run < n &&
		       !first[run].head_bytes == !first->head_bytes)
			run++;
		k = first->head_bytes ? fabric_link_send(first, run)
				      : send_datagrams(p, first, run);
		if (k < run)
			p->full_fd = first->head_bytes ? fabric_link_full_fd()
						       : p->wire.full_fd;
		sent += k;
	}
	return sent;
}
