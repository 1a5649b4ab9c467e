/* SPDX-License-Identifier: BSD-2-Clause */
#include "hdr/mpa.h"

#include <errno.h>
#include <string.h>

#include "hdr/bytes.h"

#define KEY_BYTES 16

enum { MARKERS = 0x80, CRC = 0x40, REJECTED = 0x20, ENHANCED = 0x10 };
/* the two flags before IRD (A, B) and before ORD (C, D) */
enum { FIRST_FLAG = 0x8000, SECOND_FLAG = 0x4000 };

static const uint8_t keys[2][KEY_BYTES + 1] = {
	[MPA_REQUEST] = "MPA ID Req Frame",
	[MPA_REPLY] = "MPA ID Rep Frame",
};

void mpa_read_enhanced(const uint8_t *p, struct mpa_enhanced *e)
{
	uint16_t ird = bytes_get16(p), ord = bytes_get16(p + 2);

	*e = (struct mpa_enhanced){
		.ird = ird & MPA_DEPTH_MAX,
		.ord = ord & MPA_DEPTH_MAX,
		.is_peer_to_peer = ird & FIRST_FLAG,
		.rtr = (uint8_t)((ird & SECOND_FLAG ? MPA_RTR_SEND : 0) |
				 (ord & FIRST_FLAG ? MPA_RTR_WRITE : 0) |
				 (ord & SECOND_FLAG ? MPA_RTR_READ : 0)),
	};
}

void mpa_write_enhanced(uint8_t *p, const struct mpa_enhanced *e)
{
	bytes_put16(p, (uint16_t)((e->ird & MPA_DEPTH_MAX) |
				  (e->is_peer_to_peer ? FIRST_FLAG : 0) |
				  (e->rtr & MPA_RTR_SEND ? SECOND_FLAG : 0)));
	bytes_put16(p + 2,
		    (uint16_t)((e->ord & MPA_DEPTH_MAX) |
			       (e->rtr & MPA_RTR_WRITE ? FIRST_FLAG : 0) |
			       (e->rtr & MPA_RTR_READ ? SECOND_FLAG : 0)));
}

int mpa_parse(const uint8_t *p, size_t n, enum mpa_kind kind,
	      struct mpa_frame *f)
{
	size_t private_bytes, key = n < KEY_BYTES ? n : KEY_BYTES;
	bool is_enhanced;

	if (memcmp(p, keys[kind], key) != 0)
		return -EPROTO;
	if (n < MPA_HEAD)
		return 0;
	private_bytes = bytes_get16(p + 18);
	is_enhanced = p[17] == 2 && p[16] & ENHANCED;
	if (private_bytes > MPA_PRIVATE_MAX ||
	    (is_enhanced && private_bytes < MPA_ENHANCED))
		return -EMSGSIZE;
	if (n < MPA_HEAD + private_bytes)
		return 0;
	*f = (struct mpa_frame){
		.kind = kind,
		.revision = p[17],
		.wants_markers = p[16] & MARKERS,
		.wants_crc = p[16] & CRC,
		.is_rejected = p[16] & REJECTED,
		.is_enhanced = is_enhanced,
		.private_data = p + MPA_HEAD,
		.private_bytes = (uint16_t)private_bytes,
	};
	if (is_enhanced) {
		mpa_read_enhanced(p + MPA_HEAD, &f->enhanced);
		f->private_data += MPA_ENHANCED;
		f->private_bytes -= MPA_ENHANCED;
	}
	return (int)(MPA_HEAD + private_bytes);
}

int mpa_write(uint8_t *p, const struct mpa_frame *f)
{
	size_t enhanced = f->is_enhanced ? MPA_ENHANCED : 0;
	size_t private_bytes = enhanced + f->private_bytes;

	if (private_bytes > MPA_PRIVATE_MAX)
		return -EMSGSIZE;
	memcpy(p, keys[f->kind], KEY_BYTES);
	p[16] = (uint8_t)((f->wants_markers ? MARKERS : 0) |
			  (f->wants_crc ? CRC : 0) |
			  (f->is_rejected ? REJECTED : 0) |
			  (f->is_enhanced ? ENHANCED : 0));
	p[17] = f->revision;
	bytes_put16(p + 18, (uint16_t)private_bytes);
	if (f->is_enhanced)
		mpa_write_enhanced(p + MPA_HEAD, &f->enhanced);
	if (f->private_bytes)
		memcpy(p + MPA_HEAD + enhanced, f->private_data,
		       f->private_bytes);
	return (int)(MPA_HEAD + private_bytes);
}
