/* SPDX-License-Identifier: BSD-2-Clause */
/* The link of a process to an emulated subnet by rings in shared memory.  The
 * test acts as the fabric. */
#include "fabric_link_packets.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scenario/side_progress.h"
#include "unit/refused_syscall.h"

#define BOTH 3u /* the ports with rings */

/* The errno with which each sendto(2) of the process fails; 0: the kernel
 * executes the calls. */
static int sendto_error;
/* How many calls of syscall(2) the process has made. */
static int calls;

static int refused_syscall(long number, long first)
{
	calls++;
	return number == SYS_sendto ? sendto_error : 0;
}

/* Receives a message about the rings.  False: there is none. */
static bool take_wake(struct world *w, int port)
{
	struct fabric_proto_news news;
	ssize_t n = recv(w->data[port - 1], &news, sizeof(news), MSG_DONTWAIT);

	if (n < 0)
		return false;
	assert_int_equal(n, sizeof(news));
	assert_int_equal(news.changes, DATA_RING);
	return true;
}

/* Moves up to `most` packets of the process from a ring to side 1.  Returns
 * their number. */
static size_t take_ring(struct world *w, int port, size_t most)
{
	struct fabric_peer_ring *r = &w->rings[port - 1];
	struct engine_packet p = {.port = 1};
	size_t count = 0;

	while (count < most &&
	       (p.bytes = packet_ring_next(&r->in, LRH_FRAME_MAX, &p.len))) {
		assert_int_equal(lrh_first(p.bytes, p.len), p.len);
		engine_rx_link(w->d->side[1].engine, &p, w->d->now_ns);
		count++;
	}
	assert_false(r->in.is_broken);
	return count;
}

/* Frees the room of the packets that were taken.  True: the process waits for
 * room, and its eventfd was made writable. */
static bool release_ring(struct world *w, int port)
{
	struct fabric_peer_ring *r = &w->rings[port - 1];
	uint64_t count;

	if (!packet_ring_release(&r->in))
		return false;
	assert_int_equal(read(r->room_fd, &count, sizeof(count)),
			 sizeof(count));
	return true;
}

/* Puts the frames of side 1 into the ring to the process.  Returns their
 * number. */
static size_t put_frames(struct world *w, int port)
{
	struct packet_ring_out *out = &w->rings[port - 1].out;
	struct engine *e = w->d->side[1].engine;
	struct engine_frame f;
	size_t count = 0;

	while (engine_tx(e, &f, 1, w->d->now_ns)) {
		uint8_t *room = packet_ring_room(out, f.head_bytes + f.len);

		assert_non_null(room);
		memcpy(room, f.head, f.head_bytes);
		memcpy(room + f.head_bytes, f.bytes, f.len);
		packet_ring_put(out, f.head_bytes + f.len);
		engine_tx_done(e, 1);
		count++;
	}
	return count;
}

/* Publishes packets to the process.  True: the process waited, and was woken.
 */
static bool publish_frames(struct world *w, int port)
{
	if (!packet_ring_publish(&w->rings[port - 1].out))
		return false;
	fabric_peer_tell(w, port, DATA_RING);
	return true;
}

/* A fabric that ends frees the memory of the rings.  This test runs before all
 * other tests whose link ends, since a process prints the message about the end
 * only once. */
static void a_fabric_that_frees_the_rings_has_ended(void **state)
{
	int old = dup(STDERR_FILENO),
	    file = memfd_create("stderr", MFD_CLOEXEC);
	char text[1024] = "";
	struct world w;

	fabric_peer_start_rings(&w, HCA_QPT_UC, BOTH);
	post_send(&w, 1, 0);
	put_frames(&w, 1);
	publish_frames(&w, 1);
	fabric_peer_hang_up(&w);
	w.control = w.data[0] = w.data[1] = -1;
	memset(w.rings[0].memory, 0, PACKET_RING_FILE);
	shared_store(&w.rings[0].out.words->tail, 100);
	dup2(file, STDERR_FILENO);
	assert_true(fabric_peer_turn(&w));
	dup2(old, STDERR_FILENO);
	assert_true(fabric_link_has_ended());
	assert_true(pread(file, text, sizeof(text) - 1, 0) > 0);
	assert_non_null(strstr(text, "the process there has ended"));
	close(old);
	close(file);
	fabric_peer_end(&w);
}

