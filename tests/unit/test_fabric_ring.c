/* SPDX-License-Identifier: BSD-2-Clause */
/* tools/fabric_ring, tools/fabric_data: the fabric's side of rings.  Whatever a
 * program does with its rings, only its own data end ends. */
#include "program_packets.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "fabric/packet_ring.h"
#include "tools/fabric_ring.h"

enum {
	FULL_TURNS = 8, /* after so many turns without room, a ring is full */
};

/* A program with a data end at port 1 of a host. */
struct peer {
	int fabric, data;
	uint32_t number;
	/* NULL: the program has no rings. */
	void *memory;
	struct packet_ring_out out;
	struct packet_ring_in in;
	int room_fd, file; /* the eventfd; the file of both rings */
	/* Instead of each message about its rings, the program sends a packet
	 * that it has refused.  A program whose socket is full of refused
	 * packets cannot send a message about its rings either. */
	bool only_refuses;
};

/* How many of the next calls of send by the fabric fail with ENOBUFS.  The
 * number is in memory that the fabric's process, a child, shares. */
static _Atomic int *failures;

ssize_t __real_send(int fd, const void *bytes, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t n, int flags);

/* In the fabric's process, the child, `server` is 0. */
ssize_t __wrap_send(int fd, const void *bytes, size_t n, int flags)
{
	if (!server && failures && *failures) {
		--*failures;
		errno = ENOBUFS;
		return -1;
	}
	return __real_send(fd, bytes, n, flags);
}

static struct peer attach_to(const char *host)
{
	struct fabric_proto m = {.kind = FABRIC_PROTO_DATA, .number = 1};
	struct peer p = {.fabric = join_fabric(), .room_fd = -1, .file = -1};

	strcpy(m.host, host);
	assert_int_equal(ask_fabric(p.fabric, &m, &p.data), 0);
	p.number = m.number;
	return p;
}

static int ask_ring(struct peer *p, int room_fd)
{
	struct fabric_proto m = {.kind = FABRIC_PROTO_RING, .number = 1};

	return fabric_client_bring(p->fabric, &m, room_fd, &p->file);
}

