/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A broker that is a thread of a program, in place of adverbd.  The thread has
 * a table of descriptors of its own (close_range(2), CLOSE_RANGE_UNSHARE).  So
 * the program may close all descriptors that it did not open and reuse their
 * numbers, as daemons do: the thread neither loses its sockets nor touches a
 * file of the program.  If the kernel refuses the table, for example in a
 * sandbox, the thread shares that of the program.
 */
#ifndef BROKER_SERVE_THREAD_H
#define BROKER_SERVE_THREAD_H

#include <stdbool.h>

/* Starts a thread that serves the clients of a listener until this process ends
 * or the listener accepts no more; then the clients start the next broker.
 * no_bpf: see struct server_config.  Copies the listener, which stays the
 * caller's.  Returns 0; -EBADF: the program has closed the listener or has put
 * a file of its own there; or another -errno. */
int serve_thread_start(int listen_fd, bool no_bpf);

#endif
