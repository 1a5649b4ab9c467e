/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * By these functions libibumad asks about the host of an emulated subnet on
 * which this program runs, over connections to the fabric's process
 * (fabric/fabric_client.h).  Thread-safe: the only state is in the connections,
 * which the caller owns, and in the set of the printed messages, which needs no
 * lock (util/seen_set.h).
 */
#ifndef UMAD_FABRIC_H
#define UMAD_FABRIC_H

#include "device/ib.h"
#include "fabric/fabric_client.h"

#include <stdbool.h>

#include <infiniband/umad.h>

/* The name that libibumad gives to the host's adapter. */
#define U_FABRIC_CA IB_NAME

/* Returns whether this process is a host of a fabric. */
bool u_fabric_is_used(void);
/* Connects to this process's fabric, puts the host's name into the request *m,
 * sends the request and waits for the answer, which replaces *m.  Waits for one
 * minute at most to connect, and again for the answer.  If fd is not NULL, *fd
 * is then the descriptor that came with the answer, which the caller closes, or
 * -1.  Returns the connection, which the caller closes.  After an error, prints
 * a sentence, once for each errno, and returns -errno. */
int u_fabric_query(struct fabric_proto *m, int *fd);
/* Returns 1 if `ca_name` is U_FABRIC_CA or NULL (the first adapter), and this
 * process is a host of a fabric that answers.  Otherwise returns 0; or -errno
 * with errno set: the fabric cannot be asked, because of a limit of this
 * process, of the fabric's process or of the machine (util/remedy.h), such as
 * EMFILE.  Prints a sentence if the fabric cannot be asked or does not answer
 * (u_fabric_query). */
int u_fabric_has(const char *ca_name);
/* Stores in *number the port that `portnum` of this ABI means.  0 means the
 * first active port; if there is none, the first port whose link is up; or else
 * the first port that is not disabled.  Returns 0; -ENODEV: the adapter has no
 * such port, or portnum is 0 and all ports are disabled, which a sentence says;
 * -EPROTO: the range of port numbers in the fabric's answer is empty; or the
 * -errno of u_fabric_query. */
int u_fabric_port(int portnum, uint32_t *number);
/* Fills in *ca, which the caller releases by umad_release_ca.  Returns 0, or
 * -errno with errno set. */
int u_fabric_get_ca(umad_ca_t *ca);
/* Fills in *port for the port `number`.  The caller releases *port by
 * umad_release_port.  Returns 0, or -errno with errno set. */
int u_fabric_get_port(uint32_t number, umad_port_t *port);

#endif
