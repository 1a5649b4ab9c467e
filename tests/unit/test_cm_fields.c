/* SPDX-License-Identifier: BSD-2-Clause */
/* broker/cm_fields: the fields that a client sets go into the CM's messages,
 * and the client gets the fields of a peer's message, by IP addresses and by
 * GIDs. */
#include "test.h"

#include "broker/cm_fields.h"

enum { REQ_ROOM = 92, SIDR_ROOM = 216 };

static const struct cmproto_path there = {.local_lid = 5,
					  .remote_lid = 9,
					  .pkey = 0x8001,
					  .sl = 3,
					  .mtu = 4,
					  .rate = 7,
					  .life_time = 12,
					  .traffic_class = 21,
					  .hop_limit = 64,
					  .is_global = 1};

/* Returns a client's message as it arrives at the peer. */
static struct cmmsg carry_message(const struct cmproto *m, enum cmmsg_kind kind)
{
	struct cmmsg sent = {.kind = kind}, got;
	uint8_t mad[256];

	cm_fields_fill(&sent, m);
	sent.service_id = cmmsg_service_id(0x106, 4791);
	memset(sent.private_data, 0x5a, cmmsg_private_bytes(kind));
	cmmsg_write(mad, &sent);
	assert_true(cmmsg_parse(mad, sizeof(mad), &got));
	return got;
}

static void a_path_of_gids_arrives_turned_round(void **state)
{
	struct cmproto m = {.is_ib = 1,
			    .path = there,
			    .qp.mtu = there.mtu,
			    .qp.ack_timeout = there.life_time + 1};
	struct cmmsg req = carry_message(&m, CMMSG_REQ);
	struct cmproto got = {.is_ib = 1};

	assert_int_equal(req.primary.local_lid, 5);
	assert_int_equal(req.primary.remote_lid, 9);
	assert_int_equal(req.primary.subnet_local, 0);
	assert_int_equal(req.qp.pkey, 0x8001);
	cm_fields_take(&got, &req);
	assert_int_equal(got.path.local_lid, 9);
	assert_int_equal(got.path.remote_lid, 5);
	got.path.local_lid = 5;
	got.path.remote_lid = 9;
	assert_memory_equal(&got.path, &there, sizeof(there));
}

static void an_alternate_path_arrives_turned_round(void **state)
{
	static const uint8_t here[16] = {0xfe, 0x80, [15] = 1};
	static const uint8_t far[16] = {0xfe, 0x80, [15] = 2};
	struct cmproto m = {.is_ib = 1,
			    .path = there,
			    .qp.mtu = there.mtu,
			    .alternate = {.path = there, .ack_timeout = 19}};
	struct cmproto got = {.is_ib = 1};
	struct cmmsg req;

	m.alternate.path.local_lid = 6;
	m.alternate.path.remote_lid = 10;
	m.alternate.path.sl = 1;
	memcpy(m.alternate.local, here, 16);
	memcpy(m.alternate.peer, far, 16);
	req = carry_message(&m, CMMSG_REQ);
	assert_int_equal(req.alternate.local_lid, 6);
	assert_memory_equal(req.alternate.local_gid, here, 16);
	assert_memory_equal(req.alternate.remote_gid, far, 16);
	cm_fields_take(&got, &req);
	assert_int_equal(got.alternate.path.local_lid, 10);
	assert_int_equal(got.alternate.path.remote_lid, 6);
	assert_int_equal(got.alternate.path.sl, 1);
	assert_int_equal(got.alternate.path.pkey, there.pkey);
	assert_int_equal(got.alternate.path.mtu, there.mtu);
	assert_int_equal(got.alternate.ack_timeout, 19);
	assert_memory_equal(got.alternate.local, far, 16);
	assert_memory_equal(got.alternate.peer, here, 16);
	/* a REQ without an alternate path leaves all fields of that path 0 */
	m.alternate.path.remote_lid = 0;
	req = carry_message(&m, CMMSG_REQ);
	got = (struct cmproto){.is_ib = 1};
	cm_fields_take(&got, &req);
	assert_memory_equal(&got.alternate, &(struct cmproto_alternate){0},
			    sizeof(got.alternate));
}

