/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The blocks of a capture in the pcapng format, in this machine's byte order:
 *
 *	pcapng_write_begin	a section and its one interface, whose times are
 *				in ns
 *	pcapng_write_before	a packet's block up to the packet's bytes
 *	pcapng_write_after	the rest of the block: padding, a comment
 *
 * A file may have several sections.  Pure.
 */
#ifndef HDR_PCAPNG_H
#define HDR_PCAPNG_H

#include <stddef.h>
#include <stdint.h>

#define PCAPNG_MAGIC	     0x0a0d0d0au /* the first word of a section */
#define PCAPNG_LINK_ETHERNET 1		 /* link type */
#define PCAPNG_BEGIN_BYTES   60		 /* written by pcapng_write_begin */
#define PCAPNG_BEFORE_BYTES  28		 /* written by pcapng_write_before */
#define PCAPNG_COMMENT_MAX   80		 /* bytes, without the final NUL */
/* The most bytes of: padding, the comment's head, the comment, the end of the
 * options, the length of the block. */
#define PCAPNG_AFTER_MAX (3 + 4 + PCAPNG_COMMENT_MAX + 4 + 4)

/* The block of a packet. */
struct pcapng_packet {
	uint64_t at_ns; /* the time since 1970 */
	size_t bytes;	/* the packet's length, at most 2^31 */
	/* A comment of at most PCAPNG_COMMENT_MAX bytes, borrowed; NULL: none.
	 */
	const char *comment;
};

/* Writes the two blocks that begin a section: its header, and its interface of
 * this link type. */
void pcapng_write_begin(uint8_t p[PCAPNG_BEGIN_BYTES], uint16_t link_type);
/* Writes the part of the packet's block before the packet's bytes. */
void pcapng_write_before(uint8_t p[PCAPNG_BEFORE_BYTES],
			 const struct pcapng_packet *k);
/* Writes the part of the packet's block behind the packet's bytes, and returns
 * the length of this part. */
size_t pcapng_write_after(uint8_t p[PCAPNG_AFTER_MAX],
			  const struct pcapng_packet *k);

#endif
