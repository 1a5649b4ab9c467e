/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * talker: makes connections without queue pairs, so that connection management
 * alone can notice a peer's end.  Prints a line per event, except in the modes
 * "ignore" and "private-data".
 *
 *	talker serve ADDRESS PORT           accepts all requests
 *	talker refuse ADDRESS PORT          rejects all requests
 *	talker bind ADDRESS PORT            binds the port, and listens after
 *	                                    SIGUSR1
 *	talker ignore ADDRESS PORT BACKLOG  listens, and takes no event
 *	talker call ADDRESS PORT COUNT      makes COUNT connections at once
 *	talker call-two ADDRESS PORT COUNT  as call, and one connection to the
 *	                                    next port
 *	talker loop ADDRESS PORT COUNT      makes COUNT connections, one after
 *	                                    the other
 *	talker private-data ADDRESS PORT    connects to itself, with the longest
 *	                                    private data, after it has checked
 *	                                    that longer data is refused
 *
 * All modes but the last two run until the process is killed.  A line has the
 * event, how many events of this type there have been, and the status.  On
 * SIGUSR1 a talker asks the broker for a port, and prints a line when the
 * broker has answered: by then the broker has taken all messages that came
 * before the question.  In the mode "bind" the first SIGUSR1 instead makes the
 * talker listen, and in the mode "call-two" each SIGUSR1 disconnects the
 * connection to the next port.
 */
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { EVENTS = RDMA_CM_EVENT_TIMEWAIT_EXIT + 1, RESOLVE_MS = 60000 };

static struct rdma_event_channel *channel;
static unsigned seen[EVENTS]; /* how many events of each type have come */
/* second_id: the connection to the next port, in the mode "call-two".
 * bound_id: the bound id until the talker listens, in the mode "bind". */
static struct rdma_cm_id *second_id, *bound_id;
/* qpn: the next QPN.  ports: how many ports the broker has given. */
static uint32_t qpn, ports;

static struct sockaddr_storage address_of(const char *host, const char *port)
{
	struct addrinfo *found, hints = {.ai_flags = AI_NUMERICHOST};
	struct sockaddr_storage a = {0};

	check_need(!getaddrinfo(host, port, &hints, &found), host);
	memcpy(&a, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	return a;
}

static struct rdma_conn_param conn_param(void)
{
	return (struct rdma_conn_param){.responder_resources = 1,
					.initiator_depth = 1,
					.retry_count = 7,
					.rnr_retry_count = 7,
					.qp_num = qpn++ & 0xffffff};
}

static struct rdma_cm_id *begin_connect(struct sockaddr_storage *to)
{
	struct rdma_cm_id *id;

	check_need(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) &&
			   !rdma_resolve_addr(id, NULL, (struct sockaddr *)to,
					      RESOLVE_MS),
		   "rdma_resolve_addr");
	return id;
}

static struct rdma_cm_id *bind_to(struct sockaddr_storage *at)
{
	struct rdma_cm_id *id;

	check_need(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) &&
			   !rdma_bind_addr(id, (struct sockaddr *)at),
		   "rdma_bind_addr");
	return id;
}

static void listen_with(struct rdma_cm_id *id, int backlog)
{
	check_need(!rdma_listen(id, backlog), "rdma_listen");
	puts("listening");
}

static void listen_at(struct sockaddr_storage *at, int backlog)
{
	listen_with(bind_to(at), backlog);
}

static void listen_late(void)
{
	puts("asks to listen");
	listen_with(bound_id, 1024);
	bound_id = NULL;
}

/* Does this event say that a connection was not made? */
static bool has_failed(enum rdma_cm_event_type event)
{
	return event == RDMA_CM_EVENT_REJECTED ||
	       event == RDMA_CM_EVENT_UNREACHABLE ||
	       event == RDMA_CM_EVENT_CONNECT_ERROR ||
	       event == RDMA_CM_EVENT_ADDR_ERROR ||
	       event == RDMA_CM_EVENT_ROUTE_ERROR;
}

/* Takes the next step of a connection after this event.  @refuses: requests are
 * rejected, not accepted.  Returns whether the connection is over. */
static bool answer_event(struct rdma_cm_id *id, enum rdma_cm_event_type event,
			 bool refuses)
{
	struct rdma_conn_param p = conn_param();
	int err = 0;

	if (event == RDMA_CM_EVENT_ADDR_RESOLVED)
		err = rdma_resolve_route(id, RESOLVE_MS);
	else if (event == RDMA_CM_EVENT_ROUTE_RESOLVED)
		err = rdma_connect(id, &p);
	else if (event == RDMA_CM_EVENT_CONNECT_RESPONSE)
		err = rdma_establish(id);
	else if (event == RDMA_CM_EVENT_CONNECT_REQUEST && refuses)
		err = rdma_reject(id, "no", 2);
	else if (event == RDMA_CM_EVENT_CONNECT_REQUEST)
		rdma_accept(id, &p); /* fails if the caller has gone */
	else if (event == RDMA_CM_EVENT_DISCONNECTED)
		rdma_disconnect(id);
	check_need(!err, rdma_event_str(event));
	return has_failed(event) || event == RDMA_CM_EVENT_DISCONNECTED ||
	       (event == RDMA_CM_EVENT_CONNECT_REQUEST && refuses);
}

/* Binds an id to a port that the broker chooses, and so waits for the broker's
 * answer. */
