/* SPDX-License-Identifier: BSD-2-Clause */
#include "encap/rocev2.h"

#include <string.h>

#include "encap/icrc.h"
#include "hdr/bth.h"
#include "util/check.h"
#include "util/crc.h"

#define NEAR_AHEAD  1024    /* a near id is ahead by this + ticks at most */
#define NEAR_BEHIND 64	    /* a near id is at most this far behind */
#define STARTS_MAX  3	    /* the largest rocev2_sender.starts */
#define MOVES_MAX   8	    /* the largest rocev2_sender.moves */
#define TICK_NS	    1000000 /* a silent sender's id grows by at most 1 a tick */

static uint32_t read_be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
	       (uint32_t)p[2] << 8 | p[3];
}

/* Returns the CRC register before the BTH of a datagram with id 0. */
static uint32_t pseudo_headers(const struct inaddr *from,
			       const struct inaddr *to, uint16_t udp_len)
{
	struct udp udp = {
		.sport = from->port, .dport = to->port, .length = udp_len};
	struct ip_v6 six = {.payload_length = udp_len,
			    .next_header = IP_PROTOCOL_UDP};

	if (inaddr_is_v4(to->ip)) {
		struct ip_v4 ip = {
			.header_bytes = IP_V4_BYTES,
			.total_length = (uint16_t)(IP_V4_BYTES + udp_len),
			.flags_fragment = IP_V4_DF,
			.protocol = IP_PROTOCOL_UDP,
			.src = read_be32(from->ip + 12),
			.dst = read_be32(to->ip + 12),
		};

		return icrc_headers_v4(&ip, &udp);
	}
	memcpy(six.src, from->ip, 16);
	memcpy(six.dst, to->ip, 16);
	return icrc_headers_v6(&six, &udp);
}

/* Returns the result of pseudo_headers, from the memo if the memo has it. */
static uint32_t known_headers(struct rocev2_memo *memo,
			      const struct inaddr *from,
			      const struct inaddr *to, uint16_t udp_len)
{
	struct rocev2_header *h;

	for (int i = 0; i < 2; i++) {
		h = &memo->headers[i];
		if (h->udp_len == udp_len && h->from.port == from->port &&
		    h->to.port == to->port &&
		    inaddr_has_same_ip(h->from.ip, from->ip) &&
		    inaddr_has_same_ip(h->to.ip, to->ip)) {
			memo->other = !i;
			return h->crc;
		}
	}
	h = &memo->headers[memo->other];
	memo->other = !memo->other;
	*h = (struct rocev2_header){.from = *from, .to = *to};
	h->udp_len = udp_len;
	h->crc = pseudo_headers(from, to, udp_len);
	return h->crc;
}

/*
 * Returns the CRC register after the IP and UDP headers and the bytes
 * [p, p + upto) of a packet whose ICRC is at p + len.
 */
static uint32_t cover_headers(struct rocev2_memo *memo,
			      const struct inaddr *from,
			      const struct inaddr *to, const uint8_t *p,
			      size_t len, size_t upto, uint16_t id)
{
	uint16_t udp_len = (uint16_t)(UDP_BYTES + len + ICRC_BYTES);
	uint32_t crc = memo ? known_headers(memo, from, to, udp_len)
			    : pseudo_headers(from, to, udp_len);

	if (inaddr_is_v4(to->ip))
		crc = icrc_with_id(crc, id);
	return icrc_update(icrc_bth(crc, p), p + BTH_BYTES, upto - BTH_BYTES);
}

size_t rocev2_seal(struct rocev2_memo *memo, const struct inaddr *from,
		   const struct inaddr *to, uint8_t *p, size_t len, uint16_t id)
{
	icrc_write(p + len, cover_headers(memo, from, to, p, len, len, id));
	return len + ICRC_BYTES;
}

size_t rocev2_seal_summed(struct rocev2_memo *memo, const struct inaddr *from,
			  const struct inaddr *to, uint8_t *p, size_t len,
			  uint16_t id, const struct rocev2_sum *sum)
{
	size_t pad = -sum->bytes & 3, head = len - pad - sum->bytes;
	uint32_t crc;

	CHECK(head >= BTH_BYTES && head <= len);
	crc = cover_headers(memo, from, to, p, len, head, id);
	crc = crc32_multiply(crc, sum->factor) ^ sum->crc;
	icrc_write(p + len, icrc_update(crc, p + len - pad, pad));
	return len + ICRC_BYTES;
}

