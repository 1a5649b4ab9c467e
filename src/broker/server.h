/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The broker's loop: a listener, its clients and their processes, the group's
 * own socket.  adverbd runs it as a process of its own.  One thread, nothing
 * waits but the poll; no packet of a program passes through it.
 */
#ifndef BROKER_SERVER_H
#define BROKER_SERVER_H

#include <stdbool.h>
#include <stdint.h>

struct server;

#define SERVER_NEVER UINT64_MAX

struct server_config {
	/* The time without clients after which it ends, or SERVER_NEVER. */
	uint64_t idle_ms;
	bool no_bpf;	/* as if the kernel could not steer datagrams */
	bool is_thread; /* of a program: it ends with that */
};

/* Takes the listening socket; NULL without memory. */
struct server *server_new(int listen_fd, const struct server_config *config);
/* Where another process has made it listen: from now on who connects sees that
 * it is we (SO_PEERCRED). */
void server_listen(struct server *s);
/*
 * Binds port 4791 at once and not with the first client, so that nobody else
 * takes it.  False, with a sentence in *why, which lasts until the next call of
 * the server: somebody has the port; server_turn tries again.
 */
bool server_hold_port(struct server *s, const char **why);
/* Waits and serves once; false when nobody has wanted us for idle_ms. */
bool server_turn(struct server *s);
/* The port first: a successor must find it free. */
void server_free(struct server *s);

#endif
