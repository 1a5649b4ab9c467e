/* SPDX-License-Identifier: BSD-2-Clause */
/* The death of processes that worked in this arena. */
#ifndef HCA_PEER_DEATH_H
#define HCA_PEER_DEATH_H

#include <stdbool.h>

#include "hca/adapter.h"

/*
 * The owner, under its progress lock: repairs what the dead left half done, and
 * sets for each QP the notify bits that a dead peer may not have set; whoever
 * serves a bit looks whether it is true.  False: a process is inside that may
 * be dying, and the call is due again.
 */
bool peer_death_repair(struct hca *h);

#endif
