/* SPDX-License-Identifier: BSD-2-Clause */
#include "log/env_names.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "log/log.h"

#define PREFIX	"ADVERB_"
#define LONGEST 31 /* letters of a name that are compared */

/* `adverb bench` sets this variable for the programs that it starts. */
#define INTERNAL "COMMAND"

/* All names but INTERNAL, without the prefix.  adverb.7 describes each of them
 * (ci/lint-man compares). */
static const char *const known_names[] = {
	"BPF",	    "BROKER",  "BROKER_USER", "CM_FAST",     "DEVICES",
	"DIRECT",   "EXPLAIN", "FABRIC",      "FABRIC_HOST", "GRO",
	"GSO",	    "GUARD",   "MPA",	      "NO_TREE",     "PART_ID",
	"PATIENCE", "PCAP",    "PTRACER",     "READY_FD",    "RUNTIME",
	"SCTP",	    "SPORT",   "STRICT",      "SYSFS",	     "WITHOUT",
};

static unsigned least_of(unsigned a, unsigned b, unsigned c)
{
	unsigned least = a < b ? a : b;

	return least < c ? least : c;
}

/* Returns how many letters must be inserted, removed or replaced in order to
 * change the first `length` letters of `name`, at most LONGEST, to `known`. */
static unsigned edit_distance(const char *name, size_t length,
			      const char *known)
{
	/* row[i]: the distance from the first i letters of `name` to the
	 * letters of `known` so far */
	unsigned row[LONGEST + 1];

	for (unsigned i = 0; i <= length; i++)
		row[i] = i;
	for (unsigned k = 0; known[k]; k++) {
		unsigned diagonal = row[0]++;

		for (size_t i = 0; i < length; i++) {
			unsigned above = row[i + 1];

			row[i + 1] = least_of(above + 1, row[i] + 1,
					      diagonal + (name[i] != known[k]));
			diagonal = above;
		}
	}
	return row[length];
}

/* Returns the nearest known name, and its distance in *least. */
static const char *find_nearest(const char *name, size_t length,
				unsigned *least)
{
	const char *nearest = NULL;

	*least = UINT32_MAX;
	for (size_t i = 0; i < sizeof(known_names) / sizeof(*known_names);
	     i++) {
		unsigned distance = edit_distance(name, length, known_names[i]);

		if (distance < *least) {
			*least = distance;
			nearest = known_names[i];
		}
	}
	return nearest;
}

/* Checks a string of the environment: "NAME=value". */
static void check_name(const char *entry)
{
	const char *name = entry + strlen(PREFIX), *nearest;
	size_t length = strcspn(name, "=");
	unsigned least;

	if (length == strlen(INTERNAL) && !strncmp(name, INTERNAL, length))
		return;
	nearest =
		find_nearest(name, length < LONGEST ? length : LONGEST, &least);
	if (!least && length <= LONGEST)
		return;
	log_say(LOG_NAME_UNKNOWN, (uintptr_t)entry,
		PREFIX "%.*s is not a variable of adverb, and has no effect; "
		       "the nearest name is " PREFIX
		       "%s, and adverb(7) describes all",
		(int)length, name, nearest);
}

void env_names_check(void)
{
	if (getauxval(AT_SECURE))
		return;
	for (char **at = environ; at && *at; at++)
		if (!strncmp(*at, PREFIX, strlen(PREFIX)))
			check_name(*at);
}
