/* SPDX-License-Identifier: BSD-2-Clause */
/* broker/gsi: QP1 of one host sends MADs to QP1 of another host, which drops
 * and counts all other packets.  The hosts are two addresses of a network
 * namespace. */
#include "test.h"

#include "broker/gsi.h"
#include "encap/rocev2.h"
#include "hdr/mad.h"
#include "hdr/pkt.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/net_tstamp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define CM_CLASS 7

static struct inaddr host_address(uint8_t last)
{
	return (struct inaddr){
		.ip = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = last}};
}

static int bind_host(struct inaddr h)
{
	struct sockaddr_in6 a = {.sin6_family = AF_INET6,
				 .sin6_port = htons(4791)};
	int fd = socket(AF_INET6, SOCK_DGRAM, 0), off = 0;

	memcpy(&a.sin6_addr, h.ip, 16);
	setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

/* The last MAD that hear_mad got, the time that was given to the gsi_turn that
 * received the MAD, and how many MADs came. */
struct heard {
	struct gsi_mad mad;
	uint8_t bytes[MAD_BYTES];
	uint64_t now;
	int count;
};

static void hear_mad(void *user, const struct gsi_mad *m, uint64_t now_ns)
{
	struct heard *h = user;

	h->mad = *m;
	memcpy(h->bytes, m->bytes, MAD_BYTES);
	h->now = now_ns;
	h->count++;
}

static struct gsi side[2];
static struct heard heard;

static int setup_sides(void **state)
{
	struct gsi_agent cm = {CM_CLASS, &heard, hear_mad};
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd;

	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET)) {
		printf("skipped: no network namespace of our own\n");
		_exit(77);
	}
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &lo), 0);
	close(fd);
	for (uint8_t i = 0; i < 2; i++) {
		fd = bind_host(host_address((uint8_t)(i + 1)));
		assert_int_equal(gsi_open(&side[i], fd), 0);
		close(fd);
	}
	assert_true(gsi_attach(&side[1], &cm));
	return 0;
}

static int teardown_sides(void **state)
{
	gsi_close(&side[0]);
	gsi_close(&side[1]);
	return 0;
}

static void await_turn(struct gsi *g, uint64_t now)
{
	struct pollfd p = {gsi_fd(g), POLLIN, 0};

	assert_int_equal(poll(&p, 1, TEST_WAIT_MS), 1);
	gsi_turn(g, now);
}

static void mad_of(uint8_t *bytes, uint8_t class)
{
	struct mad head = {.base_version = 1,
			   .mgmt_class = class,
			   .class_version = 2,
			   .method = 3,
			   .transaction_id = 0x1122334455667788};

	memset(bytes, 0xa5, MAD_BYTES);
	mad_write(bytes, &head);
}

static void a_mad_reaches_the_agent_of_its_class(void **state)
{
	uint8_t bytes[MAD_BYTES];
	struct gsi_mad m = {.from = host_address(1),
			    .to = host_address(2),
			    .remote_qpn = GSI_QPN,
			    .pkey = 0xffff,
			    .bytes = bytes};

	mad_of(bytes, CM_CLASS);
	gsi_send(&side[0], &m);
	gsi_flush(&side[0]);
	await_turn(&side[1], 99);
	assert_int_equal(heard.count, 1);
	assert_int_equal(heard.now, 99);
	assert_memory_equal(heard.bytes, bytes, MAD_BYTES);
	assert_memory_equal(heard.mad.from.ip, m.from.ip, 16);
	assert_memory_equal(heard.mad.to.ip, m.to.ip, 16);
	assert_int_equal(heard.mad.remote_qpn, GSI_QPN);
	assert_int_equal(heard.mad.pkey, 0xffff);
	mad_of(bytes, 0x0f);
	gsi_send(&side[0], &m);
	gsi_flush(&side[0]);
	await_turn(&side[1], 100);
	assert_int_equal(heard.count, 1);
	assert_int_equal(side[1].unserved, 1);
}

/* Sends one UD or RC packet of `bytes` payload bytes from side 0 to side 1, and
 * handles the packet there; `damage` is XORed into the first byte of the
 * payload. */
