/* SPDX-License-Identifier: BSD-2-Clause */
/* broker/counter_files: a FIFO in the tree does not stop the broker, a lack of
 * memory costs the broker no descriptor, and the files have the counts of their
 * device. */
#include "test.h"

#include "broker/counter_files.h"
#include "broker/shared_page.h"
#include "engine/credit.h"
#include "util/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static bool has_no_memory; /* fdopendir fails */

DIR *__real_fdopendir(int fd);
DIR *__wrap_fdopendir(int fd);

DIR *__wrap_fdopendir(int fd)
{
	if (!has_no_memory)
		return __real_fdopendir(fd);
	errno = ENOMEM;
	return NULL;
}

/* A tree with one device.  fd: a descriptor of the tree's folder. */
struct tree {
	char path[32];
	int fd;
};

static void make_tree(struct tree *t)
{
	int device, net;

	strcpy(t->path, "/tmp/adverb-test-XXXXXX");
	assert_non_null(mkdtemp(t->path));
	t->fd = open(t->path, O_RDONLY | O_DIRECTORY);
	assert_true(t->fd >= 0);
	close(folder_open(t->fd, "adverb0/ports/1/counters", true));
	close(folder_open(t->fd, "adverb0/ports/1/hw_counters", true));
	net = folder_open(t->fd, "adverb0/device/net/lo", true);
	assert_int_equal(folder_put(net, "ifindex", "1\n"), 0);
	close(net);
	device = folder_open(t->fd, "adverb0", false);
	assert_int_equal(folder_put(device, "node_type", "1: CA\n"), 0);
	close(device);
}

static void remove_tree(struct tree *t)
{
	folder_empty(t->fd);
	rmdir(t->path);
}

static int count_files(void)
{
	int count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* Returns a page in which each counter of the device `link` is `count`. */
static int page_of(uint64_t link, uint64_t count)
{
	int fd = shared_page_new();
	struct credit_page *page = shared_page_map(fd, PROT_READ | PROT_WRITE);

	assert_non_null(page);
	page->tallies[0].link = link;
	for (int i = 0; i < CREDIT_WORDS; i++)
		page->tallies[0].words[i] = count;
	shared_page_unmap(page);
	return fd;
}

/* Counts one living process, which has that page, and writes the files. */
static void write_with(struct counter_files *files, int page)
{
	counter_files_begin(files);
	counter_files_live(files, page);
	counter_files_write(files, 1);
}

/* Returns the value of a file of the device. */
static unsigned long packets_sent(const struct tree *t)
{
	char text[24] = "";
	int fd = openat(t->fd, "adverb0/ports/1/counters/port_xmit_packets",
			O_RDONLY);

	assert_true(fd >= 0);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	return strtoul(text, NULL, 10);
}

static void a_file_that_cannot_be_written_is_tried_again(void **state)
{
	struct rlimit limit, none;
	struct counter_files files;
	int page = page_of(1, 7);
	struct tree t;

	make_tree(&t);
	counter_files_init(&files);
	counter_files_tree(&files, dup(t.fd));
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){0, limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	write_with(&files, page);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	write_with(&files, page);
	assert_int_equal(packets_sent(&t), 7);
	counter_files_close(&files);
	close(page);
	remove_tree(&t);
}

/* An open of a FIFO for reading waits for a writer (fifo(7)). */
static void a_fifo_in_place_of_a_file_does_not_stop_the_broker(void **state)
{
	static const char *const names[] = {
		"adverb0/node_type", "adverb0/ports/1/counters/port_xmit_data"};
	struct counter_files files;
	struct tree t;

	make_tree(&t);
	for (size_t i = 0; i < TEST_COUNT(names); i++) {
		unlinkat(t.fd, names[i], 0);
		assert_int_equal(mkfifoat(t.fd, names[i], 0600), 0);
	}
	counter_files_init(&files);
	alarm(TEST_WAIT_S); /* ends the test if the broker waits */
	counter_files_tree(&files, dup(t.fd));
	alarm(0);
	assert_int_equal(files.count, 1);
	assert_int_equal(files.row[0].link, 1);
	counter_files_close(&files);
	remove_tree(&t);
}

static void a_tree_that_cannot_be_listed_keeps_no_descriptor(void **state)
{
	struct counter_files files;
	struct tree t;
	int before;

	make_tree(&t);
	before = count_files();
	counter_files_init(&files);
	has_no_memory = true;
	counter_files_tree(&files, dup(t.fd));
	has_no_memory = false;
	counter_files_close(&files);
	assert_int_equal(count_files(), before);
	remove_tree(&t);
}

static void files_are_due_a_second_after_the_last_write(void **state)
{
	struct counter_files files;
	struct tree t;

	make_tree(&t);
	counter_files_init(&files);
	files.is_due = true;
	assert_int_equal(counter_files_due(&files, 5000), -1); /* no tree */
	counter_files_tree(&files, dup(t.fd));
	assert_int_equal(counter_files_due(&files, 5000), 0);
	counter_files_write(&files, 5000);
	assert_int_equal(counter_files_due(&files, 5000), -1);
	counter_files_end(&files, -1); /* a process has ended */
	assert_int_equal(counter_files_due(&files, 5001), 999);
	assert_int_equal(counter_files_due(&files, 5999), 1);
	assert_int_equal(counter_files_due(&files, 6000), 0);
	counter_files_close(&files);
	remove_tree(&t);
}

/* Each reader has the files written once a second for a minute. */
static void files_are_due_for_a_minute_after_a_reader(void **state)
{
	struct counter_files files;
	struct tree t;

	make_tree(&t);
	counter_files_init(&files);
	counter_files_tree(&files, dup(t.fd));
	counter_files_looked(&files, 10000);
	counter_files_write(&files, 10000);
	assert_int_equal(counter_files_due(&files, 10001), 999);
	counter_files_write(&files, 69000);
	assert_int_equal(counter_files_due(&files, 69999), 1);
	assert_int_equal(counter_files_due(&files, 70000), -1);
	counter_files_close(&files);
	remove_tree(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_fifo_in_place_of_a_file_does_not_stop_the_broker),
		cmocka_unit_test(
			a_tree_that_cannot_be_listed_keeps_no_descriptor),
		cmocka_unit_test(a_file_that_cannot_be_written_is_tried_again),
		cmocka_unit_test(files_are_due_a_second_after_the_last_write),
		cmocka_unit_test(files_are_due_for_a_minute_after_a_reader),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
