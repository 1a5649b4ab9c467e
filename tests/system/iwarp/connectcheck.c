/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * connectcheck: tests rdma_cm on iWARP devices, with both ends in one process.
 * Prints a line per case.  The last case destroys ids while other threads
 * connect and accept.
 */
#include <errno.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "sides.h"

enum { ROUNDS = 60, CALLERS = 4 };

static const char hello[] = "hello", welcome[] = "welcome", no[] = "go away";

static void give_qp(struct rdma_cm_id *i)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
					.cap = {8, 8, 1, 1, 0}};

	EXPECT(!rdma_create_qp(i, NULL, &init));
}

static struct rdma_conn_param with_data(const char *data)
{
	struct rdma_conn_param p = conn_param();

	p.private_data = data;
	p.private_data_len = (uint8_t)strlen(data);
	return p;
}

static void expect_data(const struct rdma_cm_event *e, const char *data)
{
	const struct rdma_conn_param *p = e ? &e->param.conn : NULL;

	EXPECT(p && p->private_data && p->private_data_len == strlen(data) &&
	       !memcmp(p->private_data, data, strlen(data)));
}

/* Listens at the address `listens`, connects to the address `called` with
 * private data, and takes the event CONNECT_REQUEST.  The active side offers 3
 * responder resources and an initiator depth of 2. */
static void call_with_data(const char *listens, const char *called)
{
	struct rdma_conn_param p = with_data(hello);
	struct rdma_cm_event *e;

	listen_at(RDMA_PS_TCP, listens);
	resolve_address(RDMA_PS_TCP, called);
	resolve_route();
	give_qp(id[ACTIVE]);
	e = connect_active(&p);
	expect_data(e, hello);
	EXPECT(e && e->param.conn.responder_resources == 2 &&
	       e->param.conn.initiator_depth == 3);
	EXPECT(e && e->listen_id == listener && e->id->verbs && e->id->pd);
	if (e)
		EXPECT(!rdma_ack_cm_event(e));
}

static void accept_with_data(void)
{
	struct rdma_conn_param p = with_data(welcome);
	struct rdma_cm_event *e;

	if (!id[PASSIVE])
		return;
	give_qp(id[PASSIVE]);
	EXPECT(!rdma_accept(id[PASSIVE], &p));
	e = await_event(ACTIVE, RDMA_CM_EVENT_ESTABLISHED);
	expect_data(e, welcome);
	if (e)
		EXPECT(!rdma_ack_cm_event(e));
	take_event(PASSIVE, RDMA_CM_EVENT_ESTABLISHED);
}

static enum ibv_qp_state state_of(const struct rdma_cm_id *i)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return ibv_query_qp(i->qp, &attr, IBV_QP_STATE, &init) ? IBV_QPS_UNKNOWN
							       : attr.qp_state;
}

static void close_all(void)
{
	for (int side = 0; side < SIDES; side++)
		if (id[side] && id[side]->qp)
			rdma_destroy_qp(id[side]);
	/* rdma_destroy_qp of a connected queue pair has given events */
	for (int side = 0; side < SIDES; side++) {
		struct rdma_cm_event *e;

		while (is_readable(side, 0) &&
		       !rdma_get_cm_event(channel[side], &e))
			rdma_ack_cm_event(e);
	}
	end_sides();
}

static void both_ends_get_the_data_of_the_other(void)
{
	static const char *const at[] = {"127.0.0.1", "::1"};

	for (int i = 0; i < 2; i++) {
		call_with_data(at[i], at[i]);
		accept_with_data();
		EXPECT(state_of(id[ACTIVE]) == IBV_QPS_RTS);
		EXPECT(id[PASSIVE] && state_of(id[PASSIVE]) == IBV_QPS_RTS);
		EXPECT(rdma_get_src_port(id[ACTIVE]) && id[PASSIVE] &&
		       rdma_get_src_port(id[ACTIVE]) ==
			       rdma_get_dst_port(id[PASSIVE]));
		close_all();
	}
}

static void an_ipv6_listener_takes_ipv4_requests(void)
{
	call_with_data("::", "127.0.0.1");
	EXPECT(id[PASSIVE] &&
	       rdma_get_local_addr(id[PASSIVE])->sa_family == AF_INET);
	accept_with_data();
	close_all();
}