static void send_frame(uint32_t qpn, uint32_t qkey, enum opcode op,
		       size_t bytes, int damage)
{
	uint8_t b[512] = {0};
	struct pkt p = {.bth = {.opcode = (uint8_t)op, .dest_qpn = qpn},
			.deth = {.qkey = qkey, .src_qpn = 1},
			.payload_len = bytes};
	struct udp_dgram d = {
		.from = host_address(1), .to = host_address(2), .bytes = b};
	size_t head = pkt_write_headers(b, &p);

	d.from.port = d.to.port = 4791;
	d.len = rocev2_seal(NULL, &d.from, &d.to, b, head + bytes, 0);
	b[head] ^= (uint8_t)damage;
	assert_int_equal(udp_send(&side[0].wire, &d, 1), 1);
	await_turn(&side[1], 1);
}

static void a_packet_that_is_no_mad_for_qp1_is_counted_and_dropped(void **state)
{
	int before = heard.count;

	side[1].junk = 0;
	send_frame(GSI_QPN, MAD_QP1_QKEY, OPCODE_UD_SEND_ONLY, 256, 1);
	assert_int_equal(side[1].junk, 1);
	send_frame(GSI_QPN, 0x11111111, OPCODE_UD_SEND_ONLY, 256, 0);
	assert_int_equal(side[1].junk, 2);
	send_frame(GSI_QPN, MAD_QP1_QKEY, OPCODE_UD_SEND_ONLY, 252, 0);
	assert_int_equal(side[1].junk, 3);
	send_frame(GSI_QPN, MAD_QP1_QKEY, OPCODE_RC_SEND_ONLY, 256, 0);
	assert_int_equal(side[1].junk, 4);
	send_frame(77, MAD_QP1_QKEY, OPCODE_UD_SEND_ONLY, 256, 0);
	assert_int_equal(side[1].strays, 1);
	assert_int_equal(side[1].junk, 4);
	assert_int_equal(heard.count, before);
}

/* Sends a MAD to g, which is QP1 at `to`, from the address `ip`, which may be
 * another host's, and from a port other than RoCEv2's.  Then g takes a turn.
 * scope: the interface of `ip` if `ip` is link-local, else 0. */
static void send_from(struct gsi *g, const struct inaddr *ip,
		      const struct inaddr *to, uint32_t scope)
{
	struct sockaddr_in6 a = {.sin6_family = AF_INET6};
	struct pkt p = {
		.bth = {.opcode = OPCODE_UD_SEND_ONLY, .dest_qpn = GSI_QPN},
		.deth = {.qkey = MAD_QP1_QKEY, .src_qpn = 1},
		.payload_len = MAD_BYTES};
	uint8_t b[512];
	struct udp_dgram d = {
		.from = *ip, .to = *to, .ifindex = scope, .bytes = b};
	int fd = socket(AF_INET6, SOCK_DGRAM, 0), on = 1, off = 0;
	socklen_t length = sizeof(a);
	size_t head = pkt_write_headers(b, &p);
	struct udp_socket wire;

	/* a bind to a link-local address would also bind the socket to the
	 * interface, and the socket could not send by another interface */
	if (!scope)
		memcpy(&a.sin6_addr, ip->ip, 16);
	setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	assert_int_equal(
		setsockopt(fd, IPPROTO_IP, IP_TRANSPARENT, &on, sizeof(on)), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &length), 0);
	assert_int_equal(udp_init(&wire, fd, (struct udp_offload){0}, true), 0);
	d.from.port = ntohs(a.sin6_port);
	d.to.port = 4791;
	mad_of(b + head, CM_CLASS);
	d.len = d.segment =
		rocev2_seal(NULL, &d.from, &d.to, b, head + MAD_BYTES, 0);
	assert_int_equal(udp_send(&wire, &d, 1), 1);
	await_turn(g, 1);
	udp_fini(&wire);
}

static void qp1_of_this_host_sends_from_its_port_alone(void **state)
{
	const struct inaddr far = {
		.ip = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 1}};
	struct inaddr near = host_address(1), same = host_address(2);
	int before = heard.count;

	side[1].junk = 0;
	send_from(&side[1], &near, &same, 0);
	assert_int_equal(side[1].forged, 1);
	send_from(&side[1], &same, &same, 0);
	assert_int_equal(side[1].forged, 2);
	assert_int_equal(heard.count, before);
	/* another host may send from any port */
	send_from(&side[1], &far, &same, 0);
	assert_int_equal(side[1].forged, 2);
	assert_int_equal(heard.count, before + 1);
	assert_int_equal(side[1].junk, 0);
}

