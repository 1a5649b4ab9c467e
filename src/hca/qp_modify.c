/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "hca/hca.h"
#include "util/bits.h"
#include "util/serial24.h"

#define FIRST_MULTICAST_LID 0xc000   /* IBTA Vol 1, 4.1.3 */
#define LAST_QPN	    0xffffff /* a QPN has 24 bits: IBTA 9.2 (BTH) */

/* A transition of IBTA Vol 1, 11.2.5.2, and the attributes (masks of HCA_QP_*)
 * that the transition requires and allows.  Each type of QP has a table. */
struct edge {
	uint8_t from, to;
	uint32_t required, optional;
};

#define RTS_OPTIONAL                                                           \
	(HCA_QP_CUR_STATE | HCA_QP_ACCESS_FLAGS | HCA_QP_MIN_RNR_TIMER |       \
	 HCA_QP_ALT_PATH | HCA_QP_PATH_MIG_STATE)
#define UC_OPTIONAL                                                            \
	(HCA_QP_CUR_STATE | HCA_QP_ACCESS_FLAGS | HCA_QP_ALT_PATH |            \
	 HCA_QP_PATH_MIG_STATE)
#define UD_OPTIONAL (HCA_QP_CUR_STATE | HCA_QP_QKEY)

/* clang-format off */
static const struct edge rc_edges[] = {
	{HCA_QP_RESET, HCA_QP_INIT,
	 HCA_QP_PKEY_INDEX | HCA_QP_PORT | HCA_QP_ACCESS_FLAGS, 0},
	{HCA_QP_INIT, HCA_QP_INIT, 0,
	 HCA_QP_PKEY_INDEX | HCA_QP_PORT | HCA_QP_ACCESS_FLAGS},
	{HCA_QP_INIT, HCA_QP_RTR,
	 HCA_QP_AV | HCA_QP_PATH_MTU | HCA_QP_DEST_QPN | HCA_QP_RQ_PSN |
	 HCA_QP_MAX_DEST_RD_ATOMIC | HCA_QP_MIN_RNR_TIMER,
	 HCA_QP_ALT_PATH | HCA_QP_ACCESS_FLAGS | HCA_QP_PKEY_INDEX},
	{HCA_QP_RTR, HCA_QP_RTS,
	 HCA_QP_SQ_PSN | HCA_QP_TIMEOUT | HCA_QP_RETRY_CNT |
	 HCA_QP_RNR_RETRY | HCA_QP_MAX_QP_RD_ATOMIC, RTS_OPTIONAL},
	{HCA_QP_RTS, HCA_QP_RTS, 0, RTS_OPTIONAL | HCA_QP_RATE_LIMIT},
	{HCA_QP_RTS, HCA_QP_SQD, 0, HCA_QP_EN_SQD_ASYNC},
	{HCA_QP_SQD, HCA_QP_RTS, 0, RTS_OPTIONAL},
	{HCA_QP_SQD, HCA_QP_SQD, 0,
	 HCA_QP_AV | HCA_QP_TIMEOUT | HCA_QP_RETRY_CNT | HCA_QP_RNR_RETRY |
	 HCA_QP_MAX_QP_RD_ATOMIC | HCA_QP_MAX_DEST_RD_ATOMIC |
	 HCA_QP_ALT_PATH | HCA_QP_ACCESS_FLAGS | HCA_QP_PKEY_INDEX |
	 HCA_QP_MIN_RNR_TIMER | HCA_QP_PATH_MIG_STATE | HCA_QP_PORT},
};

/* All attributes except the capacities (HCA_QP_CAP).  A transition of an iWARP
 * QP requires none of them, and most have no effect on such a QP: only the
 * ranges of numbers are checked.  Programs set, for example, a timer on every
 * device, and hardware iWARP adapters ignore the timer. */
#define IWARP_OPTIONAL                                                         \
	((HCA_QP_CAP - 1) | HCA_QP_DEST_QPN | HCA_QP_RATE_LIMIT)

