/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * two_groups GID: attaches a UD queue pair of each of the first two devices to
 * the multicast group, prints a line, and waits until it is killed.
 */
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

static bool attach_device(struct ibv_device *device, const union ibv_gid *group)
{
	struct ibv_context *ctx = ibv_open_device(device);
	struct ibv_pd *pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	struct ibv_cq *cq = pd ? ibv_create_cq(ctx, 1, NULL, NULL, 0) : NULL;
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {1, 1, 1, 1, 0},
		.qp_type = IBV_QPT_UD,
	};
	struct ibv_qp *qp = cq ? ibv_create_qp(pd, &init) : NULL;

	return qp && !ibv_attach_mcast(qp, group, 0);
}

int main(int argc, char **argv)
{
	struct ibv_device **all;
	union ibv_gid group;
	int n = 0;

	if (argc != 2 || inet_pton(AF_INET6, argv[1], &group) != 1) {
		fprintf(stderr, "usage: two_groups GID\n");
		return 2;
	}
	all = ibv_get_device_list(&n);
	for (int i = 0; i < 2; i++)
		if (i >= n || !attach_device(all[i], &group)) {
			printf("the device with index %d, of %d devices, is "
			       "not attached\n",
			       i, n);
			return 1;
		}
	puts("attached");
	fflush(stdout);
	pause();
	return 0;
}
