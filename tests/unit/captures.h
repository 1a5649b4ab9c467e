/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions that the tests of host/capture share: a capture in a file of its
 * own for each test, and the frames in it. */
#ifndef TESTS_UNIT_CAPTURES_H
#define TESTS_UNIT_CAPTURES_H

#include "test.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "host/capture.h"

#define BLOCK_PACKET 6u
#define PREAMBLE     60 /* bytes of a section and an interface block */

static char path[] = "/tmp/adverb-capture-XXXXXX";
static uint8_t seen[1 << 17];
static size_t seen_bytes; /* how many bytes `seen` has */

static const struct inaddr four_a = {{[10] = 0xff, 0xff, 10, 0, 0, 1}, 49152};
static const struct inaddr four_b = {{[10] = 0xff, 0xff, 10, 0, 0, 2}, 4791};
static const struct inaddr six_a = {{0xfd, [15] = 1}, 49152};
static const struct inaddr six_b = {{0xfd, [15] = 2}, 4791};

static inline int set_up(void **state)
{
	int fd;

	strcpy(strrchr(path, '-'), "-XXXXXX");
	fd = mkstemp(path);
	if (fd < 0)
		return -1;
	close(fd);
	setenv("ADVERB_PCAP", path, 1);
	capture_open(false);
	return 0;
}

static inline int tear_down(void **state)
{
	capture_close();
	return unlink(path);
}

static inline uint32_t seen_u32(size_t at)
{
	uint32_t v;

	assert_true(at + 4 <= seen_bytes);
	memcpy(&v, seen + at, 4);
	return v;
}

static inline void read_capture(void)
{
	int fd = open(path, O_RDONLY);
	ssize_t n = read(fd, seen, sizeof(seen));

	close(fd);
	assert_true(n >= 0);
	seen_bytes = (size_t)n;
}

/* Returns the frame of the packet block at `at`.  Stores the length of the
 * frame in *bytes, and the offset of the next block in *next. */
static inline const uint8_t *frame_at(size_t at, uint32_t *bytes, size_t *next)
{
	assert_int_equal(seen_u32(at), BLOCK_PACKET);
	*next = at + seen_u32(at + 4);
	assert_int_equal(seen_u32(*next - 4), seen_u32(at + 4));
	assert_int_equal(seen_u32(at + 8), 0); /* interface */
	*bytes = seen_u32(at + 20);
	assert_int_equal(seen_u32(at + 24), *bytes);
	assert_int_equal(*next - at, 32 + (*bytes + 3) / 4 * 4);
	return seen + at + 28;
}

/* Stores the sentences that `call` writes to stderr; returns their length. */
static inline size_t said_here(void call(void), char *text, size_t size)
{
	int before = dup(STDERR_FILENO), fd = memfd_create("stderr", 0);
	ssize_t n;

	assert_int_equal(dup2(fd, STDERR_FILENO), STDERR_FILENO);
	call();
	dup2(before, STDERR_FILENO);
	close(before);
	n = pread(fd, text, size - 1, 0);
	close(fd);
	return n > 0 ? (size_t)n : 0;
}

/* A test whose capture is in the file `path`, which is then removed. */
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
