/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * listencheck: tests the listeners of librdmacm: the connection requests that a
 * listener gets, requests that no program takes, and ids that move to another
 * event channel.  Prints a line per case, as verbcheck does.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "check.h"
#include "sides.h"

static void a_wildcard_listener_gets_requests_of_both_families(void)
{
	for (int i = 0; i < 2; i++) {
		begin_call(RDMA_PS_TCP, "::", i ? "::1" : "127.0.0.1");
		if (!id[PASSIVE]) {
			end_sides();
			return;
		}
		EXPECT(rdma_get_local_addr(id[PASSIVE])->sa_family ==
		       (i ? AF_INET6 : AF_INET));
		EXPECT(id[PASSIVE]->verbs && id[PASSIVE]->pd);
		EXPECT(!rdma_reject(id[PASSIVE], NULL, 0));
		take_event(ACTIVE, RDMA_CM_EVENT_REJECTED);
		end_sides();
	}
}

/* All addresses of 127.0.0.0/8 lead to this host, but only 127.0.0.1 is a GID
 * of a device. */
static void a_call_to_an_address_without_a_device_is_refused(void)
{
	struct rdma_cm_event *e;

	listen_at(RDMA_PS_TCP, "0.0.0.0");
	resolve_address(RDMA_PS_TCP, "127.0.0.5");
	resolve_route();
	EXPECT(!rdma_connect(id[ACTIVE], NULL));
	/* The request makes the channel readable, but rdma_get_cm_event gives
	 * the program no event for it. */
	EXPECT(is_readable(PASSIVE, WAIT_MS));
	EXPECT(!fcntl(channel[PASSIVE]->fd, F_SETFL, O_NONBLOCK));
	if (rdma_get_cm_event(channel[PASSIVE], &e)) {
		EXPECT(errno == EAGAIN);
		take_event(ACTIVE, RDMA_CM_EVENT_REJECTED);
	} else {
		check_expect(false, "the program gets the request");
		id[PASSIVE] = e->id;
		rdma_ack_cm_event(e);
	}
	EXPECT(!fcntl(channel[PASSIVE]->fd, F_SETFL, 0));
	end_sides();
}

static void a_request_is_rejected_once(void)
{
	begin_call(RDMA_PS_TCP, "127.0.0.1", "127.0.0.1");
	EXPECT(id[PASSIVE] && !rdma_reject(id[PASSIVE], NULL, 0));
	EXPECT(rdma_reject(id[PASSIVE], NULL, 0) == -1 && errno == EINVAL);
	EXPECT(rdma_accept(id[PASSIVE], NULL) == -1 && errno == EINVAL);
	EXPECT(rdma_reject(id[ACTIVE], NULL, 0) == -1 && errno == EINVAL);
	EXPECT(rdma_reject(listener, NULL, 0) == -1 && errno == EINVAL);
	take_event(ACTIVE, RDMA_CM_EVENT_REJECTED);
	EXPECT(rdma_reject(id[PASSIVE], NULL, 0) == -1 && errno == EINVAL);
	end_sides();
}

static void a_listener_without_an_address_has_a_port(void)
{
	listener = id_new(PASSIVE, RDMA_PS_TCP);
	EXPECT(!rdma_listen(listener, 0));
	EXPECT(rdma_get_src_port(listener));
	resolve_address(RDMA_PS_TCP, "127.0.0.1");
	resolve_route();
	be_called();
	end_sides();
}

static void an_id_moves_with_its_events(void)
{
	struct rdma_event_channel *other = rdma_create_event_channel(), *was;
	struct rdma_cm_event *e;

	was = channel[PASSIVE];
	begin_call(RDMA_PS_TCP, "127.0.0.1", "127.0.0.1");
	accept_it();
	EXPECT(!rdma_establish(id[ACTIVE]));
	EXPECT(is_readable(PASSIVE, WAIT_MS));
	EXPECT(!rdma_migrate_id(id[PASSIVE], other));
	EXPECT(id[PASSIVE]->channel == other && !is_readable(PASSIVE, 0));
	EXPECT(!fcntl(was->fd, F_SETFL, O_NONBLOCK));
	EXPECT(rdma_get_cm_event(was, &e) == -1 && errno == EAGAIN);
	EXPECT(!fcntl(was->fd, F_SETFL, 0));
	channel[PASSIVE] = other;
	take_event(PASSIVE, RDMA_CM_EVENT_ESTABLISHED);
	EXPECT(!rdma_destroy_id(id[PASSIVE]));
	id[PASSIVE] = NULL;
	channel[PASSIVE] = was;
	rdma_destroy_event_channel(other);
	take_event(ACTIVE, RDMA_CM_EVENT_DISCONNECTED);
	end_sides();
}

