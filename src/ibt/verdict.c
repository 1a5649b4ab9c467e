/* SPDX-License-Identifier: BSD-2-Clause */
#include "ibt/verdict.h"

#include "hca/hca.h"
#include "hdr/aeth.h"

#define NAK(code) (AETH_NAK << 5 | (code))

/* clang-format off */
static const struct verdict_row rows[] = {
	[V_OK] =	   {AETH_ACK << 5 | AETH_CREDITS_INVALID, false, 0, ENGINE_EXPLAIN},
	[V_RNR] =	   {AETH_RNR_NAK << 5, false, 0, ENGINE_EXPLAIN},
	[V_INVALID] =	   {NAK(AETH_NAK_INVALID_REQUEST), false, 0, ENGINE_QP_REQ_ERR},
	[V_ACCESS] =	   {NAK(AETH_NAK_REMOTE_ACCESS), false, 0, ENGINE_QP_ACCESS_ERR},
	[V_REMOTE_FAULT] = {NAK(AETH_NAK_REMOTE_OPERATIONAL), false, 0, ENGINE_QP_FATAL},
	[V_TOO_LONG] =	   {NAK(AETH_NAK_INVALID_REQUEST), false, HCA_LOC_LEN_ERR, ENGINE_EXPLAIN},
	[V_RECV_MEMORY] =  {NAK(AETH_NAK_REMOTE_OPERATIONAL), false, HCA_LOC_PROT_ERR, ENGINE_EXPLAIN},
	[V_INVALIDATE] =   {0, true, HCA_REM_INV_REQ_ERR, ENGINE_EXPLAIN},
};
/* clang-format on */

const struct verdict_row *verdict_row(enum verdict v)
{
	return &rows[v];
}
