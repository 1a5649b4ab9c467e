/* SPDX-License-Identifier: BSD-2-Clause */
/* Counter files; see tally.h. */
#include "broker/tally.h"

#include "broker/page.h"
#include "engine/credit.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#define STEP_MS	  1000
#define LOOKED_MS 60000 /* for how long a looker may come back */
#define NEW_FILE  ".counter~"

void tally_init(struct tally *t)
{
	memset(t, 0, sizeof(*t));
	t->port_fd = t->inotify_fd = -1;
}

void tally_close(struct tally *t)
{
	if (t->port_fd >= 0)
		close(t->port_fd);
	if (t->inotify_fd >= 0)
		close(t->inotify_fd);
	t->port_fd = t->inotify_fd = -1;
}

static uint64_t read_file(int folder, const char *name)
{
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char text[24] = "";

	if (fd < 0)
		return 0;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	close(fd);
	return strtoull(text, NULL, 10);
}

/* Whole or as before: its reader may be in the middle. */
static void write_file(int folder, const char *name, uint64_t value)
{
	char text[24];
	int length = snprintf(text, sizeof(text), "%" PRIu64 "\n", value);
	int fd = openat(folder, NEW_FILE,
			O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
			0644);

	if (fd < 0)
		return;
	if (write(fd, text, (size_t)length) == length)
		renameat(folder, NEW_FILE, folder, name);
	close(fd);
}

static void watch(struct tally *t, const char *folder)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", t->port_fd, folder);
	inotify_add_watch(t->inotify_fd, path, IN_OPEN | IN_ONLYDIR);
}

static bool is_same(int a, int b)
{
	struct stat x, y;

	return a >= 0 && !fstat(a, &x) && !fstat(b, &y) &&
	       x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

void tally_tree(struct tally *t, int port_fd,
		const uint64_t live[COUNTERS_WORDS])
{
	uint64_t sum[COUNTERS_WORDS];

	if (is_same(t->port_fd, port_fd)) {
		close(port_fd);
		return;
	}
	tally_close(t);
	t->port_fd = port_fd;
	for (uint32_t k = 0; k < COUNTERS_WORDS; k++)
		sum[k] = t->ended[k] + live[k];
	for (uint32_t i = 0; i < COUNTERS_FILES; i++) {
		uint64_t said = read_file(port_fd, counters_files[i].name);
		uint64_t ours = counters_value(i, sum);

		t->shown[i] = said;
		t->base[i] = said;
		if (t->is_heir)
			t->base[i] = said > ours ? said - ours : 0;
	}
	t->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	watch(t, "counters");
	watch(t, "hw_counters");
	t->is_due = true;
}

void tally_add(uint64_t words[COUNTERS_WORDS], int page_fd)
{
	uint64_t got[COUNTERS_WORDS];

	if (page_fd < 0 ||
	    pread(page_fd, got, sizeof(got),
		  offsetof(struct credit_page, counters)) != sizeof(got))
		return;
	for (uint32_t k = 0; k < COUNTERS_WORDS; k++)
		words[k] += got[k];
}

void tally_end(struct tally *t, int page_fd)
{
	tally_add(t->ended, page_fd);
	t->is_due = true;
}

int tally_fd(const struct tally *t)
{
	return t->inotify_fd;
}

void tally_looked(struct tally *t, uint64_t now_ms)
{
	char events[4096];

	while (read(t->inotify_fd, events, sizeof(events)) > 0)
		;
	t->looked_ms = now_ms;
	t->is_due = true;
}

int tally_due(const struct tally *t, uint64_t now_ms)
{
	uint64_t since = now_ms - t->written_ms;
	bool is_watched = t->looked_ms && now_ms - t->looked_ms < LOOKED_MS;

	if (t->port_fd < 0 || !(t->is_due || is_watched))
		return -1;
	return since >= STEP_MS ? 0 : (int)(STEP_MS - since);
}

void tally_write(struct tally *t, const uint64_t live[COUNTERS_WORDS],
		 uint64_t now_ms)
{
	uint64_t sum[COUNTERS_WORDS];

	for (uint32_t k = 0; k < COUNTERS_WORDS; k++)
		sum[k] = t->ended[k] + live[k];
	for (uint32_t i = 0; i < COUNTERS_FILES; i++) {
		uint64_t value = t->base[i] + counters_value(i, sum);

		/* a process that was killed has not shown its last ones */
		if (value > t->shown[i])
			write_file(t->port_fd, counters_files[i].name, value);
		if (value > t->shown[i])
			t->shown[i] = value;
	}
	t->written_ms = now_ms;
	t->is_due = false;
}