static void send_wake(const struct peer *p)
{
	const struct fabric_proto_news news = {.changes = DATA_RING};
	uint8_t packet[BYTES];

	if (p->only_refuses) {
		make_packet(packet, p->number, 0);
		packet[0] |= FABRIC_PROTO_REFUSED;
		send(p->data, packet, sizeof(packet), MSG_NOSIGNAL);
		return;
	}
	send(p->data, &news, sizeof(news), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static struct peer attach_with_ring(const char *host)
{
	struct peer p = attach_to(host);

	p.room_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_int_equal(ask_ring(&p, p.room_fd), 0);
	p.memory = mmap(NULL, PACKET_RING_FILE, PROT_READ | PROT_WRITE,
			MAP_SHARED, p.file, 0);
	assert_ptr_not_equal(p.memory, MAP_FAILED);
	packet_ring_init_out(&p.out, p.memory);
	packet_ring_init_in(&p.in, (uint8_t *)p.memory + PACKET_RING_BYTES);
	send_wake(&p);
	return p;
}

static void leave_fabric(struct peer *p)
{
	close_both(p->fabric, p->data);
	if (p->memory) {
		munmap(p->memory, PACKET_RING_FILE);
		close_both(p->file, p->room_fd);
	}
}

/* Puts a packet from a to b.  False: there is no room. */
static bool put_packet(struct peer *a, const struct peer *b, int mark)
{
	uint8_t *room = packet_ring_room(&a->out, BYTES);

	if (!room) {
		packet_ring_want_room(&a->out);
		room = packet_ring_room(&a->out, BYTES);
	}
	if (!room)
		return false;
	make_packet(room, b->number, mark);
	packet_ring_put(&a->out, BYTES);
	if (packet_ring_publish(&a->out))
		send_wake(a);
	return true;
}

/* Waits for the next packet of the ring, and returns its mark. -1: no packet
 * comes within timeout_ms, or the fabric has closed the data end; -2: the ring
 * is broken. */
static int take_mark_within(struct peer *b, int timeout_ms)
{
	struct fabric_proto_news news;
	struct pollfd wait = {.fd = b->data, .events = POLLIN};
	const uint8_t *bytes;
	size_t n;
	int mark;

	while (!(bytes = packet_ring_next(&b->in, LRH_FRAME_MAX, &n))) {
		if (b->in.is_broken)
			return -2;
		if (!packet_ring_idle(&b->in))
			continue;
		if (poll(&wait, 1, timeout_ms) != 1 ||
		    recv(b->data, &news, sizeof(news), 0) <= 0)
			return -1;
	}
	assert_int_equal(n, BYTES);
	mark = bytes[LRH_BYTES + BTH_BYTES];
	assert_int_equal(bytes[LRH_BYTES + BTH_BYTES + PAYLOAD - 1], mark);
	if (packet_ring_release(&b->in))
		send_wake(b);
	return mark;
}

static int take_mark(struct peer *b)
{
	return take_mark_within(b, TEST_WAIT_MS);
}

static void packets_go_by_rings(void **state)
{
	NEEDS_KERNEL();
	struct peer a = attach_with_ring("A"), b = attach_with_ring("B");

	for (int i = 0; i < 2000; i++) {
		assert_true(put_packet(&a, &b, i & 0xff));
		assert_int_equal(take_mark(&b), i & 0xff);
	}
	leave_fabric(&a);
	leave_fabric(&b);
}

/* The kernel has no memory for the messages that wake B. */
static void a_wake_up_without_memory_is_sent_again(void **state)
{
	NEEDS_KERNEL();
	struct peer a = attach_with_ring("A"), b = attach_with_ring("B");

	for (int i = 1; i < 4; i++) {
		assert_true(packet_ring_idle(&b.in));
		*failures = i;
		assert_true(put_packet(&a, &b, i));
		assert_int_equal(take_mark(&b), i);
		assert_int_equal(*failures, 0);
	}
	leave_fabric(&a);
	leave_fabric(&b);
}

/* The fabric takes the packets in several turns, and wakes B after the last
 * turn: B finds all packets when it wakes up. */
static void a_stream_wakes_its_receiver_once_for_several_turns(void **state)
{
	NEEDS_KERNEL();
	enum { COUNT = 64 };
	struct peer a = attach_with_ring("A"), b = attach_with_ring("B");
	struct pollfd wait = {.fd = b.data, .events = POLLIN};
	size_t n;

	assert_true(packet_ring_idle(&b.in));
	for (int i = 0; i < COUNT; i++) {
		make_packet(packet_ring_room(&a.out, BYTES), b.number, i);
		packet_ring_put(&a.out, BYTES);
	}
	if (packet_ring_publish(&a.out))
		send_wake(&a);
	assert_int_equal(poll(&wait, 1, TEST_WAIT_MS), 1);
	for (int i = 0; i < COUNT; i++)
		assert_non_null(packet_ring_next(&b.in, LRH_FRAME_MAX, &n));
	leave_fabric(&a);
	leave_fabric(&b);
}

/* Returns whether the fabric has closed the data end, or closes it within `ms`.
 */
static bool is_closed(const struct peer *p, int ms)
{
	struct pollfd wait = {.fd = p->data, .events = 0};

	return poll(&wait, 1, ms) == 1 && wait.revents & POLLHUP;
}

/* Waits for the next message to b, and checks that the message is the packet
 * `bytes`. */
static void expect_packet(const struct peer *b, const uint8_t bytes[BYTES])
{
	uint8_t got[FABRIC_PROTO_BURST_BYTES];
	struct pollfd wait = {.fd = b->data, .events = POLLIN};

	assert_int_equal(poll(&wait, 1, TEST_WAIT_MS), 1);
	assert_int_equal(recv(b->data, got, sizeof(got), 0), BYTES);
	assert_memory_equal(got, bytes, BYTES);
}

/* A program that cannot map the file still sends and receives packets by its
 * socket. */
static void rings_are_used_when_the_program_says_so(void **state)
{
	NEEDS_KERNEL();
	struct peer a = attach_to("A"), b = attach_to("B"), c = attach_to("A");
	uint8_t bytes[BYTES];
	int room_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	assert_int_equal(ask_ring(&a, room_fd), 0);
	close(a.file);
	assert_int_equal(ask_ring(&b, room_fd), 0);
	close(b.file);
	make_packet(bytes, b.number, 7);
	assert_int_equal(send(a.data, bytes, BYTES, 0), BYTES);
	expect_packet(&b, bytes);
	/* from here on the fabric drops the packets of the socket */
	send_wake(&a);
	make_packet(bytes, b.number, 8);
	assert_int_equal(send(a.data, bytes, BYTES, 0), BYTES);
	/* The fabric reads packet 8 before it sees the end of the socket.
	 * Packet 9 leaves the same port later.  B gets packet 9 next, so the
	 * fabric has dropped packet 8. */
	shutdown(a.data, SHUT_WR);
	assert_true(is_closed(&a, TEST_WAIT_MS));
	make_packet(bytes, b.number, 9);
	assert_int_equal(send(c.data, bytes, BYTES, 0), BYTES);
	expect_packet(&b, bytes);
	close(room_fd);
	leave_fabric(&a);
	leave_fabric(&b);
	leave_fabric(&c);
}

/* Waits until the fabric has made a turn. */
static void await_turn(const struct peer *p)
{
	struct fabric_proto m = {.kind = FABRIC_PROTO_PORT, .number = 1};

	strcpy(m.host, "A");
	assert_int_equal(ask_fabric(p->fabric, &m, NULL), 0);
}

/* Fills the rings and the ports from a to b while b takes nothing.  Returns the
 * number of the packets. */
static int fill_way(struct peer *a, const struct peer *b)
{
	int count = 0;

	for (int turns = 0; turns < FULL_TURNS; turns++) {
		for (; put_packet(a, b, count & 0xff); count++)
			turns = 0;
		await_turn(a);
	}
	return count;
}

static void all_packets_of_a_full_way_arrive_in_order(void **state)
{
	NEEDS_KERNEL();
	for (int ends = 0; ends < 2; ends++) {
		struct peer a = attach_with_ring("A"),
			    b = attach_with_ring("B");
		int count = fill_way(&a, &b);

		/* both rings, and what the ports hold */
		assert_true(count > 2 * PACKET_RING_BLOCKS * 64 / BYTES);
		if (ends)
			leave_fabric(&a); /* before its packets were taken */
		for (int i = 0; i < count; i++)
			assert_int_equal(take_mark(&b), i & 0xff);
		if (!ends)
			leave_fabric(&a);
		leave_fabric(&b);
	}
}

/* Each message on the socket wakes the fabric. */
static void refused_packets_wake_the_fabric(void **state)
{
	NEEDS_KERNEL();
	struct peer a = attach_with_ring("A"), b = attach_with_ring("B");
	int count;

	a.only_refuses = b.only_refuses = true;
	count = fill_way(&a, &b);
	for (int i = 0; i < count; i++)
		assert_int_equal(take_mark(&b), i & 0xff);
	for (int i = 0; i < 2000; i++) {
		assert_true(put_packet(&a, &b, i & 0xff));
		assert_int_equal(take_mark(&b), i & 0xff);
	}
	leave_fabric(&a);
	leave_fabric(&b);
}

/* Fills the ring of a while the fabric is stopped, and expects that all packets
 * arrive at b. */
static void fill_stopped(struct peer *a, struct peer *b)
{
	int count = 0;

	assert_int_equal(kill(server, SIGSTOP), 0);
	while (put_packet(a, b, count & 0xff))
		count++;
	assert_int_equal(kill(server, SIGCONT), 0);
	for (int i = 0; i < count; i++)
		assert_int_equal(take_mark(b), i & 0xff);
}

static void a_stopped_fabric_finds_all_packets(void **state)
{
	NEEDS_KERNEL();
	struct peer a = attach_with_ring("A"), b = attach_with_ring("B");

	fill_stopped(&a, &b);
	leave_fabric(&a);
	leave_fabric(&b);
}

/* Writes a wrong index or a wrong length to the rings of a.  way, 0 to 3:
 * chooses one of four wrong values. */
static void write_nonsense(struct peer *a, const struct peer *b, int way)
{
	struct packet_ring_words *out = a->out.words, *in = a->in.words;

	if (way == 0) {
		shared_store(&out->tail, PACKET_RING_BLOCKS + 1);
	} else if (way == 1) {
		put_packet(a, b, 1);
		shared_store(&out->tail, 0x80000000u);
	} else if (way == 2) {
		packet_ring_room(&a->out, LRH_FRAME_MAX + 1);
		packet_ring_put(&a->out, LRH_FRAME_MAX + 1);
		packet_ring_publish(&a->out);
	} else {
		shared_store(&in->head, 1u << 31);
	}
	send_wake(a);
}

static void nonsense_ends_one_data_end(void **state)
{
	NEEDS_KERNEL();
	struct peer a = attach_with_ring("A"), b = attach_with_ring("B");

	for (int way = 0; way < 4; way++) {
		struct peer bad = attach_with_ring(way < 3 ? "A" : "B");

		write_nonsense(&bad, &b, way);
		/* the consumer's index is read when the ring is full */
		for (int i = 0; way == 3 && i < 1000 && !is_closed(&bad, 0);
		     i++) {
			assert_true(put_packet(&a, &bad, 1));
			assert_true(put_packet(&a, &b, 2));
			while (take_mark(&b) != 2)
				;
		}
		assert_true(is_closed(&bad, TEST_WAIT_MS));
		leave_fabric(&bad);
	}
	for (int i = 0; i < 100; i++) {
		assert_true(put_packet(&a, &b, i));
		assert_int_equal(take_mark(&b), i);
	}
	leave_fabric(&a);
	leave_fabric(&b);
}

/* A program that keeps the file of the rings open does not keep the memory of
 * the file. */
static void a_closed_end_frees_its_memory(void **state)
{
	NEEDS_KERNEL();
	struct peer a = attach_with_ring("A"), b = attach_with_ring("B");
	struct fabric_proto m = {.kind = FABRIC_PROTO_CA};
	struct stat s;

	fill_way(&a, &b);
	assert_int_equal(fstat(a.file, &s), 0);
	assert_int_equal(s.st_size, PACKET_RING_FILE);
	assert_true(s.st_blocks * 512 > PACKET_RING_BYTES / 2);
	close(a.fabric);
	close(a.data);
	/* The fabric may notice the end of A only after B has taken all
	 * packets. */
	for (int i = 0; s.st_blocks && i < TEST_WAIT_MS; i++) {
		take_mark_within(&b, 1);
		assert_int_equal(fstat(a.file, &s), 0);
	}
	assert_int_equal(s.st_blocks, 0);
	assert_int_equal(ftruncate(a.file, 0), -1);
	assert_int_equal(fcntl(a.file, F_ADD_SEALS, F_SEAL_WRITE), -1);
	strcpy(m.host, "B");
	assert_int_equal(ask_fabric(b.fabric, &m, NULL), 0);
	munmap(a.memory, PACKET_RING_FILE);
	close_both(a.file, a.room_fd);
	leave_fabric(&b);
}

/* The program clears O_NONBLOCK of its eventfd, whose count is 0, so that a
 * read of the eventfd waits. */
static void an_eventfd_that_waits_does_not_stop_the_fabric(void **state)
{
	NEEDS_KERNEL();
	struct peer a = attach_with_ring("A"), b = attach_with_ring("B");

	assert_int_equal(fcntl(a.room_fd, F_SETFL, 0), 0);
	fill_stopped(&a, &b);
	leave_fabric(&a);
	leave_fabric(&b);
}

static void refused_requests_leave_the_socket(void **state)
{
	NEEDS_KERNEL();
	struct fabric_proto m = {.kind = FABRIC_PROTO_RING, .number = 1};
	struct peer a = attach_to("A"), b = attach_to("B");
	int pipes[2], fd = -1, room_fd = eventfd(0, EFD_NONBLOCK),
		      waits = eventfd(0, 0);

	assert_int_equal(pipe2(pipes, O_CLOEXEC | O_NONBLOCK), 0);
	assert_int_equal(ask_ring(&a, pipes[0]), -EINVAL);
	assert_int_equal(ask_ring(&a, waits), -EINVAL);
	assert_int_equal(ask_fabric(a.fabric, &m, &fd), -EINVAL);
	m = (struct fabric_proto){.kind = FABRIC_PROTO_RING, .number = 2};
	assert_int_equal(fabric_client_bring(a.fabric, &m, room_fd, &fd),
			 -EINVAL);
	assert_int_equal(ask_ring(&a, room_fd), 0);
	close(a.file);
	assert_int_equal(ask_ring(&a, room_fd), -EBUSY);
	close_both(pipes[0], pipes[1]);
	close_both(room_fd, waits);
	leave_fabric(&a);
	leave_fabric(&b);
}

/* All data ends of this test are of one process. */
static void a_process_has_a_few_rings(void **state)
{
	NEEDS_KERNEL();
	int room_fd = eventfd(0, EFD_NONBLOCK);
	struct peer all[FABRIC_RING_EACH + 1];

	for (int i = 0; i <= FABRIC_RING_EACH; i++) {
		all[i] = attach_to("A");
		assert_int_equal(ask_ring(&all[i], room_fd),
				 i < FABRIC_RING_EACH ? 0 : -ENOBUFS);
		close(all[i].file);
	}
	/* the place of rings whose data end was closed is free */
	leave_fabric(&all[0]);
	while (ask_ring(&all[FABRIC_RING_EACH], room_fd))
		;
	for (int i = 1; i <= FABRIC_RING_EACH; i++)
		leave_fabric(&all[i]);
	close(room_fd);
}

static void all_processes_have_a_bounded_number_of_rings(void **state)
{
	NEEDS_KERNEL();
	static struct fabric_ring rings[FABRIC_RING_ALL + 2];
	struct list all;
	int count = 0, fd;

	list_init(&all);
	for (int i = 0; i < FABRIC_RING_ALL + 2; i++) {
		/* pid 0 stands for several processes */
		int pid = i <= FABRIC_RING_UNSEEN ? 0 : 1 + i / 4;
		int room_fd = eventfd(0, EFD_NONBLOCK);

		fd = fabric_ring_open(&rings[i], &all, pid, room_fd);
		if (fd == -EMFILE) { /* this user's limit of descriptors */
			close(room_fd);
			break;
		}
		assert_int_equal(fd < 0, i == FABRIC_RING_UNSEEN ||
						 i == FABRIC_RING_ALL + 1);
		close(fd < 0 ? room_fd : fd);
		count += fd >= 0;
	}
	assert_true(count <= FABRIC_RING_ALL);
	for (int i = 0; i < FABRIC_RING_ALL + 2; i++)
		fabric_ring_close(&rings[i]);
	assert_true(list_is_empty(&all));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FABRIC_TEST(packets_go_by_rings),
		FABRIC_TEST(a_wake_up_without_memory_is_sent_again),
		FABRIC_TEST(a_stream_wakes_its_receiver_once_for_several_turns),
		FABRIC_TEST(rings_are_used_when_the_program_says_so),
		FABRIC_TEST(all_packets_of_a_full_way_arrive_in_order),
		FABRIC_TEST(refused_packets_wake_the_fabric),
		FABRIC_TEST(a_stopped_fabric_finds_all_packets),
		FABRIC_TEST(nonsense_ends_one_data_end),
		FABRIC_TEST(a_closed_end_frees_its_memory),
		FABRIC_TEST(an_eventfd_that_waits_does_not_stop_the_fabric),
		FABRIC_TEST(refused_requests_leave_the_socket),
		FABRIC_TEST(a_process_has_a_few_rings),
		cmocka_unit_test(all_processes_have_a_bounded_number_of_rings),
	};

	failures = mmap(NULL, sizeof(*failures), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (failures == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
