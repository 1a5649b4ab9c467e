/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cmcheck: what each call of librdmacm promises, between two ids of a process.
 * Prints a line a case, as verbcheck does; one thread.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"

enum {
	ACTIVE,
	PASSIVE, /* the listener's, too */
	SIDES,
	WAIT_MS = 20000,
	RESOLVE_MS = 2000,
	QPN = 0x4711,
	CLASS = 0x20,
	TIMEOUT = 9,
	REJECTED_ECE = 35,
};

static struct rdma_event_channel *channel[SIDES];
static struct rdma_cm_id *listener, *id[SIDES];

static struct sockaddr_storage address(int family, const char *text,
				       uint16_t port)
{
	struct sockaddr_storage s = {.ss_family = (sa_family_t)family};
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)&s;
	struct sockaddr_in *four = (struct sockaddr_in *)&s;

	four->sin_port = htons(port); /* at the same place in both */
	if (inet_pton(family, text,
		      family == AF_INET ? (void *)&four->sin_addr
					: (void *)&six->sin6_addr) != 1)
		abort();
	return s;
}

static struct rdma_cm_id *id_new(int side, enum rdma_port_space ps)
{
	struct rdma_cm_id *made = NULL;

	EXPECT(!rdma_create_id(channel[side], &made, NULL, ps));
	if (!made)
		abort();
	return made;
}

static int bind_to(struct rdma_cm_id *i, int family, const char *text,
		   uint16_t port)
{
	struct sockaddr_storage s = address(family, text, port);

	return rdma_bind_addr(i, (struct sockaddr *)&s);
}

static int option(struct rdma_cm_id *i, int name, int value)
{
	return rdma_set_option(i, RDMA_OPTION_ID, name, &value, sizeof(value));
}

static int small_option(struct rdma_cm_id *i, int name, uint8_t value)
{
	return rdma_set_option(i, RDMA_OPTION_ID, name, &value, sizeof(value));
}

static bool is_readable(int side, int wait_ms)
{
	struct pollfd p = {.fd = channel[side]->fd, .events = POLLIN};

	return poll(&p, 1, wait_ms) == 1;
}

/* The next event of a side, which is to be this one; the caller's, or NULL. */
static struct rdma_cm_event *await(int side, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *e;

	if (!is_readable(side, WAIT_MS) ||
	    rdma_get_cm_event(channel[side], &e)) {
		cases_expect(false, "no %s", rdma_event_str(type));
		return NULL;
	}
	if (e->event == type)
		return e;
	cases_expect(false, "%s status %d for %s", rdma_event_str(e->event),
		     e->status, rdma_event_str(type));
	rdma_ack_cm_event(e);
	return NULL;
}

static void take(int side, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *e = await(side, type);

	if (e)
		EXPECT(!rdma_ack_cm_event(e));
}

static void listen_at(enum rdma_port_space ps, const char *text)
{
	listener = id_new(PASSIVE, ps);
	EXPECT(!bind_to(listener, strchr(text, ':') ? AF_INET6 : AF_INET, text,
			0));
	EXPECT(!rdma_listen(listener, 4));
}

/* As far as the route to the listener's port at this address. */
static void resolve_address(enum rdma_port_space ps, const char *text)
{
	struct sockaddr_storage to =
		address(strchr(text, ':') ? AF_INET6 : AF_INET, text,
			ntohs(rdma_get_src_port(listener)));

	id[ACTIVE] = id_new(ACTIVE, ps);
	EXPECT(!rdma_resolve_addr(id[ACTIVE], NULL, (struct sockaddr *)&to,
				  RESOLVE_MS));
	take(ACTIVE, RDMA_CM_EVENT_ADDR_RESOLVED);
}