/* The id is bound to the unspecified address, and gets its source address from
 * the route. */
static void an_id_bound_to_any_address_connects(void)
{
	static const char *const any[] = {"0.0.0.0", "::"};
	static const char *const at[] = {"127.0.0.1", "::1"};
	struct rdma_conn_param p = with_data(hello);

	for (int i = 0; i < 2; i++) {
		int family = i ? AF_INET6 : AF_INET;
		struct sockaddr_storage to;
		struct rdma_cm_event *e;

		listen_at(RDMA_PS_TCP, at[i]);
		to = address_of(family, at[i],
				ntohs(rdma_get_src_port(listener)));
		id[ACTIVE] = id_new(ACTIVE, RDMA_PS_TCP);
		EXPECT(!bind_to(id[ACTIVE], family, any[i], 0));
		EXPECT(!rdma_resolve_addr(id[ACTIVE], NULL,
					  (struct sockaddr *)&to, RESOLVE_MS));
		take_event(ACTIVE, RDMA_CM_EVENT_ADDR_RESOLVED);
		resolve_route();
		give_qp(id[ACTIVE]);
		e = connect_active(&p);
		if (e)
			EXPECT(!rdma_ack_cm_event(e));
		accept_with_data();
		close_all();
	}
}

static void a_rejection_has_data(void)
{
	struct rdma_cm_event *e;

	call_with_data("127.0.0.1", "127.0.0.1");
	EXPECT(id[PASSIVE] && !rdma_reject(id[PASSIVE], no, sizeof(no) - 1));
	EXPECT(rdma_accept(id[PASSIVE], NULL) == -1 && errno == EINVAL);
	e = await_event(ACTIVE, RDMA_CM_EVENT_REJECTED);
	expect_data(e, no);
	EXPECT(e && e->status == -ECONNREFUSED);
	if (e)
		EXPECT(!rdma_ack_cm_event(e));
	close_all();
}

static void a_request_whose_id_is_destroyed_is_rejected(void)
{
	call_with_data("127.0.0.1", "127.0.0.1");
	EXPECT(id[PASSIVE] && !rdma_destroy_id(id[PASSIVE]));
	id[PASSIVE] = NULL;
	take_event(ACTIVE, RDMA_CM_EVENT_REJECTED);
	close_all();
}

/* Does this network namespace have an IPv4 TCP socket with this local and this
 * remote port, in network order, whose state is ESTABLISHED or CLOSE_WAIT? */
static bool has_connection(in_port_t from, in_port_t to)
{
	enum { ESTABLISHED = 1, CLOSE_WAIT = 8 };
	FILE *table = fopen("/proc/self/net/tcp", "re");
	char line[512];
	bool found = false;

	NEED(table);
	while (fgets(line, sizeof(line), table)) {
		unsigned ports[2], state;

		if (sscanf(line, "%*s %*[^:]:%x %*[^:]:%x %x", &ports[0],
			   &ports[1], &state) == 3)
			found |= ports[0] == ntohs(from) &&
				 ports[1] == ntohs(to) &&
				 (state == ESTABLISHED || state == CLOSE_WAIT);
	}
	fclose(table);
	return found;
}

static void a_request_of_a_peer_that_has_gone_is_not_accepted(void)
{
	in_port_t from, to;
	struct rdma_conn_param p = conn_param();

	call_with_data("127.0.0.1", "127.0.0.1");
	NEED(id[PASSIVE]);
	from = rdma_get_src_port(id[PASSIVE]);
	to = rdma_get_dst_port(id[PASSIVE]);
	EXPECT(has_connection(from, to));
	rdma_destroy_qp(id[ACTIVE]);
	EXPECT(!rdma_destroy_id(id[ACTIVE]));
	id[ACTIVE] = NULL;
	/* The library closes the passive side's socket when the peer has closed
	 * the connection. */
	while (has_connection(from, to))
		usleep(1000);
	EXPECT(rdma_accept(id[PASSIVE], &p) == -1 && errno == EINVAL);
	EXPECT(!is_readable(PASSIVE, 0));
	close_all();
}

