/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Verbs of features that adverb does not support; refuse.c names the verbs.
 * Each fails with EOPNOTSUPP, and with a message that names the feature.
 * Arguments are not read.  No lock.
 */
#ifndef VERBS_REFUSE_H
#define VERBS_REFUSE_H

/* The functions that return a pointer return NULL, with errno EOPNOTSUPP. */
void *v_refuse_null_mr(void);
void *v_refuse_counters(void);
void *v_refuse_flow(void);
void *v_refuse_flow_action(void);
void *v_refuse_rss(void);
void *v_refuse_wq(void);
void *v_refuse_xrc(void);
/* Returns EOPNOTSUPP. */
int v_refuse_advice(void);

#endif
