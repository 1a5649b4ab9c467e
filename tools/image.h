/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * image: puts files into a root folder, and removes them: `/` of this machine,
 * or an unpacked image's.
 *
 * No path leaves the root: symbolic links, absolute ones too, are resolved
 * inside (openat2, RESOLVE_IN_ROOT).  A list in the root has the size and the
 * checksum of each file that was put, so that a file of somebody else, or one
 * that was changed since, is neither overwritten nor removed.
 *
 * Paths are relative to the root, without a leading '/'.  A function that
 * returns int returns 0, or -1 after a sentence on stderr.  A struct image owns
 * its list.  Single-threaded; no lock.
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

/* A file of the list.  While files are put, the list has two versions of a
 * path: the present one and the one to come.  So a run that is killed leaves no
 * file that the list does not know. */
struct image_entry {
	char path[IMAGE_PATH];
	struct image_version before, now;
	bool kept; /* put by this run; image_settle removes the others */
};

struct image {
	const char *root; /* for messages; borrowed */
	const char *list; /* the path of the list; borrowed */
	int fd;		  /* the root folder */
	bool dry;	  /* print what would be done, and do nothing */
	struct image_entry entries[IMAGE_MAX];
	size_t count;
};

/* Opens the root, waits for its lock (flock), which other runs hold, and reads
 * the list, if there is one.  root and list are borrowed. */
int image_open(struct image *im, const char *root, const char *list, bool dry);
/* Closes the root, and so releases its lock. */
void image_close(struct image *im);

/* Is there a file at @path? */
bool image_has(const struct image *im, const char *path);
/* Has a line of the file @path, other than a comment, @word in it? */
bool image_contains(const struct image *im, const char *path, const char *word);
/* Is the file at @path one of the list, and unchanged? */
bool image_is_ours(const struct image *im, const char *path);
/* True, after a sentence on stderr: the file at @path is not one of the list,
 * or was changed since it was put. */
bool image_is_taken(const struct image *im, const char *path);
/* Notes that @path is to become a copy of the file @from (of the machine), or
 * of
 * @text if @from is NULL. */
int image_expect(struct image *im, const char *from, const char *text,
		 const char *path);
/* Writes the list with both versions: those present and those expected. */
int image_announce(const struct image *im);
/* Copies the file @from (of the machine) to @path, with permissions @mode. */
int image_put(struct image *im, const char *from, const char *path, int mode);
/* Writes @text to @path, with permissions 0644. */
int image_put_text(struct image *im, const char *text, const char *path);
/* Removes the files of the list that this run did not put, and writes the list
 * of those that it put. */
int image_settle(struct image *im);
/* Removes the files of the list, but for changed ones, and the list. */
int image_clear(struct image *im);

#endif
