/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/lid.h"

#include <string.h>

#include "engine/inside.h"
#include "util/check.h"

void lid_add_port(const struct ibt *t, const struct ibt_qp *q,
		  uint8_t path_bits, struct burst_lid *lid)
{
	lid->slid = ibt_lid(t, q, q->qp->attr.port_num, path_bits);
	lid->pkey = ibt_pkey(t, q);
}

bool lid_has_gids(const struct hca_ah *ah, const struct iblink *link)
{
	if (link->lrh.lnh != LRH_NEXT_GLOBAL || !ah->is_global)
		return true;
	return !memcmp(link->grh.sgid, ah->dgid, 16) &&
	       !memcmp(link->grh.dgid, ah->sgid, 16);
}

bool lid_is_alternate(const struct ibt *t, const struct ibt_qp *q,
		      const struct engine_dgram *d)
{
	const struct hca_qp_attr *a = &q->qp->attr;
	const struct lrh *lrh = &d->link->lrh;

	return a->alt_ah.dlid && d->port == a->alt_port_num &&
	       lrh->slid == a->alt_ah.dlid &&
	       lrh->dlid == ibt_lid(t, q, a->alt_port_num,
				    a->alt_ah.src_path_bits) &&
	       lid_has_gids(&a->alt_ah, d->link);
}

void engine_port(struct engine *e, uint32_t device, uint32_t number,
		 const struct hca_port *port)
{
	struct ibt_qp *q;
	uint32_t at = 0;

	CHECK(device < HCA_MAX_DEVICES && number && number <= HCA_MAX_PORTS);
	e->ibt.ports[device][number - 1] = *port;
	while ((q = map_next(&e->qpns, &at)))
		if (q->qp->is_by_lid && q->qp->device == device)
			ibt_qp_set_lids(&e->ibt, q);
}

void engine_fail_device(struct engine *e, uint32_t device, uint64_t now_ns)
{
	struct ibt_qp *q;
	uint32_t at = 0;

	e->ibt.now_ns = now_ns;
	while ((q = map_next(&e->qpns, &at)))
		if (q->qp->is_by_lid && q->qp->device == device &&
		    q->qp->state != HCA_QP_ERR)
			ibt_qp_enter(&e->ibt, q, HCA_QP_ERR);
}

bool lid_is_own(const struct ibt *t, uint32_t device, uint16_t lid)
{
	for (uint32_t i = 0; i < HCA_MAX_PORTS; i++) {
		const struct hca_port *port = &t->ports[device][i];

		if (port->lid && lid >> port->lmc == port->lid >> port->lmc)
			return true;
	}
	return false;
}
