/* SPDX-License-Identifier: BSD-2-Clause */
/* How the link of a process to an emulated subnet ends: by the fabric, by wrong
 * messages, by the program, and in a child of fork. */
#include "fabric_link_packets.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "broker/shared_page.h"
#include "engine/inside.h"
#include "fabric/fabric_client.h"

/* This is the first test whose link ends, since a process prints the message
 * only once. */
static void the_end_of_the_fabric_is_reported(void **state)
{
	int old = dup(STDERR_FILENO),
	    file = memfd_create("stderr", MFD_CLOEXEC);
	uint32_t changes = fabric_link_changes();
	char text[1024] = "";
	struct fabric_port port;
	struct world w;

	fabric_peer_start(&w, HCA_QPT_RC, 0);
	assert_int_not_equal(fabric_link_changes(), changes);
	changes = fabric_link_changes();
	two_hcas_recv(w.d, 0, 0, BYTES);
	dup2(file, STDERR_FILENO);
	shutdown(w.control, SHUT_RDWR);
	assert_true(fabric_link_has_news());
	assert_true(fabric_peer_turn(&w));
	dup2(old, STDERR_FILENO);
	fabric_peer_assert_ended(&w);
	assert_int_not_equal(fabric_link_changes(), changes);
	assert_completes(&w, 0, HCA_WR_FLUSH_ERR);
	for (uint32_t n = 1; n <= FABRIC_PEER_PORTS; n++) {
		assert_true(fabric_link_port(n, &port));
		assert_int_equal(port.state, 1); /* PORT_DOWN */
		assert_int_equal(fabric_link_take_changes(n), DATA_STATE);
	}
	assert_true(pread(file, text, sizeof(text) - 1, 0) > 0);
	assert_non_null(strstr(text, fabric_peer_path));
	assert_non_null(strstr(text, "the process there has ended"));
	assert_non_null(
		strstr(text, "(ADVERB_FABRIC_HOST=" FABRIC_PEER_HOST ")"));
	assert_non_null(strstr(text, "adverb fabric FILE"));
	close(old);
	close(file);
	fabric_peer_end(&w);
}

static void a_closed_data_end_ends_the_link(void **state)
{
	struct world w;

	fabric_peer_start(&w, HCA_QPT_UC, 0);
	shutdown(w.data[1], SHUT_RDWR);
	assert_true(fabric_peer_turn(&w));
	fabric_peer_assert_ended(&w);
	fabric_peer_end(&w);
	/* here a send finds the socket closed */
	fabric_peer_start(&w, HCA_QPT_UC, 0);
	shutdown(w.data[0], SHUT_RDWR);
	post_send(&w, 0, 0);
	assert_int_equal(send_all(&w), 1);
	assert_false(fabric_link_has_ended());
	assert_true(fabric_peer_turn(&w));
	fabric_peer_assert_ended(&w);
	fabric_peer_end(&w);
}

/* Sends a message on a data end, and expects that the message ends the link. */
static void refuse_message(const void *bytes, size_t n)
{
	struct world w;

	fabric_peer_start(&w, HCA_QPT_UC, 0);
	assert_int_equal(send(w.data[0], bytes, n, 0), n);
	assert_true(fabric_peer_turn(&w));
	fabric_peer_assert_ended(&w);
	fabric_peer_end(&w);
}

static void wrong_messages_end_the_link(void **state)
{
	static uint8_t bytes[FABRIC_PROTO_BURST_BYTES + 1];
	struct fabric_proto_news news = {.changes = 2 * DATA_RING};
	struct world w;

	refuse_message(bytes, 1);
	refuse_message(bytes, sizeof(news) - 1);
	refuse_message(bytes, sizeof(news)); /* nothing has changed */
	refuse_message(bytes, sizeof(news) + 1);
	refuse_message(bytes, 25); /* a packet has at least 26 bytes */
	refuse_message(bytes, LRH_FRAME_MAX + 1);
	refuse_message(bytes, sizeof(bytes));
	refuse_message(&news, sizeof(news));
	bytes[5] = 6; /* a packet of 26 bytes, and bytes that are no packet */
	refuse_message(bytes, 27);
	refuse_message(bytes, 52);
	bytes[5] = 0;
	/* a packet that is damaged is dropped, as on any link */
	fabric_peer_start(&w, HCA_QPT_UC, 0);
	assert_int_equal(send(w.data[0], bytes, 26, 0), 26);
	assert_int_equal(send(w.data[0], bytes, LRH_FRAME_MAX, 0),
			 LRH_FRAME_MAX);
	assert_true(fabric_peer_turn(&w));
	assert_false(fabric_link_has_ended());
	assert_int_equal(engine_counters(w.engine, 0)->refused.bad_icrc, 2);
	fabric_peer_end(&w);
}

