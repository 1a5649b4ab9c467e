/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A transport service in the simulation: one table of functions in one file,
 * service_<name>.c, listed in pair.c.  All services share the code for memory
 * (pair.c), for posting and polling (workload.c), and for the order of
 * completions (oracle.c).
 */
#ifndef SIM_SERVICE_H
#define SIM_SERVICE_H

#include "sim/workload.h"

/* The table of a service. */
struct service {
	uint32_t qp_type; /* HCA_QPT_* */
	/* The service is unreliable: nothing is sent again, and a late packet
	 * is accepted. */
	bool is_lossy;
	/* RC and iWARP: the opcodes from which a request's opcode is drawn.  An
	 * opcode that is listed twice is drawn twice as often. */
	const uint8_t *opcodes;
	uint32_t opcode_count; /* entries of opcodes */
	/* --- the workload --- */
	/*
	 * Draws f's next request (f->round.ops[f->round.ops_count], zeroed),
	 * and the receive that it consumes, if any.  False: the flow's memory
	 * is used up.  defective: the request gets a defect.
	 */
	bool (*make)(struct world *w, struct flow *f, bool defective);
	/* Brings both QPs of a pair from RESET to RTS; f is the first flow. */
	void (*connect)(struct world *w, struct flow *f);
	/* Fills in those fields of a request's WQE that depend on the service.
	 */
	void (*fill)(const struct flow *f, const struct op *o, struct wqe *e);
	/* May the program post f's next request now?  NULL: always. */
	bool (*may_post)(const struct flow *f);
	/* Does the service's part of the end of f's round, before the QPs enter
	 * RESET.  NULL: there is none. */
	void (*end)(struct flow *f);
	/* --- the oracle --- */
	/* May request i of f complete with this status? */
	bool (*may_end)(const struct flow *f, uint32_t i, uint32_t status);
	/* Checks the completion of the i-th receive posted for f. */
	void (*received)(struct world *w, struct flow *f, uint32_t i,
			 const struct cqe *c);
	/* Is the round of f over?  The caller asks when all requests of f are
	 * complete, or when the process of f->from has ended.  False while a
	 * receive must still complete or, for iWARP, while bytes are under way.
	 */
	bool (*is_over)(const struct flow *f);
	/* Executes f's requests once more, in the shadow memories of both
	 * hosts. */
	void (*replay)(struct flow *f);
};

/* The members make, fill, received, is_over and replay of service_rc.
 * service_iwarp has the same members, except that its is_over calls
 * service_rc_is_over. */
bool service_rc_make(struct world *w, struct flow *f, bool defective);
void service_rc_fill(const struct flow *f, const struct op *o, struct wqe *e);
void service_rc_received(struct world *w, struct flow *f, uint32_t i,
			 const struct cqe *c);
bool service_rc_is_over(const struct flow *f);
void service_rc_replay(struct flow *f);
/* Moves f's QP from RESET to RTS with the attributes in *a. */
void service_rc_enter_rts(struct world *w, struct flow *f,
			  struct hca_qp_attr *a);

extern const struct service service_rc, service_uc, service_ud, service_iwarp;

#endif
