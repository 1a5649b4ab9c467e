/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages to the user, on stderr.  A message is printed once per cause and
 * object, and not at all with ADVERB_EXPLAIN=0.  Thread-safe; leaves errno
 * unchanged.
 */
#ifndef LOG_LOG_H
#define LOG_LOG_H

#include <stdarg.h>
#include <stdint.h>

struct seen_set;

/* The causes of messages.  Calls of log_say share a cause if only the first of
 * them may print its message; otherwise each call has a cause of its own. */
enum log_cause {
	LOG_TEST, /* for tests of log/ */
	LOG_ARENA_SIZE,
	LOG_BROKER_CLIENT,
	LOG_BROKER_FOREIGN,
	LOG_BROKER_HIDDEN,
	LOG_BROKER_NONE,
	LOG_BROKER_ALONE,
	LOG_CAPTURE_ENDS,
	LOG_CAPTURE_FAILS,
	LOG_DEVICE_DOWN,
	LOG_DEVICE_LOOPBACK,
	LOG_DEVICE_NAMED,
	LOG_DEVICE_READ,
	LOG_FABRIC_ENDED,
	LOG_FABRIC_GROUP,
	LOG_FABRIC_NONE,
	LOG_FILES_CLOSED,
	LOG_FILES_FEW,
	LOG_JUNK,
	LOG_LOCK_SLOW,
	LOG_NAME_UNKNOWN, /* of an environment variable */
	LOG_PEER_REFUSED,
	LOG_PORT_INACTIVE,
	LOG_QP_FAILURE,
	LOG_RANDOM,
	LOG_SEND_REFUSED,
	LOG_SOURCE_UNKNOWN,
	LOG_SUSPECT,
	LOG_THREAD_PORTS,    /* netif's thread */
	LOG_THREAD_PROGRESS, /* the progress thread */
	LOG_TREE,
	LOG_VALUE_EXPLAIN, /* values of environment variables */
	LOG_VALUE_MPA,
	LOG_VALUE_NUMBER,
	LOG_VALUE_SCTP,
	LOG_VALUE_SWITCH,
	LOG_VALUE_WITHOUT,
	LOG_VERB,
};

/*
 * Prints "adverb: ", the message and a newline in one write; cuts a line of
 * more than 639 bytes.  `cause` is not 0.  Prints nothing if ADVERB_EXPLAIN is
 * 0, if the cause is in *seen, or if *seen is full; otherwise adds the cause to
 * *seen.  If descriptor 2 is not stderr (log/stderr.h), the message is lost.
 * Leaves errno unchanged.
 */
void log_once(struct seen_set *seen, uint64_t cause, const char *format,
	      va_list args) __attribute__((format(printf, 3, 0)));
/*
 * Prints a message as log_once does.  @detail names the object: a second
 * message of the same cause with the same low 56 bits of @detail is not
 * printed.  Prints at most SEEN_SET_ROOM messages in all (util/seen_set.h).
 */
void log_say(enum log_cause cause, uint64_t detail, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
