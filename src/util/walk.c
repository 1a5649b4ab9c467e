/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See walk.h.  libadverb-shim.so, which contains this file, defines some of
 * libc's functions itself, so this file makes those system calls directly.
 */
#include "util/walk.h"

#include "util/mountinfo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST_LINKS 16
#define ROOM	   1024 /* bytes for a link's target */
#define OTHERS_W   (S_IWGRP | S_IWOTH)
#define FUSE_MAGIC 0x65735546 /* statfs(2) */
#define PROC_MAGIC 0x9fa0

static int open_at(int fd, const char *name, int flags)
{
	long got = syscall(SYS_openat, fd, name, flags | O_CLOEXEC, 0);

	return got < 0 ? -errno : (int)got;
}

/* Checks the rights of the effective user, since the kernel checks that user
 * when the folder is written.  If the kernel is older than Linux 5.8, or a
 * seccomp filter refuses faccessat2, checks the rights of the real user. */
int walk_check_writable(const struct walk *w)
{
	if (!syscall(SYS_faccessat2, w->fd, ".", W_OK, AT_EACCESS))
		return 0;
	if (errno != ENOSYS && errno != EPERM)
		return -errno;
	return syscall(SYS_faccessat, w->fd, ".", W_OK) ? -errno : 0;
}

int walk_refuse(struct walk *w, const char *why, const struct stat *s)
{
	snprintf(w->why, w->room, "%s %s (user %u, mode %o)", w->subject, why,
		 (unsigned)s->st_uid, (unsigned)s->st_mode & 07777);
	return -EPERM;
}

static bool is_trusted(const struct walk *w, uid_t owner)
{
	return owner == geteuid() || owner == 0 || owner == w->system;
}

/* Are the links of this user followed? */
static bool may_link(const struct walk *w, uid_t owner)
{
	return w->may_follow && is_trusted(w, owner) &&
	       (!w->doubts_system || owner == geteuid() || owner == 0);
}

int walk_judge(struct walk *w)
{
	const struct stat *s = &w->at;
	bool is_ours = s->st_gid == 0 || s->st_gid == w->group;
	mode_t others = s->st_mode & (is_ours ? S_IWOTH : OTHERS_W);

	if (!is_trusted(w, s->st_uid))
		return walk_refuse(w, "lies in another user's folder", s);
	if (others && !(s->st_mode & S_ISVTX))
		return walk_refuse(w, "lies in a folder that others can write",
				   s);
	return 0;
}

/* Has root or the caller mounted this FUSE file system?  A file system whose
 * options name no user is refused. */
static bool is_own_fuse(const struct mountinfo *m)
{
	return m->has_user && (m->user == 0 || m->user == geteuid());
}

static int refuse_fuse(struct walk *w)
{
	snprintf(w->why, w->room,
		 "%s lies on a file system that a process of another user "
		 "serves",
		 w->subject);
	return -EPERM;
}

/* Refuses every FUSE file system.  Called if statx fails, or mountinfo has no
 * line for the file system, so that its user is unknown.  A server of FUSE may
 * let fstatfs fail, so a file system of unknown type is an error. */
static int judge_magic(struct walk *w, int fd)
{
	struct statfs system;

	if (fstatfs(fd, &system))
		return -errno;
	return system.f_type == FUSE_MAGIC ? refuse_fuse(w) : 0;
}

/*
 * Refuses a FUSE file system of another user.  Any user may mount a FUSE file
 * system and serve it by a process of its own, which can report any owner for a
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

int walk_arrive(struct walk *w, int fd)
{
	if (w->fd >= 0)
		close(w->fd);
	w->fd = fd;
	return look_at_fd(w, fd, &w->at);
}

/* Ends a step at the object fd, which *s describes: a folder, or, if is_file,
 * the file that walk_file looks for.  Fails for other files, and for a link to
 * which a link in /proc has led.  Takes ownership of fd. */
static int end_step(struct walk *w, int fd, const struct stat *s, bool is_file)
{
	if (S_ISDIR(s->st_mode))
		return walk_arrive(w, fd);
	if (!is_file || S_ISLNK(s->st_mode)) {
		close(fd);
		return S_ISLNK(s->st_mode) ? -ELOOP : -ENOTDIR;
	}
	w->file = fd;
	return 0;
}

/* Is the link fd in /proc?  The kernel knows the target of such a link, for
 * example of one in /proc/self/fd, although readlink(2) may give no path to the
 * target. */
