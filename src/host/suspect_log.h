/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages about packets that fit no connection of this process: one for each
 * address and user that sends them (engine/suspect.h), and one about many
 * datagrams that are not RoCE, are damaged, or are for QPs that do not exist
 * (junk).  Stateless.
 */
#ifndef HOST_SUSPECT_LOG_H
#define HOST_SUSPECT_LOG_H

#include "engine/engine.h"
#include "log/log.h"

/* Prints the messages that are due.  Called under the progress lock. */
void suspect_log_say(struct engine *e);
/* If the engine has dropped 1000 datagrams of junk and *said is not set yet,
 * prints the message about them and sets *said.  Called under the progress
 * lock. */
void suspect_log_junk(const struct engine *e, bool *said);

#endif
