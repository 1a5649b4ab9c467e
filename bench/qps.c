/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * qps [COUNT]: connects COUNT queue pairs of one process two by two.  Measures
 * their memory, the time to make and connect them, the cost of an operation on
 * one queue pair and on all in turns, the cost of the first operation on each
 * queue pair (us_first, if COUNT is 10000 or more), and how often the idle
 * process wakes up.
 * qps is linked with the system's libibverbs; `adverb run` loads adverb's.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "queue.h"
#include "raw.h"

#define DEPTH	     16
#define OPERATIONS   10000
#define TURNS	     7
#define IDLE_SECONDS 5 /* how long the threads may take to become idle */

static struct queue_device device;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static char memory[4096];

static void open_device(void)
{
	device = queue_open();
	pd = ibv_alloc_pd(device.context);
	cq = ibv_create_cq(device.context, 2 * DEPTH, NULL, NULL, 0);
	queue_check(pd && cq, "ibv_create_cq");
	mr = ibv_reg_mr(pd, memory, sizeof(memory), QUEUE_RIGHTS);
	queue_check(mr, "ibv_reg_mr");
}

/* Returns the processor time of all threads of this process. */
static int64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Posts WRITEs of 8 bytes to `count` QPs in turns.  Returns the microseconds of
 * processor time that one WRITE takes. */
static double measure_write(struct ibv_qp **qps, int count)
{
	struct ibv_sge sge = {(uintptr_t)memory, 8, mr->lkey};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {(uintptr_t)memory + 2048, mr->rkey},
	};
	int64_t began = cpu_ns();

	for (int i = 0; i < OPERATIONS; i++) {
		struct ibv_send_wr *bad;
		struct ibv_wc wc;
		int n;

		queue_check_result(ibv_post_send(qps[i % count], &wr, &bad),
				   "ibv_post_send");
		while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
			;
		queue_require(n == 1 && wc.status == IBV_WC_SUCCESS,
			      "qps: a WRITE failed");
	}
	return (double)(cpu_ns() - began) / OPERATIONS / 1000;
}

/* Returns the number behind @name in a status file of /proc; 0: no line begins
 * with @name, or the file cannot be read. */
static unsigned long read_status(const char *path, const char *name)
{
	unsigned long value = 0;
	FILE *f = fopen(path, "r");
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, name, strlen(name)) == 0)
			value = strtoul(line + strlen(name), NULL, 10);
	if (f)
		fclose(f);
	return value;
}

/* Returns how often the threads of the process, without the first one, have
 * gone to sleep so far: the sum over these threads. */
static unsigned long count_switches(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;
	unsigned long sum = 0;
	char path[300];

	while (tasks && (entry = readdir(tasks))) {
		if (entry->d_name[0] == '.' || atoi(entry->d_name) == getpid())
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/status",
			 entry->d_name);
		sum += read_status(path, "voluntary_ctxt_switches:");
	}
	if (tasks)
		closedir(tasks);
	return sum;
}

/* Returns how often the threads of count_switches wake up in one second without
 * work.  The last outstanding work may end in the first seconds, so the result
 * is that of the second with the fewest wake-ups. */
static unsigned long idle_wakeups(void)
{
	unsigned long before, count, least = -1ul;

	for (int i = 0; least && i < IDLE_SECONDS; i++) {
		before = count_switches();
		sleep(1);
		count = count_switches() - before;
		if (count < least)
			least = count;
	}
	return least;
}

static void print_ratio(struct ibv_qp **qps, int count)
{
	double one[TURNS], all[TURNS], ratio[TURNS];

	for (int i = 0; i < TURNS; i++) {
		one[i] = measure_write(qps, 1);
		all[i] = measure_write(qps, count);
		ratio[i] = all[i] / one[i];
	}
	printf("\"us_one\": %.3f, \"us_many\": %.3f, \"ratio\": %.3f, ",
	       raw_median(one, TURNS), raw_median(all, TURNS),
	       raw_median(ratio, TURNS));
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 10000;
	unsigned long before, after;
	struct ibv_qp **qps;
	int64_t began;

	if (count < 2 || count % 2) {
		fprintf(stderr,
			"usage: qps [COUNT]\n"
			"COUNT: how many queue pairs, an even number\n");
		return 2;
	}
	qps = calloc((size_t)count, sizeof(struct ibv_qp *));
	queue_check(qps, "calloc");
	open_device();
	before = read_status("/proc/self/status", "VmRSS:");
	began = raw_now_ns();
	for (int i = 0; i < count; i++)
		qps[i] = queue_create(pd, cq, DEPTH);
	for (int i = 0; i < count; i++)
		queue_connect(&device, qps[i], qps[i ^ 1]->qp_num);
	printf("{\"qps\": %d, \"seconds\": %.3f, ", count,
	       (double)(raw_now_ns() - began) * 1e-9);
	after = read_status("/proc/self/status", "VmRSS:");
	printf("\"rss_mib\": %.1f, \"kib_each\": %.2f, ", (double)after / 1024,
	       (double)(after - before) / count);
	printf("\"us_first\": %.3f, ", measure_write(qps, count));
	print_ratio(qps, count);
	printf("\"rss_used_mib\": %.1f, ",
	       (double)read_status("/proc/self/status", "VmRSS:") / 1024);
	printf("\"idle_wakeups\": %lu}\n", idle_wakeups());
	return 0;
}
