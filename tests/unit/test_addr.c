/* SPDX-License-Identifier: BSD-2-Clause */
/* rdmacm/addr and rdma_getaddrinfo: addresses that are GIDs (AF_IB). */
#include "test.h"

#include "rdmacm/object.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#define GID "fe80::2:c903:0:1"

static const uint8_t gid[16] = {0xfe, 0x80, [9] = 2, 0xc9, 3, [15] = 1};

static struct sockaddr_ib made_ib(uint64_t space, uint16_t port)
{
	struct sockaddr_ib ib;

	memset(&ib, 0xff, sizeof(ib));
	r_addr_make_ib((struct sockaddr *)&ib, gid, space, port, 0x8001);
	return ib;
}

static void a_gid_has_a_service_id_of_space_and_port(void **state)
{
	struct sockaddr_ib ib = made_ib(RDMA_PS_TCP, 7471);
	const struct sockaddr *a = (struct sockaddr *)&ib;
	uint8_t ip[16];

	assert_true(r_addr_is_known(a) && r_addr_is_ib(a));
	assert_int_equal(r_addr_size(a), sizeof(ib));
	assert_int_equal(be64toh(ib.sib_sid), 0x0106 << 16 | 7471);
	assert_int_equal(r_addr_space(a), RDMA_PS_TCP);
	assert_int_equal(r_addr_port(a), 7471);
	assert_int_equal(r_addr_pkey(a), 0x8001);
	assert_int_equal(ib.sib_flowinfo, 0);
	r_addr_ip(a, ip);
	assert_memory_equal(ip, gid, 16);
}

static void the_mask_decides_which_bits_of_the_service_id_count(void **state)
{
	struct sockaddr_ib ib = made_ib(RDMA_PS_TCP, 7471);
	const struct sockaddr *a = (struct sockaddr *)&ib;

	ib.sib_sid_mask = htobe64(RDMA_IB_IP_PS_MASK);
	assert_int_equal(r_addr_port(a), 0);
	assert_int_equal(r_addr_space(a), RDMA_PS_TCP);
	ib.sib_sid_mask = htobe64(RDMA_IB_IP_PORT_MASK);
	assert_int_equal(r_addr_port(a), 7471);
	assert_int_equal(r_addr_space(a), 0);
	r_addr_set_port((struct sockaddr *)&ib, 9);
	assert_int_equal(r_addr_port(a), 9);
}

static void a_gid_is_open_only_if_it_is_zero(void **state)
{
	struct sockaddr_ib ib = made_ib(RDMA_PS_TCP, 1);
	uint8_t none[16] = {0}, loop[16] = {[15] = 1};

	assert_false(r_addr_is_any((struct sockaddr *)&ib));
	assert_false(r_addr_is_open((struct sockaddr *)&ib));
	r_addr_move((struct sockaddr *)&ib, loop);
	assert_false(r_addr_is_open((struct sockaddr *)&ib));
	r_addr_move((struct sockaddr *)&ib, none);
	assert_true(r_addr_is_any((struct sockaddr *)&ib));
	assert_true(r_addr_is_open((struct sockaddr *)&ib));
	assert_int_equal(r_addr_port((struct sockaddr *)&ib), 1);
}

static void a_moved_address_keeps_family_and_port(void **state)
{
	struct sockaddr_storage s = {.ss_family = AF_INET};
	struct sockaddr *a = (struct sockaddr *)&s;
	uint8_t ip[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1}, now[16];

	r_addr_set_port(a, 5);
	r_addr_move(a, ip);
	assert_int_equal(a->sa_family, AF_INET);
	assert_int_equal(r_addr_port(a), 5);
	r_addr_ip(a, now);
	assert_memory_equal(now, ip, 16);
}

static void a_gid_is_shown_as_ipv6(void **state)
{
	struct sockaddr_ib ib = made_ib(RDMA_PS_TCP, 7471);
	char text[R_ADDR_TEXT];

	assert_string_equal(r_addr_text((struct sockaddr *)&ib, text),
			    GID " port 7471");
}

static void call_without_fabric(void)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_FAMILY,
				      .ai_family = AF_IB},
			     *res = NULL;
	struct sockaddr_ib ib = made_ib(RDMA_PS_TCP, 1);
	struct sockaddr_in ip = {.sin_family = AF_INET};

	unsetenv("ADVERB_FABRIC");
	assert_int_equal(r_addr_check((struct sockaddr *)&ip, "call"), 0);
	errno = 0;
	assert_int_equal(r_addr_check((struct sockaddr *)&ib, "call"), -1);
	assert_int_equal(errno, EAFNOSUPPORT);
	errno = 0;
	assert_int_equal(rdma_getaddrinfo(GID, "1", &hints, &res), -1);
	assert_int_equal(errno, EAFNOSUPPORT);
}

