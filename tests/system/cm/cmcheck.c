/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cmcheck [ADDRESS]: tests calls of librdmacm, most of them between two ids of
 * one process.  ADDRESS: an IPv4 address of a device, and no loopback address.
 * No route leads from ADDRESS to another network.  Without ADDRESS, the cases
 * that need such an address do not run, and two cases test less.  Prints a line
 * per case that runs, as verbcheck does.  One thread.
 */
#include <dlfcn.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "sides.h"

enum {
	CLASS = 0x20,	   /* a traffic class */
	TIMEOUT = 9,	   /* the code of an ACK timeout of 2 ms */
	REJECTED_ECE = 35, /* the reject reason of rdma_reject_ece */
};

static const char *of_device; /* ADDRESS, or NULL */

static bool is_known(const struct ibv_context *verbs)
{
	struct ibv_context **list;
	bool known = false;
	int n = 0;

	list = rdma_get_devices(&n);
	EXPECT(list && n > 0 && !list[n]);
	for (int i = 0; list && i < n; i++)
		known |= list[i] == verbs;
	rdma_free_devices(list);
	return known;
}

static void an_address_gives_a_device_and_a_port(void)
{
	struct rdma_cm_id *one = id_new(ACTIVE, RDMA_PS_TCP);

	EXPECT(!rdma_get_src_port(one) && !one->verbs);
	EXPECT(!bind_to(one, AF_INET, of_device, 0));
	EXPECT(rdma_get_src_port(one) && one->verbs && one->pd);
	EXPECT(is_known(one->verbs));
	EXPECT(bind_to(one, AF_INET, of_device, 0) == -1 && errno == EINVAL);
	EXPECT(!rdma_destroy_id(one));
}

/* As in the kernel, an id that is bound to a wildcard or loopback address gets
 * a port, but no device. */
static void a_loopback_address_gives_a_port_and_no_device(void)
{
	static const char *const texts[] = {"0.0.0.0", "127.0.0.1", "127.1.2.3",
					    "::", "::1"};

	for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]); k++) {
		int family = strchr(texts[k], ':') ? AF_INET6 : AF_INET;
		struct rdma_cm_id *i = id_new(ACTIVE, RDMA_PS_TCP);

		EXPECT(!bind_to(i, family, texts[k], 0));
		EXPECT(rdma_get_src_port(i) && !i->verbs && !i->pd);
		EXPECT(rdma_get_local_addr(i)->sa_family == family);
		EXPECT(bind_to(i, family, texts[k], 0) == -1 &&
		       errno == EINVAL);
		EXPECT(!rdma_destroy_id(i));
	}
}

/* The route to the destination decides the source address and the device. */
static void a_destination_gives_a_bound_id_its_device(void)
{
	const char *to[] = {"127.0.0.1", of_device};

	for (int k = 0; k < 2 && to[k]; k++) {
		struct rdma_cm_id *i = id_new(ACTIVE, RDMA_PS_TCP);
		struct sockaddr_storage a = address_of(AF_INET, to[k], 7905);
		struct in_addr want;
		uint16_t port;

		EXPECT(!bind_to(i, AF_INET, "127.0.0.1", 0));
		port = rdma_get_src_port(i);
		EXPECT(!rdma_resolve_addr(i, NULL, (struct sockaddr *)&a,
					  RESOLVE_MS));
		take_event(ACTIVE, RDMA_CM_EVENT_ADDR_RESOLVED);
		EXPECT(is_known(i->verbs) && rdma_get_src_port(i) == port);
		inet_pton(AF_INET, to[k], &want);
		EXPECT(i->route.addr.src_sin.sin_addr.s_addr == want.s_addr);
		EXPECT(!rdma_destroy_id(i));
	}
}

/* No route leads from ADDRESS to another network.  After ADDR_ERROR the id,
 * bound by the program or not, can be used for another destination. */
