/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * registration [-s BYTES] [-n ROUNDS]: in each round, registers and deregisters
 * a region of BYTES whose pages are populated, and, for comparison, maps and
 * unmaps as many bytes.  After the last round, maps and unmaps as many bytes
 * with MAP_POPULATE, a few times.  Prints the medians.  The program is linked
 * with the system's libibverbs; `adverb run` loads adverb's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "queue.h"
#include "raw.h"

enum kind { REG, DEREG, MAP, UNMAP, POPULATE, KINDS };

#define POPULATED_ROUNDS 5 /* rounds of POPULATE: a GiB takes long */

static double since_us(int64_t began_ns)
{
	return (double)(raw_now_ns() - began_ns) / 1000;
}

static void *map_memory(size_t bytes, int flags)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	queue_check(p != MAP_FAILED, "mmap");
	return p;
}

static void measure_registration(struct ibv_pd *pd, void *memory, size_t bytes,
				 double *reg, double *dereg)
{
	int64_t began = raw_now_ns();
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, bytes, QUEUE_RIGHTS);

	*reg = since_us(began);
	queue_check(mr, "ibv_reg_mr");
	began = raw_now_ns();
	queue_check_result(ibv_dereg_mr(mr), "ibv_dereg_mr");
	*dereg = since_us(began);
}

static void measure_map(size_t bytes, double *map, double *unmap)
{
	int64_t began = raw_now_ns();
	void *p = map_memory(bytes, 0);

	*map = since_us(began);
	began = raw_now_ns();
	munmap(p, bytes);
	*unmap = since_us(began);
}

static double measure_populate(size_t bytes)
{
	int64_t began = raw_now_ns();
	void *p = map_memory(bytes, MAP_POPULATE);
	double us = since_us(began);

	munmap(p, bytes);
	return us;
}

int main(int argc, char **argv)
{
	struct raw_options o = {.bytes = 4096};
	double *us[KINDS];
	struct queue_device device;
	struct ibv_pd *pd;
	void *memory;

	raw_options(argc, argv, "registration [-s BYTES] [-n ROUNDS]", &o);
	device = queue_open();
	pd = ibv_alloc_pd(device.context);
	queue_check(pd, "ibv_alloc_pd");
	memory = map_memory(o.bytes, MAP_POPULATE);
	for (int k = 0; k < KINDS; k++) {
		us[k] = calloc((size_t)o.rounds, sizeof(double));
		queue_check(us[k], "calloc");
	}
	for (int i = 0; i < o.rounds; i++) {
		measure_registration(pd, memory, o.bytes, &us[REG][i],
				     &us[DEREG][i]);
		measure_map(o.bytes, &us[MAP][i], &us[UNMAP][i]);
	}
	for (int i = 0; i < POPULATED_ROUNDS && i < o.rounds; i++)
		us[POPULATE][i] = measure_populate(o.bytes);
	printf("{\"bytes\": %zu, \"reg_us\": %.3f, \"dereg_us\": %.3f, "
	       "\"map_us\": %.3f, \"unmap_us\": %.3f, "
	       "\"populate_us\": %.3f}\n",
	       o.bytes, raw_median(us[REG], (size_t)o.rounds),
	       raw_median(us[DEREG], (size_t)o.rounds),
	       raw_median(us[MAP], (size_t)o.rounds),
	       raw_median(us[UNMAP], (size_t)o.rounds),
	       raw_median(us[POPULATE], (size_t)(o.rounds < POPULATED_ROUNDS
							 ? o.rounds
							 : POPULATED_ROUNDS)));
	return 0;
}
