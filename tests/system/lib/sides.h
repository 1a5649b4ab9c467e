/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions that the checks of librdmacm share.  They use two ids of one
 * process: the active id connects to the passive id.  Each side has an event
 * channel of its own.  One thread calls these functions, which take no lock.
 */
#ifndef TESTS_SYSTEM_LIB_SIDES_H
#define TESTS_SYSTEM_LIB_SIDES_H

#include <arpa/inet.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum {
	ACTIVE,
	PASSIVE, /* the listener is on this side too */
	SIDES,
	/* Limit of a wait for an event: a suite lets its program run for 400 s,
	 * and before that the program has to print which event is missing. */
	WAIT_MS = 300000,
	WRONG_MS = 1000,     /* this limit in a case that has failed already */
	RESOLVE_MS = 300000, /* the timeout_ms of rdma_resolve_* */
	QPN = 0x4711,	     /* for conn_param(); no queue pair has it */
};

static struct rdma_event_channel *channel[SIDES];
static struct rdma_cm_id *listener, *id[SIDES]; /* NULL: there is none */

/* Returns the socket address of the IP address @text and this port, which is in
 * host order.  Ends the program if @text is no address of the family. */
static inline struct sockaddr_storage address_of(int family, const char *text,
						 uint16_t port)
{
	struct sockaddr_storage s = {.ss_family = (sa_family_t)family};
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)&s;
	struct sockaddr_in *four = (struct sockaddr_in *)&s;

	four->sin_port = htons(port); /* sin6_port has the same offset */
	if (inet_pton(family, text,
		      family == AF_INET ? (void *)&four->sin_addr
					: (void *)&six->sin6_addr) != 1)
		abort();
	return s;
}

/* Returns a new id at the channel of a side.  Ends the program if the call
 * fails. */
static inline struct rdma_cm_id *id_new(int side, enum rdma_port_space ps)
{
	struct rdma_cm_id *made = NULL;

	EXPECT(!rdma_create_id(channel[side], &made, NULL, ps));
	if (!made)
		abort();
	return made;
}

/* Binds the id to an address, and returns the result of rdma_bind_addr.  port:
 * in host order; 0: rdma_bind_addr chooses the port. */
static inline int bind_to(struct rdma_cm_id *i, int family, const char *text,
			  uint16_t port)
{
	struct sockaddr_storage s = address_of(family, text, port);

	return rdma_bind_addr(i, (struct sockaddr *)&s);
}

/* Sets an option of the level RDMA_OPTION_ID whose value is an int.  Returns
 * the result of rdma_set_option. */
static inline int set_option(struct rdma_cm_id *i, int name, int value)
{
	return rdma_set_option(i, RDMA_OPTION_ID, name, &value, sizeof(value));
}

/* As set_option(), for an option whose value is one byte. */
static inline int small_option(struct rdma_cm_id *i, int name, uint8_t value)
{
	return rdma_set_option(i, RDMA_OPTION_ID, name, &value, sizeof(value));
}

/* Returns whether the channel of a side has an event within wait_ms. */
static inline bool is_readable(int side, int wait_ms)
{
	struct pollfd p = {.fd = channel[side]->fd, .events = POLLIN};

	return poll(&p, 1, wait_ms) == 1;
}

/* Waits for the next event of a side, which must be of this type, and returns
 * the event; the caller acknowledges it.  If no event or another event comes,
 * the check fails and the function returns NULL. */
static inline struct rdma_cm_event *await_event(int side,
						enum rdma_cm_event_type type)
{
	struct rdma_cm_event *e;

	if (!is_readable(side, check_is_wrong() ? WRONG_MS : WAIT_MS) ||
	    rdma_get_cm_event(channel[side], &e)) {
		check_expect(false, "no %s", rdma_event_str(type));
		return NULL;
	}
	if (e->event == type)
		return e;
	check_expect(false, "%s status %d for %s", rdma_event_str(e->event),
		     e->status, rdma_event_str(type));
	rdma_ack_cm_event(e);
	return NULL;
}

