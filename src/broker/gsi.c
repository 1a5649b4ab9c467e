/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/gsi.h"

#include "broker/steer.h"

#include "encap/rocev2.h"
#include "hdr/bth.h"
#include "hdr/mad.h"
#include "hdr/pkt.h"
#include "util/bits.h"
#include "wire/local_ip.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* after so many datagrams gsi_turn receives no further batch */
#define TURN_FRAMES  256
#define FLUSH_BLOCKS 2	/* 128 frames: a default receive buffer holds 277 */
#define FULL_MS	     1	/* until a full socket is tried again */
#define HOP_LIMIT    64 /* the TTL or hop limit of a datagram */
#define JOINED	     32 /* most frames of a datagram; every Linux takes 64 */

_Static_assert(GSI_FRAME == BTH_BYTES + EXT_DETH_BYTES + MAD_BYTES + ICRC_BYTES,
	       "the frames of a datagram follow each other without a gap");

bool gsi_attach(struct gsi *g, const struct gsi_agent *agent)
{
	if (g->agents == GSI_AGENTS)
		return false;
	g->agent[g->agents++] = *agent;
	return true;
}

/* Seals a frame that was made for a joined datagram and is sent alone. */
static void seal_alone(const struct inaddr *from, const struct inaddr *to,
		       uint8_t *bytes, size_t len)
{
	rocev2_seal(NULL, from, to, bytes, len - ICRC_BYTES, 0);
}

int gsi_open(struct gsi *g, int fd)
{
	const struct udp_offload allowed = {.gso = true, .gro = true};
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0), on = 1, err;

	if (copy < 0)
		return -errno;
	err = udp_init(&g->wire, copy, allowed, true);
	if (err)
		return err;
	/*
	 * This socket receives the datagrams of every IPv4 multicast group that
	 * a socket of the namespace has joined, and if the broker relays, those
	 * of every IPv6 group, too.  If only one socket receives an IPv4
	 * multicast datagram of another host, Linux does not simply give the
	 * datagram to that socket, but runs the steering program, which knows
	 * no class for the datagram.  With this socket there are at least two,
	 * and Linux gives each of them a copy.
	 */
	setsockopt(g->wire.fd, IPPROTO_IP, IP_MULTICAST_ALL, &on, sizeof(on));
	if (g->relay)
		setsockopt(g->wire.fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, &on,
			   sizeof(on));
	g->wire.seal = seal_alone;
	udp_join_datagrams(&g->wire);
	g->is_open = true;
	return 0;
}

static void drop_block(struct gsi *g, struct gsi_queue *q)
{
	struct gsi_block *b = q->first;

	q->first = b->next;
	if (!q->first)
		q->last = NULL;
	q->blocks--;
	g->blocks--;
	free(b);
}

static void append_queue(struct gsi *g, struct gsi_queue *q)
{
	q->next = NULL;
	if (g->last)
		g->last->next = q;
	else
		g->first = q;
	g->last = q;
}

/* Ends the turn of the first queue, which is freed if it is empty. */
static void end_turn(struct gsi *g)
{
	struct gsi_queue *q = g->first;

	g->first = q->next;
	if (!g->first)
		g->last = NULL;
	if (q->first)
		append_queue(g, q);
	else
		free(q);
}

/* Sends the first block of the queue whose turn it is.  The next queue has the
 * next turn, also if the socket took only a part of the block.  False: the
 * socket takes no more now. */
static bool flush_turn(struct gsi *g)
{
	struct gsi_block *b = g->first->first;

	b->sent += (uint32_t)udp_send(&g->wire, b->out + b->sent,
				      b->count - b->sent);
	g->is_full = b->sent < b->count;
	if (!g->is_full)
		drop_block(g, g->first);
	end_turn(g);
	return !g->is_full;
}

static void drop_all(struct gsi *g)
{
	while (g->first) {
		drop_block(g, g->first);
		end_turn(g);
	}
}

void gsi_close(struct gsi *g)
{
	while (g->is_open && g->first && flush_turn(g))
		;
	drop_all(g);
	if (g->is_open)
		udp_fini(&g->wire);
	g->is_open = false;
}

int gsi_fd(const struct gsi *g)
{
	return g->is_open ? g->wire.fd : -1;
}

static const struct gsi_agent *agent_of(const struct gsi *g, uint8_t class)
{
	for (uint32_t i = 0; i < g->agents; i++)
		if (g->agent[i].mgmt_class == class)
			return &g->agent[i];
	return NULL;
}

/* Does the packet carry a MAD for QP1 (IBTA 13.5.3.2)? */
static bool is_mad(const struct pkt *p)
{
	return p->bth.opcode == OPCODE_UD_SEND_ONLY &&
	       p->deth.qkey == MAD_QP1_QKEY && p->payload_len == MAD_BYTES;
}

