/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answers the engine's questions about source ports of this host: does the user
 * of the peer's process own the port (engine/source_check.h)?
 *
 * A port of root or of this process's own user is believed, since a process of
 * either user could read this process's memory anyway.  For any other port the
 * broker says whether the user of the process with the peer's class owns the
 * port.  The broker is also asked if this process's user has a number that the
 * kernel gives to several users (user_map_is_own).  If the broker cannot be
 * asked, an earlier answer is used as long as the port has the same owner, and
 * the broker cannot have given the peer's class to another user's process.
 *
 * A port is not believed if no socket is bound to it at the wildcard address.
 * If the kernel does not tell the port's owner, the port is believed, and a
 * message tells the user.
 *
 * All calls are made under the progress lock.  They wait only for the kernel's
 * answer about a port's owner.
 */
#ifndef HOST_SOURCE_PORT_H
#define HOST_SOURCE_PORT_H

#include "broker/client.h"
#include "engine/engine.h"

/* Answers the engine's new questions at once, or asks the broker; then
 * source_port_answered answers. */
void source_port_find(struct engine *e, uint64_t now_ns);
/* Passes an answer of the broker (CLIENT_NEWS_SOURCE) to the engine. */
void source_port_answered(struct engine *e, const struct client_news *news,
			  uint64_t now_ns);
/* Is an answer of the broker outstanding? */
bool source_port_is_asking(void);
/* Called when there is a new broker: asks the new broker the questions that its
 * predecessor has not answered.  A question that cannot be sent is dropped, and
 * the engine asks again. */
void source_port_ask_again(void);
/* Called when no broker can be used: ends the questions that the last broker
 * has not answered, by earlier answers if there are any. */
void source_port_give_up(struct engine *e, uint64_t now_ns);
/* Forgets all questions and answers.  Called when a host is made. */
void source_port_forget(void);

#endif
