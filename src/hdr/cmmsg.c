/* SPDX-License-Identifier: BSD-2-Clause */
#include "hdr/cmmsg.h"

#include <string.h>

#include "hdr/bytes.h"
#include "hdr/mad.h"

/*
 * A field of a message.  Bits are counted from the end of the MAD header; the
 * most significant bit of a byte comes first.  A field of more than 64 bits is
 * an array of bytes.
 */
struct field {
	uint16_t bit;	 /* the number of the first bit */
	uint16_t bits;	 /* how many bits; 0 ends a table */
	uint16_t offset; /* offset of the member in struct cmmsg */
	uint16_t size;	 /* bytes of the member in struct cmmsg */
};

/* clang-format off */
#define FIELD(byte, bit, bits, name)                                          \
	{(byte) * 8 + (bit), bits, offsetof(struct cmmsg, name),              \
	 sizeof(((struct cmmsg *)0)->name)}

static const struct field ids[] = {
	FIELD(0, 0, 32, local_id),
	FIELD(4, 0, 32, remote_id),
	{0},
};

#define PATH(at, path)                                                        \
	FIELD(at, 0, 16, path.local_lid),                                     \
	FIELD(at + 2, 0, 16, path.remote_lid),                                \
	FIELD(at + 4, 0, 128, path.local_gid),                                \
	FIELD(at + 20, 0, 128, path.remote_gid),                              \
	FIELD(at + 36, 0, 20, path.flow_label),                               \
	FIELD(at + 39, 2, 6, path.rate),                                      \
	FIELD(at + 40, 0, 8, path.traffic_class),                             \
	FIELD(at + 41, 0, 8, path.hop_limit),                                 \
	FIELD(at + 42, 0, 4, path.sl),                                        \
	FIELD(at + 42, 4, 1, path.subnet_local),                              \
	FIELD(at + 43, 0, 5, path.ack_timeout)

/* IBTA 12.6.5 */
static const struct field req[] = {
	FIELD(0, 0, 32, local_id),
	FIELD(5, 0, 24, ece_vendor),
	FIELD(8, 0, 64, service_id),
	FIELD(16, 0, 64, ca_guid),
	FIELD(28, 0, 32, qp.qkey),
	FIELD(32, 0, 24, qp.qpn),
	FIELD(35, 0, 8, qp.responder_resources),
	FIELD(36, 0, 24, qp.eecn),
	FIELD(39, 0, 8, qp.initiator_depth),
	FIELD(40, 0, 24, qp.remote_eecn),
	FIELD(43, 0, 5, remote_timeout),
	FIELD(43, 5, 2, qp.transport),
	FIELD(43, 7, 1, qp.flow_control),
	FIELD(44, 0, 24, qp.psn),
	FIELD(47, 0, 5, local_timeout),
	FIELD(47, 5, 3, qp.retry_count),
	FIELD(48, 0, 16, qp.pkey),
	FIELD(50, 0, 4, qp.mtu),
	FIELD(50, 4, 1, qp.rdc_exists),
	FIELD(50, 5, 3, qp.rnr_retry),
	FIELD(51, 0, 4, max_cm_retries),
	FIELD(51, 4, 1, qp.has_srq),
	FIELD(51, 5, 3, qp.extended_transport),
	PATH(52, primary),
	PATH(96, alternate),
	{0},
};

/* IBTA 12.6.6 */
static const struct field mra[] = {
	FIELD(0, 0, 32, local_id),
	FIELD(4, 0, 32, remote_id),
	FIELD(8, 0, 2, answers),
	FIELD(9, 0, 5, service_timeout),
	{0},
};

/* IBTA 12.6.7 */
static const struct field rej[] = {
	FIELD(0, 0, 32, local_id),
	FIELD(4, 0, 32, remote_id),
	FIELD(8, 0, 2, answers),
	FIELD(9, 0, 7, info_bytes),
	FIELD(10, 0, 16, reason),
	FIELD(12, 0, 576, info),
	{0},
};

/* IBTA 12.6.8.  The three bytes of ece_vendor are apart: see vendor_at. */
static const struct field rep[] = {
	FIELD(0, 0, 32, local_id),
	FIELD(4, 0, 32, remote_id),
	FIELD(8, 0, 32, qp.qkey),
	FIELD(12, 0, 24, qp.qpn),
	FIELD(16, 0, 24, qp.eecn),
	FIELD(20, 0, 24, qp.psn),
	FIELD(24, 0, 8, qp.responder_resources),
	FIELD(25, 0, 8, qp.initiator_depth),
	FIELD(26, 0, 5, ack_delay),
	FIELD(26, 5, 2, failover),
	FIELD(26, 7, 1, qp.flow_control),
	FIELD(27, 0, 3, qp.rnr_retry),
	FIELD(27, 3, 1, qp.has_srq),
	FIELD(28, 0, 64, ca_guid),
	{0},
};

