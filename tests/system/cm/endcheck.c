/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * endcheck: tests how connections of librdmacm end: who gets DISCONNECTED, when
 * it is withheld, and what rdma_disconnect does without a connection.  Each
 * case is between two ids of one process.  Prints a line per case that runs, as
 * verbcheck does.  One thread.
 */
#include <rdma/rdma_cma.h>
#include <string.h>

#include "check.h"
#include "sides.h"

enum { QUIET_MS = 300 }; /* much longer than a message takes */

static void both_ends_get_disconnected_and_timewait_exit(void)
{
	begin_call(RDMA_PS_TCP, "::1", "::1");
	accept_it();
	establish_active();
	EXPECT(!rdma_disconnect(id[PASSIVE]));
	take_event(ACTIVE, RDMA_CM_EVENT_DISCONNECTED);
	/* The side that began the disconnect gets the event when the other side
	 * has answered. */
	EXPECT(!is_readable(PASSIVE, QUIET_MS));
	EXPECT(!rdma_disconnect(id[ACTIVE]));
	take_event(PASSIVE, RDMA_CM_EVENT_DISCONNECTED);
	for (int side = 0; side < SIDES; side++)
		take_event(side, RDMA_CM_EVENT_TIMEWAIT_EXIT);
	end_sides();
}

/* Creates a queue pair of one side. */
static void create_queue_pair(int side)
{
	struct ibv_qp_init_attr init = {.cap = {1, 1, 0, 0, 0},
					.qp_type = IBV_QPT_RC};

	EXPECT(!rdma_create_qp(id[side], NULL, &init));
}

/* Connects both sides, sends an empty message to the passive side, and
 * disconnects.  The passive side does not poll. */
static void send_and_disconnect(void)
{
	struct ibv_send_wr send = {.opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED};
	struct ibv_recv_wr recv = {0}, *bad_recv;
	struct rdma_conn_param p = conn_param();
	struct ibv_send_wr *bad_send;
	struct ibv_wc wc;

	listen_at(RDMA_PS_TCP, "127.0.0.1");
	resolve_address(RDMA_PS_TCP, "127.0.0.1");
	create_queue_pair(ACTIVE);
	resolve_route();
	be_called();
	create_queue_pair(PASSIVE);
	EXPECT(!ibv_post_recv(id[PASSIVE]->qp, &recv, &bad_recv));
	EXPECT(!rdma_accept(id[PASSIVE], &p));
	take_event(ACTIVE, RDMA_CM_EVENT_ESTABLISHED);
	take_event(PASSIVE, RDMA_CM_EVENT_ESTABLISHED);
	EXPECT(!ibv_post_send(id[ACTIVE]->qp, &send, &bad_send));
	while (!ibv_poll_cq(id[ACTIVE]->send_cq, 1, &wc))
		;
	EXPECT(!wc.status && !rdma_disconnect(id[ACTIVE]));
}

/* Moves the ids of the connection to gone[], and connects once more. */
static void connect_again(struct rdma_cm_id *gone[SIDES])
{
	struct rdma_conn_param p = conn_param();

	memcpy(gone, id, sizeof(id));
	id[PASSIVE] = NULL;
	resolve_address(RDMA_PS_TCP, "127.0.0.1");
	resolve_route();
	EXPECT(!rdma_connect(id[ACTIVE], &p));
}

static void destroy_both(struct rdma_cm_id *gone[SIDES])
{
	for (int side = 0; side < SIDES; side++) {
		rdma_destroy_qp(gone[side]);
		EXPECT(!rdma_destroy_id(gone[side]));
	}
}

/* DISCONNECTED is withheld for a while, since a completion waits at the passive
 * side.  The request comes after that event nevertheless. */
static void a_peer_that_comes_again_has_disconnected_first(void)
{
	struct rdma_cm_id *gone[SIDES];
	struct rdma_cm_event *e;

	send_and_disconnect();
	connect_again(gone);
	take_event(PASSIVE, RDMA_CM_EVENT_DISCONNECTED);
	e = await_event(PASSIVE, RDMA_CM_EVENT_CONNECT_REQUEST);
	if (e) {
		id[PASSIVE] = e->id;
		EXPECT(!rdma_ack_cm_event(e));
	}
	destroy_both(gone);
	end_sides();
}

/* The request is withheld when the listener ends, unless this thread is late.
 */
static void a_listener_that_ends_drops_its_requests(void)
{
	struct rdma_cm_id *gone[SIDES];

	send_and_disconnect();
	connect_again(gone);
	is_readable(PASSIVE, QUIET_MS / 6);
	EXPECT(!rdma_destroy_id(listener));
	listener = NULL;
	take_event(ACTIVE, RDMA_CM_EVENT_REJECTED);
	take_event(PASSIVE, RDMA_CM_EVENT_DISCONNECTED);
	destroy_both(gone);
	end_sides();
}