static void resolve_route(void)
{
	EXPECT(!rdma_resolve_route(id[ACTIVE], RESOLVE_MS));
	take(ACTIVE, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static struct rdma_conn_param param(void)
{
	return (struct rdma_conn_param){.responder_resources = 3,
					.initiator_depth = 2,
					.retry_count = 5,
					.rnr_retry_count = 6,
					.srq = 1,
					.qp_num = QPN};
}

/* The request is here; the event is the caller's, or NULL. */
static struct rdma_cm_event *call(const struct rdma_conn_param *given)
{
	struct rdma_conn_param p = given ? *given : param();
	struct rdma_cm_event *e;

	EXPECT(!rdma_connect(id[ACTIVE], &p));
	e = await(PASSIVE, RDMA_CM_EVENT_CONNECT_REQUEST);
	id[PASSIVE] = e ? e->id : NULL;
	return e;
}

static void be_called(void)
{
	struct rdma_cm_event *e = call(NULL);

	if (e)
		EXPECT(!rdma_ack_cm_event(e));
}

static void begin(enum rdma_port_space ps, const char *listens,
		  const char *called)
{
	listen_at(ps, listens);
	resolve_address(ps, called);
	resolve_route();
	be_called();
}

static void accept_it(void)
{
	struct rdma_conn_param p = param();

	EXPECT(id[PASSIVE] && !rdma_accept(id[PASSIVE], &p));
	take(ACTIVE, RDMA_CM_EVENT_CONNECT_RESPONSE);
}

static void establish(void)
{
	EXPECT(!rdma_establish(id[ACTIVE]));
	take(PASSIVE, RDMA_CM_EVENT_ESTABLISHED);
}

/* With what is still on its way. */
static void end(void)
{
	for (int side = 0; side < SIDES; side++)
		if (id[side])
			EXPECT(!rdma_destroy_id(id[side]));
	id[ACTIVE] = id[PASSIVE] = NULL;
	if (listener)
		EXPECT(!rdma_destroy_id(listener));
	listener = NULL;
	for (int side = 0; side < SIDES; side++)
		EXPECT(!is_readable(side, 0));
}

static void an_address_gives_a_device_and_a_port(void)
{
	struct rdma_cm_id *one = id_new(ACTIVE, RDMA_PS_TCP);
	struct rdma_cm_id *any = id_new(ACTIVE, RDMA_PS_TCP);
	struct ibv_context **list;
	bool known = false;
	int n = 0;

	EXPECT(!rdma_get_src_port(one) && !one->verbs);
	EXPECT(!bind_to(one, AF_INET, "127.0.0.1", 0));
	EXPECT(rdma_get_src_port(one) && one->verbs && one->pd);
	EXPECT(bind_to(one, AF_INET, "127.0.0.1", 0) == -1 && errno == EINVAL);
	EXPECT(!bind_to(any, AF_INET, "0.0.0.0", 0));
	EXPECT(rdma_get_src_port(any) && !any->verbs);
	list = rdma_get_devices(&n);
	EXPECT(list && n > 0 && !list[n]);
	for (int i = 0; list && i < n; i++)
		known |= list[i] == one->verbs;
	EXPECT(known);
	rdma_free_devices(list);
	EXPECT(!rdma_destroy_id(one) && !rdma_destroy_id(any));
}

static void an_address_of_nobody_here_is_refused(void)
{
	struct rdma_cm_id *i = id_new(ACTIVE, RDMA_PS_TCP);
	struct sockaddr_storage ib = {.ss_family = AF_IB};
	struct rdma_addrinfo hints = {.ai_family = AF_IB}, *res;

	EXPECT(bind_to(i, AF_INET, "192.0.2.1", 0) == -1 && errno == ENODEV);
	EXPECT(rdma_bind_addr(i, (struct sockaddr *)&ib) == -1);
	EXPECT(rdma_resolve_addr(i, NULL, (struct sockaddr *)&ib, 1) == -1);
	EXPECT(rdma_getaddrinfo("127.0.0.1", "1", &hints, &res) != 0);
	EXPECT(!rdma_destroy_id(i));
}

/* Bind two to one port: 0, or the second's errno. */
static int both(enum rdma_port_space second, bool share, bool shares)
{
	struct rdma_cm_id *a = id_new(ACTIVE, RDMA_PS_TCP);
	struct rdma_cm_id *b = id_new(ACTIVE, second);
	int error = 0;

	EXPECT(!option(a, RDMA_OPTION_ID_REUSEADDR, share));
	EXPECT(!option(b, RDMA_OPTION_ID_REUSEADDR, shares));
	EXPECT(!bind_to(a, AF_INET, "127.0.0.1", 7900));
	if (bind_to(b, AF_INET, "0.0.0.0", 7900))
		error = errno;
	EXPECT(!rdma_destroy_id(a) && !rdma_destroy_id(b));
	return error;
}

static void a_port_has_one_owner_unless_all_share_it(void)
{
	EXPECT(both(RDMA_PS_TCP, false, false) == EADDRINUSE);
	EXPECT(both(RDMA_PS_TCP, true, false) == EADDRINUSE);
	EXPECT(both(RDMA_PS_TCP, false, true) == EADDRINUSE);
	EXPECT(both(RDMA_PS_TCP, true, true) == 0);
	EXPECT(both(RDMA_PS_UDP, false, false) == 0);
}

static void any_of_ipv6_is_any_of_ipv4_too_unless_it_is_to_be_alone(void)
{
	for (int alone = 0; alone <= 1; alone++) {
		struct rdma_cm_id *six = id_new(ACTIVE, RDMA_PS_TCP);
		struct rdma_cm_id *four = id_new(ACTIVE, RDMA_PS_TCP);

		EXPECT(!option(six, RDMA_OPTION_ID_AFONLY, alone));
		EXPECT(!bind_to(six, AF_INET6, "::", 7901));
		EXPECT(option(six, RDMA_OPTION_ID_AFONLY, 1) == -1);
		EXPECT((bind_to(four, AF_INET, "0.0.0.0", 7901) == 0) == alone);
		EXPECT(!rdma_destroy_id(six) && !rdma_destroy_id(four));
	}
}

static void who_listens_at_any_address_is_called_at_each(void)
{
	for (int i = 0; i < 2; i++) {
		begin(RDMA_PS_TCP, "::", i ? "::1" : "127.0.0.1");
		if (!id[PASSIVE])
			return;
		EXPECT(rdma_get_local_addr(id[PASSIVE])->sa_family ==
		       (i ? AF_INET6 : AF_INET));
		EXPECT(id[PASSIVE]->verbs && id[PASSIVE]->pd);
		EXPECT(!rdma_reject(id[PASSIVE], NULL, 0));
		take(ACTIVE, RDMA_CM_EVENT_REJECTED);
		end();
	}
}

/* All of 127.0.0.0/8 lead here; a GID is one of them. */
static void who_calls_where_no_device_is_is_refused(void)
{
	struct rdma_cm_event *e;

	listen_at(RDMA_PS_TCP, "0.0.0.0");
	resolve_address(RDMA_PS_TCP, "127.0.0.5");
	resolve_route();
	EXPECT(!rdma_connect(id[ACTIVE], NULL));
	/* its thread looks, and finds nothing for it */
	EXPECT(is_readable(PASSIVE, WAIT_MS));
	EXPECT(!fcntl(channel[PASSIVE]->fd, F_SETFL, O_NONBLOCK));
	if (rdma_get_cm_event(channel[PASSIVE], &e)) {
		EXPECT(errno == EAGAIN);
		take(ACTIVE, RDMA_CM_EVENT_REJECTED);
	} else {
		cases_expect(false, "the program hears of it");
		id[PASSIVE] = e->id;
		rdma_ack_cm_event(e);
	}
	EXPECT(!fcntl(channel[PASSIVE]->fd, F_SETFL, 0));
	end();
}

static void who_listens_without_an_address_has_a_port(void)
{
	listener = id_new(PASSIVE, RDMA_PS_TCP);
	EXPECT(!rdma_listen(listener, 0));
	EXPECT(rdma_get_src_port(listener));
	resolve_address(RDMA_PS_TCP, "127.0.0.1");
	resolve_route();
	be_called();
	end();
}

static void a_request_says_what_the_caller_wants(void)
{
	const struct rdma_conn_param *p;
	struct rdma_cm_event *e;

	listen_at(RDMA_PS_TCP, "127.0.0.1");
	resolve_address(RDMA_PS_TCP, "127.0.0.1");
	resolve_route();
	e = call(NULL);
	if (e) {
		p = &e->param.conn;
		/* what one may ask the other must be ready for */
		EXPECT(p->responder_resources == 2 && p->initiator_depth == 3);
		EXPECT(p->retry_count == 5 && p->rnr_retry_count == 6);
		EXPECT(p->srq && p->qp_num == QPN && e->listen_id == listener);
		EXPECT(!rdma_ack_cm_event(e));
	}
	end();
}

static struct ibv_qp_attr attr(int side, enum ibv_qp_state state)
{
	struct ibv_qp_attr a = {.qp_state = state};
	int mask;

	EXPECT(id[side] && !rdma_init_qp_attr(id[side], &a, &mask));
	return a;
}

static void options_reach_the_queue_pairs_of_both(void)
{
	listen_at(RDMA_PS_TCP, "127.0.0.1");
	resolve_address(RDMA_PS_TCP, "127.0.0.1");
	EXPECT(!small_option(id[ACTIVE], RDMA_OPTION_ID_TOS, CLASS));
	EXPECT(!small_option(id[ACTIVE], RDMA_OPTION_ID_ACK_TIMEOUT, TIMEOUT));
	EXPECT(small_option(id[ACTIVE], RDMA_OPTION_ID_ACK_TIMEOUT, 32) == -1 &&
	       errno == EINVAL);
	EXPECT(option(id[ACTIVE], RDMA_OPTION_ID_TOS, 1) == -1 &&
	       errno == EINVAL);
	EXPECT(option(id[ACTIVE], 99, 1) == -1 && errno == ENOSYS);
	resolve_route();
	EXPECT(id[ACTIVE]->route.path_rec->traffic_class == CLASS);
	be_called();
	accept_it();
	for (int side = 0; side < SIDES; side++) {
		EXPECT(attr(side, IBV_QPS_RTR).ah_attr.grh.traffic_class ==
		       CLASS);
		EXPECT(attr(side, IBV_QPS_RTS).timeout == TIMEOUT);
	}
	end();
}

static void a_path_of_the_program_is_gone(void)
{
	struct ibv_path_data path = {
		.flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY |
			 IBV_PATH_FLAG_BIDIRECTIONAL,
		.path = {.tclass = CLASS, .mtu = 2 << 6 | IBV_MTU_256}};
	struct ibv_path_data other = {.flags = IBV_PATH_FLAG_ALTERNATE};

	listen_at(RDMA_PS_TCP, "127.0.0.1");
	resolve_address(RDMA_PS_TCP, "127.0.0.1");
	EXPECT(rdma_set_option(id[ACTIVE], RDMA_OPTION_IB, RDMA_OPTION_IB_PATH,
			       &other, sizeof(other)) == -1 &&
	       errno == EINVAL);
	EXPECT(!rdma_set_option(id[ACTIVE], RDMA_OPTION_IB, RDMA_OPTION_IB_PATH,
				&path, sizeof(path)));
	take(ACTIVE, RDMA_CM_EVENT_ROUTE_RESOLVED);
	be_called();
	accept_it();
	for (int side = 0; side < SIDES; side++) {
		struct ibv_qp_attr a = attr(side, IBV_QPS_RTR);

		EXPECT(a.ah_attr.grh.traffic_class == CLASS);
		EXPECT(a.path_mtu == IBV_MTU_256);
	}
	end();
}

static void enhanced_connections_are_told_and_refused(void)
{
	struct ibv_ece ours = {0x123456, 7}, theirs = {0x123457, 8}, got;
	struct ibv_ece none = {0, 0}, much = {0x1000000, 0};
	struct rdma_cm_event *e;

	listen_at(RDMA_PS_TCP, "127.0.0.1");
	resolve_address(RDMA_PS_TCP, "127.0.0.1");
	resolve_route();
	EXPECT(rdma_set_local_ece(id[ACTIVE], &none) == -1 && errno == EINVAL);
	EXPECT(rdma_set_local_ece(id[ACTIVE], &much) == -1 && errno == EINVAL);
	EXPECT(!rdma_set_local_ece(id[ACTIVE], &ours));
	e = call(NULL);
	if (!e)
		return;
	EXPECT(!rdma_ack_cm_event(e));
	EXPECT(!rdma_get_remote_ece(id[PASSIVE], &got));
	EXPECT(got.vendor_id == ours.vendor_id && got.options == ours.options);
	EXPECT(!rdma_set_local_ece(id[PASSIVE], &theirs));
	accept_it();
	EXPECT(!rdma_get_remote_ece(id[ACTIVE], &got));
	EXPECT(got.vendor_id == theirs.vendor_id &&
	       got.options == theirs.options);
	end();
	begin(RDMA_PS_TCP, "127.0.0.1", "127.0.0.1");
	EXPECT(id[PASSIVE] && !rdma_reject_ece(id[PASSIVE], "no", 2));
	e = await(ACTIVE, RDMA_CM_EVENT_REJECTED);
	if (e) {
		EXPECT(e->status == REJECTED_ECE);
		EXPECT(!memcmp(e->param.conn.private_data, "no", 2));
		EXPECT(!rdma_ack_cm_event(e));
	}
	end();
}

static void data_that_overtake_the_last_message_establish(void)
{
	begin(RDMA_PS_TCP, "127.0.0.1", "127.0.0.1");
	EXPECT(rdma_establish(id[ACTIVE]) == -1);
	accept_it();
	EXPECT(rdma_notify(id[PASSIVE], IBV_EVENT_QP_FATAL) == -1 &&
	       errno == EINVAL);
	EXPECT(!rdma_notify(id[PASSIVE], IBV_EVENT_COMM_EST));
	take(PASSIVE, RDMA_CM_EVENT_ESTABLISHED);
	EXPECT(!rdma_establish(id[ACTIVE]));
	end(); /* and no second event */
}

static void both_ends_hear_of_the_end_and_of_its_rest(void)
{
	begin(RDMA_PS_TCP, "::1", "::1");
	accept_it();
	establish();
	EXPECT(!rdma_disconnect(id[PASSIVE]));
	for (int side = 0; side < SIDES; side++) {
		take(side, RDMA_CM_EVENT_DISCONNECTED);
		take(side, RDMA_CM_EVENT_TIMEWAIT_EXIT);
	}
	end();
}

static void an_id_moves_with_its_events(void)
{
	struct rdma_event_channel *other = rdma_create_event_channel(), *was;
	struct rdma_cm_event *e;

	was = channel[PASSIVE];
	begin(RDMA_PS_TCP, "127.0.0.1", "127.0.0.1");
	accept_it();
	EXPECT(!rdma_establish(id[ACTIVE]));
	EXPECT(is_readable(PASSIVE, WAIT_MS));
	EXPECT(!rdma_migrate_id(id[PASSIVE], other));
	EXPECT(id[PASSIVE]->channel == other && !is_readable(PASSIVE, 0));
	EXPECT(!fcntl(was->fd, F_SETFL, O_NONBLOCK));
	EXPECT(rdma_get_cm_event(was, &e) == -1 && errno == EAGAIN);
	EXPECT(!fcntl(was->fd, F_SETFL, 0));
	channel[PASSIVE] = other;
	take(PASSIVE, RDMA_CM_EVENT_ESTABLISHED);
	EXPECT(!rdma_destroy_id(id[PASSIVE]));
	id[PASSIVE] = NULL;
	channel[PASSIVE] = was;
	rdma_destroy_event_channel(other);
	take(ACTIVE, RDMA_CM_EVENT_DISCONNECTED);
	end();
}

/* Until so many events wait at a side. */
static void await_count(int side, unsigned want)
{
	char path[40], line[80];
	unsigned count = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", channel[side]->fd);
	for (int ms = 0; count < want && ms < WAIT_MS; ms++) {
		f = fopen(path, "re");
		while (f && fgets(line, sizeof(line), f))
			sscanf(line, "eventfd-count: %x", &count);
		if (f)
			fclose(f);
		poll(NULL, 0, count < want);
	}
	EXPECT(count == want);
}

static void a_listener_moves_with_what_became_of_its_requests(void)
{
	struct rdma_event_channel *was = channel[PASSIVE];

	listen_at(RDMA_PS_TCP, "127.0.0.1");
	resolve_address(RDMA_PS_TCP, "127.0.0.1");
	resolve_route();
	EXPECT(!rdma_connect(id[ACTIVE], NULL));
	await_count(PASSIVE, 1);
	EXPECT(!rdma_destroy_id(id[ACTIVE]));
	id[ACTIVE] = NULL;
	await_count(PASSIVE, 2);
	channel[PASSIVE] = rdma_create_event_channel();
	EXPECT(!rdma_migrate_id(listener, channel[PASSIVE]));
	await_count(PASSIVE, 2);
	end();
	rdma_destroy_event_channel(channel[PASSIVE]);
	channel[PASSIVE] = was;
	EXPECT(!is_readable(PASSIVE, 0));
}

static void what_nobody_took_goes_with_its_id(void)
{
	listen_at(RDMA_PS_TCP, "127.0.0.1");
	resolve_address(RDMA_PS_TCP, "127.0.0.1");
	EXPECT(rdma_disconnect(id[ACTIVE]) == -1 && errno == EINVAL);
	EXPECT(!is_readable(ACTIVE, 0));
	EXPECT(!rdma_resolve_route(id[ACTIVE], RESOLVE_MS));
	EXPECT(is_readable(ACTIVE, 0));
	end();
	/* a request, too: its caller is refused */
	listen_at(RDMA_PS_TCP, "127.0.0.1");
	resolve_address(RDMA_PS_TCP, "127.0.0.1");
	resolve_route();
	EXPECT(!rdma_connect(id[ACTIVE], NULL));
	EXPECT(is_readable(PASSIVE, WAIT_MS));
	EXPECT(!rdma_destroy_id(listener));
	listener = NULL;
	take(ACTIVE, RDMA_CM_EVENT_REJECTED);
	end();
}

static void a_datagram_service_is_resolved(enum rdma_port_space ps)
{
	static const uint8_t words[255] = {1, 2, 3};
	struct rdma_conn_param p = {.private_data = words,
				    .private_data_len = 181};
	struct rdma_cm_event *e;

	listen_at(ps, "127.0.0.1");
	resolve_address(ps, "127.0.0.1");
	resolve_route();
	EXPECT(rdma_connect(id[ACTIVE], &p) == -1 && errno == EINVAL);
	p.private_data_len = 180;
	e = call(&p);
	if (!e)
		return;
	EXPECT(e->param.ud.private_data_len == 180 &&
	       !memcmp(e->param.ud.private_data, words, 180));
	EXPECT(!rdma_ack_cm_event(e));
	p.qp_num = QPN;
	p.private_data_len = 137;
	EXPECT(rdma_accept(id[PASSIVE], &p) == -1 && errno == EINVAL);
	p.private_data_len = 136;
	EXPECT(!rdma_accept(id[PASSIVE], &p));
	e = await(ACTIVE, RDMA_CM_EVENT_ESTABLISHED);
	if (e) {
		EXPECT(e->param.ud.qp_num == QPN &&
		       e->param.ud.qkey == RDMA_UDP_QKEY);
		EXPECT(e->param.ud.private_data_len == 136 &&
		       !memcmp(e->param.ud.private_data, words, 136));
		EXPECT(e->param.ud.ah_attr.is_global);
		EXPECT(!rdma_ack_cm_event(e));
	}
	end();
}

static void datagram_services_are_resolved_in_each_space(void)
{
	a_datagram_service_is_resolved(RDMA_PS_UDP);
	a_datagram_service_is_resolved(RDMA_PS_IPOIB);
}

static void a_connection_may_be_of_the_infiniband_space(void)
{
	begin(RDMA_PS_IB, "127.0.0.1", "127.0.0.1");
	accept_it();
	establish();
	end();
}

/* A listener of rdma_create_ep makes the queue pairs of its requests. */
static void an_endpoint_brings_a_queue_pair_to_each_request(void)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE,
				      .ai_port_space = RDMA_PS_TCP},
			     *res = NULL;
	struct ibv_qp_init_attr init = {.cap = {4, 4, 1, 1, 16},
					.sq_sig_all = 1};
	struct rdma_cm_id *got = NULL;

	EXPECT(!rdma_getaddrinfo("127.0.0.1", "0", &hints, &res));
	EXPECT(res && !rdma_create_ep(&listener, res, NULL, &init));
	rdma_freeaddrinfo(res);
	if (cases_is_wrong())
		return;
	EXPECT(!rdma_listen(listener, 4));
	resolve_address(RDMA_PS_TCP, "127.0.0.1");
	resolve_route();
	EXPECT(!rdma_connect(id[ACTIVE], NULL));
	EXPECT(!rdma_get_request(listener, &got));
	if (!got)
		return;
	EXPECT(got->qp && got->qp->qp_type == IBV_QPT_RC);
	EXPECT(got->send_cq && got->send_cq->cq_context == got);
	EXPECT(got->recv_cq && got->recv_cq_channel);
	EXPECT(got->event &&
	       got->event->event == RDMA_CM_EVENT_CONNECT_REQUEST);
	EXPECT(!rdma_reject(got, "no", 2));
	rdma_destroy_ep(got);
	take(ACTIVE, RDMA_CM_EVENT_REJECTED);
	end();
}