/* IBTA 12.6.10 */
static const struct field dreq[] = {
	FIELD(0, 0, 32, local_id),
	FIELD(4, 0, 32, remote_id),
	FIELD(8, 0, 24, qp.qpn),
	{0},
};

/* IBTA 12.11.2.1 */
static const struct field sidr_req[] = {
	FIELD(0, 0, 32, local_id),
	FIELD(4, 0, 16, qp.pkey),
	FIELD(8, 0, 64, service_id),
	{0},
};

/* IBTA 12.11.2.2 */
static const struct field sidr_rep[] = {
	FIELD(0, 0, 32, local_id),
	FIELD(4, 0, 8, status),
	FIELD(5, 0, 8, info_bytes),
	FIELD(8, 0, 24, qp.qpn),
	FIELD(12, 0, 64, service_id),
	FIELD(20, 0, 32, qp.qkey),
	FIELD(24, 0, 576, info),
	{0},
};

/* IBTA 12.8.2 */
static const struct field apr[] = {
	FIELD(0, 0, 32, local_id),
	FIELD(4, 0, 32, remote_id),
	FIELD(8, 0, 8, info_bytes),
	FIELD(9, 0, 8, status),
	FIELD(12, 0, 576, info),
	{0},
};

static const struct {
	const struct field *fields;
	uint8_t private_at;    /* offset of the private data after the MAD header */
	uint8_t private_bytes; /* bytes of private data */
} kinds[] = {
	[CMMSG_REQ] = {req, 140, 92},
	[CMMSG_MRA] = {mra, 10, 222},
	[CMMSG_REJ] = {rej, 84, 148},
	[CMMSG_REP] = {rep, 36, 196},
	[CMMSG_RTU] = {ids, 8, 224},
	[CMMSG_DREQ] = {dreq, 12, 220},
	[CMMSG_DREP] = {ids, 8, 224},
	[CMMSG_SIDR_REQ] = {sidr_req, 16, 216},
	[CMMSG_SIDR_REP] = {sidr_rep, 96, 136},
	[CMMSG_LAP] = {ids, 0, 0},
	[CMMSG_APR] = {apr, 84, 148},
};
/* clang-format on */

/* The offsets of the bytes of the ECE vendor ID in a REP, the lowest byte
 * first.  Earlier editions of the specification reserve these bytes. */
static const uint8_t vendor_at[3] = {15, 19, 23};

static bool is_kind(uint16_t kind)
{
	return kind >= CMMSG_REQ && kind <= CMMSG_APR;
}

size_t cmmsg_private_bytes(enum cmmsg_kind kind)
{
	return kinds[kind].private_bytes;
}

static uint64_t get_bits(const uint8_t *p, const struct field *f)
{
	uint32_t end = f->bit % 8u + f->bits;
	uint64_t value = 0;

	/* a field of 64 bits begins at a byte, so no bit is shifted out */
	for (uint32_t i = 0; i < (end + 7) / 8; i++)
		value = value << 8 | p[f->bit / 8 + i];
	value >>= -end & 7;
	return f->bits < 64 ? value & ((1ull << f->bits) - 1) : value;
}

/* Writes a field whose bits at p are 0. */
static void put_bits(uint8_t *p, const struct field *f, uint64_t value)
{
	uint32_t end = f->bit % 8u + f->bits, bytes = (end + 7) / 8;

	if (f->bits < 64)
		value &= (1ull << f->bits) - 1;
	value <<= -end & 7;
	for (uint32_t i = bytes; i-- > 0; value >>= 8)
		p[f->bit / 8 + i] |= (uint8_t)value;
}

static void read_field(const uint8_t *p, const struct field *f, void *to)
{
	uint64_t value;

	if (f->bits > 64) {
		memcpy(to, p + f->bit / 8, f->bits / 8);
		return;
	}
	value = get_bits(p, f);
	if (f->size == 1)
		*(uint8_t *)to = (uint8_t)value;
	else if (f->size == 2)
		*(uint16_t *)to = (uint16_t)value;
	else if (f->size == 4)
		*(uint32_t *)to = (uint32_t)value;
	else
		*(uint64_t *)to = value;
}

static void write_field(uint8_t *p, const struct field *f, const void *from)
{
	uint64_t value;

	if (f->bits > 64) {
		memcpy(p + f->bit / 8, from, f->bits / 8);
		return;
	}
	if (f->size == 1)
		value = *(const uint8_t *)from;
	else if (f->size == 2)
		value = *(const uint16_t *)from;
	else if (f->size == 4)
		value = *(const uint32_t *)from;
	else
		value = *(const uint64_t *)from;
	put_bits(p, f, value);
}

