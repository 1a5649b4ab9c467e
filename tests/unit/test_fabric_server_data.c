/* SPDX-License-Identifier: BSD-2-Clause */
/* tools/fabric_server: the packets of a program that ends still arrive. */
#include "fabric_programs.h"

#include <signal.h>

#include "fabric/data.h"
#include "hdr/bth.h"
#include "hdr/lrh.h"

enum {
	COUNT = DATA_UNREAD, /* more than the fabric reads in one turn */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		FABRIC_TEST(the_last_packets_of_a_program_that_ends_arrive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
