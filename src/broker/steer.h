/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steering finds the process that a QPN belongs to.  A fixed public bijection
 * maps each pair (class, rest) to a QPN.  A class belongs to one process; rest
 * is random.  Another bijection, under a key that the broker draws, maps each
 * class to its index in the SO_REUSEPORT group, so that a QPN does not show in
 * which order processes came.  Classic BPF computes the class of a QPN and the
 * index of that class by a few instructions, so the kernel can pick the
 * socket.  QPN 0 and 1 are in class 0, the broker's own.  QPN 0xffffff, that of
 * multicast (IBTA 9.6.1), is in class 1023, which no process gets.
 *
 * A class is no secret.  The broker tells any process of the namespace, and the
 * brokers of other hosts, whether the process of a QPN lives (PROTO_ASK,
 * hdr/livemsg.h): 1022 questions show all classes in use.  The key has 130 000
 * values, which a user with many classes can try.  So the 14 bits of rest are
 * all that has to be guessed of a QPN.
 */
#ifndef BROKER_STEER_H
#define BROKER_STEER_H

#include <stdbool.h>
#include <stdint.h>

#define STEER_CLASS_MAX 1022 /* the highest class that a process gets */
#define STEER_REST_BITS 14   /* bits of a QPN that its class leaves */
#define STEER_ROUNDS	3    /* rounds of the bijection under a key */
/* How long the class of a process that has ended is kept from users other than
 * that of the process (other_user.h): ten times the default of ADVERB_PATIENCE,
 * in milliseconds. */
#define STEER_USER_REST_MS 600000u

/* Three odd numbers below 1024, such that class 1023 has index 1023. */
struct steer_key {
	uint16_t odd[STEER_ROUNDS];
};

/* Returns the QPN of a class, 1..STEER_CLASS_MAX, and a rest below
 * 2^STEER_REST_BITS. */
uint32_t steer_qpn(uint32_t class, uint32_t rest);
/* Returns the class of a QPN, 0..1023. */
uint32_t steer_class(uint32_t qpn);
/* Draws one of the 130 000 keys from 64 random bits. */
void steer_draw(struct steer_key *key, uint64_t random);
/* Returns whether steer_draw can draw this key. */
bool steer_is_key(const struct steer_key *key);
/* Returns the index of a class under key; both are 0..1023.  Class 0 has index
 * 0, and class 1023 has index 1023. */
uint32_t steer_index(const struct steer_key *key, uint32_t class);
/* Returns the class of an index under key: the inverse of steer_index. */
uint32_t steer_class_at(const struct steer_key *key, uint32_t index);
/*
 * Makes the SO_REUSEPORT group of the bound socket fd choose its member by the
 * destination QPN of the BTH.  The k-th socket in order of bind, counted from
 * 0, gets the QPNs of index k, for each k up to n.  Every other datagram goes
 * to socket 0.  Returns 0 or -errno.
 */
int steer_attach(int fd, uint32_t n, const struct steer_key *key);

#endif
