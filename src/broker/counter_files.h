/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The counter files of the synthesised sysfs tree: for each device the sums
 * over all processes of the namespace, those that live and those that have
 * ended.  A process shows its counters in its page, by network interface and
 * kind, since each process numbers its own devices.  The files are written when
 * a process has ended, and while somebody reads them, no more than once a
 * second. inotify tells of readers.  Writing ends a minute after the last
 * reader, and the next reader still finds the values of that time.
 *
 * A broker adds its counts to the values that it finds in the files, so that
 * these never count backwards, whichever broker writes.
 *
 * One owner, the broker's loop; no lock.  Nothing here waits.
 */
#ifndef BROKER_COUNTER_FILES_H
#define BROKER_COUNTER_FILES_H

#include "hca/counters.h"

#include <stdbool.h>
#include <stdint.h>

#define COUNTER_FILES_ROWS 32

/* An interface, of one kind of device, on which a process has counted, or that
 * the tree has. */
struct counter_files_row {
	uint32_t link; /* with COUNTERS_IWARP */
	int port_fd;   /* the folder ports/1 of its device; -1: it has none */
	uint64_t ended[COUNTERS_WORDS]; /* of processes that have ended */
	/* of living processes, since counter_files_begin */
	uint64_t live[COUNTERS_WORDS];
	/* the values that the files had before this broker */
	uint64_t base[COUNTERS_FILES];
	uint64_t shown[COUNTERS_FILES];
	bool is_based;
	bool is_moved; /* the files are those of another device */
	bool is_seen;  /* the tree had its device when last looked at */
};

struct counter_files {
	int tree_fd;	/* the folder class/infiniband of the tree; -1: none */
	int inotify_fd; /* watches the counter files; -1: none */
	uint32_t count;
	struct counter_files_row row[COUNTER_FILES_ROWS];
	uint64_t written_ms, looked_ms;
	bool is_due;
	/* the files include what living processes counted under an earlier
	 * broker */
	bool is_successor;
};

/* Makes *t have no tree and no rows. */
void counter_files_init(struct counter_files *t);
/* Closes the descriptors. */
void counter_files_close(struct counter_files *t);
/* Begins a new count of living processes: the caller then calls
 * counter_files_live for each. */
void counter_files_begin(struct counter_files *t);
/* Counts a living process by its page; page_fd -1: it has none. */
void counter_files_live(struct counter_files *t, int page_fd);
/* Counts a process that has ended by its page, before the page is cleared. */
void counter_files_end(struct counter_files *t, int page_fd);
/*
 * Takes tree_fd, the folder class/infiniband of a tree of this user, and looks
 * which devices the tree has.  If is_successor is set, the caller has counted
 * the living processes before.
 */
void counter_files_tree(struct counter_files *t, int tree_fd);
/* Returns the descriptor to poll for POLLIN, at which counter_files_looked is
 * due; -1: none. */
int counter_files_fd(const struct counter_files *t);
/* A program has opened a counter file: the files are due. */
void counter_files_looked(struct counter_files *t, uint64_t now_ms);
/* Returns the milliseconds until counter_files_write is due; -1: it is not. */
int counter_files_due(const struct counter_files *t, uint64_t now_ms);
/* Writes the files; the caller has just counted the living processes. */
void counter_files_write(struct counter_files *t, uint64_t now_ms);

#endif
