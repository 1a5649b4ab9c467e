/* SPDX-License-Identifier: BSD-2-Clause */
#include "ipoib/joined.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define IPV6_DIGITS	32
#define SCOPE_INTERFACE 1

/* A word of a line. */
struct word {
	const char *at;
	size_t bytes;
};

/* Returns the next word of the line that begins at *at, and moves *at behind
 * it; a word without bytes: the line has ended. */
static struct word next_word(const char **at)
{
	struct word w;

	*at += strspn(*at, " \t");
	w.at = *at;
	w.bytes = strcspn(*at, " \t\n");
	*at += w.bytes;
	return w;
}

static const char *next_line(const char *at)
{
	at += strcspn(at, "\n");
	return *at ? at + 1 : at;
}

static bool is_name(struct word w, const char *name)
{
	return w.bytes == strlen(name) && !memcmp(w.at, name, w.bytes);
}

/* The kernel prints a colon behind a name.  There are no blanks between them if
 * the name has 10 or more characters.  No name has a colon. */
static struct word without_colon(struct word w)
{
	if (w.bytes && w.at[w.bytes - 1] == ':')
		w.bytes--;
	return w;
}

static bool is_hex(struct word w, size_t digits)
{
	for (size_t i = 0; i < w.bytes; i++)
		if (!isxdigit((unsigned char)w.at[i]))
			return false;
	return w.bytes == digits;
}

static struct joined_group *add_group(struct joined *j)
{
	return j->count < JOINED_MAX ? &j->all[j->count++] : NULL;
}

static void add_ipv4(struct joined *j, struct word w)
{
	struct joined_group *g = is_hex(w, 8) ? add_group(j) : NULL;
	uint8_t bytes[4];
	uint32_t word;

	if (!g)
		return;
	/* the kernel prints the four bytes of the address as one number, in the
	 * byte order of this processor */
	word = (uint32_t)strtoul(w.at, NULL, 16);
	memcpy(bytes, &word, sizeof(bytes));
	*g = (struct joined_group){.ipv4 = (uint32_t)bytes[0] << 24 |
					   (uint32_t)bytes[1] << 16 |
					   (uint32_t)bytes[2] << 8 | bytes[3]};
}

void joined_add_igmp(struct joined *j, const char *text, const char *name)
{
	bool is_here = false;

	/* A line that begins with a number names an interface.  The lines of
	 * the interface's groups follow, and begin with blanks. */
	for (const char *line = text; *line; line = next_line(line)) {
		const char *at = line;
		struct word first = next_word(&at);

		if (*line == ' ' || *line == '\t') {
			if (is_here)
				add_ipv4(j, first);
			continue;
		}
		is_here = is_name(without_colon(next_word(&at)), name);
	}
}

static void add_ipv6(struct joined *j, struct word w)
{
	struct joined_group g = {.is_v6 = true};
	struct joined_group *place;

	if (!is_hex(w, IPV6_DIGITS))
		return;
	for (int i = 0; i < 16; i++) {
		char digits[3] = {w.at[2 * i], w.at[2 * i + 1], 0};

		g.ipv6[i] = (uint8_t)strtoul(digits, NULL, 16);
	}
	if ((g.ipv6[1] & 15) <= SCOPE_INTERFACE)
		return;
	place = add_group(j);
	if (place)
		*place = g;
}

void joined_add_igmp6(struct joined *j, const char *text, const char *name)
{
	for (const char *line = text; *line; line = next_line(line)) {
		const char *at = line;

		next_word(&at);
		if (is_name(next_word(&at), name))
			add_ipv6(j, next_word(&at));
	}
}
