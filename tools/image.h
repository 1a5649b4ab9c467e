/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * image: files put into a root folder and taken out again: the machine's own
 * `/`, or an image's that is unpacked somewhere.
 *
 * No path leaves the root: links in it, absolute ones too, are followed inside
 * (openat2, RESOLVE_IN_ROOT).  What was put is written down in a list with
 * sizes and checksums, so that nothing of others is overwritten or removed,
 * and nothing that was changed since.
 *
 * Paths are relative to the root, without a leading '/'.  Functions that
 * return int: 0, or -1 and a sentence on stderr.  A struct image owns its
 * list.  Single-threaded; no lock.
 */
#ifndef TOOLS_IMAGE_H
#define TOOLS_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { IMAGE_MAX = 64, IMAGE_PATH = 256 };

struct image_version {
	uint32_t crc;
	long long bytes;
};

/* The list may say two things of a path: what is there, then what it becomes.
 * Who is ended in the midst of putting so leaves nothing unknown. */
struct image_entry {
	char path[IMAGE_PATH];
	struct image_version before, now;
	bool kept; /* still wanted: put anew */
};

struct image {
	const char *root; /* borrowed, for sentences */
	const char *list; /* where the list is kept; borrowed */
	int fd;
	bool dry; /* say it, do not do it */
	struct image_entry entries[IMAGE_MAX];
	size_t count;
};

/* Opens the root, waits until nobody else is at work there, and reads the
 * list, if there is one. */
int image_open(struct image *im, const char *root, const char *list, bool dry);
void image_close(struct image *im);

/* Is there a file, of whomever? */
bool image_has(const struct image *im, const char *path);
/* Has the file @path a line, not a comment, with that word in it? */
bool image_contains(const struct image *im, const char *path, const char *word);
/* Is the file there as we put it? */
bool image_is_ours(const struct image *im, const char *path);
/* True, and a sentence, if somebody else's file is in the way, or a changed
 * one of ours. */
bool image_is_taken(const struct image *im, const char *path);
/* @path is to become the file @from, or @text. */
int image_expect(struct image *im, const char *from, const char *text,
		 const char *path);
/* Writes the list of what is there and what is expected. */
int image_announce(const struct image *im);
/* Copies the file @from (of the machine) to @path. */
int image_put(struct image *im, const char *from, const char *path, int mode);
/* Writes @text to @path. */
int image_put_text(struct image *im, const char *text, const char *path);
/* Removes what an older list has and nobody put anew; writes the list. */
int image_settle(struct image *im);
/* Removes everything of the list, and the list; what was changed stays. */
int image_clear(struct image *im);

#endif
