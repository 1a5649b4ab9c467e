/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The I/O of a fabric's process: the listening socket, the programs'
 * connections (fabric/proto.h), and the sockets of the ports that the programs
 * have open.  One thread.
 */
#ifndef TOOLS_FABRIC_SERVER_H
#define TOOLS_FABRIC_SERVER_H

#include "fabric/fabric.h"
#include "fabric_capture.h"

/*
 * Serves programs until one of them sends FABRIC_PROTO_STOP, or until the
 * process gets SIGINT or SIGTERM.  A signal that the process ignores does not
 * end it (heeded.h); the other stays blocked.  The process's soft limit on open
 * files stays raised to its hard limit.
 *
 * `listener` is a listening, non-blocking socket of type SOCK_SEQPACKET, which
 * the caller owns.  `path` is the listener's absolute path in the file system.
 * At the end the function removes the path, unless another file has this path
 * by then, and makes the listener refuse connections.  Only then does it close
 * the programs' connections.  The capture is flushed after each turn.
 * is_direct: programs may share their arenas (fabric_direct.h).  Calls `ready`,
 * unless it is NULL, when nothing can fail any more.  Returns 0, or -errno
 * without a call of `ready`: the process has no memory or descriptor for its
 * state.  After such an error the path stays, and the caller removes it.
 */
int fabric_server_run(struct fabric *f, int listener, const char *path,
		      struct fabric_capture *capture, bool is_direct,
		      void (*ready)(void));

#endif
