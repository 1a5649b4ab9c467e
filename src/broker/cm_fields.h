/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fields of a CM message, as the broker exchanges them with librdmacm:
 * conversions between struct cmmsg and struct cmproto.  Pure functions.
 */
#ifndef BROKER_CM_FIELDS_H
#define BROKER_CM_FIELDS_H

#include "broker/cmproto.h"
#include "hdr/cmmsg.h"

/*
 * Copies to m the fields of msg, a message of the peer: those of the peer's
 * queue pair and CA, ECE, the answer about the alternate path (failover), the
 * private data of the peer's program, and whether msg is a SIDR_REQ or
 * SIDR_REP.  A message of kind 0 has no private data.  From a REQ or SIDR_REQ,
 * also copies the ports of both sides or, if m->is_ib is set, the port of the
 * receiver alone.  With m->is_ib the sender's port is in the private data, if
 * the message has it, and the client reads it there.  From a REQ with m->is_ib
 * set, also copies the paths.  Other members of m keep their values.
 */
void cm_fields_take(struct cmproto *m, const struct cmmsg *msg);
/* Copies from m, a client's message, to msg, a message to the peer: the fields
 * about the queue pair, the CA, ECE and the paths.  The client is not trusted:
 * values are cut to the width of their fields, here or by cmmsg_write.
 * The caller sets the other fields, for example the kind, and copies the
 * private data. */
void cm_fields_fill(struct cmmsg *msg, const struct cmproto *m);

#endif
