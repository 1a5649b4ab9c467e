/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steering: which process a QPN belongs to.  A QPN is a fixed public bijection
 * of (class, rest): a class belongs to one process, rest is random.  The index
 * of a class among the broker's is a bijection too, under a key that the broker
 * draws, so that a QPN does not show in which order processes came.  Both
 * inverses are a few instructions, so classic BPF can compute them and the
 * kernel picks the socket.  QPN 0 and 1 lie in class 0, the broker's own;
 * 0xffffff, the multicast QPN (IBTA 9.6.1), in class 1023, which nobody gets.
 *
 * A class is no secret.  The broker tells any process of the namespace, and the
 * brokers of other hosts, whether the process of a QPN lives (PROTO_ASK,
 * hdr/livemsg.h): 1022 questions show all classes in use.  The key has 130 000
 * values, which a user with many classes can try.  Only the 14 bits of rest
 * have to be guessed of a QPN.
 */
#ifndef BROKER_STEER_H
#define BROKER_STEER_H

#include <stdbool.h>
#include <stdint.h>

#define STEER_CLASS_MAX 1022
#define STEER_REST_BITS 14
#define STEER_ROUNDS	3

/* Odd numbers below 1024 by which class 1023 has index 1023. */
struct steer_key {
	uint16_t odd[STEER_ROUNDS];
};

/* Returns the QPN of class 1..STEER_CLASS_MAX and rest, below
 * 2^STEER_REST_BITS. */
uint32_t steer_qpn(uint32_t class, uint32_t rest);
/* Returns the class of a QPN, 0..1023. */
uint32_t steer_class(uint32_t qpn);
/* Draws one of 130 000 keys by 64 random bits. */
void steer_draw(struct steer_key *key, uint64_t random);
/* Whether steer_draw can draw that key. */
bool steer_is_key(const struct steer_key *key);
/* Returns the index of a class under key; both are 0..1023.  Class 0 has index
 * 0, and class 1023 has index 1023. */
uint32_t steer_index(const struct steer_key *key, uint32_t class);
/* Returns the class of an index under key: the inverse of steer_index. */
uint32_t steer_class_at(const struct steer_key *key, uint32_t index);
/*
 * Makes the SO_REUSEPORT group of the bound socket fd choose its member by the
 * destination QPN of the BTH: member k, in order of bind, is index k for k up
 * to n; everything else goes to member 0.  0 or -errno.
 */
int steer_attach(int fd, uint32_t n, const struct steer_key *key);

#endif
