/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/umad_header.h"

#include <string.h>

#include "hdr/bytes.h"

enum {
	AT_AGENT = 0,
	AT_STATUS = 4,
	AT_TIMEOUT = 8,
	AT_RETRIES = 12,
	AT_LENGTH = 16,
	AT_QPN = 20,
	AT_QKEY = 24,
	AT_LID = 28,
	AT_SL = 30,
	AT_PATH_BITS = 31,
	AT_GRH = 32,
	AT_GID_INDEX = 33,
	AT_HOP_LIMIT = 34,
	AT_TRAFFIC_CLASS = 35,
	AT_GID = 36,
	AT_FLOW_LABEL = 52,
	AT_PKEY_INDEX = 56,
};

static uint32_t get_host(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static void put_host(uint8_t *p, uint32_t v)
{
	memcpy(p, &v, sizeof(v));
}

void umad_header_parse(const uint8_t *from, struct umad *to)
{
	to->agent = get_host(from + AT_AGENT);
	to->status = get_host(from + AT_STATUS);
	to->timeout_ms = get_host(from + AT_TIMEOUT);
	to->retries = get_host(from + AT_RETRIES);
	to->qpn = bytes_get32(from + AT_QPN);
	to->qkey = bytes_get32(from + AT_QKEY);
	to->lid = bytes_get16(from + AT_LID);
	to->sl = from[AT_SL] & 15;
	to->path_bits = from[AT_PATH_BITS];
	to->has_grh = from[AT_GRH] != 0;
	to->gid_index = from[AT_GID_INDEX];
	to->hop_limit = from[AT_HOP_LIMIT];
	to->traffic_class = from[AT_TRAFFIC_CLASS];
	memcpy(to->gid, from + AT_GID, sizeof(to->gid));
	to->flow_label = bytes_get32(from + AT_FLOW_LABEL);
	memcpy(&to->pkey_index, from + AT_PKEY_INDEX, sizeof(to->pkey_index));
}

void umad_header_write(const struct umad *from, size_t mad_bytes, uint8_t *to)
{
	memset(to, 0, FABRIC_UMAD_BYTES);
	put_host(to + AT_AGENT, from->agent);
	put_host(to + AT_TIMEOUT, from->timeout_ms);
	put_host(to + AT_RETRIES, from->retries);
	put_host(to + AT_LENGTH, (uint32_t)(FABRIC_UMAD_BYTES + mad_bytes));
	bytes_put32(to + AT_QPN, from->qpn);
	bytes_put32(to + AT_QKEY, from->qkey);
	bytes_put16(to + AT_LID, from->lid);
	to[AT_SL] = from->sl;
	to[AT_PATH_BITS] = from->path_bits;
	to[AT_GRH] = from->has_grh;
	if (from->has_grh) {
		to[AT_GID_INDEX] = from->gid_index;
		to[AT_HOP_LIMIT] = from->hop_limit;
		to[AT_TRAFFIC_CLASS] = from->traffic_class;
		memcpy(to + AT_GID, from->gid, sizeof(from->gid));
		bytes_put32(to + AT_FLOW_LABEL, from->flow_label);
	}
	memcpy(to + AT_PKEY_INDEX, &from->pkey_index, sizeof(from->pkey_index));
}

void umad_header_fail(uint8_t *header, int status, size_t mad_bytes)
{
	put_host(header + AT_STATUS, (uint32_t)status);
	put_host(header + AT_LENGTH, (uint32_t)(FABRIC_UMAD_BYTES + mad_bytes));
}
