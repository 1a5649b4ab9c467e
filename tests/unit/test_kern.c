/* SPDX-License-Identifier: BSD-2-Clause */
/* verbs/kern: a field arrives unchanged in the struct of the other ABI, the
 * kernel's or libibverbs'. */
#include "test.h"

#include "verbs/kern.h"

/* Every byte differs from its neighbours, so that a field that is copied to a
 * wrong place is found. */
static void fill_bytes(void *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		((uint8_t *)data)[i] = (uint8_t)(i + 1);
}

static void an_address_arrives_whole(void **state)
{
	struct ib_uverbs_ah_attr from;
	struct ibv_ah_attr to = {0};

	fill_bytes(&from, sizeof(from));
	ibv_copy_ah_attr_from_kern(&to, &from);
	assert_memory_equal(to.grh.dgid.raw, from.grh.dgid, 16);
	assert_int_equal(to.grh.flow_label, from.grh.flow_label);
	assert_int_equal(to.grh.sgid_index, from.grh.sgid_index);
	assert_int_equal(to.grh.hop_limit, from.grh.hop_limit);
	assert_int_equal(to.grh.traffic_class, from.grh.traffic_class);
	assert_int_equal(to.dlid, from.dlid);
	assert_int_equal(to.sl, from.sl);
	assert_int_equal(to.src_path_bits, from.src_path_bits);
	assert_int_equal(to.static_rate, from.static_rate);
	assert_int_equal(to.is_global, from.is_global);
	assert_int_equal(to.port_num, from.port_num);
}

static void attributes_of_a_qp_arrive_whole(void **state)
{
	struct ib_uverbs_qp_attr from;
	struct ibv_ah_attr address = {0};
	struct ibv_qp_attr to;

	memset(&to, 0, sizeof(to));
	fill_bytes(&from, sizeof(from));
	ibv_copy_qp_attr_from_kern(&to, &from);
	assert_int_equal(to.qp_state, from.qp_state);
	assert_int_equal(to.cur_qp_state, from.cur_qp_state);
	assert_int_equal(to.path_mtu, from.path_mtu);
	assert_int_equal(to.path_mig_state, from.path_mig_state);
	assert_int_equal(to.qkey, from.qkey);
	assert_int_equal(to.rq_psn, from.rq_psn);
	assert_int_equal(to.sq_psn, from.sq_psn);
	assert_int_equal(to.dest_qp_num, from.dest_qp_num);
	assert_int_equal(to.qp_access_flags, from.qp_access_flags);
	assert_int_equal(to.cap.max_send_wr, from.max_send_wr);
	assert_int_equal(to.cap.max_recv_wr, from.max_recv_wr);
	assert_int_equal(to.cap.max_send_sge, from.max_send_sge);
	assert_int_equal(to.cap.max_recv_sge, from.max_recv_sge);
	assert_int_equal(to.cap.max_inline_data, from.max_inline_data);
	assert_int_equal(to.pkey_index, from.pkey_index);
	assert_int_equal(to.alt_pkey_index, from.alt_pkey_index);
	assert_int_equal(to.en_sqd_async_notify, from.en_sqd_async_notify);
	assert_int_equal(to.sq_draining, from.sq_draining);
	assert_int_equal(to.max_rd_atomic, from.max_rd_atomic);
	assert_int_equal(to.max_dest_rd_atomic, from.max_dest_rd_atomic);
	assert_int_equal(to.min_rnr_timer, from.min_rnr_timer);
	assert_int_equal(to.port_num, from.port_num);
	assert_int_equal(to.timeout, from.timeout);
	assert_int_equal(to.retry_cnt, from.retry_cnt);
	assert_int_equal(to.rnr_retry, from.rnr_retry);
	assert_int_equal(to.alt_port_num, from.alt_port_num);
	assert_int_equal(to.alt_timeout, from.alt_timeout);
	ibv_copy_ah_attr_from_kern(&address, &from.ah_attr);
	assert_memory_equal(&to.ah_attr, &address, sizeof(address));
	ibv_copy_ah_attr_from_kern(&address, &from.alt_ah_attr);
	assert_memory_equal(&to.alt_ah_attr, &address, sizeof(address));
}

static void a_path_comes_back_as_it_went(void **state)
{
	struct ib_user_path_rec from, back = {0};
	struct ibv_sa_path_rec to = {0};

	fill_bytes(&from, sizeof(from));
	from.mtu = 4; /* one byte in struct ibv_sa_path_rec */
	ibv_copy_path_rec_from_kern(&to, &from);
	assert_memory_equal(to.dgid.raw, from.dgid, 16);
	assert_memory_equal(to.sgid.raw, from.sgid, 16);
	assert_int_equal(to.hop_limit, from.hop_limit);
	assert_int_equal(to.packet_life_time, from.packet_life_time);
	ibv_copy_path_rec_to_kern(&back, &to);
	assert_memory_equal(&back, &from, sizeof(from));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_arrives_whole),
		cmocka_unit_test(attributes_of_a_qp_arrive_whole),
		cmocka_unit_test(a_path_comes_back_as_it_went),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
