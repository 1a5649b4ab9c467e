/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages that a client sends to its broker.  No call waits.
 *
 * A number that the program has closed may be that of a file of the program's
 * own, which must not reach the broker.  The functions check the numbers of the
 * connection, the arena and the eventfd; the caller has checked those of the
 * receive socket and the fd store.
 */
#ifndef BROKER_CLIENT_SEND_H
#define BROKER_CLIENT_SEND_H

#include "broker/client.h"
#include "broker/proto.h"

/* Sends m, whose magic, version and serial it sets, with the descriptors that
 * m->brings names.  Returns 0; -EBADF: the program has closed the connection;
 * or an error of proto_send. */
int client_send_message(struct client *c, struct proto *m, const int *fds);
/*
 * Sends PROTO_HELLO.  The hello to a broker of this user brings the receive
 * socket, the fd store and the eventfd, as far as the client has them.  Returns
 * 0 or an error of client_send_message; -EPERM: the broker has not accepted the
 * connection yet, and takes descriptors only afterwards.
 */
int client_send_hello(struct client *c);

#endif
