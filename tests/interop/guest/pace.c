/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Preloaded where a program's two ends race with each other, for the test to
 * put them in order; the test names a file $PACE.  300 s at most.
 *
 * The pingpongs' timers are of 67 ms, and the emulated machine is often later:
 * ibv_modify_qp takes $PACE_TIMEOUT instead.
 *
 * Those that destroy a QP as soon as they have what they wait for, as the
 * pingpongs do, or that just end, as ib_write_lat does: their last
 * acknowledgement may be lost, or not sent yet, and nobody is left to repeat
 * it.  ibv_destroy_qp waits for $PACE, and with $PACE_STAYS a good end
 * does too.
 *
 * mckey: it destroys the address handle that its sends name, and does not wait
 * for them first; rxe looks it up when it gets to them, and sends none if it
 * is gone.  ibv_destroy_ah waits for $PACE.
 *
 * perftest -R: its server listens a second time when its client already may
 * connect a second time.  The second rdma_listen makes $PACE.listens, and the
 * second rdma_connect waits for $PACE.connect.  qperf's server listens after it
 * has said where: for it, and with $PACE_FIRST, it is the first of both.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int rdma_listen(void *id, int backlog);
int rdma_connect(void *id, void *param);

static const char *file(char path[256], const char *end)
{
	const char *name = getenv("PACE");

	snprintf(path, 256, "%s%s", name ? name : "", end);
	return name ? path : NULL;
}

static void wait_for(const char *path)
{
	int turns = 30000;

	while (path && turns-- > 0 && access(path, F_OK))
		usleep(10000);
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int (*next)(struct ibv_qp *, struct ibv_qp_attr *, int) =
		dlsym(RTLD_NEXT, "ibv_modify_qp");
	const char *timeout = getenv("PACE_TIMEOUT");

	if (timeout && mask & IBV_QP_TIMEOUT)
		attr->timeout = (uint8_t)atoi(timeout);
	return next(qp, attr, mask);
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	int (*next)(struct ibv_qp *) = dlsym(RTLD_NEXT, "ibv_destroy_qp");
	char path[256];

	wait_for(file(path, ""));
	return next(qp);
}

static void stay(int status, void *arg)
{
	char path[256];

	(void)arg;
	if (!status)
		wait_for(file(path, ""));
}

static void __attribute__((constructor)) begin(void)
{
	if (getenv("PACE_STAYS"))
		on_exit(stay, NULL);
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	int (*next)(struct ibv_ah *) = dlsym(RTLD_NEXT, "ibv_destroy_ah");
	char path[256];

	wait_for(file(path, ""));
	return next(ah);
}

static int which(void)
{
	return getenv("PACE_FIRST") ? 1 : 2;
}

int rdma_listen(void *id, int backlog)
{
	int (*next)(void *, int) = dlsym(RTLD_NEXT, "rdma_listen");
	static int times;
	char path[256];
	int rc = next(id, backlog);

	if (rc == 0 && ++times == which() && file(path, ".listens"))
		close(open(path, O_CREAT | O_WRONLY, 0666));
	return rc;
}

int rdma_connect(void *id, void *param)
{
	int (*next)(void *, void *) = dlsym(RTLD_NEXT, "rdma_connect");
	static int times;
	char path[256];

	if (++times == which())
		wait_for(file(path, ".connect"));
	return next(id, param);
}