static void without_a_route_from_the_source_comes_addr_error(void)
{
	struct sockaddr_storage far = address_of(AF_INET, "198.51.100.1", 7906);
	struct sockaddr_storage own;

	for (int binds = 0; binds <= 1; binds++) {
		struct rdma_cm_id *i = id_new(ACTIVE, RDMA_PS_TCP);
		struct rdma_cm_event *e;

		own = address_of(AF_INET, of_device, 0);
		if (binds)
			EXPECT(!bind_to(i, AF_INET, of_device, 0));
		EXPECT(!rdma_resolve_addr(
			i, binds ? NULL : (struct sockaddr *)&own,
			(struct sockaddr *)&far, RESOLVE_MS));
		e = await_event(ACTIVE, RDMA_CM_EVENT_ADDR_ERROR);
		EXPECT(!e ||
		       (e->status == -ENETUNREACH && !rdma_ack_cm_event(e)));
		own = address_of(AF_INET, of_device, 7906);
		EXPECT(!rdma_resolve_addr(i, NULL, (struct sockaddr *)&own,
					  RESOLVE_MS));
		take_event(ACTIVE, RDMA_CM_EVENT_ADDR_RESOLVED);
		EXPECT(!rdma_destroy_id(i));
	}
}

static void a_listener_at_loopback_is_called_at_each_address(void)
{
	const char *to[] = {"127.0.0.1", of_device};

	for (int k = 0; k < 2 && to[k]; k++) {
		begin_call(RDMA_PS_TCP, "127.0.0.1", to[k]);
		EXPECT(!listener->verbs);
		EXPECT(id[PASSIVE] && is_known(id[PASSIVE]->verbs));
		accept_it();
		establish_active();
		end_sides();
	}
}

static void an_address_of_no_interface_is_refused(void)
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

/* Binds two ids to one port: the first id in RDMA_PS_TCP, the second in the
 * port space `second`.  first_shares, second_shares: the values of the option
 * REUSEADDR of the two ids.  Returns 0, or the errno of the second bind. */
static int bind_both(enum rdma_port_space second, bool first_shares,
		     bool second_shares)
{
	struct rdma_cm_id *a = id_new(ACTIVE, RDMA_PS_TCP);
	struct rdma_cm_id *b = id_new(ACTIVE, second);
	int err = 0;

	EXPECT(!set_option(a, RDMA_OPTION_ID_REUSEADDR, first_shares));
	EXPECT(!set_option(b, RDMA_OPTION_ID_REUSEADDR, second_shares));
	EXPECT(!bind_to(a, AF_INET, "127.0.0.1", 7900));
	if (bind_to(b, AF_INET, "0.0.0.0", 7900))
		err = errno;
	EXPECT(!rdma_destroy_id(a) && !rdma_destroy_id(b));
	return err;
}

static void a_port_has_one_owner_unless_all_share_it(void)
{
	EXPECT(bind_both(RDMA_PS_TCP, false, false) == EADDRINUSE);
	EXPECT(bind_both(RDMA_PS_TCP, true, false) == EADDRINUSE);
	EXPECT(bind_both(RDMA_PS_TCP, false, true) == EADDRINUSE);
	EXPECT(bind_both(RDMA_PS_TCP, true, true) == 0);
	EXPECT(bind_both(RDMA_PS_UDP, false, false) == 0);
}

/* If the id kept the device, a later bind to 0.0.0.0 would bind the id to
 * addresses of that device only. */
static void a_bind_that_fails_leaves_the_id_without_device(void)
{
	struct rdma_cm_id *a = id_new(ACTIVE, RDMA_PS_TCP);
	struct rdma_cm_id *b = id_new(ACTIVE, RDMA_PS_TCP);

	EXPECT(!bind_to(a, AF_INET, of_device, 7904) && a->verbs);
	EXPECT(bind_to(b, AF_INET, of_device, 7904) == -1 &&
	       errno == EADDRINUSE);
	EXPECT(!b->verbs && !b->pd && !rdma_get_src_port(b));
	EXPECT(!bind_to(b, AF_INET, "0.0.0.0", 0) && !b->verbs);
	EXPECT(!rdma_listen(b, 1) && !b->verbs);
	EXPECT(!rdma_destroy_id(a) && !rdma_destroy_id(b));
}