static void a_request_and_its_answer_go_by_rings(void **state)
{
	struct world w;

	fabric_peer_start_rings(&w, HCA_QPT_RC, BOTH);
	for (int port = 1; port <= FABRIC_PEER_PORTS; port++) {
		/* the process tells the fabric that it uses the rings */
		assert_true(take_wake(&w, port));
		assert_false(take_wake(&w, port));
	}
	two_hcas_fill(w.d, 0, 0, BYTES);
	two_hcas_recv(w.d, 1, 0, BYTES);
	post_send(&w, 0, 0);
	assert_int_equal(send_all(&w), 1);
	assert_int_equal(take_ring(&w, 1, 9), 1);
	assert_received(&w, 1, 0, 0);
	assert_false(fabric_link_has_news());
	assert_int_equal(put_frames(&w, 1), 1); /* the ACK */
	assert_false(publish_frames(&w, 1));
	assert_true(fabric_link_has_news());
	assert_true(fabric_peer_turn(&w));
	assert_completes(&w, 0, HCA_SUCCESS);
	assert_false(fabric_peer_turn(&w));
	assert_false(take_wake(&w, 1));
	fabric_peer_end(&w);
}

/* Sends a message of side 1 to port `port`, by the port's ring if there is one,
 * and expects that the process receives the message at `to`. */
static void send_to(struct world *w, int port, uint64_t to)
{
	w->d->side[0].qp->attr.port_num = (uint8_t)port;
	two_hcas_fill(w->d, 1, 0, BYTES);
	two_hcas_recv(w->d, 0, to, BYTES);
	post_send(w, 1, 0);
	if (w->rings[port - 1].memory)
		assert_int_equal(put_frames(w, port), 1);
	else
		assert_int_equal(send_back(w, port), 1);
	if (w->rings[port - 1].memory)
		publish_frames(w, port);
	assert_true(fabric_link_has_news());
	assert_true(fabric_peer_turn(w));
	assert_received(w, 0, to, 0);
}

/* The fabric may refuse the rings of any port. */
static void ports_with_and_without_rings_work_beside_each_other(void **state)
{
	for (uint32_t ports = 0; ports <= BOTH; ports++) {
		struct engine_frame f = {.head = (const uint8_t *)"head",
					 .head_bytes = 4,
					 .bytes = (const uint8_t *)"bytes",
					 .len = 5};
		struct world w;

		fabric_peer_start_rings(&w, HCA_QPT_UC, ports);
		for (f.port = 1; f.port <= 2; f.port++) {
			bool has_ring = ports >> (f.port - 1) & 1;
			int fd = w.data[f.port - 1];
			char bytes[10];
			size_t n = 0;

			assert_int_equal(take_wake(&w, f.port), has_ring);
			assert_int_equal(fabric_link_send(&f, 1), 1);
			if (has_ring)
				assert_memory_equal(
					packet_ring_next(
						&w.rings[f.port - 1].in,
						LRH_FRAME_MAX, &n),
					"headbytes", 9);
			else
				n = recv(fd, bytes, 10, MSG_DONTWAIT);
			assert_int_equal(n, 9);
			assert_false(take_wake(&w, f.port));
			for (uint64_t i = 0; i < 40; i++)
				send_to(&w, f.port, i * BYTES);
		}
		fabric_peer_end(&w);
	}
}

static void news_come_beside_packets(void **state)
{
	struct world w;

	fabric_peer_start_rings(&w, HCA_QPT_UC, BOTH);
	two_hcas_fill(w.d, 1, 0, BYTES);
	fabric_peer_tell(&w, 1, DATA_SM);
	for (int i = 0; i < 100 && !fabric_peer_is_readable(w.control); i++) {
		two_hcas_recv(w.d, 0, 0, BYTES);
		post_send(&w, 1, 0);
		put_frames(&w, 1);
		publish_frames(&w, 1);
		assert_true(fabric_peer_turn(&w));
		assert_received(&w, 0, 0, 0);
	}
	take_question(&w, 1);
	fabric_peer_end(&w);
}

