/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sentences about those who send packets that fit no connection of ours: each
 * address once (engine/suspect.h).  No state.  Called with the lane.
 */
#ifndef HOST_SUSPECT_LOG_H
#define HOST_SUSPECT_LOG_H

#include "engine/engine.h"
#include "log/log.h"

void suspect_log_say(struct engine *e);

#endif
