/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tokens in an eventfd of semaphore mode, one for each event that a program may
 * take: the descriptor is readable exactly when an event waits.  Neither
 * function waits, and neither does anything if the descriptor is another file
 * now (fd_identity.h).  Neither is a cancellation point: a thread that is
 * cancelled here would end with its caller's lock held.
 */
#ifndef UTIL_TOKEN_H
#define UTIL_TOKEN_H

/* Adds one token. */
void token_put(int fd);
/* Takes one token if there is one.  A thread of the program may have read the
 * token already; that thread then finds no event, and reads again. */
void token_take_back(int fd);

#endif
