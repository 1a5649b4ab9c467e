/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdmacm/ib_link, and ids on a host of a fabric.  A thread of the test plays
 * the fabric: it accepts connections at ADVERB_FABRIC, sends librdmacm one end
 * of a socket pair, and answers the messages of the CM that librdmacm sends by
 * this end.
 */
#include "test.h"

#include "fabric/proto.h"
#include "rdmacm/ib.h"
#include "util/bits.h"
#include "util/fd_identity.h"
#include "util/scm_rights.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PORT = 7471, HANDLE = 5, PASSIVE_HANDLE, MLID = 0xc001 };

static const uint8_t own[16] = {0xfe, 0x80, [15] = 1};
static const uint8_t peer[16] = {0xfe, 0x80, [15] = 2};

/* How the fabric answers, and the messages that the fabric got. */
static struct {
	struct fabric_port port; /* the answer to FABRIC_PROTO_PORT */
	bool brings_nothing; /* the answer to FABRIC_PROTO_CM has no socket */
	int route_err;	     /* err of the answer to CMPROTO_ROUTE */
	struct cmproto_path route;
	enum cmproto_kind silent_at;	   /* gets no answer; 0: none */
	bool names_nothing;		   /* new_id of answers is 0 */
	uint8_t gid[16];		   /* the GID in FABRIC_PROTO_CM */
	struct cmproto got[CMPROTO_EVENT]; /* the last of each kind */
	sem_t got_one[CMPROTO_EVENT];
	int cm;	      /* the fabric's end of the socket for the CM */
	int dials;    /* how many connections have asked for that socket */
	int listener; /* the socket at ADVERB_FABRIC */
} fabric;
static struct r_channel channel;
static struct r_device device = {.is_ib = true};
static char path[sizeof("/tmp/test_ib_link.XXXXXX/socket")];

static void send_answer(int connection, const struct fabric_proto *m, int fd)
{
	scm_rights_send(connection, m, sizeof(*m), &fd, fd >= 0, 0);
}

static void answer_cm(const struct cmproto *to)
{
	struct cmproto m = {.magic = CMPROTO_MAGIC,
			    .version = CMPROTO_VERSION,
			    .kind = CMPROTO_DONE,
			    .serial = to->serial,
			    .new_id = to->kind == CMPROTO_BIND &&
						      !fabric.names_nothing
					      ? HANDLE
					      : 0,
			    .at.local_port = to->at.local_port};

	if (to->kind == fabric.silent_at || to->kind == CMPROTO_RELEASE)
		return;
	if (!m.at.local_port)
		m.at.local_port = PORT;
	if (to->kind == CMPROTO_ROUTE) {
		m.err = fabric.route_err;
		m.path = fabric.route;
	}
	if (to->kind == CMPROTO_JOIN) {
		memcpy(m.at.peer, to->at.peer, 16);
		m.group = to->group;
		m.group.mtu = IBV_MTU_2048;
		m.group.mlid = MLID;
	}
	send(fabric.cm, &m, sizeof(m), MSG_NOSIGNAL);
}

static void serve_cm(void)
{
	struct cmproto m;

	while (recv(fabric.cm, &m, sizeof(m), 0) == sizeof(m)) {
		fabric.got[m.kind] = m;
		answer_cm(&m);
		sem_post(&fabric.got_one[m.kind]);
	}
	close(fabric.cm);
}

static void serve_connection(int connection)
{
	struct fabric_proto m;
	int ends[2];

	while (recv(connection, &m, sizeof(m), 0) == sizeof(m)) {
		m.err = 0;
		if (m.kind == FABRIC_PROTO_PORT) {
			m.port = fabric.port;
			send_answer(connection, &m, -1);
			continue;
		}
		memcpy(fabric.gid, m.gid, 16);
		fabric.dials++;
		if (fabric.brings_nothing) {
			send_answer(connection, &m, -1);
			continue;
		}
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
			abort();
		fabric.cm = ends[0];
		send_answer(connection, &m, ends[1]);
		close(ends[1]);
		serve_cm();
		break;
	}
	close(connection);
}

