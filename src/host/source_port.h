/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answers to the engine's questions whose a source port of this host is
 * (engine/source_check.h).  A port of our own user, or of root, is believed:
 * such a process could read this one's memory.  Of another user's, the broker
 * tells whether it is the one that has the peer's class; while there is no
 * broker, what it told before holds for as long as the port has the same owner.
 * All calls are made under the lane's lock; none waits but for the kernel's
 * word.
 */
#ifndef HOST_SOURCE_PORT_H
#define HOST_SOURCE_PORT_H

#include "broker/client.h"
#include "engine/engine.h"

/* Answers what the engine asks, now or by source_port_told. */
void source_port_find(struct engine *e, uint64_t now_ns);
/* The broker's answer. */
void source_port_told(struct engine *e, const struct client_news *news,
		      uint64_t now_ns);
/* Is one to come? */
bool source_port_is_asking(void);
/* There is another broker, which has not heard what the last one was asked. */
void source_port_is_back(void);
/* For a host that begins anew. */
void source_port_forget(void);

#endif
