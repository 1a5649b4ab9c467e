/* SPDX-License-Identifier: BSD-2-Clause */
/* fabric/gid: which port has a GID or a LID. */
#include "test.h"

#include <errno.h>

#include "fabric/gid.h"
#include "fabric/inside.h"
#include "fabric/net.h"
#include "fabric/port_info.h"
#include "fabric/umad_header.h"
#include "hdr/bytes.h"

enum { AT_PREFIX = 8, AT_LID = 16, AT_LMC = 34, SECOND = 5, GUID = 0x1234 };

static const char text[] = "Switch 4 \"S\"\n[1] \"A\"[2]\n[2] \"B\"[1]\n\n"
			   "Hca 2 \"A\"\n[2] \"S\"[1]\n\n"
			   "Hca 1 \"B\"\n[1] \"S\"[2]\n";

static int set_up(void **state)
{
	struct net_error error;
	struct net net;

	assert_int_equal(net_parse(text, sizeof(text) - 1, &net, &error), 0);
	*state = fabric_new(&net);
	net_free(&net);
	return *state ? 0 : -1;
}

static int tear_down(void **state)
{
	fabric_free(*state);
	return 0;
}

static void a_gid_leads_to_its_port(void **state)
{
	struct fabric *f = *state;
	struct node *a = fabric_find(f, "A");
	struct port *port = &a->ports[2];
	struct gid_place place;
	uint8_t gid[16];

	port->guids[SECOND] = GUID;
	bytes_put16(port->info + AT_LID, 9);
	port_info_gid(port, port->guids[0], gid);
	assert_true(gid_find(f, gid, &place));
	assert_ptr_equal(place.node, a);
	assert_int_equal(place.port, 2);
	assert_int_equal(place.index, 0);
	assert_int_equal(place.lid, 9);
	port_info_gid(port, GUID, gid);
	assert_true(gid_find(f, gid, &place));
	assert_int_equal(place.port, 2);
	assert_int_equal(place.index, SECOND);
	assert_int_equal(gid_index(port, gid), SECOND);
	assert_int_equal(gid_index(&a->ports[1], gid), 0);
}

static void a_gid_of_no_adapter_is_not_found(void **state)
{
	struct fabric *f = *state;
	struct port *port = &fabric_find(f, "A")->ports[1];
	struct gid_place place;
	uint8_t gid[16];

	port_info_gid(port, GUID, gid);
	assert_false(gid_find(f, gid, &place));
	/* an empty entry of a table is no GID */
	port_info_gid(port, 0, gid);
	assert_false(gid_find(f, gid, &place));
	port_info_gid(port, fabric_find(f, "S")->guid, gid);
	assert_false(gid_find(f, gid, &place));
}

static void a_gid_has_the_prefix_of_its_port(void **state)
{
	struct fabric *f = *state;
	struct port *port = &fabric_find(f, "B")->ports[1];
	struct gid_place place;
	uint8_t old[16], gid[16];

	port_info_gid(port, port->guids[0], old);
	bytes_put64(port->info + AT_PREFIX, 0xfec0000000000001);
	port_info_gid(port, port->guids[0], gid);
	assert_int_equal(bytes_get64(gid), 0xfec0000000000001);
	assert_true(gid_find(f, gid, &place));
	assert_false(gid_find(f, old, &place));
}

static void a_lid_leads_to_the_first_gid_of_its_port(void **state)
{
	struct fabric *f = *state;
	struct port *port = &fabric_find(f, "B")->ports[1];
	uint8_t gid[16], first[16];

	assert_false(gid_of_lid(f, 0, gid));
	assert_false(gid_of_lid(f, 8, gid));
	bytes_put16(port->info + AT_LID, 8);
	port->info[AT_LMC] = (uint8_t)((port->info[AT_LMC] & ~7) | 1);
	port_info_gid(port, port->guids[0], first);
	for (uint16_t lid = 8; lid <= 9; lid++) {
		assert_true(gid_of_lid(f, lid, gid));
		assert_memory_equal(gid, first, 16);
		assert_true(gid_has_lid(f, first, lid));
	}
	assert_false(gid_of_lid(f, 10, gid));
	assert_false(gid_has_lid(f, first, 10));
	assert_false(gid_has_lid(f, first, 0));
}

/* A port sends a message with a GRH to itself.  fabric_send_as_is keeps the
 * transaction ID. */
static void a_message_says_to_which_gid_it_was_sent(void **state)
{
	const struct fabric_agent asked = {
		.mgmt_class = 7, .class_version = 2, .methods = {1 << 3}};
	struct fabric *f = *state;
	struct node *a = fabric_find(f, "A");
	struct port *port = &a->ports[2];
	uint8_t m[FABRIC_UMAD_BYTES + MAD_BYTES] = {0};
	uint8_t *mad = m + FABRIC_UMAD_BYTES;
	struct umad umad = {.qpn = 1,
			    .qkey = 0x80010000,
			    .lid = 9,
			    .has_grh = true,
			    .gid_index = SECOND};
	const uint8_t *got;
	struct end *end;
	size_t bytes;
	int err;

	port->guids[SECOND] = GUID;
	port->state = STATE_ACTIVE;
	bytes_put16(port->info + AT_LID, 9);
	port_info_gid(port, GUID, umad.gid);
	end = fabric_open(a, 2, NULL, &err);
	umad.agent = (uint32_t)fabric_register(end, &asked);
	mad_write(mad, &(struct mad){.base_version = 1,
				     .mgmt_class = 7,
				     .class_version = 2,
				     .method = 3,
				     .transaction_id = 0x1122334455667788});
	umad_header_write(&umad, MAD_BYTES, m);
	fabric_set_time(f, 5);
	umad.timeout_ms = 7; /* refused: fabric_send_as_is awaits no response */
	umad_header_write(&umad, MAD_BYTES, m);
	assert_int_equal(fabric_send_as_is(end, m, sizeof(m)), -EINVAL);
	umad.timeout_ms = 0;
	umad_header_write(&umad, MAD_BYTES, m);
	assert_int_equal(fabric_send_as_is(end, m, sizeof(m)), 0);
	assert_int_equal(fabric_deadline(f), 5);
	fabric_turn(f, 5);
	assert_int_equal(fabric_deadline(f), FABRIC_NEVER);
	got = fabric_fetch(end, &bytes);
	assert_non_null(got);
	assert_memory_equal(got + FABRIC_UMAD_BYTES, mad, MAD_BYTES);
	umad_header_parse(got, &umad);
	assert_true(umad.has_grh);
	assert_int_equal(umad.gid_index, SECOND);
	assert_int_equal(bytes_get64(umad.gid + 8), GUID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_gid_leads_to_its_port, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			a_gid_of_no_adapter_is_not_found, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_gid_has_the_prefix_of_its_port, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_lid_leads_to_the_first_gid_of_its_port, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			a_message_says_to_which_gid_it_was_sent, set_up,
			tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
