/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the broker knows about others; the one door from host to broker.  All
 * but peer_socket and peer_close is called under the lane's lock, and nothing
 * there waits: a question is answered by a later peer_turn.
 */
#ifndef HOST_PEER_H
#define HOST_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"

/*
 * The receive socket of this process: fd (owned by the caller) or -errno.  The
 * arena and the kick are shared with this user's processes, if they are not
 * -1; borrowed until peer_close.  Waits for a broker that lives and says
 * nothing, for so long.
 */
int peer_socket(int arena_fd, int kick_fd, uint64_t patience_ns);
void peer_close(void);
/* Counter files for the tree that host_sysfs has written. */
void peer_tree(int devices_fd);
/* A QPN of this process's class from random bits. */
uint32_t peer_qpn(uint32_t random);
/* The class that a QPN of this namespace is of. */
uint32_t peer_class(uint32_t qpn);
/*
 * Our page (NULL: none) and that of the process of this namespace that a QPN
 * is of; false: not known yet.  See client_page_of.
 */
void *peer_page(void);
bool peer_page_of(uint32_t qpn, const void **page);
/* The engine asks whether the process behind e's peer and dest_qpn lives. */
void peer_ask(struct engine *engine, const struct engine_event *e,
	      uint64_t now_ns);
/* Asks for a class's arena; neighbour.c gets the answer.  False: ask again. */
bool peer_ask_arena(uint32_t class);
/* Asks whose a source port is, of another user; source.c gets the answer.
 * False: there is nobody to ask. */
bool peer_ask_source(uint32_t class, const struct inaddr *from,
		     const struct inaddr *to);
/* Takes answers and looks after the broker; cheap when nothing is awaited. */
void peer_turn(struct engine *engine, uint64_t now_ns);
/*
 * Has peer_turn heard of a death?  The last words of the dead may still wait
 * in our socket: who finds it empty after that has heard all, and peer_bury
 * then tells the engine.
 */
bool peer_has_dead(void);
void peer_bury(struct engine *engine, uint64_t now_ns);
/* When it is due in any case; UINT64_MAX: never. */
uint64_t peer_due_ns(void);
/*
 * For who sleeps, without a lock: the descriptor whose POLLIN asks for a
 * peer_turn (-1: none), which peer_woken then makes look.
 */
int peer_fd(void);
/* Another number whenever that may be another file. */
uint32_t peer_changes(void);
void peer_woken(void);

#endif