/* An iWARP QP needs no addresses and no PSNs.  The transitions from INIT and
 * RTR to RTS are for host_stream_open, when rdma_cm connects the QP;
 * stream_modify (host/stream.c) refuses them to ibv_modify_qp. */
static const struct edge iwarp_edges[] = {
	{HCA_QP_RESET, HCA_QP_INIT, 0, IWARP_OPTIONAL},
	{HCA_QP_INIT, HCA_QP_INIT, 0, IWARP_OPTIONAL},
	{HCA_QP_INIT, HCA_QP_RTR, 0, IWARP_OPTIONAL},
	{HCA_QP_INIT, HCA_QP_RTS, 0, IWARP_OPTIONAL},
	{HCA_QP_RTR, HCA_QP_RTS, 0, IWARP_OPTIONAL},
	{HCA_QP_RTS, HCA_QP_RTS, 0, IWARP_OPTIONAL},
	{HCA_QP_RTS, HCA_QP_SQD, 0, IWARP_OPTIONAL},
	{HCA_QP_SQD, HCA_QP_RTS, 0, IWARP_OPTIONAL},
	{HCA_QP_SQD, HCA_QP_SQD, 0, IWARP_OPTIONAL},
};

static const struct edge uc_edges[] = {
	{HCA_QP_RESET, HCA_QP_INIT,
	 HCA_QP_PKEY_INDEX | HCA_QP_PORT | HCA_QP_ACCESS_FLAGS, 0},
	{HCA_QP_INIT, HCA_QP_INIT, 0,
	 HCA_QP_PKEY_INDEX | HCA_QP_PORT | HCA_QP_ACCESS_FLAGS},
	{HCA_QP_INIT, HCA_QP_RTR,
	 HCA_QP_AV | HCA_QP_PATH_MTU | HCA_QP_DEST_QPN | HCA_QP_RQ_PSN,
	 HCA_QP_ALT_PATH | HCA_QP_ACCESS_FLAGS | HCA_QP_PKEY_INDEX},
	{HCA_QP_RTR, HCA_QP_RTS, HCA_QP_SQ_PSN, UC_OPTIONAL},
	{HCA_QP_RTS, HCA_QP_RTS, 0, UC_OPTIONAL},
	{HCA_QP_RTS, HCA_QP_SQD, 0, HCA_QP_EN_SQD_ASYNC},
	{HCA_QP_SQD, HCA_QP_RTS, 0, UC_OPTIONAL},
	{HCA_QP_SQD, HCA_QP_SQD, 0,
	 HCA_QP_AV | HCA_QP_ALT_PATH | HCA_QP_ACCESS_FLAGS |
	 HCA_QP_PKEY_INDEX | HCA_QP_PATH_MIG_STATE},
	{HCA_QP_SQE, HCA_QP_RTS, 0, HCA_QP_CUR_STATE | HCA_QP_ACCESS_FLAGS},
};

static const struct edge ud_edges[] = {
	{HCA_QP_RESET, HCA_QP_INIT,
	 HCA_QP_PKEY_INDEX | HCA_QP_PORT | HCA_QP_QKEY, 0},
	{HCA_QP_INIT, HCA_QP_INIT, 0,
	 HCA_QP_PKEY_INDEX | HCA_QP_PORT | HCA_QP_QKEY},
	{HCA_QP_INIT, HCA_QP_RTR, 0, HCA_QP_PKEY_INDEX | HCA_QP_QKEY},
	{HCA_QP_RTR, HCA_QP_RTS, HCA_QP_SQ_PSN, UD_OPTIONAL},
	{HCA_QP_RTS, HCA_QP_RTS, 0, UD_OPTIONAL},
	{HCA_QP_RTS, HCA_QP_SQD, 0, HCA_QP_EN_SQD_ASYNC},
	{HCA_QP_SQD, HCA_QP_RTS, 0, UD_OPTIONAL},
	{HCA_QP_SQD, HCA_QP_SQD, 0, HCA_QP_PKEY_INDEX | HCA_QP_QKEY},
	{HCA_QP_SQE, HCA_QP_RTS, 0, UD_OPTIONAL},
};

/* clang-format on */

