/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The counter files of the synthesised sysfs tree.  A file of a device has the
 * sum of a counter over all processes of the broker's user in the namespace,
 * those that live and those that have ended.  A process shows its counters in
 * its page, by network interface and kind of device, since each process numbers
 * its devices in its own way.  The files are written when a process has ended,
 * when the tree has a new device, and while somebody reads the files, at most
 * once a second; inotify reports the readers.  The writing ends a minute after
 * the last reader.  The next reader then finds the values that were written
 * last.
 *
 * A broker adds its counts to the values that it finds in the files, so that
 * the values of a device never decrease when another broker writes.
 *
 * Part of the broker's loop: one owner, no lock.  No call waits.
 */
#ifndef BROKER_COUNTER_FILES_H
#define BROKER_COUNTER_FILES_H

#include "hca/counters.h"

#include <stdbool.h>
#include <stdint.h>

/* The most rows.  Counts that would need a further row are dropped. */
#define COUNTER_FILES_ROWS 32

/* The counts of one kind of device on one network interface.  There is a row
 * for each such pair that a process has shown in its page, or that the tree
 * has. */
struct counter_files_row {
	/* the index of the interface, with COUNTERS_IWARP set for an iWARP
	 * device */
	uint32_t link;
	int port_fd; /* the folder ports/1 of the device; -1: none */
	/* the sums over processes that have ended */
	uint64_t ended[COUNTERS_WORDS];
	/* the sums over the processes that counter_files_live has got since
	 * the last counter_files_begin */
	uint64_t live[COUNTERS_WORDS];
	/* the part of the values that this broker has not counted itself: a
	 * file's value is base[] plus the counts in ended[] and live[] */
	uint64_t base[COUNTERS_FILES];
	/* the values that the files have */
	uint64_t shown[COUNTERS_FILES];
	bool is_based; /* base[] is set */
	/* port_fd is another folder than before: its files may have the values
	 * of another device, and have to be written even if a value decreases
	 */
	bool is_moved;
	bool is_seen; /* the last counter_files_tree found the device */
};

struct counter_files {
	int tree_fd;	/* the folder class/infiniband of the tree; -1: none */
	int inotify_fd; /* watches the counter files; -1: none */
	uint32_t count; /* how many entries of row[] are used */
	struct counter_files_row row[COUNTER_FILES_ROWS];
	/* when the files were written last, CLOCK_MONOTONIC; 0: never */
	uint64_t written_ms;
	/* when a reader came last, CLOCK_MONOTONIC; 0: never */
	uint64_t looked_ms;
	bool is_due; /* the files are to be written, even without a reader */
	/* there was an earlier broker: the values that are in the files may
	 * include counts of processes that are still alive */
	bool is_successor;
};

/* Initialises *t: no tree, and no rows. */
void counter_files_init(struct counter_files *t);
/* Closes the descriptors. */
void counter_files_close(struct counter_files *t);
/* Begins a new count of the living processes.  The caller then calls
 * counter_files_live for each of them. */
void counter_files_begin(struct counter_files *t);
/* Adds the counters of a living process, which are in its page; page_fd -1: it
 * has no page. */
void counter_files_live(struct counter_files *t, int page_fd);
/* Adds the counters of a process that has ended, which are in its page.  The
 * caller clears the page after this call. */
void counter_files_end(struct counter_files *t, int page_fd);
/* Takes ownership of tree_fd, the folder class/infiniband of a tree of this
 * user, and finds out which devices the tree has.  If is_successor is set, the
 * caller has counted the living processes before this call. */
void counter_files_tree(struct counter_files *t, int tree_fd);
/* Returns the descriptor to poll for POLLIN, at which counter_files_looked is
 * due; -1: none. */
int counter_files_fd(const struct counter_files *t);
/* Notes that a program has opened a counter file: the files are due. */
void counter_files_looked(struct counter_files *t, uint64_t now_ms);
/* Returns the milliseconds until counter_files_write is due; -1: there is no
 * tree, or no reason to write. */
int counter_files_due(const struct counter_files *t, uint64_t now_ms);
/* Writes the files.  The caller has counted the living processes just before.
 */
void counter_files_write(struct counter_files *t, uint64_t now_ms);

#endif
