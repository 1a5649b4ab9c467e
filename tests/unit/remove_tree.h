/* SPDX-License-Identifier: BSD-2-Clause */
/* Removes a folder of a test with all that is in it. */
#ifndef TESTS_UNIT_REMOVE_TREE_H
#define TESTS_UNIT_REMOVE_TREE_H

#include <ftw.h>
#include <stdio.h>

static inline int remove_one(const char *path, const struct stat *st, int type,
			     struct FTW *ftw)
{
	return remove(path);
}

/* Returns 0, or another value after an error; then a part of the folder may be
 * left.  Follows no symbolic link. */
static inline int remove_tree(const char *path)
{
	return nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

#endif
