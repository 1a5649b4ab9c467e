/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connection of this process to the broker.  The functions that ask a
 * question do not wait: a later broker_link_turn receives the answer.
 *
 * Lock: the progress lock, with two exceptions.  While the host starts or ends,
 * no other thread uses this file, and the host calls the functions without the
 * lock: broker_link_socket, broker_link_close and broker_link_tree are called
 * only then.  broker_link_class and the functions for the thread that waits
 * need no lock.
 */
#ifndef HOST_BROKER_LINK_H
#define HOST_BROKER_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"

/*
 * Connects to the broker and returns the receive socket of this process, which
 * the caller owns.  If no broker can be used, prints why, and binds UDP port
 * 4791 itself, unless a broker that this process cannot use has the port.  The
 * broker shows the arena @arena_fd and the eventfd @peer_wake_fd to processes
 * of this user, unless one of the two descriptors is -1; both are borrowed
 * until broker_link_close.  Waits at most patience_ns for a broker that lives
 * and does not answer.  On failure returns -errno: an error of client_open
 * (broker/client.h), or of a system call.
 */
int broker_link_socket(int arena_fd, int peer_wake_fd, uint64_t patience_ns);
/* Closes the connection; from here on this process has no broker. */
void broker_link_close(void);
/* Makes the broker write the counter files below devices_fd, a folder of the
 * tree that sysfs_path names.  Takes ownership of devices_fd. */
void broker_link_tree(int devices_fd);
/* Makes a QPN of this process's class from random bits.  Without a broker there
 * are no classes, and the QPN is the low 24 bits. */
uint32_t broker_link_qpn(uint32_t random);
/* Returns the steering class of a QPN of this namespace. */
uint32_t broker_link_class(uint32_t qpn);
/* Returns this process's shared page; NULL: there is no broker, or this process
 * has no page. */
void *broker_link_page(void);
/* Stores in *page the shared page of the process that has the QPN; NULL: the
 * process has no page, or there is no broker.  Before the call, *page is the
 * page that the caller has, or NULL; that page is unmapped when a later call
 * finds that the caller has the next one.  False: the broker has not answered
 * yet, or has no other page than *page; the caller asks again later. */
bool broker_link_page_of(uint32_t qpn, const void **page);
/* Asks whether the process that has the QP e->dest_qpn, the peer of the event
 * *e, is alive.  engine_peer_state gets the answer, perhaps during this call.
 * Without a broker, and about a peer by LID, the answer is
 * ENGINE_PEER_UNKNOWN. */
void broker_link_ask(struct engine *engine, const struct engine_event *e,
		     uint64_t now_ns);
/* Asks for the arena of the process with a class; local_peer_answered gets the
 * answer.  False: there is no broker, or the question could not be sent now. */
bool broker_link_ask_arena(uint32_t class);
/* Asks whether the user of the process with a class owns the port of `from`,
 * the source of a datagram to `to`; source_port_answered gets the answer.
 * False: there is no broker, or the question could not be sent now. */
bool broker_link_ask_source(uint32_t class, const struct inaddr *from,
			    const struct inaddr *to);
/* Receives the broker's answers, and connects to a new broker if the broker has
 * ended.  Makes no system call while no answer is outstanding, no timer is due
 * and broker_link_woken was not called. */
void broker_link_turn(struct engine *engine, uint64_t now_ns);
/* Called after broker_link_turn.  If a successor of the broker has made a new
 * relay for this process, and no call has returned this relay yet, returns a
 * descriptor of the relay's receiving end, which the caller owns.  Otherwise,
 * or if the process has no descriptor left, returns -1. */
int broker_link_new_relay(void);
/* Has the broker answered broker_link_ask that a process has ended, and was the
 * engine not told of that yet? */
bool broker_link_has_dead(void);
/*
 * Tells the engine of the deaths for which broker_link_has_dead returns true,
 * and makes the engine forget what it knows of source ports, which other
 * processes may have by now.  Packets of a dead process may still be in the
 * receive socket, so the caller calls this only once it has found the socket
 * empty.
 */
void broker_link_reap_dead(struct engine *engine, uint64_t now_ns);
/* Returns when broker_link_turn or broker_link_reap_dead is due without POLLIN,
 * in ns of monotonic_ns; UINT64_MAX: never. */
uint64_t broker_link_due_ns(void);
/* For the thread that waits: returns the descriptor at whose POLLIN
 * broker_link_turn is due, or -1.  Needs no lock. */
int broker_link_fd(void);
/* For the thread that waits: returns a number that changes whenever
 * broker_link_fd refers to another file or a turn has changed
 * broker_link_due_ns.  Needs no lock. */
uint32_t broker_link_changes(void);
/* For the thread that waits: tells that broker_link_fd is readable, so that the
 * next broker_link_turn reads it.  Needs no lock. */
void broker_link_woken(void);

#endif
