/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client's side of an emulated subnet (`adverb fabric`): connections to the
 * fabric, the process that runs the subnet.  The variable ADVERB_FABRIC is the
 * path of the fabric's socket.  ADVERB_FABRIC_HOST is the ID of the subnet's
 * host on which this program runs.  Thread-safe: the only state is in the
 * connections, which the caller owns, and the number of the last request.  One
 * thread at a time uses a connection, since two threads would take each other's
 * answers.
 */
#ifndef FABRIC_FABRIC_CLIENT_H
#define FABRIC_FABRIC_CLIENT_H

#include "fabric/proto.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns ADVERB_FABRIC; "": this process uses no fabric, because the variable
 * is not set, or because the program runs with more privileges than its caller
 * (secure_getenv).  The environment owns the string. */
const char *fabric_client_path(void);
/* Returns ADVERB_FABRIC_HOST; "": the variable is not set, or the program runs
 * with more privileges than its caller.  The environment owns the string. */
const char *fabric_client_host(void);
/*
 * Connects to a fabric's socket.  This call waits at most patience_ms for the
 * fabric, and so does each send and each receive of fabric_client_ask on the
 * connection.  Returns the descriptor of the connection, which the caller
 * closes; -ENOENT or -ECONNREFUSED: no process listens at the path; -EPERM: the
 * process that listens there is another user's; -ETIMEDOUT: patience_ms have
 * passed; -ENAMETOOLONG: no socket can have so long a path; or another -errno.
 */
int fabric_client_connect(const char *path, uint32_t patience_ms);
/* Returns the number of a new request, for fabric_proto.serial: one more than
 * that of this process's last request, and never 0. */
uint32_t fabric_client_serial(void);
/* Sends the request *m on a connection and waits for the answer, which replaces
 * *m.  Gives the request a serial, which *m has afterwards in any case.  Drops
 * late answers to earlier requests, for which a call has returned -ETIMEDOUT.
 * If fd is not NULL, *fd is then the descriptor that came with the answer,
 * which the caller closes, or -1.  Returns 0; the -errno of the answer;
 * -EMFILE: this process has no room for the descriptor; -ETIMEDOUT: no answer
 * came in patience_ms; -ECONNRESET or -EPIPE: the fabric has closed the
 * connection; -EPROTO: no fabric of this version sends such an answer; or
 * another -errno of the connection. */
int fabric_client_ask(int connection, struct fabric_proto *m, int *fd);
/* As fabric_client_ask, but sends a copy of the descriptor `brings` with the
 * request; -1: none. */
int fabric_client_bring(int connection, struct fabric_proto *m, int brings,
			int *fd);
/*
 * Connects to the fabric at `path`, as fabric_client_connect does, and gets a
 * socket (FABRIC_PROTO_CM) for this process's host: its messages are those of
 * broker/cmproto.h.  Returns the connection, which the caller keeps open as
 * long as it uses the socket, with the socket in *fd, which the caller closes;
 * or the -errno of fabric_client_connect or fabric_client_ask, with -1 in *fd.
 * -EPROTO is also returned for an answer without such a socket.
 */
int fabric_client_open_cm(const char *path, uint32_t patience_ms, int *fd);
/* Receives a message with the flags of recvmsg(2), and stores in *fd the
 * descriptor that came with the message, which the caller closes, or -1.  Sets
 * *is_cut to whether a descriptor came that this process had no room for.
 * Returns the message's length, which may be greater than sizeof(*m); 0: the
 * other side has closed the connection; or -1 with errno, and *is_cut not set.
 * The fabric itself also receives requests by this function. */
int fabric_client_receive(int connection, struct fabric_proto *m, int flags,
			  bool *is_cut, int *fd);
/* Checks a message of n bytes that was received into *m as an answer, and ends
 * its strings with a NUL.  Returns 0; the -errno of the answer; -ECONNRESET: n
 * is 0, so the fabric has closed the connection; or -EPROTO: no fabric of this
 * version sends such a message. */
int fabric_client_judge(struct fabric_proto *m, size_t n);
/* Could a fabric say this of a host's port?  False: a number is out of the
 * range that the IBTA specification gives it. */
bool fabric_client_is_port(const struct fabric_port *p);
/* Returns how many bytes a message of several packets may have on a data end's
 * socket: FABRIC_PROTO_BURST_BYTES, or less if the socket's send buffer is
 * small; 0: fd is no socket. */
size_t fabric_client_burst(int fd);
/* Is fd a socket of the kind that a fabric makes for a data end and for
 * messages of connection management: a Unix socket of type SOCK_SEQPACKET? */
bool fabric_client_is_data(int fd);
/* Returns why a connection has ended: a clause in which "there" is the path of
 * the fabric's socket, or the text of strerror.  The string is valid until the
 * thread's next call of strerror.  err: the -errno of a call on the connection,
 * or of fabric_client_judge. */
const char *fabric_client_reason(int err);
/* Writes a sentence, without its full stop and with a NUL, to `text`, which has
 * `room` bytes.  It says why a program on the host `host` cannot use the fabric
 * at `path`, and what to do.  err: the -errno of fabric_client_connect,
 * fabric_client_ask or fabric_client_judge. */
void fabric_client_explain(const char *path, const char *host, int err,
			   char *text, size_t room);

#endif
