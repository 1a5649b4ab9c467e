/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client's side of an emulated subnet (`adverb fabric`): a connection to
 * its process, whose socket ADVERB_FABRIC names, for the host
 * ADVERB_FABRIC_HOST. Thread-safe: no state but the connections, which the
 * caller owns.
 */
#ifndef UMAD_FABRIC_H
#define UMAD_FABRIC_H

#include "fabric/proto.h"

#include <stdbool.h>

#include <infiniband/umad.h>

/* The name of the adapter by which libibumad shows the host. */
#define U_FABRIC_CA "advib0"

/* Returns whether this process is a host of a fabric: ADVERB_FABRIC is set, and
 * the program has no more rights than its caller. */
bool u_fabric_is_used(void);
/* Connects to a fabric's socket.  Returns a descriptor, or -errno: -EPERM if
 * the process that listens there belongs to another user. */
int u_fabric_connect(const char *path);
/* Sends a request on a connection and waits for the answer, which replaces
 * *m.  fd, if not NULL, gets the descriptor that the answer brings, or -1.
 * Returns 0 or -errno, the answer's own error included. */
int u_fabric_ask(int connection, struct fabric_proto *m, int *fd);
/* Connects to this process's fabric and asks one question about its host; says
 * why that fails.  Returns the connection, or -errno. */
int u_fabric_query(struct fabric_proto *m, int *fd);
/* Returns whether `ca_name` is the adapter of this process's fabric, and the
 * fabric answers.  NULL stands for the first adapter, which is that one. */
bool u_fabric_has(const char *ca_name);
/* Finds the port for a number of this ABI, in which 0 stands for the first
 * port that is active, or else has a link, or else is there.  Returns 0 or
 * -errno. */
int u_fabric_port(int portnum, uint32_t *number);
/* Fill *ca or *port, which the caller releases as the ABI says.  Return 0 or
 * -errno. */
int u_fabric_get_ca(umad_ca_t *ca);
int u_fabric_get_port(uint32_t number, umad_port_t *port);

#endif
