/* SPDX-License-Identifier: BSD-2-Clause */
#include "hdr/rdmap.h"

#include <stddef.h>

#include "hdr/bytes.h"

/* bits of the third byte of a Terminate */
enum { HAS_LENGTH = 0x80, HAS_DDP = 0x40, HAS_RDMAP = 0x20 };

/* clang-format off */
static const struct rdmap_info infos[RDMAP_OPCODES] = {
	[RDMAP_WRITE] = {.is_tagged = true},
	[RDMAP_READ_REQUEST] = {.queue = DDP_QUEUE_REQUEST,
				.payload_bytes = RDMAP_READ_BYTES},
	[RDMAP_READ_RESPONSE] = {.is_tagged = true},
	[RDMAP_SEND] = {.queue = DDP_QUEUE_SEND},
	[RDMAP_SEND_INV] = {.queue = DDP_QUEUE_SEND, .invalidates = true},
	[RDMAP_SEND_SE] = {.queue = DDP_QUEUE_SEND, .is_solicited = true},
	[RDMAP_SEND_SE_INV] = {.queue = DDP_QUEUE_SEND, .invalidates = true,
			       .is_solicited = true},
	[RDMAP_TERMINATE] = {.queue = DDP_QUEUE_TERMINATE},
	[RDMAP_IMMEDIATE] = {.queue = DDP_QUEUE_SEND, .is_extension = true,
			     .payload_bytes = 8},
	[RDMAP_IMMEDIATE_SE] = {.queue = DDP_QUEUE_SEND, .is_extension = true,
				.is_solicited = true, .payload_bytes = 8},
	[RDMAP_ATOMIC_REQUEST] = {.queue = DDP_QUEUE_REQUEST,
				  .is_extension = true,
				  .payload_bytes = RDMAP_ATOMIC_BYTES},
	[RDMAP_ATOMIC_RESPONSE] = {.queue = DDP_QUEUE_ATOMIC_RESPONSE,
				   .is_extension = true,
				   .payload_bytes = RDMAP_ATOMIC_RESPONSE_BYTES},
};
/* clang-format on */

const struct rdmap_info *rdmap_info(uint8_t opcode)
{
	return opcode < RDMAP_OPCODES ? &infos[opcode] : NULL;
}

void rdmap_read_parse(const uint8_t *p, struct rdmap_read *r)
{
	*r = (struct rdmap_read){.sink_stag = bytes_get32(p),
				 .sink_offset = bytes_get64(p + 4),
				 .bytes = bytes_get32(p + 12),
				 .source_stag = bytes_get32(p + 16),
				 .source_offset = bytes_get64(p + 20)};
}

void rdmap_read_write(uint8_t *p, const struct rdmap_read *r)
{
	bytes_put32(p, r->sink_stag);
	bytes_put64(p + 4, r->sink_offset);
	bytes_put32(p + 12, r->bytes);
	bytes_put32(p + 16, r->source_stag);
	bytes_put64(p + 20, r->source_offset);
}

void rdmap_terminate_parse(const uint8_t *p, struct rdmap_terminate *t)
{
	*t = (struct rdmap_terminate){
		.layer = p[0] >> 4,
		.type = p[0] & 15,
		.code = p[1],
		.has_length = p[2] & HAS_LENGTH,
		.has_ddp = p[2] & HAS_DDP,
		.has_rdmap = p[2] & HAS_RDMAP,
	};
}

void rdmap_terminate_write(uint8_t *p, const struct rdmap_terminate *t)
{
	p[0] = (uint8_t)(t->layer << 4 | (t->type & 15));
	p[1] = t->code;
	p[2] = (uint8_t)((t->has_length ? HAS_LENGTH : 0) |
			 (t->has_ddp ? HAS_DDP : 0) |
			 (t->has_rdmap ? HAS_RDMAP : 0));
	p[3] = 0;
}

void rdmap_atomic_parse(const uint8_t *p, struct rdmap_atomic *a)
{
	*a = (struct rdmap_atomic){.opcode = p[3] & 15,
				   .identifier = bytes_get32(p + 4),
				   .stag = bytes_get32(p + 8),
				   .offset = bytes_get64(p + 12),
				   .data = bytes_get64(p + 20),
				   .mask = bytes_get64(p + 28),
				   .compare = bytes_get64(p + 36),
				   .compare_mask = bytes_get64(p + 44)};
}

void rdmap_atomic_write(uint8_t *p, const struct rdmap_atomic *a)
{
	bytes_put32(p, a->opcode & 15u);
	bytes_put32(p + 4, a->identifier);
	bytes_put32(p + 8, a->stag);
	bytes_put64(p + 12, a->offset);
	bytes_put64(p + 20, a->data);
	bytes_put64(p + 28, a->mask);
	bytes_put64(p + 36, a->compare);
	bytes_put64(p + 44, a->compare_mask);
}

void rdmap_atomic_response_parse(const uint8_t *p,
				 struct rdmap_atomic_response *r)
{
	*r = (struct rdmap_atomic_response){.identifier = bytes_get32(p),
					    .found = bytes_get64(p + 4)};
}

void rdmap_atomic_response_write(uint8_t *p,
				 const struct rdmap_atomic_response *r)
{
	bytes_put32(p, r->identifier);
	bytes_put64(p + 4, r->found);
}