/* One with a UD queue pair and a receive, a member as flags say. */
static struct rdma_cm_id *member(struct sockaddr_storage *group, uint32_t flags,
				 struct ibv_mr **mr, uint8_t *memory,
				 size_t bytes)
{
	struct rdma_cm_join_mc_attr_ex join = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS |
			     RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = flags,
		.addr = (struct sockaddr *)group};
	struct ibv_qp_init_attr init = {.cap = {4, 4, 1, 1, 64},
					.qp_type = IBV_QPT_UD,
					.sq_sig_all = 1};
	struct rdma_cm_id *i = id_new(ACTIVE, RDMA_PS_UDP);
	struct ibv_recv_wr wr = {.num_sge = 1}, *bad;
	struct ibv_sge sge;

	EXPECT(!bind_to(i, AF_INET, "127.0.0.1", 0));
	EXPECT(!rdma_create_qp(i, NULL, &init));
	*mr = ibv_reg_mr(i->pd, memory, bytes, IBV_ACCESS_LOCAL_WRITE);
	if (!*mr || !i->qp)
		abort();
	sge = (struct ibv_sge){(uintptr_t)memory, (uint32_t)bytes, (*mr)->lkey};
	wr.sg_list = &sge;
	for (int k = 0; k < 2; k++)
		EXPECT(!ibv_post_recv(i->qp, &wr, &bad));
	EXPECT(!rdma_join_multicast_ex(i, &join, i));
	return i;
}

