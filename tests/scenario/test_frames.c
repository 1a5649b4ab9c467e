/* SPDX-License-Identifier: BSD-2-Clause */
/* host/frames: frames that the kernel refuses to send are reported.  They do
 * not count as sent (tx_packets), and the capture does not contain them. */
#include "test.h"

#include <sys/stat.h>

#include "host/capture.h"
#include "host/frames.h"
#include "scenario/two_hcas.h"
#include "unit/said_by.h"

#define PREAMBLE 60 /* bytes of a section and an interface block */
#define HEADERS	 42 /* bytes of Ethernet, IPv4 and UDP */

static char file[] = "/tmp/adverb-frames-XXXXXX";
static struct progress progress;

static struct inaddr address_of(uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
	return (struct inaddr){
		.ip = {[10] = 0xff, 0xff, a, b, c, d},
		.port = 4791,
	};
}

/* Makes two frames.  The two requests have different source addresses, because
 * engine_tx puts packets of one path into one frame. */
static void make_frames(struct two_hcas *d, struct engine_frame f[2])
{
	for (uint8_t i = 0; i < 2; i++) {
		struct wqe *w = two_hcas_send(d, 0, HCA_WR_SEND, 0, 100, 0);

		wq_to(&d->side[0].qp->sq, w)->from[15] ^= i;
		two_hcas_post(d, 0);
	}
	assert_int_equal(engine_tx(progress.engine, f, 2, d->now_ns), 2);
}

/* Sends two frames from a loopback address.  Frame number `refused` goes to
 * another host, so the kernel refuses it; the other frame goes to this host. */
static void send_two(struct two_hcas *d, int refused)
{
	struct engine_frame f[2];

	make_frames(d, f);
	for (int i = 0; i < 2; i++) {
		f[i].from = f[i].to = address_of(127, 0, 0, 1);
		if (i == refused)
			f[i].to = address_of(192, 0, 2, 1);
	}
	assert_int_equal(frames_send(&progress, f, 2), 2);
	engine_tx_done(progress.engine, 2);
}

static void assert_captured(uint32_t packets, size_t bytes)
{
	size_t block = 32 + (HEADERS + bytes + 3) / 4 * 4;
	struct stat now;

	capture_close();
	assert_int_equal(stat(file, &now), 0);
	assert_int_equal(now.st_size, PREAMBLE + packets * block);
}

static void send_frames(void)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 16);
	const struct engine_counters *c = engine_counters(d->side[0].engine, 0);

	progress.engine = d->side[0].engine;
	assert_int_equal(udp_init(&progress.wire, udp_bind(0),
				  (struct udp_offload){0}, true),
			 0);
	setenv("ADVERB_PCAP", file, 1);
	capture_open(false);
	for (int i = 0; i < 4; i++)
		send_two(d, i % 2);
	assert_int_equal(c->tx_packets, 4);
	assert_captured(4, c->tx_bytes / 4 + ICRC_BYTES);
	udp_fini(&progress.wire);
}

static void refused_frames_are_reported_and_do_not_count_as_sent(void **state)
{
	static const char sentence[] =
		"the kernel refuses to send RDMA packets from 127.0.0.1 to "
		"192.0.2.1, which are lost: ";
	char said[4096], *first;
	int fd = mkstemp(file);

	assert_true(fd >= 0);
	close(fd);
	said_by(send_frames, said, sizeof(said));
	first = strstr(said, sentence);
	assert_non_null(first);
	assert_null(strstr(first + 1, sentence));
	assert_int_equal(unlink(file), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			refused_frames_are_reported_and_do_not_count_as_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
