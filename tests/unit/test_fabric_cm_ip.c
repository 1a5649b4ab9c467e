/* SPDX-License-Identifier: BSD-2-Clause */
/* tools/fabric_cm: programs on the hosts of a fabric listen at addresses of IP,
 * and find interfaces of IPoIB by MAC. */
#include "fabric_programs.h"

#include "ipoib/hwaddr.h"

enum {
	QPN_OF_INTERFACE = 0x42,
	PKEY_OF_INTERFACE = 0x8007,
	OTHER_PORT = 1234,
};

static const uint8_t here[16] = {[10] = 0xff, 0xff, 10, 9, 0, 2};
static const uint8_t elsewhere[16] = {[10] = 0xff, 0xff, 10, 9, 0, 3};
static const uint8_t six[16] = {0xfd, [15] = 2};
static const struct cmproto_path way = {
	.local_lid = LID_A1, .remote_lid = LID_B, .pkey = 0xffff};

/* Makes b listen at an address of IP; NULL: at all addresses of IPv4. */
static void listen_at_ip(struct program *b, const uint8_t *ip)
{
	struct cmproto m = request_of(b, NULL);

	m.is_ip = 1;
	m.any_v4 = !ip;
	memset(m.at.local, 0, 16);
	if (ip)
		memcpy(m.at.local, ip, 16);
	m = call_cm(b, m, CMPROTO_BIND, 0);
	assert_int_equal(m.err, 0);
	b->object = m.new_id;
	b->port = m.at.local_port;
	call_ok(b, request_of(b, NULL), CMPROTO_LISTEN, b->object);
}

/* Sends a REQ from a to b's port, for the address `ip`. */
static void call_ip(struct program *a, const struct program *b,
		    const uint8_t ip[16])
{
	struct cmproto m = request_of(a, b->gid);
	struct cmmsg_ip ips = {.src_port = OTHER_PORT};

	bind_port(a, false);
	memcpy(ips.dst, ip, 16);
	memcpy(ips.src, ip, 16);
	m.at.peer_port = b->port;
	m.path = way;
	m.qp.qpn = QPN_OF_PAIR;
	m.private_bytes = PRIVATE_REQ;
	memset(m.private_data, 0x5a, PRIVATE_REQ);
	cmmsg_ip_write(m.private_data, &ips);
	call_ok(a, m, CMPROTO_CONNECT, a->object);
}

static void assert_taken(struct program *a, const struct program *b,
			 const uint8_t ip[16])
{
	struct cmmsg_ip header;
	struct cmproto m;

	call_ip(a, b, ip);
	m = take_event(b, CMPROTO_REQUEST);
	assert_int_equal(m.private_bytes, PRIVATE_REQ);
	assert_true(cmmsg_ip_parse(m.private_data, &header));
	assert_memory_equal(header.dst, ip, 16);
	assert_int_equal(header.src_port, OTHER_PORT);
	assert_int_equal(m.private_data[CMMSG_IP_BYTES], 0x5a);
	assert_memory_equal(m.at.local, b->gid, 16);
	assert_memory_equal(m.at.peer, a->gid, 16);
}

static void assert_refused(struct program *a)
{
	assert_int_equal(take_event(a, CMPROTO_REJECTED).status, NO_SERVICE);
}

static void a_listener_at_an_ip_takes_requests_for_it(void **state)
{
	struct program a = run_program("A", 1, 0), b = run_program("B", 1, 0);

	listen_at_ip(&b, here);
	call_ip(&a, &b, elsewhere);
	assert_refused(&a);
	assert_taken(&a, &b, here);
	end_program(&a);
	end_program(&b);
}

static void a_listener_at_all_ips_takes_those_of_its_family(void **state)
{
	struct program a = run_program("A", 1, 0), b = run_program("B", 1, 0);

	listen_at_ip(&b, NULL);
	call_ip(&a, &b, six);
	assert_refused(&a);
	assert_taken(&a, &b, elsewhere);
	end_program(&a);
	end_program(&b);
}

static void a_request_without_ips_is_not_for_a_listener_at_ips(void **state)
{
	struct program a = run_program("A", 1, 0), b = run_program("B", 1, 0);

	listen_at_ip(&b, NULL);
	bind_port(&a, false);
	connect_to(&a, &b, &way);
	assert_refused(&a);
	end_program(&a);
	end_program(&b);
}

