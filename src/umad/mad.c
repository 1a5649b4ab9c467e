/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A datagram in memory: the kernel's 64-byte header (struct ib_user_mad, with
 * the P_Key index of ABI 5), and then the MAD.  The functions only read and
 * write that memory, except umad_debug, which keeps the debug level, and the
 * dumps, which write to stderr.
 */
#include <infiniband/umad.h>

#include <endian.h>
#include <stdio.h>

static struct ib_user_mad *header_of(void *umad)
{
	return umad;
}

size_t umad_size(void)
{
	return sizeof(struct ib_user_mad);
}

void *umad_get_mad(void *umad)
{
	return header_of(umad)->data;
}

int umad_status(void *umad)
{
	return (int)header_of(umad)->status;
}

ib_mad_addr_t *umad_get_mad_addr(void *umad)
{
	return &header_of(umad)->addr;
}

int umad_set_addr_net(void *umad, __be16 dlid, __be32 dqp, int sl, __be32 qkey)
{
	struct ib_mad_addr *addr = umad_get_mad_addr(umad);

	addr->qpn = dqp;
	addr->qkey = qkey;
	addr->lid = dlid;
	addr->sl = (uint8_t)sl;
	return 0;
}

int umad_set_addr(void *umad, int dlid, int dqp, int sl, int qkey)
{
	return umad_set_addr_net(umad, htobe16((uint16_t)dlid),
				 htobe32((uint32_t)dqp), sl,
				 htobe32((uint32_t)qkey));
}

/* The flow label in mad_addr is in host order.  mad_addr NULL removes the GRH.
 */
int umad_set_grh(void *umad, void *mad_addr)
{
	struct ib_mad_addr *addr = umad_get_mad_addr(umad);
	const struct ib_mad_addr *from = mad_addr;

	if (!from) {
		addr->grh_present = 0;
		return 0;
	}
	addr->grh_present = 1;
	addr->ib_gid = from->ib_gid;
	addr->flow_label = htobe32(from->flow_label);
	addr->hop_limit = from->hop_limit;
	addr->traffic_class = from->traffic_class;
	return 0;
}

int umad_set_pkey(void *umad, int pkey_index)
{
	umad_get_mad_addr(umad)->pkey_index = (uint16_t)pkey_index;
	return 0;
}

int umad_get_pkey(void *umad)
{
	return umad_get_mad_addr(umad)->pkey_index;
}

/* Sets and returns the debug level; a negative level only returns it. */
int umad_debug(int level)
{
	static int present;

	if (level >= 0)
		present = level;
	return present;
}

void umad_addr_dump(ib_mad_addr_t *addr)
{
	fprintf(stderr, "umad address: qpn %u qkey 0x%x lid %u sl %u\n",
		be32toh(addr->qpn), be32toh(addr->qkey), be16toh(addr->lid),
		addr->sl);
	fprintf(stderr,
		"  grh %u gid_index %u hop_limit %u traffic_class %u "
		"flow_label 0x%x pkey_index %u\n  gid ",
		addr->grh_present, addr->gid_index, addr->hop_limit,
		addr->traffic_class, be32toh(addr->flow_label),
		addr->pkey_index);
	for (size_t i = 0; i < sizeof(addr->gid); i++)
		fprintf(stderr, "%02x", addr->gid[i]);
	fputc('\n', stderr);
}

void umad_dump(void *umad)
{
	const struct ib_user_mad *mad = header_of(umad);

	fprintf(stderr, "umad: agent %u status %u timeout %u ms\n",
		mad->agent_id, mad->status, mad->timeout_ms);
	umad_addr_dump(umad_get_mad_addr(umad));
}