static int refuse_modify(const char **why, const char *text)
{
	*why = text;
	return -EINVAL;
}

/* The messages about an attribute that a transition requires, or that it does
 * not take. */
static const struct {
	uint32_t bit;
	const char *missing, *not_allowed;
} texts[] = {
#define TEXTS(bit, name)                                                       \
	{                                                                      \
		(bit),                                                         \
			"attr_mask lacks " name                                \
			", which this transition requires",                    \
			"attr_mask has " name                                  \
			", which this transition does not take"                \
	}
	TEXTS(HCA_QP_CUR_STATE, "IBV_QP_CUR_STATE"),
	TEXTS(HCA_QP_EN_SQD_ASYNC, "IBV_QP_EN_SQD_ASYNC_NOTIFY"),
	TEXTS(HCA_QP_ACCESS_FLAGS, "IBV_QP_ACCESS_FLAGS"),
	TEXTS(HCA_QP_PKEY_INDEX, "IBV_QP_PKEY_INDEX"),
	TEXTS(HCA_QP_PORT, "IBV_QP_PORT"),
	TEXTS(HCA_QP_QKEY, "IBV_QP_QKEY"),
	TEXTS(HCA_QP_AV, "IBV_QP_AV"),
	TEXTS(HCA_QP_PATH_MTU, "IBV_QP_PATH_MTU"),
	TEXTS(HCA_QP_TIMEOUT, "IBV_QP_TIMEOUT"),
	TEXTS(HCA_QP_RETRY_CNT, "IBV_QP_RETRY_CNT"),
	TEXTS(HCA_QP_RNR_RETRY, "IBV_QP_RNR_RETRY"),
	TEXTS(HCA_QP_RQ_PSN, "IBV_QP_RQ_PSN"),
	TEXTS(HCA_QP_MAX_QP_RD_ATOMIC, "IBV_QP_MAX_QP_RD_ATOMIC"),
	TEXTS(HCA_QP_ALT_PATH, "IBV_QP_ALT_PATH"),
	TEXTS(HCA_QP_MIN_RNR_TIMER, "IBV_QP_MIN_RNR_TIMER"),
	TEXTS(HCA_QP_SQ_PSN, "IBV_QP_SQ_PSN"),
	TEXTS(HCA_QP_MAX_DEST_RD_ATOMIC, "IBV_QP_MAX_DEST_RD_ATOMIC"),
	TEXTS(HCA_QP_PATH_MIG_STATE, "IBV_QP_PATH_MIG_STATE"),
	TEXTS(HCA_QP_CAP, "IBV_QP_CAP"),
	TEXTS(HCA_QP_DEST_QPN, "IBV_QP_DEST_QPN"),
	TEXTS(HCA_QP_RATE_LIMIT, "IBV_QP_RATE_LIMIT"),
#undef TEXTS
};

/* Refuses the call because of the lowest of `bits`.  @is_missing: the call's
 * mask lacks this bit; else the mask has the bit and must not have it. */
static int refuse_mask(const char **why, uint32_t bits, bool is_missing)
{
	for (size_t i = 0; i < ARRAY_COUNT(texts); i++)
		if (bits & texts[i].bit)
			return refuse_modify(why,
					     is_missing ? texts[i].missing
							: texts[i].not_allowed);
	return refuse_modify(why, "attr_mask has a bit that does not exist");
}

/* Checks the address vector of a connected QP (IBTA 11.2.2.1).  An iWARP QP has
 * no use for an address vector, and hardware iWARP adapters ignore it, too. */
static int check_av(const struct qp *qp, const struct hca_ah *ah,
		    const char **why)
{
	if (qp->is_iwarp)
		return 0;
	if (!qp->is_by_lid)
		return ah->is_global
			       ? 0
			       : refuse_modify(why,
					       "RoCE needs ah_attr.is_global = "
					       "1 and a GID: give the program "
					       "a GID index");
	if (!ah->dlid || ah->dlid >= FIRST_MULTICAST_LID)
		return refuse_modify(why, "ah_attr.dlid must be the LID of a "
					  "port, 1 to 0xbfff");
	if (ah->sl > 15)
		return refuse_modify(why, "ah_attr.sl is above 15");
	return 0;
}

