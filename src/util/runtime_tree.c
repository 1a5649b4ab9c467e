/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See runtime_tree.h.  The shim, which contains this file, defines some of
 * libc's functions itself, so this file makes those system calls directly.
 */
#include "util/runtime_tree.h"

#include "util/mountinfo.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST_LINKS 16
#define ROOM	   1024 /* bytes for a link's target */
#define OTHERS_W   (S_IWGRP | S_IWOTH)
#define FUSE_MAGIC 0x65735546 /* statfs(2) */

/* The state of a walk along a path. */
struct walk {
	struct runtime_tree *tree;
	int fd;		 /* the folder reached, O_PATH; -1: none yet */
	struct stat at;	 /* fstat of fd */
	uid_t system;	 /* the owner of /: root, even if its uid is not 0 */
	bool makes;	 /* missing folders are created */
	bool may_follow; /* links of root and of the caller are followed */
	int links;	 /* the number of links followed so far */
	/* The minor number of the last file system without a block device that
	 * judge_system has accepted. */
	unsigned minor;
	bool has_device; /* `minor` is set */
};

static int open_at(int fd, const char *name, int flags)
{
	long got = syscall(SYS_openat, fd, name, flags | O_CLOEXEC, 0);

	return got < 0 ? -errno : (int)got;
}

static int check_writable(int fd)
{
	return syscall(SYS_faccessat, fd, ".", W_OK) ? -errno : 0;
}

static int refuse_folder(struct walk *w, const char *why, const struct stat *s)
{
	struct runtime_tree *t = w->tree;

	snprintf(t->why, sizeof(t->why), "%s %s (user %u, mode %o)", t->path,
		 why, (unsigned)s->st_uid, (unsigned)s->st_mode & 07777);
	return -EPERM;
}

static bool is_trusted(const struct walk *w, uid_t owner)
{
	return owner == geteuid() || owner == 0 || owner == w->system;
}

/* Checks a folder on the path: no other user may be able to rename or replace
 * an entry of it that is the caller's or root's.  Group 0 counts as root. */
static int judge_folder(struct walk *w, const struct stat *s)
{
	mode_t others = s->st_mode & (s->st_gid ? OTHERS_W : S_IWOTH);

	if (!is_trusted(w, s->st_uid))
		return refuse_folder(w, "lies in another user's folder", s);
	if (others && !(s->st_mode & S_ISVTX))
		return refuse_folder(
			w, "lies in a folder that others can write", s);
	return 0;
}

/* Checks the last folder of the path: no other user may be able to create
 * entries in it. */
static int judge_own(struct walk *w)
{
	if (w->at.st_uid != geteuid())
		return refuse_folder(w, "is another user's", &w->at);
	if (w->at.st_mode & OTHERS_W)
		return refuse_folder(w, "can be written by others", &w->at);
	return check_writable(w->fd);
}

/* Has root or the caller mounted this FUSE file system?  A file system whose
 * options name no user is refused. */
static bool is_own_fuse(const struct mountinfo *m)
{
	return m->has_user && (m->user == 0 || m->user == geteuid());
}

static int refuse_fuse(struct walk *w)
{
	struct runtime_tree *t = w->tree;

	snprintf(t->why, sizeof(t->why),
		 "%s lies on a file system that a process of another user "
		 "serves",
		 t->path);
	return -EPERM;
}

/* Refuses every FUSE file system.  Called if mountinfo has no line for the file
 * system, so that its user is unknown. */
static int judge_magic(struct walk *w, int fd)
{
	struct statfs system;

	return !fstatfs(fd, &system) && system.f_type == FUSE_MAGIC
		       ? refuse_fuse(w)
		       : 0;
}

/*
 * Refuses a FUSE file system of another user.  Any user may mount a FUSE file
 * system that a process of that user serves, and which reports any owner for a
 * file.  Only root can mount other file systems, or a FUSE file system with a
 * block device.
 */
static int judge_system(struct walk *w, int fd)
{
	struct mountinfo m;
	struct statx x;
	int err = 0;

	/* AT_STATX_DONT_SYNC: the call does not wait for a FUSE process. */
	if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0,
		    &x))
		return judge_magic(w, fd);
	if (x.stx_dev_major || (w->has_device && w->minor == x.stx_dev_minor))
		return 0;
	if (!mountinfo_find(x.stx_dev_major, x.stx_dev_minor, &m))
		err = judge_magic(w, fd);
	else if (!strncmp(m.type, "fuse", 4) && !is_own_fuse(&m))
		err = refuse_fuse(w);
	w->has_device = !err;
	w->minor = x.stx_dev_minor;
	return err;
}

