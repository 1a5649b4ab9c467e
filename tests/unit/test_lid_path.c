/* SPDX-License-Identifier: BSD-2-Clause */
/* host/lid_path: a path that a program asks for has the attributes of its port,
 * and an impossible path is refused with a reason. */
#include "test.h"

#include <errno.h>
#include <string.h>

#include "host/lid_path.h"
#include "log/log.h"

#define PREFIX 0xfe80000000000000u

/* Returns a device with two ports.  Port 1 has one GID, at index 0.  Port 2 has
 * an MTU of 1024, and GIDs at the indices 0 and 2. */
static struct device two_ports(void)
{
	struct device d = {
		.name = "advib0", .kind = DEVICE_IB, .port_count = 2};

	for (uint32_t i = 0; i < 2; i++) {
		d.ports[i].subnet = (struct fabric_port){
			.guids = {0x11 + i, 0, i ? 0x22 : 0},
			.gid_prefix = PREFIX,
			.state = 2};
		d.ports[i].active_mtu = 5 - 2 * i;
	}
	return d;
}

static int find_path(const struct hca_ah *ah, struct wq_to *to)
{
	static struct device d;
	const char *why = NULL;
	int err;

	d = two_ports();
	err = lid_path_find(&d, ah, to, &why);
	assert_true(!err || (err == -EINVAL && why));
	return err;
}

static void a_datagram_goes_to_its_lid(void **state)
{
	struct hca_ah ah = {
		.dlid = 7, .sl = 3, .src_path_bits = 2, .port_num = 2};
	static const uint8_t none[16];
	struct wq_to to;

	assert_int_equal(find_path(&ah, &to), 0);
	assert_int_equal(to.lid.dlid, 7);
	assert_int_equal(to.lid.sl, 3);
	assert_int_equal(to.lid.path_bits, 2);
	assert_int_equal(to.lid.port_num, 2);
	assert_int_equal(to.mtu, 3);
	assert_false(to.has_grh);
	assert_memory_equal(to.from, none, 16);
}

static void a_grh_has_the_gids_of_both_ports(void **state)
{
	static const uint8_t mine[16] = {0xfe, 0x80, [15] = 0x22};
	struct hca_ah ah = {.dlid = 7,
			    .is_global = 1,
			    .dgid = {0xfe, 0x80, [15] = 0x44},
			    .sgid_index = 2,
			    .flow_label = 0xabcde,
			    .traffic_class = 8,
			    .hop_limit = 9,
			    .port_num = 2};
	struct wq_to to;

	assert_int_equal(find_path(&ah, &to), 0);
	assert_true(to.has_grh);
	assert_memory_equal(to.from, mine, 16);
	assert_memory_equal(to.to, ah.dgid, 16);
	assert_int_equal(to.flow_label, 0xabcde);
	assert_int_equal(to.tos, 8);
	assert_int_equal(to.ttl, 9);
	ah.sgid_index = 1;
	assert_int_equal(find_path(&ah, &to), -EINVAL);
	ah.sgid_index = 255;
	assert_int_equal(find_path(&ah, &to), -EINVAL);
	/* port 1 has one GID */
	ah.sgid_index = 2;
	ah.port_num = 1;
	assert_int_equal(find_path(&ah, &to), -EINVAL);
}

static void a_path_that_cannot_be_is_refused(void **state)
{
	static const struct {
		struct hca_ah ah;
		int err;
	} rows[] = {
		{{.dlid = 1, .port_num = 1}, 0},
		{{.dlid = 1, .port_num = 0}, -EINVAL},
		{{.dlid = 1, .port_num = 3}, -EINVAL},
		{{.dlid = 0, .port_num = 1}, -EINVAL},
		{{.dlid = 0xbfff, .port_num = 1}, 0},
		{{.dlid = 0xc000, .port_num = 1}, -EINVAL},
		{{.dlid = 0xc000, .port_num = 1, .is_global = 1}, 0},
		{{.dlid = 0xffff, .port_num = 1, .is_global = 1}, -EINVAL},
		{{.dlid = 1, .port_num = 1, .sl = 15}, 0},
		{{.dlid = 1, .port_num = 1, .sl = 16}, -EINVAL},
	};
	struct wq_to to;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_int_equal(find_path(&rows[i].ah, &to), rows[i].err);
}

