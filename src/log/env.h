/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The environment variables ADVERB_*: by which path the processes of one host
 * reach each other; which mechanisms a process does not use; how MPA begins;
 * whether SCTP takes the place of TCP; switches; and values that the caller
 * interprets.  A program that is executed with more privileges than its caller
 * has (secure_getenv(3)) reads each variable as unset.  No state, no lock.
 */
#ifndef LOG_ENV_H
#define LOG_ENV_H

#include <stdbool.h>
#include <stdint.h>

enum env_path {
	ENV_PATH_DIRECT,  /* from memory to memory, where that is possible */
	ENV_PATH_PACKETS, /* by packets, because of ADVERB_DIRECT=0 */
	ENV_PATH_CAPTURE, /* by packets, because ADVERB_PCAP captures them */
};

/* Returns by which path the processes of one host are to reach each other. */
enum env_path env_path(void);
/* Returns whether ADVERB_DIRECT is set and not empty.  A user who has set it
 * wants a message if the direct path is not possible. */
bool env_has_direct(void);

/*
 * Mechanisms that make adverb faster, but that a process does not need.
 * ADVERB_WITHOUT names those that this process is not to use, separated by
 * commas.  By this variable adverb bench compares a run with a mechanism and a
 * run without the mechanism.
 */
enum env_mechanism {
	ENV_CREDITS,   /* "credits": engine/credit.h */
	ENV_ACKS,      /* "acks": engine/shm_ack.h */
	ENV_EAGER,     /* "eager": hca/eager.h */
	ENV_MAPPED,    /* "mapped": memory/copy_revocable.h */
	ENV_ADAPTIVE,  /* "adaptive": host/poll_policy.h */
	ENV_RINGS,     /* "rings": host/link_ring.h */
	ENV_MECHANISMS /* how many mechanisms there are */
};

/* Returns whether ADVERB_WITHOUT names the mechanism. */
bool env_is_without(enum env_mechanism mechanism);

/*
 * How rdma_cm begins MPA on the TCP connections of iWARP devices.  ADVERB_MPA
 * is a list of these words, separated by commas; each word changes one default.
 * The variable is for peers that do not accept the defaults, and for tests.
 */
enum env_mpa {
	ENV_MPA_REV1,	 /* "rev1": only revision 1 */
	ENV_MPA_NOCRC,	 /* "nocrc": no CRC, unless the peer wants it */
	ENV_MPA_MARKERS, /* "markers": this side receives markers */
	/* "client-server": the client-server model, not peer-to-peer */
	ENV_MPA_CLIENT_SERVER,
	ENV_MPA_WORDS /* how many words there are */
};

/* Returns whether ADVERB_MPA has the word. */
bool env_has_mpa(enum env_mpa word);

/* Returns whether the variable of this name, which can be 0 or 1, is set and is
 * neither empty nor 0. */
bool env_is_on(const char *name);

/* Returns whether the variable of this name is set to 0. */
bool env_is_off(const char *name);
/* Returns the value of the variable of this name, or NULL if it is not set. */
const char *env_text(const char *name);

/* How the connections of iWARP devices are carried, by the value of
 * ADVERB_SCTP. */
enum env_sctp {
	ENV_SCTP_OFF,	/* unset, empty or "0": TCP */
	ENV_SCTP_UDP,	/* "udp" or the number of a UDP port: SCTP over UDP */
	ENV_SCTP_RAW,	/* "raw": SCTP directly over IP */
	ENV_SCTP_WRONG, /* any other value */
};

/* Returns what ADVERB_SCTP asks for.  Sets *udp_port to the port that the
 * variable names, in host order, and to 0 if it names none. */
enum env_sctp env_sctp(uint16_t *udp_port);

/* Checks the values of the switches (0 or 1), of the variables that are
 * numbers, and of ADVERB_EXPLAIN, ADVERB_MPA, ADVERB_SCTP and ADVERB_WITHOUT.
 * Prints a message for each invalid value, and for each variable ADVERB_* that
 * adverb does not have. */
void env_check(void);

#endif