/* Waits for the next event of a side, which must be of this type, and
 * acknowledges it. */
static inline void take_event(int side, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *e = await_event(side, type);

	if (e)
		EXPECT(!rdma_ack_cm_event(e));
}

/* Makes the listener at this address and a free port. */
static inline void listen_at(enum rdma_port_space ps, const char *text)
{
	listener = id_new(PASSIVE, ps);
	EXPECT(!bind_to(listener, strchr(text, ':') ? AF_INET6 : AF_INET, text,
			0));
	EXPECT(!rdma_listen(listener, 4));
}

/* Makes the active id, and resolves this address with the listener's port. */
static inline void resolve_address(enum rdma_port_space ps, const char *text)
{
	struct sockaddr_storage to =
		address_of(strchr(text, ':') ? AF_INET6 : AF_INET, text,
			   ntohs(rdma_get_src_port(listener)));

	id[ACTIVE] = id_new(ACTIVE, ps);
	EXPECT(!rdma_resolve_addr(id[ACTIVE], NULL, (struct sockaddr *)&to,
				  RESOLVE_MS));
	take_event(ACTIVE, RDMA_CM_EVENT_ADDR_RESOLVED);
}

/* Resolves the route of the active id. */
static inline void resolve_route(void)
{
	EXPECT(!rdma_resolve_route(id[ACTIVE], RESOLVE_MS));
	take_event(ACTIVE, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

/* Returns the parameters that the sides pass to rdma_connect and rdma_accept.
 */
static inline struct rdma_conn_param conn_param(void)
{
	return (struct rdma_conn_param){.responder_resources = 3,
					.initiator_depth = 2,
					.retry_count = 5,
					.rnr_retry_count = 6,
					.srq = 1,
					.qp_num = QPN};
}

/* Connects the active id with the parameters *given, or with those of
 * conn_param() if given is NULL.  Returns the CONNECT_REQUEST event, which the
 * caller acknowledges, or NULL if none came. */
static inline struct rdma_cm_event *
connect_active(const struct rdma_conn_param *given)
{
	struct rdma_conn_param p = given ? *given : conn_param();
	struct rdma_cm_event *e;

	EXPECT(!rdma_connect(id[ACTIVE], &p));
	e = await_event(PASSIVE, RDMA_CM_EVENT_CONNECT_REQUEST);
	id[PASSIVE] = e ? e->id : NULL;
	return e;
}

/* Connects the active id, and takes the request at the passive side. */
static inline void be_called(void)
{
	struct rdma_cm_event *e = connect_active(NULL);

	if (e)
		EXPECT(!rdma_ack_cm_event(e));
}

/* Listens at @listens and connects to @called, up to the CONNECT_REQUEST event
 * at the passive side. */
static inline void begin_call(enum rdma_port_space ps, const char *listens,
			      const char *called)
{
	listen_at(ps, listens);
	resolve_address(ps, called);
	resolve_route();
	be_called();
}

/* Accepts the request, and takes CONNECT_RESPONSE at the active side. */
static inline void accept_it(void)
{
	struct rdma_conn_param p = conn_param();

	EXPECT(id[PASSIVE] && !rdma_accept(id[PASSIVE], &p));
	take_event(ACTIVE, RDMA_CM_EVENT_CONNECT_RESPONSE);
}

/* Establishes the connection from the active side. */
static inline void establish_active(void)
{
	EXPECT(!rdma_establish(id[ACTIVE]));
	take_event(PASSIVE, RDMA_CM_EVENT_ESTABLISHED);
}

/* Destroys all ids, and checks that no channel has an event left. */
static inline void end_sides(void)
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

/* Makes both event channels.  Returns false if a channel cannot be made: there
 * is no device, or no broker.  If the cases are only listed, makes no channel
 * and returns true. */
static inline bool sides_open(void)
{
	if (check_lists())
		return true;
	for (int side = 0; side < SIDES; side++) {
		channel[side] = rdma_create_event_channel();
		if (!channel[side])
			return false;
	}
	return true;
}

#endif