/* Answers a question about port 1 by the first `size` bytes of *m, and expects
 * that this ends the link.  asks: the process asks the question first, and
 * m->serial is added to the serial number of the question. */
static void refuse_answer(const struct fabric_proto *m, size_t size, bool asks)
{
	struct fabric_proto answer = *m;
	struct world w;

	fabric_peer_start(&w, HCA_QPT_UC, 0);
	if (asks) {
		fabric_peer_tell(&w, 1, DATA_STATE);
		fabric_peer_turn(&w);
		answer.serial += take_question(&w, 1).serial;
	}
	assert_int_equal(send(w.control, &answer, size, 0), size);
	assert_true(fabric_peer_turn(&w));
	fabric_peer_assert_ended(&w);
	fabric_peer_end(&w);
}

static void wrong_answers_end_the_link(void **state)
{
	const struct fabric_proto good = {
		.version = FABRIC_PROTO_VERSION,
		.kind = FABRIC_PROTO_PORT,
		.number = 1,
		.port = {.state = 4, .mtu = 5, .max_mtu = 5}};
	struct fabric_proto m = good;

	refuse_answer(&m, sizeof(m), false);
	m.number = 0;
	refuse_answer(&m, sizeof(m), false);
	m = good;
	refuse_answer(&m, sizeof(m) - 1, true);
	m.version++;
	refuse_answer(&m, sizeof(m), true);
	m = good;
	m.kind = FABRIC_PROTO_CA;
	refuse_answer(&m, sizeof(m), true);
	m = good;
	m.number = 2;
	refuse_answer(&m, sizeof(m), true);
	m.number = UINT32_MAX;
	refuse_answer(&m, sizeof(m), true);
	m = good;
	m.err = -ENODEV;
	refuse_answer(&m, sizeof(m), true);
	m = good;
	m.port.lid = 0xffff;
	refuse_answer(&m, sizeof(m), true);
	m = good;
	m.port.state = 5;
	refuse_answer(&m, sizeof(m), true);
	m = good;
	m.serial = 1;
	refuse_answer(&m, sizeof(m), true);
	m.serial = UINT32_MAX;
	refuse_answer(&m, sizeof(m), true);
}

/* Lets the process share its arena.  The fabric answers with the number, and
 * with a page if has_page is set.  Returns the result of fabric_link_share. */
static bool share_arena(struct world *w, uint32_t number, bool has_page)
{
	int page = shared_page_new();
	struct fabric_proto m = {.version = FABRIC_PROTO_VERSION,
				 .kind = FABRIC_PROTO_SHARE,
				 .serial = fabric_client_serial() + 1,
				 .number = number};
	bool shares;

	assert_true(page >= 0);
	/* the answer waits in the socket */
	fabric_peer_bring(w, &m, has_page ? page : -1);
	shares = fabric_link_share(w->engine, 33, page);
	m = fabric_peer_question(w, FABRIC_PROTO_SHARE, 0);
	assert_int_equal(m.arena.pid, getpid());
	assert_int_equal(m.arena.fd, 33);
	close(page);
	return shares;
}

static const struct link_reach_about about = {
	.qpn = 5, .port = 2, .packets = {.dest_qpn = 6, .dlid = 7}};

/* A process whose fabric answers FABRIC_PROTO_SHARE wrongly asks nothing about
 * direct requests, and sends packets. */
static void a_wrong_answer_to_share_means_packets(void **state)
{
	struct fabric_reached reached;
	struct world w;

	for (int i = 0; i < 3; i++) {
		fabric_peer_start(&w, HCA_QPT_RC, 0);
		assert_false(share_arena(&w,
					 i == 1	  ? 0
					 : i == 2 ? 1023
						  : 5,
					 i != 0));
		assert_int_equal(fabric_link_reach(&about, &reached),
				 LINK_REACH_NO);
		assert_false(fabric_peer_is_readable(w.control));
		assert_false(fabric_link_has_ended());
		fabric_peer_end(&w);
	}
}

