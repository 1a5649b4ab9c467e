/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages that a client sends to its broker.  No call waits.
 *
 * If the program has closed a descriptor of the client, its number may now be
 * that of a file of the program, which must not reach the broker.  The
 * functions check the numbers of the connection, the arena and the eventfd.
 * The caller has checked those of the receive socket and the fd store.
 */
#ifndef BROKER_CLIENT_SEND_H
#define BROKER_CLIENT_SEND_H

#include "broker/client.h"
#include "broker/proto.h"

/* Sets magic, version and serial of m, and sends m with the descriptors that
 * m->brings names, which stay the caller's; fds may be NULL if it names none.
 * Returns 0; -EBADF: the program has closed the connection; or an error of
 * proto_send. */
int client_send_message(struct client *c, struct proto *m, const int *fds);
/*
 * Sends PROTO_HELLO.  The hello to a broker of this user brings the receive
 * socket, the fd store and the eventfd, as far as the client has them.  If too
 * many descriptors of the user are in flight (-ETOOMANYREFS), the hello is sent
 * without the arena and the eventfd, and c->hides_arena is set.  The hello to a
 * broker of another user brings no descriptor.  Returns 0 or an error of
 * client_send_message; -EPERM: the broker has not accepted the connection yet,
 * and takes descriptors only afterwards.
 */
int client_send_hello(struct client *c);

#endif
