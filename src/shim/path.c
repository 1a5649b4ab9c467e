/* SPDX-License-Identifier: BSD-2-Clause */
#include "shim/path.h"
#include "util/runtime_tree.h"

#include "log/stderr.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

/* The path that stands for the tree if there is none.  No file can have this
 * path.  The usual path of the tree would not be safe: another user could
 * create it before the program opens it. */
#define NOWHERE "/proc/self/adverb"

/* Each prefix of the kernel's RDMA paths, and the text that follows <tree> in
 * place of this prefix. */
static const struct {
	const char *kernel, *tree;
} roots[] = {
	{"/sys/class/infiniband", "/class/infiniband"},
	{"/dev/infiniband", "/dev/infiniband"},
};

enum { ROOT_COUNT = sizeof(roots) / sizeof(roots[0]) };

/*
 * Is the path equal to `root`, or does it begin with `root` and a slash or an
 * underscore?  So infiniband_verbs and infiniband_mad count, but not another
 * name that begins with the same letters.
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
 * Copies the path to @room without doubled slashes, "." and "..", so that the
 * copy can be compared with the kernel's RDMA paths.  The tree has no symbolic
 * link to a folder, so ".." removes the name before it.  Returns true if a
 * prefix of the path is one of the kernel's RDMA paths; false also if the copy
 * would be too long.
 */
static bool normalize_path(const char *path, struct path *room)
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

/* Puts @tree and @name in place of the first @len bytes of @room's text.
 * Returns false if the text does not fit. */
static bool replace_head(struct path *room, size_t len, const char *tree,
			 const char *name)
{
	size_t first = strlen(tree), second = strlen(name);
	size_t rest = strlen(room->text + len) + 1;

	if (first + second + rest > sizeof(room->text))
		return false;
	memmove(room->text + first + second, room->text + len, rest);
	memcpy(room->text, tree, first);
	memcpy(room->text + first, name, second);
	return true;
}

/* Does the reason, "PATH verb ...", name this tree? */
static bool names_tree(const char *why, const char *path)
{
	const char *at = strstr(why, path);

	return at && at[strlen(path)] == ' ';
}

/*
 * Writes a message to the user, only once, if the program looks for the tree,
 * and adverb run could not write this tree.  ADVERB_NO_TREE then says why, and
 * names the tree.  @err: the result of runtime_tree_find.
 */
static void say_no_tree(const struct runtime_tree *tree, int err)
{
	static bool is_written;
	const char *why = is_written ? NULL : secure_getenv("ADVERB_NO_TREE");
	char line[2 * sizeof(tree->why) + 256];
	bool knows;
	int n;

	if (!why || stderr_is_silent())
		return;
	knows = names_tree(why, tree->path);
	if (!err && !knows)
		return;
	is_written = true;
	n = snprintf(line, sizeof(line),
		     "adverb: %.64s looks for devices in /sys or /dev and "
		     "finds %s: %s%s%s\n",
		     program_invocation_short_name,
		     err ? "none" : "none, old or incomplete ones",
		     knows ? why : tree->why, knows ? "" : "; ",
		     knows ? "" : runtime_tree_remedy(-err));
	if (n < (int)sizeof(line))
		stderr_write(line, (size_t)n);
}

/* Returns the path to use for the absolute @path, or NULL for @path itself. */
static const char *turn_path(const char *path, struct path *room)
{
	int i, err, saved = errno;
	struct runtime_tree tree;
	bool turned;

	if (!normalize_path(path, room))
		return NULL;
	i = root_of(room->text);
	if (i == ROOT_COUNT)
		return room->text; /* ".." leads out of the RDMA path again */
	err = runtime_tree_find(&tree);
	say_no_tree(&tree, err);
	turned = replace_head(room, strlen(roots[i].kernel),
			      err ? NOWHERE : tree.path, roots[i].tree);
	errno = saved;
	return turned ? room->text : NULL;
}

/* Writes @path, which is relative to the folder @dir, as an absolute path.
 * False: the folder has no path, or the result is too long. */
static bool make_absolute(int dir, const char *path, struct path *whole)
{
	char link[32] = "/proc/self/cwd";
	int saved = errno;
	size_t room = sizeof(whole->text);
	ssize_t n;

	if (dir != AT_FDCWD)
		snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
	n = readlink(link, whole->text, room - 1);
	errno = saved;
	if (n <= 0 || whole->text[0] != '/')
		return false;
	return snprintf(whole->text + n, room - (size_t)n, "/%s", path) <
	       (int)(room - (size_t)n);
}

const char *path_turn(int dir, const char *path, struct path *room)
{
	struct path whole;
	const char *turned;

	if (!path_may_turn(path) || getauxval(AT_SECURE))
		return path;
	if (path[0] == '/')
		turned = turn_path(path, room);
	else
		turned = make_absolute(dir, path, &whole)
				 ? turn_path(whole.text, room)
				 : NULL;
	return turned ? turned : path;
}