/* Checks the alternate path of a connected QP (IBTA 11.2.5.2). */
static int check_alternate(const struct qp *qp, const struct hca_qp_attr *a,
			   const char **why)
{
	if (!qp->is_by_lid)
		return refuse_modify(why, "alternate paths exist on InfiniBand "
					  "alone: leave IBV_QP_ALT_PATH out of "
					  "attr_mask on RoCE");
	if (!a->alt_port_num || a->alt_port_num > HCA_MAX_PORTS ||
	    a->alt_port_num != a->alt_ah.port_num)
		return refuse_modify(why, "alt_port_num and "
					  "alt_ah_attr.port_num must be the "
					  "number of one port of the device");
	if (a->alt_pkey_index >= HCA_MAX_PKEYS)
		return refuse_modify(why, "alt_pkey_index is not below the "
					  "port's pkey_tbl_len");
	if (a->alt_timeout > 31)
		return refuse_modify(why, "alt_timeout is above 31");
	if (!a->alt_ah.dlid || a->alt_ah.dlid >= FIRST_MULTICAST_LID)
		return refuse_modify(why, "alt_ah_attr.dlid must be the LID of "
					  "a port, 1 to 0xbfff");
	if (a->alt_ah.sl > 15)
		return refuse_modify(why, "alt_ah_attr.sl is above 15");
	return 0;
}

/* Checks a new state of path migration (IBTA 17.2.8). */
static int check_migration(const struct qp *qp, const struct hca_qp_attr *a,
			   uint32_t mask, const char **why)
{
	bool has_path = mask & HCA_QP_ALT_PATH || qp->attr.alt_ah.dlid;

	if (a->path_mig_state > HCA_MIG_REARM)
		return refuse_modify(why, "path_mig_state must be "
					  "IBV_MIG_MIGRATED or IBV_MIG_REARM: "
					  "only the adapter enters "
					  "IBV_MIG_ARMED");
	/* iWARP does not use the state */
	if (qp->is_iwarp)
		return 0;
	if (a->path_mig_state == HCA_MIG_REARM && !has_path)
		return refuse_modify(why,
				     "path_mig_state is IBV_MIG_REARM, but "
				     "the QP has no alternate path: set "
				     "one by IBV_QP_ALT_PATH");
	if (a->path_mig_state == HCA_MIG_MIGRATED &&
	    qp->attr.path_mig_state == HCA_MIG_REARM)
		return refuse_modify(why,
				     "path_mig_state is IBV_MIG_MIGRATED, "
				     "but the QP is in IBV_MIG_REARM: "
				     "arm the peer too, and wait until the "
				     "peer has sent a packet");
	return 0;
}

/* Checks the paths of a call, and the state of path migration. */
static int check_paths(const struct qp *qp, const struct hca_qp_attr *a,
		       uint32_t mask, const char **why)
{
	int err = mask & HCA_QP_AV ? check_av(qp, &a->ah, why) : 0;

	/* iWARP does not use the alternate path */
	if (!err && mask & HCA_QP_ALT_PATH && !qp->is_iwarp)
		err = check_alternate(qp, a, why);
	if (!err && mask & HCA_QP_PATH_MIG_STATE)
		err = check_migration(qp, a, mask, why);
	return err;
}

