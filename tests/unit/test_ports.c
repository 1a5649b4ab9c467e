/* SPDX-License-Identifier: BSD-2-Clause */
/* cm/ports: which bindings may have one port at once. */
#include "test.h"

#include "cm/ports.h"

#include <errno.h>

#define TCP 0x0106
#define UDP 0x0111

#define V4(d)                                                                  \
	{                                                                      \
		{[10] = 0xff, 0xff, 10, 0, 0, d}, false, false                 \
	}
#define V6(d)                                                                  \
	{                                                                      \
		{0x20, [15] = d}, false, false                                 \
	}
#define ANY4                                                                   \
	{                                                                      \
		{0}, true, false                                               \
	}
#define ANY6                                                                   \
	{                                                                      \
		{0}, false, true                                               \
	}
#define ANY                                                                    \
	{                                                                      \
		{0}, true, true                                                \
	}

static void two_bindings_clash_where_their_addresses_meet(void **state)
{
	static const struct {
		struct ports_want a, b;
		bool clash;
	} rows[] = {
		{{TCP, 5, V4(1)}, {TCP, 5, V4(1)}, true},
		{{TCP, 5, V4(1)}, {TCP, 5, V4(2)}, false},
		{{TCP, 5, V4(1)}, {TCP, 6, V4(1)}, false},
		{{TCP, 5, V4(1)}, {UDP, 5, V4(1)}, false},
		{{TCP, 5, V4(1)}, {TCP, 5, ANY4}, true},
		{{TCP, 5, V4(1)}, {TCP, 5, ANY6}, false},
		{{TCP, 5, V4(1)}, {TCP, 5, ANY}, true},
		{{TCP, 5, V6(1)}, {TCP, 5, ANY4}, false},
		{{TCP, 5, V6(1)}, {TCP, 5, ANY6}, true},
		{{TCP, 5, V6(1)}, {TCP, 5, V4(1)}, false},
		{{TCP, 5, ANY4}, {TCP, 5, ANY6}, false},
		{{TCP, 5, ANY}, {TCP, 5, ANY6}, true},
		{{TCP, 5, ANY4}, {TCP, 5, ANY4}, true},
		{{TCP, 5, V4(1), true}, {TCP, 5, V4(1), true}, false},
		{{TCP, 5, V4(1), true}, {TCP, 5, V4(1), false}, true},
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++)
		for (int swap = 0; swap <= 1; swap++) {
			struct ports *p = ports_new(4);
			uint32_t one, two;
			uint16_t port;

			assert_int_equal(
				ports_bind(p, swap ? &rows[i].b : &rows[i].a, 0,
					   &one, &port),
				0);
			if (ports_bind(p, swap ? &rows[i].a : &rows[i].b, 0,
				       &two, &port) !=
			    (rows[i].clash ? -EADDRINUSE : 0))
				fail_msg("row %zu", i);
			ports_unbind(p, one);
			ports_free(p);
		}
}

static void one_of_the_users_of_a_shared_port_listens(void **state)
{
	static const struct ports_want want = {TCP, 5, V4(1), true};
	struct ports *p = ports_new(4);
	uint32_t one, two;
	uint16_t port;

	assert_int_equal(ports_bind(p, &want, 0, &one, &port), 0);
	assert_int_equal(ports_bind(p, &want, 0, &two, &port), 0);
	assert_int_equal(ports_listen(p, one), 0);
	assert_int_equal(ports_listen(p, two), -EADDRINUSE);
	ports_unbind(p, one);
	assert_int_equal(ports_listen(p, two), 0);
	ports_free(p);
}

static void
every_ephemeral_port_is_given_once_and_again_when_freed(void **state)
{
	enum { SPAN = PORTS_EPHEMERAL_LAST - PORTS_EPHEMERAL_FIRST + 1 };
	static const struct ports_want want = {TCP, 0, ANY, true};
	static bool seen[65536];
	struct ports *p = ports_new(SPAN + 1);
	uint32_t binding = 0;
	uint16_t port;

	for (uint32_t i = 0; i < SPAN; i++) {
		/* Most searches begin at a free port, so that the test is
		 * short. */
		uint32_t random = i % 64 == 0		? i * 7919u
				  : i < PORTS_PREFERRED ? i
							: i - PORTS_PREFERRED;

		assert_int_equal(ports_bind(p, &want, random, &binding, &port),
				 0);
		assert_uint_in_range(port,
				     i < PORTS_PREFERRED
					     ? PORTS_EPHEMERAL_LAST + 1 -
						       PORTS_PREFERRED
					     : PORTS_EPHEMERAL_FIRST,
				     PORTS_EPHEMERAL_LAST);
		assert_false(seen[port]);
		seen[port] = true;
	}
	assert_int_equal(ports_bind(p, &want, 1, &binding, &port), -EADDRINUSE);
	ports_unbind(p, 5);
	assert_int_equal(ports_bind(p, &want, 1, &binding, &port), 0);
	assert_int_equal(binding, 5);
	ports_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_bindings_clash_where_their_addresses_meet),
		cmocka_unit_test(one_of_the_users_of_a_shared_port_listens),
		cmocka_unit_test(
			every_ephemeral_port_is_given_once_and_again_when_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
