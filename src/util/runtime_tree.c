/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See runtime_tree.h.  The shim, which contains this file, defines openat
 * itself, so this file makes that system call directly.  The shim's fstatat
 * does not replace the path that this file gives it.
 */
#include "util/runtime_tree.h"

#include "util/remedy.h"
#include "util/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OTHERS_W (S_IWGRP | S_IWOTH)

/* A walk to a tree.  walk.subject is tree->path, and walk.why is tree->why. */
struct tree_walk {
	struct walk walk;
	struct runtime_tree *tree;
	/* Bytes that tree->path must still have room for: the name of the
	 * tree's folder and a slash, until that name is in the path. */
	size_t reserve;
};

static struct tree_walk walk_to_tree(struct runtime_tree *t, bool makes)
{
	return (struct tree_walk){.walk = {.subject = t->path,
					   .why = t->why,
					   .room = sizeof(t->why),
					   .fd = -1,
					   .makes = makes},
				  .tree = t};
}

/* Checks the last folder of the path: no other user may be able to create
 * entries in it. */
static int judge_own(struct tree_walk *w)
{
	const struct stat *s = &w->walk.at;

	if (s->st_uid != geteuid())
		return walk_refuse(&w->walk, "is another user's", s);
	if (s->st_mode & OTHERS_W)
		return walk_refuse(&w->walk, "can be written by others", s);
	return walk_check_writable(&w->walk);
}

/* Sets the path behind its first `len` bytes.  Called before a folder of the
 * path is created.  Returns 0 or -ENAMETOOLONG. */
static int set_path(struct tree_walk *w, size_t len, const char *slash,
		    const char *name)
{
	struct runtime_tree *t = w->tree;
	size_t all = len + strlen(slash) + strlen(name);

	snprintf(t->path + len, sizeof(t->path) - len, "%s%s", slash, name);
	return all + w->reserve < sizeof(t->path) ? 0 : -ENAMETOOLONG;
}

/* Walks into the folder of this name if it is the user's own.  On an error the
 * walk goes back to the folder before. */
static int enter_named(struct tree_walk *w, const char *name)
{
	int before = fcntl(w->walk.fd, F_DUPFD_CLOEXEC, 0), err, back;

	if (before < 0)
		return -errno;
	err = walk_into(&w->walk, name);
	if (!err)
		err = judge_own(w);
	if (!err) {
		close(before);
		return 0;
	}
	back = walk_arrive(&w->walk, before);
	return back ? back : err;
}

/* Walks into the user's runtime folder in the folder that the walk has reached.
 * The runtime folder has the first of a few names that is not taken by a link,
 * a file, or a folder that is another user's or that others can write to. */
static int enter_own(struct tree_walk *w)
{
	struct runtime_tree *t = w->tree;
	size_t len = strlen(t->path);
	char name[32];
	int err = walk_judge(&w->walk);

	if (err)
		return err;
	for (int i = 0; i < RUNTIME_TREE_NAMES; i++) {
		snprintf(name, sizeof(name), i ? "adverb-%u-%d" : "adverb-%u",
			 (unsigned)geteuid(), i);
		t->why[0] = '\0';
		err = set_path(w, len, "/", name);
		if (err)
			return err;
		err = enter_named(w, name);
		/* The name is taken by a link, a file, or a folder that is
		 * another user's or that others can write to.  The kernel's own
		 * EPERM leaves `why` empty. */
		if (err != -ENOTDIR && (err != -EPERM || !t->why[0]))
			return err;
	}
	snprintf(t->why, sizeof(t->why),
		 "no name from %.*s/adverb-%u to %s is that of a folder of "
		 "this user alone",
		 (int)len, t->path, (unsigned)geteuid(), t->path);
	return -EPERM;
}

/* Walks along a path as walk_along does, but creates no missing folder, and
 * returns -ENOTDIR instead of -ENOENT. */
static int go_to_present(struct tree_walk *w, const char *path)
{
	bool makes = w->walk.makes;
	int err;

	w->walk.makes = false;
	err = walk_along(&w->walk, path);
	w->walk.makes = makes;
	return err == -ENOENT ? -ENOTDIR : err;
}

/* Walks to base, and into the user's runtime folder in base. */
static int enter_base(struct tree_walk *w, const char *base)
{
	int err = set_path(w, 0, "", base);

	if (!err)
		err = go_to_present(w, base);
	return err ? err : enter_own(w);
}

/* Does the error say that the process or the machine has reached a limit, and
 * nothing about a folder? */
static bool is_limit(int err)
{
	return remedy_of(-err, NULL) != NULL;
}

/* Walks to base, which XDG_RUNTIME_DIR names, as enter_base does.  Returns
 * -ENOTDIR if the folder is not the caller's: su and sudo may leave the
 * variable set to another user's folder. */
static int enter_session(struct tree_walk *w, const char *base)
{
	int err = set_path(w, 0, "", base);

	if (!err)
		err = go_to_present(w, base);
	if (!err)
		err = judge_own(w);
	if (!err)
		return enter_own(w);
	w->tree->why[0] = '\0';
	return is_limit(err) ? err : -ENOTDIR;
}

/* Returns how much a user learns from why a base cannot be used: least from
 * that it is missing, or not for this user; most from a check that failed. */
static int rank_failure(const struct runtime_tree *t, int err)
{
	if (t->why[0])
		return 3;
	return err == -ENOTDIR ? 0 : err == -EACCES ? 1 : 2;
}

/* Walks to the user's runtime folder in the first base where it exists or can
 * be created.  /run is tried for root only, since only root can write there.
 * If there is none, sets the path, and perhaps `why`, of the base from which
 * the user learns most.  A limit ends the search: in the next base there may be
 * another tree. */
