/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * forked: a program forks while threads open and close the device, post, bind
 * ids or allocate device memory, and the child opens the device anew and uses
 * both libraries.  A lock that the parent's thread held at the fork, or an
 * object that was half made, must not stop the child, which has no such thread.
 * In one other case the child only closes the device, while objects of the
 * parent point to the context.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../check.h"
#include "../system/lib/endpoint.h"

#define FORKS	   30
#define WRITES	   1000
#define POSTERS	   3
#define PATIENCE_S 400 /* a child that takes longer has hung */

static atomic_bool is_over;

static void write_once(struct endpoint e[2])
{
	struct ibv_sge sge = {(uintptr_t)e[0].region, 8, e[0].mr->lkey};
	struct ibv_send_wr send = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {(uintptr_t)e[1].region, e[1].mr->rkey}};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	check_need(!ibv_post_send(e[0].qp, &send, &bad), "ibv_post_send");
	check_need(endpoint_wait(&e[0], &wc) && wc.status == IBV_WC_SUCCESS,
		   "a completion");
}

static void use_verbs(void)
{
	struct endpoint e[2];

	endpoint_open_pair(e);
	write_once(e);
	endpoint_close_pair(e);
}

/* Posts most of the time.  Each WRITE must move its own bytes although a fork
 * makes the memory copy-on-write meanwhile. */
static void post_many(void)
{
	struct endpoint e[2];

	endpoint_open_pair(e);
	for (uint32_t i = 1; i <= WRITES; i++) {
		memcpy(e[0].region, &i, sizeof(i));
		write_once(e);
		check_need(!memcmp(e[1].region, &i, sizeof(i)),
			   "the bytes of the WRITE");
	}
	endpoint_close_pair(e);
}

static void use_cm(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id;

	check_need(channel, "rdma_create_event_channel");
	check_need(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP),
		   "rdma_create_id");
	check_need(!rdma_bind_addr(id, (struct sockaddr *)&to),
		   "rdma_bind_addr");
	check_need(!rdma_destroy_id(id), "rdma_destroy_id");
	rdma_destroy_event_channel(channel);
}

static struct ibv_context *open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *c;

	check_need(list && list[0], "a device");
	c = ibv_open_device(list[0]);
	check_need(c, "ibv_open_device");
	ibv_free_device_list(list);
	return c;
}

static void take_memory(struct ibv_context *c)
{
	struct ibv_alloc_dm_attr attr = {.length = 64};
	struct ibv_dm *dm = ibv_alloc_dm(c, &attr);

	check_need(dm, "ibv_alloc_dm");
	check_need(!ibv_free_dm(dm), "ibv_free_dm");
}

/* Allocates and frees device memory again and again.  ibv_free_dm unmaps the
 * memory under the lock of device memory, so a fork may find the lock held. */
static void use_memory(void)
{
	struct ibv_context *c = open_device();

	for (int i = 0; i < 1000; i++)
		take_memory(c);
	check_need(!ibv_close_device(c), "ibv_close_device");
}

static void *use_repeatedly(void *arg)
{
	void (*const *use)(void) = arg;

	while (!atomic_load(&is_over))
		(*use)();
	return NULL;
}

/* Forks, and waits for the child, which uses both libraries. */
static void fork_once(const char *what)
{
	int status;
	pid_t child;

	fflush(stdout); /* else a child that fails prints the buffer, too */
	child = fork();
	check_need(child >= 0, "fork");
	if (!child) {
		alarm(PATIENCE_S);
		use_verbs();
		use_cm();
		use_memory();
		_exit(0); /* the parent's objects are not freed */
	}
	check_need(waitpid(child, &status, 0) == child, "waitpid");
	check_need(!status, what);
}

