/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * image: puts files into a root folder and removes them.  The root folder is
 * `/` of this machine or the root of an unpacked image.
 *
 * No path leaves the root: symbolic links, absolute links too, are resolved
 * inside (openat2, RESOLVE_IN_ROOT).  A list in the root has the size and the
 * checksum of each file that was put.  By the list, image_is_taken recognises a
 * file that adverb did not put, or that was changed since adverb put it.  Such
 * a file is not removed, and the caller must not overwrite it.
 *
 * Paths are relative to the root, without a leading '/'.  A function that
 * returns int returns 0, or -1 after a sentence on stderr.  Single-threaded.
 */
#ifndef TOOLS_IMAGE_H
#define TOOLS_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A list has at most IMAGE_MAX files; a path has at most IMAGE_PATH bytes, with
 * the 0 at its end. */
enum { IMAGE_MAX = 64, IMAGE_PATH = 256 };

/* Identifies the contents of a file, or the target of a symbolic link. */
struct image_version {
	uint32_t crc;	 /* CRC-32C of the contents, or of "-> TARGET" */
	long long bytes; /* the file's size, or the length of that text */
};

/* A file of the list.  While a run puts files, the list has both versions of
 * each file: the version from before the run, and the version that the run
 * puts.  If the run is killed, each file still has one of the two. */
struct image_entry {
	char path[IMAGE_PATH]; /* in the root */
	/* before: as the run found the file; now: as the run puts the file.
	 * Until image_expect, they are the two versions in the list; if the
	 * list has only one, both are that one. */
	struct image_version before, now;
	bool kept; /* this run puts the file; image_settle removes the files
		      that are not kept */
};

struct image {
	const char *root; /* for messages; borrowed */
	const char *list; /* the path of the list; borrowed */
	int fd;		  /* the root folder; owned */
	bool dry;	  /* print what would be done, and do nothing */
	struct image_entry entries[IMAGE_MAX]; /* the files of the list */
	size_t count;			       /* entries in use */
};

/* Opens the root, takes the root's lock (flock), and reads the list, if there
 * is one.  If another process has the lock, says so on stderr and waits.  If
 * the file system refuses the lock, says so on stderr and goes on without it.
 * root and list are borrowed.  The caller calls image_close if 0 is returned.
 */
int image_open(struct image *im, const char *root, const char *list, bool dry);
/* Closes the root, and so releases its lock. */
void image_close(struct image *im);

/* Is there a file at @path? */
bool image_has(const struct image *im, const char *path);
/* Does the file @path contain @word in a line that does not begin with '#'? */
bool image_contains(const struct image *im, const char *path, const char *word);
/* Is the file at @path in the list, with the contents of one of its two
 * versions? */
bool image_is_ours(const struct image *im, const char *path);
/* Is there a file at @path for which image_is_ours returns false?  If so, says
 * that on stderr. */
bool image_is_taken(const struct image *im, const char *path);
/* Notes that image_put will copy the machine's file @from to @path, or, if
 * @from is NULL, that image_put_text will write @text to @path. */
int image_expect(struct image *im, const char *from, const char *text,
		 const char *path);
/* Notes that image_put_link will make @path a link to @target. */
int image_expect_link(struct image *im, const char *target, const char *path);
/* Writes the list with both versions of each file: the present version and the
 * version that image_expect noted. */
int image_announce(const struct image *im);
/* Copies the machine's file @from to @path, with permissions @mode; with
 * im->dry, prints what would be done. */
int image_put(struct image *im, const char *from, const char *path, int mode);
/* Writes @text to @path, with permissions 0644; with im->dry, prints what would
 * be done. */
int image_put_text(struct image *im, const char *text, const char *path);
/* Makes @path a symbolic link to @target, a name in the same folder; with
 * im->dry, prints what would be done. */
int image_put_link(struct image *im, const char *target, const char *path);
/* Removes the files of the list that this run did not put, except for changed
 * files, and writes a list of the files that this run put.  The order is that
 * of image_clear.  If a file cannot be removed, the files that come later in
 * this order stay, and the list of image_announce, which names them. */
int image_settle(struct image *im);
/* Removes the list and its files, except for changed files: first the files of
 * /etc, then the others, each time the last file first.  If a file cannot be
 * removed, the files that come later in this order and the list stay, so that a
 * later call can remove them. */
int image_clear(struct image *im);

#endif
