/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tokens in an eventfd of semaphore mode, one for each event that a program may
 * take: the descriptor is readable exactly when an event waits.  No function
 * waits, and none reads or writes a descriptor that is another file now
 * (fd_identity.h).  None is a cancellation point: a thread that is cancelled
 * here would end with its caller's lock held.
 */
#ifndef UTIL_TOKEN_H
#define UTIL_TOKEN_H

#include <stdbool.h>
#include <stdint.h>

/* Adds one token. */
void token_put(int fd);
/* Adds `count` tokens, by one system call; count is not 0. */
void token_put_all(int fd, uint64_t count);
/*
 * Takes one token if there is one; of an eventfd without semaphore mode, all
 * tokens.  A thread of the program may have read the token already; that thread
 * then finds no event, and reads again.  Before Linux 5.8 the call sets
 * O_NONBLOCK of the file while it reads, so the caller holds a lock under which
 * token_reads_wait is called.
 */
void token_take_back(int fd);
/* Returns whether O_NONBLOCK of the file is clear; false if fd is closed.  Does
 * not change errno.  A thread whose read(2) has failed with EAGAIN calls this
 * function under the lock that callers of token_take_back hold.  If the result
 * is true, token_take_back had set O_NONBLOCK during the read(2), and the
 * thread reads again. */
bool token_reads_wait(int fd);

#endif