static void a_bind_to_any_takes_the_ipv4_port_without_afonly(void)
{
	for (int alone = 0; alone <= 1; alone++) {
		struct rdma_cm_id *six = id_new(ACTIVE, RDMA_PS_TCP);
		struct rdma_cm_id *four = id_new(ACTIVE, RDMA_PS_TCP);

		EXPECT(!set_option(six, RDMA_OPTION_ID_AFONLY, alone));
		EXPECT(!bind_to(six, AF_INET6, "::", 7901));
		EXPECT(!set_option(six, RDMA_OPTION_ID_AFONLY, alone));
		EXPECT(set_option(six, RDMA_OPTION_ID_AFONLY, !alone) == -1 &&
		       errno == EINVAL);
		EXPECT((bind_to(four, AF_INET, "0.0.0.0", 7901) == 0) == alone);
		EXPECT(!rdma_destroy_id(six) && !rdma_destroy_id(four));
	}
}

/* A refused call does not change the id, so the program may resolve another
 * address. */
static void both_addresses_of_an_id_are_of_one_family(void)
{
	struct sockaddr_storage four = address_of(AF_INET, "127.0.0.1", 0);
	struct sockaddr_storage six = address_of(AF_INET6, "::1", 7902);

	for (int is_bound = 0; is_bound <= 1; is_bound++) {
		struct rdma_cm_id *i = id_new(ACTIVE, RDMA_PS_TCP);
		struct sockaddr_storage *from = is_bound ? NULL : &four;

		if (is_bound)
			EXPECT(!bind_to(i, AF_INET, "127.0.0.1", 0));
		EXPECT(rdma_resolve_addr(i, (struct sockaddr *)from,
					 (struct sockaddr *)&six,
					 RESOLVE_MS) == -1 &&
		       errno == EINVAL);
		EXPECT(!rdma_get_dst_port(i) && !is_readable(ACTIVE, 0));
		EXPECT(is_bound || (!i->verbs && !rdma_get_src_port(i)));
		EXPECT(!rdma_resolve_addr(i, NULL, (struct sockaddr *)&four,
					  RESOLVE_MS));
		take_event(ACTIVE, RDMA_CM_EVENT_ADDR_RESOLVED);
		EXPECT(!rdma_destroy_id(i));
	}
}

/* As in the kernel, each call succeeds only once, and only in the right state.
 */
static void a_call_in_the_wrong_state_changes_nothing(void)
{
	struct sockaddr_storage to = address_of(AF_INET, "127.0.0.1", 7903);
	struct rdma_cm_id *i = id_new(ACTIVE, RDMA_PS_TCP);

	EXPECT(rdma_disconnect(i) == -1 && errno == EINVAL);
	EXPECT(!bind_to(i, AF_INET, "127.0.0.1", 0));
	EXPECT(rdma_disconnect(i) == -1 && errno == EINVAL);
	EXPECT(rdma_connect(i, NULL) == -1 && errno == EINVAL);
	EXPECT(rdma_resolve_route(i, RESOLVE_MS) == -1 && errno == EINVAL);
	EXPECT(!rdma_resolve_addr(i, NULL, (struct sockaddr *)&to, RESOLVE_MS));
	take_event(ACTIVE, RDMA_CM_EVENT_ADDR_RESOLVED);
	to = address_of(AF_INET, "127.0.0.1", 7904);
	EXPECT(rdma_resolve_addr(i, NULL, (struct sockaddr *)&to, RESOLVE_MS) ==
		       -1 &&
	       errno == EINVAL);
	EXPECT(rdma_get_dst_port(i) == htons(7903));
	EXPECT(rdma_disconnect(i) == -1 && errno == EINVAL);
	EXPECT(!rdma_resolve_route(i, RESOLVE_MS));
	EXPECT(rdma_resolve_route(i, RESOLVE_MS) == -1 && errno == EINVAL);
	take_event(ACTIVE, RDMA_CM_EVENT_ROUTE_RESOLVED);
	EXPECT(rdma_resolve_route(i, RESOLVE_MS) == -1 && errno == EINVAL);
	EXPECT(!is_readable(ACTIVE, 0));
	EXPECT(!rdma_destroy_id(i));
}

