/* SPDX-License-Identifier: BSD-2-Clause */
/* shim/nldev: answers to requests of NETLINK_RDMA about devices that the test
 * defines: one of RoCE, one of iWARP and one of InfiniBand. */
#include "test.h"
#include "shim/nldev.h"

#include <errno.h>
#include <rdma/rdma_netlink.h>

#define GET	 RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET)
#define PORT_GET RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_PORT_GET)
#define SEQ	 77
#define PORTID	 4711

static const struct device devices[] = {
	{.index = 0,
	 .name = "adv0",
	 .firmware = "1.0",
	 .node_guid = 0x0002c9fffe000001,
	 .image_guid = 0x0002c9fffe000002,
	 .node_type = 1,
	 .port_count = 1,
	 .ports = {{.state = 4, .phys_state = 5}},
	 .netdev = "eth0",
	 .ifindex = 2},
	{.index = 1,
	 .name = "iw0",
	 .firmware = "1.0",
	 .node_type = 4,
	 .port_count = 1,
	 .ports = {{.state = 1}}},
};

/* An InfiniBand device with two ports, about which ask_adapter asks. */
static const struct device adapter = {
	.name = "advib0",
	.node_type = 1,
	.is_ib = true,
	.port_count = 2,
	.ports = {{.state = 4, .lid = 7},
		  {.state = 2,
		   .lid = 9,
		   .sm_lid = 3,
		   .lmc = 1,
		   .capabilities = 0x80000001,
		   .gid_prefix = 0xfe80000000000000}},
};

struct request {
	struct nlmsghdr h;
	struct {
		struct nlattr a;
		uint32_t value;
	} attr[2];
};

static struct nldev_answer answer;

/* Sends a request, with a device index and a port unless they are negative. */
static void send_request(uint16_t type, uint16_t flags, int index, int port)
{
	struct request r = {
		.h = {.nlmsg_len = NLMSG_HDRLEN,
		      .nlmsg_type = type,
		      .nlmsg_flags = (uint16_t)(flags | NLM_F_REQUEST),
		      .nlmsg_seq = SEQ},
	};
	const int values[] = {index, port};
	const uint16_t types[] = {RDMA_NLDEV_ATTR_DEV_INDEX,
				  RDMA_NLDEV_ATTR_PORT_INDEX};
	int n = 0;

	for (int i = 0; i < 2; i++) {
		if (values[i] < 0)
			continue;
		r.attr[n].a = (struct nlattr){sizeof(r.attr[n]), types[i]};
		r.attr[n++].value = (uint32_t)values[i];
	}
	r.h.nlmsg_len += (uint32_t)(n * (int)sizeof(r.attr[0]));
	answer.size = 0;
	answer.portid = PORTID;
	nldev_answer(&answer, &r.h, devices, TEST_COUNT(devices));
}

/* Returns the message of this number, from 0 on; checks the lengths, SEQ and
 * PORTID on the way.  NULL: there are fewer. */
static const struct nlmsghdr *find_message(int number)
{
	size_t at = 0;

	while (at < answer.size) {
		const struct nlmsghdr *h = (const void *)(answer.bytes + at);

		assert_true(h->nlmsg_len >= NLMSG_HDRLEN &&
			    h->nlmsg_len <= answer.size - at);
		assert_int_equal(h->nlmsg_seq, SEQ);
		assert_int_equal(h->nlmsg_pid, PORTID);
		if (number-- == 0)
			return h;
		at += NLMSG_ALIGN(h->nlmsg_len);
	}
	return NULL;
}

/* Returns the value of an attribute; NULL: the message lacks it. */
static const void *find_attr(const struct nlmsghdr *h, uint16_t type)
{
	const char *at = (const char *)h + NLMSG_HDRLEN;
	const char *end = (const char *)h + h->nlmsg_len;

	while (at < end) {
		const struct nlattr *a = (const void *)at;

		if (a->nla_type == type)
			return at + NLA_HDRLEN;
		at += NLA_ALIGN(a->nla_len);
	}
	return NULL;
}

static uint32_t attr_u32(const struct nlmsghdr *h, uint16_t type)
{
	uint32_t value;

	assert_non_null(find_attr(h, type));
	memcpy(&value, find_attr(h, type), sizeof(value));
	return value;
}

static uint8_t attr_u8(const struct nlmsghdr *h, uint16_t type)
{
	assert_non_null(find_attr(h, type));
	return *(const uint8_t *)find_attr(h, type);
}

static int error_of(const struct nlmsghdr *h)
{
	const struct nlmsgerr *e = (const void *)(h + 1);

	assert_int_equal(h->nlmsg_type, NLMSG_ERROR);
	assert_int_equal(e->msg.nlmsg_seq, SEQ);
	return e->error;
}

