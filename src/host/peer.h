/* SPDX-License-Identifier: BSD-2-Clause */
/* What the broker knows about others; the one door from host to broker. */
#ifndef HOST_PEER_H
#define HOST_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"

/* The receive socket of this process: fd (owned by the caller) or -errno. */
int peer_socket(void);
/* A QPN of this process's class from random bits. */
uint32_t peer_qpn(uint32_t random);
/*
 * Our page and that of the process of this namespace that a QPN is of; see
 * broker/client.h.  Under the lane's lock; NULL: none, or none yet.
 */
void *peer_page(void);
const void *peer_page_of(uint32_t qpn);
/* Is the process behind event's peer and dest_qpn alive? */
enum engine_peer peer_ask(const struct engine_event *e);
void peer_close(void);
/* In a forked child: the parent's class is not ours. */
void peer_forget(void);

#endif
