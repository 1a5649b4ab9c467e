/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages of DDP over SCTP (RFC 5043 5.2; RFC 6581 7 for functions 5 to
 * 7).  The payload protocol identifier (PPID) of a user message of SCTP says
 * which of two payloads the message carries:
 *
 *	16: DDP segment			17: stream session control
 *	 0	DDP-SSN			 0	DDP-SSN
 *	 2	the segment, hdr/ddp.h	 2	function code
 *					 4	private data, at most 512 bytes
 *
 * The DDP-SSN numbers the messages of one direction of a session from 0, since
 * SCTP delivers them in any order.  In adverb each message begins with its
 * PPID; the offsets above do not count these 4 bytes.
 *
 * All control messages except the Terminate have the contents of an MPA frame,
 * so struct mpa_frame holds them.  Its `revision` is 2, and the frame asks for
 * neither CRCs nor markers.  The enhanced data are those of MPA (RFC 6581 9).
 * An enhanced rejection has none (RFC 6581 7): session_parse_control then sets
 * is_enhanced, and sets `enhanced` to 0.  Pure.
 */
#ifndef HDR_SESSION_H
#define HDR_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hdr/mpa.h"

#define SESSION_SEGMENT 16u /* PPID: a DDP segment */
#define SESSION_CONTROL 17u /* PPID: stream session control */

/* Each side must take DDP segments of up to this many bytes (RFC 5043 9). */
#define SESSION_SEGMENT_MIN   516
#define SESSION_HEAD	      6 /* bytes of PPID and DDP-SSN */
#define SESSION_CONTROL_BYTES 8 /* PPID, DDP-SSN, function code */
/* The most bytes of a control message. */
#define SESSION_FRAME_MAX (SESSION_CONTROL_BYTES + MPA_PRIVATE_MAX)

enum session_function {
	SESSION_INITIATE = 1,
	SESSION_ACCEPT = 2,
	SESSION_REJECT = 3,
	SESSION_TERMINATE = 4,
	SESSION_ENHANCED_INITIATE = 5,
	SESSION_ENHANCED_ACCEPT = 6,
	SESSION_ENHANCED_REJECT = 7,
	SESSION_FUNCTIONS
};

/* Writes PPID and DDP-SSN, SESSION_HEAD bytes, at p. */
void session_write_head(uint8_t *p, uint32_t ppid, uint16_t ssn);
/* Reads PPID and DDP-SSN from the n bytes at p.  False: n is less than
 * SESSION_HEAD, or the PPID is neither SESSION_SEGMENT nor SESSION_CONTROL. */
bool session_parse_head(const uint8_t *p, size_t n, uint32_t *ppid,
			uint16_t *ssn);
/*
 * Reads the control message at p, n bytes with the head.  The caller has read
 * the head by session_parse_head, and the PPID is SESSION_CONTROL.  Returns the
 * function, an enum session_function.  Sets *f for all functions but
 * SESSION_TERMINATE; f->private_data points into p.  -EPROTO: there is no such
 * function; -EMSGSIZE: the message is too long or too short for its function.
 */
int session_parse_control(const uint8_t *p, size_t n, struct mpa_frame *f);
/* Writes the control message of the frame f at p, at most SESSION_FRAME_MAX
 * bytes, and returns its length.  -EMSGSIZE: there is more private data than
 * fits. */
int session_write_control(uint8_t *p, uint16_t ssn, const struct mpa_frame *f);
/* Writes a Terminate, SESSION_CONTROL_BYTES bytes, at p. */
void session_write_terminate(uint8_t *p, uint16_t ssn);

#endif