static void *play_fabric(void *unused)
{
	for (;;) {
		int connection =
			accept4(fabric.listener, NULL, NULL, SOCK_CLOEXEC);

		if (connection < 0)
			return NULL;
		serve_connection(connection);
	}
}

static void await_kind(enum cmproto_kind kind)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += TEST_WAIT_S;
	assert_int_equal(sem_timedwait(&fabric.got_one[kind], &until), 0);
}

static struct r_id *id_new(enum rdma_port_space ps, enum ibv_qp_type type)
{
	struct r_id *id = r_id_new(&channel.base, NULL, ps, type);

	assert_non_null(id);
	return id;
}

/* Returns a new id that is bound to the GID of zeroes. */
static struct r_id *bound_id(enum rdma_port_space ps, enum ibv_qp_type type)
{
	static const uint8_t none[16];
	struct r_id *id = id_new(ps, type);
	struct sockaddr_storage any;

	r_addr_make_ib((struct sockaddr *)&any, none, 0, 0, 0xffff);
	assert_int_equal(rdma_bind_addr(&id->base, (struct sockaddr *)&any), 0);
	await_kind(CMPROTO_BIND);
	return id;
}

/* Returns an id as rdma_resolve_addr leaves it after success. */
static struct r_id *resolved_id(enum rdma_port_space ps, enum ibv_qp_type type)
{
	struct r_id *id = bound_id(ps, type);
	struct rdma_addr *a = &id->base.route.addr;

	id->device = &device;
	id->path.mtu = IBV_MTU_4096;
	id->state.has_destination = id->state.wants_route = true;
	memcpy(id->path.local, own, 16);
	memcpy(id->path.peer, peer, 16);
	r_addr_make_ib(&a->dst_addr, peer, (uint64_t)ps, PORT, 0xffff);
	a->addr.ibaddr.pkey = htobe16(0xffff);
	return id;
}

static struct rdma_cm_event *next_event(void)
{
	struct pollfd p = {.fd = channel.base.fd, .events = POLLIN};
	struct rdma_cm_event *e;

	assert_int_equal(poll(&p, 1, TEST_WAIT_MS), 1);
	assert_int_equal(rdma_get_cm_event(&channel.base, &e), 0);
	return e;
}

static void expect_event(const struct r_id *id, enum rdma_cm_event_type type,
			 int status)
{
	struct rdma_cm_event *e = next_event();

	assert_ptr_equal(e->id, &id->base);
	assert_int_equal(e->event, type);
	assert_int_equal(e->status, status);
	rdma_ack_cm_event(e);
}

/* Returns whether the channel's list has an event.  Does not look at the
 * descriptor of the channel. */
static bool has_event(void)
{
	bool has;

	r_take();
	has = !list_is_empty(&channel.events);
	r_give();
	return has;
}

static void a_host_of_a_fabric_stays_one(void **state)
{
	struct r_id *id = id_new(RDMA_PS_TCP, IBV_QPT_RC);

	assert_true(r_ib_is_used());
	unsetenv("ADVERB_FABRIC");
	assert_true(r_ib_is_used());
	setenv("ADVERB_FABRIC", "/nonexistent", 1);
	assert_int_equal(r_do(id, CMPROTO_LISTEN), -ENOENT);
	setenv("ADVERB_FABRIC", path, 1);
	rdma_destroy_id(&id->base);
}

/* librdmacm checks each answer of the fabric before the first use. */
static void a_fabric_that_lies_is_no_fabric(void **state)
{
	struct r_id *id = id_new(RDMA_PS_TCP, IBV_QPT_RC);
	const struct fabric_port port = fabric.port;

	fabric.port.mtu = 99;
	assert_int_equal(r_do(id, CMPROTO_LISTEN), -EPROTO);
	fabric.port = port;
	fabric.port.guids[0] = 0;
	assert_int_equal(r_do(id, CMPROTO_LISTEN), -EPROTO);
	fabric.port = port;
	fabric.brings_nothing = true;
	assert_int_equal(r_do(id, CMPROTO_LISTEN), -EPROTO);
	fabric.brings_nothing = false;
	rdma_destroy_id(&id->base);
}

