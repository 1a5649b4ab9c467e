/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths, as the API writes them and as hca does. */
#ifndef VERBS_AH_H
#define VERBS_AH_H

#include <infiniband/verbs.h>

#include "hca/hca.h"

void v_ah_in(struct hca_ah *to, const struct ibv_ah_attr *from);

#endif
