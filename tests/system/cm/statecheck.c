/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * statecheck [ADDRESS]: makes calls of librdmacm in each state of an id, and
 * compares each result with that of the kernel's rdma_cm, from which adverb
 * differs in two states for rdma_reject (rows).  ADDRESS: an address of a
 * device, and no loopback address; 192.0.2.7 if none is given.  Prints a line
 * per case, as verbcheck does.  One thread.
 */
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "sides.h"

/* The states of an id.  In the kernel's rdma_cm the states from REQUESTED to
 * ESTABLISHED are one state, CONNECT; the kernel's ib_cm distinguishes them. */
enum state {
	IDLE,
	BOUND,
	RESOLVED, /* ADDR_RESOLVED has come */
	ROUTED,	  /* ROUTE_RESOLVED has come */
	LISTENING,
	REQUESTED, /* a passive id that is neither accepted nor rejected */
	ACCEPTED,  /* a passive id after rdma_accept */
	CALLING,   /* an active id after rdma_connect */
	ANSWERED,  /* an active id after CONNECT_RESPONSE */
	ESTABLISHED,
	DISCONNECTED,
	STATES
};

static const char *const names[] = {
	"idle",	     "bound",	    "resolved",	    "routed",
	"listening", "requested",   "accepted",	    "calling",
	"answered",  "established", "disconnected",
};

/* A call, and the errno with which it fails in each state; 0: it succeeds. */
struct row {
	const char *name;
	int (*call)(struct rdma_cm_id *);
	int err[STATES];
};

static const char *of_device; /* ADDRESS */
static enum rdma_port_space space;
static const struct row *row; /* of the case that runs */

static int bind_it(struct rdma_cm_id *i)
{
	return bind_to(i, AF_INET, of_device, 0);
}

static int resolve_it(struct rdma_cm_id *i)
{
	struct sockaddr_storage to = address_of(AF_INET, of_device, 7907);

	return rdma_resolve_addr(i, NULL, (struct sockaddr *)&to, RESOLVE_MS);
}

static int route_it(struct rdma_cm_id *i)
{
	return rdma_resolve_route(i, RESOLVE_MS);
}

static int give_path(struct rdma_cm_id *i)
{
	struct ibv_path_data p = {.flags = IBV_PATH_FLAG_GMP |
					   IBV_PATH_FLAG_PRIMARY |
					   IBV_PATH_FLAG_BIDIRECTIONAL};

	return rdma_set_option(i, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &p,
			       sizeof(p));
}

static int connect_it(struct rdma_cm_id *i)
{
	struct rdma_conn_param p = conn_param();

	return rdma_connect(i, &p);
}

static int listen_it(struct rdma_cm_id *i)
{
	return rdma_listen(i, 4);
}

static int accept_call(struct rdma_cm_id *i)
{
	struct rdma_conn_param p = conn_param();

	return rdma_accept(i, &p);
}

static int reject_it(struct rdma_cm_id *i)
{
	return rdma_reject(i, NULL, 0);
}

static int notify_it(struct rdma_cm_id *i)
{
	return rdma_notify(i, IBV_EVENT_COMM_EST);
}

static int join_it(struct rdma_cm_id *i)
{
	struct sockaddr_storage group = address_of(AF_INET, "239.1.2.3", 0);

	return rdma_join_multicast(i, (struct sockaddr *)&group, NULL);
}

static int share_port(struct rdma_cm_id *i)
{
	return set_option(i, RDMA_OPTION_ID_REUSEADDR, 1);
}

static int share_no_port(struct rdma_cm_id *i)
{
	return set_option(i, RDMA_OPTION_ID_REUSEADDR, 0);
}

static int use_one_family(struct rdma_cm_id *i)
{
	return set_option(i, RDMA_OPTION_ID_AFONLY, 1);
}

static int set_timeout(struct rdma_cm_id *i)
{
	return small_option(i, RDMA_OPTION_ID_ACK_TIMEOUT, 17);
}

