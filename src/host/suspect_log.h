/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages about packets that fit no connection of this process: one for each
 * address and user that sends them (engine/suspect.h), and one about a flood of
 * junk.  No state.
 */
#ifndef HOST_SUSPECT_LOG_H
#define HOST_SUSPECT_LOG_H

#include "engine/engine.h"
#include "log/log.h"

/* Prints the messages that are due.  Called under the progress lock. */
void suspect_log_say(struct engine *e);
/* Prints the message that somebody sends junk to UDP port 4791 and sets *said,
 * if the engine has dropped much junk and *said is not set yet.  Called under
 * the progress lock. */
void suspect_log_junk(const struct engine *e, bool *said);

#endif
