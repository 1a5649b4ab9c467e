/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The link of a process to an emulated subnet.  The process is side 0 of two
 * adapters.  Each test but the last plays the fabric: the test answers
 * requests, and moves packets between the data ends and side 1.
 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "fabric/net.h"
#include "hdr/lrh.h"
#include "host/fabric_link.h"
#include "host/progress.h"
#include "host/waitset.h"
#include "scenario/fabric_peer.h"
#include "tools/fabric_server.h"
#include "util/fd_identity.h"

#define WAIT_NS 60000000000ull /* far more than any wait takes */
#define BYTES	1000u

/* ---- packets ---- */

static void post_send(struct world *w, int side, uint64_t from)
{
	two_hcas_send(w->d, side, HCA_WR_SEND, from, BYTES, 0);
	two_hcas_post(w->d, side);
}

/* Sends the frames of side 0 by the link, until it is full or has them all.
 * Returns how many frames were sent. */
static size_t send_all(struct world *w)
{
	struct engine_frame f[16];
	size_t n, k, sent = 0;

	do {
		n = engine_tx(w->engine, f, 16, w->d->now_ns);
		k = fabric_link_send(f, n);
		engine_tx_done(w->engine, k);
		sent += k;
	} while (n && k == n);
	return sent;
}

/* Moves the packets that have come from side 0 to side 1.  Returns their
 * number. */
static size_t move_packets(struct world *w)
{
	uint8_t bytes[LRH_FRAME_MAX];
	size_t count = 0;
	ssize_t n;

	while ((n = recv(w->data[0], bytes, sizeof(bytes), MSG_DONTWAIT)) > 0) {
		const struct engine_packet p = {
			.bytes = bytes, .len = (size_t)n, .port = 1};

		engine_rx_link(w->d->side[1].engine, &p, w->d->now_ns);
		count++;
	}
	return count;
}

/* Sends the frames of side 1 to a data end of the process. */
static size_t send_back(struct world *w, int port)
{
	struct engine *e = w->d->side[1].engine;
	uint8_t bytes[LRH_FRAME_MAX];
	struct engine_frame f;
	size_t count = 0;

	while (engine_tx(e, &f, 1, w->d->now_ns)) {
		memcpy(bytes, f.head, f.head_bytes);
		memcpy(bytes + f.head_bytes, f.bytes, f.len);
		assert_true(send(w->data[port - 1], bytes, f.head_bytes + f.len,
				 MSG_DONTWAIT) > 0);
		engine_tx_done(e, 1);
		count++;
	}
	return count;
}

static void assert_completes(struct world *w, int side, uint32_t status)
{
	struct cqe c;

	assert_true(two_hcas_poll(w->d, side, &c));
	assert_int_equal(c.status, status);
}

static void assert_received(struct world *w, int side, uint64_t to,
			    uint64_t from)
{
	assert_completes(w, side, HCA_SUCCESS);
	assert_memory_equal(w->d->side[side].memory.bytes + to,
			    w->d->side[!side].memory.bytes + from, BYTES);
}

static bool is_writable(int fd)
{
	struct pollfd p = {fd, POLLOUT, 0};

	return poll(&p, 1, 0) == 1;
}

static void a_request_goes_out_and_its_answer_comes_in(void **state)
{
	struct world w;

	fabric_peer_start(&w, HCA_QPT_RC, 0);
	assert_int_equal(w.taken, 1);
	assert_int_equal(fabric_link_ports(), FABRIC_PEER_PORTS);
	two_hcas_fill(w.d, 0, 0, BYTES);
	two_hcas_recv(w.d, 1, 0, BYTES);
	post_send(&w, 0, 0);
	assert_int_equal(send_all(&w), 1);
	assert_int_equal(move_packets(&w), 1);
	assert_received(&w, 1, 0, 0);
	assert_false(fabric_link_has_news());
	assert_false(fabric_peer_is_readable(fabric_link_fd()));
	assert_int_equal(send_back(&w, 1), 1); /* the ACK */
	assert_true(fabric_link_has_news());
	assert_true(fabric_peer_is_readable(fabric_link_fd()));
	assert_true(fabric_peer_turn(&w));
	assert_completes(&w, 0, HCA_SUCCESS);
	assert_false(fabric_peer_turn(&w));
	fabric_peer_end(&w);
}

