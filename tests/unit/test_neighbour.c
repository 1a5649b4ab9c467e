/* SPDX-License-Identifier: BSD-2-Clause */
/* wire/neighbour: interfaces, routes and neighbours of this network namespace,
 * of which only the loopback interface is known. */
#include "test.h"

#include "wire/neighbour.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

static const uint8_t loop[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};
/* a reserved address (RFC 5737), which no interface has */
static const uint8_t nobody[16] = {[10] = 0xff, 0xff, 192, 0, 2, 77};

static void an_interface_is_found_by_its_address(void **state)
{
	struct neighbour_interface i;
	uint32_t lo = if_nametoindex("lo");

	assert_int_equal(neighbour_own(loop, 0, &i), 0);
	assert_int_equal(i.ifindex, lo);
	assert_string_equal(i.name, "lo");
	assert_int_equal(neighbour_own(loop, lo, &i), 0);
	assert_int_equal(neighbour_own(loop, lo + 1, &i), -EADDRNOTAVAIL);
	assert_int_equal(neighbour_own(nobody, 0, &i), -EADDRNOTAVAIL);
}

static void an_own_address_is_told_from_others(void **state)
{
	uint32_t lo = if_nametoindex("lo");
	bool is_own = false;
	uint8_t hop[16];

	assert_int_equal(neighbour_route(loop, lo, hop, &is_own), 0);
	assert_true(is_own);
	assert_memory_equal(hop, loop, 16);
	/* there is no interface with this number */
	assert_true(neighbour_route(nobody, 0x7ffffff0, hop, &is_own) < 0);
}

static void a_neighbour_that_nobody_has_asked_for_is_not_known(void **state)
{
	uint8_t mac[NEIGHBOUR_MAC_BYTES];

	assert_int_equal(neighbour_look(if_nametoindex("lo"), nobody, mac),
			 -EAGAIN);
	assert_int_equal(neighbour_look(0x7ffffff0, nobody, mac), -ENODEV);
}

static void watching_does_not_block(void **state)
{
	int fd = neighbour_watch();

	assert_true(fd >= 0);
	neighbour_ask(if_nametoindex("lo"), loop);
	neighbour_drain(fd);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_interface_is_found_by_its_address),
		cmocka_unit_test(an_own_address_is_told_from_others),
		cmocka_unit_test(
			a_neighbour_that_nobody_has_asked_for_is_not_known),
		cmocka_unit_test(watching_does_not_block),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