#define E EINVAL
static const struct row rows[] = {
	/* The columns: idle, bound, resolved, routed; listening; requested,
	 * accepted; calling, answered; established, disconnected.  adverb
	 * differs from the kernel in one row: rdma_reject fails after
	 * rdma_accept and after rdma_connect, while the kernel's rdma_reject
	 * sends a REJ.  The listener is bound to ADDRESS, and so has a device.
	 */
	{"rdma_bind_addr", bind_it, {0, E, E, E, E, E, E, E, E, E, E}},
	{"rdma_resolve_addr", resolve_it, {0, 0, E, E, E, E, E, E, E, E, E}},
	{"rdma_resolve_route", route_it, {E, E, 0, E, E, E, E, E, E, E, E}},
	{"RDMA_OPTION_IB_PATH", give_path, {E, E, 0, E, E, E, E, E, E, E, E}},
	{"rdma_connect", connect_it, {E, E, E, 0, E, E, E, E, E, E, E}},
	{"rdma_listen", listen_it, {0, 0, E, E, E, E, E, E, E, E, E}},
	{"rdma_accept", accept_call, {E, E, E, E, E, 0, E, E, E, E, E}},
	{"rdma_reject", reject_it, {E, E, E, E, E, 0, E, E, 0, E, E}},
	{"rdma_disconnect", rdma_disconnect, {E, E, E, E, 0, 0, 0, 0, 0, 0, 0}},
	{"rdma_establish", rdma_establish, {E, E, E, E, E, E, E, E, 0, E, E}},
	{"rdma_notify", notify_it, {E, E, E, E, E, E, 0, E, E, EISCONN, E}},
	{"rdma_join_multicast", join_it, {E, E, E, E, E, E, E, E, E, E, E}},
	{"REUSEADDR of 1", share_port, {0, 0, 0, 0, E, 0, 0, 0, 0, 0, 0}},
	{"REUSEADDR of 0", share_no_port, {0, E, E, E, E, E, E, E, E, E, E}},
	{"AFONLY", use_one_family, {0, 0, E, E, E, E, E, E, E, E, E}},
	{"ACK_TIMEOUT", set_timeout, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
};

/* Only ids of RDMA_PS_UDP may join a multicast group, and only ids of
 * RDMA_PS_TCP have a timeout of ACKs.  The rows end at the state LISTENING. */
static const struct row datagram_rows[] = {
	{"rdma_join_multicast", join_it, {E, 0, 0, E, E}},
	{"ACK_TIMEOUT", set_timeout, {E, E, E, E, E}},
};
#undef E

/* Makes an id, and a listener or a peer if the state needs one, and brings the
 * id into the state.  Returns the id, which end_sides destroys. */
static struct rdma_cm_id *enter_state(enum state s)
{
	if (s <= BOUND) {
		id[ACTIVE] = id_new(ACTIVE, space);
		if (s == BOUND)
			EXPECT(!bind_it(id[ACTIVE]));
		return id[ACTIVE];
	}
	listen_at(space, of_device);
	if (s == LISTENING)
		return listener;
	resolve_address(space, of_device);
	if (s >= ROUTED)
		resolve_route();
	if (s >= REQUESTED)
		be_called();
	if (s >= REQUESTED && s != REQUESTED && s != CALLING)
		accept_it();
	if (s >= ESTABLISHED)
		establish_active();
	if (s == DISCONNECTED) {
		EXPECT(!rdma_disconnect(id[ACTIVE]));
		take_event(PASSIVE, RDMA_CM_EVENT_DISCONNECTED);
		EXPECT(!rdma_disconnect(id[PASSIVE]));
		take_event(ACTIVE, RDMA_CM_EVENT_DISCONNECTED);
	}
	return id[s == REQUESTED || s == ACCEPTED ? PASSIVE : ACTIVE];
}

static void compare_result(const struct row *r, enum state s)
{
	struct rdma_cm_id *i = enter_state(s);
	int err = i && r->call(i) ? errno : 0;

	check_expect(i && err == r->err[s],
		     "%s of an id that is %s: %s, not %s", r->name, names[s],
		     strerror(err), strerror(r->err[s]));
	end_sides();
}

static void the_row_is_that_of_the_kernel(void)
{
	space = RDMA_PS_TCP;
	for (enum state s = IDLE; s < STATES; s++)
		compare_result(row, s);
}

static void datagram_ids_join_groups_before_their_route_is_known(void)
{
	space = RDMA_PS_UDP;
	for (enum state s = IDLE; s <= LISTENING; s++)
		compare_result(&datagram_rows[0], s);
}

static void datagram_ids_have_no_ack_timeout(void)
{
	space = RDMA_PS_UDP;
	for (enum state s = IDLE; s <= LISTENING; s++)
		compare_result(&datagram_rows[1], s);
}

int main(int argc, char **argv)
{
	of_device = argc > 1 ? argv[1] : "192.0.2.7";
	if (!sides_open())
		return 1;
	for (row = rows; row < rows + sizeof(rows) / sizeof(rows[0]); row++) {
		char name[80];

		snprintf(name, sizeof(name), "%s in each state of an id",
			 row->name);
		check_run(name, the_row_is_that_of_the_kernel);
	}
	check_run("datagram ids join groups before their route is known",
		  datagram_ids_join_groups_before_their_route_is_known);
	check_run("datagram ids have no ACK timeout",
		  datagram_ids_have_no_ack_timeout);
	return check_end();
}
