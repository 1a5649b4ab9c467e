/* SPDX-License-Identifier: BSD-2-Clause */
/* Converts address vectors from struct ibv_ah_attr to struct hca_ah.  No state,
 * no lock. */
#ifndef VERBS_AH_H
#define VERBS_AH_H

#include <infiniband/verbs.h>

#include "hca/hca.h"

/* Fills *to from the program's *from.  path_find and host_qp_modify check the
 * values later. */
void v_ah_in(struct hca_ah *to, const struct ibv_ah_attr *from);

#endif
