/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The broker's loop: it serves a listener, its clients and their processes, and
 * the socket of QP1.  adverbd runs the loop as a process of its own; a program
 * that cannot run adverbd runs the loop as a thread (start.h).  The loop has
 * one thread and waits only in poll; calls that a process of another user could
 * delay are made by further threads (user_receiver.h).  Packets for a program
 * pass through the loop only if the kernel cannot steer, or if the program is
 * of another user.
 */
#ifndef BROKER_SERVER_H
#define BROKER_SERVER_H

#include <stdbool.h>
#include <stdint.h>

struct server;

/* as idle_ms: a broker without clients does not end */
#define SERVER_NEVER UINT64_MAX

struct server_config {
	/* The time without clients, in milliseconds, after which the broker
	 * ends; SERVER_NEVER: it does not end. */
	uint64_t idle_ms;
	bool no_bpf; /* behave as if the kernel could not steer datagrams */
	/* the loop is a thread of a program, and ends with that program */
	bool is_thread;
	/* the broker starts no threads, and receives from other users itself:
	 * for tests that repeat a run step by step */
	bool no_threads;
};

/* Makes a server on the listening socket, which is the server's from now on.
 * NULL: there is no memory or no random number, and the socket stays the
 * caller's.  The server copies *config. */
struct server *server_new(int listen_fd, const struct server_config *config);
/* Calls listen(2) on the listening socket, even if another process has done so
 * before.  SO_PEERCRED shows clients the process that called listen last, which
 * from then on is this process. */
void server_listen(struct server *s);
/*
 * Binds port 4791 at once, and not only when the first client comes, so that no
 * other program takes it.  False: another program has the port, or no socket
 * can be opened, and server_turn tries again; *why is a sentence, which is
 * valid until the next call of a function of this file.
 */
bool server_hold_port(struct server *s, const char **why);
/* Waits until there is something to do, and does it.  False: there was no
 * client for idle_ms, or server_listener_err returns an error; the caller frees
 * the server. */
bool server_turn(struct server *s);
/* Returns 0, or an -errno that says why the listening socket accepts no
 * connection from now on: a process that has the socket, too, has shut it down
 * (-ESHUTDOWN); the descriptor is closed (-EBADF); or accept4(2) has failed
 * with an error that does not pass, for example because a sandbox refuses it
 * (-EPERM). */
int server_listener_err(const struct server *s);
/* Frees the server and closes all its descriptors.  Closes the port before the
 * listener: a successor that binds the listener's address must find the port
 * free. */
void server_free(struct server *s);

#endif