static bool is_writable(int fd)
{
	struct pollfd p = {fd, POLLOUT, 0};

	return poll(&p, 1, 0) == 1;
}

static void a_full_ring_leaves_frames_with_the_engine(void **state)
{
	const uint32_t count = 500;
	size_t sent, moved = 0;
	struct world w;

	fabric_peer_start_rings(&w, HCA_QPT_UC, BOTH);
	for (uint32_t i = 0; i < count; i++) {
		two_hcas_recv(w.d, 1, (uint64_t)i * BYTES, BYTES);
		two_hcas_fill(w.d, 0, (uint64_t)i * BYTES, BYTES);
		post_send(&w, 0, (uint64_t)i * BYTES);
	}
	sent = send_all(&w);
	assert_true(sent > 100 && sent < count);
	assert_true(fabric_link_wants_room(fabric_link_full_fd()));
	assert_false(is_writable(fabric_link_full_fd()));
	calls = 0;
	assert_int_equal(send_all(&w), 0);
	assert_int_equal(calls, 0);
	/* the process is told once, when half of the ring is free */
	moved = take_ring(&w, 1, 10);
	assert_false(release_ring(&w, 1));
	assert_false(is_writable(fabric_link_full_fd()));
	moved += take_ring(&w, 1, sent);
	assert_int_equal(moved, sent);
	assert_true(release_ring(&w, 1));
	assert_true(is_writable(fabric_link_full_fd()));
	assert_false(fabric_link_wants_room(fabric_link_full_fd()));
	while (moved < count) {
		assert_true(send_all(&w) > 0);
		moved += take_ring(&w, 1, count);
		release_ring(&w, 1);
	}
	for (uint32_t i = 0; i < count; i++)
		assert_received(&w, 1, (uint64_t)i * BYTES,
				(uint64_t)i * BYTES);
	fabric_peer_end(&w);
}

static void each_side_wakes_the_other_once(void **state)
{
	struct world w;

	fabric_peer_start_rings(&w, HCA_QPT_UC, BOTH);
	take_wake(&w, 1);
	assert_true(packet_ring_idle(&w.rings[0].in));
	for (int i = 0; i < 3; i++) {
		post_send(&w, 0, 0);
		send_all(&w);
		assert_int_equal(take_wake(&w, 1), i == 0);
	}
	assert_true(fabric_link_idle());
	assert_true(fabric_link_idle());
	for (int i = 0; i < 3; i++) {
		two_hcas_recv(w.d, 0, 0, BYTES);
		post_send(&w, 1, 0);
		put_frames(&w, 1);
		assert_int_equal(publish_frames(&w, 1), i == 0);
		assert_true(fabric_peer_is_readable(fabric_link_fd()));
	}
	assert_false(fabric_link_idle());
	while (fabric_peer_turn(&w))
		;
	assert_true(fabric_link_idle());
	assert_false(fabric_peer_is_readable(fabric_link_fd()));
	fabric_peer_end(&w);
}

/* The kernel has no memory for the message that wakes the fabric. */
static void a_wake_up_without_memory_is_sent_again(void **state)
{
	static const int errors[] = {ENOBUFS, ENOMEM};
	struct world w;

	fabric_peer_start_rings(&w, HCA_QPT_UC, BOTH);
	take_wake(&w, 1);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(take_ring(&w, 1, 9), 0);
		assert_true(packet_ring_idle(&w.rings[0].in));
		sendto_error = errors[i];
		post_send(&w, 0, 0);
		assert_int_equal(send_all(&w), 1);
		assert_false(take_wake(&w, 1));
		/* a thread of the process would not wait */
		assert_false(fabric_link_idle());
		sendto_error = 0;
		assert_true(fabric_link_idle());
		assert_true(take_wake(&w, 1));
		assert_false(take_wake(&w, 1));
		two_hcas_recv(w.d, 1, 0, BYTES);
		assert_int_equal(take_ring(&w, 1, 9), 1);
	}
	fabric_peer_end(&w);
}

