/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Limits of the adapter, and the numbers of the verbs API.  The values of the
 * enums are those of <infiniband/verbs.h>, which static asserts in verbs/pin.c
 * check; this folder does not include that header.
 */
#ifndef HCA_TYPES_H
#define HCA_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#define HCA_MAX_MR	  65536 /* rows of regions and windows; row 0 is unused */
#define HCA_MAX_SGE	  32	/* of a work request */
#define HCA_MAX_INLINE	  512	/* bytes of a work request */
#define HCA_MAX_WR	  16384 /* of a send, receive or shared receive queue */
#define HCA_MAX_CQE	  (1 << 20) /* of a completion queue */
#define HCA_MAX_RD_ATOMIC 128	    /* READs and atomics in progress, of a QP */
#define HCA_MAX_QP	  10000 /* tests/system/verbs/scale.py makes that many */
#define HCA_MAX_MESSAGE	  (1u << 31) /* bytes */
#define HCA_MAX_PD	  65536
#define HCA_MAX_CQ	  16384
#define HCA_MAX_SRQ	  4096
#define HCA_MAX_AH	  65536
#define HCA_MAX_ATTACH	  256  /* queue pairs attached to a multicast group */
#define HCA_MAX_ATTACHED  4096 /* the sum over all multicast groups */
#define HCA_MAX_DEVICES	  8
#define HCA_MAX_PORTS	  4  /* of an InfiniBand device; others have one */
#define HCA_MAX_PKEYS	  64 /* of a port of such a device; others have one */

/* The values of a port of an InfiniBand link that the subnet manager sets (IBTA
 * Vol 1, 14.2.5.6, 14.2.5.7). */
struct hca_port {
	uint16_t lid; /* 0: the port has none yet */
	uint8_t lmc;  /* the port has the 2^lmc LIDs from lid on */
	uint16_t pkeys[HCA_MAX_PKEYS]; /* 0: an entry without a P_Key */
};

/* The answer of a subnet about the packets of a connection by LID, and about
 * the packets that the peer sends back.  The subnet delivers both. */
struct hca_way {
	/* Bit i: the peer may send its packets by entry i of its port's P_Key
	 * table. */
	uint64_t pkeys;
	/* The subnet's number of changes (engine_subnet) at the time of this
	 * answer, which holds as long as the number stays the same. */
	uint32_t changes;
	uint16_t slid;	   /* the LID of this end of the connection */
	uint8_t port;	   /* the number of the peer's port */
	uint8_t path_bits; /* of the peer's LID */
	uint8_t path_mask; /* the bits of path_bits that count */
};

/* Access rights, values of IBV_ACCESS_*. */
enum hca_access {
	HCA_LOCAL_WRITE = 1,
	HCA_REMOTE_WRITE = 2,
	HCA_REMOTE_READ = 4,
	HCA_REMOTE_ATOMIC = 8,
	HCA_MW_BIND = 16,
	HCA_ZERO_BASED = 32,
};

/* Completion status, values of IBV_WC_*. */
enum hca_status {
	HCA_SUCCESS = 0,
	HCA_LOC_LEN_ERR = 1,
	HCA_LOC_QP_OP_ERR = 2,
	HCA_LOC_PROT_ERR = 4,
	HCA_WR_FLUSH_ERR = 5,
	HCA_MW_BIND_ERR = 6,
	HCA_REM_INV_REQ_ERR = 9,
	HCA_REM_ACCESS_ERR = 10,
	HCA_REM_OP_ERR = 11,
	HCA_RETRY_EXC_ERR = 12,
	HCA_RNR_RETRY_EXC_ERR = 13,
};

/* Work request opcodes, values of IBV_WR_*. */
enum hca_wr {
	HCA_WR_RDMA_WRITE = 0,
	HCA_WR_RDMA_WRITE_IMM = 1,
	HCA_WR_SEND = 2,
	HCA_WR_SEND_IMM = 3,
	HCA_WR_RDMA_READ = 4,
	HCA_WR_ATOMIC_CAS = 5,
	HCA_WR_ATOMIC_FADD = 6,
	HCA_WR_LOCAL_INV = 7,
	HCA_WR_BIND_MW = 8,
	HCA_WR_SEND_INV = 9,
	HCA_WR_ATOMIC_WRITE = 15,
};

