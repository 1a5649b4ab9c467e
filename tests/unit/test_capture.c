/* SPDX-License-Identifier: BSD-2-Clause */
/* host/capture: a capture is a file of pcapng blocks, in which each frame has
 * its headers.  A file gets no frame if another user owns the file, if another
 * user could have put the file in the place of the capture, or if the file has
 * other contents than a capture. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hdr/erf.h"
#include "host/capture.h"

#define BLOCK_SECTION 0x0a0d0d0au
#define BLOCK_PACKET  6u
#define PREAMBLE      60 /* bytes of a section and an interface block */
#define ETH	      14

static char path[] = "/tmp/adverb-capture-XXXXXX";
static uint8_t seen[1 << 17];
static size_t seen_bytes; /* how many bytes `seen` has */

static const struct inaddr four_a = {{[10] = 0xff, 0xff, 10, 0, 0, 1}, 49152};
static const struct inaddr four_b = {{[10] = 0xff, 0xff, 10, 0, 0, 2}, 4791};
static const struct inaddr six_a = {{0xfd, [15] = 1}, 49152};
static const struct inaddr six_b = {{0xfd, [15] = 2}, 4791};

static int set_up(void **state)
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

static int tear_down(void **state)
{
	capture_close();
	return unlink(path);
}

static void open_again(void)
{
	capture_open(false);
}

static uint32_t seen_u32(size_t at)
{
	uint32_t v;

	assert_true(at + 4 <= seen_bytes);
	memcpy(&v, seen + at, 4);
	return v;
}

static uint16_t read_be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static void read_capture(void)
{
	int fd = open(path, O_RDONLY);
	ssize_t n = read(fd, seen, sizeof(seen));

	close(fd);
	assert_true(n >= 0);
	seen_bytes = (size_t)n;
}

/* Returns the frame of the packet block at `at`.  Stores the length of the
 * frame in *bytes, and the offset of the next block in *next. */
static const uint8_t *frame_at(size_t at, uint32_t *bytes, size_t *next)
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

/* Adds the bytes at p to s, the sum of what precedes them, and returns the
 * one's complement sum (RFC 1071).  The sum of all bytes is 0xffff if the
 * checksum is right. */
static uint32_t ones_sum(uint32_t s, const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		s += i & 1 ? p[i] : (uint32_t)p[i] << 8;
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return s;
}

static void a_file_begins_with_a_section_and_an_interface(void **state)
{
	read_capture();
	assert_int_equal(seen_bytes, PREAMBLE);
	assert_int_equal(seen_u32(0), BLOCK_SECTION);
	assert_int_equal(seen_u32(4), 28);
	assert_int_equal(seen_u32(8), 0x1a2b3c4d);
	assert_int_equal(seen_u32(24), 28);
	assert_int_equal(seen_u32(28), 1);
	assert_int_equal(seen_u32(32), 32);
	assert_int_equal(seen_u32(36) & 0xffff, 1); /* Ethernet */
	assert_int_equal(seen_u32(44), 0x00010009); /* if_tsresol */
	assert_int_equal(seen_u32(48), 9);	    /* nanoseconds */
	assert_int_equal(seen_u32(56), 32);
}

static void an_ipv4_frame_has_its_headers_and_sums(void **state)
{
	const uint8_t payload[] = "0123456";
	const uint8_t *f, *ip, *udp;
	uint32_t bytes;
	size_t next;

	capture_frame(&four_a, &four_b, payload, 7, 3, 0x2a, 61);
	read_capture();
	f = frame_at(PREAMBLE, &bytes, &next);
	assert_int_equal(next, seen_bytes);
	assert_int_equal(bytes, ETH + 20 + 8 + 7);
	assert_int_equal(read_be16(f + 12), 0x0800);
	ip = f + ETH;
	assert_int_equal(ip[0], 0x45);
	assert_int_equal(ip[1], 0x2a);
	assert_int_equal(read_be16(ip + 2), 35);
	assert_int_equal(read_be16(ip + 4), 3);
	assert_int_equal(read_be16(ip + 6), 0x4000);
	assert_int_equal(ip[8], 61);
	assert_int_equal(ip[9], 17);
	assert_int_equal(ones_sum(0, ip, 20), 0xffff);
	assert_memory_equal(ip + 12, four_a.ip + 12, 4);
	assert_memory_equal(ip + 16, four_b.ip + 12, 4);
	udp = ip + 20;
	assert_int_equal(read_be16(udp), 49152);
	assert_int_equal(read_be16(udp + 2), 4791);
	assert_int_equal(read_be16(udp + 4), 15);
	assert_int_equal(ones_sum(ones_sum(17 + 15, ip + 12, 8), udp, 15),
			 0xffff);
	assert_memory_equal(udp + 8, payload, 7);
	assert_int_equal(f[bytes], 0); /* padding */
}

