/* SPDX-License-Identifier: BSD-2-Clause */
/* tools/fabric_server: the packets and MADs of a program that ends still
 * arrive. */
#include "fabric_programs.h"

#include <signal.h>

#include "fabric/data.h"
#include "fabric/umad_header.h"
#include "hdr/bth.h"
#include "hdr/lrh.h"

enum {
	COUNT = DATA_UNREAD, /* more than the fabric reads in one turn */
	MADS = 100,
	CLASS = 0x0a, /* of no agent of the fabric */
	SEND_ONLY = 0x04,
	PAYLOAD = 8,
	ICRC = 4, /* the fabric does not read it */
	BYTES = LRH_BYTES + BTH_BYTES + PAYLOAD + ICRC + LRH_VCRC_BYTES,
	WORDS = (BYTES - LRH_VCRC_BYTES) / 4,
};

/* A program with a data end at port 1 of a host. */
struct sender {
	int fabric, data;
	uint32_t number;
};

static struct sender attach_to(const char *host)
{
	struct fabric_proto m = {.kind = FABRIC_PROTO_DATA, .number = 1};
	struct sender s = {.fabric = join_fabric()};

	strcpy(m.host, host);
	assert_int_equal(ask_fabric(s.fabric, &m, &s.data), 0);
	s.number = m.number;
	return s;
}

/* Sends a packet from A to B. */
static void send_packet(const struct sender *a, const struct sender *b)
{
	const struct lrh lrh = {.lnh = LRH_NEXT_LOCAL,
				.dlid = LID_B,
				.slid = LID_A1,
				.words = WORDS};
	const struct bth bth = {.opcode = SEND_ONLY,
				.pkey = 0xffff,
				.dest_qpn = b->number << DATA_REST_BITS | 5};
	uint8_t p[BYTES] = {0};

	lrh_write(p, &lrh);
	bth_write(p + LRH_BYTES, &bth);
	lrh_seal(p, BYTES - LRH_VCRC_BYTES);
	assert_int_equal(send(a->data, p, BYTES, MSG_NOSIGNAL), BYTES);
}

/* Counts the packets that come, up to COUNT. */
static int count_packets(const struct sender *b)
{
	struct pollfd wait = {.fd = b->data, .events = POLLIN};
	uint8_t p[BYTES];
	int count = 0;

	while (count < COUNT && poll(&wait, 1, 5000) == 1)
		count += recv(b->data, p, sizeof(p), 0) == BYTES;
	return count;
}

/* The fabric finds the packets and the end of the program at one time. */
static void the_last_packets_of_a_program_that_ends_arrive(void **state)
{
	struct sender a = attach_to("A"), b = attach_to("B");

	assert_int_equal(kill(server, SIGSTOP), 0);
	for (int i = 0; i < COUNT; i++)
		send_packet(&a, &b);
	close_both(a.fabric, a.data);
	assert_int_equal(kill(server, SIGCONT), 0);
	assert_int_equal(count_packets(&b), COUNT);
	close_both(b.fabric, b.data);
}

/* The fabric finds the end of the program before its MADs. */
static void the_last_mads_of_a_program_that_ends_arrive(void **state)
{
	struct umad_program a = run_agent("A", CLASS, METHOD_SET);
	struct umad_program b = run_agent("B", CLASS, METHOD_GET);
	const struct umad to = {.qpn = 1, .qkey = 0x80010000u, .lid = LID_B};
	struct pollfd wait = {.fd = b.umad, .events = POLLIN};
	uint8_t m[FABRIC_UMAD_BYTES + MAD_BYTES] = {0};

	umad_header_write(&to, MAD_BYTES, m);
	mad_write(m + FABRIC_UMAD_BYTES, &(struct mad){.base_version = 1,
						       .mgmt_class = CLASS,
						       .class_version = 2,
						       .method = METHOD_GET});
	assert_int_equal(kill(server, SIGSTOP), 0);
	close(a.fabric);
	for (int i = 0; i < MADS; i++)
		assert_int_equal(send(a.umad, m, sizeof(m), 0), sizeof(m));
	close(a.umad);
	assert_int_equal(kill(server, SIGCONT), 0);
	for (int i = 0; i < MADS; i++) {
		assert_int_equal(poll(&wait, 1, 5000), 1);
		assert_int_equal(recv(b.umad, m, sizeof(m), 0), sizeof(m));
	}
	end_agent(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FABRIC_TEST(the_last_packets_of_a_program_that_ends_arrive),
		FABRIC_TEST(the_last_mads_of_a_program_that_ends_arrive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
