/* SPDX-License-Identifier: BSD-2-Clause */
#include "scenario/fabric_peer.h"

#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "fabric/fabric_client.h"
#include "hdr/lrh.h"
#include "host/fabric_link.h"
#include "util/scm_rights.h"

char fabric_peer_path[] = "/tmp/adverb-link-XXXXXX/socket";

/* ---- the fabric's side of the handshake, in a thread ---- */

void fabric_peer_bring(const struct world *w, struct fabric_proto *m, int fd)
{
	assert_int_equal(
		scm_rights_send(w->control, m, sizeof(*m), &fd, fd >= 0, 0),
		sizeof(*m));
}

static void answer_ca(struct world *w, struct fabric_proto *m)
{
	m->ca = (struct fabric_ca){.node_type = w->wrong == IS_SWITCH ? 2 : 1,
				   .first_port = w->wrong != FIRST_PORT_IS_0,
				   .last_port = FABRIC_PEER_PORTS};
	fabric_peer_bring(w, m, -1);
}

static void answer_port(struct world *w, struct fabric_proto *m)
{
	m->port = w->port;
	if (w->wrong == LID_IS_MULTICAST)
		m->port.lid = 0xc000;
	if (w->wrong == LMC_IS_8)
		m->port.lmc = 8;
	if (w->wrong == STATE_IS_0)
		m->port.state = 0;
	if (w->wrong == MTU_IS_6)
		m->port.mtu = 6;
	fabric_peer_bring(w, m, -1);
}

static void answer_data(struct world *w, struct fabric_proto *m)
{
	uint32_t port = m->number,
		 number = subnet_qpn(w->d->subnet, 0, 0) >> 14;
	int ends[2], pipes[2];

	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	if (w->data_bytes)
		setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &w->data_bytes,
			   sizeof(w->data_bytes));
	w->data[port - 1] = ends[0];
	m->number = w->wrong == NUMBERS_DIFFER	 ? number + port
		    : w->wrong == NUMBER_IS_0	 ? 0
		    : w->wrong == NUMBER_IS_1023 ? 1023
						 : number;
	if (w->wrong == PIPE_AS_DESCRIPTOR) {
		assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
		fabric_peer_bring(w, m, pipes[0]);
		close(pipes[0]);
		close(pipes[1]);
	} else {
		fabric_peer_bring(w, m,
				  w->wrong == NO_DESCRIPTOR ? -1 : ends[1]);
	}
	close(ends[1]);
}

/* Makes the rings of a data end.  Returns their file, which has the fault
 * w->wrong if that is a fault of the file. */
static int make_rings(struct world *w, struct fabric_peer_ring *r)
{
	int fd = memfd_create("ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	off_t bytes = PACKET_RING_FILE - (w->wrong == RING_IS_SHORT);

	assert_int_equal(ftruncate(fd, bytes), 0);
	r->memory = mmap(NULL, PACKET_RING_FILE, PROT_READ | PROT_WRITE,
			 MAP_SHARED, fd, 0);
	assert_ptr_not_equal(r->memory, MAP_FAILED);
	packet_ring_init_in(&r->in, r->memory);
	packet_ring_init_out(&r->out, (uint8_t *)r->memory + PACKET_RING_BYTES);
	if (w->wrong != RING_IS_NOT_SEALED)
		assert_int_equal(
			fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	return fd;
}

static void answer_ring(struct world *w, struct fabric_proto *m, int brought)
{
	struct fabric_peer_ring *r = &w->rings[m->number - 1];
	int pipes[2], fd;

	if (!(w->ring_ports & 1u << (m->number - 1))) {
		m->err = -ENOBUFS;
		close(brought);
		fabric_peer_bring(w, m, -1);
		return;
	}
	r->room_fd = brought;
	fd = make_rings(w, r);
	if (w->wrong == RING_IS_PIPE) {
		assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
		close(pipes[1]);
		close(fd);
		fd = pipes[0];
	}
	fabric_peer_bring(w, m, w->wrong == RING_WITHOUT_FILE ? -1 : fd);
	close(fd);
}

/* Answers questions until the process knows its last port, or until one side
 * closes the connection. */
static void *shake_hands(void *arg)
{
	struct world *w = arg;
	struct fabric_proto m;
	bool is_last = false, is_cut;
	int brought;

	w->control = accept4(w->listener, NULL, NULL, SOCK_CLOEXEC);
	while (!is_last && fabric_client_receive(w->control, &m, 0, &is_cut,
						 &brought) == sizeof(m)) {
		assert_int_equal(m.version, FABRIC_PROTO_VERSION);
		assert_string_equal(m.host, FABRIC_PEER_HOST);
		is_last = m.kind == FABRIC_PROTO_PORT &&
			  m.number == FABRIC_PEER_PORTS;
		if (m.kind == FABRIC_PROTO_TAKE) {
			w->taken++;
			fabric_peer_bring(w, &m, -1);
		} else if (m.kind == FABRIC_PROTO_CA) {
			answer_ca(w, &m);
		} else if (m.kind == FABRIC_PROTO_PORT) {
			answer_port(w, &m);
		} else if (w->wrong == HANGS_UP) {
			break;
		} else if (m.kind == FABRIC_PROTO_RING) {
			answer_ring(w, &m, brought);
		} else {
			assert_int_equal(m.kind, FABRIC_PROTO_DATA);
			answer_data(w, &m);
		}
	}
	if (!is_last)
		shutdown(w->control, SHUT_RDWR);
	return NULL;
}

int fabric_peer_open(struct world *w)
{
	pthread_t fabric;
	int err;

	w->data[0] = w->data[1] = -1;
	assert_int_equal(pthread_create(&fabric, NULL, shake_hands, w), 0);
	err = fabric_link_open(w->engine, 0, FABRIC_PEER_PATIENCE_MS);
	pthread_join(fabric, NULL);
	return err;
}

void fabric_peer_hang_up(struct world *w)
{
	close(w->control);
	for (int i = 0; i < FABRIC_PEER_PORTS; i++)
		if (w->data[i] >= 0)
			close(w->data[i]);
}

void fabric_peer_init(struct world *w, uint32_t type, uint32_t depth)
{
	struct hca_port port;

	memset(w, 0, sizeof(*w));
	two_hcas_by_lid(false);
	w->d = two_hcas_new_of(type, 5, depth);
	w->engine = w->d->side[0].engine;
	port = subnet_port(w->d->subnet, 0);
	w->port = (struct fabric_port){.lid = port.lid,
				       .state = 4,
				       .mtu = 5,
				       .max_mtu = 5,
				       .guids = {0x1234}};
	memcpy(w->port.pkeys, port.pkeys, sizeof(port.pkeys));
}

int fabric_peer_listen(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	memcpy(a.sun_path, fabric_peer_path, sizeof(fabric_peer_path));
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 8), 0);
	return fd;
}

