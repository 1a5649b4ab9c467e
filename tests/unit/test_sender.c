/* SPDX-License-Identifier: BSD-2-Clause */
/* wire/sender: source address, TOS and TTL of a datagram arrive, whether or not
 * they are sent as control messages. */
#include "test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "wire/port.h"
#include "wire/sender.h"

#define USUAL_TTL 64

struct heard {
	uint32_t from; /* network order */
	/* -1: the datagram has brought no such control message */
	int tos, ttl;
};

static struct sender s;
static struct udp_dgram d;
static int receiver;

static void set_ip(uint8_t ip[16], const char *text)
{
	struct in_addr four;

	inet_pton(AF_INET, text, &four);
	inaddr_map_v4(ip, &four);
}

static int set_up(void **state)
{
	struct sockaddr_in name = {.sin_family = AF_INET};
	socklen_t len = sizeof(name);
	int one = 1;

	receiver = socket(AF_INET, SOCK_DGRAM, 0);
	if (receiver < 0 ||
	    bind(receiver, (struct sockaddr *)(void *)&name, len) ||
	    getsockname(receiver, (struct sockaddr *)(void *)&name, &len))
		return -1;
	setsockopt(receiver, IPPROTO_IP, IP_RECVTOS, &one, sizeof(one));
	setsockopt(receiver, IPPROTO_IP, IP_RECVTTL, &one, sizeof(one));
	d = (struct udp_dgram){.bytes = (const uint8_t *)"x",
			       .len = 1,
			       .segment = 1,
			       .to = {.port = ntohs(name.sin_port)}};
	set_ip(d.to.ip, "127.0.0.1");
	set_ip(d.from.ip, "127.0.0.1");
	return sender_open(&s, 0, &d.to);
}

static int tear_down(void **state)
{
	sender_close(&s);
	return close(receiver);
}

/* Sends the datagram d.  Returns 0 or -errno. */
static int send_it(void)
{
	struct iovec bytes = {(void *)(uintptr_t)d.bytes, d.len};
	struct msghdr m = {.msg_iov = &bytes, .msg_iovlen = 1};
	struct sender_head head;

	sender_address(&s, &m, &head, &d);
	return sendmsg(s.fd, &m, MSG_DONTWAIT) < 0 ? -errno : 0;
}

static struct heard receive_one(void)
{
	struct pollfd readable = {.fd = receiver, .events = POLLIN};
	struct heard h = {.tos = -1, .ttl = -1};
	struct sender_head head;
	struct sockaddr_in from;
	char byte[8];
	struct iovec v = {byte, sizeof(byte)};
	struct msghdr m = {.msg_name = &from,
			   .msg_namelen = sizeof(from),
			   .msg_iov = &v,
			   .msg_iovlen = 1,
			   .msg_control = &head.control,
			   .msg_controllen = sizeof(head.control)};

	assert_int_equal(poll(&readable, 1, TEST_WAIT_MS), 1);
	assert_int_equal(recvmsg(receiver, &m, 0), 1);
	h.from = from.sin_addr.s_addr;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		if (c->cmsg_type == IP_TOS)
			h.tos = *CMSG_DATA(c);
		else if (c->cmsg_type == IP_TTL)
			memcpy(&h.ttl, CMSG_DATA(c), sizeof(h.ttl));
	}
	return h;
}

static void check_arrival(const char *from)
{
	struct heard h;

	set_ip(d.from.ip, from);
	assert_int_equal(send_it(), 0);
	h = receive_one();
	assert_int_equal(h.from, inet_addr(from));
	assert_int_equal(h.tos, d.tos);
	assert_int_equal(h.ttl, d.ttl ? d.ttl : USUAL_TTL);
}

static void source_address_tos_and_ttl_arrive(void **state)
{
	check_arrival("127.0.0.1");
	assert_int_equal(s.changes, 0);
	/* more changes than the sender makes to the socket's defaults, so that
	 * the later datagrams have control messages */
	for (int i = 0; i < 200; i++) {
		d.tos = i % 3 ? 0x68 : 0;
		d.ttl = i % 2 ? 7 : 255;
		check_arrival("127.0.0.1");
	}
	d.ttl = 0;
	check_arrival("127.0.0.1");
	set_ip(d.to.ip, "127.0.0.2"); /* another destination at the same port */
	check_arrival("127.0.0.1");
	check_arrival("127.0.0.3"); /* another source address */
	set_ip(d.to.ip, "127.0.0.1");
	check_arrival("127.0.0.3");
	check_arrival("127.0.0.1");
}

static void values_of_one_flow_do_not_stick_to_others(void **state)
{
	d.ttl = 3;
	d.tos = 8;
	check_arrival("127.0.0.1");
	check_arrival("127.0.0.1");
	assert_int_equal(s.changes, 1);
	d.ttl = d.tos = 0;
	check_arrival("127.0.0.9");
}

/* The ICRC covers an IPv4 header whose identification is 0, or counts from 0 in
 * packets that the kernel segments. */
static void ipv4_packets_have_no_identification(void **state)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, (uint32_t)SKF_NET_OFF + 4),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0xffff),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog is_zero = {4, code};

	assert_return_code(setsockopt(receiver, SOL_SOCKET, SO_ATTACH_FILTER,
				      &is_zero, sizeof(is_zero)),
			   errno);
	for (int i = 0; i < 3; i++)
		check_arrival("127.0.0.1");
}

/* A connected socket would own its port at one address only, and another user
 * could own the port at another address. */
static void a_sender_to_this_host_owns_its_port_at_every_address(void **state)
{
	struct inaddr to = {.ip = {[15] = 1}, .port = 4791}, from = to;
	uid_t user;
	int err;

	sender_close(&s);
	from.port = 0xc000;
	do
		err = sender_open(&s, ++from.port, &to);
	while (err == -EADDRINUSE);
	if (err == -EAFNOSUPPORT || err == -EADDRNOTAVAIL)
		SKIP_FOR("there is no IPv6 here");
	assert_int_equal(err, 0);
	assert_false(s.is_connected);
	assert_int_equal(port_owner(&from, &to, &user), PORT_USER);
	assert_int_equal(user, geteuid());
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(source_address_tos_and_ttl_arrive),
		CASE(values_of_one_flow_do_not_stick_to_others),
		CASE(ipv4_packets_have_no_identification),
		CASE(a_sender_to_this_host_owns_its_port_at_every_address),
	};

	return cmocka_run_group_tests_name("sender", tests, NULL, NULL);
}