/* Until this many have completed, or the time is over. */
static int completions(struct ibv_cq *cq, int want, int wait_ms)
{
	struct ibv_wc wc;
	int n = 0;

	for (int turn = 0; n < want && turn <= wait_ms; turn++) {
		if (ibv_poll_cq(cq, 1, &wc) == 1)
			n += wc.status == IBV_WC_SUCCESS;
		else
			poll(NULL, 0, 1);
	}
	return n;
}

/* Two datagrams to the group that the event is of. */
static void send_two(struct rdma_cm_id *from, const struct rdma_ud_param *to)
{
	struct ibv_sge sge = {(uintptr_t) "data", 4, 0};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_INLINE,
				 .sg_list = &sge,
				 .num_sge = 1};
	struct ibv_ah_attr attr = to->ah_attr;
	struct ibv_send_wr *bad;

	EXPECT(to->qp_num == 0xffffff && to->private_data == from);
	wr.wr.ud.ah = ibv_create_ah(from->pd, &attr);
	wr.wr.ud.remote_qpn = to->qp_num;
	wr.wr.ud.remote_qkey = to->qkey;
	EXPECT(wr.wr.ud.ah);
	for (int k = 0; wr.wr.ud.ah && k < 2; k++)
		EXPECT(!ibv_post_send(from->qp, &wr, &bad));
	EXPECT(completions(from->send_cq, 2, WAIT_MS) == 2);
	ibv_destroy_ah(wr.wr.ud.ah);
}

