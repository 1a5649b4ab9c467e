/* SPDX-License-Identifier: BSD-2-Clause */
#include "hdr/mad.h"

#include "hdr/bytes.h"

bool mad_parse(const uint8_t *p, size_t len, struct mad *mad)
{
	if (len < MAD_HEADER_BYTES)
		return false;
	mad->base_version = p[0];
	mad->mgmt_class = p[1];
	mad->class_version = p[2];
	mad->method = p[3];
	mad->status = bytes_get16(p + 4);
	mad->class_specific = bytes_get16(p + 6);
	mad->transaction_id = bytes_get64(p + 8);
	mad->attribute_id = bytes_get16(p + 16);
	mad->attribute_modifier = bytes_get32(p + 20);
	return true;
}

void mad_write(uint8_t *p, const struct mad *mad)
{
	p[0] = mad->base_version;
	p[1] = mad->mgmt_class;
	p[2] = mad->class_version;
	p[3] = mad->method;
	bytes_put16(p + 4, mad->status);
	bytes_put16(p + 6, mad->class_specific);
	bytes_put64(p + 8, mad->transaction_id);
	bytes_put16(p + 16, mad->attribute_id);
	bytes_put16(p + 18, 0);
	bytes_put32(p + 20, mad->attribute_modifier);
}