/* The kernel has no memory for a question to the fabric. */
static void a_question_without_memory_is_sent_again(void **state)
{
	static const int errors[] = {ENOBUFS, ENOMEM};
	struct fabric_proto m;
	struct world w;

	fabric_peer_start_rings(&w, HCA_QPT_UC, BOTH);
	for (uint16_t i = 0; i < 2; i++) {
		sendto_error = errors[i];
		fabric_peer_tell(&w, 1, DATA_LID);
		assert_true(fabric_peer_turn(&w));
		assert_false(fabric_peer_is_readable(w.control));
		/* a thread of the process would not wait */
		assert_false(fabric_link_idle());
		sendto_error = 0;
		fabric_peer_turn(&w);
		m = fabric_peer_question(&w, FABRIC_PROTO_PORT, 1);
		assert_true(fabric_link_idle());
		m.port = w.port;
		m.port.lid = (uint16_t)(w.port.lid + 1 + i);
		fabric_peer_answer(&w, &m);
		assert_true(fabric_peer_turn(&w));
		assert_int_equal(fabric_link_take_changes(1), DATA_LID);
	}
	fabric_peer_end(&w);
}

/* ---- nonsense ---- */

static void assert_nonsense_ends(struct world *w)
{
	assert_true(fabric_peer_turn(w));
	fabric_peer_assert_ended(w);
	fabric_peer_end(w);
}

static void nonsense_in_a_ring_ends_the_link(void **state)
{
	struct world w;
	size_t n;

	fabric_peer_start_rings(&w, HCA_QPT_UC, BOTH);
	shared_store(&w.rings[1].out.words->tail, PACKET_RING_BLOCKS + 1);
	assert_true(fabric_link_has_news());
	assert_nonsense_ends(&w);
	/* a packet that is longer than the longest packet of a link */
	fabric_peer_start_rings(&w, HCA_QPT_UC, BOTH);
	assert_non_null(packet_ring_room(&w.rings[0].out, LRH_FRAME_MAX + 1));
	packet_ring_put(&w.rings[0].out, LRH_FRAME_MAX + 1);
	packet_ring_publish(&w.rings[0].out);
	assert_nonsense_ends(&w);
	/* a head that claims more room than the ring has */
	fabric_peer_start_rings(&w, HCA_QPT_UC, BOTH);
	shared_store(&w.rings[0].in.words->head, 1u << 31);
	for (int i = 0; i < 500; i++)
		post_send(&w, 0, 0);
	assert_int_equal(send_all(&w), 500);
	assert_nonsense_ends(&w);
	/* damaged packets are dropped, and so is a packet of one byte */
	fabric_peer_start_rings(&w, HCA_QPT_UC, BOTH);
	for (n = 1; n < 100; n += 33) {
		memset(packet_ring_room(&w.rings[0].out, n), 0xff, n);
		packet_ring_put(&w.rings[0].out, n);
	}
	packet_ring_publish(&w.rings[0].out);
	assert_true(fabric_peer_turn(&w));
	assert_false(fabric_link_has_ended());
	fabric_peer_end(&w);
}

/* ---- fork, and closed descriptors ---- */

static bool maps_rings(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	bool found = false;
	char line[512];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		found |= strstr(line, "/memfd:ring") != NULL;
	fclose(maps);
	return found;
}