static void who_only_sends_to_a_group_hears_nothing_of_it(void)
{
	struct sockaddr_storage group = address(AF_INET, "239.1.2.4", 0);
	enum { SENDER, MEMBER, SENDS_ONLY, ALL };
	static uint8_t memory[ALL][128];
	struct rdma_cm_event *e;
	struct rdma_cm_id *i[ALL];
	struct ibv_mr *mr[ALL];

	for (int k = ALL - 1; k >= 0; k--) {
		i[k] = member(&group,
			      k == SENDS_ONLY
				      ? RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER
				      : RDMA_MC_JOIN_FLAG_FULLMEMBER,
			      &mr[k], memory[k], sizeof(memory[k]));
		e = await(ACTIVE, RDMA_CM_EVENT_MULTICAST_JOIN);
		if (!e)
			return;
		if (k == SENDER)
			send_two(i[k], &e->param.ud);
		EXPECT(!rdma_ack_cm_event(e));
	}
	/* when the second is here, the first is wherever it goes */
	EXPECT(completions(i[MEMBER]->recv_cq, 2, WAIT_MS) == 2);
	EXPECT(completions(i[SENDS_ONLY]->recv_cq, 1, 0) == 0);
	for (int k = 0; k < ALL; k++) {
		EXPECT(!rdma_leave_multicast(i[k], (struct sockaddr *)&group));
		EXPECT(rdma_leave_multicast(i[k], (struct sockaddr *)&group) ==
			       -1 &&
		       errno == EADDRNOTAVAIL);
		EXPECT(!ibv_dereg_mr(mr[k]));
		rdma_destroy_qp(i[k]);
		EXPECT(!rdma_destroy_id(i[k]));
	}
}