static void an_ipv6_frame_has_its_headers_and_sum(void **state)
{
	const uint8_t payload[] = "01234567";
	const uint8_t *f, *ip, *udp;
	uint32_t bytes;
	size_t next;

	capture_frame(&six_a, &six_b, payload, 8, 0, 0xb8, 0);
	read_capture();
	f = frame_at(PREAMBLE, &bytes, &next);
	assert_int_equal(bytes, ETH + 40 + 8 + 8);
	assert_int_equal(read_be16(f + 12), 0x86dd);
	ip = f + ETH;
	assert_int_equal(read_be16(ip), 0x6b80); /* version and traffic class */
	assert_int_equal(read_be16(ip + 4), 16);
	assert_int_equal(ip[6], 17);
	assert_int_equal(ip[7], 64); /* the default */
	assert_memory_equal(ip + 8, six_a.ip, 16);
	assert_memory_equal(ip + 24, six_b.ip, 16);
	udp = ip + 40;
	assert_int_equal(read_be16(udp + 4), 16);
	assert_int_equal(ones_sum(ones_sum(17 + 16, ip + 8, 32), udp, 16),
			 0xffff);
	assert_memory_equal(udp + 8, payload, 8);
}

/* The header is that of RFC 9293, 3.1, and the options of a SYN are those of
 * RFC 9293, 3.7.1, and RFC 7323, 2.2. */
static void a_segment_over_ipv4_has_its_headers_and_sums(void **state)
{
	static const uint8_t options[] = {2, 4, 0x12, 0x34, 1, 3, 3, 7};
	const struct capture_segment s = {
		.from = &four_a,
		.to = &four_b,
		.tos = 0x2a,
		.tcp = {.seq = 0xfffffffe,
			.ack = 0x01020304,
			.flags = TCP_SYN | TCP_ACK,
			.window = 0xabcd,
			.segment_max = 0x1234,
			.shift = 7},
		.at_ns = 0x123456789abcdef0,
	};
	const uint8_t *f, *ip, *tcp;
	uint32_t bytes;
	size_t next;

	capture_segment(&s);
	read_capture();
	f = frame_at(PREAMBLE, &bytes, &next);
	assert_int_equal(next, seen_bytes);
	assert_int_equal(seen_u32(PREAMBLE + 12), 0x12345678);
	assert_int_equal(seen_u32(PREAMBLE + 16), 0x9abcdef0);
	assert_int_equal(bytes, ETH + 20 + 28);
	ip = f + ETH;
	assert_int_equal(ip[1], 0x2a);
	assert_int_equal(read_be16(ip + 2), 48);
	assert_int_equal(ip[8], 64);
	assert_int_equal(ip[9], 6);
	assert_int_equal(ones_sum(0, ip, 20), 0xffff);
	tcp = ip + 20;
	assert_int_equal(read_be16(tcp), 49152);
	assert_int_equal(read_be16(tcp + 2), 4791);
	assert_memory_equal(tcp + 4, "\xff\xff\xff\xfe\1\2\3\4\x70\x12", 10);
	assert_int_equal(read_be16(tcp + 14), 0xabcd);
	assert_memory_equal(tcp + 20, options, sizeof(options));
	assert_int_equal(ones_sum(ones_sum(6 + 28, ip + 12, 8), tcp, 28),
			 0xffff);
}