static int set_path(struct hca_qp_attr *attr, uint32_t mask)
{
	static struct device d;
	const char *why = NULL;
	int err;

	d = two_ports();
	err = lid_path_set(&d, attr, mask, &why);
	assert_true(!err || (err == -EINVAL && why));
	return err;
}

static void a_queue_pair_has_a_port_of_the_device(void **state)
{
	struct hca_qp_attr attr = {.port_num = 2};

	assert_int_equal(set_path(&attr, HCA_QP_PORT), 0);
	attr.port_num = 3;
	assert_int_equal(set_path(&attr, HCA_QP_PORT), -EINVAL);
	attr.port_num = 0;
	assert_int_equal(set_path(&attr, HCA_QP_PORT), -EINVAL);
	assert_int_equal(set_path(&attr, HCA_QP_STATE), 0);
}

static void a_connection_has_the_mtu_of_its_port(void **state)
{
	struct hca_qp_attr attr = {.path_mtu = 3,
				   .ah = {.dlid = 5, .port_num = 2}};
	uint32_t mask = HCA_QP_AV | HCA_QP_PATH_MTU;

	assert_int_equal(set_path(&attr, mask), 0);
	attr.path_mtu = 4;
	assert_int_equal(set_path(&attr, mask), -EINVAL);
	attr.ah.port_num = 1;
	assert_int_equal(set_path(&attr, mask), 0);
	attr.ah.port_num = 0;
	assert_int_equal(set_path(&attr, mask), -EINVAL);
}

/* lid_path_set overwrites the members of struct hca_ah that the host fills in
 * (hca/qp.h). */
static void the_host_fills_in_its_members(void **state)
{
	static const uint8_t mine[16] = {0xfe, 0x80, [15] = 0x11};
	struct hca_qp_attr attr = {.ah = {.dlid = 5,
					  .port_num = 1,
					  .is_global = 1,
					  .local = 1,
					  .bursts = 1,
					  .port = 4}};

	assert_int_equal(set_path(&attr, HCA_QP_AV), 0);
	assert_memory_equal(attr.ah.sgid, mine, 16);
	assert_int_equal(attr.ah.local + attr.ah.bursts + attr.ah.port, 0);
	attr.ah.sgid_index = 1;
	assert_int_equal(set_path(&attr, HCA_QP_AV), -EINVAL);
}

static void an_alternate_path_leaves_by_its_port(void **state)
{
	static const uint8_t mine[16] = {0xfe, 0x80, [15] = 0x22};
	struct hca_qp_attr attr = {.alt_ah = {.dlid = 5,
					      .port_num = 2,
					      .is_global = 1,
					      .sgid_index = 2,
					      .local = 1,
					      .bursts = 1,
					      .port = 4}};

	assert_int_equal(set_path(&attr, HCA_QP_ALT_PATH), 0);
	assert_memory_equal(attr.alt_ah.sgid, mine, 16);
	assert_int_equal(
		attr.alt_ah.local + attr.alt_ah.bursts + attr.alt_ah.port, 0);
	attr.alt_ah.sgid_index = 1;
	assert_int_equal(set_path(&attr, HCA_QP_ALT_PATH), -EINVAL);
	attr.alt_ah.sgid_index = 0;
	attr.alt_ah.port_num = 3;
	assert_int_equal(set_path(&attr, HCA_QP_ALT_PATH), -EINVAL);
	assert_int_equal(set_path(&attr, HCA_QP_STATE), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_datagram_goes_to_its_lid),
		cmocka_unit_test(a_grh_has_the_gids_of_both_ports),
		cmocka_unit_test(a_path_that_cannot_be_is_refused),
		cmocka_unit_test(a_queue_pair_has_a_port_of_the_device),
		cmocka_unit_test(a_connection_has_the_mtu_of_its_port),
		cmocka_unit_test(an_alternate_path_leaves_by_its_port),
		cmocka_unit_test(the_host_fills_in_its_members),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
