/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The counter files of the synthesised sysfs tree: for each device the sums
 * over all processes of the namespace, that have ended or live.  A process
 * shows its counters in its page, by network interface, since each numbers its
 * own devices; the files are written when one has ended, and while somebody
 * looks at them, no more than once a second.  inotify tells of lookers: who
 * comes after a minute without any finds what was when the last one looked.
 *
 * What the files say at first is where counting goes on from, so that they
 * never count backwards, whichever broker writes.
 *
 * One owner, the broker's loop; no lock.  Nothing here waits.
 */
#ifndef BROKER_COUNTER_FILES_H
#define BROKER_COUNTER_FILES_H

#include "hca/counters.h"

#include <stdbool.h>
#include <stdint.h>

#define COUNTER_FILES_ROWS 32

/* An interface that a process has counted on, or that the tree has. */
struct counter_files_row {
	uint32_t link;
	int port_fd; /* the folder ports/1 of its device; -1: it has none */
	uint64_t ended[COUNTERS_WORDS]; /* of processes that have ended */
	uint64_t live[COUNTERS_WORDS]; /* and of the others, counter_files_begin
					*/
	uint64_t base[COUNTERS_FILES]; /* what the files said before us */
	uint64_t shown[COUNTERS_FILES];
	bool is_based;
	bool is_moved; /* the files are those of another device */
	bool is_seen;  /* by the present look at the tree */
};

struct counter_files {
	int tree_fd;	/* the folder class/infiniband of the tree; or -1 */
	int inotify_fd; /* of its counters; -1 */
	uint32_t count;
	struct counter_files_row row[COUNTER_FILES_ROWS];
	uint64_t written_ms, looked_ms;
	bool is_due;
	bool is_heir; /* the files have what living processes counted */
};

void counter_files_init(struct counter_files *t);
void counter_files_close(struct counter_files *t);
/* The living are counted anew: begin, and each one's page; or -1. */
void counter_files_begin(struct counter_files *t);
void counter_files_live(struct counter_files *t, int page_fd);
/* Its process has ended; before the page is cleared. */
void counter_files_end(struct counter_files *t, int page_fd);
/* Takes the folder class/infiniband of a tree of our user, to look what
 * devices it has; where is_heir, the living have been counted. */
void counter_files_tree(struct counter_files *t, int tree_fd);
/* POLLIN: call counter_files_looked.  -1: there is nothing to poll. */
int counter_files_fd(const struct counter_files *t);
void counter_files_looked(struct counter_files *t, uint64_t now_ms);
/* Milliseconds until counter_files_write is due; -1: it is not. */
int counter_files_due(const struct counter_files *t, uint64_t now_ms);
/* The living have been counted. */
void counter_files_write(struct counter_files *t, uint64_t now_ms);

#endif