static int check_ranges(const struct hca *h, const struct qp *qp,
			const struct hca_qp_attr *a, uint32_t mask,
			const char **why)
{
	if (mask & HCA_QP_PORT &&
	    (!a->port_num || a->port_num > (qp->is_by_lid ? HCA_MAX_PORTS : 1)))
		return refuse_modify(why, "port_num is not the number of a "
					  "port of the device");
	if (mask & HCA_QP_PKEY_INDEX &&
	    a->pkey_index >= (qp->is_by_lid ? HCA_MAX_PKEYS : 1))
		return refuse_modify(why, "pkey_index is not below the "
					  "port's pkey_tbl_len");
	if ((mask & HCA_QP_ACCESS_FLAGS) && (a->access_flags & ~0x3ff003ffu))
		return refuse_modify(why, "qp_access_flags has unknown bits");
	if ((mask & HCA_QP_PATH_MTU) &&
	    (a->path_mtu < 1 || a->path_mtu > h->active_mtu))
		return refuse_modify(
			why, "path_mtu is 0 or above the port's active_mtu");
	if ((mask & HCA_QP_MAX_QP_RD_ATOMIC) &&
	    a->max_rd_atomic > HCA_MAX_RD_ATOMIC)
		return refuse_modify(why, "max_rd_atomic is above the device's "
					  "max_qp_init_rd_atom");
	if ((mask & HCA_QP_MAX_DEST_RD_ATOMIC) &&
	    a->max_dest_rd_atomic > HCA_MAX_RD_ATOMIC)
		return refuse_modify(why,
				     "max_dest_rd_atomic is above the device's "
				     "max_qp_rd_atom");
	if ((mask & HCA_QP_MIN_RNR_TIMER) && a->min_rnr_timer > 31)
		return refuse_modify(why, "min_rnr_timer is above 31");
	if ((mask & HCA_QP_TIMEOUT) && a->timeout > 31)
		return refuse_modify(why, "timeout is above 31");
	if ((mask & HCA_QP_RETRY_CNT) && a->retry_cnt > 7)
		return refuse_modify(why, "retry_cnt is above 7");
	if ((mask & HCA_QP_RNR_RETRY) && a->rnr_retry > 7)
		return refuse_modify(why, "rnr_retry is above 7");
	if ((mask & HCA_QP_DEST_QPN) && !qp->is_iwarp && a->dest_qpn > LAST_QPN)
		return refuse_modify(why, "dest_qp_num is above 0xffffff, the "
					  "greatest number of a QP: set the "
					  "peer's qp_num, in host byte order");
	return check_paths(qp, a, mask, why);
}

static const struct edge *find_edge(const struct qp *qp, uint32_t to)
{
	enum { IWARP = 0 }; /* no HCA_QPT_* is 0 */
	static const struct {
		const struct edge *edges;
		size_t count;
	} tables[] = {
		[IWARP] = {iwarp_edges, ARRAY_COUNT(iwarp_edges)},
		[HCA_QPT_RC] = {rc_edges, ARRAY_COUNT(rc_edges)},
		[HCA_QPT_UC] = {uc_edges, ARRAY_COUNT(uc_edges)},
		[HCA_QPT_UD] = {ud_edges, ARRAY_COUNT(ud_edges)},
	};
	uint32_t row = qp->is_iwarp ? IWARP : qp->type;

	for (size_t i = 0; i < tables[row].count; i++) {
		const struct edge *e = &tables[row].edges[i];

		if (e->from == qp->state && e->to == to)
			return e;
	}
	return NULL;
}

/* Returns a text that says from which states a QP can enter the state `to`, and
 * what the program must do first.  A QP can enter RESET and ERR from each
 * state. */
static const char *states_before(uint32_t to)
{
	switch (to) {
	case HCA_QP_RESET:
	case HCA_QP_ERR:
		return "a transition to RESET or ERR takes no attributes";
	case HCA_QP_INIT:
		return "qp_state is INIT, which follows RESET or INIT: move "
		       "the QP to RESET first";
	case HCA_QP_RTR:
		return "qp_state is RTR, which follows INIT: move the QP to "
		       "INIT first";
	case HCA_QP_RTS:
		return "qp_state is RTS, which follows RTR (iWARP: INIT), RTS, "
		       "SQD, or SQE of UC and UD: move the QP to RTR first";
	case HCA_QP_SQD:
		return "qp_state is SQD, which follows RTS or SQD: move the QP "
		       "to RTS first";
	default:
		return "qp_state is not RESET, INIT, RTR, RTS, SQD or ERR: set "
		       "one of these states";
	}
}

/* Returns why a QP cannot enter the state `to`, or, without HCA_QP_STATE in
 * mask, why its attributes cannot be modified in its state `to`. */
