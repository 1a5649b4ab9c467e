/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The broker of another version of adverb in the same network namespace.  Each
 * version has a broker address of its own, but all versions share UDP port
 * 4791.  The text in a message of such a broker is shown without control
 * characters, since any program may have sent it.
 */
#ifndef BROKER_OTHER_VERSION_H
#define BROKER_OTHER_VERSION_H

#include <stdbool.h>
#include <stddef.h>

struct proto;
struct ucred;

/*
 * Returns whether a broker of another version has the port.  Any user's process
 * may listen at a broker's address.  So a listener counts as a broker only if
 * its user has the port, and /proc does not show that its process lacks the
 * port's socket (port_holder_may_be).  Never waits.
 */
bool other_version_has_port(void);
/*
 * Writes to text, of size bytes, which broker of another version has the port
 * and what to do: a sentence without a full stop.  If that broker is trusted
 * (trust.h), asks it first to introduce itself, and waits for half a second at
 * most.  False: no such broker has the port, and text is left as it is.
 */
bool other_version_name(char *text, size_t size);
/* Writes to text, of size bytes, a sentence without a full stop.  The sentence
 * says that the process `who` is a broker of the version in m, and what the
 * user can do.  m: the message by which the broker has introduced itself, or a
 * message of which only the version is set. */
void other_version_say(const struct ucred *who, const struct proto *m,
		       char *text, size_t size);

#endif
