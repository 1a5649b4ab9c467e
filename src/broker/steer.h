/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steering: which process a QPN belongs to.  A QPN is a fixed public bijection
 * of (class, rest): a class is one process's receive socket, rest is random.
 * The inverse is one multiplication, so classic BPF can do it and the kernel
 * picks the socket.  QPN 0 and 1 lie in class 0, the broker's own; 0xffffff,
 * the multicast QPN (IBTA 9.6.1), in class 1023, which nobody is given.
 */
#ifndef ADVERB_BROKER_STEER_H
#define ADVERB_BROKER_STEER_H

#include <stdint.h>

#define STEER_CLASS_MAX 1022
#define STEER_REST_BITS 14

/* class 1..STEER_CLASS_MAX, rest below 2^STEER_REST_BITS. */
uint32_t steer_qpn(uint32_t class, uint32_t rest);
uint32_t steer_class(uint32_t qpn);
/*
 * Makes the SO_REUSEPORT group of the bound socket fd choose its member by the
 * destination QPN of the BTH: member k, in order of bind, is class k for k up
 * to n; everything else goes to member 0.  0 or -errno.
 */
int steer_attach(int fd, uint32_t n);

#endif