/* Makes the interface "second" of that kind, IFF_TUN or IFF_TAP, which lasts as
 * long as the descriptor that is returned.  -1: the kernel has no TUN, or this
 * user may not open it. */
static int make_second(short kind)
{
	struct ifreq second = {.ifr_name = "second",
			       .ifr_flags = (short)(kind | IFF_NO_PI)};
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC), any;

	if (fd >= 0 && ioctl(fd, TUNSETIFF, &second)) {
		close(fd);
		return -1;
	}
	any = socket(AF_INET, SOCK_DGRAM, 0);
	second.ifr_flags = IFF_UP;
	if (fd >= 0)
		assert_int_equal(ioctl(any, SIOCSIFFLAGS, &second), 0);
	close(any);
	return fd;
}

static void add_four(const struct inaddr *a)
{
	struct ifreq second = {.ifr_name = "second"};
	struct sockaddr_in name = {.sin_family = AF_INET};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	memcpy(&name.sin_addr, a->ip + 12, 4);
	memcpy(&second.ifr_addr, &name, sizeof(name));
	assert_int_equal(ioctl(fd, SIOCSIFADDR, &second), 0);
	close(fd);
}

static void add_address(uint32_t ifindex, const struct inaddr *a)
{
	struct {
		uint8_t ip[16];
		uint32_t prefix;
		int ifindex;
	} request = {.prefix = 128, .ifindex = (int)ifindex};
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);

	struct sockaddr_in6 name = {.sin6_family = AF_INET6,
				    .sin6_scope_id = ifindex};

	memcpy(request.ip, a->ip, 16);
	memcpy(&name.sin6_addr, a->ip, 16);
	assert_int_equal(ioctl(fd, SIOCSIFADDR, &request), 0);
	/* a thread of the kernel makes the address usable */
	while (bind(fd, (struct sockaddr *)&name, sizeof(name))) {
		assert_int_equal(errno, EADDRNOTAVAIL);
		usleep(1000);
	}
	close(fd);
}

/* A program of this host is able to send a MAD from a link-local address of one
 * interface to an address of another interface.  QP1 there drops the MAD as
 * forged. */
static void a_link_local_address_is_this_hosts_at_any_interface(void **state)
{
	static struct gsi g;
	struct gsi_agent cm = {CM_CLASS, &heard, hear_mad};
	const struct inaddr near = {.ip = {0xfe, 0x80, [15] = 0xaa}};
	const struct inaddr to = {.ip = {0xfd, 1, [15] = 1}};
	int before = heard.count, second, fd;

	NEEDS_KERNEL(); /* TUNSETIFF, SIOCSIFADDR of IPv6 */
	second = make_second(IFF_TUN);
	if (second < 0)
		SKIP_FOR("no TUN");
	add_address(if_nametoindex("second"), &near);
	add_address(if_nametoindex("lo"), &to);
	fd = bind_host(to);
	assert_int_equal(gsi_open(&g, fd), 0);
	close(fd);
	assert_true(gsi_attach(&g, &cm));
	send_from(&g, &near, &to, if_nametoindex("second"));
	assert_int_equal(g.junk, 0);
	assert_int_equal(heard.count, before);
	assert_int_equal(g.forged, 1);
	gsi_close(&g);
	close(second);
}

/* Every MAD arrives, although the receive buffer cannot hold all of them:
 * gsi_flush sends only some of them, and gsi_turn then receives these. */
static void every_mad_to_the_same_host_is_received(void **state)
{
	enum { MANY = 3000, BUFFER = 128 << 10 };
	struct gsi_agent cm = {CM_CLASS, &heard, hear_mad};
	uint8_t bytes[MAD_BYTES];
	struct gsi_mad m = {.from = host_address(1),
			    .to = host_address(1),
			    .remote_qpn = GSI_QPN,
			    .pkey = 0xffff,
			    .bytes = bytes};
	int before = heard.count, size = BUFFER;

	assert_int_equal(setsockopt(gsi_fd(&side[0]), SOL_SOCKET, SO_RCVBUF,
				    &size, sizeof(size)),
			 0);
	assert_true(gsi_attach(&side[0], &cm));
	mad_of(bytes, CM_CLASS);
	for (int i = 0; i < MANY; i++)
		gsi_send(&side[0], &m);
	while (gsi_patience(&side[0]) >= 0) {
		gsi_flush(&side[0]);
		gsi_turn(&side[0], 1);
	}
	assert_int_equal(heard.count - before, MANY);
	assert_int_equal(side[0].lost, 0);
}

