/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/lid.h"

#include "engine/inside.h"

/* Returns the LID of q's port, whose lowest bits, as many as the port's LMC
 * says, are those of path_bits; 0: the port has no LID. */
static uint16_t lid_of(const struct ibt *t, const struct ibt_qp *q,
		       uint8_t path_bits)
{
	const struct hca_port *port = ibt_port(t, q);

	if (!port || !port->lid)
		return 0;
	return (uint16_t)(port->lid | (path_bits & ((1 << port->lmc) - 1)));
}

void lid_add_port(const struct ibt *t, const struct ibt_qp *q,
		  uint8_t path_bits, struct burst_lid *lid)
{
	lid->slid = lid_of(t, q, path_bits);
	lid->pkey = ibt_pkey(t, q);
}

void lid_set_addresses(const struct ibt *t, struct ibt_qp *q)
{
	const struct hca_ah *ah = &q->qp->attr.ah;

	inaddr_map_lid(q->self.ip, lid_of(t, q, ah->src_path_bits));
	inaddr_map_lid(q->peer.ip, ah->dlid);
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
