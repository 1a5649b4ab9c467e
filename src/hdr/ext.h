/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Extended transport headers (IBTA Vol 1, 9.3; FETH: A19).  hdr/aeth.h has the
 * AETH.
 *
 *	RETH		+---- VA 64 ----+- R_Key 32 -+- length 32 -+
 *	AtomicETH	+---- VA 64 ----+- R_Key 32 -+
 *			+- swap or add 64 -+- compare 64 -+
 *	AtomicAckETH	+- original value 64 -+
 *	DETH		+- Q_Key 32 -+ resv 8 +- source QP 24 -+
 *	XRCETH		+ resv 8 +- XRC SRQ 24 -+
 *	ImmDt		+- immediate data 32 -+
 *	IETH		+- R_Key 32 -+
 *	FETH		+- resv 26 -+- selectivity 2 -+- placement 4 -+
 *
 * Each function reads or writes exactly the EXT_*_BYTES of its header at p.
 * Before a caller parses a header, it checks that the packet is long enough, by
 * the opcode's row (hdr/opcode.h).
 */
#ifndef HDR_EXT_H
#define HDR_EXT_H

#include <stdint.h>

#define EXT_RETH_BYTES	       16
#define EXT_ATOMICETH_BYTES    28
#define EXT_ATOMICACKETH_BYTES 8
#define EXT_DETH_BYTES	       8
#define EXT_XRCETH_BYTES       4
#define EXT_IMMDT_BYTES	       4
#define EXT_IETH_BYTES	       4
#define EXT_FETH_BYTES	       4

/* The memory that a WRITE, READ, FLUSH or ATOMIC WRITE accesses. */
struct reth {
	uint64_t va;
	uint32_t rkey;
	uint32_t length; /* bytes of the whole message */
};

/* The operands of an atomic. */
struct atomiceth {
	uint64_t va;
	uint32_t rkey;
	uint64_t swap_add; /* the value to swap in or to add */
	uint64_t compare;  /* the value to compare with */
};

/* The result of an atomic. */
struct atomicacketh {
	uint64_t orig; /* the value before the atomic */
};

/* The sender of a datagram. */
struct deth {
	uint32_t qkey;
	uint32_t src_qpn; /* 24 bits */
};

/* The shared receive queue of an XRC request. */
struct xrceth {
	uint32_t srqn; /* 24 bits */
};

/* Immediate data: four bytes of the program, in network byte order. */
struct immdt {
	uint32_t imm_be;
};

/* The key that a SEND with Invalidate invalidates. */
struct ieth {
	uint32_t rkey;
};

/* The memory that a FLUSH flushes, and the visibility that the data gets. */
struct feth {
	/* Bits: EXT_FETH_GLOBAL_VISIBILITY, EXT_FETH_PERSISTENCE. */
	uint8_t placement;
	/* 0: flush the range that the RETH names; 1: flush the whole memory
	 * region. */
	uint8_t selectivity;
};

#define EXT_FETH_GLOBAL_VISIBILITY 1
#define EXT_FETH_PERSISTENCE	   2

void ext_reth_parse(const uint8_t *p, struct reth *reth);
void ext_reth_write(uint8_t *p, const struct reth *reth);
void ext_atomiceth_parse(const uint8_t *p, struct atomiceth *atomiceth);
void ext_atomiceth_write(uint8_t *p, const struct atomiceth *atomiceth);
void ext_atomicacketh_parse(const uint8_t *p, struct atomicacketh *ack);
void ext_atomicacketh_write(uint8_t *p, const struct atomicacketh *ack);
void ext_deth_parse(const uint8_t *p, struct deth *deth);
void ext_deth_write(uint8_t *p, const struct deth *deth);
void ext_xrceth_parse(const uint8_t *p, struct xrceth *xrceth);
void ext_xrceth_write(uint8_t *p, const struct xrceth *xrceth);
void ext_immdt_parse(const uint8_t *p, struct immdt *immdt);
void ext_immdt_write(uint8_t *p, const struct immdt *immdt);
void ext_ieth_parse(const uint8_t *p, struct ieth *ieth);
void ext_ieth_write(uint8_t *p, const struct ieth *ieth);
void ext_feth_parse(const uint8_t *p, struct feth *feth);
void ext_feth_write(uint8_t *p, const struct feth *feth);

#endif