static void a_request_carries_the_callers_parameters(void)
{
	const struct rdma_conn_param *p;
	struct rdma_cm_event *e;

	listen_at(RDMA_PS_TCP, "127.0.0.1");
	resolve_address(RDMA_PS_TCP, "127.0.0.1");
	resolve_route();
	e = connect_active(NULL);
	if (e) {
		p = &e->param.conn;
		/* The initiator depth of one side is the responder resources of
		 * its peer. */
		EXPECT(p->responder_resources == 2 && p->initiator_depth == 3);
		EXPECT(p->retry_count == 5 && p->rnr_retry_count == 6);
		EXPECT(p->srq && p->qp_num == QPN && e->listen_id == listener);
		EXPECT(!rdma_ack_cm_event(e));
	}
	end_sides();
}

static struct ibv_qp_attr qp_attr(int side, enum ibv_qp_state state)
{
	struct ibv_qp_attr a = {.qp_state = state};
	int mask;

	EXPECT(id[side] && !rdma_init_qp_attr(id[side], &a, &mask));
	return a;
}

static void options_reach_the_queue_pairs_of_both_sides(void)
{
	listen_at(RDMA_PS_TCP, "127.0.0.1");
	resolve_address(RDMA_PS_TCP, "127.0.0.1");
	EXPECT(!small_option(id[ACTIVE], RDMA_OPTION_ID_TOS, CLASS));
	EXPECT(!small_option(id[ACTIVE], RDMA_OPTION_ID_ACK_TIMEOUT, TIMEOUT));
	EXPECT(small_option(id[ACTIVE], RDMA_OPTION_ID_ACK_TIMEOUT, 32) == -1 &&
	       errno == EINVAL);
	EXPECT(set_option(id[ACTIVE], RDMA_OPTION_ID_TOS, 1) == -1 &&
	       errno == EINVAL);
	EXPECT(set_option(id[ACTIVE], 99, 1) == -1 && errno == ENOSYS);
	resolve_route();
	EXPECT(id[ACTIVE]->route.path_rec->traffic_class == CLASS);
	be_called();
	accept_it();
	for (int side = 0; side < SIDES; side++) {
		EXPECT(qp_attr(side, IBV_QPS_RTR).ah_attr.grh.traffic_class ==
		       CLASS);
		EXPECT(qp_attr(side, IBV_QPS_RTS).timeout == TIMEOUT);
	}
	end_sides();
}

/* The passive side accepts with fewer resources for READs and atomics than the
 * active side's initiator depth. */
static void a_reply_limits_the_reads_of_the_active_side(void)
{
	struct rdma_conn_param p = conn_param();

	listen_at(RDMA_PS_TCP, "127.0.0.1");
	resolve_address(RDMA_PS_TCP, "127.0.0.1");
	resolve_route();
	be_called();
	EXPECT(p.initiator_depth == 2 && p.responder_resources == 3);
	p.initiator_depth = p.responder_resources = 1;
	EXPECT(id[PASSIVE] && !rdma_accept(id[PASSIVE], &p));
	take_event(ACTIVE, RDMA_CM_EVENT_CONNECT_RESPONSE);
	EXPECT(qp_attr(ACTIVE, IBV_QPS_RTS).max_rd_atomic == 1);
	EXPECT(qp_attr(PASSIVE, IBV_QPS_RTS).max_rd_atomic == 1);
	EXPECT(qp_attr(PASSIVE, IBV_QPS_RTR).max_dest_rd_atomic == 1);
	end_sides();
}

/* The first PSNs are random, so that a host off the path cannot guess them. */
static void the_first_psns_are_not_in_a_row(void)
{
	uint32_t psn[2 * SIDES];
	int count = 0;

	for (int i = 0; i < 2; i++) {
		listen_at(RDMA_PS_TCP, "127.0.0.1");
		resolve_address(RDMA_PS_TCP, "127.0.0.1");
		resolve_route();
		be_called();
		accept_it();
		for (int side = 0; side < SIDES; side++)
			psn[count++] = qp_attr(side, IBV_QPS_RTR).rq_psn;
		end_sides();
	}
	/* neither four equal PSNs nor PSNs in equal steps */
	EXPECT(psn[1] - psn[0] != psn[2] - psn[1] ||
	       psn[2] - psn[1] != psn[3] - psn[2]);
}