static void expect_done(const struct nlmsghdr *h, int err)
{
	assert_int_equal(h->nlmsg_type, NLMSG_DONE);
	assert_int_equal(h->nlmsg_flags, NLM_F_MULTI);
	assert_memory_equal(h + 1, &err, sizeof(err));
}

static void all_devices_are_dumped(void **state)
{
	uint64_t guid;

	send_request(GET, NLM_F_DUMP | NLM_F_ACK, -1, -1);
	assert_int_equal(find_message(0)->nlmsg_type, GET);
	assert_int_equal(find_message(0)->nlmsg_flags, NLM_F_MULTI);
	assert_int_equal(attr_u32(find_message(0), RDMA_NLDEV_ATTR_DEV_INDEX),
			 0);
	assert_string_equal(
		find_attr(find_message(0), RDMA_NLDEV_ATTR_DEV_NAME), "adv0");
	assert_int_equal(attr_u32(find_message(0), RDMA_NLDEV_ATTR_PORT_INDEX),
			 1);
	assert_string_equal(
		find_attr(find_message(0), RDMA_NLDEV_ATTR_FW_VERSION), "1.0");
	memcpy(&guid, find_attr(find_message(0), RDMA_NLDEV_ATTR_NODE_GUID), 8);
	assert_int_equal(guid, 0x0002c9fffe000001);
	memcpy(&guid,
	       find_attr(find_message(0), RDMA_NLDEV_ATTR_SYS_IMAGE_GUID), 8);
	assert_int_equal(guid, 0x0002c9fffe000002);
	assert_int_equal(
		attr_u8(find_message(0), RDMA_NLDEV_ATTR_DEV_NODE_TYPE), 1);
	assert_string_equal(
		find_attr(find_message(0), RDMA_NLDEV_ATTR_DEV_PROTOCOL),
		"roce");
	assert_string_equal(
		find_attr(find_message(1), RDMA_NLDEV_ATTR_DEV_NAME), "iw0");
	assert_int_equal(
		attr_u8(find_message(1), RDMA_NLDEV_ATTR_DEV_NODE_TYPE), 4);
	assert_string_equal(
		find_attr(find_message(1), RDMA_NLDEV_ATTR_DEV_PROTOCOL), "iw");
	expect_done(find_message(2), 0);
	assert_null(find_message(3));
}

static void one_device_is_answered_and_acknowledged(void **state)
{
	send_request(GET, 0, 1, -1);
	assert_string_equal(
		find_attr(find_message(0), RDMA_NLDEV_ATTR_DEV_NAME), "iw0");
	assert_int_equal(find_message(0)->nlmsg_flags, 0);
	assert_null(find_message(1));
	send_request(GET, NLM_F_ACK, 1, -1);
	assert_int_equal(find_message(0)->nlmsg_type, GET);
	assert_int_equal(error_of(find_message(1)), 0);
	assert_null(find_message(2));
}

static void the_answer_about_a_port_has_its_state_and_interface(void **state)
{
	send_request(PORT_GET, NLM_F_ACK, 0, 1);
	assert_int_equal(find_message(0)->nlmsg_type, PORT_GET);
	assert_int_equal(attr_u8(find_message(0), RDMA_NLDEV_ATTR_PORT_STATE),
			 4);
	assert_int_equal(
		attr_u8(find_message(0), RDMA_NLDEV_ATTR_PORT_PHYS_STATE), 5);
	assert_int_equal(attr_u32(find_message(0), RDMA_NLDEV_ATTR_NDEV_INDEX),
			 2);
	assert_string_equal(
		find_attr(find_message(0), RDMA_NLDEV_ATTR_NDEV_NAME), "eth0");
	assert_null(find_attr(find_message(0), RDMA_NLDEV_ATTR_LID));
	assert_int_equal(error_of(find_message(1)), 0);
	send_request(PORT_GET, 0, 1, 1);
	assert_int_equal(attr_u8(find_message(0), RDMA_NLDEV_ATTR_PORT_STATE),
			 1);
	assert_null(find_attr(find_message(0), RDMA_NLDEV_ATTR_NDEV_NAME));
}

static void the_ports_of_one_device_are_dumped(void **state)
{
	send_request(PORT_GET, NLM_F_DUMP, 1, -1);
	assert_string_equal(
		find_attr(find_message(0), RDMA_NLDEV_ATTR_DEV_NAME), "iw0");
	expect_done(find_message(1), 0);
	send_request(PORT_GET, NLM_F_DUMP, -1, -1);
	expect_done(find_message(0), -EINVAL);
	send_request(PORT_GET, NLM_F_DUMP, 2, -1);
	expect_done(find_message(0), -ENODEV);
}

