/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connection of this process to the broker.  All calls but
 * broker_link_socket and broker_link_close are made under the progress lock and
 * do not wait: a later broker_link_turn brings the answer to a question.
 */
#ifndef HOST_BROKER_LINK_H
#define HOST_BROKER_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"

/*
 * The receive socket of this process: a descriptor that the caller owns, or
 * -errno.  The broker shows the arena and the eventfd @kick_fd to processes of
 * this user, unless they are -1; both are borrowed until broker_link_close.
 * Waits at most patience_ns for a broker that lives and does not answer.
 */
int broker_link_socket(int arena_fd, int kick_fd, uint64_t patience_ns);
/* Closes the connection; from here on there is no broker. */
void broker_link_close(void);
/* Has the broker write the counter files of the tree of sysfs_path. */
void broker_link_tree(int devices_fd);
/* A QPN of this process's class from random bits. */
uint32_t broker_link_qpn(uint32_t random);
/* The steering class of a QPN of this namespace. */
uint32_t broker_link_class(uint32_t qpn);
/* Returns this process's shared page, or NULL. */
void *broker_link_page(void);
/* Stores the shared page of the process that has the QPN in *page, or NULL if
 * there is none.  False: not known yet (see client_page_of). */
bool broker_link_page_of(uint32_t qpn, const void **page);
/* Asks for the engine whether the process that has the QP dest_qpn of e's peer
 * lives. */
void broker_link_ask(struct engine *engine, const struct engine_event *e,
		     uint64_t now_ns);
/* Asks for the arena of a class; local_peer.c gets the answer.  False: the
 * question could not be sent now. */
bool broker_link_ask_arena(uint32_t class);
/* Asks which process of another user has a source port; source_port.c gets the
 * answer.  False: there is no broker to ask. */
bool broker_link_ask_source(uint32_t class, const struct inaddr *from,
			    const struct inaddr *to);
/* Takes the broker's answers, and connects again if the broker has ended.
 * Costs little while no answer is outstanding. */
void broker_link_turn(struct engine *engine, uint64_t now_ns);
/* Has broker_link_turn been told of a death that the engine does not know? */
bool broker_link_has_dead(void);
/*
 * Tells the engine of the deaths.  Packets of a dead process may still be in
 * the receive socket, so the caller has found the socket empty after the news.
 */
void broker_link_reap_dead(struct engine *engine, uint64_t now_ns);
/* When broker_link_turn is due without news; UINT64_MAX: never. */
uint64_t broker_link_due_ns(void);
/* For a thread that waits without a lock: returns the descriptor whose POLLIN
 * calls for broker_link_turn, or -1. */
int broker_link_fd(void);
/* Differs whenever broker_link_fd may be another file. */
uint32_t broker_link_changes(void);
/* For the thread that waits: the descriptor is readable, so the next
 * broker_link_turn reads it. */
void broker_link_woken(void);

#endif
