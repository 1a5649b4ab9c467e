/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answers the engine's questions about source ports of this host: which process
 * has the port, and may it speak for the peer (engine/source_check.h)?  A port
 * of this process's own user or of root is believed, since such a process could
 * read this one's memory anyway.  For another user's port the broker says
 * whether the process that has it is the one with the peer's class; while there
 * is no broker, an earlier answer holds for as long as the port has the same
 * owner.  All calls are made under the progress lock; none waits but for the
 * kernel's answer about a port.
 */
#ifndef HOST_SOURCE_PORT_H
#define HOST_SOURCE_PORT_H

#include "broker/client.h"
#include "engine/engine.h"

/* Answers the engine's questions, at once or later in source_port_told. */
void source_port_find(struct engine *e, uint64_t now_ns);
/* Takes the broker's answer, and tells the engine. */
void source_port_told(struct engine *e, const struct client_news *news,
		      uint64_t now_ns);
/* Is an answer of the broker outstanding? */
bool source_port_is_asking(void);
/* There is another broker, which will not answer what the last one was asked.
 */
void source_port_is_back(void);
/* Forgets everything, when the last host is gone. */
void source_port_forget(void);

#endif