static void an_id_is_bound_at_the_fabric_of_its_host(void **state)
{
	struct r_id *id = bound_id(RDMA_PS_IB, IBV_QPT_RC);
	const struct cmproto *m = &fabric.got[CMPROTO_BIND];

	assert_memory_equal(fabric.gid, own, 16);
	assert_true(m->is_ib && m->any_v6 && !m->any_v4 && !m->only_own);
	assert_int_equal(m->at.space, RDMA_PS_IB);
	assert_int_equal(rdma_get_src_port(&id->base), htobe16(PORT));
	assert_int_equal(r_addr_space(&id->base.route.addr.src_addr),
			 RDMA_PS_IB);
	rdma_destroy_id(&id->base);
	await_kind(CMPROTO_RELEASE);
}

static void an_id_is_not_bound_to_an_object_without_name(void **state)
{
	struct r_id *id = id_new(RDMA_PS_TCP, IBV_QPT_RC);
	struct cmproto m = {.is_ib = true};
	struct sockaddr_storage any;
	uint8_t none[16] = {0};

	fabric.names_nothing = true;
	r_addr_make_ib((struct sockaddr *)&any, none, 0, 0, 0xffff);
	errno = 0;
	assert_int_equal(rdma_bind_addr(&id->base, (struct sockaddr *)&any),
			 -1);
	assert_int_equal(errno, EPROTO);
	assert_false(r_is_bound(id));
	await_kind(CMPROTO_BIND);
	id->state.is_binding = true; /* as in rdma_resolve_addr */
	assert_int_equal(r_request(id, &m, CMPROTO_BIND), 0);
	expect_event(id, RDMA_CM_EVENT_ADDR_ERROR, -EPROTO);
	assert_false(r_is_bound(id));
	await_kind(CMPROTO_BIND);
	fabric.names_nothing = false;
	rdma_destroy_id(&id->base);
}

/* A fabric whose process is stopped does not answer. */
static void an_id_is_destroyed_before_its_bind_is_answered(void **state)
{
	struct r_id *id = id_new(RDMA_PS_TCP, IBV_QPT_RC);
	struct cmproto m = {.is_ib = true};

	fabric.silent_at = CMPROTO_BIND;
	id->state.is_binding = true; /* as in rdma_resolve_addr */
	assert_int_equal(r_request(id, &m, CMPROTO_BIND), 0);
	await_kind(CMPROTO_BIND);
	assert_int_equal(rdma_destroy_id(&id->base), 0);
	fabric.silent_at = 0;
	answer_cm(&fabric.got[CMPROTO_BIND]);
	await_kind(CMPROTO_RELEASE);
}

static void an_address_that_is_missing_is_refused(void **state)
{
	struct r_id *id = id_new(RDMA_PS_TCP, IBV_QPT_RC);

	assert_int_equal(rdma_resolve_addr(&id->base, NULL, NULL, 1000), -1);
	assert_int_equal(errno, EAFNOSUPPORT);
	rdma_destroy_id(&id->base);
}

static void an_id_is_not_bound_to_the_service_of_another_space(void **state)
{
	struct r_id *id = id_new(RDMA_PS_TCP, IBV_QPT_RC);
	struct sockaddr_storage any;
	uint8_t none[16] = {0};

	r_addr_make_ib((struct sockaddr *)&any, none, RDMA_PS_UDP, 1, 0xffff);
	errno = 0;
	assert_int_equal(rdma_bind_addr(&id->base, (struct sockaddr *)&any),
			 -1);
	assert_int_equal(errno, EPROTONOSUPPORT);
	rdma_destroy_id(&id->base);
}