static const char *why_no_edge(uint32_t mask, uint32_t to)
{
	return mask & HCA_QP_STATE
		       ? states_before(to)
		       : "attr_mask has no IBV_QP_STATE, and in this state of "
			 "the QP no attribute can be modified: set qp_state "
			 "and IBV_QP_STATE for a transition that takes the "
			 "attribute";
}

int qp_modify_check(const struct hca *h, const struct qp *qp,
		    const struct hca_qp_attr *a, uint32_t mask,
		    const char **why)
{
	uint32_t to = mask & HCA_QP_STATE ? a->qp_state : qp->state;
	uint32_t rest = mask & ~(uint32_t)HCA_QP_STATE;
	const struct edge *e;

	if ((mask & HCA_QP_CUR_STATE) && a->cur_qp_state != qp->state)
		return refuse_modify(why, "cur_qp_state is not the QP's state: "
					  "set the state that ibv_query_qp "
					  "gives, or leave IBV_QP_CUR_STATE "
					  "out of attr_mask");
	if ((to == HCA_QP_RESET || to == HCA_QP_ERR) &&
	    !(rest & ~(uint32_t)HCA_QP_CUR_STATE))
		return 0;
	e = find_edge(qp, to);
	if (!e)
		return refuse_modify(why, why_no_edge(mask, to));
	if ((rest & e->required) != e->required)
		return refuse_mask(why, e->required & ~rest, true);
	if (rest & ~(e->required | e->optional | HCA_QP_CUR_STATE))
		return refuse_mask(
			why,
			rest & ~(e->required | e->optional | HCA_QP_CUR_STATE),
			false);
	return check_ranges(h, qp, a, mask, why);
}

void qp_modify_store(struct qp *qp, const struct hca_qp_attr *a, uint32_t mask)
{
	struct hca_qp_attr *t = &qp->attr;

#define STORE(bit, field)                                                      \
	do {                                                                   \
		if (mask & (bit))                                              \
			t->field = a->field;                                   \
	} while (0)
	STORE(HCA_QP_EN_SQD_ASYNC, en_sqd_async_notify);
	STORE(HCA_QP_ACCESS_FLAGS, access_flags);
	STORE(HCA_QP_PKEY_INDEX, pkey_index);
	STORE(HCA_QP_PORT, port_num);
	STORE(HCA_QP_QKEY, qkey);
	STORE(HCA_QP_AV, ah);
	STORE(HCA_QP_PATH_MTU, path_mtu);
	STORE(HCA_QP_TIMEOUT, timeout);
	STORE(HCA_QP_RETRY_CNT, retry_cnt);
	STORE(HCA_QP_RNR_RETRY, rnr_retry);
	/* As with the kernel's drivers, the upper 8 bits of a PSN have no
	 * meaning: programs pass random numbers of 31 bits. */
	if (mask & HCA_QP_RQ_PSN)
		t->rq_psn = a->rq_psn & SERIAL24_MASK;
	STORE(HCA_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
	STORE(HCA_QP_ALT_PATH, alt_ah);
	STORE(HCA_QP_ALT_PATH, alt_pkey_index);
	STORE(HCA_QP_ALT_PATH, alt_port_num);
	STORE(HCA_QP_ALT_PATH, alt_timeout);
	STORE(HCA_QP_MIN_RNR_TIMER, min_rnr_timer);
	if (mask & HCA_QP_SQ_PSN)
		t->sq_psn = a->sq_psn & SERIAL24_MASK;
	STORE(HCA_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	STORE(HCA_QP_PATH_MIG_STATE, path_mig_state);
	STORE(HCA_QP_DEST_QPN, dest_qpn);
	STORE(HCA_QP_RATE_LIMIT, rate_limit);
#undef STORE
	/* The responder lock orders the stores of attr and of attr_serial
	 * before the loads of a peer, which takes the lock later.  Without this
	 * order the peer could keep an old copy of attr.  (A transition to ERR
	 * is made without the lock, but stores no attribute.) */
	__atomic_store_n(&qp->attr_serial, qp->attr_serial + 1,
			 __ATOMIC_RELAXED);
}