static void ask_adapter(uint16_t type, uint16_t flags, int port)
{
	struct request r = {
		.h = {.nlmsg_len = sizeof(r),
		      .nlmsg_type = type,
		      .nlmsg_flags = (uint16_t)(flags | NLM_F_REQUEST),
		      .nlmsg_seq = SEQ},
		.attr = {{{sizeof(r.attr[0]), RDMA_NLDEV_ATTR_DEV_INDEX}, 0},
			 {{sizeof(r.attr[1]), RDMA_NLDEV_ATTR_PORT_INDEX},
			  (uint32_t)port}},
	};

	answer.size = 0;
	nldev_answer(&answer, &r.h, &adapter, 1);
}

static void a_port_of_infiniband_has_its_lid(void **state)
{
	uint64_t value;

	ask_adapter(GET, 0, 1);
	assert_string_equal(
		find_attr(find_message(0), RDMA_NLDEV_ATTR_DEV_PROTOCOL), "ib");
	assert_int_equal(attr_u32(find_message(0), RDMA_NLDEV_ATTR_PORT_INDEX),
			 2);
	ask_adapter(PORT_GET, 0, 2);
	assert_int_equal(attr_u32(find_message(0), RDMA_NLDEV_ATTR_PORT_INDEX),
			 2);
	assert_int_equal(attr_u32(find_message(0), RDMA_NLDEV_ATTR_LID), 9);
	assert_int_equal(attr_u32(find_message(0), RDMA_NLDEV_ATTR_SM_LID), 3);
	assert_int_equal(attr_u8(find_message(0), RDMA_NLDEV_ATTR_LMC), 1);
	assert_int_equal(attr_u8(find_message(0), RDMA_NLDEV_ATTR_PORT_STATE),
			 2);
	memcpy(&value,
	       find_attr(find_message(0), RDMA_NLDEV_ATTR_SUBNET_PREFIX), 8);
	assert_int_equal(value, 0xfe80000000000000);
	memcpy(&value, find_attr(find_message(0), RDMA_NLDEV_ATTR_CAP_FLAGS),
	       8);
	assert_int_equal(value, 0x80000001);
	assert_null(find_attr(find_message(0), RDMA_NLDEV_ATTR_NDEV_NAME));
	ask_adapter(PORT_GET, NLM_F_DUMP, 1);
	assert_int_equal(attr_u32(find_message(0), RDMA_NLDEV_ATTR_LID), 7);
	assert_int_equal(attr_u32(find_message(1), RDMA_NLDEV_ATTR_LID), 9);
	expect_done(find_message(2), 0);
	for (int port = 0; port <= 3; port += 3) {
		ask_adapter(PORT_GET, 0, port);
		assert_int_equal(error_of(find_message(0)), -EINVAL);
	}
}

static void a_request_for_no_existing_device_or_port_is_einval(void **state)
{
	static const int rows[][3] = {
		{GET, -1, -1},	      {GET, 2, -1},	{PORT_GET, 0, -1},
		{PORT_GET, 0, 0},     {PORT_GET, 0, 2}, {PORT_GET, -1, 1},
		{GET, INT32_MAX, -1},
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		send_request((uint16_t)rows[i][0], 0, rows[i][1], rows[i][2]);
		assert_int_equal(error_of(find_message(0)), -EINVAL);
		assert_null(find_message(1));
	}
}

static void other_requests_are_refused_with_an_explanation(void **state)
{
	static const uint16_t types[] = {
		RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_GET),
		RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_NEWLINK),
		RDMA_NL_GET_TYPE(RDMA_NL_LS, RDMA_NLDEV_CMD_GET),
		UINT16_MAX,
	};
	const char *said;

	for (size_t i = 0; i < TEST_COUNT(types); i++) {
		answer.explains = false;
		send_request(types[i], NLM_F_DUMP, -1, -1);
		assert_int_equal(error_of(find_message(0)), -EOPNOTSUPP);
		assert_int_equal(find_message(0)->nlmsg_flags, NLM_F_CAPPED);
		answer.explains = true;
		send_request(types[i], 0, -1, -1);
		assert_int_equal(find_message(0)->nlmsg_flags,
				 NLM_F_CAPPED | NLM_F_ACK_TLVS);
		said = (const char *)(find_message(0) + 1) +
		       sizeof(struct nlmsgerr) + NLA_HDRLEN;
		assert_non_null(strstr(said, "adverb answers"));
		assert_null(find_message(1));
	}
	answer.explains = false;
}

