/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/frames.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "host/addresses.h"
#include "host/capture.h"
#include "host/fabric_link.h"
#include "log/log.h"

/* Returns what a user can do after the kernel has refused a packet with `err`,
 * as the end of a sentence. */
static const char *refusal_remedy(int err)
{
	switch (err) {
	case EPERM:
	case EACCES:
		return "; a firewall or a BPF program of this host forbids "
		       "the packets; have UDP to port 4791 allowed there";
	case EINVAL:
	case EADDRNOTAVAIL:
		return "; the source address may be gone, or not usable yet "
		       "(\"tentative\" in `ip address`)";
	case ENETUNREACH:
	case EHOSTUNREACH:
	case ENETDOWN:
		return "; `ip route get` with the second address shows "
		       "whether there is a route, and `ip link` whether its "
		       "interface is up";
	case EMSGSIZE:
		return "; the packets are longer than the route allows; use a "
		       "smaller path MTU, or a larger MTU of the interface";
	}
	return "";
}

static void name_address(const struct inaddr *a, char text[INET6_ADDRSTRLEN])
{
	bool is_v4 = inaddr_is_v4(a->ip);

	text[0] = '\0';
	inet_ntop(is_v4 ? AF_INET : AF_INET6, is_v4 ? a->ip + 12 : a->ip, text,
		  INET6_ADDRSTRLEN);
}

/* Tells the user that the kernel has refused d.  LOG_FILES_CLOSED tells of a
 * descriptor that the program has closed (EBADF).  A socket that was full when
 * segments were sent one by one has refused nothing. */
static void say_refusal(const struct udp_dgram *d)
{
	char from[INET6_ADDRSTRLEN], to[INET6_ADDRSTRLEN];

	if (d->err == EBADF || d->err == EAGAIN || d->err == ENOBUFS)
		return;
	name_address(&d->from, from);
	name_address(&d->to, to);
	log_say(LOG_SEND_REFUSED, (uint64_t)d->err,
		"the kernel refuses to send RDMA packets from %s to %s, which "
		"are lost: %s%s",
		from, to, strerror(d->err), refusal_remedy(d->err));
}

/* Sends the first k of n frames by UDP, and returns k.  The first of them is
 * the frame `at` of the last engine_tx. */
static size_t send_datagrams(struct progress *p, const struct engine_frame *f,
			     size_t n, size_t at)
{
	struct udp_dgram *d = p->tx.sent;
	size_t taken;

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
	taken = udp_send(&p->wire, d, n);
	for (size_t i = 0; i < taken; i++) {
		if (!d[i].err) {
			capture_sent(&f[i]);
			continue;
		}
		engine_tx_refused(p->engine, at + i);
		say_refusal(&d[i]);
	}
	if (taken && !d[taken - 1].err)
		poll_policy_sent(&p->policy, f[taken - 1].len,
				 f[taken - 1].segment);
	return taken;
}

size_t frames_send(struct progress *p, const struct engine_frame *f, size_t n)
{
	size_t sent = 0;

	p->tx.full_fd = -1;
	while (sent < n && p->tx.full_fd < 0) {
		const struct engine_frame *first = f + sent;
		size_t run = 1, k;

		while (sent + run < n &&
		       !first[run].head_bytes == !first->head_bytes)
			run++;
		k = first->head_bytes ? fabric_link_send(first, run)
				      : send_datagrams(p, first, run, sent);
		if (k < run)
			p->tx.full_fd = first->head_bytes
						? fabric_link_full_fd()
						: p->wire.full_fd;
		sent += k;
	}
	if (shared_own(&p->activity.is_full) != (p->tx.full_fd >= 0))
		shared_store(&p->activity.is_full, p->tx.full_fd >= 0);
	return sent;
}
