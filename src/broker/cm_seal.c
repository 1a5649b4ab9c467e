/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/cm_seal.h"

#include "util/random.h"

#include <string.h>

/* A note and its seal, as they are in a message. */
struct sealed_note {
	struct cm_note note;
	uint64_t seal;
};

_Static_assert(sizeof(struct sealed_note) <= CMPROTO_NOTE,
	       "a message has room for a note and its seal");

bool cm_seal_init(struct cm_seal *s, struct fd_store *fd_store, uint64_t now_ns)
{
	*s = (struct cm_seal){.fd_store = fd_store, .began_ns = now_ns};
	return random_fill(&s->own, sizeof(s->own), true);
}

/* Returns the key in the ledger, which an earlier broker or this one has put
 * there; NULL: there is none yet. */
static const struct siphash_key *ledger_key(const struct cm_seal *s)
{
	const struct fd_store_ledger *l = s->fd_store->ledger;

	return l && (l->note_key.word[0] || l->note_key.word[1]) ? &l->note_key
								 : NULL;
}

static uint64_t seal_of(const struct siphash_key *key,
			const struct cm_note *note)
{
	return siphash(key, note, sizeof(*note));
}

void cm_seal_write(struct cm_seal *s, const struct cm_note *note,
		   uint8_t bytes[CMPROTO_NOTE])
{
	struct sealed_note sealed;

	memset(&sealed, 0, sizeof(sealed));
	if (note->state) {
		/* the fd store may have come after the last note was written */
		if (s->fd_store->ledger && !ledger_key(s))
			s->fd_store->ledger->note_key = s->own;
		sealed.note = *note;
		sealed.seal = seal_of(ledger_key(s) ? ledger_key(s) : &s->own,
				      &sealed.note);
	}
	memcpy(bytes, &sealed, sizeof(sealed));
}

/* Is the key in the ledger that of an earlier broker? */
static bool has_earlier_key(const struct cm_seal *s)
{
	const struct siphash_key *key = ledger_key(s);

	return key && memcmp(key, &s->own, sizeof(*key)) != 0;
}

bool cm_seal_read(const struct cm_seal *s, const uint8_t bytes[CMPROTO_NOTE],
		  uint64_t now_ns, struct cm_note *note)
{
	const struct siphash_key *key = ledger_key(s);
	struct sealed_note sealed;

	memcpy(&sealed, bytes, sizeof(sealed));
	*note = sealed.note;
	if ((key && sealed.seal == seal_of(key, &sealed.note)) ||
	    sealed.seal == seal_of(&s->own, &sealed.note))
		return true;
	note->is_unproven = true;
	return !has_earlier_key(s) && now_ns - s->began_ns < CM_SEAL_LENIENT_NS;
}
