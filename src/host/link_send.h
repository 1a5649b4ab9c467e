/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends frames by the socket of a data end: as many frames in a message as the
 * fabric takes (FABRIC_PROTO_DATA in fabric/proto.h), and several messages by
 * one system call.
 *
 * Lock: the caller's.
 */
#ifndef HOST_LINK_SEND_H
#define HOST_LINK_SEND_H

#include <stddef.h>

#include "engine/engine.h"

/*
 * Sends the first k of n frames, which all have a head (engine_frame.head), and
 * returns k, which is less than n if the socket is full.  @burst: the most
 * bytes of a message of several frames (fabric_client_burst).  Frames that
 * cannot be sent for another reason count as sent.  If the kernel has no memory
 * for them, they are lost, as on a wire.  If the fabric has closed the socket,
 * fabric_link_turn finds that out.
 */
size_t link_send(int fd, size_t burst, const struct engine_frame *frames,
		 size_t n);

/* Gives a received packet with a wrong Q_Key back to the fabric
 * (fabric/proto.h).  If the socket is full, the fabric does not learn of this
 * packet. */
void link_send_refused(int fd, const uint8_t *bytes, size_t n);

#endif