static void a_reply_says_what_becomes_of_the_alternate_path(void **state)
{
	struct cmproto m = {.is_ib = 1}, got = {.is_ib = 1};
	struct cmmsg rep = carry_message(&m, CMMSG_REP);

	assert_int_equal(rep.failover, CMMSG_FAILOVER_ACCEPTED);
	m.alternate.failover = 2; /* rejected for another reason */
	rep = carry_message(&m, CMMSG_REP);
	cm_fields_take(&got, &rep);
	assert_int_equal(got.alternate.failover, 2);
	m.is_ib = 0;
	rep = carry_message(&m, CMMSG_REP);
	assert_int_equal(rep.failover, CMMSG_FAILOVER_UNSUPPORTED);
}

static void a_path_within_a_subnet_needs_no_grh(void **state)
{
	struct cmproto m = {.is_ib = 1, .path = there}, got = {.is_ib = 1};
	struct cmmsg req;

	m.path.is_global = 0;
	req = carry_message(&m, CMMSG_REQ);
	assert_int_equal(req.primary.subnet_local, 1);
	cm_fields_take(&got, &req);
	assert_int_equal(got.path.is_global, 0);
	assert_int_equal(got.path.life_time, 0); /* no ack_timeout */
}

static void requests_by_gid_have_all_private_data(void **state)
{
	static const struct {
		enum cmmsg_kind kind;
		uint8_t room;
	} kinds[] = {{CMMSG_REQ, REQ_ROOM}, {CMMSG_SIDR_REQ, SIDR_ROOM}};

	for (size_t i = 0; i < TEST_COUNT(kinds); i++) {
		struct cmproto m = {.is_ib = 1, .path = there};
		struct cmproto got = {.is_ib = 1};
		struct cmmsg msg = carry_message(&m, kinds[i].kind);

		cm_fields_take(&got, &msg);
		assert_int_equal(got.private_bytes, kinds[i].room);
		assert_int_equal(got.private_data[0], 0x5a);
		assert_int_equal(got.private_data[kinds[i].room - 1], 0x5a);
		assert_int_equal(got.at.local_port, 4791);
		assert_int_equal(got.at.peer_port, 0);
		assert_int_equal(got.is_datagram, i);
		/* by IP addresses, a header precedes the private data */
		got = (struct cmproto){0};
		cm_fields_take(&got, &msg);
		assert_int_equal(got.private_bytes,
				 kinds[i].room - CMMSG_IP_BYTES);
	}
}

static void a_request_by_ip_names_no_path(void **state)
{
	struct cmproto m = {.path = there, .qp.hop_limit = 1};
	struct cmproto got = {0};
	struct cmmsg req = carry_message(&m, CMMSG_REQ);

	assert_int_equal(req.primary.local_lid, 0);
	assert_int_equal(req.primary.sl, 0);
	assert_int_equal(req.primary.rate, 0);
	assert_int_equal(req.primary.hop_limit, 1);
	assert_int_equal(req.qp.pkey, 0xffff);
	cm_fields_take(&got, &req);
	assert_memory_equal(&got.path, &(struct cmproto_path){0},
			    sizeof(got.path));
}

static void fields_are_cut_to_their_width(void **state)
{
	struct cmproto m = {.is_ib = 1};
	struct cmmsg req;

	memset(&m.path, 0xff, sizeof(m.path));
	req = carry_message(&m, CMMSG_REQ);
	assert_int_equal(req.primary.sl, 15);
	assert_int_equal(req.primary.rate, 63);
	assert_int_equal(req.primary.subnet_local, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_of_gids_arrives_turned_round),
		cmocka_unit_test(an_alternate_path_arrives_turned_round),
		cmocka_unit_test(
			a_reply_says_what_becomes_of_the_alternate_path),
		cmocka_unit_test(a_path_within_a_subnet_needs_no_grh),
		cmocka_unit_test(requests_by_gid_have_all_private_data),
		cmocka_unit_test(a_request_by_ip_names_no_path),
		cmocka_unit_test(fields_are_cut_to_their_width),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
