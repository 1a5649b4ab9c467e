/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a transport service adds to the simulation: one row of functions in
 * one file, service_<name>.c, listed in workload.c.  All else is common:
 * memory, posting and polling in workload.c, once and in order in oracle.c.
 */
#ifndef SIM_SERVICE_H
#define SIM_SERVICE_H

#include "sim/workload.h"

struct service {
	uint32_t qp_type; /* HCA_QPT_* */
	/* Nothing is repeated, and what is late is taken for new. */
	bool is_lossy;
	/* --- the workload --- */
	/*
	 * Draw f's next request (f->ops[f->ops_count], zeroed) and a receive
	 * for it if it takes one; false when memory set aside is used up.
	 * `defective`: one that must fail.
	 */
	bool (*make)(struct world *w, struct flow *f, bool defective);
	/* Bring both QPs of a pair from RESET to RTS; f is the first flow. */
	void (*connect)(struct world *w, struct flow *f);
	/* Fill in what the WQE of a request has beyond the common fields. */
	void (*fill)(const struct flow *f, const struct op *o, struct wqe *e);
	/* --- the oracle --- */
	/* May request i of f end so? */
	bool (*may_end)(const struct flow *f, uint32_t i, uint32_t status);
	/* A receive for messages of f completes, the i-th posted. */
	void (*received)(struct world *w, struct flow *f, uint32_t i,
			 const struct cqe *c);
	/* All requests of f are complete: may it still wait for receives? */
	bool (*is_over)(const struct flow *f);
	/* Do to the shadow memories what f's requests did to the real ones. */
	void (*replay)(struct flow *f);
};

extern const struct service service_rc, service_uc, service_ud;

#endif
