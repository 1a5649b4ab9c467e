/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cmestablish: the main thread confirms connections by rdma_establish.  A
 * second thread takes the events: when the peer disconnects, which may be
 * before rdma_establish returns, the second thread disconnects too, and
 * destroys the id.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <semaphore.h>
#include <stdlib.h>

#include "../check.h"

enum { ROUNDS = 50, RESOLVE_MS = 60000 };

static struct rdma_event_channel *active, *passive;
static struct rdma_cm_id *listener;
static sem_t responded, ended;

/* Takes and acknowledges the next event, which must be of this type.  Returns
 * its id. */
static struct rdma_cm_id *take_event(struct rdma_event_channel *channel,
				     enum rdma_cm_event_type type)
{
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;

	check_need(!rdma_get_cm_event(channel, &e), "rdma_get_cm_event");
	check_need(e->event == type, rdma_event_str(type));
	id = e->id;
	rdma_ack_cm_event(e);
	return id;
}

/* Takes the events of the ids that connect, and destroys these ids. */
static void *end_ids(void *unused)
{
	(void)unused;
	for (int i = 0; i < ROUNDS; i++) {
		struct rdma_cm_id *id;

		take_event(active, RDMA_CM_EVENT_CONNECT_RESPONSE);
		sem_post(&responded);
		id = take_event(active, RDMA_CM_EVENT_DISCONNECTED);
		rdma_disconnect(id);
		check_need(!rdma_destroy_id(id), "rdma_destroy_id");
		sem_post(&ended);
	}
	return NULL;
}

/* Accepts each connection, and disconnects as soon as it is established. */
static void *serve_ids(void *unused)
{
	struct rdma_conn_param p = {.retry_count = 7, .qp_num = 0x4711};

	(void)unused;
	for (int i = 0; i < ROUNDS; i++) {
		struct rdma_cm_id *id =
			take_event(passive, RDMA_CM_EVENT_CONNECT_REQUEST);

		check_need(!rdma_accept(id, &p), "rdma_accept");
		take_event(passive, RDMA_CM_EVENT_ESTABLISHED);
		check_need(!rdma_disconnect(id), "rdma_disconnect");
		take_event(passive, RDMA_CM_EVENT_DISCONNECTED);
		check_need(!rdma_destroy_id(id), "rdma_destroy_id");
	}
	return NULL;
}

static void listen_here(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	active = rdma_create_event_channel();
	passive = rdma_create_event_channel();
	check_need(active && passive, "rdma_create_event_channel");
	check_need(!rdma_create_id(passive, &listener, NULL, RDMA_PS_TCP) &&
			   !rdma_bind_addr(listener, (struct sockaddr *)&at) &&
			   !rdma_listen(listener, 8),
		   "rdma_listen");
}

static void establish_one(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = rdma_get_src_port(listener),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rdma_conn_param p = {.retry_count = 7, .qp_num = 0x4712};
	struct rdma_event_channel *own = rdma_create_event_channel();
	struct rdma_cm_id *id = NULL;

	check_need(own && !rdma_create_id(own, &id, NULL, RDMA_PS_TCP),
		   "rdma_create_id");
	check_need(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&to,
				      RESOLVE_MS),
		   "rdma_resolve_addr");
	take_event(own, RDMA_CM_EVENT_ADDR_RESOLVED);
	check_need(!rdma_resolve_route(id, RESOLVE_MS), "rdma_resolve_route");
	take_event(own, RDMA_CM_EVENT_ROUTE_RESOLVED);
	check_need(!rdma_migrate_id(id, active), "rdma_migrate_id");
	rdma_destroy_event_channel(own);
	check_need(!rdma_connect(id, &p), "rdma_connect");
	sem_wait(&responded);
	check_need(!rdma_establish(id), "rdma_establish");
	sem_wait(&ended);
}

static void an_id_may_be_destroyed_before_rdma_establish_returns(void)
{
	pthread_t server, ender;

	listen_here();
	sem_init(&responded, 0, 0);
	sem_init(&ended, 0, 0);
	check_need(!pthread_create(&server, NULL, serve_ids, NULL) &&
			   !pthread_create(&ender, NULL, end_ids, NULL),
		   "two threads");
	for (int i = 0; i < ROUNDS; i++)
		establish_one();
	pthread_join(server, NULL);
	pthread_join(ender, NULL);
	check_need(!rdma_destroy_id(listener), "rdma_destroy_id");
	rdma_destroy_event_channel(active);
	rdma_destroy_event_channel(passive);
}

int main(void)
{
	check_run("an id may be destroyed before rdma_establish returns",
		  an_id_may_be_destroyed_before_rdma_establish_returns);
	return check_end();
}