void fabric_peer_start(struct world *w, uint32_t type, uint32_t data_bytes)
{
	fabric_peer_init(w, type, 1024);
	w->data_bytes = data_bytes;
	w->listener = fabric_peer_listen();
	assert_int_equal(fabric_peer_open(w), 0);
}

void fabric_peer_start_rings(struct world *w, uint32_t type,
			     uint32_t ring_ports)
{
	fabric_peer_init(w, type, 1024);
	w->ring_ports = ring_ports;
	w->listener = fabric_peer_listen();
	assert_int_equal(fabric_peer_open(w), 0);
}

void fabric_peer_free_rings(struct world *w)
{
	for (int i = 0; i < FABRIC_PEER_PORTS; i++)
		if (w->rings[i].memory) {
			munmap(w->rings[i].memory, PACKET_RING_FILE);
			close(w->rings[i].room_fd);
		}
}

void fabric_peer_end(struct world *w)
{
	fabric_link_close();
	fabric_peer_free_rings(w);
	fabric_peer_hang_up(w);
	close(w->listener);
	unlink(fabric_peer_path);
	two_hcas_free(w->d);
}

bool fabric_peer_turn(struct world *w)
{
	return fabric_link_turn(w->engine, 4, true, w->d->now_ns);
}

bool fabric_peer_is_readable(int fd)
{
	struct pollfd p = {fd, POLLIN, 0};

	return poll(&p, 1, 0) == 1;
}

intptr_t fabric_peer_count(const uint8_t *bytes, ssize_t n)
{
	intptr_t count = 0;

	for (ssize_t at = 0; at < n; count++) {
		size_t len = lrh_first(bytes + at, (size_t)(n - at));

		assert_int_not_equal(len, 0);
		at += (ssize_t)len;
	}
	return count;
}

void fabric_peer_tell(struct world *w, int port, uint32_t changed)
{
	const struct fabric_proto_news news = {.changes = changed};

	assert_int_equal(send(w->data[port - 1], &news, sizeof(news), 0),
			 sizeof(news));
}

struct fabric_proto fabric_peer_question(struct world *w, uint32_t kind,
					 uint32_t port)
{
	struct fabric_proto m;

	assert_int_equal(recv(w->control, &m, sizeof(m), MSG_DONTWAIT),
			 sizeof(m));
	assert_int_equal(m.version, FABRIC_PROTO_VERSION);
	assert_int_equal(m.kind, kind);
	assert_int_equal(m.number, port);
	assert_int_equal(m.err, 0);
	assert_string_equal(m.host, FABRIC_PEER_HOST);
	return m;
}

void fabric_peer_answer(struct world *w, const struct fabric_proto *m)
{
	assert_int_equal(send(w->control, m, sizeof(*m), 0), sizeof(*m));
}

/* Returns whether the process has closed its end of a socket of the fabric. */
static bool is_over(int fd)
{
	struct pollfd p = {fd, 0, 0};

	return poll(&p, 1, 0) == 1 && p.revents & POLLHUP;
}

void fabric_peer_assert_ended(struct world *w)
{
	struct engine_frame f = {.port = 1, .head_bytes = 4};
	struct hca_qp_attr now;

	assert_true(fabric_link_has_ended());
	assert_true(fabric_link_is_open());
	engine_qp_query(w->engine, w->d->side[0].side, &now);
	assert_int_equal(now.qp_state, HCA_QP_ERR);
	assert_int_equal(fabric_link_fd(), -1);
	assert_int_equal(fabric_link_qpn(7), 0);
	assert_int_equal(fabric_link_send(&f, 1), 1);
	assert_false(fabric_peer_turn(w));
	assert_false(fabric_link_has_news());
	assert_true(is_over(w->control));
	for (int i = 0; i < FABRIC_PEER_PORTS; i++)
		assert_true(is_over(w->data[i]));
}

int fabric_peer_make_folder(void **state)
{
	char *slash = strrchr(fabric_peer_path, '/');

	*slash = '\0';
	if (!mkdtemp(fabric_peer_path))
		return -1;
	*slash = '/';
	setenv("ADVERB_FABRIC", fabric_peer_path, 1);
	setenv("ADVERB_FABRIC_HOST", FABRIC_PEER_HOST, 1);
	return 0;
}

int fabric_peer_remove_folder(void **state)
{
	*strrchr(fabric_peer_path, '/') = '\0';
	return rmdir(fabric_peer_path);
}