static void a_segment_over_ipv6_may_be_as_long_as_ipv4_allows(void **state)
{
	static uint8_t payload[CAPTURE_SEGMENT_MAX + 1];
	struct capture_segment s = {.from = &six_a,
				    .to = &six_b,
				    .tcp.flags = TCP_ACK,
				    .bytes = payload};
	const uint8_t *f, *ip;
	uint32_t bytes;
	size_t next;

	for (size_t i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)(i * 7 + i / 256);
	s.count = sizeof(payload);
	capture_segment(&s);
	s.count = CAPTURE_SEGMENT_MAX;
	capture_segment(&s);
	read_capture();
	f = frame_at(PREAMBLE, &bytes, &next);
	assert_int_equal(next, seen_bytes);
	assert_int_equal(bytes, ETH + 60 + CAPTURE_SEGMENT_MAX);
	ip = f + ETH;
	assert_int_equal(read_be16(ip + 4), 20 + CAPTURE_SEGMENT_MAX);
	assert_int_equal(ip[6], 6);
	assert_int_equal(ip[52], 0x50);
	assert_int_equal(
		ones_sum(ones_sum(6 + 20 + CAPTURE_SEGMENT_MAX, ip + 8, 32),
			 ip + 40, 20 + CAPTURE_SEGMENT_MAX),
		0xffff);
	assert_memory_equal(ip + 60, payload, CAPTURE_SEGMENT_MAX);
}

static void a_packet_of_sctp_has_the_headers_of_its_carrier(void **state)
{
	static const uint8_t packet[] = "a packet of SCTP";
	struct inaddr from = four_a, to = four_b;
	const uint8_t *f;
	uint32_t bytes;
	size_t next;

	capture_sctp(&from, &to, packet, 16);
	from.port = to.port = 0;
	capture_sctp(&from, &to, packet, 16);
	read_capture();
	f = frame_at(PREAMBLE, &bytes, &next);
	assert_int_equal(bytes, ETH + 20 + 8 + 16);
	assert_int_equal(f[ETH + 9], 17);
	assert_int_equal(read_be16(f + ETH + 22), 4791);
	assert_memory_equal(f + ETH + 28, packet, 16);
	f = frame_at(next, &bytes, &next);
	assert_int_equal(next, seen_bytes);
	assert_int_equal(bytes, ETH + 20 + 16);
	assert_int_equal(f[ETH + 9], 132);
	assert_int_equal(read_be16(f + ETH + 2), 36);
	assert_int_equal(ones_sum(0, f + ETH, 20), 0xffff);
	assert_memory_equal(f + ETH + 20, packet, 16);
}

static void *write_frames(void *arg)
{
	for (int i = 0; i < 200; i++)
		capture_sctp(&four_a, &four_b, arg, 100);
	return NULL;
}

/* The thread of SCTP may write a frame while the holder of the progress lock
 * writes one. */
static void two_threads_write_whole_frames(void **state)
{
	static uint8_t payload[100];
	uint32_t frames = 0, bytes;
	size_t at = PREAMBLE;
	pthread_t other;

	assert_int_equal(pthread_create(&other, NULL, write_frames, payload),
			 0);
	write_frames(payload);
	assert_int_equal(pthread_join(other, NULL), 0);
	read_capture();
	for (; at < seen_bytes; frames++) {
		frame_at(at, &bytes, &at);
		assert_int_equal(bytes, ETH + 28 + 100);
	}
	assert_int_equal(frames, 400);
}

static void a_file_of_packets_by_lid_gets_no_segments(void **state)
{
	const struct capture_segment s = {.from = &six_a, .to = &six_b};

	capture_close();
	assert_int_equal(truncate(path, 0), 0);
	capture_open(true);
	capture_segment(&s);
	capture_sctp(&six_a, &six_b, (const uint8_t *)"0123", 4);
	read_capture();
	assert_int_equal(seen_bytes, PREAMBLE);
}

