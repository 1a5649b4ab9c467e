/* SPDX-License-Identifier: BSD-2-Clause */
#include "path.h"
#include "tree.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Each kernel prefix and what follows <tree> instead. */
static const struct {
	const char *kernel, *tree;
} roots[] = {
	{"/sys/class/infiniband", "/class/infiniband"},
	{"/dev/infiniband", "/dev/infiniband"},
};

enum { ROOT_COUNT = sizeof(roots) / sizeof(roots[0]) };

/*
 * infiniband, infiniband_verbs, infiniband_mad ... are ours, but not a
 * name that merely begins alike.
 */
static bool is_under(const char *path, const char *root)
{
	size_t len = strlen(root);

	if (strncmp(path, root, len) != 0)
		return false;
	return path[len] == '\0' || path[len] == '/' || path[len] == '_';
}

static int root_of(const char *path)
{
	int i = 0;

	while (i < ROOT_COUNT && !is_under(path, roots[i].kernel))
		i++;
	return i;
}

/*
 * Programs build paths with doubled slashes, "." and "..": without them paths
 * can be compared.  The tree has no link to a folder, so ".." is the name
 * before.  True if the way led through what is ours.
 */
static bool straighten(const char *path, struct path *room)
{
	bool through = false, folder = false;
	char *text = room->text;
	size_t n = 0, len;

	for (; *path; path += len + (path[len] == '/')) {
		bool up;

		len = strcspn(path, "/");
		up = len == 2 && memcmp(path, "..", 2) == 0;
		folder = up || path[len] == '/' || (len == 1 && *path == '.');
		while (up && n > 0 && text[--n] != '/')
			continue;
		if (len && !up && !(len == 1 && *path == '.')) {
			if (n + len + 3 > sizeof(room->text))
				return false;
			text[n++] = '/';
			memcpy(text + n, path, len);
			n += len;
		}
		text[n] = '\0';
		through |= root_of(text) < ROOT_COUNT;
	}
	if (folder || n == 0)
		text[n++] = '/';
	text[n] = '\0';
	return through;
}

static const char *join(const char *head, const char *tail, struct path *room)
{
	struct path tail_copy;

	snprintf(tail_copy.text, sizeof(tail_copy.text), "%s", tail);
	if (snprintf(room->text, sizeof(room->text), "%s%s", head,
		     tail_copy.text) >= (int)sizeof(room->text))
		return NULL;
	return room->text;
}

const char *path_turn(const char *path, struct path *room)
{
	struct path tree, whole;
	const char *turned;
	int i;

	/* The cheap test first: this runs on every open of the program. */
	if (!path || path[0] != '/' || !strstr(path, "/infiniband") ||
	    !straighten(path, room))
		return path;
	i = root_of(room->text);
	if (i == ROOT_COUNT)
		return room->text; /* ".." led out of it again */
	if (!tree_path(tree.text, sizeof(tree.text)) ||
	    !join(tree.text, roots[i].tree, &whole))
		return path;
	turned = join(whole.text, room->text + strlen(roots[i].kernel), room);
	return turned ? turned : path;
}