static void a_child_does_not_have_the_rings(void **state)
{
	struct world w;
	int status = -1;
	pid_t child;

	fabric_peer_start_rings(&w, HCA_QPT_RC, BOTH);
	/* the child does not have the mappings of the test either */
	for (int i = 0; i < FABRIC_PEER_PORTS; i++)
		madvise(w.rings[i].memory, PACKET_RING_FILE, MADV_DONTFORK);
	assert_true(maps_rings());
	child = fork();
	if (!child) {
		fabric_link_forget();
		_exit(maps_rings() || fabric_link_is_open() ? 3 : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	post_send(&w, 0, 0);
	assert_int_equal(send_all(&w), 1);
	two_hcas_recv(w.d, 1, 0, BYTES);
	assert_int_equal(take_ring(&w, 1, 9), 1);
	assert_int_equal(put_frames(&w, 1), 1);
	publish_frames(&w, 1);
	assert_true(fabric_peer_turn(&w));
	assert_completes(&w, 0, HCA_SUCCESS);
	fabric_peer_end(&w);
}

static void a_closed_eventfd_ends_the_link(void **state)
{
	struct world w;

	fabric_peer_start_rings(&w, HCA_QPT_UC, BOTH);
	while (fabric_link_full_fd() < 0) {
		post_send(&w, 0, 0);
		send_all(&w);
	}
	assert_true(fabric_link_is_ours());
	close(fabric_link_full_fd());
	assert_false(fabric_link_is_ours());
	assert_nonsense_ends(&w);
}

/* ---- the progress loop ---- */

/* Puts a packet into the ring of port 1, and publishes it.  Returns whether the
 * process is woken. */
static bool send_packet(struct world *w)
{
	two_hcas_recv(w->d, 0, 0, BYTES);
	post_send(w, 1, 0);
	put_frames(w, 1);
	return publish_frames(w, 1);
}

/* The leader waits.  Before it sees the packet or the message of the wake-up,
 * another thread, which polls, takes both.  The fabric must wake the leader at
 * the next packet nevertheless. */
static void a_wake_up_that_another_thread_takes_is_asked_for_again(void **state)
{
	struct waitset in = {.fd = -1};
	struct world w;

	fabric_peer_start_rings(&w, HCA_QPT_UC, BOTH);
	begin_progress(w.d, ignore_fatal);
	waitset_open(&in, &progress);
	assert_int_equal(rest_once(), POLLIN);
	assert_true(send_packet(&w));
	for (int i = 0; i < 64 && fabric_peer_is_readable(fabric_link_fd());
	     i++)
		poll_once();
	assert_false(fabric_peer_is_readable(fabric_link_fd()));
	assert_received(&w, 0, 0, 0);
	assert_true(send_packet(&w));
	wait_once(&in, POLLIN);
	rest_once();
	assert_received(&w, 0, 0, 0);
	progress_rested(&progress);
	waitset_close(&in);
	end_progress(w.d);
	fabric_peer_end(&w);
}

/* The process is about to end, and waits for room.  Meanwhile the fabric is
 * killed. */
static void *hang_up_soon(void *world)
{
	usleep(100000);
	fabric_peer_hang_up(world);
	return NULL;
}

static void a_fabric_that_dies_holds_up_no_end(void **state)
{
	struct world w;
	pthread_t thread;

	fabric_peer_start_rings(&w, HCA_QPT_UC, BOTH);
	begin_progress(w.d, ignore_fatal);
	progress_take(&progress);
	for (int i = 0; i < 500; i++)
		post_send(&w, 0, 0);
	progress_give(&progress);
	assert_int_equal(pthread_create(&thread, NULL, hang_up_soon, &w), 0);
	progress_send_rest(&progress);
	pthread_join(thread, NULL);
	/* The first call may have ended before the fabric, if this process was
	 * suspended for longer than the call waits. */
	progress_send_rest(&progress);
	w.control = w.data[0] = w.data[1] = -1;
	assert_int_equal(progress.tx.full_fd, -1);
	end_progress(w.d);
	fabric_peer_end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fabric_that_frees_the_rings_has_ended),
		cmocka_unit_test(a_request_and_its_answer_go_by_rings),
		cmocka_unit_test(
			ports_with_and_without_rings_work_beside_each_other),
		cmocka_unit_test(news_come_beside_packets),
		cmocka_unit_test(a_full_ring_leaves_frames_with_the_engine),
		cmocka_unit_test(each_side_wakes_the_other_once),
		cmocka_unit_test(a_wake_up_without_memory_is_sent_again),
		cmocka_unit_test(a_question_without_memory_is_sent_again),
		cmocka_unit_test(nonsense_in_a_ring_ends_the_link),
		cmocka_unit_test(a_child_does_not_have_the_rings),
		cmocka_unit_test(a_closed_eventfd_ends_the_link),
		cmocka_unit_test(
			a_wake_up_that_another_thread_takes_is_asked_for_again),
		cmocka_unit_test(a_fabric_that_dies_holds_up_no_end),
	};

	return cmocka_run_group_tests(tests, fabric_peer_make_folder,
				      fabric_peer_remove_folder);
}
