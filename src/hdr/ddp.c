/* SPDX-License-Identifier: BSD-2-Clause */
#include "hdr/ddp.h"

#include "hdr/bytes.h"

enum { TAGGED = 0x80, LAST = 0x40, DDP_VERSION_MASK = 3 };
enum { RDMAP_VERSION_SHIFT = 6, OPCODE_MASK = 15 };
size_t ddp_header_bytes(uint8_t first)
{
	return first & TAGGED ? DDP_TAGGED_BYTES : DDP_UNTAGGED_BYTES;
}

size_t ddp_parse(const uint8_t *p, size_t n, struct ddp_header *h)
{
	if (!n || n < ddp_header_bytes(p[0]))
		return 0;
	*h = (struct ddp_header){
		.is_tagged = p[0] & TAGGED,
		.is_last = p[0] & LAST,
		.ddp_version = p[0] & DDP_VERSION_MASK,
		.rdmap_version = p[1] >> RDMAP_VERSION_SHIFT,
		.opcode = p[1] & OPCODE_MASK,
		.stag = bytes_get32(p + 2),
	};
	if (h->is_tagged) {
		h->offset = bytes_get64(p + 6);
		return DDP_TAGGED_BYTES;
	}
	h->queue = bytes_get32(p + 6);
	h->sequence = bytes_get32(p + 10);
	h->message_offset = bytes_get32(p + 14);
	return DDP_UNTAGGED_BYTES;
}

size_t ddp_write(uint8_t *p, const struct ddp_header *h)
{
	p[0] = (uint8_t)((h->is_tagged ? TAGGED : 0) | (h->is_last ? LAST : 0) |
			 (h->ddp_version & DDP_VERSION_MASK));
	p[1] = (uint8_t)(h->rdmap_version << RDMAP_VERSION_SHIFT |
			 (h->opcode & OPCODE_MASK));
	bytes_put32(p + 2, h->stag);
	if (h->is_tagged) {
		bytes_put64(p + 6, h->offset);
		return DDP_TAGGED_BYTES;
	}
	bytes_put32(p + 6, h->queue);
	bytes_put32(p + 10, h->sequence);
	bytes_put32(p + 14, h->message_offset);
	return DDP_UNTAGGED_BYTES;
}
