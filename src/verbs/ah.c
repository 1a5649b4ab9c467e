/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address handles: checked and kept.  Nothing sends through one yet, as that
 * takes an unreliable datagram queue pair; multicast the same.
 */
#include <errno.h>
#include <stdlib.h>

#include "verbs/fail.h"
#include "verbs/object.h"

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct host_gid gid;
	struct ibv_ah *ah;

	if (attr->port_num != 1 || !attr->is_global ||
	    !host_gid(v_context(pd->context)->dev, attr->grh.sgid_index, &gid))
		return v_fail_null(EINVAL, V_INPUT,
				   "ibv_create_ah: RoCE needs port 1, "
				   "is_global and a valid sgid_index");
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return NULL;
	ah->context = pd->context;
	ah->pd = pd;
	count_up(&v_pd(pd)->users);
	return ah;
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	count_down(&v_pd(ah->pd)->users);
	free(ah);
	return 0;
}

int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port,
			struct ibv_wc *wc, struct ibv_grh *grh,
			struct ibv_ah_attr *attr)
{
	return v_fail_errno(EOPNOTSUPP, V_NOT_BUILT,
			    "an address handle from a datagram");
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc,
				     struct ibv_grh *grh, uint8_t port)
{
	return v_fail_null(EOPNOTSUPP, V_NOT_BUILT,
			   "an address handle from a datagram");
}

/* The kernel's sockets choose the link layer address, so nobody needs it. */
int ibv_resolve_eth_l2_from_gid(struct ibv_context *context,
				struct ibv_ah_attr *attr,
				uint8_t eth_mac[ETHERNET_LL_SIZE],
				uint16_t *vid)
{
	return v_fail(EOPNOTSUPP, V_NOT_BUILT,
		      "the link layer address of a GID");
}

int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return v_fail(EOPNOTSUPP, V_NOT_BUILT, "multicast");
}

int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return EOPNOTSUPP;
}
