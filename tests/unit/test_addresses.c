/* SPDX-License-Identifier: BSD-2-Clause */
/* host/addresses: the cached answers are those of netif, which is replaced
 * here. */
#include "test.h"

#include "device/netif.h"
#include "engine/engine.h"
#include "host/addresses.h"

/* netif's version, and the calls of netif_is_local and netif_device */
static uint32_t version = 1, searches;

uint32_t netif_version(void)
{
	return version;
}

bool netif_is_local(const uint8_t ip[16])
{
	searches++;
	return ip[15] == 1;
}

/* Interface n belongs to device n, and every interface has every address. */
int netif_device(const uint8_t ip[16], uint32_t link)
{
	searches++;
	return (int)link;
}

uint32_t netif_index(const uint8_t ip[16], uint32_t link)
{
	return link;
}

uint32_t netif_scope(const uint8_t ip[16], uint32_t link)
{
	return link;
}

static void an_address_of_two_devices_is_that_of_the_interface(void **state)
{
	static const uint8_t ip[16] = {0xfe, 0x80, [15] = 1};
	struct addresses a = {0};

	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(addresses_device(&a, ip, i % 2), i % 2);
}

static void one_search_answers_for_many_datagrams(void **state)
{
	static const uint8_t ip[16] = {0xfd, [15] = 1};
	struct addresses a = {0};

	searches = 0;
	for (int i = 0; i < 9; i++) {
		assert_int_equal(addresses_device(&a, ip, 3), 3);
		assert_true(addresses_is_local(&a, ip));
	}
	assert_int_equal(searches, 2);
	version += 2;
	assert_int_equal(addresses_device(&a, ip, 3), 3);
	assert_int_equal(searches, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			an_address_of_two_devices_is_that_of_the_interface),
		cmocka_unit_test(one_search_answers_for_many_datagrams),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
