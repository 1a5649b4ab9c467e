/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the broker knows about others; the one door from host to broker.  All
 * but peer_socket and broker_link_close is called under the lane's lock, and
 * nothing there waits: a question is answered by a later broker_link_turn.
 */
#ifndef HOST_BROKER_LINK_H
#define HOST_BROKER_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"

/*
 * The receive socket of this process: fd (owned by the caller) or -errno.  The
 * arena and the kick are shared with this user's processes, if they are not
 * -1; borrowed until broker_link_close.  Waits for a broker that lives and says
 * nothing, for so long.
 */
int broker_link_socket(int arena_fd, int kick_fd, uint64_t patience_ns);
void broker_link_close(void);
/* Counter files for the tree that sysfs_path has written. */
void broker_link_tree(int devices_fd);
/* A QPN of this process's class from random bits. */
uint32_t broker_link_qpn(uint32_t random);
/* The class that a QPN of this namespace is of. */
uint32_t broker_link_class(uint32_t qpn);
/*
 * Our page (NULL: none) and that of the process of this namespace that a QPN
 * is of; false: not known yet.  See client_page_of.
 */
void *broker_link_page(void);
bool broker_link_page_of(uint32_t qpn, const void **page);
/* The engine asks whether the process behind e's peer and dest_qpn lives. */
void broker_link_ask(struct engine *engine, const struct engine_event *e,
		     uint64_t now_ns);
/* Asks for a class's arena; local_peer.c gets the answer.  False: ask again. */
bool broker_link_ask_arena(uint32_t class);
/* Asks whose a source port is, of another user; source_port.c gets the answer.
 * False: there is nobody to ask. */
bool broker_link_ask_source(uint32_t class, const struct inaddr *from,
			    const struct inaddr *to);
/* Takes answers and looks after the broker; cheap when nothing is awaited. */
void broker_link_turn(struct engine *engine, uint64_t now_ns);
/*
 * Has broker_link_turn heard of a death?  The last words of the dead may still
 * wait in our socket: who finds it empty after that has heard all, and
 * broker_link_reap_dead then tells the engine.
 */
bool broker_link_has_dead(void);
void broker_link_reap_dead(struct engine *engine, uint64_t now_ns);
/* When it is due in any case; UINT64_MAX: never. */
uint64_t broker_link_due_ns(void);
/*
 * For who sleeps, without a lock: the descriptor whose POLLIN asks for a
 * broker_link_turn (-1: none), which broker_link_woken then makes look.
 */
int broker_link_fd(void);
/* Another number whenever that may be another file. */
uint32_t broker_link_changes(void);
void broker_link_woken(void);

#endif
