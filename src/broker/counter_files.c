/* SPDX-License-Identifier: BSD-2-Clause */
/* Counter files; see counter_files.h. */
#include "broker/counter_files.h"

#include "broker/shared_page.h"
#include "engine/credit.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#define STEP_MS 1000 /* the least time between two writes of the files */
/* how long the files are written after a reader has opened one of them */
#define LOOKED_MS 60000
#define NEW_FILE  ".counter~" /* a file that is not renamed yet */

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void counter_files_init(struct counter_files *t)
{
	memset(t, 0, sizeof(*t));
	t->tree_fd = t->inotify_fd = -1;
}

void counter_files_close(struct counter_files *t)
{
	for (uint32_t i = 0; i < t->count; i++)
		close_fd(&t->row[i].port_fd);
	close_fd(&t->tree_fd);
	close_fd(&t->inotify_fd);
}

/* Returns the row of `link`, and makes the row if there is none; NULL: there
 * are too many rows, and nothing is counted for `link`. */
static struct counter_files_row *row_of(struct counter_files *t, uint32_t link)
{
	for (uint32_t i = 0; i < t->count; i++)
		if (t->row[i].link == link)
			return &t->row[i];
	if (t->count == COUNTER_FILES_ROWS)
		return NULL;
	t->row[t->count] =
		(struct counter_files_row){.link = link, .port_fd = -1};
	return &t->row[t->count++];
}

static void add_page(struct counter_files *t, int page_fd, bool has_ended)
{
	struct credit_tally got[HCA_MAX_DEVICES];

	if (!shared_page_copy(page_fd, offsetof(struct credit_page, tallies),
			      sizeof(got), got))
		return;
	for (uint32_t i = 0; i < HCA_MAX_DEVICES && got[i].link; i++) {
		struct counter_files_row *r = row_of(t, (uint32_t)got[i].link);
		uint64_t *to = !r ? NULL : has_ended ? r->ended : r->live;

		for (uint32_t k = 0; to && k < COUNTERS_WORDS; k++)
			to[k] += got[i].words[k];
	}
}

void counter_files_begin(struct counter_files *t)
{
	for (uint32_t i = 0; i < t->count; i++)
		memset(t->row[i].live, 0, sizeof(t->row[i].live));
}

void counter_files_live(struct counter_files *t, int page_fd)
{
	add_page(t, page_fd, false);
}

void counter_files_end(struct counter_files *t, int page_fd)
{
	add_page(t, page_fd, true);
	t->is_due = true;
}

/* Computes for each file what this broker has counted, which is to be added to
 * the row's base[]. */
static void count_row(const struct counter_files_row *r,
		      uint64_t value[COUNTERS_FILES])
{
	uint64_t sum[COUNTERS_WORDS];

	for (uint32_t k = 0; k < COUNTERS_WORDS; k++)
		sum[k] = r->ended[k] + r->live[k];
	for (uint32_t i = 0; i < COUNTERS_FILES; i++)
		value[i] = counters_value(i, sum);
}

/* Returns the number in a file; 0: there is none.  Without O_NONBLOCK the open
 * of a FIFO that has the file's name would wait for a writer. */
