/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The folder in which a broker writes the counter files of its user's programs:
 * which client's folder it takes, and when it writes.  Part of the broker's
 * loop: one thread, no lock.
 */
#ifndef BROKER_COUNTER_TREE_H
#define BROKER_COUNTER_TREE_H

#include <stdint.h>

struct conn;
struct server;

/* Takes the folder for counter files from a client of the broker's own user:
 * the broker can write there, and that user has no other broker.  Sets *fd to
 * -1 if it takes the folder; else the descriptor stays the caller's. */
void counter_tree_take(struct server *s, const struct conn *c, int *fd);
/* Writes the counter files when that is due.  wait: how long poll may wait, in
 * milliseconds, -1 without a bound; returns how long it may wait now. */
int counter_tree_refresh(struct server *s, int wait, uint64_t now_ms);

#endif
