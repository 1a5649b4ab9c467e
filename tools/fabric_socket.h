/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The path of a fabric's socket in the file system.  A path belongs to the
 * fabric whose socket listens there.  The socket of a fabric that was killed
 * stays, and the next fabric removes it.
 */
#ifndef TOOLS_FABRIC_SOCKET_H
#define TOOLS_FABRIC_SOCKET_H

/* How long a command waits for an answer of a fabric.  A running fabric answers
 * at once; a stopped fabric, or another program's socket, may never answer. */
#define FABRIC_SOCKET_PATIENCE_MS 60000

/*
 * Returns a socket of type SOCK_SEQPACKET that listens at the path and does not
 * block, which the caller closes; or -1 after a sentence on stderr.  If several
 * processes call this for one path at once, one gets the path, and the others
 * find that a fabric runs there.  The path has mode 0600.  During the call the
 * file PATH.lock exists, and the process holds the file's lock (flock(2)).
 */
int fabric_socket_listen(const char *path);

#endif
