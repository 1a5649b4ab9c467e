/* SPDX-License-Identifier: BSD-2-Clause */
#include "image.h"

#include "util/crc.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FOLDER_MODE 0755
#define BLOCK	    65536

/* Returns the text between the root and a path in the root, when both are
 * printed. */
static const char *slash_of(const struct image *im)
{
	return im->root[strlen(im->root) - 1] == '/' ? "" : "/";
}

/* Prints that adverb cannot @what (a verb) the file @path, and the reason in
 * errno.  Returns -1. */
static int complain_of(const struct image *im, const char *path,
		       const char *what)
{
	fprintf(stderr, "adverb: cannot %s %s%s%s: %s.\n", what, im->root,
		slash_of(im), path, strerror(errno));
	return -1;
}

static int open_in(const struct image *im, const char *path, int flags)
{
	struct open_how how = {.flags = (uint64_t)flags | O_CLOEXEC,
			       .resolve = RESOLVE_IN_ROOT};

	return (int)syscall(SYS_openat2, im->fd, path, &how, sizeof(how));
}

/* Opens the file @path for reading.  Returns the stream, or NULL and errno. */
static FILE *open_stream(const struct image *im, const char *path)
{
	/* O_NONBLOCK: to open a FIFO otherwise waits for a writer */
	int fd = open_in(im, path, O_RDONLY | O_NONBLOCK), err;
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");

	if (fd >= 0 && !f) {
		err = errno;
		close(fd);
		errno = err;
	}
	return f;
}

/* Opens the folder that contains @path; if @make, makes missing folders.
 * Points *leaf to the file's name in @path.  Returns a descriptor, or -1 and
 * errno. */
static int open_parent(const struct image *im, const char *path, bool make,
		       const char **leaf)
{
	const char *slash = strrchr(path, '/');
	const char *name;
	char folder[IMAGE_PATH];
	int fd, above;

	*leaf = slash ? slash + 1 : path;
	if (!slash)
		return dup(im->fd);
	snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
	fd = open_in(im, folder, O_PATH | O_DIRECTORY);
	if (fd >= 0 || errno != ENOENT || !make)
		return fd;
	above = open_parent(im, folder, true, &name);
	if (above < 0)
		return -1;
	if (mkdirat(above, name, FOLDER_MODE) && errno != EEXIST) {
		close(above);
		return -1;
	}
	close(above);
	return open_in(im, folder, O_PATH | O_DIRECTORY);
}

