/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The broker of another version of adverb, in the same network namespace.  It
 * has an address of its own; the port is one.  What it says is input.
 */
#ifndef BROKER_OTHER_VERSION_H
#define BROKER_OTHER_VERSION_H

#include <stdbool.h>
#include <stddef.h>

struct proto;

/* Is there one?  Its protocol's version, or 0.  Does not wait. */
unsigned other_version_find(void);
/*
 * Asks it who it is, for half a second at most, unless it is not trusted
 * (trust.h), and says so with what to do; a sentence without an end.  False:
 * there is none.
 */
bool other_version_name(char *text, size_t size);
/* The same of one that has introduced itself on this connection. */
void other_version_say(int fd, const struct proto *m, char *text, size_t size);

#endif
