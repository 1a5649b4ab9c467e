/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connection management of a network namespace: the conversations of cm/ over
 * QP1 for all clients, and one port space for them all.  The conversations of a
 * client that dies are released, so that their peers are told, and its ports
 * and listeners are freed.  Part of the broker's loop: one thread, no lock, no
 * call waits.
 */
#ifndef BROKER_CMSERVER_H
#define BROKER_CMSERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "broker/cmproto.h"
#include "broker/gsi.h"
#include "cm/live.h"
#include "broker/fd_store.h"

struct cmserver;
struct cmserver_client;

/* Attaches to gsi; borrows gsi and the fd store, which may hold nothing yet.
 * NULL: there is no memory, or no random number. */
struct cmserver *cmserver_new(struct gsi *gsi, struct fd_store *fd_store,
			      uint64_t now_ns);
/* Frees s; the caller has freed all clients. */
void cmserver_free(struct cmserver *s);
/*
 * Begins the succession to the broker that has left the fd store: waits for
 * that broker's clients, which listen and resume again, and tells the peers of
 * those that have died since.
 */
void cmserver_succeed(struct cmserver *s, uint64_t now_ns);
/* Has the process conversations of a broker that has ended, which it has not
 * resumed? */
bool cmserver_awaits(const struct cmserver *s, pid_t pid);
/* A process has ended: tells the peers of its conversations that it has not
 * resumed. */
void cmserver_process_ended(struct cmserver *s, pid_t pid, uint64_t now_ns);
/* Makes a client for process pid of user (USER_NONE: a user that cannot be told
 * from others).  Borrows fd, its connection.  NULL without memory. */
struct cmserver_client *cmserver_client_new(struct cmserver *s, int fd,
					    uid_t user, pid_t pid);
/* The client's process or connection has ended: releases all that it has. */
void cmserver_client_free(struct cmserver *s, struct cmserver_client *c,
			  uint64_t now_ns);
/* Handles a message of the client, of any contents.  False: the caller drops
 * the client. */
bool cmserver_handle(struct cmserver *s, struct cmserver_client *c,
		     const struct cmproto *m, size_t length, uint64_t now_ns);
/* Is cmserver_output due when the client's socket has room: do messages wait,
 * or is the client to be dropped? */
bool cmserver_has_output(const struct cmserver_client *c);
/* Sends the messages that wait for the client, as many as its socket takes.
 * False: the caller drops the client. */
bool cmserver_output(struct cmserver_client *c);
/*
 * Has a connection of that user with the peer's queue pair ended lately (see
 * cm_has_ended)?  No user is told anything of another user's connections, and a
 * user that cannot be told from others (USER_NONE) is told of none.
 */
bool cmserver_has_ended(struct cmserver *s, uid_t user, const uint8_t peer[16],
			uint32_t qpn);
/*
 * Gives a peer of another host that has lost its connection with us, as a REQ
 * says; false: there is none.  The caller asks the peer's host whether the
 * queue pair lives, and calls cmserver_stale if it does not.  In each case,
 * also if the host cannot be asked, the caller then calls cmserver_settle.
 */
bool cmserver_doubts(struct cmserver *s, struct live_peer *about);
/* Frees the place of a peer that cmserver_doubts gave. */
void cmserver_settle(struct cmserver *s, const struct live_peer *about);
/* Ends the connection with the peer's queue pair (see cm_stale). */
void cmserver_stale(struct cmserver *s, const struct live_peer *about,
		    uint64_t now_ns);
/* Expires the timers that are due, and sends what they cause. */
void cmserver_tick(struct cmserver *s, uint64_t now_ns);
/* Absolute time of the next cmserver_tick that is needed; UINT64_MAX: none. */
uint64_t cmserver_deadline(const struct cmserver *s);
/* Are there conversations, in any state? */
bool cmserver_is_busy(const struct cmserver *s);

#endif
