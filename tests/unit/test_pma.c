/* SPDX-License-Identifier: BSD-2-Clause */
/* fabric/pma: the counters of VLs, and the time without credits. */
#include "data_world.h"

#include "fabric/lane.h"
#include "fabric/pma.h"

enum {
	ATTR_COUNTERS = 0x12,
	ATTR_VL_PACKETS = 0x19,
	ATTR_VL_DATA = 0x1a,
	ATTR_VL_WAIT = 0x1c,
	AT_ATTRIBUTE = 16,
	AT_DATA = 64,
	AT_WAIT = AT_DATA + 40,
	ALL_PORTS = 255,
	WAIT_BIT = 1, /* in CounterSelect2 */
};

/* Asks the agent of a node about a port.  mad: the data of the request; the
 * answer replaces them. */
static void ask_port(const struct world *w, const char *node, uint8_t number,
		     uint8_t method, uint16_t attribute, uint8_t mad[MAD_BYTES])
{
	struct packet *p = packet_new(w->f, port_of(w, node, 1));
	uint16_t status;

	assert_non_null(p);
	memcpy(p->mad, mad, MAD_BYTES);
	p->mad[1] = CLASS_PERF;
	p->mad[2] = 1;
	p->mad[3] = method;
	bytes_put16(p->mad + AT_ATTRIBUTE, attribute);
	p->mad[AT_DATA + 1] = number;
	assert_int_equal(pma_request(p, &status), SMA_ANSWER);
	assert_int_equal(status, 0);
	memcpy(mad, p->mad, MAD_BYTES);
	packet_drop(p);
}

static uint16_t vl_packets(const struct world *w, const char *node,
			   uint8_t number, uint32_t vl)
{
	uint8_t mad[MAD_BYTES] = {0};

	ask_port(w, node, number, METHOD_GET, ATTR_VL_PACKETS, mad);
	return bytes_get16(mad + AT_DATA + 4 + 2 * vl);
}

static uint32_t vl_words(const struct world *w, const char *node,
			 uint8_t number, uint32_t vl)
{
	uint8_t mad[MAD_BYTES] = {0};

	ask_port(w, node, number, METHOD_GET, ATTR_VL_DATA, mad);
	return bytes_get32(mad + AT_DATA + 4 + 4 * vl);
}

static void a_port_counts_what_it_receives_on_each_vl(void **state)
{
	struct world *w = *state;
	uint8_t mad[MAD_BYTES] = {0};
	struct made m;

	assert_int_equal(vl_packets(w, "S3", 1, 5), 0);
	make_unicast(&m, w->b, LID_B, 1);
	m.bytes[1] |= 5 << 4; /* SL 5 */
	seal_packet(&m);
	for (int i = 0; i < 3; i++)
		assert_int_equal(send_made(w, &m), 0);
	assert_int_equal(send_mark(w, w->b, LID_B, 1), 0);
	assert_int_equal(vl_packets(w, "S3", 1, 5), 3);
	assert_int_equal(vl_packets(w, "S3", 1, 0), 1);
	assert_int_equal(vl_packets(w, "S3", 2, 5), 0);
	assert_int_equal(vl_packets(w, "S3", ALL_PORTS, 5), 3);
	assert_int_equal(vl_words(w, "B", 1, 5), 3 * (BYTES / 4));
	/* a Set writes the counters that the request selects */
	bytes_put16(mad + AT_DATA + 2, 1 << 5);
	ask_port(w, "S3", 1, METHOD_SET, ATTR_VL_PACKETS, mad);
	assert_int_equal(vl_packets(w, "S3", 1, 5), 0);
	assert_int_equal(vl_packets(w, "S3", 1, 0), 1);
	assert_int_equal(vl_packets(w, "B", 1, 5), 3);
}

static uint32_t wait_at(const struct world *w, const char *node, uint8_t number)
{
	uint8_t mad[MAD_BYTES] = {0};

	ask_port(w, node, number, METHOD_GET, ATTR_COUNTERS, mad);
	return bytes_get32(mad + AT_WAIT);
}

static void port_xmit_wait_counts_and_is_set(void **state)
{
	struct world *w = *state;
	uint8_t mad[MAD_BYTES] = {0};

	w->f->data.buffer_blocks = 2;
	port_of(w, "S3", 2)->info[AT_HOQ] = 20; /* no limit */
	for (int i = 0; i < 2; i++)
		assert_int_equal(send_mark(w, w->b, LID_B, 1), 0);
	w->now_ms += 41;
	fabric_turn(w->f, w->now_ms);
	assert_int_equal(wait_at(w, "S3", 2), 40);
	assert_int_equal(wait_at(w, "S3", 1), 0);
	assert_int_equal(wait_at(w, "S3", ALL_PORTS), 40);
	ask_port(w, "S3", 2, METHOD_GET, ATTR_VL_WAIT, mad);
	assert_int_equal(bytes_get16(mad + AT_DATA + 4), 40);
	assert_int_equal(bytes_get16(mad + AT_DATA + 6), 0);
	memset(mad, 0, sizeof(mad));
	ask_port(w, "S3", 2, METHOD_SET, ATTR_COUNTERS, mad);
	assert_int_equal(wait_at(w, "S3", 2), 40);
	mad[AT_DATA + 18] = WAIT_BIT;
	bytes_put32(mad + AT_WAIT, 3);
	ask_port(w, "S3", 2, METHOD_SET, ATTR_COUNTERS, mad);
	assert_int_equal(bytes_get32(mad + AT_WAIT), 3);
	assert_int_equal(wait_at(w, "S3", 2), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_port_counts_what_it_receives_on_each_vl),
		TEST(port_xmit_wait_counts_and_is_set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