/* The kernel's rdma_cm sets min_rnr_timer 0, the longest time, 655.36 ms. */
static void queue_pairs_get_the_rnr_timer_of_the_kernel(void)
{
	listen_at(RDMA_PS_TCP, "127.0.0.1");
	resolve_address(RDMA_PS_TCP, "127.0.0.1");
	resolve_route();
	be_called();
	accept_it();
	for (int side = 0; side < SIDES; side++)
		EXPECT(qp_attr(side, IBV_QPS_RTR).min_rnr_timer == 0);
	end_sides();
}

static void a_path_that_the_program_sets_is_used(void)
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
	take_event(ACTIVE, RDMA_CM_EVENT_ROUTE_RESOLVED);
	be_called();
	accept_it();
	for (int side = 0; side < SIDES; side++) {
		struct ibv_qp_attr a = qp_attr(side, IBV_QPS_RTR);

		EXPECT(a.ah_attr.grh.traffic_class == CLASS);
		EXPECT(a.path_mtu == IBV_MTU_256);
	}
	end_sides();
}

static void ece_options_reach_the_peer_and_may_be_refused(void)
{
	struct ibv_ece ours = {0x123456, 7}, theirs = {0x123457, 8}, got;
	struct ibv_ece none = {0, 0}, much = {0x1000000, 0}, newer = ours;
	struct rdma_cm_event *e;

	listen_at(RDMA_PS_TCP, "127.0.0.1");
	resolve_address(RDMA_PS_TCP, "127.0.0.1");
	resolve_route();
	EXPECT(rdma_set_local_ece(id[ACTIVE], &none) == -1 && errno == EINVAL);
	EXPECT(rdma_set_local_ece(id[ACTIVE], &much) == -1 && errno == EINVAL);
	newer.comp_mask = 1;
	EXPECT(rdma_set_local_ece(id[ACTIVE], &newer) == -1 && errno == EINVAL);
	EXPECT(!rdma_set_local_ece(id[ACTIVE], &ours));
	e = connect_active(NULL);
	if (!e) {
		end_sides();
		return;
	}
	EXPECT(!rdma_ack_cm_event(e));
	EXPECT(!rdma_get_remote_ece(id[PASSIVE], &got));
	EXPECT(got.vendor_id == ours.vendor_id && got.options == ours.options);
	EXPECT(!rdma_set_local_ece(id[PASSIVE], &theirs));
	accept_it();
	EXPECT(!rdma_get_remote_ece(id[ACTIVE], &got));
	EXPECT(got.vendor_id == theirs.vendor_id &&
	       got.options == theirs.options);
	end_sides();
	begin_call(RDMA_PS_TCP, "127.0.0.1", "127.0.0.1");
	EXPECT(id[PASSIVE] && !rdma_reject_ece(id[PASSIVE], "no", 2));
	e = await_event(ACTIVE, RDMA_CM_EVENT_REJECTED);
	if (e) {
		EXPECT(e->status == REJECTED_ECE);
		EXPECT(!memcmp(e->param.conn.private_data, "no", 2));
		EXPECT(!rdma_ack_cm_event(e));
	}
	end_sides();
}

static void comm_est_establishes_before_the_rtu(void)
{
	begin_call(RDMA_PS_TCP, "127.0.0.1", "127.0.0.1");
	EXPECT(rdma_establish(id[ACTIVE]) == -1);
	accept_it();
	EXPECT(rdma_notify(id[PASSIVE], IBV_EVENT_QP_FATAL) == -1 &&
	       errno == EINVAL);
	EXPECT(!rdma_notify(id[PASSIVE], IBV_EVENT_COMM_EST));
	take_event(PASSIVE, RDMA_CM_EVENT_ESTABLISHED);
	EXPECT(!rdma_establish(id[ACTIVE]));
	end_sides(); /* expects that there is no second event */
}

/* A failed rdma_create_qp destroys the completion queues that it has made, and
 * leaves none of them in the attributes.  The id keeps the protection domain
 * that it had.  So the program may free its own domain, ask for less, and call
 * again. */
