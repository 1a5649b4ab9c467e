/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The I/O of a fabric's process: its listening socket, the connections of
 * programs, and the ports that they have open.  One thread.
 */
#ifndef TOOLS_FABRIC_SERVER_H
#define TOOLS_FABRIC_SERVER_H

#include "fabric/fabric.h"

/*
 * Serves until a program of the user asks the fabric to stop, or a signal ends
 * the process in an orderly way (SIGINT, SIGTERM).  listener is a listening
 * SOCK_SEQPACKET, which the caller owns.  Returns 0 or -errno.
 */
int fabric_server_run(struct fabric *f, int listener);

#endif