static int look_at_fd(struct walk *w, int fd, struct stat *s)
{
	int err = judge_system(w, fd);

	return err ? err : fstat(fd, s) ? -errno : 0;
}

/* Makes fd the folder reached, and checks its file system.  The walk owns fd,
 * even after an error. */
static int arrive_at(struct walk *w, int fd)
{
	if (w->fd >= 0)
		close(w->fd);
	w->fd = fd;
	return look_at_fd(w, fd, &w->at);
}

static int go_along(struct walk *w, const char *path);

/* Walks along the target of the symbolic link fd, and closes fd. */
static int follow_link(struct walk *w, int fd, const struct stat *s)
{
	char to[ROOM];
	long n = syscall(SYS_readlinkat, fd, "", to, sizeof(to));

	close(fd);
	if (!w->may_follow || !is_trusted(w, s->st_uid))
		return refuse_folder(w, "lies behind another user's link", s);
	if (n <= 0 || n == sizeof(to) || ++w->links > MOST_LINKS)
		return -ELOOP;
	to[n] = '\0';
	return go_along(w, to);
}

/* Walks into the folder of this name, and creates a missing one if w->makes. */
static int step_into(struct walk *w, const char *name)
{
	struct stat s;
	int fd, err = judge_folder(w, &w->at);

	if (err)
		return err;
	fd = open_at(w->fd, name, O_PATH | O_NOFOLLOW);
	if (fd == -ENOENT && w->makes) {
		if (mkdirat(w->fd, name, 0700) && errno != EEXIST)
			return -errno;
		fd = open_at(w->fd, name, O_PATH | O_NOFOLLOW);
	} else if (fd == -ENOENT) {
		err = check_writable(w->fd);
		return err ? err : -ENOENT;
	}
	if (fd < 0)
		return fd;
	err = look_at_fd(w, fd, &s);
	if (!err && S_ISLNK(s.st_mode))
		return follow_link(w, fd, &s);
	if (!err && S_ISDIR(s.st_mode))
		return arrive_at(w, fd);
	close(fd);
	return err ? err : -ENOTDIR;
}

/* Walks along the path: from / if the path begins with '/', else from the
 * folder reached. */
