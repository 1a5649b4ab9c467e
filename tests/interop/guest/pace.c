/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pace: a library to preload into programs whose two ends race with each other.
 * The library holds calls until the test has made a file, for 300 s at most.
 * $PACE is the path of that file.
 *
 * The pingpongs set an ACK timeout of 67 ms, which is often too short for the
 * emulated machine: ibv_modify_qp sets the timeout $PACE_TIMEOUT instead.
 *
 * The pingpongs destroy their QP, and ib_write_lat ends, as soon as they have
 * what they wait for.  At that moment their last ACK may be lost, or not be
 * sent yet, and then no process can send that ACK again.  So ibv_destroy_qp
 * waits for the file $PACE, and with $PACE_STAYS an exit with status 0 waits
 * for it, too.
 *
 * mckey destroys the address handle of its sends without waiting for their
 * completions.  rxe looks up the handle when it executes a send, and sends
 * nothing if the handle is destroyed.  So ibv_destroy_ah waits for the file
 * $PACE.
 *
 * The server of perftest -R listens a second time when its client may already
 * connect a second time.  So the second rdma_listen makes the file
 * $PACE.listens, and the second rdma_connect waits for the file $PACE.connect.
 * qperf's server listens after it has told its client the port: with
 * $PACE_FIRST, the first rdma_listen and the first rdma_connect do this instead
 * of the second ones.
 *
 * $PACE_HELD=MS reverses the order of these two calls, so that a request comes
 * while no program listens: the rdma_listen waits until the rdma_connect has
 * returned, and MS milliseconds more.  The library then also writes three files
 * with times of CLOCK_MONOTONIC in ns: $PACE.calls has the time when the
 * rdma_connect began, $PACE.hears when the rdma_listen returned, and
 * $PACE.leaves when rdma_destroy_id began for the id of the latest rdma_listen,
 * if the rdma_connect had not returned by then.
 *
 * rping, ucmatose and others give two seconds to rdma_resolve_addr and to
 * rdma_resolve_route, and on an emulated subnet a subnet manager or a second
 * host answers, which may get no processor for so long.  With $PACE_RESOLVE=MS
 * both calls have MS milliseconds.
 *
 * libiscsi gives a connection up if poll() returns nothing for 1000 ms, which
 * is too short for the emulated machine: with $PACE_POLL=MS such a poll() lasts
 * MS milliseconds at most.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int rdma_listen(void *id, int backlog);
int rdma_connect(void *id, void *param);
int rdma_destroy_id(void *id);
int rdma_resolve_addr(void *id, void *src, void *dst, int timeout_ms);
int rdma_resolve_route(void *id, int timeout_ms);

static const char *file_name(char path[256], const char *end)
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

	wait_for(file_name(path, ""));
	return next(qp);
}

static void stay_at_exit(int status, void *arg)
{
	char path[256];

	(void)arg;
	if (!status)
		wait_for(file_name(path, ""));
}

static void __attribute__((constructor)) register_exit(void)
{
	if (getenv("PACE_STAYS"))
		on_exit(stay_at_exit, NULL);
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	int (*next)(struct ibv_ah *) = dlsym(RTLD_NEXT, "ibv_destroy_ah");
	char path[256];

	wait_for(file_name(path, ""));
	return next(ah);
}

int poll(struct pollfd *fds, nfds_t n, int timeout)
{
	int (*next)(struct pollfd *, nfds_t, int) = dlsym(RTLD_NEXT, "poll");
	const char *longer = getenv("PACE_POLL");

	return next(fds, n, longer && timeout == 1000 ? atoi(longer) : timeout);
}

static int held_call(void)
{
	return getenv("PACE_FIRST") ? 1 : 2;
}

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Makes the file whose name is $PACE and @end, with this time in it; a reader
 * never sees a part of its contents. */
static void write_time(const char *end, long long ns)
{
	char path[256], whole[264];
	FILE *f;

	if (!file_name(path, end))
		return;
	snprintf(whole, sizeof(whole), "%s.part", path);
	f = fopen(whole, "we");
	if (!f || fprintf(f, "%lld\n", ns) < 0 || fclose(f) ||
	    rename(whole, path))
		abort();
}

/* Returns the value of $PACE_HELD, or NULL if it is not set. */
static const char *held_ms(void)
{
	return getenv("PACE_HELD");
}

static void *listening; /* the id of the latest rdma_listen */

int rdma_listen(void *id, int backlog)
{
	int (*next)(void *, int) = dlsym(RTLD_NEXT, "rdma_listen");
	static int times;
	char path[256];
	int is_it = times + 1 == held_call(), rc;

	if (is_it && held_ms()) {
		wait_for(file_name(path, ".calls"));
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
	else if (file_name(path, ".listens"))
		close(open(path, O_CREAT | O_WRONLY, 0666));
	return rc;
}

int rdma_connect(void *id, void *param)
{
	int (*next)(void *, void *) = dlsym(RTLD_NEXT, "rdma_connect");
	static int times;
	char path[256];
	long long began;
	int is_it = ++times == held_call(), rc;

	if (is_it && !held_ms())
		wait_for(file_name(path, ".connect"));
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

	if (held_ms() && id == listening && file_name(path, ".calls") &&
	    access(path, F_OK))
		write_time(".leaves", now_ns());
	return next(id);
}

static int resolve_ms(int timeout_ms)
{
	const char *longer = getenv("PACE_RESOLVE");

	return longer ? atoi(longer) : timeout_ms;
}

int rdma_resolve_addr(void *id, void *src, void *dst, int timeout_ms)
{
	int (*next)(void *, void *, void *, int) =
		dlsym(RTLD_NEXT, "rdma_resolve_addr");

	return next(id, src, dst, resolve_ms(timeout_ms));
}

int rdma_resolve_route(void *id, int timeout_ms)
{
	int (*next)(void *, int) = dlsym(RTLD_NEXT, "rdma_resolve_route");

	return next(id, resolve_ms(timeout_ms));
}