bool image_has(const struct image *im, const char *path)
{
	int fd = open_in(im, path, O_PATH | O_NOFOLLOW);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Computes size and checksum of the file @fd from its offset on.  Returns 0, or
 * -1 and errno. */
static int measure_rest(int fd, struct image_version *v)
{
	static char block[BLOCK];
	ssize_t n;

	*v = (struct image_version){.crc = CRC_INIT};
	while ((n = read(fd, block, sizeof(block))) > 0) {
		v->crc = crc32c_update(v->crc, block, (size_t)n);
		v->bytes += n;
	}
	return n < 0 ? -1 : 0;
}

static bool is_same(const struct image_version *a,
		    const struct image_version *b)
{
	return a->crc == b->crc && a->bytes == b->bytes;
}

static struct image_entry *find_entry(const struct image *im, const char *path)
{
	for (size_t i = 0; i < im->count; i++)
		if (strcmp(im->entries[i].path, path) == 0)
			return (struct image_entry *)&im->entries[i];
	return NULL;
}

/* The text differs from each target's, so that a file with the name of a target
 * in it is not taken for a link. */
static struct image_version version_of_link(const char *target)
{
	char text[IMAGE_PATH + 4];
	int n = snprintf(text, sizeof(text), "-> %s", target);

	return (struct image_version){
		.crc = crc32c_update(CRC_INIT, text, (size_t)n), .bytes = n};
}

static bool read_link(const struct image *im, const char *path,
		      struct image_version *v)
{
	char target[IMAGE_PATH];
	int fd = open_in(im, path, O_PATH | O_NOFOLLOW);
	ssize_t n;

	if (fd < 0)
		return false;
	n = readlinkat(fd, "", target, sizeof(target) - 1);
	close(fd);
	if (n < 0)
		return false;
	target[n] = '\0';
	*v = version_of_link(target);
	return true;
}

static bool read_version(const struct image *im, const char *path,
			 struct image_version *v)
{
	int fd = open_in(im, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
	int err;

	if (fd < 0)
		return errno == ELOOP && read_link(im, path, v);
	err = measure_rest(fd, v);
	close(fd);
	return !err;
}

/* Has the file of an entry the contents of one of the entry's two versions? */
static bool is_unchanged(const struct image *im, const struct image_entry *e)
{
	struct image_version v;

	return read_version(im, e->path, &v) &&
	       (is_same(&v, &e->now) || is_same(&v, &e->before));
}

bool image_is_ours(const struct image *im, const char *path)
{
	const struct image_entry *e = find_entry(im, path);

	return e && is_unchanged(im, e);
}

bool image_is_taken(const struct image *im, const char *path)
{
	const struct image_entry *e = find_entry(im, path);

	if (!image_has(im, path) || image_is_ours(im, path))
		return false;
	fprintf(stderr,
		"adverb: /%s in %s %s; the file stays.  Delete it if it is not "
		"needed.\n",
		path, im->root,
		e ? "was changed since adverb put it there"
		  : "is somebody else's: adverb did not put it there");
	return true;
}

bool image_contains(const struct image *im, const char *path, const char *word)
{
	FILE *f = open_stream(im, path);
	bool found = false;
	char *line = NULL;
	size_t room = 0;

	while (f && !found && getline(&line, &room, f) >= 0)
		found = line[0] != '#' && strstr(line, word);
	free(line);
	if (f)
		fclose(f);
	return found;
}

/* Prints that the list cannot be used, and what to do.  Returns 1. */
static int refuse_list(const struct image *im, const char *why)
{
	fprintf(stderr,
		"adverb: the list %s%s%s %s; nothing was changed.  Restore "
		"the list, or remove it and the files that it names.\n",
		im->root, slash_of(im), im->list, why);
	return 1;
}

static void list_entry(struct image *im, const struct image_version *v,
		       const char path[IMAGE_PATH])
{
	struct image_entry *e = find_entry(im, path);

	if (e) {
		e->now = *v;
		return;
	}
	e = &im->entries[im->count++];
	*e = (struct image_entry){.before = *v, .now = *v};
	memcpy(e->path, path, IMAGE_PATH);
}

/* Reads lines of a checksum, a number of bytes and a path.  A damaged list is
 * refused: otherwise nothing would remove the files that it has lost. */
static int read_lines(struct image *im, FILE *f)
{
	struct image_version v;
	char path[IMAGE_PATH], why[96];
	int n;

	while ((n = fscanf(f, "%x %lld %255s", &v.crc, &v.bytes, path)) == 3) {
		if (im->count == IMAGE_MAX && !find_entry(im, path)) {
			snprintf(why, sizeof(why),
				 "names more than %d files, and no version of "
				 "adverb installs so many",
				 IMAGE_MAX);
			return refuse_list(im, why);
		}
		list_entry(im, &v, path);
	}
	if (ferror(f))
		return complain_of(im, im->list, "read");
	if (n == EOF)
		return 0;
	snprintf(why, sizeof(why), "is damaged after %zu files", im->count);
	return refuse_list(im, why);
}

static int read_list(struct image *im)
{
	FILE *f = open_stream(im, im->list);
	int err;

	if (!f)
		return errno == ENOENT ? 0 : complain_of(im, im->list, "read");
	err = read_lines(im, f);
	fclose(f);
	return err;
}

/* Calls flock(2), and again after each signal.  Returns 0 or an errno value. */
static int lock_folder(int fd, int operation)
{
	int err;

	do
		err = flock(fd, operation) ? errno : 0;
	while (err == EINTR);
	return err;
}

/* Takes the root's lock.  If another process has the lock, says so and waits.
 * Any process that may read the root can have the lock, not only another run.
 * Some network file systems have no locks, or none for folders: then the user
 * has to see to it that no other run goes on. */
static void lock_root(const struct image *im)
{
	int err = lock_folder(im->fd, LOCK_EX | LOCK_NB);

	if (err == EWOULDBLOCK) {
		fprintf(stderr,
			"adverb: another process has locked the root folder "
			"%s, and adverb waits until that process ends; lslocks "
			"shows the process.\n",
			im->root);
		err = lock_folder(im->fd, LOCK_EX);
	}
	if (err)
		fprintf(stderr,
			"adverb: cannot lock the root folder %s: %s.  Run no "
			"other `adverb install` or `adverb uninstall` there "
			"meanwhile.\n",
			im->root, strerror(err));
}

int image_open(struct image *im, const char *root, const char *list, bool dry)
{
	*im = (struct image){.root = root, .list = list, .dry = dry};
	im->fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (im->fd < 0) {
		fprintf(stderr,
			"adverb: cannot open the root folder %s: %s; name a "
			"folder that this user can read.\n",
			root, strerror(errno));
		return -1;
	}
	lock_root(im);
	if (read_list(im) == 0)
		return 0;
	close(im->fd);
	return -1;
}

void image_close(struct image *im)
{
	close(im->fd);
}

static int write_all(int fd, const char *block, size_t bytes)
{
	while (bytes) {
		ssize_t n = write(fd, block, bytes);

		if (n < 0)
			return -1;
		block += n;
		bytes -= (size_t)n;
	}
	return 0;
}

/* Copies @text or, if @text is NULL, the rest of the file @from to the file
 * @to, and sets e->now.  Returns 0, or -1 and errno. */
static int fill_file(int to, int from, const char *text, struct image_entry *e)
{
	static char block[BLOCK];
	size_t have = text ? strlen(text) : 0;
	ssize_t n;

	e->now = (struct image_version){.crc = CRC_INIT};
	for (;;) {
		n = text ? (ssize_t)have : read(from, block, sizeof(block));
		if (n <= 0)
			return n < 0 ? -1 : 0;
		if (write_all(to, text ? text : block, (size_t)n))
			return -1;
		e->now.crc = crc32c_update(e->now.crc, text ? text : block,
					   (size_t)n);
		e->now.bytes += n;
		have = 0;
	}
}

/* Closes a file that was written.  Returns 0, or -1 and errno; errno is
 * unchanged if 0 is returned. */
static int close_written(int fd)
{
	int saved = errno;

	if (close(fd))
		return -1;
	errno = saved;
	return 0;
}

/* Names the temporary file that is renamed to @leaf once it is written. */
static void name_temporary(const char *leaf, char temp[IMAGE_PATH])
{
	snprintf(temp, IMAGE_PATH, ".%.200s.adverb-new", leaf);
}

/* Writes a file beside e->path and renames it: at any time e->path is the old
 * file or the whole new file. */
static int put_file(const struct image *im, struct image_entry *e, int from,
		    const char *text, int mode)
{
	char temp[IMAGE_PATH];
	const char *leaf;
	int folder = open_parent(im, e->path, true, &leaf);
	bool is_whole;
	int fd;

	if (folder < 0)
		return complain_of(im, e->path, "make the folder of");
	name_temporary(leaf, temp);
	unlinkat(folder, temp, 0);
	fd = openat(folder, temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
		    0600);
	is_whole = fd >= 0 && !fill_file(fd, from, text, e) &&
		   !fchmod(fd, (mode_t)mode);
	/* a file system of another host may tell only now that it is full */
	if (fd >= 0 && close_written(fd))
		is_whole = false;
	if (!is_whole || renameat(folder, temp, folder, leaf)) {
		complain_of(im, e->path, "write");
		unlinkat(folder, temp, 0);
		e = NULL;
	}
	close(folder);
	return e ? 0 : -1;
}

/* Makes a link beside e->path and renames it, as put_file does. */
static int put_link(const struct image *im, const struct image_entry *e,
		    const char *target)
{
	char temp[IMAGE_PATH];
	const char *leaf;
	int folder = open_parent(im, e->path, true, &leaf), err;

	if (folder < 0)
		return complain_of(im, e->path, "make the folder of");
	name_temporary(leaf, temp);
	unlinkat(folder, temp, 0);
	err = symlinkat(target, folder, temp) ||
	      renameat(folder, temp, folder, leaf);
	if (err) {
		complain_of(im, e->path, "write");
		unlinkat(folder, temp, 0);
	}
	close(folder);
	return err ? -1 : 0;
}

static struct image_entry *add_entry(struct image *im, const char *path)
{
	struct image_entry *e = find_entry(im, path);

	if (!e && im->count < IMAGE_MAX) {
		e = &im->entries[im->count++];
		*e = (struct image_entry){0};
		snprintf(e->path, sizeof(e->path), "%s", path);
	}
	if (e)
		e->kept = true;
	else
		fprintf(stderr,
			"adverb: cannot install %s%s%s: the list of adverb's "
			"files already names %d, the most that it can.  Run "
			"`adverb uninstall` first.\n",
			im->root, slash_of(im), path, IMAGE_MAX);
	return e;
}

static int measure_file(const char *from, struct image_version *v)
{
	int fd = open(from, O_RDONLY | O_CLOEXEC);
	int err = fd < 0 ? -1 : measure_rest(fd, v);

	if (err)
		fprintf(stderr, "adverb: cannot read %s: %s.\n", from,
			strerror(errno));
	if (fd >= 0)
		close(fd);
	return err;
}

int image_expect(struct image *im, const char *from, const char *text,
		 const char *path)
{
	struct image_entry *e = add_entry(im, path);

	if (!e || (from && measure_file(from, &e->now)))
		return -1;
	if (text) {
		e->now.bytes = (long long)strlen(text);
		e->now.crc = crc32c_update(CRC_INIT, text, strlen(text));
	}
	if (!read_version(im, path, &e->before))
		e->before = e->now;
	return 0;
}

int image_expect_link(struct image *im, const char *target, const char *path)
{
	struct image_entry *e = add_entry(im, path);

	if (!e)
		return -1;
	e->now = version_of_link(target);
	if (!read_version(im, path, &e->before))
		e->before = e->now;
	return 0;
}

int image_put_link(struct image *im, const char *target, const char *path)
{
	struct image_entry *e = add_entry(im, path);

	if (!e)
		return -1;
	if (im->dry) {
		printf("would link %s%s%s to %s\n", im->root, slash_of(im),
		       path, target);
		return 0;
	}
	return put_link(im, e, target);
}

int image_put(struct image *im, const char *from, const char *path, int mode)
{
	struct image_entry *e = add_entry(im, path);
	int fd, err;

	if (!e)
		return -1;
	if (im->dry) {
		printf("would copy %s to %s%s%s\n", from, im->root,
		       slash_of(im), path);
		return 0;
	}
	fd = open(from, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		fprintf(stderr, "adverb: cannot read %s: %s.\n", from,
			strerror(errno));
		return -1;
	}
	err = put_file(im, e, fd, NULL, mode);
	close(fd);
	return err;
}

int image_put_text(struct image *im, const char *text, const char *path)
{
	struct image_entry *e = add_entry(im, path);

	if (!e)
		return -1;
	if (im->dry) {
		printf("would write %s%s%s\n", im->root, slash_of(im), path);
		return 0;
	}
	return put_file(im, e, -1, text, 0644);
}

/* Removes the folder that contains @path, if it is empty and its path has
 * "/adverb" in it; then the folder above, and so on. */
static void remove_folders(const struct image *im, const char *path)
{
	char folder[IMAGE_PATH];
	const char *leaf;
	char *slash;
	int above, err;

	snprintf(folder, sizeof(folder), "%s", path);
	slash = strrchr(folder, '/');
	if (!slash || !memmem(folder, (size_t)(slash - folder), "/adverb", 7))
		return;
	*slash = '\0';
	above = open_parent(im, folder, false, &leaf);
	if (above < 0)
		return;
	err = unlinkat(above, leaf, AT_REMOVEDIR);
	close(above);
	if (!err)
		remove_folders(im, folder);
}

static int remove_file(const struct image *im, const char *path)
{
	char temp[IMAGE_PATH];
	const char *leaf;
	struct stat st;
	int folder, err;

	folder = open_parent(im, path, false, &leaf);
	if (folder < 0)
		return errno == ENOENT ? 0 : complain_of(im, path, "remove");
	if (im->dry) {
		if (!fstatat(folder, leaf, &st, AT_SYMLINK_NOFOLLOW))
			printf("would remove %s%s%s\n", im->root, slash_of(im),
			       path);
		close(folder);
		return 0;
	}
	name_temporary(leaf, temp);
	unlinkat(folder, temp, 0); /* left by a run that was killed */
	err = unlinkat(folder, leaf, 0);
	close(folder);
	if (err && errno != ENOENT)
		return complain_of(im, path, "remove");
	remove_folders(im, path);
	return 0;
}

static void write_line(FILE *f, const struct image_version *v,
		       const struct image_entry *e)
{
	fprintf(f, "%08x %lld %s\n", v->crc, v->bytes, e->path);
}

/* Writes the list of the files that this run puts.  If @all, the list also
 * names the files that only an earlier run put, and has both versions of each
 * file. */
static int write_list(const struct image *im, bool all)
{
	struct image_entry list = {0};
	char *text = NULL;
	size_t size;
	FILE *f;
	int err;

	if (im->dry)
		return 0;
	f = open_memstream(&text, &size);
	if (!f)
		return complain_of(im, im->list, "write");
	for (size_t i = 0; i < im->count; i++) {
		const struct image_entry *e = &im->entries[i];

		if (all && !is_same(&e->before, &e->now))
			write_line(f, &e->before, e);
		if (all || e->kept)
			write_line(f, &e->now, e);
	}
	/* A list that lacks lines is not written: the next uninstall would not
	 * remove the files of these lines. */
	err = ferror(f);
	if (fclose(f) || err) {
		free(text);
		errno = ENOMEM; /* the only reason */
		return complain_of(im, im->list, "write");
	}
	snprintf(list.path, sizeof(list.path), "%s", im->list);
	err = put_file(im, &list, -1, text, 0644);
	free(text);
	return err;
}

int image_announce(const struct image *im)
{
	return write_list(im, true);
}

static bool is_in_etc(const struct image_entry *e)
{
	return strncmp(e->path, "etc/", 4) == 0;
}

/* Removes the files of /etc, or the other files, that this run did not put or,
 * if @all, also those that it put; the last file first. */
static int remove_some(const struct image *im, bool all, bool in_etc)
{
	for (size_t i = im->count; i > 0; i--) {
		const struct image_entry *e = &im->entries[i - 1];

		if ((all || !e->kept) && is_in_etc(e) == in_etc &&
		    !image_is_taken(im, e->path) && remove_file(im, e->path))
			return -1;
	}
	return 0;
}

/* Files of /etc name the other ones, as ld.so.preload names the shim, and must
 * not outlive these, in whatever order several versions of adverb have listed
 * them. */
static int remove_files(const struct image *im, bool all)
{
	int err = remove_some(im, all, true);

	return err ? err : remove_some(im, all, false);
}

int image_settle(struct image *im)
{
	return remove_files(im, false) ? -1 : write_list(im, false);
}

int image_clear(struct image *im)
{
	return remove_files(im, true) ? -1 : remove_file(im, im->list);
}