static void a_group_may_be_left_before_its_event_is_taken(void)
{
	struct sockaddr_storage group = address(AF_INET, "239.1.2.5", 0);
	static uint8_t memory[128];
	struct ibv_mr *mr;
	struct rdma_cm_id *i = member(&group, RDMA_MC_JOIN_FLAG_FULLMEMBER, &mr,
				      memory, sizeof(memory));

	EXPECT(is_readable(ACTIVE, 0));
	EXPECT(!rdma_leave_multicast(i, (struct sockaddr *)&group));
	EXPECT(!is_readable(ACTIVE, 0));
	EXPECT(!ibv_dereg_mr(mr));
	rdma_destroy_qp(i);
	EXPECT(!rdma_destroy_id(i));
}

/* Of rdma-core 60, which the headers we build against may not know. */
static void the_newer_calls_are_there(void)
{
	struct rdma_cm_id *i = id_new(ACTIVE, RDMA_PS_TCP);
	int (*write_event)(struct rdma_cm_id *, unsigned, int, uint64_t);
	int (*resolve)(struct rdma_cm_id *, const char *, const char *,
		       const struct rdma_addrinfo *);
	int (*query)(struct rdma_cm_id *, struct rdma_addrinfo **);
	const unsigned resolved = RDMA_CM_EVENT_TIMEWAIT_EXIT + 1,
		       user = resolved + 2;
	struct rdma_addrinfo *info = NULL;
	struct rdma_cm_event *e;

	*(void **)&write_event = dlsym(RTLD_DEFAULT, "rdma_write_cm_event");
	*(void **)&resolve = dlsym(RTLD_DEFAULT, "rdma_resolve_addrinfo");
	*(void **)&query = dlsym(RTLD_DEFAULT, "rdma_query_addrinfo");
	if (!write_event || !resolve || !query) {
		cases_expect(false, "not all of them are there");
		return;
	}
	EXPECT(!write_event(i, user, 5, 0x123456789abcdefull));
	e = await(ACTIVE, (enum rdma_cm_event_type)user);
	if (e) {
		EXPECT(e->status == 5 &&
		       !memcmp(&e->param, &(uint64_t){0x123456789abcdefull},
			       8));
		EXPECT(!rdma_ack_cm_event(e));
	}
	EXPECT(write_event(i, RDMA_CM_EVENT_ESTABLISHED, 0, 0) == -1);
	EXPECT(query(i, &info) == -1);
	EXPECT(!resolve(i, "127.0.0.1", "5", NULL));
	take(ACTIVE, (enum rdma_cm_event_type)resolved);
	EXPECT(!query(i, &info) && info && info->ai_dst_addr);
	rdma_freeaddrinfo(info);
	EXPECT(!rdma_destroy_id(i));
}

