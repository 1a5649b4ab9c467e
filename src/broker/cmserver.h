/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connection management of a network namespace: the conversations of cm/ over
 * QP1, for all processes that have called us; one port space for them all.
 * Who dies is disconnected and frees what it had.  Part of the broker's loop:
 * one owner, no lock, nothing waits.
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

/* Attaches to gsi; borrows it and the safe, which may hold nothing yet.  NULL
 * without memory. */
struct cmserver *cmserver_new(struct gsi *gsi, struct fd_store *fd_store,
			      uint64_t now_ns);
/* No client is left. */
void cmserver_free(struct cmserver *s);
/* Another broker was there before, and the safe is his: his clients will
 * listen again, and the peers of those that died meanwhile are told. */
void cmserver_succeed(struct cmserver *s, uint64_t now_ns);
/* Does it hold conversations of a process that has not come for them? */
bool cmserver_awaits(const struct cmserver *s, pid_t pid);
/* That process will not come. */
void cmserver_bereave(struct cmserver *s, pid_t pid, uint64_t now_ns);
/* A client's first message; fd is borrowed.  NULL without memory. */
struct cmserver_client *cmserver_client_new(struct cmserver *s, int fd,
					    uid_t user, pid_t pid);
/* Its process or its connection is gone. */
void cmserver_client_free(struct cmserver *s, struct cmserver_client *c,
			  uint64_t now_ns);
/* One message of it; false when it is to be dropped. */
bool cmserver_handle(struct cmserver *s, struct cmserver_client *c,
		     const struct cmproto *m, size_t length, uint64_t now_ns);
/* Is there something to tell it, if only that it is dropped? */
bool cmserver_has_output(const struct cmserver_client *c);
/* Tell it, as far as its socket takes it; false when it is to be dropped. */
bool cmserver_output(struct cmserver_client *c);
/* Has the connection to that queue pair of another host ended lately? */
bool cmserver_has_ended(const struct cmserver *s, const uint8_t peer[16],
			uint32_t qpn);
/*
 * A peer of another host of whom a REQ says that it has lost a connection with
 * us; it is to be asked, and cmserver_stale says that it is so.  Once each.
 */
bool cmserver_doubts(struct cmserver *s, struct live_peer *about);
void cmserver_stale(struct cmserver *s, const struct live_peer *about,
		    uint64_t now_ns);
void cmserver_tick(struct cmserver *s, uint64_t now_ns);
/* Absolute; UINT64_MAX: none. */
uint64_t cmserver_deadline(const struct cmserver *s);
/* Conversations that somebody on the wire still knows. */
bool cmserver_is_busy(const struct cmserver *s);

#endif
