/* SPDX-License-Identifier: BSD-2-Clause */
#include "hdr/livemsg.h"

#include <string.h>

#include "hdr/bytes.h"
#include "hdr/mad.h"

enum { METHOD_GET = 1, ATTRIBUTE = 0x10, BODY = 24, BODY_BYTES = 24 };

/* The bytes that all messages have, from the RMPP header to the version. */
static const uint8_t body[BODY_BYTES] = {[13] = 0x0a, 0xde, 0xb1, 'a', 'd', 'v',
					 'e',	      'r',  'b',  0,   1};

bool livemsg_parse(const uint8_t *p, size_t len, struct livemsg *m)
{
	struct mad mad;

	if (len < MAD_BYTES || !mad_parse(p, len, &mad) ||
	    mad.mgmt_class != LIVEMSG_CLASS || mad.base_version != 1 ||
	    (mad.method & ~MAD_METHOD_RESPONSE) != METHOD_GET)
		return false;
	*m = (struct livemsg){.is_answer =
				      (mad.method & MAD_METHOD_RESPONSE) != 0,
			      .nonce = mad.transaction_id};
	m->is_refusal = m->is_answer && mad.status;
	if (m->is_refusal)
		return true;
	if (mad.attribute_id != ATTRIBUTE ||
	    memcmp(p + BODY, body, BODY_BYTES) != 0 ||
	    bytes_get32(p + 52) > LIVEMSG_CLOSED)
		return false;
	m->qpn = bytes_get24(p + 49);
	m->state = (enum livemsg_state)bytes_get32(p + 52);
	return true;
}

void livemsg_write(uint8_t *p, const struct livemsg *m)
{
	const struct mad mad = {
		.base_version = 1,
		.mgmt_class = LIVEMSG_CLASS,
		.class_version = 1,
		.method = m->is_answer ? METHOD_GET | MAD_METHOD_RESPONSE
				       : METHOD_GET,
		.transaction_id = m->nonce,
		.attribute_id = ATTRIBUTE};

	memset(p, 0, MAD_BYTES);
	mad_write(p, &mad);
	memcpy(p + BODY, body, BODY_BYTES);
	bytes_put24(p + 49, m->qpn);
	bytes_put32(p + 52, (uint32_t)m->state);
}
