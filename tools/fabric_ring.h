/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rings of a data end in the process of a fabric (fabric/packet_ring.h):
 * the memory file with both rings, and the eventfd by which the fabric tells
 * the program of room.
 *
 * The fabric makes and seals the file, so no access to the rings raises SIGBUS.
 * The memory of the rings of all programs is bounded: a process has at most
 * FABRIC_RING_EACH files, and all processes together have at most
 * FABRIC_RING_ALL.  Data ends beyond these limits use their sockets for
 * packets.  A file's memory is freed when its data end is closed, also if the
 * program keeps the descriptor or the mapping.
 *
 * Owner: the process's one thread.
 */
#ifndef TOOLS_FABRIC_RING_H
#define TOOLS_FABRIC_RING_H

#include "fabric/packet_ring.h"
#include "util/list.h"

#include <stdbool.h>

enum {
	/* The most files of a fabric, which together have 258 MiB. */
	FABRIC_RING_ALL = 256,
	/* The most files of a process. */
	FABRIC_RING_EACH = 8,
	/* The most files of all processes in PID namespaces that this process
	 * does not see. */
	FABRIC_RING_UNSEEN = FABRIC_RING_ALL / 2,
};

/* The rings of one data end.  All zeroes: there are none. */
struct fabric_ring {
	/* The entry in `all`, the list of fabric_ring_open. */
	struct list list;
	/* The process of the program; 0: it is in a PID namespace that this
	 * process does not see. */
	int pid;
	/* Both rings, of PACKET_RING_FILE bytes.  NULL: there are none. */
	void *memory;
	/* The packets of the program. */
	struct packet_ring_in in;
	/* The packets for the program. */
	struct packet_ring_out out;
	/* The program's eventfd: its count is at the limit while the program
	 * waits for room, so that the program can wait for POLLOUT. */
	int room_fd;
};

/* Makes the rings of a data end of the process `pid`, and adds them to `all`,
 * the list of the fabric's rings.  Returns the descriptor of their memory file,
 * which the caller closes; r then owns room_fd.  After an error room_fd stays
 * the caller's.  -EINVAL: room_fd is no non-blocking eventfd; -EBUSY: there are
 * rings already; -ENOBUFS: the process, or the fabric, has as many files as it
 * may have; or another -errno, such as -EOPNOTSUPP from a kernel before Linux
 * 5.8. */
int fabric_ring_open(struct fabric_ring *r, struct list *all, int pid,
		     int room_fd);
/* If there are rings, tells the program that there is room, so that the program
 * does not wait for ever; then frees the rings and their memory, and closes
 * room_fd. */
void fabric_ring_close(struct fabric_ring *r);
/* Tells the program that the ring to the fabric has room.  Does not wait,
 * whatever the program has done to the eventfd. */
void fabric_ring_tell_room(const struct fabric_ring *r);

#endif