/* A process finds out only once whether its host is one of a fabric, and a
 * forked child inherits the answer.  So this test runs before all others, and
 * makes its calls in a child process. */
static void a_host_without_fabric_has_no_gids(void **state)
{
	pid_t parent = getpid(), child = fork();
	int status = -1;

	if (!child) {
		test_begin_child(parent);
		call_without_fabric();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void a_host_of_a_fabric_has_gids_and_ips(void **state)
{
	struct sockaddr_ib ib = made_ib(RDMA_PS_TCP, 1);
	struct sockaddr_in ip = {.sin_family = AF_INET};
	struct sockaddr none = {.sa_family = AF_UNIX};

	assert_int_equal(r_addr_check((struct sockaddr *)&ib, "call"), 0);
	assert_int_equal(r_addr_check((struct sockaddr *)&ip, "call"), 0);
	errno = 0;
	assert_int_equal(r_addr_check(&none, "call"), -1);
	assert_int_equal(errno, EAFNOSUPPORT);
	assert_int_equal(r_addr_check(NULL, "call"), -1);
}

/* Replaces r_devices, which opens the devices: a GID is resolved without a
 * device. */
int __wrap_r_devices(void);

int __wrap_r_devices(void)
{
	return 0;
}

static struct rdma_addrinfo *resolve_gid(const char *node, const char *service,
					 int flags, int space)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_NUMERICHOST | RAI_FAMILY |
						  flags,
				      .ai_family = AF_IB,
				      .ai_port_space = space},
			     *res = NULL;

	assert_int_equal(rdma_getaddrinfo(node, service, &hints, &res), 0);
	assert_non_null(res);
	assert_int_equal(res->ai_family, AF_IB);
	return res;
}

static void a_destination_is_resolved_to_a_gid(void **state)
{
	struct rdma_addrinfo *res = resolve_gid(GID, "7471", 0, RDMA_PS_UDP);
	const struct sockaddr_ib *ib;

	assert_null(res->ai_src_addr);
	assert_int_equal(res->ai_dst_len, sizeof(*ib));
	assert_int_equal(res->ai_qp_type, IBV_QPT_UD);
	ib = (struct sockaddr_ib *)(void *)res->ai_dst_addr;
	assert_int_equal(ib->sib_family, AF_IB);
	assert_int_equal(ib->sib_pkey, 0xffff);
	assert_memory_equal(&ib->sib_addr, gid, 16);
	assert_int_equal(be64toh(ib->sib_sid), RDMA_IB_IP_PS_UDP | 7471);
	assert_true(ib->sib_sid_mask == UINT64_MAX);
	rdma_freeaddrinfo(res);
}

static void a_source_without_port_leaves_the_port_open(void **state)
{
	struct rdma_addrinfo *res =
		resolve_gid(GID, NULL, RAI_PASSIVE, RDMA_PS_TCP);
	const struct sockaddr_ib *ib;

	assert_null(res->ai_dst_addr);
	assert_int_equal(res->ai_src_len, sizeof(*ib));
	ib = (struct sockaddr_ib *)(void *)res->ai_src_addr;
	assert_true(be64toh(ib->sib_sid_mask) == RDMA_IB_IP_PS_MASK);
	assert_int_equal(r_addr_port(res->ai_src_addr), 0);
	assert_int_equal(r_addr_space(res->ai_src_addr), RDMA_PS_TCP);
	rdma_freeaddrinfo(res);
}

static void a_service_alone_is_resolved_to_every_gid(void **state)
{
	struct rdma_addrinfo *res =
		resolve_gid(NULL, "7471", RAI_PASSIVE, RDMA_PS_IB);

	assert_true(r_addr_is_any(res->ai_src_addr));
	assert_int_equal(r_addr_port(res->ai_src_addr), 7471);
	assert_int_equal(r_addr_space(res->ai_src_addr), RDMA_PS_IB);
	rdma_freeaddrinfo(res);
}

static void a_name_or_an_ipv4_address_is_no_gid(void **state)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_FAMILY,
				      .ai_family = AF_IB},
			     *res = NULL;

	assert_int_not_equal(rdma_getaddrinfo("127.0.0.1", "1", &hints, &res),
			     0);
	assert_int_not_equal(rdma_getaddrinfo("localhost", "1", &hints, &res),
			     0);
}

/* The hints of the latest call of getaddrinfo. */
static struct addrinfo asked;

int __real_getaddrinfo(const char *node, const char *service,
		       const struct addrinfo *ask, struct addrinfo **found);
int __wrap_getaddrinfo(const char *node, const char *service,
		       const struct addrinfo *ask, struct addrinfo **found);

int __wrap_getaddrinfo(const char *node, const char *service,
		       const struct addrinfo *ask, struct addrinfo **found)
{
	asked = *ask;
	return __real_getaddrinfo(node, service, ask, found);
}

