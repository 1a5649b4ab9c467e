/* SPDX-License-Identifier: BSD-2-Clause */
#include "hdr/ext.h"

#include <string.h>

#include "hdr/bytes.h"

void ext_reth_parse(const uint8_t *p, struct reth *reth)
{
	reth->va = bytes_get64(p);
	reth->rkey = bytes_get32(p + 8);
	reth->length = bytes_get32(p + 12);
}

void ext_reth_write(uint8_t *p, const struct reth *reth)
{
	bytes_put64(p, reth->va);
	bytes_put32(p + 8, reth->rkey);
	bytes_put32(p + 12, reth->length);
}

void ext_atomiceth_parse(const uint8_t *p, struct atomiceth *atomiceth)
{
	atomiceth->va = bytes_get64(p);
	atomiceth->rkey = bytes_get32(p + 8);
	atomiceth->swap_add = bytes_get64(p + 12);
	atomiceth->compare = bytes_get64(p + 20);
}

void ext_atomiceth_write(uint8_t *p, const struct atomiceth *atomiceth)
{
	bytes_put64(p, atomiceth->va);
	bytes_put32(p + 8, atomiceth->rkey);
	bytes_put64(p + 12, atomiceth->swap_add);
	bytes_put64(p + 20, atomiceth->compare);
}

void ext_atomicacketh_parse(const uint8_t *p, struct atomicacketh *ack)
{
	ack->orig = bytes_get64(p);
}

void ext_atomicacketh_write(uint8_t *p, const struct atomicacketh *ack)
{
	bytes_put64(p, ack->orig);
}

void ext_deth_parse(const uint8_t *p, struct deth *deth)
{
	deth->qkey = bytes_get32(p);
	deth->src_qpn = bytes_get24(p + 5);
}

void ext_deth_write(uint8_t *p, const struct deth *deth)
{
	bytes_put32(p, deth->qkey);
	bytes_put32(p + 4, deth->src_qpn & 0xffffff);
}

void ext_xrceth_parse(const uint8_t *p, struct xrceth *xrceth)
{
	xrceth->srqn = bytes_get24(p + 1);
}

void ext_xrceth_write(uint8_t *p, const struct xrceth *xrceth)
{
	bytes_put32(p, xrceth->srqn & 0xffffff);
}

void ext_immdt_parse(const uint8_t *p, struct immdt *immdt)
{
	memcpy(&immdt->imm_be, p, sizeof(immdt->imm_be));
}

void ext_immdt_write(uint8_t *p, const struct immdt *immdt)
{
	memcpy(p, &immdt->imm_be, sizeof(immdt->imm_be));
}

void ext_ieth_parse(const uint8_t *p, struct ieth *ieth)
{
	ieth->rkey = bytes_get32(p);
}

void ext_ieth_write(uint8_t *p, const struct ieth *ieth)
{
	bytes_put32(p, ieth->rkey);
}

void ext_feth_parse(const uint8_t *p, struct feth *feth)
{
	feth->placement = p[3] & 0xf;
	feth->selectivity = p[3] >> 4 & 3;
}

void ext_feth_write(uint8_t *p, const struct feth *feth)
{
	bytes_put32(p, (uint32_t)(feth->selectivity & 3) << 4 |
			       (feth->placement & 0xfu));
}
