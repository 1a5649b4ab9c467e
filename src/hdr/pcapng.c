/* SPDX-License-Identifier: BSD-2-Clause */
#include "hdr/pcapng.h"

#include <string.h>

#include "util/bits.h"

enum {
	BLOCK_INTERFACE = 1,
	BLOCK_PACKET = 6,
	BYTE_ORDER_MAGIC = 0x1a2b3c4d,
	SECTION_BYTES = 28,
	INTERFACE_BYTES = 32,
	OPTION_COMMENT = 1,
	OPTION_BYTES = 4, /* an option's code and length */
	TAIL_BYTES = 4,	  /* the length at a block's end */
	/* the option if_tsresol, code 9, of 1 byte: times are in 10^-9 s */
	RESOLUTION_HEAD = 9 | 1 << 16,
	RESOLUTION = 9,
};

static size_t pad_of(size_t bytes)
{
	return bits_align_up(bytes, 4) - bytes;
}

void pcapng_write_begin(uint8_t p[PCAPNG_BEGIN_BYTES], uint16_t link_type)
{
	const uint32_t words[PCAPNG_BEGIN_BYTES / 4] = {
		/* major 1, minor 0; the section's length is unknown */
		PCAPNG_MAGIC, SECTION_BYTES, BYTE_ORDER_MAGIC, 1, UINT32_MAX,
		UINT32_MAX, SECTION_BYTES,
		/* packets of any length; no further option */
		BLOCK_INTERFACE, INTERFACE_BYTES, link_type, 0, RESOLUTION_HEAD,
		RESOLUTION, 0, INTERFACE_BYTES};

	memcpy(p, words, sizeof(words));
}

/* Returns the length of the options, with the one that ends them. */
static size_t option_bytes(const struct pcapng_packet *k)
{
	return k->comment
		       ? OPTION_BYTES + bits_align_up(strlen(k->comment), 4) +
				 OPTION_BYTES
		       : 0;
}

static uint32_t block_bytes(const struct pcapng_packet *k)
{
	return (uint32_t)(PCAPNG_BEFORE_BYTES + bits_align_up(k->bytes, 4) +
			  option_bytes(k) + TAIL_BYTES);
}

void pcapng_write_before(uint8_t p[PCAPNG_BEFORE_BYTES],
			 const struct pcapng_packet *k)
{
	const uint32_t words[PCAPNG_BEFORE_BYTES / 4] = {
		BLOCK_PACKET,
		block_bytes(k),
		0, /* the section's only interface */
		(uint32_t)(k->at_ns >> 32),
		(uint32_t)k->at_ns,
		(uint32_t)k->bytes, /* captured */
		(uint32_t)k->bytes, /* on the link */
	};

	memcpy(p, words, sizeof(words));
}

size_t pcapng_write_after(uint8_t p[PCAPNG_AFTER_MAX],
			  const struct pcapng_packet *k)
{
	size_t at = pad_of(k->bytes), end = at + option_bytes(k);
	uint32_t tail = block_bytes(k);

	memset(p, 0, end);
	if (k->comment) {
		const uint16_t head[2] = {OPTION_COMMENT,
					  (uint16_t)strlen(k->comment)};

		memcpy(p + at, head, sizeof(head));
		memcpy(p + at + sizeof(head), k->comment, head[1]);
	}
	memcpy(p + end, &tail, sizeof(tail));
	return end + sizeof(tail);
}