/* The resolver looks for a service among those of the requested protocol:
 * /etc/services has, for example, bootps for UDP alone. */
static void the_resolver_is_asked_for_the_hints(void **state)
{
	static const struct {
		struct rdma_addrinfo hints;
		int type, family, ps, qp;
	} row[] = {
		{{0}, SOCK_STREAM, AF_UNSPEC, RDMA_PS_TCP, IBV_QPT_RC},
		{{.ai_port_space = RDMA_PS_UDP},
		 SOCK_DGRAM,
		 AF_UNSPEC,
		 RDMA_PS_UDP,
		 IBV_QPT_UD},
		{{.ai_port_space = RDMA_PS_IPOIB, .ai_family = AF_INET},
		 SOCK_DGRAM,
		 AF_INET,
		 RDMA_PS_IPOIB,
		 IBV_QPT_UD},
		{{.ai_qp_type = IBV_QPT_UD},
		 SOCK_DGRAM,
		 AF_UNSPEC,
		 RDMA_PS_UDP,
		 IBV_QPT_UD},
		{{.ai_qp_type = IBV_QPT_UC},
		 SOCK_STREAM,
		 AF_UNSPEC,
		 RDMA_PS_TCP,
		 IBV_QPT_UC},
		{{.ai_port_space = RDMA_PS_IB, .ai_qp_type = IBV_QPT_UD},
		 SOCK_DGRAM,
		 AF_UNSPEC,
		 RDMA_PS_IB,
		 IBV_QPT_UD},
		{{.ai_family = AF_INET, .ai_flags = RAI_FAMILY},
		 SOCK_STREAM,
		 AF_INET,
		 RDMA_PS_TCP,
		 IBV_QPT_RC},
	};
	struct rdma_addrinfo *res = NULL;

	for (size_t i = 0; i < TEST_COUNT(row); i++) {
		assert_int_equal(rdma_getaddrinfo("127.0.0.1", "7471",
						  &row[i].hints, &res),
				 0);
		assert_int_equal(asked.ai_socktype, row[i].type);
		assert_int_equal(asked.ai_family, row[i].family);
		assert_int_equal(res->ai_port_space, row[i].ps);
		assert_int_equal(res->ai_qp_type, row[i].qp);
		assert_int_equal(res->ai_family, AF_INET);
		rdma_freeaddrinfo(res);
	}
}

static void an_address_in_the_hints_says_its_family(void **state)
{
	struct sockaddr_in6 to = {.sin6_family = AF_INET6};
	struct rdma_addrinfo hints = {.ai_dst_len = sizeof(to),
				      .ai_dst_addr = (struct sockaddr *)&to,
				      .ai_port_space = RDMA_PS_UDP},
			     *res = NULL;

	assert_int_equal(rdma_getaddrinfo(NULL, NULL, &hints, &res), 0);
	assert_int_equal(res->ai_family, AF_INET6);
	assert_int_equal(res->ai_qp_type, IBV_QPT_UD);
	rdma_freeaddrinfo(res);
}

static bool has_no_random; /* random_fill fails */

bool __real_random_fill(void *buf, size_t n, bool waits);
bool __wrap_random_fill(void *buf, size_t n, bool waits);

bool __wrap_random_fill(void *buf, size_t n, bool waits)
{
	return !has_no_random && __real_random_fill(buf, n, waits);
}

/* If the first PSN of an id's queue pair were not random, another host could
 * guess it. */
static void no_id_is_made_without_random_numbers(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = NULL;

	assert_non_null(channel);
	has_no_random = true;
	errno = 0;
	assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), -1);
	assert_int_equal(errno, ENOSYS);
	assert_null(id);
	has_no_random = false;
	assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_host_without_fabric_has_no_gids),
		cmocka_unit_test(a_gid_has_a_service_id_of_space_and_port),
		cmocka_unit_test(
			the_mask_decides_which_bits_of_the_service_id_count),
		cmocka_unit_test(a_gid_is_open_only_if_it_is_zero),
		cmocka_unit_test(a_moved_address_keeps_family_and_port),
		cmocka_unit_test(a_gid_is_shown_as_ipv6),
		cmocka_unit_test(a_host_of_a_fabric_has_gids_and_ips),
		cmocka_unit_test(a_destination_is_resolved_to_a_gid),
		cmocka_unit_test(a_source_without_port_leaves_the_port_open),
		cmocka_unit_test(a_service_alone_is_resolved_to_every_gid),
		cmocka_unit_test(a_name_or_an_ipv4_address_is_no_gid),
		cmocka_unit_test(the_resolver_is_asked_for_the_hints),
		cmocka_unit_test(an_address_in_the_hints_says_its_family),
		cmocka_unit_test(no_id_is_made_without_random_numbers),
	};

	setenv("ADVERB_FABRIC", "socket", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