static bool is_magic(int fd)
{
	struct statfs system;

	return !fstatfs(fd, &system) && system.f_type == PROC_MAGIC;
}

/* Has the kernel follow a link in /proc to the file that walk_file looks for.
 */
static int follow_magic(struct walk *w, const char *name)
{
	int fd = open_at(w->fd, name, O_PATH), err;
	struct stat s;

	if (fd < 0)
		return fd;
	err = look_at_fd(w, fd, &s);
	if (!err)
		return end_step(w, fd, &s, true);
	close(fd);
	return err;
}

static int go_along(struct walk *w, const char *path, bool is_file);

/* Walks along the target of the symbolic link fd of this name, and closes fd.
 */
static int follow_link(struct walk *w, int fd, const struct stat *s,
		       const char *name, bool is_file)
{
	bool asks_kernel = is_file && is_magic(fd);
	char to[ROOM];
	long n = syscall(SYS_readlinkat, fd, "", to, sizeof(to));

	close(fd);
	if (!may_link(w, s->st_uid))
		return walk_refuse(w,
				   s->st_uid == geteuid()
					   ? "lies behind a link"
					   : "lies behind another user's link",
				   s);
	if (n <= 0 || n == sizeof(to) || ++w->links > MOST_LINKS)
		return -ELOOP;
	if (asks_kernel)
		return follow_magic(w, name);
	w->name[0] = '\0'; /* go_along sets the name of the target */
	to[n] = '\0';
	return go_along(w, to, is_file);
}

/* Opens an entry of the folder reached.  Creates a missing folder if w->makes.
 * Does not create a missing file: the caller of walk_file may do that. */
static int open_entry(struct walk *w, const char *name, bool is_file)
{
	int fd = open_at(w->fd, name, O_PATH | O_NOFOLLOW), err;

	if (is_file)
		snprintf(w->name, sizeof(w->name), "%s", name);
	if (fd != -ENOENT || is_file)
		return fd;
	if (!w->makes) {
		err = w->for_file ? 0 : walk_check_writable(w);
		return err ? err : -ENOENT;
	}
	if (mkdirat(w->fd, name, 0700) && errno != EEXIST)
		return -errno;
	return open_at(w->fd, name, O_PATH | O_NOFOLLOW);
}

/* Walks to the entry of this name: a folder, or, if is_file, any file. */
static int step_to(struct walk *w, const char *name, bool is_file)
{
	struct stat s;
	int fd, err = walk_judge(w);

	if (err)
		return err;
	fd = open_entry(w, name, is_file);
	if (fd < 0)
		return fd;
	err = look_at_fd(w, fd, &s);
	if (err) {
		close(fd);
		return err;
	}
	return S_ISLNK(s.st_mode) ? follow_link(w, fd, &s, name, is_file)
				  : end_step(w, fd, &s, is_file);
}

int walk_into(struct walk *w, const char *name)
{
	return step_to(w, name, false);
}

/* Walks along the path: from / if the path begins with '/', else from the
 * folder reached.  If is_file, the last name of the path may be any file. */
static int go_along(struct walk *w, const char *path, bool is_file)
{
	char name[NAME_MAX + 1];
	int err = 0;

	if (*path == '/') {
		int fd = open_at(AT_FDCWD, "/", O_PATH);

		err = fd < 0 ? fd : walk_arrive(w, fd);
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
		err = step_to(w, name, is_file && !*path);
	}
	return err;
}

/* Walks along a path of a caller.  If is_file, the path leads to any file. */
static int go_to(struct walk *w, const char *path, bool is_file)
{
	char cwd[ROOM] = "/";
	int err = 0;

	w->links = 0;
	if (*path != '/' && syscall(SYS_getcwd, cwd, sizeof(cwd)) < 0)
		return -errno;
	w->may_follow = true;
	if (*path != '/')
		err = go_along(w, cwd, false);
	if (!err)
		err = go_along(w, path, is_file);
	w->may_follow = false;
	return err;
}

int walk_along(struct walk *w, const char *path)
{
	return go_to(w, path, false);
}

int walk_file(struct walk *w, const char *path)
{
	int err;

	w->name[0] = '\0';
	w->file = -1;
	w->for_file = true;
	err = go_to(w, path, true);
	w->for_file = false;
	if (!err && w->file < 0)
		err = -EISDIR;
	return err ? err : w->file;
}

void walk_end(struct walk *w)
{
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
}