bool cmmsg_parse(const uint8_t *mad, size_t len, struct cmmsg *m)
{
	const uint8_t *p = mad + MAD_HEADER_BYTES;
	struct mad head;

	if (len < MAD_BYTES || !mad_parse(mad, len, &head) ||
	    head.base_version != 1 || head.mgmt_class != CMMSG_CLASS ||
	    head.class_version != CMMSG_CLASS_VERSION ||
	    head.method != CMMSG_METHOD_SEND || !is_kind(head.attribute_id))
		return false;
	*m = (struct cmmsg){.kind = (enum cmmsg_kind)head.attribute_id,
			    .transaction_id = head.transaction_id,
			    .ece_options = head.attribute_modifier};
	for (const struct field *f = kinds[m->kind].fields; f->bits; f++)
		read_field(p, f, (uint8_t *)m + f->offset);
	if (m->kind == CMMSG_REP)
		for (int i = 0; i < 3; i++)
			m->ece_vendor |= (uint32_t)p[vendor_at[i]] << (8 * i);
	memcpy(m->private_data, p + kinds[m->kind].private_at,
	       kinds[m->kind].private_bytes);
	return m->info_bytes <= CMMSG_INFO_MAX;
}

void cmmsg_write(uint8_t *mad, const struct cmmsg *m)
{
	const struct mad head = {.base_version = 1,
				 .mgmt_class = CMMSG_CLASS,
				 .class_version = CMMSG_CLASS_VERSION,
				 .method = CMMSG_METHOD_SEND,
				 .transaction_id = m->transaction_id,
				 .attribute_id = (uint16_t)m->kind,
				 .attribute_modifier = m->ece_options};
	uint8_t *p = mad + MAD_HEADER_BYTES;

	memset(mad, 0, MAD_BYTES);
	mad_write(mad, &head);
	for (const struct field *f = kinds[m->kind].fields; f->bits; f++)
		write_field(p, f, (const uint8_t *)m + f->offset);
	if (m->kind == CMMSG_REP)
		for (int i = 0; i < 3; i++)
			p[vendor_at[i]] = (uint8_t)(m->ece_vendor >> (8 * i));
	memcpy(p + kinds[m->kind].private_at, m->private_data,
	       kinds[m->kind].private_bytes);
}

/* Converts the 16 bytes of an address at p to ip.  Returns false if the IP
 * version is neither 4 nor 6. */
static bool address_in(const uint8_t *p, uint8_t version, uint8_t ip[16])
{
	if (version == 6) {
		memcpy(ip, p, 16);
		return true;
	}
	memset(ip, 0, 10);
	ip[10] = ip[11] = 0xff;
	memcpy(ip + 12, p + 12, 4);
	return version == 4;
}

bool cmmsg_ip_parse(const uint8_t *p, struct cmmsg_ip *ip)
{
	uint8_t version = p[1] >> 4;

	ip->src_port = bytes_get16(p + 2);
	return p[0] == 0 && address_in(p + 4, version, ip->src) &&
	       address_in(p + 20, version, ip->dst);
}

void cmmsg_ip_write(uint8_t *p, const struct cmmsg_ip *ip)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	bool v4 = !memcmp(ip->dst, mapped, sizeof(mapped));

	memset(p, 0, CMMSG_IP_BYTES);
	p[1] = v4 ? 0x40 : 0x60;
	bytes_put16(p + 2, ip->src_port);
	memcpy(p + (v4 ? 16 : 4), ip->src + (v4 ? 12 : 0), v4 ? 4 : 16);
	memcpy(p + (v4 ? 32 : 20), ip->dst + (v4 ? 12 : 0), v4 ? 4 : 16);
}

void cmmsg_refuse(const struct cmmsg *request, uint16_t reason,
		  struct cmmsg *refusal)
{
	bool is_full = reason == CMMSG_REJ_NO_RESOURCES;

	*refusal = (struct cmmsg){.transaction_id = request->transaction_id};
	if (request->kind == CMMSG_SIDR_REQ) {
		refusal->kind = CMMSG_SIDR_REP;
		refusal->local_id = request->local_id;
		refusal->service_id = request->service_id;
		refusal->status =
			is_full ? CMMSG_SIDR_NO_QP : CMMSG_SIDR_NO_SERVICE;
		return;
	}
	refusal->kind = CMMSG_REJ;
	refusal->remote_id = request->local_id;
	refusal->answers = CMMSG_OF_REQ;
	refusal->reason = reason;
}

bool cmmsg_answer_stray(const struct cmmsg *m, struct cmmsg *answer)
{
	*answer = (struct cmmsg){.transaction_id = m->transaction_id,
				 .local_id = m->remote_id,
				 .remote_id = m->local_id};
	if (m->kind == CMMSG_DREQ) {
		answer->kind = CMMSG_DREP;
		return true;
	}
	answer->kind = CMMSG_REJ;
	answer->answers = m->kind == CMMSG_REP ? CMMSG_OF_REP : CMMSG_OF_OTHER;
	answer->reason = CMMSG_REJ_BAD_COMM_ID;
	return m->kind == CMMSG_REP || m->kind == CMMSG_RTU;
}
