/* SPDX-License-Identifier: BSD-2-Clause */
/* rdmacm/ib_header: the IP addresses that precede the private data of a
 * request, from a peer that may write anything. */
#include "test.h"

#include "rdmacm/ib.h"

#include <string.h>

static struct r_id id_of(uint16_t port)
{
	struct r_id id = {0};
	struct rdma_addr *a = &id.base.route.addr;
	uint8_t ip[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1};

	r_addr_make(&a->src_addr, ip, port);
	ip[15] = 2;
	r_addr_make(&a->dst_addr, ip, 7471);
	return id;
}

static void a_header_arrives_as_it_was_put(void **state)
{
	const struct r_id id = id_of(4321);
	struct cmproto m = {.private_bytes = 3, .private_data = "ab"};
	struct cmmsg_ip ip;

	r_ib_put_header(&id, &m);
	assert_int_equal(m.private_bytes, CMMSG_IP_BYTES + 3);
	assert_true(r_ib_take_header(&m, &ip));
	assert_int_equal(m.private_bytes, 3);
	assert_string_equal((const char *)m.private_data, "ab");
	assert_int_equal(ip.src_port, 4321);
	assert_int_equal(ip.src[15], 1);
	assert_int_equal(ip.dst[15], 2);
}

static void a_request_without_a_header_is_refused(void **state)
{
	const struct r_id id = id_of(4321);
	struct cmproto m = {0}, bad;
	struct cmmsg_ip ip;

	r_ib_put_header(&id, &m);
	bad = m;
	bad.private_bytes = CMMSG_IP_BYTES - 1;
	assert_false(r_ib_take_header(&bad, &ip));
	for (int version = 0; version < 16; version++) {
		bad = m;
		bad.private_data[1] = (uint8_t)(version << 4);
		assert_int_equal(r_ib_take_header(&bad, &ip),
				 version == 4 || version == 6);
	}
	bad = m;
	bad.private_data[0] = 1; /* another version of the header */
	assert_false(r_ib_take_header(&bad, &ip));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_header_arrives_as_it_was_put),
		cmocka_unit_test(a_request_without_a_header_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