static void a_failed_rdma_create_qp_leaves_no_queue(void)
{
	struct ibv_qp_init_attr init = {.cap = {1, 1, 1000, 1, 0},
					.qp_type = IBV_QPT_RC};
	struct ibv_pd *pd, *own;

	listen_at(RDMA_PS_TCP, "127.0.0.1");
	resolve_address(RDMA_PS_TCP, "127.0.0.1");
	own = id[ACTIVE]->pd;
	pd = ibv_alloc_pd(id[ACTIVE]->verbs);
	EXPECT(rdma_create_qp(id[ACTIVE], pd, &init) && errno == EINVAL);
	EXPECT(!init.send_cq && !init.recv_cq && !id[ACTIVE]->qp);
	EXPECT(own && id[ACTIVE]->pd == own && !ibv_dealloc_pd(pd));
	init.cap.max_send_sge = 1;
	EXPECT(!rdma_create_qp(id[ACTIVE], NULL, &init));
	EXPECT(init.send_cq && id[ACTIVE]->qp);
	rdma_destroy_qp(id[ACTIVE]);
	end_sides();
}

static void a_queue_pair_without_a_domain_gets_that_of_the_id(void)
{
	struct ibv_qp_init_attr_ex init = {.cap = {1, 1, 1, 1, 0},
					   .qp_type = IBV_QPT_RC,
					   .comp_mask = IBV_QP_INIT_ATTR_PD};

	listen_at(RDMA_PS_TCP, "127.0.0.1");
	resolve_address(RDMA_PS_TCP, "127.0.0.1");
	EXPECT(!rdma_create_qp_ex(id[ACTIVE], &init));
	EXPECT(id[ACTIVE]->qp && id[ACTIVE]->qp->pd == id[ACTIVE]->pd);
	rdma_destroy_qp(id[ACTIVE]);
	end_sides();
}

/* rdma_set_local_ece gives librdmacm the ECE options of a queue pair that the
 * program has created by ibv_create_qp.  A queue pair of rdma_create_qp has its
 * ECE options itself, so rdma_set_local_ece fails while the id has such a queue
 * pair. */
static void ece_options_are_for_ids_without_a_queue_pair(void)
{
	struct ibv_qp_init_attr init = {.cap = {1, 1, 1, 1, 0},
					.qp_type = IBV_QPT_RC};
	struct ibv_ece ece = {0x123456, 7};

	listen_at(RDMA_PS_TCP, "127.0.0.1");
	resolve_address(RDMA_PS_TCP, "127.0.0.1");
	EXPECT(!rdma_create_qp(id[ACTIVE], NULL, &init));
	EXPECT(rdma_set_local_ece(id[ACTIVE], &ece) == -1 && errno == EINVAL);
	rdma_destroy_qp(id[ACTIVE]);
	EXPECT(!rdma_set_local_ece(id[ACTIVE], &ece));
	end_sides();
}

/* As in cmtime, the first rdma_create_qp leaves its completion queue in the
 * attributes, and the second id uses that completion queue, too. */
static void queue_pairs_of_two_ids_may_share_a_cq(void)
{
	struct ibv_qp_init_attr init = {.cap = {1, 1, 1, 1, 0},
					.qp_type = IBV_QPT_RC};
	struct rdma_cm_id *two[SIDES];
	struct ibv_cq *cq;

	listen_at(RDMA_PS_TCP, "127.0.0.1");
	for (int k = 0; k < SIDES; k++) {
		resolve_address(RDMA_PS_TCP, "127.0.0.1");
		two[k] = id[ACTIVE];
		EXPECT(!rdma_create_qp(two[k], NULL, &init));
		EXPECT(two[k]->qp && two[k]->qp->send_cq == init.send_cq);
	}
	id[ACTIVE] = NULL;
	cq = two[0]->send_cq;
	EXPECT(cq && cq == init.send_cq && !two[1]->send_cq);
	rdma_destroy_qp(two[0]);
	EXPECT(!two[0]->send_cq);
	/* The completion queue is still there for the other id. */
	EXPECT(!ibv_req_notify_cq(cq, 0));
	rdma_destroy_qp(two[1]);
	for (int k = 0; k < SIDES; k++)
		EXPECT(!rdma_destroy_id(two[k]));
	end_sides();
}

static void a_connection_may_be_in_rdma_ps_ib(void)
{
	begin_call(RDMA_PS_IB, "127.0.0.1", "127.0.0.1");
	accept_it();
	establish_active();
	end_sides();
}