static uint64_t read_file(int folder, const char *name)
{
	int fd = openat(folder, name,
			O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	char text[24] = "";

	if (fd < 0)
		return 0;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	close(fd);
	return strtoull(text, NULL, 10);
}

/* Replaces a file as a whole, since somebody may be reading it.  False: the
 * file is as before. */
static bool write_file(int folder, const char *name, uint64_t value)
{
	char text[24];
	int length = snprintf(text, sizeof(text), "%" PRIu64 "\n", value);
	bool done;
	int fd;

	unlinkat(folder, NEW_FILE, 0); /* left by a broker that was killed */
	fd = openat(folder, NEW_FILE,
		    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0)
		return false;
	done = write(fd, text, (size_t)length) == length &&
	       !renameat(folder, NEW_FILE, folder, name);
	close(fd);
	return done;
}

static bool is_same_folder(int a, int b)
{
	struct stat x, y;

	return a >= 0 && !fstat(a, &x) && !fstat(b, &y) &&
	       x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Takes port_fd as the folder of the row's files.  The row may have had another
 * folder before: the path has the number of the device, and each process
 * numbers the devices that it has chosen in its own way. */
static void attach_device(struct counter_files *t, struct counter_files_row *r,
			  int port_fd)
{
	uint64_t ours[COUNTERS_FILES];

	close_fd(&r->port_fd);
	r->port_fd = port_fd;
	count_row(r, ours);
	for (uint32_t i = 0; i < COUNTERS_FILES; i++) {
		uint64_t said = read_file(port_fd, counters_files[i].name);

		r->shown[i] = said;
		if (r->is_based)
			continue;
		r->base[i] = said;
		if (t->is_successor)
			r->base[i] = said > ours[i] ? said - ours[i] : 0;
	}
	r->is_moved = r->is_based;
	r->is_based = true;
}

/* Opens the folder `name` below `at`, to read the names in it.  NULL: there is
 * no such folder, or no memory or descriptor is left. */
static DIR *open_list(int at, const char *name)
{
	int fd = openat(at, name,
			O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

/* Returns the `link` of a device: the index of the interface that the folder
 * device/net names, with COUNTERS_IWARP set for an iWARP device; 0: there is no
 * interface. */
static uint32_t link_of(int device_fd)
{
	enum { RNIC = 4 };
	DIR *dir = open_list(device_fd, "device/net");
	struct dirent *e;
	char path[280];
	uint32_t link = 0;

	while (dir && !link && (e = readdir(dir))) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/ifindex", e->d_name);
		link = (uint32_t)read_file(dirfd(dir), path);
	}
	if (dir)
		closedir(dir);
	if (link && read_file(device_fd, "node_type") == RNIC)
		link |= COUNTERS_IWARP;
	return link;
}

/* Looks at a device of the tree.  True: the folder of its files is a new one.
 */
static bool look_at_device(struct counter_files *t, const char *device)
{
	const int how = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;
	int fd = openat(t->tree_fd, device, how);
	int port_fd = fd < 0 ? -1 : openat(fd, "ports/1", how);
	uint32_t link = port_fd < 0 ? 0 : link_of(fd);
	struct counter_files_row *r = link ? row_of(t, link) : NULL;
	bool is_new = r && !is_same_folder(r->port_fd, port_fd);

	if (r)
		r->is_seen = true;
	if (is_new)
		attach_device(t, r, port_fd);
	else if (port_fd >= 0)
		close(port_fd);
	if (fd >= 0)
		close(fd);
	return is_new;
}

static void watch_files(struct counter_files *t)
{
	static const char *const folders[] = {"counters", "hw_counters"};
	char path[64];

	close_fd(&t->inotify_fd);
	t->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	for (uint32_t i = 0; i < 2 * t->count; i++) {
		int fd = t->row[i / 2].port_fd;

		snprintf(path, sizeof(path), "/proc/thread-self/fd/%d/%s", fd,
			 folders[i % 2]);
		if (fd >= 0)
			inotify_add_watch(t->inotify_fd, path,
					  IN_OPEN | IN_ONLYDIR);
	}
}

void counter_files_tree(struct counter_files *t, int tree_fd)
{
	struct dirent *e;
	bool is_new = false;
	DIR *dir;

	close_fd(&t->tree_fd);
	t->tree_fd = tree_fd;
	for (uint32_t i = 0; i < t->count; i++)
		t->row[i].is_seen = false;
	/* Opens the folder once more, since other processes share the read
	 * position of tree_fd. */
	dir = open_list(tree_fd, ".");
	while (dir && (e = readdir(dir)))
		if (e->d_name[0] != '.')
			is_new |= look_at_device(t, e->d_name);
	if (dir)
		closedir(dir);
	for (uint32_t i = 0; i < t->count; i++)
		if (!t->row[i].is_seen)
			close_fd(&t->row[i].port_fd);
	if (!is_new)
		return;
	watch_files(t);
	t->is_due = true;
}

int counter_files_fd(const struct counter_files *t)
{
	return t->inotify_fd;
}

void counter_files_looked(struct counter_files *t, uint64_t now_ms)
{
	char events[4096];

	while (read(t->inotify_fd, events, sizeof(events)) > 0)
		;
	t->looked_ms = now_ms;
	t->is_due = true;
}

int counter_files_due(const struct counter_files *t, uint64_t now_ms)
{
	uint64_t since = now_ms - t->written_ms;
	bool is_watched = t->looked_ms && now_ms - t->looked_ms < LOOKED_MS;

	if (t->tree_fd < 0 || !(t->is_due || is_watched))
		return -1;
	return since >= STEP_MS ? 0 : (int)(STEP_MS - since);
}

static void write_row(struct counter_files_row *r)
{
	uint64_t ours[COUNTERS_FILES];
	bool is_done = true;

	count_row(r, ours);
	for (uint32_t i = 0; i < COUNTERS_FILES; i++) {
		uint64_t value = r->base[i] + ours[i];

		/* A value never decreases: if the sum is smaller than the value
		 * in the file, the file stays.  If is_moved is set, the files
		 * may have the values of another device, and are replaced. */
		if (value <= r->shown[i] && !r->is_moved)
			continue;
		if (value == r->shown[i] ||
		    write_file(r->port_fd, counters_files[i].name, value))
			r->shown[i] = value;
		else
			is_done = false; /* the next call tries again */
	}
	if (is_done)
		r->is_moved = false;
}

void counter_files_write(struct counter_files *t, uint64_t now_ms)
{
	for (uint32_t i = 0; i < t->count; i++)
		if (t->row[i].port_fd >= 0)
			write_row(&t->row[i]);
	t->written_ms = now_ms;
	t->is_due = false;
}
