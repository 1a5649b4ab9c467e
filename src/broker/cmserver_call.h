/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside cmserver: the requests of clients.  No state; no lock, as cmserver.h
 * says. */
#ifndef BROKER_CMSERVER_CALL_H
#define BROKER_CMSERVER_CALL_H

#include <stdint.h>

#include "broker/cmproto.h"

struct cmserver;
struct cmserver_client;

/* Executes the client's request m, whose version and length have been checked,
 * and whose other fields may be anything.  Stores in *reply what the request
 * gives: a new id, the bound port, or a note (cmserver_object_note).  The
 * caller fills in the other members.  Returns 0, or -errno for `err`. */
int cmserver_call(struct cmserver *s, struct cmserver_client *c,
		  const struct cmproto *m, uint64_t now_ns,
		  struct cmproto *reply);

#endif