/* Makes this process wait for answers of the fabric for a moment only. */
static void lose_patience(void)
{
	const struct timeval soon = {.tv_usec = 1000};
	struct timeval most;
	socklen_t size = sizeof(most);

	for (int fd = 0; fd < 256; fd++)
		if (!getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, &size) &&
		    most.tv_sec)
			setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &soon,
				   sizeof(soon));
}

/* A fabric that was stopped answers the request to share the arena when the
 * process does not wait any more.  A second answer ends the link. */
static void a_late_answer_to_share_ends_nothing(void **state)
{
	for (int is_twice = 0; is_twice < 2; is_twice++) {
		int page = shared_page_new();
		struct fabric_proto late, m;
		struct world w;

		assert_true(page >= 0);
		fabric_peer_start(&w, HCA_QPT_RC, 0);
		lose_patience();
		assert_false(fabric_link_share(w.engine, 33, page));
		late = fabric_peer_question(&w, FABRIC_PROTO_SHARE, 0);
		late.number = 5;
		fabric_peer_tell(&w, 1, DATA_STATE);
		fabric_peer_turn(&w);
		m = take_question(&w, 1);
		m.port = w.port;
		fabric_peer_bring(&w, &late, page);
		if (is_twice)
			fabric_peer_bring(&w, &late, page);
		assert_true(fabric_peer_turn(&w));
		assert_int_equal(fabric_link_has_ended(), is_twice);
		if (!is_twice) {
			fabric_peer_answer(&w, &m);
			assert_true(fabric_peer_turn(&w));
			assert_false(fabric_link_has_ended());
		}
		close(page);
		fabric_peer_end(&w);
	}
}

/* Makes a world in which the process has asked about packets.  Returns the
 * question. */
static struct fabric_proto ask_about_packets(struct world *w)
{
	struct fabric_reached reached;
	struct fabric_proto m;

	fabric_peer_start(w, HCA_QPT_RC, 0);
	assert_true(share_arena(w, 5, true));
	assert_int_equal(fabric_link_reach(&about, &reached), LINK_REACH_ASKED);
	m = fabric_peer_question(w, FABRIC_PROTO_REACH, 2);
	assert_int_equal(m.reach.dest_qpn, 6);
	assert_int_equal(m.reach.dlid, 7);
	return m;
}

static const struct fabric_reached good_peer = {
	.program = 9, .peer = {.slid = 3, .pkeys = 1}};

static void answers_about_packets_are_taken(void **state)
{
	struct fabric_reached reached;
	struct world w;

	for (int is_no = 0; is_no < 2; is_no++) {
		struct fabric_proto m = ask_about_packets(&w);

		m.reached = good_peer;
		m.err = is_no ? -EHOSTUNREACH : 0;
		fabric_peer_answer(&w, &m);
		assert_true(fabric_peer_turn(&w));
		assert_int_equal(fabric_link_reach(&about, &reached),
				 is_no ? LINK_REACH_NO : LINK_REACH_YES);
		assert_false(fabric_link_has_ended());
		fabric_peer_end(&w);
	}
	assert_int_equal(reached.program, 9);
}

static void wrong_answers_about_packets_end_the_link(void **state)
{
	struct world w;

	for (int i = 0; i < 5; i++) {
		struct fabric_proto m = ask_about_packets(&w);

		m.reached = good_peer;
		if (i == 0)
			m.reached.program = 0;
		else if (i == 1)
			m.reached.program = 1023;
		else if (i == 2)
			m.reached.peer.pkeys = 0;
		else if (i == 3)
			m.number = 1;
		else
			m.kind = FABRIC_PROTO_ARENA;
		fabric_peer_answer(&w, &m);
		assert_true(fabric_peer_turn(&w));
		fabric_peer_assert_ended(&w);
		fabric_peer_end(&w);
	}
}

