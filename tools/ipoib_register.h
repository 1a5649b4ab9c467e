/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tells the fabric about the IPoIB interface that this process serves
 * (CMPROTO_INTERFACE), so that rdma_cm finds the GID that belongs to a MAC.
 * One thread; no lock.
 */
#ifndef TOOLS_IPOIB_REGISTER_H
#define TOOLS_IPOIB_REGISTER_H

#include <stdint.h>

#include "broker/cmproto.h"
#include "hdr/sa.h"

/* The connection to the fabric, the socket that came by it, and the values of
 * the last message on that socket. */
struct ipoib_register {
	/* The connection by which the fabric sent fd.  Stays open as long as
	 * fd; -1: none. */
	int connection;
	int fd; /* a socket for messages of cmproto.h; -1: none */
	/* The values of the last message that was sent; all zero: no message
	 * was sent. */
	uint8_t gid[16];
	uint32_t qpn;
	uint16_t pkey;
	struct cmproto_group broadcast;
};

/* Connects to the fabric of this process (ADVERB_FABRIC), and waits at most 10
 * seconds for each answer.  If that fails, prints a sentence about the
 * interface `name` on stderr; rdma_cm then does not find the interface. */
void ipoib_register_open(struct ipoib_register *r, const char *name);
/* Tells the fabric the interface's GID, QPN, P_Key and broadcast group, unless
 * these are the values of the last message that was sent; pkey 0: the interface
 * has no P_Key now; broadcast NULL: the interface has no broadcast group.  Does
 * not wait: if the socket is full, sends nothing, and a later call sends the
 * values.  Does nothing if there is no socket. */
void ipoib_register_tell(struct ipoib_register *r, const uint8_t gid[16],
			 uint32_t qpn, uint16_t pkey,
			 const struct sa_member *broadcast);
/* Closes the sockets, if they are open.  The fabric forgets the interface. */
void ipoib_register_close(struct ipoib_register *r);

#endif