/* The link tells the engine by which port a packet has come. */
static void each_port_receives(void **state)
{
	struct world w;

	fabric_peer_start(&w, HCA_QPT_UC, 0);
	for (int port = 1; port <= FABRIC_PEER_PORTS; port++) {
		w.d->side[0].qp->attr.port_num = (uint8_t)port;
		two_hcas_fill(w.d, 1, 0, BYTES);
		two_hcas_recv(w.d, 0, (uint64_t)port * BYTES, BYTES);
		post_send(&w, 1, 0);
		assert_int_equal(send_back(&w, port), 1);
		assert_true(fabric_peer_turn(&w));
		assert_received(&w, 0, (uint64_t)port * BYTES, 0);
	}
	fabric_peer_end(&w);
}

static void a_frame_of_no_port_is_dropped(void **state)
{
	struct engine_frame f[3] = {{.port = 0},
				    {.port = FABRIC_PEER_PORTS + 1}};
	struct world w;

	fabric_peer_start(&w, HCA_QPT_UC, 0);
	f[2] = (struct engine_frame){.port = 2,
				     .head = (const uint8_t *)"head",
				     .head_bytes = 4,
				     .bytes = (const uint8_t *)"bytes",
				     .len = 5};
	assert_int_equal(fabric_link_send(f, 3), 3);
	assert_false(fabric_peer_is_readable(w.data[0]));
	assert_true(fabric_peer_is_readable(w.data[1]));
	fabric_peer_end(&w);
}

/* The fabric does not read while the receivers of the packets do not. */
static void a_full_socket_leaves_frames_with_the_engine(void **state)
{
	const uint32_t count = 200;
	struct world w;
	size_t sent;

	fabric_peer_start(&w, HCA_QPT_UC, 4096);
	for (uint32_t i = 0; i < count; i++) {
		two_hcas_recv(w.d, 1, (uint64_t)i * BYTES, BYTES);
		two_hcas_fill(w.d, 0, (uint64_t)i * BYTES, BYTES);
		post_send(&w, 0, (uint64_t)i * BYTES);
	}
	sent = send_all(&w);
	assert_true(sent && sent < count);
	assert_false(is_writable(fabric_link_full_fd()));
	assert_int_equal(send_all(&w), 0);
	assert_int_equal(move_packets(&w), sent);
	assert_true(is_writable(fabric_link_full_fd()));
	while (sent < count) {
		size_t more = send_all(&w);

		assert_int_equal(move_packets(&w), more);
		assert_true(more);
		sent += more;
	}
	for (uint32_t i = 0; i < count; i++)
		assert_received(&w, 1, (uint64_t)i * BYTES,
				(uint64_t)i * BYTES);
	fabric_peer_end(&w);
}

/* Packets of UC wait for receives, and the engine takes no more of them. */
static void a_choked_engine_leaves_packets_with_the_link(void **state)
{
	const uint32_t count = 1000;
	struct world w;

	fabric_peer_start(&w, HCA_QPT_UC, 0);
	two_hcas_fill(w.d, 1, 0, BYTES);
	for (uint32_t i = 0; i < count && !engine_is_choked(w.engine); i++) {
		post_send(&w, 1, 0);
		send_back(&w, 1);
		/* so that a batch is not used up when the engine is choked */
		if (i % 16 == 6)
			fabric_peer_turn(&w);
	}
	assert_true(engine_is_choked(w.engine));
	assert_true(fabric_link_is_behind());
	for (uint32_t i = 0; i < 20; i++) {
		post_send(&w, 1, 0);
		send_back(&w, 1);
	}
	assert_false(fabric_peer_turn(&w));
	assert_true(fabric_peer_is_readable(fabric_link_fd()));
	for (uint32_t i = 0; i < count; i++)
		two_hcas_recv(w.d, 0, 0, BYTES);
	assert_false(engine_is_choked(w.engine));
	while (fabric_peer_turn(&w))
		;
	assert_int_equal(engine_counters(w.engine, 0)->refused.unknown_qp, 0);
	for (uint32_t i = 0; i < 20; i++)
		assert_received(&w, 0, 0, 0);
	assert_false(fabric_link_is_behind());
	fabric_peer_end(&w);
}

