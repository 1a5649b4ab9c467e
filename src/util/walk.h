/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A walk along a path, folder by folder, by descriptors.  Each folder in which
 * the walk looks up a name is root's or the caller's.  Unless such a folder is
 * sticky, only its owner, group 0 and the group walk.group may write to it.  A
 * symbolic link is followed only if root or the caller owns it.  No folder is
 * on a file system that a process of another user serves (FUSE), since that
 * process could report any owner for a file.  So only root, the caller and
 * members of these groups can replace an object that was checked.
 *
 * The functions allocate nothing, take no lock, and may change errno.  The
 * caller owns the walk, and frees it by walk_end.
 */
#ifndef UTIL_WALK_H
#define UTIL_WALK_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

/* The state of a walk.  The caller sets the first six members and fd. */
struct walk {
	const char *subject; /* the subject of a reason: the path, or "it" */
	char *why;	     /* if a check fails, the walk writes a clause here
			      * that names the check; an error of the kernel,
			      * EPERM too, leaves the bytes unchanged */
	size_t room;	     /* bytes of `why` */
	bool makes;	     /* missing folders are created, with mode 0700 */
	bool doubts_system;  /* no link of the owner of / is followed, unless
			      * the owner is user 0 or the caller: the owner may
			      * have a number that other users have, too
			      * (util/user_map.h) */
	gid_t group;	     /* this group may write to the folders, as group 0
			      * may */
	int fd;		     /* the folder reached, O_PATH; -1: none yet */
	struct stat at;	     /* fstat of fd */
	/* The file that walk_file looks for: its name in the folder reached, or
	 * "", and its descriptor, or -1. */
	char name[NAME_MAX + 1];
	int file;
	bool for_file;	 /* the walk is that of walk_file */
	uid_t system;	 /* the owner of /: root, even if its uid is not 0 */
	bool may_follow; /* links of root and of the caller are followed */
	int links;	 /* the number of links followed so far */
	/* The minor device number of the last file system that was accepted and
	 * has no block device. */
	unsigned minor;
	bool has_device; /* `minor` is set */
};

/* Walks along a path that the environment or the system names, to a folder.  A
 * relative path begins at the working directory, to which the walk goes from /
 * first.  Returns 0; -EPERM, with a reason if a check has failed; -ENOENT: a
 * folder is missing and could be created; or another -errno. */
int walk_along(struct walk *w, const char *path);
/*
 * Walks along a path that the environment names, to a file of any type other
 * than a folder.  Returns a descriptor of the file, O_PATH, which the caller
 * closes; -EISDIR: the path leads to a folder; -ENOENT; or another error of
 * walk_along.
 *
 * After -ENOENT with an empty w->name a folder is missing, whether or not the
 * caller could create that folder.  If w->name is not empty, only the file is
 * missing, and the caller may create it by this name in the folder w->fd.
 */
int walk_file(struct walk *w, const char *path);
/* Walks into the folder of this name in the folder reached, but follows no
 * link.  Returns what walk_along returns. */
int walk_into(struct walk *w, const char *name);
/* Makes fd the folder reached, and checks its file system.  The walk owns fd,
 * even after an error.  Returns 0; -EPERM, with a reason if a process of
 * another user serves the file system; or another -errno. */
int walk_arrive(struct walk *w, int fd);
/* Checks the folder reached: no other user, except root and members of group 0
 * and walk.group, may be able to rename or replace an entry of it that is the
 * caller's or root's.  Returns 0, or -EPERM with a reason. */
int walk_judge(struct walk *w);
/* Returns 0 if the caller may write to the folder reached, or -errno. */
int walk_check_writable(const struct walk *w);
/* Writes the reason: the walk's subject, `why`, and the owner and mode in *s.
 * Returns -EPERM. */
int walk_refuse(struct walk *w, const char *why, const struct stat *s);
/* Closes the folder reached. */
void walk_end(struct walk *w);

#endif
