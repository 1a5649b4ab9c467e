/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The broker of another version of adverb, in the same network namespace.  Each
 * version has an address of its own; there is one port.  What that broker says
 * is input.
 */
#ifndef BROKER_OTHER_VERSION_H
#define BROKER_OTHER_VERSION_H

#include <stdbool.h>
#include <stddef.h>

struct proto;

/* The protocol's version of such a broker; 0: there is none.  Does not wait. */
unsigned other_version_find(void);
/*
 * Asks that broker who it is, for half a second at most, unless it is not
 * trusted (trust.h), and writes that and what to do: a sentence without a full
 * stop.  False: there is none.
 */
bool other_version_name(char *text, size_t size);
/* Writes who the broker is that has introduced itself by m on the connection
 * fd, and what to do: a sentence without a full stop. */
void other_version_say(int fd, const struct proto *m, char *text, size_t size);

#endif
