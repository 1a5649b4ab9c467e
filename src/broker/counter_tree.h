/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The folder in which a broker writes the counter files of its user's programs:
 * from which client the broker takes the folder, and when it writes the files.
 * Part of the broker's loop: one thread, no lock.
 */
#ifndef BROKER_COUNTER_TREE_H
#define BROKER_COUNTER_TREE_H

#include <stdint.h>

struct conn;
struct server;

/*
 * Takes the folder for counter files (counter_files.h) from c, a client of the
 * broker's own user: such a client has no other broker, and the broker can
 * write in that user's folders.  Takes ownership of *fd and sets it to -1.
 * Does nothing if c is of another user, if *fd is no folder of the broker's
 * user, or if other users may write in that folder.
 */
void counter_tree_take(struct server *s, const struct conn *c, int *fd);
/* Writes the counter files if they are due.  wait: how long poll may wait for
 * other reasons, in milliseconds; -1: without an end.  now_ms: CLOCK_MONOTONIC.
 * Returns how long poll may wait, so that the next call is in time. */
int counter_tree_refresh(struct server *s, int wait, uint64_t now_ms);

#endif
