/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * peer_left: the server disconnects a connection at once.  The client then
 * sends a message after the event of the disconnect, and prints with which
 * status the send completes.
 *
 *	peer_left serve ADDRESS PORT    disconnects, and ends when the client
 *	                                has answered
 *	peer_left call ADDRESS PORT     prints the event and the status
 */
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "check.h"

/* TIMEOUT: the ACK timeout, 4.096 us * 2^14, which is 67 ms.  TRIES: the
 * retry_count. */
enum { TIMEOUT = 14, TRIES = 2 };

static struct ibv_qp_init_attr init = {
	.cap = {1, 1, 1, 1, 16}, .qp_type = IBV_QPT_RC, .sq_sig_all = 1};

static struct rdma_cm_id *make_endpoint(const char *host, const char *port,
					bool serves)
{
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP,
				      .ai_flags = serves ? RAI_PASSIVE : 0};
	struct rdma_addrinfo *found;
	struct rdma_cm_id *id = NULL;

	check_need(!rdma_getaddrinfo(host, port, &hints, &found) &&
			   !rdma_create_ep(&id, found, NULL, &init),
		   host);
	rdma_freeaddrinfo(found);
	return id;
}

static int serve_client(struct rdma_cm_id *listener)
{
	struct rdma_cm_id *id;

	check_need(!rdma_listen(listener, 1), "rdma_listen");
	puts("listening");
	check_need(!rdma_get_request(listener, &id) && !rdma_accept(id, NULL),
		   "rdma_accept");
	check_need(!rdma_disconnect(id), "rdma_disconnect");
	return 0;
}

static int call_server(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = {.retry_count = TRIES};
	uint8_t timeout = TIMEOUT;
	struct rdma_cm_event *e;
	struct ibv_wc wc;

	check_need(!rdma_set_option(id, RDMA_OPTION_ID,
				    RDMA_OPTION_ID_ACK_TIMEOUT, &timeout,
				    sizeof(timeout)) &&
			   !rdma_connect(id, &param),
		   "rdma_connect");
	rdma_ack_cm_event(id->event);
	id->event = NULL;
	check_need(!rdma_get_cm_event(id->channel, &e), "rdma_get_cm_event");
	printf("%s\n", rdma_event_str(e->event));
	rdma_ack_cm_event(e);
	check_need(!rdma_post_send(id, NULL, "late", 4, NULL, IBV_SEND_INLINE),
		   "rdma_post_send");
	check_need(rdma_get_send_comp(id, &wc) == 1, "rdma_get_send_comp");
	printf("status %d\n", wc.status);
	return 0;
}

int main(int argc, char **argv)
{
	bool serves = argc == 4 && !strcmp(argv[1], "serve");

	if (argc != 4) {
		fprintf(stderr, "usage: peer_left serve|call ADDRESS PORT\n");
		return 2;
	}
	setlinebuf(stdout);
	return serves ? serve_client(make_endpoint(argv[2], argv[3], true))
		      : call_server(make_endpoint(argv[2], argv[3], false));
}