/* A packet by LID follows a header of ERF, in a file of that link type. */
static void a_packet_by_lid_is_written_whole(void **state)
{
	const uint8_t head[8] = "LRH-LRH", body[] = "BTH and the rest";
	const uint8_t *p;
	uint32_t bytes;
	size_t next;

	capture_close();
	assert_int_equal(truncate(path, 0), 0);
	capture_open(true);
	capture_packet(head, 8, body, 16);
	capture_packet(NULL, 0, body, 16);
	read_capture();
	assert_int_equal(seen_u32(36) & 0xffff, 197);
	p = frame_at(PREAMBLE, &bytes, &next);
	assert_int_equal(bytes, 16 + 8 + 16);
	assert_int_equal(p[8], 21); /* InfiniBand */
	assert_int_equal(read_be16(p + 10), bytes);
	assert_int_equal(read_be16(p + 14), 24);
	assert_memory_equal(p + 16, head, 8);
	assert_memory_equal(p + 24, body, 16);
	p = frame_at(next, &bytes, &next);
	assert_int_equal(bytes, 16 + 16);
	assert_memory_equal(p + 16, body, 16);
	assert_int_equal(next, seen_bytes);
}

static void the_time_of_erf_is_a_binary_fraction(void **state)
{
	static const uint8_t half[8] = {0, 0, 0, 0x80, 0x78, 0x56, 0x34, 0x12};
	uint8_t p[ERF_BYTES];

	erf_write(p, 0x912345678, 500000000, 100);
	assert_memory_equal(p, half, 8);
	erf_write(p, 0, 999999999, 100);
	assert_int_equal(p[3], 0xff);
	assert_int_equal(p[2], 0xff);
}

static void frames_of_every_length_follow_one_another(void **state)
{
	static uint8_t payload[64];
	size_t at = PREAMBLE;

	for (size_t n = 0; n < sizeof(payload); n++)
		capture_frame(&four_a, &four_b, payload, n, 0, 0, 64);
	read_capture();
	for (size_t n = 0; n < sizeof(payload); n++) {
		uint32_t bytes;

		frame_at(at, &bytes, &at);
		assert_int_equal(bytes, ETH + 28 + n);
	}
	assert_int_equal(at, seen_bytes);
}

static void two_captures_in_one_file_both_write_sections(void **state)
{
	uint32_t bytes;
	size_t next;

	capture_frame(&four_a, &four_b, (const uint8_t *)"x", 1, 0, 0, 64);
	capture_close();
	capture_open(false);
	capture_frame(&four_a, &four_b, (const uint8_t *)"y", 1, 0, 0, 64);
	read_capture();
	frame_at(PREAMBLE, &bytes, &next);
	assert_int_equal(seen_u32(next), BLOCK_SECTION);
	frame_at(next + PREAMBLE, &bytes, &next);
	assert_int_equal(next, seen_bytes);
}

static void frames_too_long_or_after_the_close_are_not_captured(void **state)
{
	static uint8_t payload[20000];

	capture_frame(&four_a, &four_b, payload, sizeof(payload), 0, 0, 64);
	capture_close();
	assert_false(capture_is_open());
	capture_frame(&four_a, &four_b, payload, 1, 0, 0, 64);
	read_capture();
	assert_int_equal(seen_bytes, PREAMBLE);
}

static void a_full_disk_ends_the_capture(void **state)
{
	capture_close();
	setenv("ADVERB_PCAP", "/dev/full", 1);
	setenv("ADVERB_EXPLAIN", "0", 1);
	capture_open(false);
	capture_frame(&four_a, &four_b, (const uint8_t *)"x", 1, 0, 0, 64);
	assert_false(capture_is_open());
}

/* Stores the sentences that `call` writes to stderr; returns their length. */
static size_t said_by(void call(void), char *text, size_t size)
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

/* Captures a frame to a file that may grow by 8 bytes only. */
static void capture_when_full(void)
{
	struct rlimit was, few;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	few = (struct rlimit){PREAMBLE + 8, was.rlim_max};
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
	capture_frame(&four_a, &four_b, (const uint8_t *)"x", 1, 0, 0, 64);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
}

static void the_program_is_told_that_a_capture_ends(void **state)
{
	char text[200] = "";

	unsetenv("ADVERB_EXPLAIN");
	assert_true(said_by(capture_when_full, text, sizeof(text)));
	assert_non_null(strstr(text, "the capture ends here"));
	assert_false(capture_is_open());
}

static bool has_fixed_flags; /* the kernel denies F_SETFL */

