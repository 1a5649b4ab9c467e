/* SPDX-License-Identifier: BSD-2-Clause */
/* fabric/net: topologies in the net file format of ibsim. */
#include "test.h"

#include <errno.h>
#include <stdio.h>

#include "fabric/net.h"

static const char two_hosts[] = "Switch\t8 \"S\"\n"
				"[1]\t\"H1\"[1]\n"
				"[4]\t\"H2\"[2] w=4 s=2\n"
				"\n"
				"Hca\t2 \"H1\"\n"
				"[1]\t\"S\"[1]\n"
				"\n"
				"Hca\t2 \"H2\"\n"
				"[2]\t\"S\"[4] w=6 s=3\n";

static int parse_text(const char *text, struct net *net,
		      struct net_error *error)
{
	return net_parse(text, strlen(text), net, error);
}

static void cables_join_both_ends(void **state)
{
	struct net_error error;
	struct net net;

	assert_int_equal(parse_text(two_hosts, &net, &error), 0);
	assert_int_equal(net.node_count, 3);
	assert_int_equal(net.nodes[0].type, NET_SWITCH);
	assert_int_equal(net.nodes[0].ports, 8);
	assert_string_equal(net.nodes[2].id, "H2");
	assert_int_equal(net.ports[net.nodes[0].first + 4].peer,
			 net.nodes[2].first + 2);
	assert_int_equal(net.ports[net.nodes[2].first + 2].peer,
			 net.nodes[0].first + 4);
	assert_int_equal(net.ports[net.nodes[2].first + 1].peer, NET_NO_PORT);
	assert_int_equal(net.ports[net.nodes[0].first + 4].width, 4);
	assert_int_equal(net.ports[net.nodes[0].first + 4].speed, 2);
	net_free(&net);
	assert_int_equal(net.node_count, 0);
}

static void guids_are_those_of_ibsim(void **state)
{
	struct net_error error;
	struct net net;

	assert_int_equal(parse_text(two_hosts, &net, &error), 0);
	assert_int_equal(net.nodes[0].guid, 0x200000);
	assert_int_equal(net.nodes[1].guid, 0x100000);
	assert_int_equal(net.nodes[2].guid, 0x100003);
	assert_int_equal(net.ports[net.nodes[2].first + 2].guid, 0x100005);
	net_free(&net);
}

/* The text is as ibnetdiscover prints it, with GUIDs, descriptions, LIDs and
 * rates. */
static void output_of_ibnetdiscover_is_read(void **state)
{
	static const char text[] =
		"# Topology file\n"
		"vendid=0x2c9\n"
		"devid=0xb924\n"
		"sysimgguid=0x2c90000000203\n"
		"switchguid=0x2c90000000200(2c90000000200)\n"
		"Switch\t8 \"S-1\"\t\t# \"Big one\" enhanced port 0 lid 4 lmc 0\n"
		"[1]\t\"H-1\"[1](2c90000000109) \t# \"Hca one\" lid 7 4xDDR\n"
		"\n"
		"vendid=0x2c9\n"
		"sysimgguid=0x2c90000000103\n"
		"caguid=0x2c90000000100\n"
		"Ca\t1 \"H-1\"\t\t# \"Hca one\"\n"
		"[1](2c90000000109) \t\"S-1\"[1]\t\t# lid 7 lmc 1 \"Big one\" lid "
		"4 4xDDR\n";
	struct net_error error;
	const struct net_port *port;
	struct net net;

	assert_int_equal(parse_text(text, &net, &error), 0);
	assert_string_equal(net.nodes[0].description, "Big one");
	assert_true(net.nodes[0].has_enhanced_port0);
	assert_int_equal(net.nodes[0].vendor, 0x2c9);
	assert_int_equal(net.nodes[0].device, 0xb924);
	assert_int_equal(net.nodes[0].guid, 0x2c90000000200);
	assert_int_equal(net.nodes[0].system_guid, 0x2c90000000203);
	assert_int_equal(net.ports[net.nodes[0].first].lid, 4);
	assert_int_equal(net.nodes[1].guid, 0x2c90000000100);
	port = &net.ports[net.nodes[1].first + 1];
	assert_int_equal(port->guid, 0x2c90000000109);
	assert_int_equal(port->lid, 7);
	assert_int_equal(port->lmc, 1);
	assert_int_equal(port->width, 2);
	assert_int_equal(port->speed, 2);
	net_free(&net);
}