/* rdma_destroy_id answers the peer's disconnect, whether or not the program has
 * taken the event DISCONNECTED. */
static void rdma_destroy_id_answers_a_disconnect(void)
{
	for (int looks = 0; looks <= 1; looks++) {
		begin_call(RDMA_PS_TCP, "127.0.0.1", "127.0.0.1");
		accept_it();
		establish_active();
		EXPECT(!rdma_disconnect(id[PASSIVE]));
		EXPECT(is_readable(ACTIVE, WAIT_MS));
		if (looks)
			take_event(ACTIVE, RDMA_CM_EVENT_DISCONNECTED);
		EXPECT(!is_readable(PASSIVE, QUIET_MS));
		EXPECT(!rdma_destroy_id(id[ACTIVE]));
		id[ACTIVE] = NULL;
		take_event(PASSIVE, RDMA_CM_EVENT_DISCONNECTED);
		end_sides();
	}
}

static void both_ends_may_disconnect_at_once(void)
{
	begin_call(RDMA_PS_TCP, "127.0.0.1", "127.0.0.1");
	accept_it();
	establish_active();
	EXPECT(!rdma_disconnect(id[PASSIVE]) && !rdma_disconnect(id[ACTIVE]));
	for (int side = 0; side < SIDES; side++)
		take_event(side, RDMA_CM_EVENT_DISCONNECTED);
	end_sides();
}

/* As in the kernel, rdma_disconnect after a connection request is no error even
 * if there is no connection, and has no effect on an id without a queue pair.
 */
static void a_disconnect_without_a_connection_has_no_effect(void)
{
	listen_at(RDMA_PS_TCP, "127.0.0.1");
	resolve_address(RDMA_PS_TCP, "127.0.0.1");
	resolve_route();
	be_called();
	EXPECT(!rdma_disconnect(id[ACTIVE]));
	EXPECT(id[PASSIVE] && !rdma_disconnect(id[PASSIVE]));
	accept_it();
	EXPECT(!rdma_disconnect(id[ACTIVE]));
	establish_active();
	end_sides();
	/* An id that resolves a UD service has no connection to end. */
	begin_call(RDMA_PS_UDP, "127.0.0.1", "127.0.0.1");
	EXPECT(!rdma_disconnect(id[ACTIVE]));
	EXPECT(id[PASSIVE] && !rdma_disconnect(id[PASSIVE]));
	EXPECT(!rdma_reject(id[PASSIVE], NULL, 0));
	take_event(ACTIVE, RDMA_CM_EVENT_UNREACHABLE);
	EXPECT(!rdma_disconnect(id[ACTIVE]));
	EXPECT(!rdma_disconnect(id[PASSIVE]));
	end_sides();
}

/* rdma_disconnect before the connection is made moves the id's queue pair to
 * ERR, so no connection can be made with that queue pair any more. */
static void an_early_disconnect_moves_the_queue_pair_to_err(void)
{
	struct ibv_qp_init_attr init = {.cap = {1, 1, 1, 1, 0},
					.qp_type = IBV_QPT_RC};
	struct rdma_conn_param p = conn_param();

	listen_at(RDMA_PS_TCP, "127.0.0.1");
	resolve_address(RDMA_PS_TCP, "127.0.0.1");
	EXPECT(!rdma_create_qp(id[ACTIVE], NULL, &init));
	resolve_route();
	be_called();
	EXPECT(!rdma_disconnect(id[ACTIVE]));
	EXPECT(id[ACTIVE]->qp && id[ACTIVE]->qp->state == IBV_QPS_ERR);
	EXPECT(id[PASSIVE] && !rdma_accept(id[PASSIVE], &p));
	take_event(ACTIVE, RDMA_CM_EVENT_CONNECT_ERROR);
	take_event(PASSIVE, RDMA_CM_EVENT_REJECTED);
	rdma_destroy_qp(id[ACTIVE]);
	end_sides();
}

int main(void)
{
	if (!sides_open())
		return 1;
	check_run("both ends get DISCONNECTED and TIMEWAIT_EXIT",
		  both_ends_get_disconnected_and_timewait_exit);
	check_run("a peer that comes again has disconnected first",
		  a_peer_that_comes_again_has_disconnected_first);
	check_run("a listener that ends drops its requests",
		  a_listener_that_ends_drops_its_requests);
	check_run("rdma_destroy_id answers the peer's disconnect",
		  rdma_destroy_id_answers_a_disconnect);
	check_run("both ends may disconnect at once",
		  both_ends_may_disconnect_at_once);
	check_run("rdma_disconnect without a connection has no effect",
		  a_disconnect_without_a_connection_has_no_effect);
	check_run(
		"rdma_disconnect before a connection moves the queue pair to ERR",
		an_early_disconnect_moves_the_queue_pair_to_err);
	return check_end();
}