/* Replaces libc's fcntl for the tested code. */
int fcntl(int fd, int command, ...)
{
	va_list more;
	long arg;

	va_start(more, command);
	arg = va_arg(more, long);
	va_end(more);
	if (has_fixed_flags && command == F_SETFL) {
		errno = EPERM;
		return -1;
	}
	return (int)syscall(SYS_fcntl, fd, command, arg);
}

static void a_file_that_cannot_be_made_blocking_is_refused(void **state)
{
	char text[300] = "";

	unsetenv("ADVERB_EXPLAIN");
	capture_close();
	setenv("ADVERB_PCAP", "/dev/null", 1);
	has_fixed_flags = true;
	assert_true(said_by(open_again, text, sizeof(text)));
	has_fixed_flags = false;
	assert_non_null(strstr(text, strerror(EPERM)));
	assert_false(capture_is_open());
}

/* Checks that `name` is not opened as a capture, and that a regular file of
 * that name keeps its size, `bytes`, when a frame is captured. */
static void expect_refused(const char *name, off_t bytes)
{
	struct stat s;

	setenv("ADVERB_EXPLAIN", "0", 1);
	capture_close();
	setenv("ADVERB_PCAP", name, 1);
	capture_open(false);
	assert_false(capture_is_open());
	capture_frame(&four_a, &four_b, (const uint8_t *)"x", 1, 0, 0, 64);
	/* if fs.protected_symlinks is 1, not even root follows another user's
	 * link in /tmp */
	if (!stat(name, &s) && S_ISREG(s.st_mode))
		assert_int_equal(s.st_size, bytes);
	unsetenv("ADVERB_EXPLAIN");
}

static void a_file_that_is_no_capture_of_ours_gets_no_frames(void **state)
{
	char other[sizeof(path) + 8];
	int fd;

	snprintf(other, sizeof(other), "%s.other", path);
	fd = open(other, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, "a text", 6), 6);
	close(fd);
	expect_refused(other, 6);
	assert_int_equal(unlink(other), 0);
	/* a capture with a second hard link */
	assert_int_equal(link(path, other), 0);
	expect_refused(other, PREAMBLE);
	assert_int_equal(unlink(other), 0);
	expect_refused("/tmp", 0);
	expect_refused("/dev/urandom", 0);
}

static void a_file_of_another_user_gets_no_frames(void **state)
{
	char other[sizeof(path) + 8];

	if (!test_can_be(1))
		SKIP_FOR(ONE_USER);
	snprintf(other, sizeof(other), "%s.other", path);
	assert_int_equal(symlink(path, other), 0);
	assert_int_equal(lchown(other, 1, 1), 0);
	expect_refused(other, PREAMBLE);
	read_capture();
	assert_int_equal(seen_bytes, PREAMBLE);
	assert_int_equal(unlink(other), 0);
	assert_int_equal(chown(path, 1, 1), 0);
	expect_refused(path, PREAMBLE);
}

static char folder[] = "/tmp/adverb-captures-XXXXXX";

/* Returns the path of a name in `folder`.  The path stays until the fourth call
 * after this one. */
static const char *in_folder(const char *name)
{
	static char paths[4][sizeof(folder) + 32];
	static int turn;
	char *to = paths[turn++ % 4];

	snprintf(to, sizeof(paths[0]), "%s/%s", folder, name);
	return to;
}

static void make_folder(void)
{
	strcpy(strrchr(folder, '-'), "-XXXXXX");
	assert_non_null(mkdtemp(folder));
	assert_int_equal(mkdir(in_folder("in"), 0755), 0);
}

/* Captures into the file of this name from now on. */
static void capture_to(const char *name)
{
	capture_close();
	setenv("ADVERB_PCAP", name, 1);
	capture_open(false);
	assert_true(capture_is_open());
}

static void expect_captured(const char *name)
{
	struct stat s;

	capture_to(name);
	capture_close();
	assert_int_equal(stat(name, &s), 0);
	assert_int_equal(s.st_size, PREAMBLE);
	assert_int_equal(unlink(name), 0);
}

static void remove_folder(void)
{
	assert_int_equal(rmdir(in_folder("in")), 0);
	assert_int_equal(rmdir(folder), 0);
}