/* Queues `count` MADs of an owner; the last byte of each MAD is its number. */
static void send_of(struct gsi *g, uint64_t owner, const struct inaddr *from,
		    const struct inaddr *to, int count)
{
	uint8_t bytes[MAD_BYTES];
	struct gsi_mad m = {.from = *from,
			    .to = *to,
			    .remote_qpn = GSI_QPN,
			    .pkey = 0xffff,
			    .owner = owner,
			    .bytes = bytes};

	mad_of(bytes, CM_CLASS);
	for (int i = 0; i < count; i++) {
		bytes[MAD_BYTES - 1] = (uint8_t)i;
		gsi_send(g, &m);
	}
}

/* Queues `count` numbered MADs from address 1. */
static void send_numbered(struct gsi *g, const struct inaddr *to, int count)
{
	const struct inaddr from = host_address(1);

	send_of(g, 0, &from, to, count);
}

/* Receives until `count` MADs have come, and checks the last one. */
static void await_numbered(struct gsi *g, int before, int count)
{
	g->junk = 0;
	while (heard.count - before < count)
		await_turn(g, 1);
	assert_int_equal(heard.count - before, count);
	assert_int_equal(heard.bytes[MAD_BYTES - 1], (uint8_t)(count - 1));
	assert_int_equal(g->junk, 0);
}

/* A datagram has 32 frames at most.  The kernel gives segment n of a datagram
 * the IPv4 id n, which the ICRC of frame n covers.  The receiver accepts each
 * frame, whether or not the kernel joins the frames for the receiver. */
static void mads_to_one_address_of_this_host_share_datagrams(void **state)
{
	const struct inaddr to = host_address(2);

	NEEDS_KERNEL(); /* UDP_SEGMENT */
	for (int joins = 0; joins <= 1; joins++) {
		int before = heard.count;

		assert_int_equal(setsockopt(gsi_fd(&side[1]), SOL_UDP, UDP_GRO,
					    &joins, sizeof(joins)),
				 0);
		send_numbered(&side[0], &to, 40);
		assert_int_equal(side[0].first->first->count, 2);
		gsi_flush(&side[0]);
		assert_int_equal(gsi_patience(&side[0]), -1);
		await_numbered(&side[1], before, 40);
	}
}

static void mads_to_other_hosts_are_not_joined(void **state)
{
	const struct inaddr far = {
		.ip = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 1}};
	const struct inaddr near = host_address(2);
	int before = heard.count;

	send_numbered(&side[0], &far, 3);
	assert_int_equal(side[0].first->first->count, 3);
	/* MADs to one address of this host are not joined either if another MAD
	 * is between them */
	send_numbered(&side[0], &near, 1);
	send_numbered(&side[0], &far, 1);
	send_numbered(&side[0], &near, 1);
	assert_int_equal(side[0].first->first->count, 6);
	gsi_flush(&side[0]);
	assert_int_equal(gsi_patience(&side[0]), -1);
	while (heard.count < before + 2)
		await_turn(&side[1], 1);
}

/* The kernel refuses UDP_SEGMENT for a socket that sends no checksums. */
static void mads_arrive_where_the_kernel_refuses_segments(void **state)
{
	const struct inaddr to = host_address(2);
	int before = heard.count, on = 1, off = 0;

	NEEDS_KERNEL(); /* UDP_SEGMENT */
	assert_int_equal(setsockopt(gsi_fd(&side[0]), SOL_SOCKET, SO_NO_CHECK,
				    &on, sizeof(on)),
			 0);
	send_numbered(&side[0], &to, 20);
	assert_int_equal(side[0].first->first->count, 1);
	gsi_flush(&side[0]);
	await_numbered(&side[1], before, 20);
	setsockopt(gsi_fd(&side[0]), SOL_SOCKET, SO_NO_CHECK, &off,
		   sizeof(off));
}

/* More datagrams than a gsi_turn takes, and fewer than a socket holds. */
#define FLOOD 400

/* Sends FLOOD datagrams without a byte to QP1 at this address, and waits until
 * QP1 has one to receive. */