static void a_port_has_ips_or_gids(void **state)
{
	struct program b = run_program("B", 1, 0);
	struct cmproto m = request_of(&b, b.gid);

	listen_at_ip(&b, here);
	m.at.local_port = b.port;
	assert_int_equal(call_cm(&b, m, CMPROTO_BIND, 0).err, -EADDRINUSE);
	end_program(&b);
}

static struct hwaddr address_of(const struct program *p, uint32_t qpn)
{
	struct hwaddr a = {.qpn = qpn};

	memcpy(a.gid, p->gid, 16);
	return a;
}

static void say_interface(const struct program *p, const uint8_t gid[16],
			  uint32_t qpn, uint16_t pkey)
{
	struct cmproto m = {.is_ib = true, .qp.qpn = qpn, .path.pkey = pkey};

	memcpy(m.at.local, gid, 16);
	post_message(p, m, CMPROTO_INTERFACE, 0);
	/* an answer shows that the message was read */
	call_cm(p, m, CMPROTO_INTERFACE_OF, 0);
}

static struct cmproto find_interface(const struct program *p,
				     const struct hwaddr *a)
{
	struct cmproto m = {.is_ib = true};

	hwaddr_mac(a, m.at.peer);
	return call_cm(p, m, CMPROTO_INTERFACE_OF, 0);
}

static void an_interface_is_found_by_its_mac(void **state)
{
	struct program a = run_program("A", 1, 0), b = run_program("B", 1, 0);
	struct hwaddr first = address_of(&b, QPN_OF_INTERFACE);
	struct hwaddr second = address_of(&b, QPN_OF_INTERFACE + 1);
	struct cmproto m;

	assert_int_equal(find_interface(&a, &first).err, -ENODEV);
	say_interface(&b, b.gid, first.qpn, PKEY_OF_INTERFACE);
	m = find_interface(&a, &first);
	assert_int_equal(m.err, 0);
	assert_memory_equal(m.at.local, b.gid, 16);
	assert_int_equal(m.path.pkey, PKEY_OF_INTERFACE);
	/* the interface gets another queue pair */
	say_interface(&b, b.gid, second.qpn, PKEY_OF_INTERFACE);
	assert_int_equal(find_interface(&a, &first).err, -ENODEV);
	assert_int_equal(find_interface(&b, &second).err, 0);
	/* the interface leaves the partition */
	say_interface(&b, b.gid, second.qpn, 0);
	assert_int_equal(find_interface(&a, &second).err, -ENODEV);
	end_program(&a);
	end_program(&b);
}

static void an_interface_ends_with_its_program(void **state)
{
	struct program a = run_program("A", 1, 0), b = run_program("B", 1, 0);
	struct hwaddr address = address_of(&b, QPN_OF_INTERFACE);

	say_interface(&b, b.gid, address.qpn, PKEY_OF_INTERFACE);
	assert_int_equal(find_interface(&a, &address).err, 0);
	end_program(&b);
	/* the fabric may read a's question before it learns of the end of b */
	while (!find_interface(&a, &address).err)
		poll(NULL, 0, 1);
	end_program(&a);
}

static void an_interface_has_an_address_of_its_host(void **state)
{
	struct program a = run_program("A", 1, 0), b = run_program("B", 1, 0);
	struct hwaddr of_a = address_of(&a, QPN_OF_INTERFACE);
	struct hwaddr of_b = address_of(&b, 1);

	say_interface(&b, a.gid, of_a.qpn, PKEY_OF_INTERFACE);
	assert_int_equal(find_interface(&a, &of_a).err, -ENODEV);
	/* QP 1 belongs to management, and a QPN has 24 bits */
	say_interface(&b, b.gid, of_b.qpn, PKEY_OF_INTERFACE);
	assert_int_equal(find_interface(&a, &of_b).err, -ENODEV);
	of_b.qpn = QPN_OF_INTERFACE;
	say_interface(&b, b.gid, of_b.qpn | 1u << 24, PKEY_OF_INTERFACE);
	assert_int_equal(find_interface(&a, &of_b).err, -ENODEV);
	end_program(&a);
	end_program(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FABRIC_TEST(a_listener_at_an_ip_takes_requests_for_it),
		FABRIC_TEST(a_listener_at_all_ips_takes_those_of_its_family),
		FABRIC_TEST(a_request_without_ips_is_not_for_a_listener_at_ips),
		FABRIC_TEST(a_port_has_ips_or_gids),
		FABRIC_TEST(an_interface_is_found_by_its_mac),
		FABRIC_TEST(an_interface_ends_with_its_program),
		FABRIC_TEST(an_interface_has_an_address_of_its_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