static void a_request_is_rejected_if_there_is_no_queue_pair(void)
{
	struct rdma_conn_param p = conn_param();

	call_with_data("127.0.0.1", "127.0.0.1");
	EXPECT(id[PASSIVE] && rdma_accept(id[PASSIVE], &p) == -1);
	take_event(ACTIVE, RDMA_CM_EVENT_REJECTED);
	close_all();
}

/* Each side in turn disconnects first, and both sides get the event once. */
static void both_sides_get_disconnected_after_a_disconnect(void)
{
	for (int side = 0; side < SIDES; side++) {
		call_with_data("127.0.0.1", "127.0.0.1");
		accept_with_data();
		EXPECT(!rdma_disconnect(id[side]));
		take_event(!side, RDMA_CM_EVENT_DISCONNECTED);
		EXPECT(!rdma_disconnect(id[!side]));
		take_event(side, RDMA_CM_EVENT_DISCONNECTED);
		EXPECT(state_of(id[ACTIVE]) == IBV_QPS_ERR &&
		       state_of(id[PASSIVE]) == IBV_QPS_ERR);
		EXPECT(!is_readable(ACTIVE, 0) && !is_readable(PASSIVE, 0));
		close_all();
	}
}

/* One side destroys its id or its queue pair, and its peer gets DISCONNECTED.
 * The side itself gets DISCONNECTED if it destroys its queue pair. */
static void the_peer_of_a_destroyed_id_or_qp_gets_disconnected(void)
{
	for (int i = 0; i < 4; i++) {
		int side = i & 1;

		call_with_data("127.0.0.1", "127.0.0.1");
		accept_with_data();
		if (i & 2) {
			rdma_destroy_qp(id[side]);
			take_event(side, RDMA_CM_EVENT_DISCONNECTED);
		} else {
			struct ibv_qp *qp = id[side]->qp;

			EXPECT(!rdma_destroy_id(id[side]));
			EXPECT(!ibv_destroy_qp(qp));
			id[side] = NULL;
		}
		take_event(!side, RDMA_CM_EVENT_DISCONNECTED);
		close_all();
	}
}

/* The program destroys the queue pair by verbs, without a call of rdma_cm. */
static void both_sides_get_disconnected_after_ibv_destroy_qp(void)
{
	struct ibv_qp *qp;

	call_with_data("127.0.0.1", "127.0.0.1");
	accept_with_data();
	qp = id[ACTIVE]->qp;
	id[ACTIVE]->qp = NULL;
	EXPECT(!ibv_destroy_qp(qp));
	take_event(ACTIVE, RDMA_CM_EVENT_DISCONNECTED);
	take_event(PASSIVE, RDMA_CM_EVENT_DISCONNECTED);
	close_all();
}

static void rdma_init_qp_attr_gives_the_attributes_of_the_kernel(void)
{
	const int want = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
	int mask = 0;

	call_with_data("127.0.0.1", "127.0.0.1");
	EXPECT(!rdma_init_qp_attr(id[ACTIVE], &attr, &mask));
	EXPECT((mask & want) == want && attr.port_num == 1);
	EXPECT(attr.qp_access_flags & IBV_ACCESS_REMOTE_READ);
	attr.qp_state = IBV_QPS_RTS;
	EXPECT(!rdma_init_qp_attr(id[ACTIVE], &attr, &mask));
	EXPECT(!(mask & IBV_QP_STATE));
	EXPECT(rdma_establish(id[ACTIVE]) == -1 && errno == EINVAL);
	EXPECT(!rdma_notify(id[ACTIVE], IBV_EVENT_COMM_EST));
	close_all();
}

static void a_port_is_reserved_when_it_is_bound(void)
{
	struct rdma_cm_id *first = id_new(ACTIVE, RDMA_PS_TCP),
			  *second = id_new(ACTIVE, RDMA_PS_TCP);
	uint16_t port;

	EXPECT(!bind_to(first, AF_INET, "127.0.0.1", 0));
	port = ntohs(rdma_get_src_port(first));
	EXPECT(port && bind_to(second, AF_INET, "127.0.0.1", port) == -1 &&
	       errno == EADDRINUSE);
	EXPECT(!rdma_destroy_id(first));
	EXPECT(!bind_to(second, AF_INET, "127.0.0.1", port));
	EXPECT(!rdma_destroy_id(second));
}