/* ---- news ---- */

/* Receives the process's question about a port. */
static struct fabric_proto take_question(struct world *w, uint32_t port)
{
	struct fabric_proto m =
		fabric_peer_question(w, FABRIC_PROTO_PORT, port);

	m.port = w->port;
	return m;
}

/* Returns the SLID of the next packet that side 0 sends. */
static uint16_t next_slid(struct world *w)
{
	uint8_t bytes[LRH_FRAME_MAX];
	struct lrh lrh;
	ssize_t n;

	post_send(w, 0, 0);
	assert_int_equal(send_all(w), 1);
	n = recv(w->data[0], bytes, sizeof(bytes), MSG_DONTWAIT);
	assert_true(n > 0 && lrh_parse(bytes, (size_t)n, &lrh));
	return lrh.slid;
}

static void a_change_is_asked_about_and_shown(void **state)
{
	struct fabric_port port;
	struct fabric_proto m;
	struct world w;

	fabric_peer_start(&w, HCA_QPT_UC, 0);
	assert_true(fabric_link_port(1, &port));
	assert_int_equal(port.lid, subnet_lid(0));
	assert_int_equal(port.guids[0], 0x1234);
	assert_int_equal(next_slid(&w), subnet_lid(0));
	fabric_peer_tell(&w, 1, DATA_LID | DATA_STATE);
	assert_true(fabric_peer_turn(&w));
	m = take_question(&w, 1);
	/* a change while the question is open needs another question */
	fabric_peer_tell(&w, 1, DATA_GIDS);
	fabric_peer_tell(&w, 2, DATA_SM);
	assert_true(fabric_peer_turn(&w));
	assert_false(fabric_peer_is_readable(w.control));
	assert_int_equal(fabric_link_take_changes(1), 0);
	m.port.lid = 0x40;
	m.port.state = 3;
	fabric_peer_answer(&w, &m);
	assert_true(fabric_peer_is_readable(fabric_link_fd()));
	assert_true(fabric_peer_turn(&w));
	assert_int_equal(fabric_link_take_changes(1), DATA_LID | DATA_STATE);
	assert_int_equal(fabric_link_take_changes(1), 0);
	assert_true(fabric_link_port(1, &port));
	assert_int_equal(port.lid, 0x40);
	assert_int_equal(port.state, 3);
	assert_true(fabric_link_port(2, &port));
	assert_int_equal(port.lid, subnet_lid(0));
	assert_int_equal(next_slid(&w), 0x40);
	m = take_question(&w, 1);
	fabric_peer_answer(&w, &m);
	fabric_peer_turn(&w);
	assert_int_equal(fabric_link_take_changes(1), DATA_GIDS);
	m = take_question(&w, 2);
	fabric_peer_answer(&w, &m);
	fabric_peer_turn(&w);
	assert_int_equal(fabric_link_take_changes(2), DATA_SM);
	assert_false(fabric_link_port(0, &port));
	assert_false(fabric_link_port(FABRIC_PEER_PORTS + 1, &port));
	assert_int_equal(fabric_link_take_changes(FABRIC_PEER_PORTS + 1), 0);
	assert_false(fabric_link_has_ended());
	fabric_peer_end(&w);
}

static void qpns_have_the_number_of_the_data_ends(void **state)
{
	struct world w;

	fabric_peer_start(&w, HCA_QPT_UC, 0);
	assert_int_equal(fabric_link_qpn(0), subnet_qpn(w.d->subnet, 0, 0));
	assert_int_equal(fabric_link_qpn(UINT32_MAX),
			 subnet_qpn(w.d->subnet, 0, 0x3fff));
	fabric_peer_end(&w);
}

