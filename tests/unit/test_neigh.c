/* SPDX-License-Identifier: BSD-2-Clause */
/* ipoib/neigh: the table of neighbours. */
#include "test.h"

#include "ipoib/neigh.h"

static struct neigh_table table;

static struct hwaddr address_of(uint32_t number)
{
	return (struct hwaddr){.qpn = number + 2, .gid = {0xfe, 0x80, 1}};
}

static void neighbours_are_found_by_mac(void **state)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < NEIGH_MAX; i++) {
		struct hwaddr a = address_of(i);
		struct neigh *n = neigh_add(&table, &a);

		assert_non_null(n);
		n->used_ms = 1000 + i;
		assert_ptr_equal(neigh_find(&table, n->mac), n);
	}
	assert_null(neigh_add(&table, &(struct hwaddr){.qpn = 2}));
	for (struct neigh *n = NULL; (n = neigh_next(&table, n));)
		found++;
	assert_int_equal(found, NEIGH_MAX);
	assert_int_equal(neigh_oldest(&table, address_of(0).gid)->address.qpn,
			 2);
	for (uint32_t i = 0; i < NEIGH_MAX; i++) {
		struct hwaddr a = address_of(i);
		uint8_t mac[HWADDR_MAC_BYTES];

		hwaddr_mac(&a, mac);
		neigh_remove(&table, neigh_find(&table, mac));
		assert_null(neigh_find(&table, mac));
	}
	assert_null(neigh_next(&table, NULL));
	assert_null(neigh_oldest(&table, address_of(0).gid));
	assert_int_equal(table.count, 0);
}

static void senders_are_found_by_lid_and_qpn(void **state)
{
	struct hwaddr a = address_of(5), b = a;
	struct neigh *n = neigh_add(&table, &a), *other;

	neigh_note_source(&table, n, 9);
	assert_memory_equal(neigh_source(&table, 9, 7), n->mac, 6);
	assert_null(neigh_source(&table, 10, 7));
	assert_null(neigh_source(&table, 9, 8));
	/* LID 9 and b.qpn take the slot of LID 9 and a.qpn */
	b.qpn += NEIGH_SOURCES;
	other = neigh_add(&table, &b);
	neigh_note_source(&table, other, 9);
	assert_null(neigh_source(&table, 9, a.qpn));
	assert_memory_equal(neigh_source(&table, 9, b.qpn), other->mac, 6);
	neigh_remove(&table, n);
	neigh_remove(&table, other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(neighbours_are_found_by_mac),
		cmocka_unit_test(senders_are_found_by_lid_and_qpn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
