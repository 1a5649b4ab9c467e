/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The broker of another version of adverb, in the same network namespace.  Each
 * version has an address of its own, and all versions share one port.  The
 * words of that broker are not trusted.
 */
#ifndef BROKER_OTHER_VERSION_H
#define BROKER_OTHER_VERSION_H

#include <stdbool.h>
#include <stddef.h>

struct proto;

/* Returns the protocol version of such a broker; 0: there is none.  Does not
 * wait. */
unsigned other_version_find(void);
/*
 * Names the broker of another version and what to do, in a sentence without a
 * full stop.  Asks the broker for its introduction first, for half a second at
 * most, if the broker is trusted (trust.h).  False: there is no such broker.
 */
bool other_version_name(char *text, size_t size);
/* Names the broker that has introduced itself by m on the connection fd, and
 * what to do, in a sentence without a full stop. */
void other_version_say(int fd, const struct proto *m, char *text, size_t size);

#endif