/* Forks while `count` threads run `use`. */
static void fork_during(void (*use)(void), int count, const char *what)
{
	pthread_t threads[POSTERS];

	atomic_store(&is_over, false);
	for (int i = 0; i < count; i++)
		check_need(!pthread_create(&threads[i], NULL, use_repeatedly,
					   (void *)&use),
			   "a thread");
	for (int i = 0; i < FORKS; i++)
		fork_once(what);
	atomic_store(&is_over, true);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

static pthread_t opener;
static bool opens_in_forks;
static char tree_lock[128]; /* the path of the lock of the sysfs tree */

/* Returns how many descriptors of this process refer to the lock of the tree.
 */
static int open_locks(void)
{
	DIR *dir = opendir("/proc/self/fd");
	char target[sizeof(tree_lock)];
	struct dirent *e;
	int count = 0;

	check_need(dir, "opendir of /proc/self/fd");
	while ((e = readdir(dir))) {
		ssize_t n = readlinkat(dirfd(dir), e->d_name, target,
				       sizeof(target) - 1);

		target[n < 0 ? 0 : n] = 0;
		count += !strcmp(target, tree_lock);
	}
	closedir(dir);
	return count;
}

/* Runs at the beginning of a fork, before the handlers of the libraries.
 * Returns when a thread has opened the file whose lock the main thread holds:
 * the thread waits for this lock, at most for a second, in the middle of an
 * initialisation that a process does once. */
static void open_in_fork(void)
{
	static void (*const use)(void) = use_verbs;

	if (!opens_in_forks)
		return;
	check_need(!pthread_create(&opener, NULL, use_repeatedly, (void *)&use),
		   "a thread");
	alarm(2 * PATIENCE_S); /* ends a process whose device has no tree */
	while (open_locks() < 2)
		sched_yield();
	alarm(0);
}

/* Makes a folder for the tree and locks the tree.  Returns the descriptor whose
 * close releases the lock.  with_broker.sh removes the folder. */
static int lock_tree(void)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	char tree[sizeof(tree_lock) - 8];
	int fd;

	check_need(runtime && snprintf(tree, sizeof(tree), "%s/forked.XXXXXX",
				       runtime) < (int)sizeof(tree),
		   "XDG_RUNTIME_DIR");
	check_need(mkdtemp(tree), "mkdtemp");
	check_need(!setenv("ADVERB_SYSFS", tree, 1), "setenv");
	snprintf(tree_lock, sizeof(tree_lock), "%s/.lock", tree);
	fd = open(tree_lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	check_need(fd >= 0 && !flock(fd, LOCK_EX), "the lock of the tree");
	return fd;
}

/* This case must be the first, because a process writes its tree once. */
static void a_child_works_while_the_parent_first_opens_the_device(void)
{
	int fd = lock_tree();

	check_need(!pthread_atfork(open_in_fork, NULL, NULL), "atfork");
	opens_in_forks = true;
	fork_once("a child while the parent first opens the device");
	opens_in_forks = false;
	close(fd);
	atomic_store(&is_over, true);
	pthread_join(opener, NULL);
}

static void a_child_works_while_the_parent_opens_and_closes_the_device(void)
{
	fork_during(use_verbs, 1, "a child while the parent opens the device");
}

static void a_child_works_while_the_parent_binds_ids(void)
{
	fork_during(use_cm, 1, "a child while the parent binds ids");
}

static void a_child_works_while_the_parent_takes_device_memory(void)
{
	fork_during(use_memory, 1,
		    "a child while the parent takes device memory");
}

static void a_child_works_while_the_parents_threads_post(void)
{
	fork_during(post_many, POSTERS,
		    "a child while the parent's threads post");
}

/* Closes the device in the child.  The context must stay, since the objects
 * point to it. */
static void close_early(struct endpoint *e)
{
	int fd = e->ctx->cmd_fd;

	check_need(!ibv_close_device(e->ctx), "ibv_close_device");
	check_need(fcntl(fd, F_GETFD) >= 0, "the context's descriptor");
	check_need(ibv_destroy_qp(e->qp) == EPERM, "ibv_destroy_qp");
	check_need(ibv_dereg_mr(e->mr) == EPERM, "ibv_dereg_mr");
	check_need(ibv_destroy_cq(e->cq) == EPERM, "ibv_destroy_cq");
}

static void a_child_closes_the_device_before_its_parents_objects(void)
{
	struct endpoint e[2];
	int status;
	pid_t child;

	endpoint_open_pair(e);
	fflush(stdout);
	child = fork();
	check_need(child >= 0, "fork");
	if (!child) {
		alarm(PATIENCE_S);
		close_early(&e[0]);
		_exit(0);
	}
	check_need(waitpid(child, &status, 0) == child, "waitpid");
	write_once(e);
	endpoint_close_pair(e);
	check_need(!status, "a child that closes the device first");
}

int main(void)
{
	check_run("a child works while the parent first opens the device",
		  a_child_works_while_the_parent_first_opens_the_device);
	check_run("a child works while the parent opens and closes the device",
		  a_child_works_while_the_parent_opens_and_closes_the_device);
	check_run("a child closes the device before its parent's objects",
		  a_child_closes_the_device_before_its_parents_objects);
	check_run("a child works while the parent binds ids",
		  a_child_works_while_the_parent_binds_ids);
	check_run("a child works while the parent takes device memory",
		  a_child_works_while_the_parent_takes_device_memory);
	check_run(
		"a child works, and the parent's threads post on, after a fork",
		a_child_works_while_the_parents_threads_post);
	return check_end();
}
