/* SPDX-License-Identifier: BSD-2-Clause */
/* Registered memory that other processes of this host may map: host_share and
 * host_unshare of host.h.  hca/share.h describes the table of such memory. */
#include <pthread.h>
#include <unistd.h>

#include "hca/share.h"
#include "host/host.h"
#include "host/local_peer.h"
#include "memory/mr_file.h"
#include "util/fd_identity.h"

/* One search for the file mapping behind a region that is about to be
 * registered. */
struct look {
	uint64_t va, bytes; /* the region */
	/* Notes registrations by other threads at the addresses of the region
	 * or, in a later look, at those of the whole mapping. */
	struct share_look watch;
	struct mr_file_mapping m; /* the mapping that was found */
	struct share what;	  /* the row to enter for the mapping */
	/* is_shared: a mapping was found that can be shared.
	 * is_open: what.fd is open. */
	bool is_shared, is_open;
};

#define LOOKS 8 /* the most looks for one region */

/* Begins a look.  False: no row overlaps the region, and either no row is free
 * or mr_file_may_look is false. */
static bool look_begin(struct host *h, struct look *l)
{
	struct hca *hca = host_hca(h);
	enum share_room room;
	bool is_of_use;

	host_lock(h);
	room = share_room(hca, l->va, l->bytes);
	is_of_use =
		room == SHARE_MET || (room == SHARE_FREE && mr_file_may_look());
	if (is_of_use)
		share_look_begin(hca, &l->watch, l->watch.va, l->watch.bytes);
	host_unlock(h);
	return is_of_use;
}

/* Enters the region in the table, with a new row if the file is open.  Returns
 * the row's number; 0: the region has no row, and l->what.fd is closed if it
 * was open.  Called under the ctx lock. */
static uint32_t look_enter(struct hca *h, const struct look *l)
{
	uint32_t number =
		share_enter(h, l->va, l->bytes, l->is_open ? &l->what : NULL);

	if (l->is_open && !number)
		fd_identity_close(l->what.fd);
	return number;
}

/* Is l->what still true, for all addresses of the mapping? */
static bool look_is_true(const struct look *l)
{
	return !l->watch.is_outdated && l->watch.va <= l->what.va &&
	       l->watch.va + l->watch.bytes >= l->what.va + l->what.bytes;
}

/*
 * The first half of a look: finds the mapping.  True: look_open has to open the
 * mapping's file.  False: the look has ended.  *number is then the row that
 * already describes the mapping; 0: there is no mapping that can be shared, or
 * the look is out of date or has not watched all addresses of the mapping.
 */
static bool look_find(struct host *h, struct look *l, uint32_t *number)
{
	bool is_next;

	l->is_shared = mr_file_look(l->va, l->bytes, &l->m, &l->what);
	host_lock(h);
	*number = l->is_shared
			  ? share_again(host_hca(h), l->va, l->bytes, &l->what)
			  : 0;
	is_next = l->is_shared && !*number && look_is_true(l);
	if (!is_next)
		share_look_end(&l->watch);
	host_unlock(h);
	return is_next;
}

/* The second half of a look: opens the file and enters the region.  Sets
 * *number to the number of the region's row; 0: the file cannot be opened, or
 * no row is free.  False: the look is out of date. */
static bool look_open(struct host *h, struct look *l, uint32_t *number)
{
	bool is_true;

	l->is_open = mr_file_open(&l->m, &l->what);
	if (l->is_open)
		l->what.fd = fd_identity_note(l->what.fd);
	host_lock(h);
	share_look_end(&l->watch);
	is_true = !l->is_open || look_is_true(l);
	if (is_true)
		*number = look_enter(host_hca(h), l);
	host_unlock(h);
	if (!is_true)
		fd_identity_close(l->what.fd);
	return is_true;
}

/* Enters the region without a row, which withdraws all rows that overlap the
 * region (share_enter).  Returns 0. */
static uint32_t look_give_up(struct host *h, struct look *l)
{
	l->is_open = false;
	host_lock(h);
	look_enter(host_hca(h), l);
	host_unlock(h);
	return 0;
}

/*
 * Finds or enters the row of a region.  Returns its number, or 0.
 *
 * The ctx lock is not held while a file is read or opened, so a look may be out
 * of date at its end and is then repeated.  The first look at a region that is
 * only a part of a mapping is also repeated, because it did not watch the
 * mapping's other addresses.  If each look is out of date, since other threads
 * register memory of the same mapping all the time, the region gets no row, and
 * peers reach it by system calls.
 */
static uint32_t look_for_row(struct host *h, struct look *l)
{
	uint32_t number = 0;

	l->watch.va = l->va;
	l->watch.bytes = l->bytes;
	for (int i = 0; i < LOOKS && look_begin(h, l); i++) {
		if (look_find(h, l, &number)) {
			if (look_open(h, l, &number))
				return number;
		} else if (number) {
			return number;
		} else if (!l->is_shared) {
			break;
		}
		l->watch.va = l->what.va;
		l->watch.bytes = l->what.bytes;
	}
	return look_give_up(h, l);
}

/* The thread is not cancelled here, because ibv_reg_mr is no cancellation
 * point, and a thread that is cancelled in open() would leave the descriptor
 * open. */
uint32_t host_share(struct host *h, const void *addr, size_t bytes)
{
	struct look l = {.va = (uintptr_t)addr, .bytes = bytes};
	uint32_t number;
	int cancel;

	if (!local_peer_maps())
		return 0;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	mr_file_earn();
	number = look_for_row(h, &l);
	pthread_setcancelstate(cancel, NULL);
	return number;
}

void host_unshare(struct host *h, uint32_t number)
{
	int fd, cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	host_lock(h);
	fd = share_leave(host_hca(h), number);
	host_unlock(h);
	fd_identity_close(fd);
	pthread_setcancelstate(cancel, NULL);
}
