/* SPDX-License-Identifier: BSD-2-Clause */
/* Repairs after the death of processes that worked in this arena. */
#ifndef HCA_PEER_DEATH_H
#define HCA_PEER_DEATH_H

#include <stdbool.h>

#include "hca/adapter.h"

/*
 * For the owner, under its progress lock: repairs what dead peers have left
 * half done, and sets all notify bits of each QP, since a peer may have died
 * before it set one; the handler of a bit checks whether there is anything to
 * do.  False: a living process holds a responder lock; the process may be
 * dying, so the caller calls again later.
 */
bool peer_death_repair(struct hca *h);

#endif
