/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Seals the notes that clients of connection management keep for a broker's
 * successor (cmproto.h), so that a client can give back only a note that a
 * broker has written.  A seal is SipHash-2-4 of the note, and follows the note
 * in the message.  The key is in the ledger of the fd store, where a successor
 * finds it.  Clients of the broker's own user can read the key there, so their
 * notes need no seal.
 *
 * If the store was lost with its broker, no process knows the key.  Until
 * CM_SEAL_LENIENT_NS after its start, a broker without the key of an earlier
 * one accepts any note, but marks the note as one that the client may have made
 * up (is_unproven).  Without the mark, a client could claim connections with
 * queue pairs of another host, and requests of these queue pairs to other users
 * would be refused as stale.  Part of the broker's loop: one owner, no lock.
 */
#ifndef BROKER_CM_SEAL_H
#define BROKER_CM_SEAL_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/cmproto.h"
#include "broker/fd_store.h"
#include "util/siphash.h"

/* For how long after its start a broker accepts a note whose seal it cannot
 * check: as long as a call of librdmacm waits for a broker. */
#define CM_SEAL_LENIENT_NS 30000000000u

struct cm_seal {
	/* borrowed; has no ledger if there is no store */
	struct fd_store *fd_store;
	struct siphash_key own; /* drawn by this broker */
	uint64_t began_ns;	/* when the broker started, CLOCK_MONOTONIC */
};

/* Draws this broker's own key.  Borrows fd_store as long as s is used.  False:
 * the kernel has no random numbers. */
bool cm_seal_init(struct cm_seal *s, struct fd_store *fd_store,
		  uint64_t now_ns);
/* Writes the note and then its seal to bytes; for a note of state 0, writes
 * zeroes.  If the ledger has no key yet, stores this broker's own key there. */
void cm_seal_write(struct cm_seal *s, const struct cm_note *note,
		   uint8_t bytes[CMPROTO_NOTE]);
/* Copies the note in bytes to *note.  True: the seal is right; or it is wrong,
 * but this broker still takes any note, and note->is_unproven is set.  False:
 * the seal is wrong, and the caller refuses the note unless the client is of
 * the broker's own user. */
bool cm_seal_read(const struct cm_seal *s, const uint8_t bytes[CMPROTO_NOTE],
		  uint64_t now_ns, struct cm_note *note);

#endif
