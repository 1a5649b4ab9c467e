/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fields of a CM message, as the broker exchanges them with librdmacm: pure
 * conversions between struct cmmsg and struct cmproto.
 */
#ifndef BROKER_CM_FIELDS_H
#define BROKER_CM_FIELDS_H

#include "broker/cmproto.h"
#include "hdr/cmmsg.h"

/* Copies what the peer's message says of its queue pair, and the program's
 * private data, to m; a message of kind 0 has no private data.  Leaves the
 * other members of m. */
void cm_fields_take(struct cmproto *m, const struct cmmsg *msg);
/* Fills a message to the peer from a client's m, which is not trusted: values
 * are cut to the width of their fields. */
void cm_fields_fill(struct cmmsg *msg, const struct cmproto *m);

#endif