/* Waits until the channel of a side holds `want` events that no call has taken.
 * Fails the case after WAIT_MS looks, which are 1 ms or more apart. */
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

static void a_listener_moves_with_its_requests(void)
{
	struct rdma_event_channel *was = channel[PASSIVE];

	listen_at(RDMA_PS_TCP, "127.0.0.1");
	resolve_address(RDMA_PS_TCP, "127.0.0.1");
	resolve_route();
	EXPECT(!rdma_connect(id[ACTIVE], NULL));
	await_count(PASSIVE, 1);
	channel[PASSIVE] = rdma_create_event_channel();
	EXPECT(!rdma_migrate_id(listener, channel[PASSIVE]));
	await_count(PASSIVE, 1);
	end_sides();
	rdma_destroy_event_channel(channel[PASSIVE]);
	channel[PASSIVE] = was;
	EXPECT(!is_readable(PASSIVE, 0));
}

/* As in the kernel, the id of a request has the listener's context until the
 * request is accepted, so an earlier event would name the wrong object. */
static void a_request_has_no_events_before_it_is_accepted(void)
{
	struct rdma_conn_param p = conn_param();
	struct rdma_cm_id *first;

	begin_call(RDMA_PS_TCP, "127.0.0.1", "127.0.0.1");
	first = id[PASSIVE];
	EXPECT(!rdma_destroy_id(id[ACTIVE]));
	/* If the first request had an event, it would come before the event of
	 * the next request. */
	resolve_address(RDMA_PS_TCP, "127.0.0.1");
	resolve_route();
	be_called();
	EXPECT(!is_readable(PASSIVE, 0));
	EXPECT(rdma_accept(first, &p) == -1 && errno == EINVAL);
	EXPECT(rdma_reject(first, NULL, 0) == -1 && errno == EINVAL);
	EXPECT(!rdma_destroy_id(first));
	accept_it();
	end_sides();
}

static void an_event_that_was_not_taken_is_dropped_with_its_id(void)
{
	listen_at(RDMA_PS_TCP, "127.0.0.1");
	resolve_address(RDMA_PS_TCP, "127.0.0.1");
	EXPECT(rdma_disconnect(id[ACTIVE]) == -1 && errno == EINVAL);
	EXPECT(!is_readable(ACTIVE, 0));
	EXPECT(!rdma_resolve_route(id[ACTIVE], RESOLVE_MS));
	EXPECT(is_readable(ACTIVE, 0));
	end_sides();
	/* A request that the program has not taken ends with its listener, too:
	 * the caller is rejected. */
	listen_at(RDMA_PS_TCP, "127.0.0.1");
	resolve_address(RDMA_PS_TCP, "127.0.0.1");
	resolve_route();
	EXPECT(!rdma_connect(id[ACTIVE], NULL));
	EXPECT(is_readable(PASSIVE, WAIT_MS));
	EXPECT(!rdma_destroy_id(listener));
	listener = NULL;
	take_event(ACTIVE, RDMA_CM_EVENT_REJECTED);
	end_sides();
}

/* Makes a listener by rdma_create_ep.  Its requests get queue pairs of pd with
 * the attributes *init, if init is not NULL.  Returns whether the listener was
 * made. */
static bool make_endpoint(enum rdma_port_space ps, const char *address,
			  struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE,
				      .ai_port_space = (int)ps},
			     *res = NULL;

	EXPECT(!rdma_getaddrinfo(address, "0", &hints, &res));
	EXPECT(res && !rdma_create_ep(&listener, res, pd, init));
	rdma_freeaddrinfo(res);
	if (check_is_wrong())
		return false;
	EXPECT(!rdma_listen(listener, 4));
	return true;
}

/* Connects the active id to the listener at 127.0.0.1. */
static void call_the_endpoint(enum rdma_port_space ps)
{
	resolve_address(ps, "127.0.0.1");
	resolve_route();
	EXPECT(!rdma_connect(id[ACTIVE], NULL));
}

/* Makes a listener as make_endpoint does, and connects the active id to it.
 * Returns whether the listener was made. */
static bool call_an_endpoint(struct ibv_qp_init_attr *init)
{
	if (!make_endpoint(RDMA_PS_TCP, "127.0.0.1", NULL, init))
		return false;
	call_the_endpoint(RDMA_PS_TCP);
	return true;
}

