/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/link.h"

#include <stdlib.h>
#include <string.h>

#include "encap/rocev2.h"
#include "hdr/opcode.h"
#include "sim/pcap.h"
#include "util/bits.h"

#define WIRE_NS	 5000	/* the time of a frame on the link */
#define LATE_NS	 300000 /* the longest delay of a frame */
#define NUDGE_NS 500	/* the longest of the short delays of a frame */

/* Flips one bit.  False: the caller drops the frame. */
static bool corrupt_frame(struct world *w, struct flight *f)
{
	uint32_t bit = rng_below(&w->rng, (uint32_t)f->len * 8);

	f->bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	/* The ICRC does not cover byte 4 of the BTH (FECN, BECN, reserved), so
	 * the receiver would take the frame. */
	if (bit / 8 == 4)
		return false;
	/* the UDP checksum may be absent, or match the changed bytes */
	f->checksummed = rng_chance(&w->rng, 500000);
	return true;
}

/*
 * Under IPv4 the ICRC covers the identification field, which a socket does not
 * show.  So the ICRC of 1 damaged frame in 2^16 is right for some value of the
 * field, and the receiver might take that value for the frame's own.  Returns
 * whether the ICRC is right for a value other than 0.  The link then drops the
 * frame, so at most 1 damaged frame in 2^32 is accepted.
 */
static bool looks_whole(const struct flight *f)
{
	uint16_t id = 0;

	return inaddr_is_v4(f->to.ip) &&
	       rocev2_open(NULL, &f->from, &f->to, f->bytes, f->len, &id) && id;
}

/* Damages a copy with the chances of w->faults.  Returns bits of enum
 * pcap_fate; PCAP_LOST: the copy is dropped. */
static unsigned damage_copy(struct world *w, struct flight *f)
{
	unsigned fate = 0;

	if (rng_chance(&w->rng, w->faults.drop))
		return PCAP_LOST;
	if (rng_chance(&w->rng, w->faults.corrupt)) {
		fate |= PCAP_CHANGED;
		if (!corrupt_frame(w, f))
			return fate | PCAP_LOST;
	}
	if (rng_chance(&w->rng, w->faults.truncate)) {
		fate |= PCAP_CUT;
		f->len = rng_below(&w->rng, (uint32_t)f->len) + 1;
		f->checksummed = false;
	}
	/* An undamaged packet may have an identification other than 0: packet k
	 * of a burst has k. */
	return fate && looks_whole(f) ? fate | PCAP_LOST : fate;
}

/* Delays a copy with the chances of w->faults.  Returns bits of enum pcap_fate.
 */
static unsigned delay_copy(struct world *w, struct flight *f)
{
	uint32_t most = rng_chance(&w->rng, w->faults.reorder)	 ? LATE_NS
			: rng_chance(&w->rng, w->faults.reorder) ? NUDGE_NS
								 : 0;

	if (most)
		f->at_ns += rng_below(&w->rng, most);
	return most ? PCAP_LATE : 0;
}

/* Returns the index of the host with this address; -1: no host has it. */
static int host_of(const struct world *w, const struct inaddr *a)
{
	for (uint32_t i = 0; i < w->host_count; i++)
		if (!memcmp(a->ip, w->hosts[i].addr.ip, 16))
			return (int)i;
	return -1;
}

/* Sends the packet of f that begins at offset `off` to the host with index
 * `to`.  fate: PCAP_COPY for a second copy, else 0. */
static void send_copy(struct world *w, const struct engine_frame *f, int to,
		      size_t off, unsigned fate)
{
	struct flight *c = malloc(sizeof(*c));
	bool clean = world_is_quiet(w);

	if (!c)
		abort();
	c->from = f->from;
	c->to = f->to;
	c->tos = f->tos;
	c->to_host = (uint8_t)to;
	c->checksummed = true;
	c->len = bits_min_u64(f->segment, f->len - off);
	if (c->len > sizeof(c->bytes))
		abort();
	memcpy(c->bytes, f->bytes + off, c->len);
	c->at_ns = w->now_ns + WIRE_NS;
	if (!clean)
		fate |= damage_copy(w, c);
	if (!clean && !(fate & PCAP_LOST))
		fate |= delay_copy(w, c);
	pcap_frame(w, f, off, fate);
	if (fate & PCAP_LOST)
		free(c);
	else
		world_fly(w, c);
}

