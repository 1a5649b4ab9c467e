/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RoCEv2 (IBTA A17): a transport packet as the payload of one UDP datagram,
 * with its ICRC.  The IP header is not in our hands: it is taken to have DF
 * and the id that an unconnected socket gives: 0, or n for segment n of a
 * datagram that the kernel cuts up (UDP_SEGMENT).  IPv6 has no id.  Pure.
 */
#ifndef ENCAP_ROCEV2_H
#define ENCAP_ROCEV2_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/inaddr.h"

#define ROCEV2_PORT 4791

/*
 * The sums of headers seen last, for whoever has many packets of one flow; its
 * First is longer than the others.  Zeroed at first; everywhere NULL will do.
 */
struct rocev2_header {
	struct inaddr from, to;
	uint16_t udp_len;
	uint32_t crc; /* the register before the BTH, for id 0 */
};

struct rocev2_memo {
	struct rocev2_header headers[2];
	uint32_t other; /* the one that was not used last */
};

/* Put the ICRC behind `len` bytes at p (room for 4 more); the new length. */
size_t rocev2_seal(struct rocev2_memo *memo, const struct inaddr *from,
		   const struct inaddr *to, uint8_t *p, size_t len,
		   uint16_t id);

/* What is known of a payload, which stands before at most 3 bytes of pad. */
struct rocev2_sum {
	uint32_t bytes;
	uint32_t crc;	 /* of them, from state 0 (util/crc.h) */
	uint32_t factor; /* crc32_factor(bytes) */
};

/* The same without reading the payload. */
size_t rocev2_seal_summed(struct rocev2_memo *memo, const struct inaddr *from,
			  const struct inaddr *to, uint8_t *p, size_t len,
			  uint16_t id, const struct rocev2_sum *sum);
/*
 * Is p, BTH to ICRC, intact under an IP header that has DF and some id?  *id
 * goes in as the one expected and comes out as the one that it was sent with;
 * one corrupted IPv4 packet in 2^16 finds an id by chance, so the caller asks
 * rocev2_id_is_due.
 */
bool rocev2_open(struct rocev2_memo *memo, const struct inaddr *from,
		 const struct inaddr *to, const uint8_t *p, size_t len,
		 uint16_t *id);

/*
 * Which ids to believe.  A socket does not tell whether there was a UDP
 * checksum; hardware and the kernel's rxe send none and number their packets.
 * Of damaged packets nearly all are explained by no id, so until there was one
 * of a sender (rocev2_damaged) any id of his is believed.  From then on his
 * ids are taken when they go on from the last one.  Linux also
 * moves a silent sender's id on by as much as one a tick, so they may be one
 * a millisecond further.  Two in a row that do not go on are a new start.  A
 * sender who makes three new starts running numbers as he likes, and one who
 * made eight in all numbers what he sends to others too: both are taken at
 * their word, and damaged packets would need the chance of 2^-16 each time.
 */
#define ROCEV2_SENDERS 64

struct rocev2_sender {
	uint8_t ip[16];
	uint64_t seen_ns;    /* when `last` was taken */
	uint16_t last, jump; /* newest id taken; the one refused after it */
	uint8_t starts;	     /* new starts without a packet in sequence */
	uint8_t moves;	     /* new starts that the next packet confirmed */
	bool is_known, has_jumped, is_damaged;
};

/* Of one receiver, zeroed at first; a clash forgets a sender. */
struct rocev2_senders {
	struct rocev2_sender slots[ROCEV2_SENDERS];
	struct rocev2_memo memo; /* of what came last */
};

/* `id` was found in a packet from `ip` where another had been expected. */
bool rocev2_id_is_due(struct rocev2_senders *s, const uint8_t ip[16],
		      uint16_t id, uint64_t now_ns);
/* A packet from `ip` came that no id explains. */
void rocev2_damaged(struct rocev2_senders *s, const uint8_t ip[16]);
/* Is p intact, BTH to ICRC, under `id` or one of his that is believed? */
bool rocev2_is_intact(struct rocev2_senders *s, const struct inaddr *from,
		      const struct inaddr *to, const uint8_t *p, size_t len,
		      uint16_t id, uint64_t now_ns);

#endif
