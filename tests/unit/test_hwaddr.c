/* SPDX-License-Identifier: BSD-2-Clause */
/* ipoib/hwaddr: the hardware addresses of IPoIB, and their MACs. */
#include "test.h"

#include "ipoib/hwaddr.h"

static const struct hwaddr example = {
	.qpn = 0x123456, .gid = {0xfe, 0x80, [8] = 0, 2, 0xc9, 3, 0, 4, 5, 6}};

static void an_address_is_written_and_read(void **state)
{
	static const uint8_t want[HWADDR_BYTES] = {
		0, 0x12, 0x34, 0x56, 0xfe, 0x80, [13] = 2, 0xc9, 3, 0, 4, 5, 6};
	uint8_t bytes[HWADDR_BYTES];
	struct hwaddr a;

	hwaddr_write(bytes, &example);
	assert_memory_equal(bytes, want, sizeof(want));
	assert_true(hwaddr_parse(bytes, &a) && !a.is_connected);
	bytes[0] = 0xc0; /* the flags of RC and UC */
	assert_true(hwaddr_parse(bytes, &a) && a.is_connected);
	hwaddr_write(bytes, &a);
	assert_int_equal(bytes[0], 0x80);
	assert_true(hwaddr_is_equal(&a, &example));
	a.qpn++;
	assert_false(hwaddr_is_equal(&a, &example));
}

static void an_address_that_no_interface_has_is_refused(void **state)
{
	static const uint32_t qpns[] = {0, 1, 0xffffff};
	struct hwaddr a = example;
	uint8_t bytes[HWADDR_BYTES];

	for (size_t i = 0; i < TEST_COUNT(qpns); i++) {
		a.qpn = qpns[i];
		hwaddr_write(bytes, &a);
		assert_false(hwaddr_parse(bytes, &a));
	}
	a = example;
	a.gid[0] = 0xff;
	hwaddr_write(bytes, &a);
	assert_false(hwaddr_parse(bytes, &a));
	memset(a.gid, 0, sizeof(a.gid));
	hwaddr_write(bytes, &a);
	assert_false(hwaddr_parse(bytes, &a));
}

/* Another release of adverb must give the same MAC: the interfaces of a subnet
 * may run different releases, and librdmacm computes MACs, too. */
static void a_mac_depends_on_all_bytes_of_an_address(void **state)
{
	static const uint8_t want[6] = {0x4a, 0xbd, 0xb4, 0xf1, 0xb0, 0x27};
	uint8_t mac[6], other[6];
	struct hwaddr a = example;

	hwaddr_mac(&a, mac);
	assert_memory_equal(mac, want, sizeof(want));
	assert_int_equal(mac[0] & 3, 2);
	a.is_connected = true;
	hwaddr_mac(&a, other);
	assert_memory_equal(mac, other, sizeof(mac));
	a.qpn ^= 1;
	hwaddr_mac(&a, other);
	assert_memory_not_equal(mac, other, sizeof(mac));
	for (int i = 0; i < 16; i++) {
		a = example;
		a.gid[i] ^= 1;
		hwaddr_mac(&a, other);
		assert_memory_not_equal(mac, other, sizeof(mac));
		assert_int_equal(other[0] & 3, 2);
	}
}

static void a_link_local_address_has_the_guid(void **state)
{
	static const uint8_t want[16] = {0xfe, 0x80, [8] = 2, 2, 0xc9,
					 3,    0,    4,	      5, 6};
	uint8_t gid[16], ip[16];

	memcpy(gid, example.gid, 16);
	gid[1] = 0xc0; /* the address does not have the GID's prefix */
	hwaddr_link_local(gid, ip);
	assert_memory_equal(ip, want, sizeof(want));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_is_written_and_read),
		cmocka_unit_test(an_address_that_no_interface_has_is_refused),
		cmocka_unit_test(a_mac_depends_on_all_bytes_of_an_address),
		cmocka_unit_test(a_link_local_address_has_the_guid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