/*
 * Sends a frame that another user of the host has forged after that user has
 * seen frame f.  The forged frame arrives before f.  Only the source port, the
 * PSN, the last byte before the ICRC and the ICRC may differ from those of f.
 */
static void send_intruder(struct world *w, const struct engine_frame *f, int to)
{
	struct flight *c = malloc(sizeof(*c));
	size_t len = bits_min_u64(f->segment, f->len) - 4;
	struct engine_frame sent;

	if (!c)
		abort();
	*c = (struct flight){.from = f->from,
			     .to = f->to,
			     .to_host = (uint8_t)to,
			     .tos = f->tos,
			     .checksummed = true,
			     .at_ns = w->now_ns + WIRE_NS / 2};
	c->from.port = WORLD_INTRUDER;
	memcpy(c->bytes, f->bytes, len);
	c->bytes[11] =
		(uint8_t)(c->bytes[11] + rng_below(&w->rng, 3)); /* PSN */
	c->bytes[len - 1] ^= 0x5a;
	c->len = rocev2_seal(NULL, &c->from, &c->to, c->bytes, len, 0);
	sent = (struct engine_frame){.from = c->from,
				     .to = c->to,
				     .tos = c->tos,
				     .bytes = c->bytes,
				     .len = c->len,
				     .segment = c->len};
	pcap_frame(w, &sent, 0, PCAP_FORGED);
	world_fly(w, c);
}

/* Sends a packet into the subnet.  The cable of h may lose the packet. */
static void send_by_lid(struct world *w, const struct host *h,
			const struct engine_frame *f)
{
	struct flight *c = calloc(1, sizeof(*c));
	bool is_lost =
		!world_is_quiet(w) && rng_chance(&w->rng, w->faults.drop);

	if (!c || f->head_bytes + f->len > sizeof(c->bytes))
		abort();
	memcpy(c->bytes, f->head, f->head_bytes);
	memcpy(c->bytes + f->head_bytes, f->bytes, f->len);
	c->len = f->head_bytes + f->len;
	c->to_host = h->index;
	c->starts = h->starts;
	c->port = f->port;
	c->at_ns = w->now_ns + WIRE_NS;
	pcap_packet(w, c->bytes, c->len, is_lost ? PCAP_LOST : 0);
	if (is_lost)
		free(c);
	else
		world_fly(w, c);
}

void link_send(struct world *w, const struct host *h,
	       const struct engine_frame *f)
{
	int to = w->subnet ? 0 : host_of(w, &f->to);

	world_hash(w, &w->now_ns, sizeof(w->now_ns));
	world_hash(w, f->head, f->head_bytes);
	world_hash(w, f->bytes, f->len);
	if (w->subnet) {
		send_by_lid(w, h, f);
		return;
	}
	if (to < 0) {
		world_fail(w, "host %u sends to an address of no host",
			   h->index);
		return;
	}
	if (h->unplugged_ns > w->now_ns) {
		for (size_t off = 0; off < f->len; off += f->segment)
			pcap_frame(w, f, off, PCAP_UNPLUGGED);
		return;
	}
	/* a UD queue pair takes datagrams from every source */
	if (w->kind.sources && f->bytes[0] >> 5 != OPCODE_SERVICE_UD &&
	    rng_chance(&w->rng, 50000))
		send_intruder(w, f, to);
	for (size_t off = 0; off < f->len; off += f->segment) {
		int copies = 1;

		if (!world_is_quiet(w) &&
		    rng_chance(&w->rng, w->faults.duplicate))
			copies = 2;
		for (int i = 0; i < copies; i++)
			send_copy(w, f, to, off, i ? PCAP_COPY : 0);
	}
}
