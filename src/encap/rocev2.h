/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RoCEv2 (IBTA A17): a transport packet as the payload of one UDP datagram,
 * with its ICRC.  The kernel writes the IP header.  An IPv4 header that adverb
 * sends has DF and, from an unconnected socket, id 0, or id n for segment n of
 * a datagram that the kernel segments (UDP_SEGMENT).  IPv6 has no id.  Pure.
 */
#ifndef ENCAP_ROCEV2_H
#define ENCAP_ROCEV2_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/inaddr.h"

#define ROCEV2_PORT 4791

/*
 * A cache of the CRC registers of the last two headers, for a caller with many
 * packets of one flow: in a message the first packet has a length of its own.
 * Initially all zero.  Functions that take a memo also take NULL.
 */
struct rocev2_header {
	struct inaddr from, to;
	uint16_t udp_len;
	uint32_t crc; /* the register before the BTH, for id 0 */
};

struct rocev2_memo {
	struct rocev2_header headers[2];
	uint32_t other; /* the index of the header that was not used last */
};

/* Writes the ICRC of the packet at p, `len` bytes from the BTH on, to p + len,
 * as sent with `id` if over IPv4.  Returns the new length, len + ICRC_BYTES. */
size_t rocev2_seal(struct rocev2_memo *memo, const struct inaddr *from,
		   const struct inaddr *to, uint8_t *p, size_t len,
		   uint16_t id);

/* The CRC of a payload without its pad. */
struct rocev2_sum {
	uint32_t bytes;	 /* length of the payload */
	uint32_t crc;	 /* crc32_update(0, payload, bytes) */
	uint32_t factor; /* crc32_factor(bytes) */
};

/* Writes the ICRC as rocev2_seal does, without reading the payload, whose CRC
 * is in *sum.  Aborts if `len` is too short for sum->bytes. */
size_t rocev2_seal_summed(struct rocev2_memo *memo, const struct inaddr *from,
			  const struct inaddr *to, uint8_t *p, size_t len,
			  uint16_t id, const struct rocev2_sum *sum);
/*
 * Checks the ICRC of the packet at p, `len` bytes from the BTH to the ICRC.
 * Returns true if the ICRC is right under an IP header with DF and some id. The
 * caller sets *id to the id that it expects; the function sets *id to the id of
 * the packet.  For one corrupted IPv4 packet in 2^16 an id is found by chance,
 * so the caller passes an unexpected id to rocev2_id_is_due.
 */
bool rocev2_open(struct rocev2_memo *memo, const struct inaddr *from,
		 const struct inaddr *to, const uint8_t *p, size_t len,
		 uint16_t *id);

/*
 * Decides which ids are plausible.  A socket does not report whether a datagram
 * had a UDP checksum; hardware and the kernel's rxe send none and count up the
 * ids of their packets.  No id explains most damaged packets, so every id of a
 * sender is accepted until a damaged packet came from this sender
 * (rocev2_damaged).  From then on an id is accepted if it is near the last one.
 * Linux adds up to one per tick to the id of a sender that was silent, so an id
 * may be ahead by one more for each millisecond.  An id that is not near the
 * last one is refused, but if the next id is near the refused one, the sequence
 * has a new start.  After three ids in a row that were not near the last one,
 * or eight new starts in all, all ids of the sender are accepted: such a sender
 * has no sequence, or numbers its packets to other hosts in the same sequence.
 * A damaged packet is then accepted with a chance of 2^-16.
 */
#define ROCEV2_SENDERS 64

struct rocev2_sender {
	uint8_t ip[16];
	uint64_t seen_ns; /* the time of the last accepted id */
	uint16_t last;	  /* the newest accepted id */
	uint16_t jump;	  /* the refused id, if has_jumped */
	uint8_t starts;	  /* ids in a row that were not near `last` */
	uint8_t moves;	  /* new starts in all */
	bool is_known;	  /* `last` and seen_ns are set */
	bool has_jumped;  /* the last id was refused */
	bool is_damaged;  /* a damaged packet came from this sender */
};

/* The senders that one receiver knows, a hash table without chains: an address
 * with the same hash replaces a sender.  Initially all zero. */
struct rocev2_senders {
	struct rocev2_sender slots[ROCEV2_SENDERS];
	struct rocev2_memo memo; /* the headers of the last packets */
};

/* Returns whether `id`, which rocev2_open has found in the place of the
 * expected one, is plausible for a packet from `ip`. */
bool rocev2_id_is_due(struct rocev2_senders *s, const uint8_t ip[16],
		      uint16_t id, uint64_t now_ns);
/* Notes that a packet came from `ip` with an ICRC that no id explains. */
void rocev2_damaged(struct rocev2_senders *s, const uint8_t ip[16]);
/* Returns whether the packet at p, BTH to ICRC, is intact under the expected
 * `id` or under an id that is plausible for its sender; updates the senders. */
bool rocev2_is_intact(struct rocev2_senders *s, const struct inaddr *from,
		      const struct inaddr *to, const uint8_t *p, size_t len,
		      uint16_t id, uint64_t now_ns);

#endif
