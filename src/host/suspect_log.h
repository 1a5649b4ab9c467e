/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages about addresses that send packets which fit no connection of this
 * process, one for each address and user (engine/suspect.h).  No state.
 */
#ifndef HOST_SUSPECT_LOG_H
#define HOST_SUSPECT_LOG_H

#include "engine/engine.h"
#include "log/log.h"

/* Prints the messages that are due.  Called under the progress lock. */
void suspect_log_say(struct engine *e);

#endif
