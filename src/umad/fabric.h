/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client's side of an emulated subnet (`adverb fabric`): connections to the
 * subnet's process.  ADVERB_FABRIC is the path of its socket, and
 * ADVERB_FABRIC_HOST the ID of the subnet's host on which this program runs.
 * Thread-safe: the only state is in the connections, which the caller owns.
 */
#ifndef UMAD_FABRIC_H
#define UMAD_FABRIC_H

#include "fabric/proto.h"

#include <stdbool.h>

#include <infiniband/umad.h>

/* The name that libibumad gives to the host's adapter. */
#define U_FABRIC_CA "advib0"

/* Returns whether this process is a host of a fabric: ADVERB_FABRIC is set, and
 * the program runs with no more privileges than its caller (secure_getenv). */
bool u_fabric_is_used(void);
/* Connects to a fabric's socket.  Returns a descriptor, which the caller
 * closes, or -errno: -EPERM if the process that listens there is another
 * user's. */
int u_fabric_connect(const char *path);
/* Sends the request *m on a connection and waits for the answer, which replaces
 * *m.  If fd is not NULL, *fd is then the descriptor that came with the answer,
 * which the caller closes, or -1.  Returns 0, the -errno of the answer, or the
 * -errno of the connection. */
int u_fabric_ask(int connection, struct fabric_proto *m, int *fd);
/* Connects to this process's fabric, puts the host into the request *m, and
 * sends it as u_fabric_ask does.  Returns the connection, which the caller
 * closes.  After an error, prints a sentence and returns -errno. */
int u_fabric_query(struct fabric_proto *m, int *fd);
/* Returns whether `ca_name` is U_FABRIC_CA or NULL (the first adapter), and
 * this process is a host of a fabric that answers. */
bool u_fabric_has(const char *ca_name);
/* Stores the number of the port that `portnum` of this ABI means.  0 means the
 * first active port; if there is none, the first port with a link; or else the
 * first port.  Returns 0 or -errno. */
int u_fabric_port(int portnum, uint32_t *number);
/* Fills in *ca, which the caller releases by umad_release_ca.  Returns 0, or
 * -errno with errno set. */
int u_fabric_get_ca(umad_ca_t *ca);
/* Fills in *port, which the caller releases by umad_release_port.  Returns 0,
 * or -errno with errno set. */
int u_fabric_get_port(uint32_t number, umad_port_t *port);

#endif
