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
/* All clients are freed already. */
void cmserver_free(struct cmserver *s);
/*
 * The fd store is that of a broker that has ended: waits for its clients, which
 * listen and resume again, and tells the peers of those that have died since.
 */
void cmserver_succeed(struct cmserver *s, uint64_t now_ns);
/* Has the process conversations of a broker that has ended, which it has not
 * resumed? */
bool cmserver_awaits(const struct cmserver *s, pid_t pid);
/* The process has ended: tells the peers of conversations that it has not
 * resumed. */
void cmserver_bereave(struct cmserver *s, pid_t pid, uint64_t now_ns);
/* A client by that process of that user (USER_NONE: of one that cannot be told
 * from others); fd, its connection, is borrowed.  NULL without memory. */
struct cmserver_client *cmserver_client_new(struct cmserver *s, int fd,
					    uid_t user, pid_t pid);
/* The client's process or connection has ended: releases all that it has. */
void cmserver_client_free(struct cmserver *s, struct cmserver_client *c,
			  uint64_t now_ns);
/* Handles a message of the client, of any contents.  False: the client is to be
 * dropped. */
bool cmserver_handle(struct cmserver *s, struct cmserver_client *c,
		     const struct cmproto *m, size_t length, uint64_t now_ns);
/* Is cmserver_output to be called when the client's socket takes something? */
bool cmserver_has_output(const struct cmserver_client *c);
/* Sends what waits for the client, as far as its socket takes it.  False: the
 * client is to be dropped. */
bool cmserver_output(struct cmserver_client *c);
/*
 * As cm_has_ended, of connections of that user.  Of another user's connections
 * nobody is told anything, and a user that cannot be told from others
 * (USER_NONE) is told of none.
 */
bool cmserver_has_ended(struct cmserver *s, uid_t user, const uint8_t peer[16],
			uint32_t qpn);
/*
 * Takes out a peer of another host that a REQ says to have lost a connection
 * with us; false: there is none.  The caller asks the peer whether the queue
 * pair lives, and calls cmserver_stale if it does not, and in each case
 * cmserver_settle, also if the peer cannot be asked.
 */
bool cmserver_doubts(struct cmserver *s, struct live_peer *about);
/* A peer that cmserver_doubts gave is no longer asked: its place is free. */
void cmserver_settle(struct cmserver *s, const struct live_peer *about);
/* Ends the connection with the peer's queue pair, as cm_stale. */
void cmserver_stale(struct cmserver *s, const struct live_peer *about,
		    uint64_t now_ns);
void cmserver_tick(struct cmserver *s, uint64_t now_ns);
/* Absolute time of the next cmserver_tick that is needed; UINT64_MAX: none. */
uint64_t cmserver_deadline(const struct cmserver *s);
/* Are there conversations, of which a peer may know? */
bool cmserver_is_busy(const struct cmserver *s);

#endif