/* A descriptor that comes with an answer that needs none is closed. */
static void descriptors_that_nobody_wants_are_closed(void **state)
{
	struct fabric_proto m;
	struct world w;
	int before, after, ends[2];

	m = ask_about_packets(&w);
	m.reached = good_peer;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	before = dup(0);
	close(before);
	fabric_peer_bring(&w, &m, ends[0]);
	assert_true(fabric_peer_turn(&w));
	after = dup(0);
	close(after);
	assert_int_equal(after, before);
	assert_false(fabric_link_has_ended());
	close(ends[0]);
	close(ends[1]);
	fabric_peer_end(&w);
}

/* Nothing stays open after a refusal. */
static void a_wrong_fabric_is_refused(void **state)
{
	int before = dup(0), after;

	close(before);
	for (enum wrong wrong = RIGHT + 1; wrong < WRONGS; wrong++) {
		struct world w;
		int err;

		fabric_peer_init(&w, HCA_QPT_UC, 4);
		w.wrong = wrong;
		w.ring_ports = 3;
		w.listener = fabric_peer_listen();
		err = fabric_peer_open(&w);
		assert_int_equal(err, wrong == IS_SWITCH  ? -ENODEV
				      : wrong == HANGS_UP ? -ECONNRESET
							  : -EPROTO);
		assert_false(fabric_link_is_open());
		assert_int_equal(fabric_link_fd(), -1);
		fabric_peer_hang_up(&w);
		fabric_peer_free_rings(&w);
		close(w.listener);
		unlink(fabric_peer_path);
		two_hcas_free(w.d);
		after = dup(0);
		assert_int_equal(after, before);
		close(after);
	}
}

/* In a process without a link, the functions that close a link close no
 * descriptor of the program. */
static void without_a_link_nothing_is_closed(void **state)
{
	fabric_link_forget();
	fabric_link_close();
	assert_true(fcntl(STDIN_FILENO, F_GETFD) >= 0);
	assert_false(fabric_link_is_open());
	assert_false(fabric_link_has_news());
	assert_false(fabric_link_turn(NULL, 1, true, 1));
	assert_true(fabric_link_is_ours());
}

/* The program puts a file of its own in the place of a socket. */
static void descriptors_of_the_program_are_left_alone(void **state)
{
	static const uint8_t group[16] = {0xff, 0x12};
	const char *why;
	struct fabric_proto m;
	struct world w;
	int fd, own = memfd_create("own", MFD_CLOEXEC);
	struct hca_qp_attr now;

	fabric_peer_start(&w, HCA_QPT_UC, 4096);
	fd = data_descriptor(&w);
	assert_int_equal(fabric_link_attach(w.engine, 1, group, 1, &why), 0);
	m = fabric_peer_question(&w, FABRIC_PROTO_JOIN, 1);
	fabric_peer_answer(&w, &m);
	assert_true(fabric_peer_turn(&w));
	assert_true(fabric_link_is_ours());
	dup2(own, fd);
	assert_false(fabric_link_is_ours());
	assert_true(fabric_link_has_news());
	assert_int_equal(fabric_link_attach(w.engine, 1, group, 1, &why), -EIO);
	assert_int_equal(fabric_link_detach(w.engine, 1, group, 1, &why), 0);
	assert_false(fabric_peer_is_readable(w.control));
	post_send(&w, 0, 0);
	while (send_all(&w))
		;
	assert_true(fabric_peer_turn(&w));
	engine_qp_query(w.engine, w.d->side[0].side, &now);
	assert_int_equal(now.qp_state, HCA_QP_ERR);
	assert_true(fabric_link_has_ended());
	fabric_peer_end(&w);
	assert_int_equal(lseek(own, 0, SEEK_END), 0); /* nothing was written */
	assert_true(fcntl(fd, F_GETFD) >= 0);
	close(fd);
	close(own);
}

/* A child of fork closes its descriptors of the link.  The parent's link goes
 * on. */
