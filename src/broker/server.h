/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The broker's loop: a listener, its clients and their processes, and the
 * group's own socket.  adverbd runs the loop as a process of its own.  One
 * thread; only poll waits; no packet of a program passes through the loop,
 * unless the kernel cannot steer, or the program is of another user.
 */
#ifndef BROKER_SERVER_H
#define BROKER_SERVER_H

#include <stdbool.h>
#include <stdint.h>

struct server;

#define SERVER_NEVER UINT64_MAX

struct server_config {
	/* The time without clients after which the broker ends, or
	 * SERVER_NEVER. */
	uint64_t idle_ms;
	bool no_bpf; /* behave as if the kernel could not steer datagrams */
	/* the loop is a thread of a program, with which it ends */
	bool is_thread;
};

/* Makes a server, which owns the listening socket.  NULL without memory. */
struct server *server_new(int listen_fd, const struct server_config *config);
/* Calls listen on the socket, on which another process may have called it
 * before: then clients see this process by SO_PEERCRED. */
void server_listen(struct server *s);
/*
 * Binds port 4791 at once and not with the first client, so that nobody else
 * takes it.  False, with a sentence in *why, which lasts until the next call of
 * the server: somebody has the port; server_turn tries again.
 */
bool server_hold_port(struct server *s, const char **why);
/* Waits and serves once.  False: there was no client for idle_ms, and the
 * caller frees the server. */
bool server_turn(struct server *s);
/* Frees the server.  Closes the port before the listener, since a successor
 * must find the port free. */
void server_free(struct server *s);

#endif