static void ask_for_port(void)
{
	struct sockaddr_in any = {.sin_family = AF_INET};
	struct rdma_cm_id *id;

	check_need(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) &&
			   !rdma_bind_addr(id, (struct sockaddr *)&any) &&
			   !rdma_destroy_id(id),
		   "rdma_bind_addr");
	printf("has a port %u\n", ++ports);
}

static void *await_signals(void *usr1)
{
	int number;

	while (!sigwait(usr1, &number))
		if (bound_id)
			listen_late();
		else if (!second_id)
			ask_for_port();
		else
			check_need(!rdma_disconnect(second_id),
				   "rdma_disconnect");
	return NULL;
}

/* Takes, prints and answers one event.  If the connection is then over,
 * destroys the event's id, unless the id is second_id.  Returns the event's
 * type, and sets *whose to the event's id, which may be destroyed. */
static enum rdma_cm_event_type take_event(bool refuses,
					  struct rdma_cm_id **whose)
{
	enum rdma_cm_event_type event;
	struct rdma_cm_event *e;
	bool is_over;

	check_need(!rdma_get_cm_event(channel, &e), "rdma_get_cm_event");
	event = e->event;
	*whose = e->id;
	printf("%s %u status %d\n", rdma_event_str(event), ++seen[event],
	       e->status);
	rdma_ack_cm_event(e);
	is_over = answer_event(*whose, event, refuses);
	if (is_over && *whose != second_id)
		check_need(!rdma_destroy_id(*whose), "rdma_destroy_id");
	return event;
}

static void loop_connections(struct sockaddr_storage *to, int count)
{
	enum rdma_cm_event_type event;
	struct rdma_cm_id *id;

	for (int i = 0; i < count; i++) {
		begin_connect(to);
		do {
			event = take_event(false, &id);
			if (has_failed(event))
				exit(1);
		} while (event != RDMA_CM_EVENT_CONNECT_RESPONSE);
		check_need(!rdma_disconnect(id), "rdma_disconnect");
		while (take_event(false, &id) != RDMA_CM_EVENT_DISCONNECTED)
			;
	}
}

/* Exits with status 1 unless a call with too long private data has failed with
 * EINVAL.  @what: the call's name; @result: the call's result. */
static void expect_too_long(const char *what, int result)
{
	if (result != -1 || errno != EINVAL) {
		printf("%s: %d, %s\n", what, result, strerror(errno));
		exit(1);
	}
}

static void check_private_data(struct rdma_cm_event *e)
{
	static const uint8_t data[255] = {1, 2, 3};
	struct rdma_conn_param p = conn_param();
	struct rdma_cm_id *id = e->id;
	uint8_t came = e->param.conn.private_data_len;

	p.private_data = data;
	switch ((int)e->event) {
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		p.private_data_len = 57;
		expect_too_long("rdma_connect", rdma_connect(id, &p));
		p.private_data_len = 56;
		check_need(!rdma_connect(id, &p), "rdma_connect");
		break;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		p.private_data_len = 197;
		expect_too_long("rdma_reject", rdma_reject(id, data, 149));
		expect_too_long("rdma_accept", rdma_accept(id, &p));
		p.private_data_len = 196;
		check_need(
			came == 56 &&
				!memcmp(e->param.conn.private_data, data, 56) &&
				!rdma_accept(id, &p),
			"rdma_accept");
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		check_need(came == 196 && !memcmp(e->param.conn.private_data,
						  data, 196),
			   "the private data of the reply");
		puts("all private data arrived");
		exit(0);
	default:
		answer_event(id, e->event, false);
	}
}

static void exchange_private_data(struct sockaddr_storage *at)
{
	struct rdma_cm_event *e;

	listen_at(at, 1);
	begin_connect(at);
	while (!rdma_get_cm_event(channel, &e))
		check_private_data(e);
	check_need(false, "rdma_get_cm_event");
}

int main(int argc, char **argv)
{
	const char *what = argc > 3 ? argv[1] : "";
	int count = argc > 4 ? atoi(argv[4]) : 1;
	sigset_t usr1;
	pthread_t thread;
	struct sockaddr_storage a;
	struct rdma_cm_id *id;

	if (argc < 4) {
		fprintf(stderr, "usage: talker MODE ADDRESS PORT [COUNT]\n");
		return 2;
	}
	setlinebuf(stdout);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &usr1, NULL);
	check_need(!pthread_create(&thread, NULL, await_signals, &usr1),
		   "pthread_create");
	a = address_of(argv[2], argv[3]);
	qpn = (uint32_t)getpid() << 10;
	channel = rdma_create_event_channel();
	check_need(channel, "rdma_create_event_channel");
	if (!strcmp(what, "private-data"))
		exchange_private_data(&a);
	if (!strcmp(what, "loop")) {
		loop_connections(&a, count);
		return 0;
	}
	if (!strcmp(what, "bind")) {
		bound_id = bind_to(&a);
		puts("bound");
	} else if (strcmp(what, "call") != 0 && strcmp(what, "call-two") != 0)
		listen_at(&a, !strcmp(what, "ignore") ? count : 1024);
	else
		for (int i = 0; i < count; i++)
			begin_connect(&a);
	if (!strcmp(what, "call-two")) {
		((struct sockaddr_in *)&a)->sin_port =
			htons((uint16_t)(atoi(argv[3]) + 1));
		second_id = begin_connect(&a);
	}
	while (!strcmp(what, "ignore"))
		pause();
	for (;;)
		take_event(!strcmp(what, "refuse"), &id);
}
