/* SPDX-License-Identifier: BSD-2-Clause */
/* The requests of a fabric's programs (fabric/proto.h), and their answers.
 * Owner: the process's one thread. */
#ifndef TOOLS_FABRIC_REQUEST_H
#define TOOLS_FABRIC_REQUEST_H

#include "fabric_connection.h"

/* Reads a request from c->control.fd, does what the program asks, and sends the
 * answer.  Ends the connection if the program has closed it, if the request
 * does not have the length and the version of struct fabric_proto, or if the
 * answer cannot be sent at once. */
void fabric_request_read(struct fabric_server *s, struct connection *c);

#endif
