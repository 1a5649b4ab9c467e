/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who comes when the broker has no descriptor left, or no room: one at a time
 * takes the place of a spare descriptor, until it has said what it wants and
 * has heard that, and why, it cannot have it.  The others wait at the listener.
 *
 * One owner, the broker's loop; no lock.  Nothing here waits.
 */
#ifndef ADVERB_BROKER_AWAY_H
#define ADVERB_BROKER_AWAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct away {
	int spare_fd;
	int fd;	       /* whom we turn away; -1: nobody */
	bool is_crowd; /* for want of room, not of descriptors */
	uint64_t since_ms;
};

void away_init(struct away *a);
void away_close(struct away *a);
/* accept has failed for want of a descriptor: takes who is first. */
void away_accept(struct away *a, int listen_fd, uint64_t now_ms);
/* Takes fd, for whom there is no room. */
void away_take(struct away *a, int fd, uint64_t now_ms);
/* Answers who has spoken, and parts with who does not. */
void away_turn(struct away *a, uint64_t now_ms);
/* How long poll may wait, if it would wait (-1: for good). */
int away_patience(const struct away *a, int wait);
/* The sentence about the limit on open files, EMFILE, or, ETOOMANYREFS, on
 * those that are under way; at most size bytes. */
void away_why(int error, char *why, size_t size);

#endif
