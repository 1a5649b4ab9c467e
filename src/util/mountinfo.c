/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/mountinfo.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CHUNK	  4096
#define DEVICE	  2 /* the index of field major:minor */
#define FIRST_ANY 6 /* the index of the first optional field */

/* The line that is being read: fields, optional fields, a hyphen, then the
 * type, the source and the options of the file system (proc(5)). */
struct line {
	unsigned major, minor; /* the device that is looked for */
	unsigned field;	       /* the index of the field that is being read */
	unsigned behind;       /* 1 at the hyphen, then counts; 0: before it */
	bool is_it;	       /* the line is that of the device */
	char word[64];	       /* the field so far, cut to this size */
	size_t used;	       /* bytes in word */
	struct mountinfo *m;
};

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
	if (l->behind == 3 && l->is_it)
		memcpy(l->m->options, l->word, sizeof(l->word));
	if (l->behind || (l->field >= FIRST_ANY && !strcmp(l->word, "-")))
		l->behind++;
	l->field++;
	l->used = 0;
}

/* Returns true at the end of the device's line. */
static bool take_byte(struct line *l, char byte)
{
	bool found;

	if (byte != ' ' && byte != '\n') {
		if (l->used < sizeof(l->word) - 1)
			l->word[l->used++] = byte;
		return false;
	}
	end_field(l);
	if (byte == ' ')
		return false;
	found = l->is_it && l->behind > 3;
	l->field = l->behind = 0;
	l->is_it = false;
	return found;
}

bool mountinfo_find(unsigned major, unsigned minor, struct mountinfo *m)
{
	struct line l = {.major = major, .minor = minor, .m = m};
	int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/mountinfo",
			      O_RDONLY | O_CLOEXEC, 0);
	char chunk[CHUNK];
	bool found = false;
	ssize_t n;

	if (fd < 0)
		return false;
	while (!found && (n = read(fd, chunk, sizeof(chunk))) > 0)
		for (ssize_t i = 0; i < n && !found; i++)
			found = take_byte(&l, chunk[i]);
	close(fd);
	return found;
}