static void flood_empty(struct gsi *g, const struct inaddr *to)
{
	struct sockaddr_in6 a = {.sin6_family = AF_INET6,
				 .sin6_port = htons(4791)};
	int fd = socket(AF_INET6, SOCK_DGRAM, 0), off = 0;
	struct pollfd p = {gsi_fd(g), POLLIN, 0};

	memcpy(&a.sin6_addr, to->ip, 16);
	setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	for (int i = 0; i < FLOOD; i++)
		assert_int_equal(sendto(fd, NULL, 0, 0, (struct sockaddr *)&a,
					sizeof(a)),
				 0);
	close(fd);
	assert_int_equal(poll(&p, 1, TEST_WAIT_MS), 1);
}

/* Receives the datagrams of flood_empty that are left after QP1 has taken
 * `taken`, and returns their number.  Waits for those that the kernel delivers
 * late. */
static int count_left(struct gsi *g, uint64_t taken)
{
	struct pollfd p = {gsi_fd(g), POLLIN, 0};
	int n = 0;

	while (taken + (uint64_t)n < FLOOD && poll(&p, 1, TEST_WAIT_MS) == 1 &&
	       recv(gsi_fd(g), NULL, 0, MSG_DONTWAIT | MSG_TRUNC) >= 0)
		n++;
	assert_true(recv(gsi_fd(g), NULL, 0, MSG_DONTWAIT) < 0);
	return n;
}

static void empty_datagrams_do_not_prolong_a_turn(void **state)
{
	struct inaddr to = host_address(2);
	int left;

	side[1].junk = 0;
	flood_empty(&side[1], &to);
	gsi_turn(&side[1], 1);
	left = count_left(&side[1], side[1].junk);
	assert_uint_in_range(left, 1, FLOOD - 1);
	assert_int_equal(side[1].junk + (uint64_t)left, FLOOD);
}

/* Lets the kernel report more about each datagram than fits in the buffer for
 * control messages: the datagram then has MSG_CTRUNC. */
static void ask_for_too_much(int fd)
{
	static const struct {
		int level, name, value;
	} options[] = {
		{IPPROTO_IPV6, IPV6_2292PKTINFO, 1},
		{IPPROTO_IPV6, IPV6_2292HOPLIMIT, 1},
		{IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1},
		{IPPROTO_IPV6, IPV6_ORIGDSTADDR, 1},
		{SOL_SOCKET, SO_TIMESTAMPNS, 1},
		{SOL_SOCKET, SO_TIMESTAMPING,
		 SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_RX_SOFTWARE},
	};

	for (size_t i = 0; i < TEST_COUNT(options); i++)
		assert_int_equal(setsockopt(fd, options[i].level,
					    options[i].name, &options[i].value,
					    sizeof(int)),
				 0);
}

static void datagrams_that_do_not_fit_do_not_prolong_a_turn(void **state)
{
	static struct gsi g;
	const struct inaddr to = {.ip = {[15] = 1}}; /* ::1 */
	int fd, left;

	NEEDS_KERNEL(); /* options of sockets that few programs use */
	fd = bind_host(to);
	assert_int_equal(gsi_open(&g, fd), 0);
	close(fd);
	ask_for_too_much(gsi_fd(&g));
	flood_empty(&g, &to);
	gsi_turn(&g, 1);
	left = count_left(&g, g.wire.truncated);
	assert_uint_in_range(left, 1, FLOOD - 1);
	assert_int_equal(g.wire.truncated + (uint64_t)left, FLOOD);
	gsi_close(&g);
}

/* One flush sends MADs of both owners, though the first owner has more. */
static void owners_take_turns(void **state)
{
	const struct inaddr from = host_address(1), to = host_address(2);
	int before = heard.count;

	send_of(&side[0], 1, &from, &to, 10 * UDP_BATCH);
	send_of(&side[0], 2, &from, &to, 1);
	gsi_flush(&side[0]);
	assert_int_equal(gsi_patience(&side[0]), 0);
	while (heard.count - before < UDP_BATCH + 1)
		await_turn(&side[1], 1);
	assert_int_equal(heard.count - before, UDP_BATCH + 1);
	assert_int_equal(heard.bytes[MAD_BYTES - 1], 0);
	while (gsi_patience(&side[0]) >= 0) {
		gsi_flush(&side[0]);
		gsi_turn(&side[1], 1);
	}
	while (heard.count - before < 10 * UDP_BATCH + 1)
		await_turn(&side[1], 1);
}

