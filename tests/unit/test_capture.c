/* SPDX-License-Identifier: BSD-2-Clause */
/* host/capture: a capture is a file of pcapng blocks, in which each frame has
 * its headers. */
#include "captures.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "hdr/erf.h"

#define BLOCK_SECTION 0x0a0d0d0au
#define ETH	      14

static uint16_t read_be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
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
	assert_true(said_here(capture_when_full, text, sizeof(text)));
	assert_non_null(strstr(text, "the capture ends here"));
	assert_false(capture_is_open());
}

/* Closes the descriptor of this process whose file is the capture. */
static void close_file_of_capture(void)
{
	struct stat capture, st;

	assert_int_equal(stat(path, &capture), 0);
	for (int fd = 3; fd < 1024; fd++)
		if (!fstat(fd, &st) && st.st_ino == capture.st_ino &&
		    st.st_dev == capture.st_dev)
			close(fd);
}

/* A daemon closes all descriptors, and opens its device only then. */
static void a_capture_goes_on_when_a_device_is_opened_again(void **state)
{
	static const uint8_t payload[] = "0123456";
	uint32_t bytes;
	size_t next;

	close_file_of_capture();
	capture_open(false);
	capture_frame(&four_a, &four_b, payload, sizeof(payload), 0, 0, 64);
	assert_true(capture_is_open());
	read_capture();
	frame_at((size_t)2 * PREAMBLE, &bytes, &next);
	assert_int_equal(next, seen_bytes);
}

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
		CASE(a_capture_goes_on_when_a_device_is_opened_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