/* Relays a frame to the process of the frame's class, which checks the frame.
 * False: the frame is of class 0 or has no BTH, or the broker relays nothing.
 */
static bool relay_frame(struct gsi *g, const struct udp_dgram *d)
{
	struct bth bth;
	uint32_t class;

	if (!g->relay || !bth_parse(d->bytes, d->len, &bth))
		return false;
	class = steer_class(bth.dest_qpn);
	if (class)
		g->relay(g->relay_user, class, d);
	return class != 0;
}

/*
 * Is the address from which d comes one of this host?  A program of this host
 * may send from a link-local address of one interface to an address of another,
 * and the kernel then reports the interface of the destination.  So the kernel
 * is asked about all interfaces.  That question leaves out the interfaces of a
 * VRF, so the kernel is also asked about the interface that it reports.
 */
static bool is_from_here(const struct udp_dgram *d)
{
	return local_ip_is(d->from.ip, 0) ||
	       (inaddr_is_link_local(d->from.ip) &&
		local_ip_is(d->from.ip, d->ifindex));
}

/* Is the datagram from a program of this host that does not own QP1 (gsi.h)?
 * The kernel is asked only once for successive datagrams of one address. */
static bool is_forged(struct gsi *g, const struct udp_dgram *d)
{
	if (d->from.port == ROCEV2_PORT)
		return false;
	if (!g->has_asked || g->asked_scope != d->ifindex ||
	    !inaddr_has_same_ip(g->asked.ip, d->from.ip)) {
		g->is_local = is_from_here(d);
		g->asked = d->from;
		g->asked_scope = d->ifindex;
		g->has_asked = true;
	}
	return g->is_local;
}

/* Relays one datagram, or passes its MAD to an agent, or counts the datagram as
 * dropped.  Ignores a multicast datagram if the broker relays nothing.  @id:
 * the IPv4 id that is tried first for the ICRC. */
static void take_datagram(struct gsi *g, const struct udp_dgram *d, uint16_t id,
			  uint64_t now_ns)
{
	const struct gsi_agent *agent;
	struct gsi_mad m = {.from = d->from, .to = d->to};
	struct mad mad;
	struct pkt p;

	/* the members of the multicast group have received the datagram by
	 * their own sockets, unless the broker relays */
	if (inaddr_is_multicast(d->to.ip)) {
		if (g->relay)
			g->relay(g->relay_user, 0, d);
		return;
	}
	if (relay_frame(g, d))
		return;
	if (!rocev2_open(NULL, &d->from, &d->to, d->bytes, d->len, &id) ||
	    !pkt_parse(d->bytes, d->len - ICRC_BYTES, &p)) {
		g->junk++;
		return;
	}
	if (p.bth.dest_qpn != GSI_QPN) {
		g->strays++;
		return;
	}
	if (!is_mad(&p) || !mad_parse(p.payload, MAD_BYTES, &mad)) {
		g->junk++;
		return;
	}
	if (is_forged(g, d)) {
		g->forged++;
		return;
	}
	agent = agent_of(g, mad.mgmt_class);
	if (!agent) {
		g->unserved++;
		return;
	}
	m.scope = inaddr_is_link_local(d->from.ip) ? d->ifindex : 0;
	m.remote_qpn = p.deth.src_qpn;
	m.pkey = p.bth.pkey;
	m.bytes = p.payload;
	g->served++;
	agent->receive(agent->user, &m, now_ns);
}

/* Takes each of the datagrams that the kernel has joined in d; an empty d is
 * one datagram.  Returns the number of datagrams. */
static size_t take_each(struct gsi *g, const struct udp_dgram *d,
			uint64_t now_ns)
{
	struct udp_dgram one = *d;
	size_t count = 0, at = 0;

	do {
		one.bytes = d->bytes + at;
		one.len = one.segment = bits_min_u64(d->segment, d->len - at);
		take_datagram(g, &one, (uint16_t)count, now_ns);
		count++;
		at += one.len;
	} while (at < d->len);
	return count;
}

void gsi_turn(struct gsi *g, uint64_t now_ns)
{
	struct udp_dgram got[UDP_BATCH];
	bool more = g->is_open;

	g->has_asked = false;
	/* The bound counts datagrams, since the kernel may join several in one
	 * entry of a batch.  The bound counts those that udp_receive drops,
	 * too: otherwise a flood of them would make the turn endless. */
	for (size_t taken = 0; more && taken < TURN_FRAMES;) {
		size_t n = udp_receive(&g->wire, got);

		taken += g->wire.read - n;
		for (size_t k = 0; k < n; k++)
			taken += take_each(g, &got[k], now_ns);
		more = !g->wire.is_drained;
	}
}

/* Without a socket the frames are lost. */
void gsi_flush(struct gsi *g)
{
	g->has_to = false;
	if (!g->is_open)
		drop_all(g);
	for (int i = 0; g->first && i < FLUSH_BLOCKS; i++)
		if (!flush_turn(g))
			return;
}

