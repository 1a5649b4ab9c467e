/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fields of a CM message, as the broker exchanges them with librdmacm:
 * conversions between struct cmmsg and struct cmproto.  Pure.
 */
#ifndef BROKER_CM_FIELDS_H
#define BROKER_CM_FIELDS_H

#include "broker/cmproto.h"
#include "hdr/cmmsg.h"

/* Copies to m what the peer's message msg says about the peer's queue pair, the
 * private data of the peer's program, and whether msg is one of SIDR.  From a
 * REQ or SIDR_REQ also copies both ports or, if m->is_ib is set, the receiver's
 * port and the paths of a REQ.  A message of kind 0 has no private data.  Other
 * members of m keep their values. */
void cm_fields_take(struct cmproto *m, const struct cmmsg *msg);
/* Fills msg, a message to the peer, from m, a client's message.  The client is
 * not trusted: values are cut to the width of their fields.  The caller copies
 * the private data. */
void cm_fields_fill(struct cmmsg *msg, const struct cmproto *m);

#endif
