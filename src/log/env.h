/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The variables ADVERB_*: how processes of one host reach each other, for
 * host/local_peer and adverb doctor; which mechanisms a process does without,
 * for measurements; and a check of the values.
 */
#ifndef LOG_ENV_H
#define LOG_ENV_H

#include <stdbool.h>

enum env_path {
	ENV_PATH_DIRECT,  /* from memory to memory, where that is possible */
	ENV_PATH_PACKETS, /* by packets, since ADVERB_DIRECT=0 */
	ENV_PATH_CAPTURE, /* by packets, which ADVERB_PCAP captures */
};

/* Returns how processes of one host are to reach each other. */
enum env_path env_path(void);
/* Returns whether ADVERB_DIRECT is set: the user then wants a message if the
 * direct path is not possible. */
bool env_is_said(void);

/*
 * Mechanisms that make adverb faster and that a process can do without.
 * ADVERB_WITHOUT names some of them, separated by commas: adverb bench compares
 * a run with a mechanism and a run without it.
 */
enum env_mechanism {
	ENV_CREDITS,  /* engine/credit.h */
	ENV_ACKS,     /* engine/shm_ack.h */
	ENV_EAGER,    /* hca/eager.h */
	ENV_MAPPED,   /* memory/copy_revocable.h */
	ENV_ADAPTIVE, /* host/poll_policy.h */
	ENV_MECHANISMS
};

/* Does ADVERB_WITHOUT name the mechanism? */
bool env_is_without(enum env_mechanism mechanism);

/*
 * How rdma_cm starts MPA on the TCP connections of iWARP devices: ADVERB_MPA
 * names what differs from the default, separated by commas.  For peers of
 * another kind, and for tests.
 */
enum env_mpa {
	ENV_MPA_REV1,	       /* revision 1 alone */
	ENV_MPA_NOCRC,	       /* no CRC, unless the peer wants it */
	ENV_MPA_MARKERS,       /* this side receives markers */
	ENV_MPA_CLIENT_SERVER, /* not the peer-to-peer model */
	ENV_MPA_WORDS
};

/* Does ADVERB_MPA have the word? */
bool env_has_mpa(enum env_mpa word);

/* Prints a message for each variable that has an invalid value. */
void env_check(void);

#endif