/* Is the opcode SEND or SEND with Immediate Data?  RC, UC and UD have both;
 * iWARP has no SEND with Immediate Data. */
static inline bool hca_wr_is_send(uint8_t opcode)
{
	return opcode == HCA_WR_SEND || opcode == HCA_WR_SEND_IMM;
}

/* Is the opcode a SEND without invalidate, or an RDMA WRITE?  These are the
 * requests of UC (IBTA 9.8.2). */
static inline bool hca_wr_is_message(uint8_t opcode)
{
	return hca_wr_is_send(opcode) || opcode == HCA_WR_RDMA_WRITE ||
	       opcode == HCA_WR_RDMA_WRITE_IMM;
}

/* Completion opcodes, values of IBV_WC_*. */
enum hca_wc {
	HCA_WC_SEND = 0,
	HCA_WC_RDMA_WRITE = 1,
	HCA_WC_RDMA_READ = 2,
	HCA_WC_COMP_SWAP = 3,
	HCA_WC_FETCH_ADD = 4,
	HCA_WC_BIND_MW = 5,
	HCA_WC_LOCAL_INV = 6,
	HCA_WC_ATOMIC_WRITE = 9,
	HCA_WC_RECV = 128,
	HCA_WC_RECV_RDMA_WITH_IMM = 129,
};

/* Completion flags, values of IBV_WC_*. */
enum { HCA_WC_GRH = 1, HCA_WC_WITH_IMM = 2, HCA_WC_WITH_INV = 8 };

/* Send flags, values of IBV_SEND_*. */
enum {
	HCA_SEND_FENCE = 1,
	HCA_SEND_SIGNALED = 2,
	HCA_SEND_SOLICITED = 4,
	HCA_SEND_INLINE = 8,
};

/* Values of IBV_QPS_*. */
enum hca_qp_state {
	HCA_QP_RESET = 0,
	HCA_QP_INIT = 1,
	HCA_QP_RTR = 2,
	HCA_QP_RTS = 3,
	HCA_QP_SQD = 4,
	HCA_QP_SQE = 5,
	HCA_QP_ERR = 6,
};

/* Values of IBV_QPT_*. */
enum { HCA_QPT_RC = 2, HCA_QPT_UC = 3, HCA_QPT_UD = 4 };

/* The state of path migration (ibt/migration.h), values of IBV_MIG_*. */
enum hca_mig { HCA_MIG_MIGRATED = 0, HCA_MIG_REARM = 1, HCA_MIG_ARMED = 2 };

/* Modify masks, values of IBV_QP_*. */
enum {
	HCA_QP_STATE = 1 << 0,
	HCA_QP_CUR_STATE = 1 << 1,
	HCA_QP_EN_SQD_ASYNC = 1 << 2,
	HCA_QP_ACCESS_FLAGS = 1 << 3,
	HCA_QP_PKEY_INDEX = 1 << 4,
	HCA_QP_PORT = 1 << 5,
	HCA_QP_QKEY = 1 << 6,
	HCA_QP_AV = 1 << 7,
	HCA_QP_PATH_MTU = 1 << 8,
	HCA_QP_TIMEOUT = 1 << 9,
	HCA_QP_RETRY_CNT = 1 << 10,
	HCA_QP_RNR_RETRY = 1 << 11,
	HCA_QP_RQ_PSN = 1 << 12,
	HCA_QP_MAX_QP_RD_ATOMIC = 1 << 13,
	HCA_QP_ALT_PATH = 1 << 14,
	HCA_QP_MIN_RNR_TIMER = 1 << 15,
	HCA_QP_SQ_PSN = 1 << 16,
	HCA_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
	HCA_QP_PATH_MIG_STATE = 1 << 18,
	HCA_QP_CAP = 1 << 19,
	HCA_QP_DEST_QPN = 1 << 20,
	HCA_QP_RATE_LIMIT = 1 << 25,
};

#endif