int gsi_patience(const struct gsi *g)
{
	return !g->first ? -1 : g->is_full ? FULL_MS : 0;
}

static struct gsi_queue *find_queue(const struct gsi *g, uint64_t owner)
{
	struct gsi_queue *q = g->first;

	while (q && q->owner != owner)
		q = q->next;
	return q;
}

/* Returns a new queue; NULL: there is no memory. */
static struct gsi_queue *add_queue(struct gsi *g, uint64_t owner)
{
	struct gsi_queue *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	q->owner = owner;
	append_queue(g, q);
	return q;
}

/* Returns a block with room for another frame of the owner; NULL: too many
 * frames wait, or there is no memory.  The owner gets another block only if
 * more blocks are free than the owner has. */
static struct gsi_block *last_block(struct gsi *g, uint64_t owner)
{
	struct gsi_queue *q = find_queue(g, owner);
	uint32_t has = q ? q->blocks : 0;
	struct gsi_block *b;

	if (q && q->last->frames < UDP_BATCH)
		return q->last;
	b = has < GSI_BLOCKS - g->blocks ? malloc(sizeof(*b)) : NULL;
	if (b && !q)
		q = add_queue(g, owner);
	if (!b || !q) {
		free(b);
		return NULL;
	}
	b->next = NULL;
	b->frames = b->count = b->sent = 0;
	if (q->last)
		q->last->next = b;
	else
		q->first = b;
	q->last = b;
	q->blocks++;
	g->blocks++;
	return b;
}

/* Is `to` an address of this host?  A datagram to such an address goes by the
 * loopback interface, where the IPv4 id of segment n is n (rocev2.h); a network
 * card may choose other ids. */
static bool is_near(struct gsi *g, const struct inaddr *to)
{
	if (inaddr_is_loopback(to->ip))
		return true;
	if (!g->has_to || !inaddr_has_same_ip(g->to.ip, to->ip))
		g->is_near = local_ip_is(to->ip, 0);
	g->to = *to;
	g->has_to = true;
	return g->is_near;
}

/* Can the frame of m follow the frames of d, the last datagram of b? */
static bool may_join(struct gsi *g, const struct gsi_block *b,
		     const struct udp_dgram *d, const struct gsi_mad *m)
{
	return g->is_open && g->wire.has.gso && b->count > b->sent &&
	       d->len < JOINED * GSI_FRAME && !m->scope && !d->ifindex &&
	       (m->to.port ? m->to.port : ROCEV2_PORT) == d->to.port &&
	       inaddr_has_same_ip(m->to.ip, d->to.ip) &&
	       inaddr_has_same_ip(m->from.ip, d->from.ip) && is_near(g, &d->to);
}

/* Returns the datagram for the next frame of b, whose MAD is m. */
static struct udp_dgram *dgram_of(struct gsi *g, struct gsi_block *b,
				  const struct gsi_mad *m)
{
	struct udp_dgram *d = &b->out[b->count];

	if (b->count && may_join(g, b, d - 1, m))
		return d - 1;
	*d = (struct udp_dgram){.from = m->from,
				.to = m->to,
				.ifindex = m->scope,
				.bytes = b->frame[b->frames],
				.segment = GSI_FRAME,
				.ttl = HOP_LIMIT};
	d->from.port = ROCEV2_PORT;
	if (!d->to.port)
		d->to.port = ROCEV2_PORT;
	b->count++;
	return d;
}

void gsi_send(struct gsi *g, const struct gsi_mad *m)
{
	struct gsi_block *b = last_block(g, m->owner);
	struct pkt p = {
		.bth = {.opcode = OPCODE_UD_SEND_ONLY,
			.pkey = m->pkey,
			.dest_qpn = m->remote_qpn,
			.psn = g->psn++ & BTH_PSN_MASK},
		.deth = {.qkey = MAD_QP1_QKEY, .src_qpn = GSI_QPN},
		.payload_len = MAD_BYTES,
	};
	struct udp_dgram *d;
	uint8_t *frame;
	size_t head;

	if (!b) {
		g->lost++;
		return;
	}
	d = dgram_of(g, b, m);
	frame = b->frame[b->frames++];
	head = pkt_write_headers(frame, &p);
	memcpy(frame + head, m->bytes, MAD_BYTES);
	d->len += rocev2_seal(NULL, &d->from, &d->to, frame, head + MAD_BYTES,
			      (uint16_t)(d->len / GSI_FRAME));
}

void gsi_send_frame(struct gsi *g, const struct cm_frame *f)
{
	struct gsi_mad m = {.remote_qpn = GSI_QPN,
			    .pkey = GSI_PKEY,
			    .scope = f->way.scope,
			    .owner = f->owner,
			    .bytes = f->mad};

	memcpy(m.from.ip, f->from, 16);
	memcpy(m.to.ip, f->to, 16);
	gsi_send(g, &m);
}