/* A child of fork has copies of the descriptors, which must not keep the
 * listener open. */
static void a_child_of_fork_keeps_no_listener(void)
{
	struct rdma_conn_param p = conn_param();
	pid_t child;

	listen_at(RDMA_PS_TCP, "127.0.0.1");
	resolve_address(RDMA_PS_TCP, "127.0.0.1");
	resolve_route();
	give_qp(id[ACTIVE]);
	child = fork();
	if (!child)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!child)
		pause();
	EXPECT(child > 0 && !rdma_destroy_id(listener));
	listener = NULL;
	EXPECT(!rdma_connect(id[ACTIVE], &p));
	take_event(ACTIVE, RDMA_CM_EVENT_REJECTED);
	if (child > 0)
		kill(child, SIGKILL);
	close_all();
}

/* In a child of fork: calls rdma_connect, whose message goes to the descriptor
 * `said`, and exits with status 0 if the call fails with EINVAL. */
static _Noreturn void connect_in_child(int said)
{
	struct rdma_conn_param p = conn_param();

	if (dup2(said, STDERR_FILENO) < 0)
		_exit(1);
	_exit(rdma_connect(id[ACTIVE], &p) == -1 && errno == EINVAL ? 0 : 1);
}

static void a_message_says_that_the_id_belongs_to_the_parent(void)
{
	char text[640] = "";
	int said[2], status;
	pid_t child;

	listen_at(RDMA_PS_TCP, "127.0.0.1");
	resolve_address(RDMA_PS_TCP, "127.0.0.1");
	resolve_route();
	give_qp(id[ACTIVE]);
	NEED(!pipe(said));
	child = fork();
	if (!child)
		connect_in_child(said[1]);
	close(said[1]);
	EXPECT(child > 0 && waitpid(child, &status, 0) == child && !status);
	EXPECT(read(said[0], text, sizeof(text) - 1) > 0 &&
	       strstr(text, "rdma_connect: ") &&
	       strstr(text, "parent of this forked process"));
	close(said[0]);
	close_all();
}

/* ---- threads ---- */

static uint16_t port_of_many;

/* Accepts each request, and destroys the id and the queue pair when the
 * connection ends. */
static void *serve_many(void *channel_of_many)
{
	struct rdma_conn_param p = conn_param();
	struct rdma_cm_event *e;

	while (!rdma_get_cm_event(channel_of_many, &e)) {
		struct rdma_cm_id *i = e->id;
		enum rdma_cm_event_type type = e->event;

		rdma_ack_cm_event(e);
		if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
			struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
							.cap = {8, 8, 1, 1, 0}};

			if (rdma_create_qp(i, NULL, &init) ||
			    rdma_accept(i, &p)) {
				if (i->qp)
					rdma_destroy_qp(i);
				rdma_destroy_id(i);
			}
		} else if (type == RDMA_CM_EVENT_DISCONNECTED ||
			   type == RDMA_CM_EVENT_CONNECT_ERROR) {
			struct ibv_qp *qp = i->qp;

			/* rdma_destroy_id also drops the id's events that still
			 * wait in the channel. */
			rdma_destroy_id(i);
			ibv_destroy_qp(qp);
		} else if ((unsigned)type > RDMA_CM_EVENT_TIMEWAIT_EXIT) {
			break;
		}
	}
	return NULL;
}

static struct rdma_cm_event *next_event(struct rdma_event_channel *c)
{
	struct rdma_cm_event *e = NULL;

	NEED(!rdma_get_cm_event(c, &e));
	return e;
}

static void take_next(struct rdma_event_channel *c)
{
	rdma_ack_cm_event(next_event(c));
}

/* In each of ROUNDS rounds, connects, and destroys the id after a pause that
 * differs from round to round.  arg: the thread's number. */
