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

/* Programs build paths with doubled slashes; one is as good as two. */
static void squeeze(const char *path, struct path *room)
{
	size_t n = 0;

	for (; *path && n + 1 < sizeof(room->text); path++) {
		if (*path == '/' && n > 0 && room->text[n - 1] == '/')
			continue;
		room->text[n++] = *path;
	}
	room->text[n] = '\0';
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

	/* The cheap test first: this runs on every open of the program. */
	if (!path || path[0] != '/' || !strstr(path, "/infiniband"))
		return path;
	squeeze(path, room);
	for (int i = 0; i < ROOT_COUNT; i++) {
		if (!is_under(room->text, roots[i].kernel))
			continue;
		if (!tree_path(tree.text, sizeof(tree.text)) ||
		    !join(tree.text, roots[i].tree, &whole))
			return path;
		turned = join(whole.text, room->text + strlen(roots[i].kernel),
			      room);
		return turned ? turned : path;
	}
	return path;
}