static void a_child_of_fork_leaves_the_link(void **state)
{
	int go[2], status = -1;
	struct world w;
	char byte;
	pid_t child;

	fabric_peer_start(&w, HCA_QPT_UC, 0);
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	child = fork();
	if (!child) {
		fabric_link_forget();
		_exit(fabric_link_is_open());
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	two_hcas_recv(w.d, 0, 0, BYTES);
	two_hcas_fill(w.d, 1, 0, BYTES);
	post_send(&w, 1, 0);
	send_back(&w, 1);
	assert_true(fabric_peer_turn(&w));
	assert_received(&w, 0, 0, 0);
	/* a child that keeps the descriptors does not keep the link open */
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(go[1]);
		_exit(read(go[0], &byte, 1) != 0);
	}
	fabric_link_close();
	for (int i = 0; i < FABRIC_PEER_PORTS; i++)
		assert_int_equal(recv(w.data[i], &byte, 1, 0), 0);
	assert_int_equal(recv(w.control, &byte, 1, 0), 0);
	close(go[1]);
	close(go[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	fabric_peer_end(&w);
}

/* Maps memory at `page`, where the child of a fork has nothing, and returns
 * whether that memory is still there after fabric_link_forget. */
static bool keeps_page(void *page)
{
	unsigned char there[SHARED_PAGE_BYTES / 4096];
	void *own =
		mmap(page, SHARED_PAGE_BYTES, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (own != page)
		return false;
	fabric_link_forget();
	return !mincore(page, SHARED_PAGE_BYTES, there);
}

/* The child does not inherit the page with the subnet's number of changes.  It
 * may map memory of its own there before it opens a device. */
static void a_child_of_fork_keeps_its_own_pages(void **state)
{
	unsigned char there[SHARED_PAGE_BYTES / 4096];
	int status = -1;
	struct world w;
	void *page;
	pid_t child;

	fabric_peer_start(&w, HCA_QPT_RC, 0);
	assert_true(share_arena(&w, 5, true));
	page = (void *)(uintptr_t)w.engine->ibt.direct.changes;
	child = fork();
	if (!child)
		_exit(!keeps_page(page));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(mincore(page, SHARED_PAGE_BYTES, there), 0);
	fabric_link_close();
	assert_int_equal(mincore(page, SHARED_PAGE_BYTES, there), -1);
	fabric_peer_end(&w);
}

static int count_descriptors(void)
{
	int count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void *open_link(void *world)
{
	struct world *w = world;

	fabric_link_open(w->engine, 0, FABRIC_PEER_PATIENCE_MS);
	return NULL;
}

/* A thread waits for the fabric's first answer while another thread forks. */
static void a_child_of_fork_closes_a_link_that_was_opening(void **state)
{
	struct fabric_proto m;
	pthread_t opener;
	int status = -1, before;
	struct world w;
	pid_t child;

	fabric_peer_init(&w, HCA_QPT_UC, 4);
	w.listener = fabric_peer_listen();
	before = count_descriptors();
	assert_int_equal(pthread_create(&opener, NULL, open_link, &w), 0);
	w.control = accept(w.listener, NULL, NULL);
	assert_int_equal(recv(w.control, &m, sizeof(m), 0), sizeof(m));
	child = fork();
	if (!child) {
		fabric_link_forget();
		_exit(count_descriptors() != before + 1); /* w.control */
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(w.control);
	pthread_join(opener, NULL);
	close(w.listener);
	unlink(fabric_peer_path);
	two_hcas_free(w.d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_link_nothing_is_closed),
		cmocka_unit_test(the_end_of_the_fabric_is_reported),
		cmocka_unit_test(a_closed_data_end_ends_the_link),
		cmocka_unit_test(wrong_messages_end_the_link),
		cmocka_unit_test(wrong_answers_end_the_link),
		cmocka_unit_test(a_wrong_answer_to_share_means_packets),
		cmocka_unit_test(a_late_answer_to_share_ends_nothing),
		cmocka_unit_test(answers_about_packets_are_taken),
		cmocka_unit_test(wrong_answers_about_packets_end_the_link),
		cmocka_unit_test(descriptors_that_nobody_wants_are_closed),
		cmocka_unit_test(a_wrong_fabric_is_refused),
		cmocka_unit_test(descriptors_of_the_program_are_left_alone),
		cmocka_unit_test(a_child_of_fork_leaves_the_link),
		cmocka_unit_test(a_child_of_fork_keeps_its_own_pages),
		cmocka_unit_test(
			a_child_of_fork_closes_a_link_that_was_opening),
	};

	return cmocka_run_group_tests(tests, fabric_peer_make_folder,
				      fabric_peer_remove_folder);
}
