/* SPDX-License-Identifier: BSD-2-Clause */
#include "hdr/pkt.h"

/* Reads the extension headers at p, which follow one another in the order of
 * enum opcode_ext. */
static void parse_ext(const uint8_t *p, struct pkt *pkt)
{
	unsigned int ext = pkt->info->ext;

	if (ext & OPCODE_EXT_DETH) {
		ext_deth_parse(p, &pkt->deth);
		p += EXT_DETH_BYTES;
	}
	if (ext & OPCODE_EXT_XRCETH) {
		ext_xrceth_parse(p, &pkt->xrceth);
		p += EXT_XRCETH_BYTES;
	}
	if (ext & OPCODE_EXT_FETH) {
		ext_feth_parse(p, &pkt->feth);
		p += EXT_FETH_BYTES;
	}
	if (ext & OPCODE_EXT_RETH) {
		ext_reth_parse(p, &pkt->reth);
		p += EXT_RETH_BYTES;
	}
	if (ext & OPCODE_EXT_ATOMICETH)
		ext_atomiceth_parse(p, &pkt->atomiceth);
	if (ext & OPCODE_EXT_AETH) {
		aeth_parse(p, &pkt->aeth);
		p += AETH_BYTES;
	}
	if (ext & OPCODE_EXT_ATOMICACKETH)
		ext_atomicacketh_parse(p, &pkt->atomicacketh);
	if (ext & OPCODE_EXT_IMMDT)
		ext_immdt_parse(p, &pkt->immdt);
	if (ext & OPCODE_EXT_IETH)
		ext_ieth_parse(p, &pkt->ieth);
}

static void write_ext(uint8_t *p, unsigned int ext, const struct pkt *pkt)
{
	if (ext & OPCODE_EXT_DETH) {
		ext_deth_write(p, &pkt->deth);
		p += EXT_DETH_BYTES;
	}
	if (ext & OPCODE_EXT_XRCETH) {
		ext_xrceth_write(p, &pkt->xrceth);
		p += EXT_XRCETH_BYTES;
	}
	if (ext & OPCODE_EXT_FETH) {
		ext_feth_write(p, &pkt->feth);
		p += EXT_FETH_BYTES;
	}
	if (ext & OPCODE_EXT_RETH) {
		ext_reth_write(p, &pkt->reth);
		p += EXT_RETH_BYTES;
	}
	if (ext & OPCODE_EXT_ATOMICETH)
		ext_atomiceth_write(p, &pkt->atomiceth);
	if (ext & OPCODE_EXT_AETH) {
		aeth_write(p, &pkt->aeth);
		p += AETH_BYTES;
	}
	if (ext & OPCODE_EXT_ATOMICACKETH)
		ext_atomicacketh_write(p, &pkt->atomicacketh);
	if (ext & OPCODE_EXT_IMMDT)
		ext_immdt_write(p, &pkt->immdt);
	if (ext & OPCODE_EXT_IETH)
		ext_ieth_write(p, &pkt->ieth);
}

bool pkt_parse(const uint8_t *p, size_t len, struct pkt *pkt)
{
	const struct opcode_info *info;
	size_t rest;

	if (!bth_parse(p, len, &pkt->bth) || pkt->bth.tver != 0)
		return false;
	info = opcode_info(pkt->bth.opcode);
	if (!info || len < info->header_bytes || len % 4 != 0)
		return false;
	rest = len - info->header_bytes;
	if (rest < pkt->bth.pad || (rest > 0 && !info->payload))
		return false;
	pkt->info = info;
	pkt->payload = p + info->header_bytes;
	pkt->payload_len = rest - pkt->bth.pad;
	parse_ext(p + BTH_BYTES, pkt);
	return true;
}

size_t pkt_write_headers(uint8_t *buf, const struct pkt *pkt)
{
	const struct opcode_info *info = opcode_info(pkt->bth.opcode);
	struct bth bth = pkt->bth;

	bth.pad = pkt_pad(pkt->payload_len);
	bth_write(buf, &bth);
	write_ext(buf + BTH_BYTES, info->ext, pkt);
	return info->header_bytes;
}