/* In a folder that others may write and that is not sticky, another user could
 * replace the capture, or the folder with the capture, by a link. */
static void a_folder_that_others_write_gets_no_capture(void **state)
{
	make_folder();
	assert_int_equal(chmod(folder, 0757), 0);
	expect_refused(in_folder("new"), 0);
	expect_refused(in_folder("in/new"), 0);
	assert_int_equal(access(in_folder("in/new"), F_OK), -1);
	assert_int_equal(chmod(folder, 01757), 0);
	expect_captured(in_folder("in/new"));
	expect_captured(in_folder("new"));
	remove_folder();
}

/* With a umask of 002 a user's own group may write to each folder. */
static void a_folder_of_ones_own_group_gets_a_capture(void **state)
{
	if (geteuid() != getegid())
		SKIP_FOR("this user has no group of the same number");
	make_folder();
	assert_int_equal(chmod(folder, 0775), 0);
	expect_captured(in_folder("in/new"));
	remove_folder();
}

static void another_users_folder_or_link_gets_no_capture(void **state)
{
	if (!test_can_be(1))
		SKIP_FOR(ONE_USER);
	make_folder();
	assert_int_equal(symlink("in", in_folder("link")), 0);
	expect_captured(in_folder("link/new"));
	assert_int_equal(lchown(in_folder("link"), 1, 1), 0);
	expect_refused(in_folder("link/new"), 0);
	assert_int_equal(access(in_folder("in/new"), F_OK), -1);
	assert_int_equal(chown(in_folder("in"), 1, 1), 0);
	expect_refused(in_folder("in/new"), 0);
	assert_int_equal(chown(in_folder("in"), 0, 1), 0);
	assert_int_equal(chmod(in_folder("in"), 0775), 0);
	expect_refused(in_folder("in/new"), 0);
	assert_int_equal(access(in_folder("in/new"), F_OK), -1);
	assert_int_equal(unlink(in_folder("link")), 0);
	remove_folder();
}

/* Makes a pipe, and captures into it. */
static void capture_to_pipe(int fds[2])
{
	char name[32];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	snprintf(name, sizeof(name), "/dev/fd/%d", fds[1]);
	capture_to(name);
}

/* A name may lead to an open descriptor, as /dev/stdout does. */
static void a_descriptor_gets_the_capture(void **state)
{
	int fds[2];

	capture_to_pipe(fds);
	assert_int_equal(read(fds[0], seen, sizeof(seen)), PREAMBLE);
	capture_close();
	close(fds[0]);
	close(fds[1]);
}

/* The reader closes its end of the pipe, as Wireshark does when the user ends
 * Wireshark.  SIGPIPE has its default action: a SIGPIPE would end this process.
 */
