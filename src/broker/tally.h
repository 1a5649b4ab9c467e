/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The counter files of the synthesised sysfs tree: the sums over all processes
 * of the namespace, that have ended or live.  A process shows its counters in
 * its page; the files are written when one has ended, and while somebody looks
 * at them, no more than once a second.  inotify tells of lookers: who comes
 * after a minute without any finds what was when the last one looked.
 *
 * What the files say at first is where counting goes on from, so that they
 * never count backwards, whichever broker writes.
 *
 * One owner, the broker's loop; no lock.  Nothing here waits.
 */
#ifndef ADVERB_BROKER_TALLY_H
#define ADVERB_BROKER_TALLY_H

#include "engine/counters.h"

#include <stdbool.h>
#include <stdint.h>

struct tally {
	int port_fd;	/* the folder ports/1 of the tree; -1: there is none */
	int inotify_fd; /* of it; -1 */
	uint64_t ended[COUNTERS_WORDS]; /* of processes that have ended */
	uint64_t base[COUNTERS_FILES];	/* what the files said before us */
	uint64_t shown[COUNTERS_FILES];
	uint64_t written_ms, looked_ms;
	bool is_due;
	bool is_heir; /* the files have what living processes counted */
};

void tally_init(struct tally *t);
void tally_close(struct tally *t);
/* Takes port_fd, the folder of a tree of our user. */
void tally_tree(struct tally *t, int port_fd,
		const uint64_t live[COUNTERS_WORDS]);
/* Adds what a process shows in its page; a descriptor of one or -1. */
void tally_add(uint64_t words[COUNTERS_WORDS], int page_fd);
/* Its process has ended; before the page is cleared. */
void tally_end(struct tally *t, int page_fd);
/* POLLIN: call tally_looked.  -1: there is nothing to poll. */
int tally_fd(const struct tally *t);
void tally_looked(struct tally *t, uint64_t now_ms);
/* Milliseconds until tally_write is due; -1: it is not. */
int tally_due(const struct tally *t, uint64_t now_ms);
void tally_write(struct tally *t, const uint64_t live[COUNTERS_WORDS],
		 uint64_t now_ms);

#endif