static void resolve_route(struct r_id *id)
{
	assert_int_equal(rdma_resolve_route(&id->base, 2000), 0);
	await_kind(CMPROTO_ROUTE);
}

static void route_is_refused(struct r_id *id)
{
	errno = 0;
	assert_int_equal(rdma_resolve_route(&id->base, 2000), -1);
	assert_int_equal(errno, EINVAL);
}

/* As with the kernel, a route is asked for only in the state ADDR_RESOLVED, to
 * which a ROUTE_ERROR leads back. */
static void a_route_is_resolved_once_after_the_address(void **state)
{
	struct r_id *id = resolved_id(RDMA_PS_TCP, IBV_QPT_RC);

	r_take();
	r_id_resolved(id, -EHOSTUNREACH);
	r_give();
	expect_event(id, RDMA_CM_EVENT_ADDR_ERROR, -EHOSTUNREACH);
	route_is_refused(id);
	r_take();
	r_id_resolved(id, 0);
	r_give();
	expect_event(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	fabric.route_err = -ENETUNREACH;
	resolve_route(id);
	expect_event(id, RDMA_CM_EVENT_ROUTE_ERROR, -EINVAL);
	fabric.route_err = 0;
	resolve_route(id);
	route_is_refused(id);
	expect_event(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	route_is_refused(id);
	assert_false(has_event());
	rdma_destroy_id(&id->base);
	await_kind(CMPROTO_RELEASE);
}

/* As with the kernel, ids of RDMA_PS_IB connect to any service. */
static void an_id_connects_to_a_service_id_of_64_bits(void **state)
{
	const uint64_t service = 0x1000000000000123;
	struct r_id *id = resolved_id(RDMA_PS_IB, IBV_QPT_RC);
	struct sockaddr_ib *to =
		(struct sockaddr_ib *)(void *)&id->base.route.addr.dst_addr;

	to->sib_sid = htobe64(service);
	resolve_route(id);
	expect_event(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	assert_true(fabric.got[CMPROTO_ROUTE].at.service_id == service);
	assert_int_equal(rdma_connect(&id->base, NULL), 0);
	await_kind(CMPROTO_CONNECT);
	assert_true(fabric.got[CMPROTO_CONNECT].at.service_id == service);
	rdma_destroy_id(&id->base);
	await_kind(CMPROTO_RELEASE);
}

static void a_route_is_asked_of_the_fabric(void **state)
{
	struct r_id *id = resolved_id(RDMA_PS_TCP, IBV_QPT_RC);
	const struct cmproto *m = &fabric.got[CMPROTO_ROUTE];
	struct sockaddr_ib *from =
		(struct sockaddr_ib *)(void *)&id->base.route.addr.src_addr;

	from->sib_flowinfo = htobe32(0x02412345);
	id->options.tos = 9;
	resolve_route(id);
	assert_true(m->is_ib);
	assert_int_equal(m->at.space, RDMA_PS_TCP);
	assert_int_equal(m->at.peer_port, PORT);
	assert_int_equal(m->path.traffic_class, 0x24);
	assert_memory_equal(m->at.local, own, 16);
	assert_memory_equal(m->at.peer, peer, 16);
	assert_int_equal(m->path.pkey, 0xffff);
	assert_int_equal(m->timeout, 19); /* 2.1 s */
	expect_event(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	assert_int_equal(id->base.route.path_rec->dlid,
			 htobe16(fabric.route.remote_lid));
	assert_int_equal(id->path.mtu, fabric.route.mtu);
	rdma_destroy_id(&id->base);
	await_kind(CMPROTO_RELEASE);
}

static void a_missing_or_false_path_is_a_route_error(void **state)
{
	struct r_id *id = resolved_id(RDMA_PS_TCP, IBV_QPT_RC);
	const struct cmproto_path good = fabric.route;
	static const struct {
		int err, status;
	} row[] = {{-ENETUNREACH, -EINVAL},
		   {-EREMOTEIO, -EINVAL},
		   {-ETIMEDOUT, -ETIMEDOUT},
		   {-ENETDOWN, -ENETDOWN},
		   {-EIO, -EIO}};

	for (size_t i = 0; i < TEST_COUNT(row); i++) {
		fabric.route_err = row[i].err;
		resolve_route(id);
		expect_event(id, RDMA_CM_EVENT_ROUTE_ERROR, row[i].status);
	}
	fabric.route_err = 0;
	fabric.route.remote_lid = 0xc000;
	resolve_route(id);
	expect_event(id, RDMA_CM_EVENT_ROUTE_ERROR, -EPROTO);
	fabric.route = good;
	fabric.route.mtu = 6;
	resolve_route(id);
	expect_event(id, RDMA_CM_EVENT_ROUTE_ERROR, -EPROTO);
	fabric.route = good;
	assert_null(id->base.route.path_rec);
	errno = 0; /* without a path there is no connection */
	assert_int_equal(rdma_connect(&id->base, NULL), -1);
	assert_int_equal(errno, EINVAL);
	rdma_destroy_id(&id->base);
	await_kind(CMPROTO_RELEASE);
}

/* No IP addressing precedes the private data of messages between GIDs. */
static void a_request_brings_its_path_and_long_private_data(void **state)
{
	static const uint8_t data[UINT8_MAX] = {1, 2, 3};
	struct r_id *id = resolved_id(RDMA_PS_TCP, IBV_QPT_RC);
	struct rdma_conn_param p = {.private_data = data,
				    .private_data_len = 93};
	const struct cmproto *m = &fabric.got[CMPROTO_CONNECT];

	resolve_route(id);
	expect_event(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	assert_int_equal(rdma_connect(&id->base, &p), -1);
	p.private_data_len = 92;
	assert_int_equal(rdma_connect(&id->base, &p), 0);
	await_kind(CMPROTO_CONNECT);
	assert_true(m->is_ib && !m->is_datagram);
	assert_memory_equal(&m->path, &fabric.route, sizeof(m->path));
	assert_int_equal(m->private_bytes, 92);
	assert_int_equal(m->at.peer_port, PORT);
	assert_int_equal(m->qp.ack_timeout, fabric.route.life_time + 1);
	assert_int_equal(m->qp.pkey, fabric.route.pkey);
	assert_int_equal(m->qp.mtu, fabric.route.mtu);
	rdma_destroy_id(&id->base);
	await_kind(CMPROTO_RELEASE);
}

static void a_datagram_request_has_room_for_216_bytes(void **state)
{
	static const uint8_t data[UINT8_MAX];
	struct r_id *id = resolved_id(RDMA_PS_UDP, IBV_QPT_UD);
	struct rdma_conn_param p = {.private_data = data,
				    .private_data_len = 217};

	resolve_route(id);
	expect_event(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	assert_int_equal(rdma_connect(&id->base, &p), -1);
	p.private_data_len = 216;
	assert_int_equal(rdma_connect(&id->base, &p), 0);
	await_kind(CMPROTO_CONNECT);
	assert_true(fabric.got[CMPROTO_CONNECT].is_datagram);
	rdma_destroy_id(&id->base);
	await_kind(CMPROTO_RELEASE);
}

/* Returns the id of a connection request, as librdmacm has made it before the
 * program takes the event; NULL: no event has come. */
static struct r_id *requested_id(void)
{
	struct r_event *e;

	r_take();
	e = list_is_empty(&channel.events)
		    ? NULL
		    : CONTAINER_OF(channel.events.next, struct r_event, link);
	r_give();
	return e ? r_id(e->base.id) : NULL;
}

static void a_request_brings_the_path_back_to_the_peer(void **state)
{
	struct r_id *listener = bound_id(RDMA_PS_TCP, IBV_QPT_RC), *id;
	struct cmproto m = {.magic = CMPROTO_MAGIC,
			    .version = CMPROTO_VERSION,
			    .kind = CMPROTO_EVENT,
			    .event = CMPROTO_REQUEST,
			    .id = HANDLE,
			    .new_id = PASSIVE_HANDLE,
			    .is_ib = 1,
			    .path = fabric.route};
	struct pollfd p = {.fd = channel.base.fd, .events = POLLIN};
	const struct sockaddr *from;

	memcpy(m.at.local, own, 16);
	memcpy(m.at.peer, peer, 16);
	m.at.local_port = PORT;
	m.path.pkey = 0x8001;
	send(fabric.cm, &m, sizeof(m), MSG_NOSIGNAL);
	assert_int_equal(poll(&p, 1, TEST_WAIT_MS), 1);
	id = requested_id();
	assert_non_null(id);
	assert_int_equal(id->path.ib.remote_lid, fabric.route.remote_lid);
	assert_int_equal(id->base.route.addr.addr.ibaddr.pkey, htobe16(0x8001));
	from = rdma_get_peer_addr(&id->base);
	assert_int_equal(from->sa_family, AF_IB);
	assert_memory_equal(
		&((const struct sockaddr_ib *)(const void *)from)->sib_addr,
		peer, 16);
	assert_int_equal(rdma_get_src_port(&id->base), htobe16(PORT));
	rdma_destroy_id(&listener->base); /* destroys the request's id, too */
	await_kind(CMPROTO_RELEASE);
	await_kind(CMPROTO_RELEASE);
}

static void an_id_with_a_gid_joins_no_group_of_ip(void **state)
{
	struct r_id *id = resolved_id(RDMA_PS_UDP, IBV_QPT_UD);
	struct sockaddr_in ip = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htobe32(0xef010203)};
	struct sockaddr *groups[] = {&id->base.route.addr.dst_addr,
				     (struct sockaddr *)&ip};

	for (size_t i = 0; i < TEST_COUNT(groups); i++) {
		errno = 0;
		assert_int_equal(
			rdma_join_multicast(&id->base, groups[i], NULL), -1);
		assert_int_equal(errno, EADDRNOTAVAIL);
	}
	rdma_destroy_id(&id->base);
	await_kind(CMPROTO_RELEASE);
}

/* Lets the id join a group by the group's GID. */
static void join_group(struct r_id *id, struct sockaddr_storage *group)
{
	static const uint8_t mgid[16] = {0xff, 0x12, [15] = 7};
	const struct cmproto *asked = &fabric.got[CMPROTO_JOIN];
	struct rdma_cm_event *e;

	r_addr_make_ib((struct sockaddr *)group, mgid, 0, 0, 0xffff);
	assert_int_equal(
		rdma_join_multicast(&id->base, (struct sockaddr *)group, group),
		0);
	await_kind(CMPROTO_JOIN);
	assert_memory_equal(asked->at.local, own, 16);
	assert_memory_equal(asked->at.peer, mgid, 16);
	assert_int_equal(asked->path.pkey, 0xffff);
	assert_int_equal(asked->group.qkey, RDMA_UDP_QKEY);
	assert_int_equal(asked->group.mtu, 0);
	e = next_event();
	assert_int_equal(e->event, RDMA_CM_EVENT_MULTICAST_JOIN);
	assert_ptr_equal(e->param.ud.private_data, group);
	assert_int_equal(e->param.ud.ah_attr.dlid, MLID);
	assert_memory_equal(&e->param.ud.ah_attr.grh.dgid, mgid, 16);
	rdma_ack_cm_event(e);
}

static void leave_group(struct r_id *id, struct sockaddr_storage *group)
{
	assert_int_equal(
		rdma_leave_multicast(&id->base, (struct sockaddr *)group), 0);
	await_kind(CMPROTO_LEAVE);
}

static void an_id_with_a_gid_joins_groups_by_gid(void **state)
{
	struct r_id *id = resolved_id(RDMA_PS_UDP, IBV_QPT_UD);
	struct sockaddr_storage group;

	join_group(id, &group);
	leave_group(id, &group);
	rdma_destroy_id(&id->base);
	await_kind(CMPROTO_RELEASE);
}

static void tell_lost(void)
{
	const struct cmproto m = {.magic = CMPROTO_MAGIC,
				  .version = CMPROTO_VERSION,
				  .kind = CMPROTO_EVENT,
				  .event = CMPROTO_GROUP_LOST,
				  .call_id = fabric.got[CMPROTO_JOIN].call_id};

	send(fabric.cm, &m, sizeof(m), MSG_NOSIGNAL);
}

static void a_lost_group_is_an_event(void **state)
{
	struct r_id *id = resolved_id(RDMA_PS_UDP, IBV_QPT_UD);
	struct pollfd p = {.fd = channel.base.fd, .events = POLLIN};
	struct sockaddr_storage group;
	struct rdma_cm_event *e;

	join_group(id, &group);
	tell_lost();
	e = next_event();
	assert_ptr_equal(e->id, &id->base);
	assert_int_equal(e->event, RDMA_CM_EVENT_MULTICAST_ERROR);
	assert_int_equal(e->status, -ENETRESET);
	assert_ptr_equal(e->param.ud.private_data, &group);
	rdma_ack_cm_event(e);
	leave_group(id, &group);
	/* the event of a group that the program leaves is dropped */
	join_group(id, &group);
	tell_lost();
	assert_int_equal(poll(&p, 1, TEST_WAIT_MS), 1);
	leave_group(id, &group);
	assert_false(has_event());
	/* the id has no such membership any more */
	tell_lost();
	rdma_destroy_id(&id->base);
	await_kind(CMPROTO_RELEASE);
	assert_false(has_event());
}

/* The child of a fork has a connection of its own. */
static void a_child_connects_again(void **state)
{
	int status = -1, dials = fabric.dials;
	pid_t child = fork();

	if (!child) {
		struct r_id *id = id_new(RDMA_PS_TCP, IBV_QPT_RC);

		/* No thread of this test would accept the connection of the
		 * child: the fabric's thread serves the parent. */
		setenv("ADVERB_FABRIC", "/nonexistent", 1);
		_exit(r_do(id, CMPROTO_LISTEN) != -ENOENT);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(fabric.dials, dials);
}

static void *wait_for_answer(void *id)
{
	return (void *)(intptr_t)r_do(id, CMPROTO_LISTEN);
}

/* Returns a synchronous listener, as rdma_create_ep makes one. */
static struct r_id *sync_listener(void)
{
	struct r_id *id = bound_id(RDMA_PS_TCP, IBV_QPT_RC);
	struct r_channel *c = calloc(1, sizeof(*c));

	assert_non_null(c);
	list_init(&c->events);
	c->base.fd = fd_identity_note_shown(eventfd(0, EFD_SEMAPHORE));
	id->base.channel = &c->base;
	id->is_sync = true;
	return id;
}

/* The listener keeps the event, and no call waits for a request, which cannot
 * come. */
static void expect_no_request(struct r_id *listener)
{
	struct pollfd p = {.fd = listener->base.channel->fd, .events = POLLIN};
	struct rdma_cm_id *request;

	assert_int_equal(poll(&p, 1, TEST_WAIT_MS), 1);
	for (int i = 0; i < 2; i++) {
		errno = 0;
		assert_int_equal(rdma_get_request(&listener->base, &request),
				 -1);
		assert_int_equal(errno, ENODEV);
		assert_int_equal(listener->base.event->event,
				 RDMA_CM_EVENT_DEVICE_REMOVAL);
		assert_int_equal(poll(&p, 1, 0), 0);
	}
}

/* This test is the last: the link does not begin again. */
static void each_id_is_told_once_that_the_fabric_is_gone(void **state)
{
	struct r_id *id = resolved_id(RDMA_PS_TCP, IBV_QPT_RC);
	struct r_id *later = id_new(RDMA_PS_TCP, IBV_QPT_RC);
	struct r_id *listener = sync_listener();
	int dials = fabric.dials;
	pthread_t thread;
	void *result;

	fabric.silent_at = CMPROTO_ROUTE;
	resolve_route(id);
	fabric.silent_at = CMPROTO_LISTEN;
	assert_int_equal(pthread_create(&thread, NULL, wait_for_answer, id), 0);
	await_kind(CMPROTO_LISTEN);
	shutdown(fabric.cm, SHUT_RDWR);
	expect_event(id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	pthread_join(thread, &result);
	assert_int_equal((intptr_t)result, -ENODEV);
	assert_int_equal(r_do(later, CMPROTO_LISTEN), -ENODEV);
	r_route_ended(id, -1);
	assert_int_equal(rdma_resolve_route(&id->base, 1), -1);
	assert_int_equal(errno, ENODEV);
	assert_false(has_event());
	expect_no_request(listener);
	assert_int_equal(fabric.dials, dials);
	rdma_destroy_id(&listener->base);
	rdma_destroy_id(&later->base);
	rdma_destroy_id(&id->base);
}

static int setup_fabric(void **state)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	pthread_t thread;

	snprintf(path, sizeof(path), "/tmp/test_ib_link.XXXXXX");
	if (!mkdtemp(path))
		return -1;
	strcat(path, "/socket");
	strcpy(a.sun_path, path);
	fabric.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (bind(fabric.listener, (struct sockaddr *)&a, sizeof(a)) ||
	    listen(fabric.listener, 8))
		return -1;
	setenv("ADVERB_FABRIC", path, 1);
	fabric.port = (struct fabric_port){.guids = {1},
					   .gid_prefix = 0xfe80ull << 48,
					   .mtu = 4,
					   .max_mtu = 5,
					   .state = 4};
	fabric.route = (struct cmproto_path){.local_lid = 3,
					     .remote_lid = 4,
					     .pkey = 0xffff,
					     .mtu = 4,
					     .rate = 7,
					     .life_time = 18};
	for (int i = 0; i < CMPROTO_EVENT; i++)
		sem_init(&fabric.got_one[i], 0, 0);
	list_init(&channel.events);
	channel.base.fd = fd_identity_note_shown(eventfd(0, EFD_SEMAPHORE));
	return pthread_create(&thread, NULL, play_fabric, NULL);
}

static int teardown_fabric(void **state)
{
	unlink(path);
	*strrchr(path, '/') = '\0';
	return rmdir(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_host_of_a_fabric_stays_one),
		cmocka_unit_test(a_fabric_that_lies_is_no_fabric),
		cmocka_unit_test(an_id_is_bound_at_the_fabric_of_its_host),
		cmocka_unit_test(an_id_is_not_bound_to_an_object_without_name),
		cmocka_unit_test(
			an_id_is_destroyed_before_its_bind_is_answered),
		cmocka_unit_test(
			an_id_is_not_bound_to_the_service_of_another_space),
		cmocka_unit_test(an_address_that_is_missing_is_refused),
		cmocka_unit_test(a_route_is_resolved_once_after_the_address),
		cmocka_unit_test(an_id_connects_to_a_service_id_of_64_bits),
		cmocka_unit_test(a_route_is_asked_of_the_fabric),
		cmocka_unit_test(a_missing_or_false_path_is_a_route_error),
		cmocka_unit_test(
			a_request_brings_its_path_and_long_private_data),
		cmocka_unit_test(a_datagram_request_has_room_for_216_bytes),
		cmocka_unit_test(a_request_brings_the_path_back_to_the_peer),
		cmocka_unit_test(an_id_with_a_gid_joins_no_group_of_ip),
		cmocka_unit_test(an_id_with_a_gid_joins_groups_by_gid),
		cmocka_unit_test(a_lost_group_is_an_event),
		cmocka_unit_test(a_child_connects_again),
		cmocka_unit_test(each_id_is_told_once_that_the_fabric_is_gone),
	};

	return cmocka_run_group_tests(tests, setup_fabric, teardown_fabric);
}
