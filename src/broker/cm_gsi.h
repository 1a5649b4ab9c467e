/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connection management (cmserver.h) over QP1 of a network namespace (gsi.h).
 */
#ifndef BROKER_CM_GSI_H
#define BROKER_CM_GSI_H

#include <stdint.h>

struct cmserver;
struct fd_store;
struct gsi;

/* Makes a server and attaches it to gsi.  Borrows gsi and the fd store until
 * cmserver_free; the store may still be empty.  gsi keeps a pointer to the
 * server, so the caller calls no gsi_turn after cmserver_free.  NULL: there is
 * no memory, no random number, or no room for another agent at gsi.  now_ns:
 * CLOCK_MONOTONIC. */
struct cmserver *cm_gsi_new(struct gsi *gsi, struct fd_store *fd_store,
			    uint64_t now_ns);

#endif