/* The headers of this build may be older and lack these calls. */
static void the_calls_of_rdma_core_60_work(void)
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
		check_expect(false, "librdmacm lacks one of the calls");
		return;
	}
	EXPECT(!write_event(i, user, 5, 0x123456789abcdefull));
	e = await_event(ACTIVE, (enum rdma_cm_event_type)user);
	if (e) {
		EXPECT(e->status == 5 &&
		       !memcmp(&e->param, &(uint64_t){0x123456789abcdefull},
			       8));
		EXPECT(!rdma_ack_cm_event(e));
	}
	EXPECT(write_event(i, RDMA_CM_EVENT_ESTABLISHED, 0, 0) == -1);
	EXPECT(query(i, &info) == -1);
	EXPECT(!resolve(i, "127.0.0.1", "5", NULL));
	take_event(ACTIVE, (enum rdma_cm_event_type)resolved);
	EXPECT(!query(i, &info) && info && info->ai_dst_addr);
	rdma_freeaddrinfo(info);
	EXPECT(!rdma_destroy_id(i));
}

/* Runs the cases that need ADDRESS. */
static void check_at_address(void)
{
	check_run("an address gives a device and a port",
		  an_address_gives_a_device_and_a_port);
	check_run("without a route from the source ADDR_ERROR comes",
		  without_a_route_from_the_source_comes_addr_error);
	check_run("a bind that fails leaves the id without a device",
		  a_bind_that_fails_leaves_the_id_without_device);
}

int main(int argc, char **argv)
{
	of_device = argc > 1 ? argv[1] : NULL;
	if (!sides_open())
		return 1;
	if (of_device)
		check_at_address();
	check_run("a wildcard or loopback address gives a port and no device",
		  a_loopback_address_gives_a_port_and_no_device);
	check_run("a bound id gets its device when its destination is resolved",
		  a_destination_gives_a_bound_id_its_device);
	check_run("a listener at loopback is called at each address",
		  a_listener_at_loopback_is_called_at_each_address);
	check_run("an address of no interface is refused",
		  an_address_of_no_interface_is_refused);
	check_run("a port has one owner unless all share it",
		  a_port_has_one_owner_unless_all_share_it);
	check_run(
		"a bind to in6addr_any takes the IPv4 port too without AFONLY",
		a_bind_to_any_takes_the_ipv4_port_without_afonly);
	check_run("both addresses of an id are of one family",
		  both_addresses_of_an_id_are_of_one_family);
	check_run("a call in the wrong state of an id changes nothing",
		  a_call_in_the_wrong_state_changes_nothing);
	check_run("a request carries the caller's parameters",
		  a_request_carries_the_callers_parameters);
	check_run("options reach the queue pairs of both sides",
		  options_reach_the_queue_pairs_of_both_sides);
	check_run("a reply limits the READs of the active side",
		  a_reply_limits_the_reads_of_the_active_side);
	check_run("the first PSNs are neither all equal nor in a row",
		  the_first_psns_are_not_in_a_row);
	check_run("queue pairs get the RNR timer of the kernel",
		  queue_pairs_get_the_rnr_timer_of_the_kernel);
	check_run("a path that the program sets is used by both sides",
		  a_path_that_the_program_sets_is_used);
	check_run("ECE options reach the peer and may be refused",
		  ece_options_reach_the_peer_and_may_be_refused);
	check_run("COMM_EST establishes a connection before the RTU comes",
		  comm_est_establishes_before_the_rtu);
	check_run("a failed rdma_create_qp leaves no queue in the attributes",
		  a_failed_rdma_create_qp_leaves_no_queue);
	check_run("a queue pair without a protection domain gets the id's",
		  a_queue_pair_without_a_domain_gets_that_of_the_id);
	check_run("ECE options are for ids without a queue pair",
		  ece_options_are_for_ids_without_a_queue_pair);
	check_run("queue pairs of two ids may share a completion queue",
		  queue_pairs_of_two_ids_may_share_a_cq);
	check_run("a connection may be in the port space RDMA_PS_IB",
		  a_connection_may_be_in_rdma_ps_ib);
	check_run("the calls of rdma-core 60 work",
		  the_calls_of_rdma_core_60_work);
	return check_end();
}
