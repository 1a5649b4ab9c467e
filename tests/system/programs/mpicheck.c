/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mpicheck: does what MPI programs do, and checks every byte: messages of many
 * sizes around a ring, many messages at once, and collectives.  libraries.py
 * and fabric/by_lid_programs.py build mpicheck with mpicc, and run mpicheck
 * over UCX, libfabric and the openib BTL.
 *
 * MPI windows are not tested.  When a program of Open MPI 4 ends, each rank
 * destroys the queue pairs of its windows without waiting for the other ranks.
 * A rank that is late then retries for half a minute or more to send to queue
 * pairs that no longer exist.
 */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	MOST = 4 << 20, /* bytes of the longest message */
	BURST = 16	/* messages that a rank sends at once */
};

static int rank, ranks;

/* Prints what is wrong, and ends all ranks, which check_need() would not do. */
static void end_failed(const char *what, long where)
{
	fprintf(stderr, "rank %d: %s is wrong at %ld\n", rank, what, where);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Returns memory for @count objects of @size bytes. */
static void *new_memory(size_t count, size_t size)
{
	void *p = calloc(count, size);

	if (!p) {
		fprintf(stderr, "rank %d: no memory for %zu bytes\n", rank,
			count * size);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	return p;
}

static unsigned char pattern_byte(int from, int seed, long i)
{
	return (unsigned char)(from * 31 + seed * 7 + i * 13 + (i >> 8));
}

static void fill_pattern(unsigned char *p, int bytes, int seed)
{
	for (long i = 0; i < bytes; i++)
		p[i] = pattern_byte(rank, seed, i);
}

static void check_pattern(const unsigned char *p, int bytes, int from, int seed)
{
	for (long i = 0; i < bytes; i++)
		if (p[i] != pattern_byte(from, seed, i))
			end_failed("a message", i);
}

static void run_ring(void)
{
	int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;
	unsigned char *out = new_memory(MOST, 1), *in = new_memory(MOST, 1);

	for (int bytes = 0; bytes <= MOST; bytes = bytes * 3 + 1) {
		MPI_Status status;
		int got;

		fill_pattern(out, bytes, bytes);
		memset(in, 0xee, MOST);
		MPI_Sendrecv(out, bytes, MPI_BYTE, next, 5, in, MOST, MPI_BYTE,
			     last, 5, MPI_COMM_WORLD, &status);
		MPI_Get_count(&status, MPI_BYTE, &got);
		if (got != bytes)
			end_failed("a size", bytes);
		check_pattern(in, bytes, last, bytes);
	}
	free(out);
	free(in);
}

/* Sends BURST messages at once, and posts their receives in reverse order. */
static void send_bursts(int bytes)
{
	int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;
	size_t all = (size_t)BURST * (size_t)bytes;
	unsigned char *out = new_memory(all, 1), *in = new_memory(all, 1);
	MPI_Request r[2 * BURST];

	for (int i = 0; i < BURST; i++) {
		fill_pattern(out + (size_t)i * (size_t)bytes, bytes, i);
		MPI_Isend(out + (size_t)i * (size_t)bytes, bytes, MPI_BYTE,
			  next, i, MPI_COMM_WORLD, &r[i]);
	}
	for (int i = BURST; i--;)
		MPI_Irecv(in + (size_t)i * (size_t)bytes, bytes, MPI_BYTE, last,
			  i, MPI_COMM_WORLD, &r[BURST + i]);
	MPI_Waitall(2 * BURST, r, MPI_STATUSES_IGNORE);
	for (int i = 0; i < BURST; i++)
		check_pattern(in + (size_t)i * (size_t)bytes, bytes, last, i);
	free(out);
	free(in);
}

static void run_collectives(void)
{
	enum { COUNT = 3000 };
	static long mine[COUNT], sum[COUNT];
	long *to = new_memory((size_t)ranks, sizeof(*to));
	long *from = new_memory((size_t)ranks, sizeof(*from));

	for (int i = 0; i < COUNT; i++)
		mine[i] = (long)(rank + 1) * i;
	MPI_Allreduce(mine, sum, COUNT, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < COUNT; i++)
		if (sum[i] != (long)i * ranks * (ranks + 1) / 2)
			end_failed("a sum", i);
	for (int i = 0; i < ranks; i++)
		to[i] = rank * 1000 + i;
	MPI_Alltoall(to, 1, MPI_LONG, from, 1, MPI_LONG, MPI_COMM_WORLD);
	for (int i = 0; i < ranks; i++)
		if (from[i] != i * 1000 + rank)
			end_failed("all to all", i);
	MPI_Bcast(mine, COUNT, MPI_LONG, ranks - 1, MPI_COMM_WORLD);
	for (int i = 0; i < COUNT; i++)
		if (mine[i] != (long)ranks * i)
			end_failed("a broadcast", i);
	free(to);
	free(from);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	run_ring();
	send_bursts(100);
	send_bursts(10000);
	send_bursts(300000);
	run_collectives();
	if (!rank)
		printf("%d ranks: all right\n", ranks);
	MPI_Finalize();
	return 0;
}
