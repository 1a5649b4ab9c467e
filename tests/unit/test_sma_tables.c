/* SPDX-License-Identifier: BSD-2-Clause */
/* fabric/sma_tables: programs are told of a table only if a Set has changed it.
 */
#include "test.h"

#include <string.h>

#include "fabric/data.h"
#include "fabric/net.h"
#include "fabric/sma_tables.h"
#include "hdr/bytes.h"

static const char text[] = "Switch 2 \"S\"\n[1] \"A\"[1]\n\n"
			   "Hca 1 \"A\"\n[1] \"S\"[1]\n";

/* the changes that programs were told of since run_table began */
static uint32_t told;

static void note_changes(void *arg, const struct node *node, uint32_t port,
			 uint32_t changes)
{
	(void)arg;
	(void)node;
	assert_int_equal(port, 1);
	told |= changes;
}

static int set_up(void **state)
{
	struct net_error error;
	struct net net;

	assert_int_equal(net_parse(text, sizeof(text) - 1, &net, &error), 0);
	*state = fabric_new(&net);
	net_free(&net);
	if (!*state)
		return -1;
	fabric_watch_ports(*state, note_changes, NULL);
	return 0;
}

static int tear_down(void **state)
{
	fabric_free(*state);
	return 0;
}

/* Executes `table` for block 0 of A's port with these bytes.  Returns the
 * changes (DATA_PKEYS, DATA_GIDS) that the programs at the port are told of. */
static uint32_t run_table(struct fabric *f,
			  uint16_t (*table)(struct sma_call *), bool is_set,
			  uint8_t data[64])
{
	struct node *a = fabric_find(f, "A");
	struct sma_call c = {
		.node = a, .in = &a->ports[1], .data = data, .is_set = is_set};

	told = 0;
	assert_int_equal(table(&c), 0);
	return told;
}

static void a_set_of_the_same_keys_is_no_change(void **state)
{
	uint8_t data[64];

	assert_int_equal(run_table(*state, sma_tables_pkeys, false, data), 0);
	assert_int_equal(run_table(*state, sma_tables_pkeys, true, data), 0);
	bytes_put16(data + 2, 0x8005);
	assert_int_equal(run_table(*state, sma_tables_pkeys, true, data),
			 DATA_PKEYS);
	assert_int_equal(bytes_get16(data + 2), 0x8005);
	assert_int_equal(run_table(*state, sma_tables_pkeys, true, data), 0);
}

/* Entry 0 is the port's own GUID, which a Set does not change. */
static void a_set_of_the_same_guids_is_no_change(void **state)
{
	uint8_t data[64];

	assert_int_equal(run_table(*state, sma_tables_guids, false, data), 0);
	bytes_put64(data, 0x99);
	assert_int_equal(run_table(*state, sma_tables_guids, true, data), 0);
	assert_int_not_equal(bytes_get64(data), 0x99);
	bytes_put64(data + 56, 0x99);
	assert_int_equal(run_table(*state, sma_tables_guids, true, data),
			 DATA_GIDS);
	assert_int_equal(bytes_get64(data + 56), 0x99);
	assert_int_equal(run_table(*state, sma_tables_guids, true, data), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_set_of_the_same_keys_is_no_change, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_set_of_the_same_guids_is_no_change, set_up,
			tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
