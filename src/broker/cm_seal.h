/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Seals the notes that clients of connection management keep for a broker's
 * successor (cmproto.h), so that a client can give back only what a broker has
 * written.  A seal is SipHash-2-4 of the note, behind the note in the message.
 * The key is in the ledger of the fd store, where a successor finds it; clients
 * of the broker's own user can read the key there, and need no seal.
 *
 * If the store was lost with its broker, no process knows the key.  A broker
 * that has no predecessor's key takes any note for CM_SEAL_LENIENT_NS after it
 * began, but as one that its client may have made up (is_unproven): otherwise a
 * client could claim connections with another host's queue pairs, whose
 * requests to other users would then be refused as stale.  Part of the broker's
 * loop: one owner, no lock.
 */
#ifndef BROKER_CM_SEAL_H
#define BROKER_CM_SEAL_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/cmproto.h"
#include "broker/fd_store.h"
#include "util/siphash.h"

/* The time for which a call of librdmacm waits for a broker. */
#define CM_SEAL_LENIENT_NS 30000000000u

struct cm_seal {
	struct fd_store *fd_store; /* borrowed; may hold nothing */
	struct siphash_key own;	   /* drawn by this broker */
	uint64_t began_ns;
};

/* Draws this broker's own key; borrows fd_store.  False: the kernel has no
 * random numbers. */
bool cm_seal_init(struct cm_seal *s, struct fd_store *fd_store,
		  uint64_t now_ns);
/* Writes the note and behind it its seal; writes zeroes for a note of state
 * 0. */
void cm_seal_write(struct cm_seal *s, const struct cm_note *note,
		   uint8_t bytes[CMPROTO_NOTE]);
/* Reads a note.  True: its seal is right; or its seal is unknown, which
 * is_unproven says, and this broker still takes any note.  False: no broker
 * that is known has written the note. */
bool cm_seal_read(const struct cm_seal *s, const uint8_t bytes[CMPROTO_NOTE],
		  uint64_t now_ns, struct cm_note *note);

#endif