static int go_along(struct walk *w, const char *path)
{
	char name[NAME_MAX + 1];
	int err = 0;

	if (*path == '/') {
		int fd = open_at(AT_FDCWD, "/", O_PATH);

		err = fd < 0 ? fd : arrive_at(w, fd);
		w->system = w->at.st_uid;
	}
	while (!err) {
		size_t len;

		path += strspn(path, "/");
		len = strcspn(path, "/");
		if (!len)
			return 0;
		if (len > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(name, path, len);
		name[len] = '\0';
		path += len;
		err = step_into(w, name);
	}
	return err;
}

/* Walks along a path that the environment or the system names.  A relative path
 * begins at the working directory, to which the walk goes from / first. */
static int go_to(struct walk *w, const char *path)
{
	char cwd[ROOM] = "/";
	int err = 0;

	w->links = 0;
	w->may_follow = true;
	if (*path != '/' && syscall(SYS_getcwd, cwd, sizeof(cwd)) < 0)
		return -errno;
	if (*path != '/')
		err = go_along(w, cwd);
	if (!err)
		err = go_along(w, path);
	w->may_follow = false;
	return err;
}

/* Appends a name to the path. */
static void append_name(struct runtime_tree *t, const char *name)
{
	size_t len = strlen(t->path);

	snprintf(t->path + len, sizeof(t->path) - len, "/%s", name);
}

/* Walks into the folder of this name if it is the user's own.  On an error the
 * walk goes back to the folder before. */
static int enter_named(struct walk *w, const char *name)
{
	int before = fcntl(w->fd, F_DUPFD_CLOEXEC, 0), err, back;

	if (before < 0)
		return -errno;
	err = step_into(w, name);
	if (!err)
		err = judge_own(w);
	if (!err) {
		close(before);
		return 0;
	}
	back = arrive_at(w, before);
	return back ? back : err;
}

/* Walks into the user's runtime folder in the folder reached.  Its name is the
 * first of a few that no other user has taken. */
static int enter_own(struct walk *w)
{
	struct runtime_tree *t = w->tree;
	size_t len = strlen(t->path);
	char name[32], before[sizeof(t->why)];
	int err = judge_folder(w, &w->at);

	if (err)
		return err;
	memcpy(before, t->why, sizeof(before));
	for (int i = 0; i < RUNTIME_TREE_NAMES; i++) {
		snprintf(name, sizeof(name), i ? "adverb-%u-%d" : "adverb-%u",
			 (unsigned)geteuid(), i);
		t->path[len] = '\0';
		append_name(t, name);
		err = enter_named(w, name);
		/* The name is taken by a link, a file, or another user's
		 * folder. */
		if (err == -EPERM || err == -ENOTDIR)
			continue;
		memcpy(t->why, before, sizeof(before));
		return err;
	}
	snprintf(t->why, sizeof(t->why),
		 "other users have taken all names from %.*s/adverb-%u to %s",
		 (int)len, t->path, (unsigned)geteuid(), t->path);
	return -EPERM;
}

/* Walks along a path as go_to does, but creates no missing folder.  Returns
 * -ENOTDIR if a folder is missing. */
static int go_to_present(struct walk *w, const char *path)
{
	bool makes = w->makes;
	int err;

	w->makes = false;
	err = go_to(w, path);
	w->makes = makes;
	return err == -ENOENT ? -ENOTDIR : err;
}

/* Walks to base, and into the user's runtime folder in base. */
static int enter_base(struct walk *w, const char *base)
{
	int err;

	snprintf(w->tree->path, sizeof(w->tree->path), "%s", base);
	err = go_to_present(w, base);
	return err ? err : enter_own(w);
}

/* Is the folder of XDG_RUNTIME_DIR the caller's?  su and sudo may leave the
 * variable set to another user's folder. */
static bool is_session(struct walk *w, const char *folder)
{
	bool is_own;

	if (!folder || !*folder)
		return false;
	is_own = !go_to_present(w, folder) && !judge_own(w);
	w->tree->why[0] = '\0';
	return is_own;
}

/* Walks to the user's runtime folder in the first base where it exists or can
 * be created.  /run is tried for root only, since only root can write there. */
static int enter_default(struct walk *w)
{
	const char *session = secure_getenv("XDG_RUNTIME_DIR");
	const char *const base[] = {
		is_session(w, session) ? session : "",
		geteuid() ? "" : "/run",
		"/tmp",
		"/dev/shm",
	};
	int worst = -EACCES;

	for (size_t i = 0; i < sizeof(base) / sizeof(*base); i++) {
		int err = *base[i] ? enter_base(w, base[i]) : worst;

		if (!err || err == -ENOENT)
			return err;
		if (err == -EPERM)
			worst = err;
	}
	return worst;
}

static int enter_runtime(struct walk *w)
{
	const char *chosen = secure_getenv("ADVERB_RUNTIME");
	struct runtime_tree *t = w->tree;

	if (!chosen || !*chosen)
		return enter_default(w);
	snprintf(t->path, sizeof(t->path), "%s", chosen);
	return go_to(w, chosen);
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

/* Walks to the tree's folder. */
static int enter_folder(struct walk *w)
{
	const char *chosen = secure_getenv("ADVERB_SYSFS");
	struct runtime_tree *t = w->tree;
	char name[48];
	int err;

	if (chosen && *chosen) {
		snprintf(t->path, sizeof(t->path), "%s", chosen);
		err = go_to(w, chosen);
		return err ? err : judge_own(w);
	}
	err = enter_runtime(w);
	name_folder(name, sizeof(name));
	append_name(t, name);
	if (!err)
		err = step_into(w, name);
	return err ? err : judge_own(w);
}

/* Walks to the tree's folder; or returns -errno and sets t->why. */
static int look_at_folder(struct walk *w)
{
	struct runtime_tree *t = w->tree;
	int err = -EPERM;

	t->path[0] = t->why[0] = '\0';
	if (getauxval(AT_SECURE))
		snprintf(t->why, sizeof(t->why),
			 "a program that has more rights than its caller has "
			 "no tree");
	else
		err = enter_folder(w);
	if (!err && strlen(t->path) == sizeof(t->path) - 1)
		err = -ENAMETOOLONG;
	if (!err)
		t->why[0] = '\0';
	else if (err == -ENOENT) /* replaces the reason of an earlier base */
		snprintf(t->why, sizeof(t->why), "%s is not there", t->path);
	else if (!t->why[0])
		snprintf(t->why, sizeof(t->why), "%s cannot be written: %s",
			 t->path, strerror(-err));
	return err;
}

int runtime_tree_find(struct runtime_tree *t)
{
	struct walk w = {.tree = t, .fd = -1};
	int err = look_at_folder(&w);

	if (w.fd >= 0)
		close(w.fd);
	return err;
}

int runtime_tree_make(struct runtime_tree *t)
{
	struct walk w = {.tree = t, .fd = -1, .makes = true};
	int err = look_at_folder(&w);

	if (!err)
		err = open_at(w.fd, ".", O_RDONLY | O_DIRECTORY);
	if (w.fd >= 0)
		close(w.fd);
	return err;
}