/* A listener of rdma_create_ep makes the queue pairs of its requests. */
static void an_endpoint_makes_a_queue_pair_for_each_request(void)
{
	struct ibv_qp_init_attr init = {.cap = {4, 4, 1, 1, 16},
					.sq_sig_all = 1};
	struct rdma_cm_id *got = NULL;

	if (!call_an_endpoint(&init))
		return;
	EXPECT(!rdma_get_request(listener, &got));
	if (!got) {
		end_sides();
		return;
	}
	EXPECT(got->qp && got->qp->qp_type == IBV_QPT_RC);
	EXPECT(got->send_cq && got->send_cq->cq_context == got);
	EXPECT(got->recv_cq && got->recv_cq_channel);
	EXPECT(got->event &&
	       got->event->event == RDMA_CM_EVENT_CONNECT_REQUEST);
	EXPECT(!rdma_reject(got, "no", 2));
	rdma_destroy_ep(got);
	take_event(ACTIVE, RDMA_CM_EVENT_REJECTED);
	end_sides();
}

/* Returns a protection domain of the device that serves 127.0.0.1. */
static struct ibv_pd *domain_of_loopback(void)
{
	struct ibv_pd *pd;

	listen_at(RDMA_PS_TCP, "127.0.0.1");
	resolve_address(RDMA_PS_TCP, "127.0.0.1");
	pd = ibv_alloc_pd(id[ACTIVE]->verbs);
	EXPECT(pd);
	end_sides();
	return pd;
}

/* A server that listens at all addresses registers its memory before any
 * request comes, so it gives the listener the protection domain. */
static void an_endpoint_has_the_domain_that_it_was_given(void)
{
	struct ibv_qp_init_attr init = {.cap = {4, 4, 1, 1, 16}};
	struct ibv_pd *pd = domain_of_loopback();
	struct rdma_cm_id *got = NULL;

	if (!make_endpoint(RDMA_PS_TCP, "0.0.0.0", pd, &init))
		return;
	EXPECT(listener->pd == pd);
	call_the_endpoint(RDMA_PS_TCP);
	EXPECT(!rdma_get_request(listener, &got));
	if (got) {
		EXPECT(got->qp && got->qp->pd == pd);
		EXPECT(!rdma_reject(got, NULL, 0));
		rdma_destroy_ep(got);
		take_event(ACTIVE, RDMA_CM_EVENT_REJECTED);
	}
	end_sides();
	EXPECT(!ibv_dealloc_pd(pd));
}

/* rdma_accept acknowledges the event of the request.  Without that,
 * rdma_destroy_id of the listener would wait until the program has destroyed
 * the id of the request. */
static void an_accepted_datagram_request_is_acknowledged(void)
{
	struct ibv_qp_init_attr init = {.cap = {4, 4, 1, 1, 16}};
	struct rdma_cm_id *got = NULL;

	if (!make_endpoint(RDMA_PS_UDP, "127.0.0.1", NULL, &init))
		return;
	call_the_endpoint(RDMA_PS_UDP);
	EXPECT(!rdma_get_request(listener, &got));
	if (got) {
		EXPECT(got->event && !rdma_accept(got, NULL));
		EXPECT(!got->event);
		rdma_destroy_ep(listener);
		listener = NULL;
		take_event(ACTIVE, RDMA_CM_EVENT_ESTABLISHED);
		rdma_destroy_ep(got);
	}
	end_sides();
}

/* The queue pair would be larger than the device allows, so the caller is
 * rejected.  No event of the request stays unacknowledged; otherwise
 * rdma_destroy_id of the listener would wait for the acknowledgement. */
static void an_endpoint_without_queue_pairs_refuses_a_request(void)
{
	struct ibv_qp_init_attr init = {.cap = {1 << 30, 4, 1, 1, 16}};
	struct rdma_cm_id *got = NULL;

	if (!call_an_endpoint(&init))
		return;
	EXPECT(rdma_get_request(listener, &got) == -1 && errno == EINVAL &&
	       !got);
	EXPECT(!listener->event);
	take_event(ACTIVE, RDMA_CM_EVENT_REJECTED);
	end_sides();
}

/* While the process may open no descriptor, the event channel for the id of a
 * request cannot be created.  Afterwards the listener takes the next request.
 */
static void an_endpoint_without_descriptors_refuses_a_request(void)
{
	struct rdma_cm_id *got = NULL;
	struct rlimit was, few;

	if (!make_endpoint(RDMA_PS_TCP, "127.0.0.1", NULL, NULL))
		return;
	for (int is_short = 1; is_short >= 0; is_short--) {
		call_the_endpoint(RDMA_PS_TCP);
		EXPECT(!getrlimit(RLIMIT_NOFILE, &was));
		few = (struct rlimit){is_short ? 3 : was.rlim_cur,
				      was.rlim_max};
		EXPECT(!setrlimit(RLIMIT_NOFILE, &few));
		if (is_short)
			EXPECT(rdma_get_request(listener, &got) == -1 &&
			       errno == EMFILE);
		else
			EXPECT(!rdma_get_request(listener, &got));
		EXPECT(!setrlimit(RLIMIT_NOFILE, &was));
		if (got && !rdma_reject(got, NULL, 0))
			rdma_destroy_ep(got);
		take_event(ACTIVE, RDMA_CM_EVENT_REJECTED);
		EXPECT(!rdma_destroy_id(id[ACTIVE]));
		id[ACTIVE] = NULL;
	}
	end_sides();
}