static void *call_many(void *arg)
{
	unsigned number = (unsigned)(uintptr_t)arg;
	struct sockaddr_storage to =
		address_of(AF_INET, "127.0.0.1", port_of_many);
	struct rdma_conn_param p = conn_param();

	for (unsigned round = 0; round < ROUNDS; round++) {
		struct rdma_event_channel *c = rdma_create_event_channel();
		struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
						.cap = {8, 8, 1, 1, 0}};
		struct rdma_cm_id *i = NULL;
		struct ibv_qp *qp;

		NEED(c && !rdma_create_id(c, &i, NULL, RDMA_PS_TCP));
		NEED(!rdma_resolve_addr(i, NULL, (struct sockaddr *)&to,
					RESOLVE_MS));
		take_next(c);
		NEED(!rdma_resolve_route(i, RESOLVE_MS));
		take_next(c);
		NEED(!rdma_create_qp(i, NULL, &init));
		NEED(!rdma_connect(i, &p));
		usleep(round % 20 * 100 * (number + 1));
		if (round % 4 == 0)
			take_next(c);
		if (round % 3 == 0)
			rdma_disconnect(i);
		qp = i->qp;
		if (round % 2)
			rdma_destroy_qp(i);
		NEED(!rdma_destroy_id(i));
		if (!(round % 2))
			NEED(!ibv_destroy_qp(qp));
		rdma_destroy_event_channel(c);
	}
	return NULL;
}

static void ids_are_destroyed_at_any_time(void)
{
	pthread_t server, callers[CALLERS];
	void *result;

	listen_at(RDMA_PS_TCP, "127.0.0.1");
	port_of_many = ntohs(rdma_get_src_port(listener));
	NEED(!pthread_create(&server, NULL, serve_many, channel[PASSIVE]));
	for (uintptr_t i = 0; i < CALLERS; i++)
		NEED(!pthread_create(&callers[i], NULL, call_many, (void *)i));
	for (int i = 0; i < CALLERS; i++)
		pthread_join(callers[i], &result);
	/* The last connection begins after the callers' connections. */
	resolve_address(RDMA_PS_TCP, "127.0.0.1");
	resolve_route();
	give_qp(id[ACTIVE]);
	EXPECT(!rdma_connect(id[ACTIVE], NULL));
	take_event(ACTIVE, RDMA_CM_EVENT_ESTABLISHED);
	EXPECT(!rdma_disconnect(id[ACTIVE]));
	take_event(ACTIVE, RDMA_CM_EVENT_DISCONNECTED);
	rdma_destroy_qp(id[ACTIVE]);
	pthread_cancel(server);
	pthread_join(server, &result);
	close_all();
}

/* With the argument `bound`, runs only the case of bound ids. */
int main(int argc, char **argv)
{
	if (!sides_open())
		return 1;
	check_run("an id that is bound to any address connects",
		  an_id_bound_to_any_address_connects);
	if (argc == 2 && !strcmp(argv[1], "bound"))
		return check_end();
	check_run("both ends get the data of the other",
		  both_ends_get_the_data_of_the_other);
	check_run("a listener at in6addr_any takes IPv4 requests",
		  an_ipv6_listener_takes_ipv4_requests);
	check_run("a rejection has data", a_rejection_has_data);
	check_run("a request whose id is destroyed is rejected",
		  a_request_whose_id_is_destroyed_is_rejected);
	check_run("a request of a peer that has gone is not accepted",
		  a_request_of_a_peer_that_has_gone_is_not_accepted);
	check_run("a request is rejected if there is no queue pair",
		  a_request_is_rejected_if_there_is_no_queue_pair);
	check_run("both sides get DISCONNECTED after a disconnect",
		  both_sides_get_disconnected_after_a_disconnect);
	check_run("the peer of a destroyed id or QP gets DISCONNECTED",
		  the_peer_of_a_destroyed_id_or_qp_gets_disconnected);
	check_run("both sides get DISCONNECTED after ibv_destroy_qp",
		  both_sides_get_disconnected_after_ibv_destroy_qp);
	check_run("rdma_init_qp_attr gives the attributes of the kernel",
		  rdma_init_qp_attr_gives_the_attributes_of_the_kernel);
	check_run("a port is reserved when it is bound",
		  a_port_is_reserved_when_it_is_bound);
	check_run("a child of fork keeps no listener",
		  a_child_of_fork_keeps_no_listener);
	check_run("a message says that the id belongs to the parent",
		  a_message_says_that_the_id_belongs_to_the_parent);
	check_run("ids are destroyed at any time",
		  ids_are_destroyed_at_any_time);
	return check_end();
}
