/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Verbs of features that are not built: they fail with EOPNOTSUPP, in the
 * convention of each, and say once what it is.  Arguments are not looked at.
 */
#ifndef VERBS_REFUSE_H
#define VERBS_REFUSE_H

void *v_refuse_null_mr(void);
void *v_refuse_counters(void);
void *v_refuse_flow(void);
void *v_refuse_flow_action(void);
void *v_refuse_rss(void);
void *v_refuse_wq(void);
void *v_refuse_xrc(void);
int v_refuse_advice(void);

#endif