int main(void)
{
	for (int side = 0; side < SIDES; side++) {
		channel[side] = rdma_create_event_channel();
		if (!channel[side])
			return 1;
	}
	cases_run("an address gives a device and a port",
		  an_address_gives_a_device_and_a_port);
	cases_run("an address of nobody here is refused",
		  an_address_of_nobody_here_is_refused);
	cases_run("a port has one owner unless all share it",
		  a_port_has_one_owner_unless_all_share_it);
	cases_run("any of ipv6 is any of ipv4 too unless it is to be alone",
		  any_of_ipv6_is_any_of_ipv4_too_unless_it_is_to_be_alone);
	cases_run("who listens at any address is called at each",
		  who_listens_at_any_address_is_called_at_each);
	cases_run("who calls where no device is is refused",
		  who_calls_where_no_device_is_is_refused);
	cases_run("who listens without an address has a port",
		  who_listens_without_an_address_has_a_port);
	cases_run("a request says what the caller wants",
		  a_request_says_what_the_caller_wants);
	cases_run("options reach the queue pairs of both",
		  options_reach_the_queue_pairs_of_both);
	cases_run("a path of the program is gone",
		  a_path_of_the_program_is_gone);
	cases_run("enhanced connections are told and refused",
		  enhanced_connections_are_told_and_refused);
	cases_run("data that overtake the last message establish",
		  data_that_overtake_the_last_message_establish);
	cases_run("both ends hear of the end and of its rest",
		  both_ends_hear_of_the_end_and_of_its_rest);
	cases_run("an id moves with its events", an_id_moves_with_its_events);
	cases_run("a listener moves with what became of its requests",
		  a_listener_moves_with_what_became_of_its_requests);
	cases_run("what nobody took goes with its id",
		  what_nobody_took_goes_with_its_id);
	cases_run("datagram services are resolved in each space",
		  datagram_services_are_resolved_in_each_space);
	cases_run("a connection may be of the infiniband space",
		  a_connection_may_be_of_the_infiniband_space);
	cases_run("an endpoint brings a queue pair to each request",
		  an_endpoint_brings_a_queue_pair_to_each_request);
	cases_run("who only sends to a group hears nothing of it",
		  who_only_sends_to_a_group_hears_nothing_of_it);
	cases_run("a group may be left before its event is taken",
		  a_group_may_be_left_before_its_event_is_taken);
	cases_run("the newer calls are there", the_newer_calls_are_there);
	return cases_end();
}