static void a_message_that_is_no_request_is_acknowledged_at_most(void **state)
{
	struct nlmsghdr h = {.nlmsg_len = NLMSG_HDRLEN,
			     .nlmsg_type = NLMSG_NOOP,
			     .nlmsg_flags = NLM_F_REQUEST,
			     .nlmsg_seq = SEQ};

	answer.size = 0;
	nldev_answer(&answer, &h, devices, 2);
	assert_null(find_message(0));
	h.nlmsg_type = GET;
	h.nlmsg_flags = NLM_F_ACK;
	nldev_answer(&answer, &h, devices, 2);
	assert_int_equal(error_of(find_message(0)), 0);
}

/* The attributes are cut off, too long, or too short. */
static void attributes_with_wrong_lengths_are_refused(void **state)
{
	struct request r;

	for (uint16_t len = 0; len < 64; len++) {
		memset(&r, 0, sizeof(r));
		r.h = (struct nlmsghdr){.nlmsg_len = NLMSG_HDRLEN + 8,
					.nlmsg_type = GET,
					.nlmsg_flags = NLM_F_REQUEST,
					.nlmsg_seq = SEQ};
		r.attr[0].a = (struct nlattr){len, RDMA_NLDEV_ATTR_DEV_INDEX};
		answer.size = 0;
		nldev_answer(&answer, &r.h, devices, 2);
		assert_int_equal(find_message(0)->nlmsg_type,
				 len == 8 ? GET : NLMSG_ERROR);
	}
	for (uint32_t len = NLMSG_HDRLEN; len < NLMSG_HDRLEN + 8; len++) {
		r.h.nlmsg_len = len;
		r.attr[0].a.nla_len = 8;
		answer.size = 0;
		nldev_answer(&answer, &r.h, devices, 2);
		assert_int_equal(error_of(find_message(0)), -EINVAL);
	}
}

static void an_answer_fits_as_many_devices_as_there_can_be(void **state)
{
	static struct device many[DEVICE_MOST];
	struct nlmsghdr h = {.nlmsg_len = NLMSG_HDRLEN,
			     .nlmsg_type = GET,
			     .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
			     .nlmsg_seq = SEQ};

	for (int i = 0; i < DEVICE_MOST; i++) {
		memset(many[i].name, 'n', sizeof(many[i].name) - 1);
		memset(many[i].firmware, 'f', sizeof(many[i].firmware) - 1);
	}
	answer.size = 0;
	nldev_answer(&answer, &h, many, DEVICE_MOST);
	expect_done(find_message(DEVICE_MOST), 0);
}

/* A reader goes from message to message by the lengths of the messages, and
 * would stay for ever at a message of length 0. */
static void each_message_has_its_length_if_there_is_no_room(void **state)
{
	static const uint16_t flags[] = {NLM_F_REQUEST,
					 NLM_F_REQUEST | NLM_F_DUMP,
					 NLM_F_REQUEST | NLM_F_ACK};
	struct nlmsghdr h = {.nlmsg_len = NLMSG_HDRLEN, .nlmsg_seq = SEQ};

	for (size_t i = 0; i < TEST_COUNT(flags); i++)
		for (size_t room = 0; room < 256; room += NLMSG_ALIGNTO) {
			size_t at = sizeof(answer.bytes) - room;

			h.nlmsg_type = i == 2 ? PORT_GET + 1 : GET;
			h.nlmsg_flags = flags[i];
			answer.size = at;
			nldev_answer(&answer, &h, devices, 2);
			while (at < answer.size) {
				const struct nlmsghdr *m =
					(const void *)(answer.bytes + at);

				assert_true(m->nlmsg_len >= NLMSG_HDRLEN);
				at += NLMSG_ALIGN(m->nlmsg_len);
			}
			assert_int_equal(at, answer.size);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_devices_are_dumped),
		cmocka_unit_test(one_device_is_answered_and_acknowledged),
		cmocka_unit_test(
			the_answer_about_a_port_has_its_state_and_interface),
		cmocka_unit_test(the_ports_of_one_device_are_dumped),
		cmocka_unit_test(a_port_of_infiniband_has_its_lid),
		cmocka_unit_test(
			a_request_for_no_existing_device_or_port_is_einval),
		cmocka_unit_test(
			other_requests_are_refused_with_an_explanation),
		cmocka_unit_test(
			a_message_that_is_no_request_is_acknowledged_at_most),
		cmocka_unit_test(attributes_with_wrong_lengths_are_refused),
		cmocka_unit_test(
			an_answer_fits_as_many_devices_as_there_can_be),
		cmocka_unit_test(
			each_message_has_its_length_if_there_is_no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
