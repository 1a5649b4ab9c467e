/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RoCEv2 (IBTA A17): a transport packet as the payload of one UDP datagram,
 * with its ICRC.  The kernel writes the IP header.  An IPv4 header that adverb
 * sends has DF set.  If the socket is not connected, the header's id is 0, or n
 * for segment n of a datagram that the kernel segments (UDP_SEGMENT).  IPv6 has
 * no id.
 *
 * Pure functions: their only state is what the caller passes.
 */
#ifndef ENCAP_ROCEV2_H
#define ENCAP_ROCEV2_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/inaddr.h"

#define ROCEV2_PORT 4791

/* The outer headers of a packet, and their CRC register. */
struct rocev2_header {
	struct inaddr from, to; /* the addresses and UDP ports */
	/* bytes from the UDP header to the ICRC, both included */
	uint16_t udp_len;
	uint32_t crc; /* the register before the BTH, for id 0 */
};

/*
 * A cache of the last two headers, for a caller that has many packets of one
 * flow.  It has two headers, since the first or the last packet of a message
 * differs in length from the middle ones.  Initially all zero.  Functions that
 * take a memo also take NULL, and then cache nothing.
 */
struct rocev2_memo {
	struct rocev2_header headers[2]; /* udp_len 0: not used yet */
	uint32_t other; /* the index of the header that was not used last */
};

/* Computes the ICRC of the packet at p, and writes it behind the packet, at
 * p + len.  The packet has `len` bytes from the BTH on, at least BTH_BYTES.
 * `id` is the id of the IPv4 header; IPv6 has none.  Returns the new length,
 * len + ICRC_BYTES. */
size_t rocev2_seal(struct rocev2_memo *memo, const struct inaddr *from,
		   const struct inaddr *to, uint8_t *p, size_t len,
		   uint16_t id);

/* The CRC of a payload without its pad. */
struct rocev2_sum {
	uint32_t bytes;	 /* length of the payload */
	uint32_t crc;	 /* crc32_update(0, payload, bytes) */
	uint32_t factor; /* crc32_factor(bytes) */
};

/*
 * The packet at p has `len` bytes from the BTH on.  Writes its ICRC at p + len,
 * and returns the new length, len + ICRC_BYTES.  Unlike rocev2_seal,
 * this function does not read the payload, but takes the payload's CRC from
 * *sum.  `id` is the id of the IPv4 header.  Aborts if `len` is too short for
 * sum->bytes.
 */
size_t rocev2_seal_summed(struct rocev2_memo *memo, const struct inaddr *from,
			  const struct inaddr *to, uint8_t *p, size_t len,
			  uint16_t id, const struct rocev2_sum *sum);
/*
 * Checks the ICRC of the packet at p, which has `len` bytes from the BTH to the
 * end of the ICRC.  Returns true if the ICRC is right for an IPv4 header with
 * DF and some id, or for an IPv6 header.  The caller sets *id to the id that it
 * expects.  If the result is true for IPv4, the function sets *id to the id
 * that it found; otherwise *id stays as it is.  For one corrupted IPv4 packet
 * in 2^16 an id is found by chance, so the caller passes an unexpected id to
 * rocev2_id_is_due.
 */
bool rocev2_open(struct rocev2_memo *memo, const struct inaddr *from,
		 const struct inaddr *to, const uint8_t *p, size_t len,
		 uint16_t *id);

/*
 * The functions below decide which ids are plausible.  A UDP checksum would
 * reveal most damage, but hardware and the kernel's rxe send none, and a socket
 * does not report whether a datagram had one.  These senders number their
 * packets: the IPv4 id grows by one from packet to packet.
 *
 * Almost every damaged packet is noticed, because no id gives its ICRC
 * (rocev2_damaged).  A sender of which no damaged packet has come probably
 * sends over a good path, so each of its ids is accepted.  From the sender's
 * first damaged packet on, an id is accepted if it is near the newest accepted
 * id, or if none was accepted yet.  Linux adds up to one per tick to the id of
 * a sender that was silent, so an id may be further ahead by one for each
 * millisecond.
 *
 * An id that is not near the newest accepted id is refused.  But if the next id
 * is near the refused one, the next id is accepted, and the sequence has a new
 * start.  After three ids in a row that were not near the newest accepted id,
 * or eight new starts in all, every id of the sender is accepted: such a sender
 * has no sequence, or also numbers its packets to other hosts in this sequence.
 * A damaged packet is then accepted with a chance of 2^-16.
 */
#define ROCEV2_SENDERS 64 /* the senders that a receiver remembers */

/* A receiver's notes about one sender. */
struct rocev2_sender {
	uint8_t ip[16];	  /* the sender's address */
	uint64_t seen_ns; /* the time of the last accepted id */
	uint16_t last;	  /* the newest accepted id */
	uint16_t jump;	  /* the refused id, if has_jumped */
	/* ids in a row that were not near `last`; stays at 3 once it is 3 */
	uint8_t starts;
	uint8_t moves;	 /* new starts in all, at most 8 */
	bool is_known;	 /* `last` and seen_ns are set */
	bool has_jumped; /* the most recent id was refused */
	bool is_damaged; /* a damaged packet came from this sender */
};

/* The senders that one receiver knows.  A hash table without chains: a new
 * sender replaces the sender whose address has the same hash.  Initially all
 * zero. */
struct rocev2_senders {
	struct rocev2_sender slots[ROCEV2_SENDERS];
	struct rocev2_memo memo; /* the headers of the last packets */
};

/* Returns whether `id`, which rocev2_open has found and which is not the
 * expected id, is plausible for a packet from `ip`.  Updates the sender.
 * now_ns: the time at which the packet came, by a monotonic clock. */
bool rocev2_id_is_due(struct rocev2_senders *s, const uint8_t ip[16],
		      uint16_t id, uint64_t now_ns);
/* Notes that a damaged packet came from `ip`: no id explains its ICRC. */
void rocev2_damaged(struct rocev2_senders *s, const uint8_t ip[16]);
/* Returns whether the packet at p, which has `len` bytes from the BTH to the
 * end of the ICRC, is intact: its ICRC is right for the expected `id`, or for
 * an id that is plausible for its sender.  Updates the senders.  now_ns: as for
 * rocev2_id_is_due. */
bool rocev2_is_intact(struct rocev2_senders *s, const struct inaddr *from,
		      const struct inaddr *to, const uint8_t *p, size_t len,
		      uint16_t id, uint64_t now_ns);

#endif