static void *destroy_listener(void *unused)
{
	EXPECT(!rdma_destroy_id(listener));
	return NULL;
}

/* Starts *thread, which destroys the listener and so waits for an
 * acknowledgement.  Stores in `text` the message that is printed on stderr
 * meanwhile, or an empty text if none comes within WAIT_MS. */
static void read_complaint(pthread_t *thread, char *text, size_t size)
{
	struct pollfd p = {.events = POLLIN};
	int ends[2], before = dup(2);
	ssize_t n = 0;

	EXPECT(before >= 0 && !pipe(ends));
	EXPECT(dup2(ends[1], 2) == 2);
	EXPECT(!pthread_create(thread, NULL, destroy_listener, NULL));
	p.fd = ends[0];
	if (poll(&p, 1, WAIT_MS) == 1)
		n = read(ends[0], text, size - 1);
	text[n > 0 ? n : 0] = '\0';
	EXPECT(dup2(before, 2) == 2);
	close(before);
	close(ends[0]);
	close(ends[1]);
}

/* If a program destroys the id of a request, but does not acknowledge the
 * request's event, a message says that rdma_destroy_id of the listener waits
 * for the acknowledgement.  The message names the listener, since the memory of
 * the request's id is freed. */
static void a_wait_for_an_acknowledgement_is_told(void)
{
	char text[1000], name[40];
	struct rdma_cm_event *e;
	pthread_t thread;

	listen_at(RDMA_PS_TCP, "127.0.0.1");
	resolve_address(RDMA_PS_TCP, "127.0.0.1");
	resolve_route();
	EXPECT(!rdma_connect(id[ACTIVE], NULL));
	if (rdma_get_cm_event(channel[PASSIVE], &e)) {
		check_expect(false, "the program gets no request");
		end_sides();
		return;
	}
	EXPECT(e->event == RDMA_CM_EVENT_CONNECT_REQUEST);
	EXPECT(!rdma_destroy_id(e->id));
	take_event(ACTIVE, RDMA_CM_EVENT_REJECTED);
	snprintf(name, sizeof(name), "of the id %p, at 127.0.0.1",
		 (void *)listener);
	read_complaint(&thread, text, sizeof(text));
	EXPECT(!rdma_ack_cm_event(e));
	EXPECT(!pthread_join(thread, NULL));
	listener = NULL;
	EXPECT(strstr(text, "rdma_destroy_id has waited for 5 s"));
	EXPECT(strstr(text, "RDMA_CM_EVENT_CONNECT_REQUEST"));
	EXPECT(strstr(text, name));
	end_sides();
}

int main(void)
{
	if (!sides_open())
		return 1;
	check_run("a listener at in6addr_any gets requests of IPv4 and IPv6",
		  a_wildcard_listener_gets_requests_of_both_families);
	check_run("a call to an address without a device is refused",
		  a_call_to_an_address_without_a_device_is_refused);
	check_run("a request is rejected once", a_request_is_rejected_once);
	check_run("a listener without an address has a port",
		  a_listener_without_an_address_has_a_port);
	check_run("an id moves with its events", an_id_moves_with_its_events);
	check_run("a listener moves with its requests",
		  a_listener_moves_with_its_requests);
	check_run("a request has no events before it is accepted",
		  a_request_has_no_events_before_it_is_accepted);
	check_run("an event that was not taken is dropped with its id",
		  an_event_that_was_not_taken_is_dropped_with_its_id);
	check_run("a wait for an acknowledgement is told",
		  a_wait_for_an_acknowledgement_is_told);
	check_run("an endpoint makes a queue pair for each request",
		  an_endpoint_makes_a_queue_pair_for_each_request);
	check_run("an endpoint has the protection domain that it was given",
		  an_endpoint_has_the_domain_that_it_was_given);
	check_run("rdma_accept acknowledges a datagram request",
		  an_accepted_datagram_request_is_acknowledged);
	check_run("an endpoint that can make no queue pair refuses a request",
		  an_endpoint_without_queue_pairs_refuses_a_request);
	check_run("an endpoint that can open no descriptor refuses a request",
		  an_endpoint_without_descriptors_refuses_a_request);
	return check_end();
}