static int enter_default(struct tree_walk *w)
{
	const char *session = secure_getenv("XDG_RUNTIME_DIR");
	const char *const base[] = {session ? session : "",
				    geteuid() ? "" : "/run", "/tmp",
				    "/dev/shm"};
	struct runtime_tree *t = w->tree, told;
	int worst = 0;

	for (size_t i = 0; i < sizeof(base) / sizeof(*base); i++) {
		int err;

		if (!*base[i])
			continue;
		t->why[0] = '\0';
		err = i ? enter_base(w, base[i]) : enter_session(w, base[i]);
		if (!err || err == -ENOENT || is_limit(err))
			return err;
		if (!worst ||
		    rank_failure(t, err) >= rank_failure(&told, worst)) {
			told = *t;
			worst = err;
		}
	}
	*t = told;
	return worst;
}

static int enter_runtime(struct tree_walk *w)
{
	const char *chosen = secure_getenv("ADVERB_RUNTIME");
	int err;

	if (!chosen || !*chosen)
		return enter_default(w);
	err = set_path(w, 0, "", chosen);
	return err ? err : walk_along(&w->walk, chosen);
}

static uint64_t add_text(uint64_t hash, const char *text)
{
	do
		hash = (hash ^ (uint8_t)*text) * 0x100000001b3u; /* FNV-1a */
	while (*text++);
	return hash;
}

/* Writes the name of the tree's folder. */
static void name_folder(char *name, size_t size)
{
	const char *fabric = secure_getenv("ADVERB_FABRIC");
	const char *host = secure_getenv("ADVERB_FABRIC_HOST");
	struct stat ns = {0};
	uint64_t hash;

	fstatat(AT_FDCWD, "/proc/self/ns/net", &ns, 0);
	if (!fabric || !*fabric) {
		snprintf(name, size, "sysfs-%ju", (uintmax_t)ns.st_ino);
		return;
	}
	hash = add_text(0xcbf29ce484222325u, fabric);
	hash = add_text(hash, host ? host : "");
	snprintf(name, size, "sysfs-%ju-%016jx", (uintmax_t)ns.st_ino,
		 (uintmax_t)hash);
}

/* Returns the folder that the user has chosen for the tree, or NULL. */
static const char *chosen_folder(void)
{
	const char *chosen = secure_getenv("ADVERB_SYSFS");

	return chosen && *chosen ? chosen : NULL;
}

const char *runtime_tree_remedy(int err)
{
	if (getauxval(AT_SECURE)) /* such a program reads no variable */
		return "let a user who has these rights start the program";
	if (err == ENOSPC || err == EDQUOT)
		return "make room there";
	return remedy_of(err, chosen_folder()
				      ? "set ADVERB_SYSFS to an empty or a new "
					"folder that you alone can write"
				      : "set ADVERB_RUNTIME to a folder that "
					"you alone can write");
}

/* Walks to the tree's folder. */
static int enter_folder(struct tree_walk *w)
{
	const char *chosen = chosen_folder();
	char name[48];
	int err, named;

	if (chosen) {
		err = set_path(w, 0, "", chosen);
		if (!err)
			err = walk_along(&w->walk, chosen);
		return err ? err : judge_own(w);
	}
	name_folder(name, sizeof(name));
	w->reserve = strlen(name) + 1;
	err = enter_runtime(w);
	w->reserve = 0;
	named = set_path(w, strlen(w->tree->path), "/", name);
	if (!err)
		err = named;
	if (!err)
		err = walk_into(&w->walk, name);
	return err ? err : judge_own(w);
}

/* Walks to the runtime folder. */
static int enter_home(struct tree_walk *w)
{
	int err = enter_runtime(w);

	return err ? err : judge_own(w);
}

/* Sets t->why for an error of the kernel, unless a check has set it. */
static void note_error(struct runtime_tree *t, int err)
{
	if (t->why[0])
		return;
	if (err == -ENOENT)
		snprintf(t->why, sizeof(t->why), "%s is not there", t->path);
	else
		snprintf(t->why, sizeof(t->why), "%s cannot be written: %s",
			 t->path, strerror(-err));
}

/* Walks to a folder by `enter`.  Returns 0, with t->why empty; or sets t->why
 * and returns -errno. */
static int look_at_folder(struct tree_walk *w,
			  int (*enter)(struct tree_walk *w))
{
	struct runtime_tree *t = w->tree;
	int err = -EPERM;

	t->path[0] = t->why[0] = '\0';
	if (getauxval(AT_SECURE))
		snprintf(t->why, sizeof(t->why),
			 "a program that has more rights than its caller has "
			 "no tree");
	else
		err = enter(w);
	if (err)
		note_error(t, err);
	else
		t->why[0] = '\0';
	return err;
}

static int find_folder(struct runtime_tree *t, bool makes,
		       int (*enter)(struct tree_walk *w))
{
	struct tree_walk w = walk_to_tree(t, makes);
	int err = look_at_folder(&w, enter);

	walk_end(&w.walk);
	return err;
}

int runtime_tree_find(struct runtime_tree *t)
{
	return find_folder(t, false, enter_folder);
}

int runtime_tree_folder(struct runtime_tree *t, bool makes)
{
	return find_folder(t, makes, enter_home);
}

int runtime_tree_make(struct runtime_tree *t)
{
	struct tree_walk w = walk_to_tree(t, true);
	int err = look_at_folder(&w, enter_folder);

	if (!err) {
		long fd = syscall(SYS_openat, w.walk.fd, ".",
				  O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);

		err = fd < 0 ? -errno : (int)fd;
		if (fd < 0)
			note_error(t, err);
	}
	walk_end(&w.walk);
	return err;
}