bool rocev2_open(struct rocev2_memo *memo, const struct inaddr *from,
		 const struct inaddr *to, const uint8_t *p, size_t len,
		 uint16_t *id)
{
	struct icrc_hidden assumed = {*id, true}, actual;
	uint32_t syndrome;
	size_t total = IP_V4_BYTES + UDP_BYTES + len;

	if (len < BTH_BYTES + ICRC_BYTES || total > UINT16_MAX)
		return false;
	syndrome = cover_headers(memo, from, to, p, len - ICRC_BYTES,
				 len - ICRC_BYTES, *id) ^
		   icrc_read(p + len - ICRC_BYTES);
	if (!syndrome)
		return true;
	if (!inaddr_is_v4(to->ip) ||
	    !icrc_syndrome_id(syndrome, (uint16_t)total, assumed, &actual) ||
	    !actual.df)
		return false;
	*id = actual.id;
	return true;
}

/* Is id near `last`?  It may be a few ids behind, since packets may be late. It
 * may be some ids ahead, since packets may be lost or go to other hosts, and
 * since the id of a silent sender grows by up to one per tick. */
static bool is_near(uint16_t last, uint16_t id, uint64_t ticks)
{
	uint16_t ahead = (uint16_t)(id - last);

	return ahead <= NEAR_AHEAD + ticks || (uint16_t)-ahead <= NEAR_BEHIND;
}

static struct rocev2_sender *slot_of(struct rocev2_senders *s,
				     const uint8_t ip[16])
{
	struct rocev2_sender *from;
	uint32_t sum = 0;

	for (int i = 0; i < 16; i++)
		sum = sum * 31 + ip[i];
	from = &s->slots[sum % ROCEV2_SENDERS];
	if (memcmp(from->ip, ip, 16) != 0) {
		*from = (struct rocev2_sender){.is_known = false};
		memcpy(from->ip, ip, 16);
	}
	return from;
}

/* Returns whether the id is plausible, and updates the sender. */
static bool judge_id(struct rocev2_sender *from, uint16_t id, uint64_t ticks)
{
	bool follows = is_near(from->last, id, ticks);
	bool confirms = from->has_jumped && is_near(from->jump, id, ticks);
	bool is_due = follows || confirms || !from->is_damaged ||
		      from->starts == STARTS_MAX || from->moves == MOVES_MAX;

	if (from->starts < STARTS_MAX)
		from->starts = follows ? 0 : from->starts + 1;
	if (confirms && !follows && from->moves < MOVES_MAX)
		from->moves++;
	from->has_jumped = !is_due;
	from->jump = id;
	return is_due;
}

bool rocev2_id_is_due(struct rocev2_senders *s, const uint8_t ip[16],
		      uint16_t id, uint64_t now_ns)
{
	struct rocev2_sender *from = slot_of(s, ip);

	if (!from->is_known) {
		from->is_known = true;
		from->last = id;
		from->seen_ns = now_ns;
		return true;
	}
	if (!judge_id(from, id, (now_ns - from->seen_ns) / TICK_NS))
		return false;
	/* A late packet does not set the sequence back. */
	if ((uint16_t)(from->last - id) > NEAR_BEHIND)
		from->last = id;
	from->seen_ns = now_ns;
	return true;
}

void rocev2_damaged(struct rocev2_senders *s, const uint8_t ip[16])
{
	slot_of(s, ip)->is_damaged = true;
}

bool rocev2_is_intact(struct rocev2_senders *s, const struct inaddr *from,
		      const struct inaddr *to, const uint8_t *p, size_t len,
		      uint16_t id, uint64_t now_ns)
{
	uint16_t found = id;

	if (rocev2_open(&s->memo, from, to, p, len, &found))
		return found == id ||
		       rocev2_id_is_due(s, from->ip, found, now_ns);
	rocev2_damaged(s, from->ip);
	return false;
}
