/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/mountinfo.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CHUNK	  4096
#define DEVICE	  2 /* the index of field major:minor */
#define FIRST_ANY 6 /* the index of the first optional field */
#define OPTIONS	  3 /* line.behind while the field of the options is read */

/* The line that is being read: fields, optional fields, a hyphen, then the
 * type, the source and the options of the file system (proc(5)). */
struct line {
	unsigned major, minor; /* the device that is looked for */
	unsigned field;	       /* the index of the field that is being read */
	/* 0 before the hyphen and at the hyphen; then 1 for the first field
	 * behind the hyphen, 2 for the second, and so on. */
	unsigned behind;
	bool is_it; /* the line is that of the device */
	/* The bytes of the present field so far or, in the field of the
	 * options, of the present option; cut to this size. */
	char word[64];
	size_t used;	     /* bytes in word */
	struct mountinfo *m; /* the result */
};

/*
 * Reads an option.  The kernel writes the options of the security module first,
 * and those of a FUSE file system itself behind them, so the last user_id
 * counts.  After a user_id that is not a number, no earlier user_id counts.
 */
static void take_option(struct line *l)
{
	static const char name[] = "user_id=";
	const char *digits = l->word + sizeof(name) - 1;
	unsigned long id;
	char *end;

	if (strncmp(l->word, name, sizeof(name) - 1) != 0)
		return;
	id = strtoul(digits, &end, 10);
	l->m->has_user =
		*digits >= '0' && *digits <= '9' && !*end && id <= UINT_MAX;
	l->m->user = l->m->has_user ? (unsigned)id : 0;
}

static void end_field(struct line *l)
{
	unsigned major, minor;

	l->word[l->used] = '\0';
	if (l->field == DEVICE)
		l->is_it = sscanf(l->word, "%u:%u", &major, &minor) == 2 &&
			   major == l->major && minor == l->minor;
	if (l->behind == 1 && l->is_it)
		snprintf(l->m->type, sizeof(l->m->type), "%.*s",
			 (int)sizeof(l->m->type) - 1, l->word);
	if (l->behind == OPTIONS && l->is_it)
		take_option(l);
	if (l->behind || (l->field >= FIRST_ANY && !strcmp(l->word, "-")))
		l->behind++;
	l->field++;
	l->used = 0;
}

/* Takes the next byte of the text.  Returns true at the end of the device's
 * line. */
static bool take_byte(struct line *l, char byte)
{
	bool found;

	if (byte == ',' && l->behind == OPTIONS) {
		l->word[l->used] = '\0';
		if (l->is_it)
			take_option(l);
		l->used = 0;
		return false;
	}
	if (byte != ' ' && byte != '\n') {
		if (l->used < sizeof(l->word) - 1)
			l->word[l->used++] = byte;
		return false;
	}
	end_field(l);
	if (byte == ' ')
		return false;
	found = l->is_it && l->behind > OPTIONS;
	l->field = l->behind = 0;
	l->is_it = false;
	return found;
}

bool mountinfo_find_in(int fd, unsigned major, unsigned minor,
		       struct mountinfo *m)
{
	struct line l = {.major = major, .minor = minor, .m = m};
	char chunk[CHUNK];
	bool found = false;
	ssize_t n;

	*m = (struct mountinfo){.has_user = false};
	while (!found && (n = read(fd, chunk, sizeof(chunk))) > 0)
		for (ssize_t i = 0; i < n && !found; i++)
			found = take_byte(&l, chunk[i]);
	return found;
}

bool mountinfo_find(unsigned major, unsigned minor, struct mountinfo *m)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/mountinfo",
			      O_RDONLY | O_CLOEXEC, 0);
	bool found;

	if (fd < 0)
		return false;
	found = mountinfo_find_in(fd, major, minor, m);
	close(fd);
	return found;
}