/* From this address broker_link sees that the broker cannot know the peer. */
static void a_question_about_a_peer_names_its_lid(void **state)
{
	struct two_hcas *d;
	struct engine_event e[4];
	size_t n = 0;

	two_hcas_by_lid(false);
	d = two_hcas_new(5, 16);
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 8, 0);
	two_hcas_post(d, 0);
	for (int i = 0; i < 100 && !n; i++) {
		struct engine_frame f[16];
		struct engine *engine = d->side[0].engine;

		engine_tx_done(engine, engine_tx(engine, f, 16, d->now_ns));
		d->now_ns = engine_deadline(engine);
		engine_tick(engine, d->now_ns);
		n = engine_events(engine, e, 4);
	}
	assert_int_equal(n, 1);
	assert_int_equal(e[0].type, ENGINE_ASK_PEER);
	assert_true(inaddr_is_lid(e[0].peer.ip));
	assert_int_equal(inaddr_lid(e[0].peer.ip), subnet_lid(1));
	engine_peer_state(d->side[0].engine, e[0].qpn, ENGINE_PEER_UNKNOWN,
			  d->now_ns);
	two_hcas_run(d, d->now_ns + 60000000000ull);
	two_hcas_free(d);
}

/* ---- the end ---- */

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
	assert_non_null(strstr(text, "its process has ended"));
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
	static uint8_t bytes[LRH_FRAME_MAX + 1];
	struct fabric_proto_news news = {.changes = 2 * DATA_REREGISTER};
	struct world w;

	refuse_message(bytes, 1);
	refuse_message(bytes, sizeof(news) - 1);
	refuse_message(bytes, sizeof(news)); /* nothing has changed */
	refuse_message(bytes, sizeof(news) + 1);
	refuse_message(bytes, 25); /* a packet has at least 26 bytes */
	refuse_message(bytes, sizeof(bytes));
	refuse_message(&news, sizeof(news));
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

/* Answers a question about port 1 by *m, and expects that this ends the link.
 * size: of the answer; asks: the process has asked. */
static void refuse_answer(const struct fabric_proto *m, size_t size, bool asks)
{
	struct world w;

	fabric_peer_start(&w, HCA_QPT_UC, 0);
	if (asks) {
		fabric_peer_tell(&w, 1, DATA_STATE);
		fabric_peer_turn(&w);
		take_question(&w, 1);
	}
	assert_int_equal(send(w.control, m, size, 0), size);
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
		w.listener = fabric_peer_listen();
		err = fabric_peer_open(&w);
		assert_int_equal(err, wrong == IS_SWITCH  ? -ENODEV
				      : wrong == HANGS_UP ? -ECONNRESET
							  : -EPROTO);
		assert_false(fabric_link_is_open());
		assert_int_equal(fabric_link_fd(), -1);
		fabric_peer_hang_up(&w);
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
	assert_false(fabric_link_turn(NULL, 1, 1));
	assert_true(fabric_link_is_ours());
}

