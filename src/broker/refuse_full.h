/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who comes when the broker has no descriptor left, or no room: one at a time
 * takes the place of a spare descriptor, until it has said what it wants and
 * has heard that, and why, it cannot have it.  The others wait at the listener.
 *
 * One owner, the broker's loop; no lock.  Nothing here waits.
 */
#ifndef BROKER_REFUSE_FULL_H
#define BROKER_REFUSE_FULL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct refuse_full {
	int spare_fd;
	int fd;	       /* whom we turn away; -1: nobody */
	bool is_crowd; /* for want of room, not of descriptors */
	uint64_t since_ms;
};

void refuse_full_init(struct refuse_full *a);
void refuse_full_close(struct refuse_full *a);
/* accept has failed for want of a descriptor: takes who is first. */
void refuse_full_accept(struct refuse_full *a, int listen_fd, uint64_t now_ms);
/* Takes fd, for whom there is no room. */
void refuse_full_take(struct refuse_full *a, int fd, uint64_t now_ms);
/* Answers who has spoken, and parts with who does not. */
void refuse_full_turn(struct refuse_full *a, uint64_t now_ms);
/* How long poll may wait, if it would wait (-1: for good). */
int refuse_full_patience(const struct refuse_full *a, int wait);
/* The sentence about the limit on open files, EMFILE, or, ETOOMANYREFS, on
 * those that are under way; at most size bytes. */
void refuse_full_why(int err, char *why, size_t size);

#endif