/* Makes the kernel repeat its ARP requests after 20 ms, so that the kernel
 * gives up sooner and the test takes less time. */
static void ask_shortly(void)
{
	int fd = open("/proc/sys/net/ipv4/neigh/second/retrans_time_ms",
		      O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, "20", 2) < 0)
		printf("the kernel asks as long as usual\n");
	close(fd);
}

/* The kernel keeps datagrams to an address whose link-layer address it does not
 * know, and they fill the socket of QP1 until the kernel gives up. */
static void a_dead_address_of_one_owner_holds_up_no_other(void **state)
{
	const struct inaddr near = host_address(1), to = host_address(2);
	const struct inaddr from = {
		.ip = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 1}};
	const struct inaddr dead = {
		.ip = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 2}};
	struct pollfd out = {gsi_fd(&side[0]), POLLOUT, 0};
	struct pollfd in = {gsi_fd(&side[1]), POLLIN, 0};
	int second, before = heard.count, size = 8192;

	NEEDS_KERNEL(); /* TUNSETIFF */
	second = make_second(IFF_TAP);
	if (second < 0)
		SKIP_FOR("no TUN");
	add_four(&from);
	ask_shortly();
	assert_int_equal(
		setsockopt(out.fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)),
		0);
	send_of(&side[0], 1, &from, &dead, 10 * UDP_BATCH);
	gsi_flush(&side[0]);
	send_of(&side[0], 2, &near, &to, 1);
	while (heard.count == before) {
		assert_int_equal(poll(&out, 1, TEST_WAIT_MS), 1);
		gsi_flush(&side[0]);
		if (poll(&in, 1, 0) == 1)
			gsi_turn(&side[1], 1);
	}
	assert_true(side[0].blocks > 0);
	close(second);
	while (gsi_patience(&side[0]) >= 0)
		gsi_flush(&side[0]);
}

/* A limited number of MADs waits until gsi_flush sends them; further MADs are
 * counted as lost.  An owner gets another block only if more blocks are free
 * than the owner has: here owner 1 gets half of all blocks, and owner 2 half of
 * the rest.  QP1 has no socket here, so gsi_flush drops the MADs. */
static void the_number_of_waiting_mads_is_bounded(void **state)
{
	const uint32_t most = GSI_BLOCKS / 2 * UDP_BATCH;
	static struct gsi g;
	uint8_t bytes[MAD_BYTES] = {0};
	struct gsi_mad m = {.bytes = bytes, .owner = 1};

	for (uint32_t i = 0; i < most + 7; i++)
		gsi_send(&g, &m);
	assert_int_equal(g.lost, 7);
	m.owner = 2;
	for (uint32_t i = 0; i < most / 2 + 1; i++)
		gsi_send(&g, &m);
	assert_int_equal(g.lost, 8);
	assert_int_equal(gsi_patience(&g), 0);
	gsi_flush(&g);
	assert_int_equal(gsi_patience(&g), -1);
	gsi_close(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_mad_reaches_the_agent_of_its_class),
		cmocka_unit_test(
			a_packet_that_is_no_mad_for_qp1_is_counted_and_dropped),
		cmocka_unit_test(qp1_of_this_host_sends_from_its_port_alone),
		cmocka_unit_test(
			a_link_local_address_is_this_hosts_at_any_interface),
		cmocka_unit_test(every_mad_to_the_same_host_is_received),
		cmocka_unit_test(
			mads_to_one_address_of_this_host_share_datagrams),
		cmocka_unit_test(mads_to_other_hosts_are_not_joined),
		cmocka_unit_test(mads_arrive_where_the_kernel_refuses_segments),
		cmocka_unit_test(empty_datagrams_do_not_prolong_a_turn),
		cmocka_unit_test(
			datagrams_that_do_not_fit_do_not_prolong_a_turn),
		cmocka_unit_test(owners_take_turns),
		cmocka_unit_test(a_dead_address_of_one_owner_holds_up_no_other),
		cmocka_unit_test(the_number_of_waiting_mads_is_bounded),
	};

	return cmocka_run_group_tests(tests, setup_sides, teardown_sides);
}