/* Returns the descriptor by which the process sends from port 1. */
static int data_descriptor(struct world *w)
{
	while (fabric_link_full_fd() < 0) {
		post_send(w, 0, 0);
		send_all(w);
	}
	return fabric_link_full_fd();
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
	/* a child that keeps the descriptors does not keep the link */
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

/* A thread waits for the fabric's first answer, and another one forks. */
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

/* ---- progress ---- */

static uint32_t fatals;

static void ignore_event(const struct engine_event *e)
{
}

static void count_fatal(void)
{
	fatals++;
}

static struct progress progress;

/* Gives side 0's engine to the progress loop. */
static void begin_progress(struct world *w)
{
	const struct host_sink sink = {.event = ignore_event,
				       .fatal = count_fatal};
	int fd = udp_bind(0);

	assert_true(fd >= 0);
	fatals = 0;
	w->d->now_ns = monotonic_ns();
	assert_int_equal(progress_init(&progress, w->engine, fd, &sink,
				       (struct udp_offload){0}, false),
			 0);
	progress.wake.fd =
		fd_identity_note(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

static void end_progress(struct world *w)
{
	engine_qp_remove(w->engine, w->d->side[0].side);
	fd_identity_close(progress.wake.fd);
	progress_fini(&progress);
	w->d->side[0].is_dead = true;
}

static void poll_once(void)
{
	static shared_u32 skipped;

	progress_poll(&progress, &skipped);
}

static void send_by_progress(struct world *w, uint32_t count)
{
	progress_take(&progress);
	while (count--)
		post_send(w, 0, 0);
	progress_give(&progress);
}

static bool never_over(void *arg)
{
	return false;
}

/* Makes progress, as the thread does that is about to wait for work.  Returns
 * the events of the sockets for which it would wait. */
static short rest_once(void)
{
	const struct host_sleep sleep = {.is_over = never_over};
	struct progress_rest r = {.sleep = &sleep};

	assert_true(progress_rest(&progress, &r));
	return r.events;
}

/* Waits as that thread does, and expects that an event ends the wait. */
static void wait_once(struct waitset *in, short events)
{
	assert_int_equal(
		waitset_wait(in, &progress, monotonic_ns() + WAIT_NS, events),
		0);
	assert_false(in->has_timed_out);
	progress_rested(&progress);
}

static void progress_sends_and_receives(void **state)
{
	struct waitset in = {.fd = -1};
	struct world w;
	size_t got = 0;

	fabric_peer_start(&w, HCA_QPT_UC, 4096);
	begin_progress(&w);
	waitset_open(&in, &progress);
	two_hcas_fill(w.d, 1, 0, BYTES);
	for (int i = 0; i < 4; i++) {
		two_hcas_recv(w.d, 0, 0, BYTES);
		/* takes the doorbell, so that the second poll makes a full turn
		 * only because the link has a packet */
		poll_once();
		post_send(&w, 1, 0);
		send_back(&w, 1);
		poll_once();
		assert_received(&w, 0, 0, 0);
	}
	/* the thread waits for room, and sends what is left */
	for (int i = 0; i < 100; i++)
		two_hcas_recv(w.d, 1, 0, BYTES);
	send_by_progress(&w, 100);
	assert_int_equal(progress.full_fd, fabric_link_full_fd());
	while (got < 100) {
		short events = rest_once();

		assert_int_equal(!!(events & POLLOUT), progress.full_fd >= 0);
		got += move_packets(&w);
		if (events & POLLOUT)
			wait_once(&in, events);
	}
	assert_int_equal(progress.full_fd, -1);
	for (int i = 0; i < 100; i++)
		assert_received(&w, 1, 0, 0);
	/* a packet ends a wait */
	two_hcas_recv(w.d, 0, BYTES, BYTES);
	assert_int_equal(rest_once(), POLLIN);
	post_send(&w, 1, 0);
	send_back(&w, 1);
	wait_once(&in, POLLIN);
	rest_once();
	assert_received(&w, 0, BYTES, 0);
	waitset_close(&in);
	end_progress(&w);
	fabric_peer_end(&w);
}

static void progress_reports_the_end(void **state)
{
	struct waitset in = {.fd = -1};
	struct world w;

	fabric_peer_start(&w, HCA_QPT_UC, 0);
	begin_progress(&w);
	waitset_open(&in, &progress);
	fabric_peer_hang_up(&w);
	w.control = w.data[0] = w.data[1] = -1;
	wait_once(&in, POLLIN);
	poll_once();
	assert_true(fabric_link_has_ended());
	assert_int_equal(fatals, 1);
	send_by_progress(&w, 3);
	poll_once();
	assert_int_equal(fatals, 1);
	/* the wait does not end again */
	assert_int_equal(
		waitset_wait(&in, &progress, monotonic_ns() + 1, POLLIN), 0);
	assert_true(in.has_timed_out);
	waitset_close(&in);
	end_progress(&w);
	fabric_peer_end(&w);
}

static void progress_notices_closed_descriptors(void **state)
{
	struct world w;
	int fd;

	fabric_peer_start(&w, HCA_QPT_UC, 4096);
	fd = data_descriptor(&w);
	begin_progress(&w);
	assert_true(progress_has_files(&progress));
	close(fd);
	assert_false(progress_has_files(&progress));
	progress.checked_ns = 0;
	send_by_progress(&w, 1);
	assert_int_equal(fatals, 1);
	end_progress(&w);
	fabric_peer_end(&w);
}

/* ---- the fabric itself ---- */

static _Noreturn void serve_fabric(int listener)
{
	static const char text[] = "Switch 8 \"S\"\n[1] \"H\"[1]\n"
				   "[2] \"H\"[2]\n\n"
				   "Hca 2 \"H\"\n[1] \"S\"[1]\n[2] \"S\"[2]\n";
	struct fabric_capture capture = {0};
	struct net_error error;
	struct fabric *f;
	struct net net;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (net_parse(text, sizeof(text) - 1, &net, &error))
		_exit(3);
	f = fabric_new(&net);
	_exit(fabric_server_run(f, listener, fabric_peer_path, &capture) ? 4
									 : 0);
}

/* The process asks its second question when the fabric has answered the first.
 * Each turn of one round takes one answer. */
static void join_and_leave(struct world *w)
{
	static const uint8_t group[16] = {0xff, 0x12, [15] = 1};
	const char *why;

	assert_int_equal(fabric_link_attach(w->engine, 2, group, 1, &why), 0);
	assert_int_equal(fabric_link_detach(w->engine, 2, group, 1, &why), 0);
	for (int i = 0; i < 2; i++) {
		struct pollfd p = {fabric_link_fd(), POLLIN, 0};

		assert_int_equal(poll(&p, 1, -1), 1);
		fabric_link_turn(w->engine, 1, w->d->now_ns);
		assert_false(fabric_link_has_ended());
	}
}

static void a_fabric_lets_a_host_attach(void **state)
{
	struct fabric_port port;
	struct pollfd p;
	struct world w;
	pid_t child;

	fabric_peer_init(&w, HCA_QPT_UC, 4);
	w.listener = fabric_peer_listen();
	child = fork();
	if (!child)
		serve_fabric(w.listener);
	assert_int_equal(fabric_link_open(w.engine, 0, FABRIC_PEER_PATIENCE_MS),
			 0);
	assert_int_equal(fabric_link_ports(), 2);
	assert_int_equal(fabric_link_qpn(5), 1 << DATA_REST_BITS | 5);
	for (uint32_t n = 1; n <= 2; n++) {
		assert_true(fabric_link_port(n, &port));
		assert_int_equal(port.state, 2); /* INIT: there is no SM */
		assert_int_equal(port.lid, 0);
		assert_int_equal(port.max_mtu, 5);
		assert_int_equal(port.pkeys[0], 0xffff);
		assert_true(port.guids[0]);
	}
	fabric_link_turn(w.engine, 4, w.d->now_ns);
	assert_false(fabric_link_has_ended());
	join_and_leave(&w);
	kill(child, SIGTERM);
	p = (struct pollfd){fabric_link_fd(), POLLIN, 0};
	assert_int_equal(poll(&p, 1, -1), 1);
	while (!fabric_link_has_ended()) {
		poll(&p, 1, -1);
		fabric_link_turn(w.engine, 4, w.d->now_ns);
	}
	assert_int_equal(waitpid(child, NULL, 0), child);
	fabric_link_close();
	close(w.listener);
	two_hcas_free(w.d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_link_nothing_is_closed),
		cmocka_unit_test(the_end_of_the_fabric_is_reported),
		cmocka_unit_test(a_request_goes_out_and_its_answer_comes_in),
		cmocka_unit_test(each_port_receives),
		cmocka_unit_test(a_frame_of_no_port_is_dropped),
		cmocka_unit_test(a_full_socket_leaves_frames_with_the_engine),
		cmocka_unit_test(a_choked_engine_leaves_packets_with_the_link),
		cmocka_unit_test(a_change_is_asked_about_and_shown),
		cmocka_unit_test(qpns_have_the_number_of_the_data_ends),
		cmocka_unit_test(a_question_about_a_peer_names_its_lid),
		cmocka_unit_test(a_closed_data_end_ends_the_link),
		cmocka_unit_test(wrong_messages_end_the_link),
		cmocka_unit_test(wrong_answers_end_the_link),
		cmocka_unit_test(a_wrong_fabric_is_refused),
		cmocka_unit_test(descriptors_of_the_program_are_left_alone),
		cmocka_unit_test(a_child_of_fork_leaves_the_link),
		cmocka_unit_test(
			a_child_of_fork_closes_a_link_that_was_opening),
		cmocka_unit_test(progress_sends_and_receives),
		cmocka_unit_test(progress_reports_the_end),
		cmocka_unit_test(progress_notices_closed_descriptors),
		cmocka_unit_test(a_fabric_lets_a_host_attach),
	};

	return cmocka_run_group_tests(tests, fabric_peer_make_folder,
				      fabric_peer_remove_folder);
}
