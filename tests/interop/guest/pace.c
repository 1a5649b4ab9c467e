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
 *
 * $PACE_HELD turns that round, for a request that comes while nobody listens:
 * that rdma_listen waits until that rdma_connect has returned, and so many ms
 * more.  Three files have times of CLOCK_MONOTONIC, ns: $PACE.calls when that
 * rdma_connect began, $PACE.hears when that rdma_listen returned, $PACE.leaves
 * when the rdma_destroy_id of the id that listened before it began.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int rdma_listen(void *id, int backlog);
int rdma_connect(void *id, void *param);
int rdma_destroy_id(void *id);

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

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* The file $PACE and end appears whole. */
static void write_time(const char *end, long long ns)
{
	char path[256], whole[264];
	FILE *f;

	if (!file(path, end))
		return;
	snprintf(whole, sizeof(whole), "%s.part", path);
	f = fopen(whole, "we");
	if (!f || fprintf(f, "%lld\n", ns) < 0 || fclose(f) ||
	    rename(whole, path))
		abort();
}

/* $PACE_HELD, or NULL. */
static const char *held_ms(void)
{
	return getenv("PACE_HELD");
}

static void *listening; /* the latest id that listened */

int rdma_listen(void *id, int backlog)
{
	int (*next)(void *, int) = dlsym(RTLD_NEXT, "rdma_listen");
	static int times;
	char path[256];
	int is_it = times + 1 == which(), rc;

	if (is_it && held_ms()) {
		wait_for(file(path, ".calls"));
		usleep((useconds_t)atoi(held_ms()) * 1000);
	}
	rc = next(id, backlog);
	if (rc == 0)
		times++;
	listening = id;
	if (rc || !is_it)
		return rc;
	if (held_ms())
		write_time(".hears", now_ns());
	else if (file(path, ".listens"))
		close(open(path, O_CREAT | O_WRONLY, 0666));
	return rc;
}

int rdma_connect(void *id, void *param)
{
	int (*next)(void *, void *) = dlsym(RTLD_NEXT, "rdma_connect");
	static int times;
	char path[256];
	long long began;
	int is_it = ++times == which(), rc;

	if (is_it && !held_ms())
		wait_for(file(path, ".connect"));
	began = now_ns();
	rc = next(id, param);
	if (is_it && held_ms())
		write_time(".calls", began);
	return rc;
}

int rdma_destroy_id(void *id)
{
	int (*next)(void *) = dlsym(RTLD_NEXT, "rdma_destroy_id");
	char path[256];

	if (held_ms() && id == listening && file(path, ".calls") &&
	    access(path, F_OK))
		write_time(".leaves", now_ns());
	return next(id);
}