/* A description may have the words that stand for LIDs and for port 0. */
static void words_of_a_description_mean_nothing_else(void **state)
{
	static const struct {
		const char *line;
		uint16_t lid;
		uint8_t lmc;
		bool is_enhanced;
	} rows[] = {
		{"# \"Solid 49152\"", 0, 0, false},
		{"# \"valid 5\"", 0, 0, false},
		{"# \"lid 49152 lmc 9\" lid 4 lmc 1", 4, 1, false},
		{"# \"enhanced port 0\" base port 0 lid 3", 3, 0, false},
		{"# \"base port 0\" enhanced port 0 lid 3", 3, 0, true},
		{"# \"\" enhanced port 0 lid 6 lmc 2", 6, 2, true},
		{"# solid 7 enhanced port 0 lid 8", 8, 0, true},
		{"# solid 7", 0, 0, false},
		{"# \"no end lid 9", 9, 0, false},
		{"", 0, 0, false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct net_error error;
		const struct net_port *port;
		char text[200];
		struct net net;

		snprintf(text, sizeof(text), "Switch 8 \"S\" %s\n",
			 rows[i].line);
		assert_int_equal(parse_text(text, &net, &error), 0);
		port = &net.ports[net.nodes[0].first];
		assert_int_equal(port->lid, rows[i].lid);
		assert_int_equal(port->lmc, rows[i].lmc);
		assert_int_equal(net.nodes[0].has_enhanced_port0,
				 rows[i].is_enhanced);
		net_free(&net);
	}
}

/* The LID of an adapter's port is before the description of the peer. */
static void a_peers_description_gives_no_lid(void **state)
{
	static const char text[] = "Hca 2 \"H\"\n"
				   "[1] \"S\"[1] # \"lid 49152\" lid 4\n"
				   "[2] \"S\"[2] # lid 7 \"lmc 9\" lid 4\n"
				   "Switch 2 \"S\"\n"
				   "[1] \"H\"[1]\n"
				   "[2] \"H\"[2]\n";
	struct net_error error;
	const struct net_port *ports;
	struct net net;

	assert_int_equal(parse_text(text, &net, &error), 0);
	ports = &net.ports[net.nodes[0].first];
	assert_int_equal(ports[1].lid, 0);
	assert_int_equal(ports[2].lid, 7);
	assert_int_equal(ports[2].lmc, 0);
	net_free(&net);
}

static void the_error_of_a_wrong_file_names_line_and_reason(void **state)
{
	static const struct {
		const char *text;
		uint32_t line;
		const char *why;
	} cases[] = {
		{"", 0, "the file has no node"},
		{"Hca 2 \"H\"\n[3] \"S\"[1]\n", 2,
		 "this node has ports 1 to 2"},
		{"Hca 2 \"H\"\n[1] \"S\"[1]\n", 1, "not in the file"},
		{"Hca 2 \"H\"\n[1] \"H\"[2]\n", 1, "which has no cable back"},
		{"Hca 1 \"H\"\n[1] \"H\"[1]\n", 1, "which has no cable back"},
		{"Hca 2 \"H\"\n\nHca 2 \"H\"\n", 3, "two nodes have the ID"},
		{"Hca 0 \"H\"\n", 1, "with 1 to 254 ports"},
		{"Hca 2 H\n", 1, "TYPE PORTS \"ID\""},
		{"[1] \"H\"[1]\n", 1, "directly follow its node's line"},
		{"include \"x\"\n", 1, "does not read `include`"},
		{"Hca 2 \"H\"\n[1] \"S\"[1] w=99\n", 2, "w=1..15"},
		{"Hca 2 \"H\"\n[1] \"S\"[1]\n[1] \"S\"[2]\n", 3, "two cables"},
		{"Switch 2 \"S\" # \"S\" base port 0 lid 49152\n", 1,
		 "not a unicast LID"},
		{"Hca 2 \"A\"\n[1] \"B\"[1] w=1\n\nHca 2 \"B\"\n[1] "
		 "\"A\"[1] w=2\n",
		 1, "no width or speed"},
		{"Hca 2x \"H\"\n", 1, "with 1 to 254 ports"},
		{"Hca 2 \"H\"\n[1] \"S\"[1] w=4x\n", 2, "w=1..15"},
		{"vendid=foo\n", 1, "a number from 0 to 16777215"},
		{"\ndevid=0x\n", 2, "a number from 0 to 4294967295"},
		{"width=4 wide\n", 1, "a number from 0 to 15"},
		{"speed=-1\n", 1, "a number from 0 to 7"},
		{"sysimgguid=0x12345678123456781\n", 1, "a number from 0 to"},
		{"caguid=1 2\n", 1, "followed by =GUID or +N"},
		{"switchguid=S\n", 1, "followed by =GUID or +N"},
		{"hcaguids+\n", 1, "followed by =GUID or +N"},
		{"caguid=1\nHca 2 \"A\"\n\ncaguid=1\nHca 2 \"B\"\n", 5,
		 "same GUID"},
		{"caguid=1\nHca 2 \"A\"\n\ncaguid=2\nHca 2 \"B\"\n", 5,
		 "port 2 of \"A\" and port 1 of \"B\" have the same GUID "
		 "0x3"},
	};

	for (size_t i = 0; i < TEST_COUNT(cases); i++) {
		struct net_error error;
		struct net net;

		assert_int_equal(parse_text(cases[i].text, &net, &error),
				 -EINVAL);
		assert_int_equal(error.line, cases[i].line);
		assert_non_null(strstr(error.why, cases[i].why));
		assert_null(net.nodes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cables_join_both_ends),
		cmocka_unit_test(guids_are_those_of_ibsim),
		cmocka_unit_test(output_of_ibnetdiscover_is_read),
		cmocka_unit_test(words_of_a_description_mean_nothing_else),
		cmocka_unit_test(a_peers_description_gives_no_lid),
		cmocka_unit_test(
			the_error_of_a_wrong_file_names_line_and_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
