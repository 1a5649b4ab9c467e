/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * epcheck server PORT | client GID PORT P_KEY: tests rdma_create_ep with the
 * addresses of AF_IB that rdma_getaddrinfo returns.  The client resolves GID,
 * and the server listens at the wildcard address.  The client's path has the
 * P_Key P_KEY.  The client sends a message, and the server answers the message.
 */
#include "check.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/ib.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

static char memory[2][64]; /* 0: to receive, 1: to send */

static struct rdma_addrinfo *resolve_gid(const char *node, const char *service,
					 int flags)
{
	const struct rdma_addrinfo hints = {.ai_flags = RAI_NUMERICHOST |
							RAI_FAMILY | flags,
					    .ai_family = AF_IB,
					    .ai_port_space = RDMA_PS_TCP};
	struct rdma_addrinfo *res;

	NEED(!rdma_getaddrinfo(node, service, &hints, &res));
	return res;
}

static struct rdma_cm_id *make_endpoint(struct rdma_addrinfo *res)
{
	struct ibv_qp_init_attr init = {.cap = {4, 4, 1, 1, 0},
					.sq_sig_all = 1};
	struct rdma_cm_id *id;

	NEED(!rdma_create_ep(&id, res, NULL, &init));
	rdma_freeaddrinfo(res);
	return id;
}

static struct ibv_mr *post_receive(struct rdma_cm_id *id)
{
	struct ibv_mr *mr = rdma_reg_msgs(id, memory, sizeof(memory));

	NEED(mr);
	NEED(!rdma_post_recv(id, NULL, memory[0], sizeof(memory[0]), mr));
	return mr;
}

static void send_text(struct rdma_cm_id *id, struct ibv_mr *mr,
		      const char *text)
{
	struct ibv_wc wc;

	snprintf(memory[1], sizeof(memory[1]), "%s", text);
	NEED(!rdma_post_send(id, NULL, memory[1], sizeof(memory[1]), mr, 0));
	NEED(rdma_get_send_comp(id, &wc) == 1 && !wc.status);
}

static void await_text(struct rdma_cm_id *id, const char *text)
{
	struct ibv_wc wc;

	NEED(rdma_get_recv_comp(id, &wc) == 1 && !wc.status);
	NEED(!strcmp(memory[0], text));
}

static void serve_client(const char *port)
{
	struct rdma_cm_id *listener =
		make_endpoint(resolve_gid(NULL, port, RAI_PASSIVE));
	struct rdma_cm_id *id;
	struct ibv_mr *mr;

	NEED(!rdma_listen(listener, 1));
	NEED(!rdma_get_request(listener, &id));
	NEED(id->qp && id->route.path_rec);
	NEED(rdma_get_peer_addr(id)->sa_family == AF_IB);
	mr = post_receive(id);
	NEED(!rdma_accept(id, NULL));
	await_text(id, "question");
	send_text(id, mr, "answer");
	rdma_disconnect(id);
	NEED(!rdma_dereg_mr(mr));
	rdma_destroy_ep(id);
	rdma_destroy_ep(listener);
}

static void call_server(const char *gid, const char *port, const char *pkey)
{
	struct rdma_addrinfo *res = resolve_gid(gid, port, 0);
	struct sockaddr_ib *to = (struct sockaddr_ib *)(void *)res->ai_dst_addr;
	struct rdma_cm_id *id;
	struct ibv_mr *mr;

	to->sib_pkey = htobe16((uint16_t)strtoul(pkey, NULL, 0));
	id = make_endpoint(res);
	mr = post_receive(id);
	NEED(id->qp && id->route.num_paths == 1);
	NEED(!rdma_connect(id, NULL));
	send_text(id, mr, "question");
	await_text(id, "answer");
	rdma_disconnect(id);
	NEED(!rdma_dereg_mr(mr));
	rdma_destroy_ep(id);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "server")) {
		serve_client(argv[2]);
	} else if (argc == 5 && !strcmp(argv[1], "client")) {
		call_server(argv[2], argv[3], argv[4]);
	} else {
		fprintf(stderr, "usage: epcheck server PORT\n"
				"       epcheck client GID PORT P_KEY\n");
		return 2;
	}
	puts("return status 0");
	return 0;
}