static void a_pipe_without_a_reader_ends_the_capture_alone(void **state)
{
	static const uint8_t payload[] = "0123456";
	int fds[2];

	assert_true(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
	capture_to_pipe(fds);
	close(fds[0]);
	capture_frame(&four_a, &four_b, payload, sizeof(payload), 0, 0, 64);
	assert_false(capture_is_open());
	capture_open(false);
	assert_false(capture_is_open());
	close(fds[1]);
}

static void a_capture_is_for_its_user_alone(void **state)
{
	struct stat s;

	capture_close();
	assert_int_equal(unlink(path), 0);
	umask(0);
	capture_open(false);
	umask(022);
	assert_true(capture_is_open());
	assert_int_equal(stat(path, &s), 0);
	assert_int_equal(s.st_mode & 07777, 0600);
}

/* Wireshark reads a capture from a pipe.  The reader finds the end of the file
 * when the capture is closed. */
static void a_pipe_of_ours_has_the_frames(void **state)
{
	static const uint8_t payload[] = "0123456";
	char pipe[sizeof(path) + 8];
	const uint8_t *frame;
	uint32_t bytes;
	size_t next;
	ssize_t n;
	int fd;

	snprintf(pipe, sizeof(pipe), "%s.pipe", path);
	assert_int_equal(mkfifo(pipe, 0600), 0);
	fd = open(pipe, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	capture_to(pipe);
	assert_int_equal(read(fd, seen, sizeof(seen)), PREAMBLE);
	capture_frame(&four_a, &four_b, payload, sizeof(payload), 0, 0, 64);
	n = read(fd, seen, sizeof(seen));
	assert_true(n > 0);
	seen_bytes = (size_t)n;
	frame = frame_at(0, &bytes, &next);
	assert_int_equal(next, seen_bytes);
	assert_memory_equal(frame + bytes - sizeof(payload), payload,
			    sizeof(payload));
	capture_close();
	assert_int_equal(read(fd, seen, sizeof(seen)), 0);
	close(fd);
	assert_int_equal(unlink(pipe), 0);
}

/* If not 0: each call of fstat for a pipe subtracts 1, and the call that makes
 * this 0 also replaces looked_at. */
static int looks;
static const char *looked_at; /* a pipe; a link to `stranger` replaces it */
static const char *stranger;  /* a pipe that must get no frame */

/* Replaces libc's fstat for the tested code. */
int fstat(int fd, struct stat *s)
{
	int err = (int)syscall(SYS_newfstatat, fd, "", s, AT_EMPTY_PATH);

	if (!err && S_ISFIFO(s->st_mode) && looks && !--looks) {
		assert_int_equal(unlink(looked_at), 0);
		assert_int_equal(symlink(stranger, looked_at), 0);
	}
	return err;
}

static int make_pipe(const char *name)
{
	assert_int_equal(mkfifo(name, 0600), 0);
	return open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

static void a_pipe_that_becomes_a_link_has_no_frames(void **state)
{
	char one[sizeof(path) + 8], other[sizeof(path) + 8];
	int fds[2];

	snprintf(one, sizeof(one), "%s.one", path);
	snprintf(other, sizeof(other), "%s.other", path);
	setenv("ADVERB_EXPLAIN", "0", 1);
	looked_at = one;
	stranger = other;
	for (int i = 1; i < 4; i++) {
		capture_close();
		fds[0] = make_pipe(one);
		fds[1] = make_pipe(other);
		setenv("ADVERB_PCAP", one, 1);
		looks = i;
		capture_open(false);
		assert_int_equal(looks, 0);
		assert_int_equal(read(fds[1], seen, sizeof(seen)), 0);
		capture_close();
		close(fds[0]);
		close(fds[1]);
		assert_int_equal(unlink(one), 0);
		assert_int_equal(unlink(other), 0);
	}
	unsetenv("ADVERB_EXPLAIN");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_file_begins_with_a_section_and_an_interface),
		CASE(an_ipv4_frame_has_its_headers_and_sums),
		CASE(an_ipv6_frame_has_its_headers_and_sum),
		CASE(a_segment_over_ipv4_has_its_headers_and_sums),
		CASE(a_segment_over_ipv6_may_be_as_long_as_ipv4_allows),
		CASE(a_packet_of_sctp_has_the_headers_of_its_carrier),
		CASE(two_threads_write_whole_frames),
		CASE(a_file_of_packets_by_lid_gets_no_segments),
		CASE(a_packet_by_lid_is_written_whole),
		CASE(the_time_of_erf_is_a_binary_fraction),
		CASE(frames_of_every_length_follow_one_another),
		CASE(two_captures_in_one_file_both_write_sections),
		CASE(frames_too_long_or_after_the_close_are_not_captured),
		CASE(the_program_is_told_that_a_capture_ends),
		CASE(a_full_disk_ends_the_capture),
		CASE(a_file_that_cannot_be_made_blocking_is_refused),
		CASE(a_file_that_is_no_capture_of_ours_gets_no_frames),
		CASE(a_file_of_another_user_gets_no_frames),
		CASE(a_folder_that_others_write_gets_no_capture),
		CASE(a_folder_of_ones_own_group_gets_a_capture),
		CASE(another_users_folder_or_link_gets_no_capture),
		CASE(a_descriptor_gets_the_capture),
		CASE(a_capture_is_for_its_user_alone),
		CASE(a_pipe_of_ours_has_the_frames),
		CASE(a_pipe_without_a_reader_ends_the_capture_alone),
		CASE(a_pipe_that_becomes_a_link_has_no_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
