/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mpi_pingpong [-s BYTES] [-n ROUNDS] [-w WINDOW]: measures the latency or the
 * rate of MPI between two processes of one host, over the transport that
 * mpirun's options choose.
 *
 *	-w 0	latency: half the time of a round
 *		rank 0 -- message --> rank 1 -- message --> rank 0
 *	-w W	rate of the messages of a round
 *		rank 0 -- W messages --> rank 1 -- one byte --> rank 0
 *
 * mpirun starts two processes; each pins itself to a processor.  Rank 0 prints
 * a line of JSON.  There "sent" is the number of all messages, with those of
 * the first WARM rounds, which are not measured.
 */
#include <mpi.h>

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WARM = 20, MOST = 1024, TAG = 1 };

static int rank, bytes = 8, rounds = 1000, window;
static unsigned char *to_send, *received; /* each has `bytes` bytes */
static MPI_Request request[MOST];

/* Pins rank r to the r-th processor, from 0, of those that the process may use;
 * does nothing if the process may use only one. */
static void pin_rank(void)
{
	cpu_set_t may, own;
	int left = rank;

	CPU_ZERO(&own);
	if (sched_getaffinity(0, sizeof(may), &may) || CPU_COUNT(&may) < 2)
		return;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &may) && left-- == 0)
			CPU_SET(cpu, &own);
	sched_setaffinity(0, sizeof(own), &own);
}

static void send_message(const unsigned char *p, int size)
{
	MPI_Send(p, size, MPI_BYTE, !rank, TAG, MPI_COMM_WORLD);
}

static void receive_message(unsigned char *p, int size)
{
	MPI_Recv(p, size, MPI_BYTE, !rank, TAG, MPI_COMM_WORLD,
		 MPI_STATUS_IGNORE);
}

static void turn_once(void)
{
	if (rank == 0)
		send_message(to_send, bytes);
	receive_message(received, bytes);
	if (rank == 1)
		send_message(to_send, bytes);
}

static void send_window(void)
{
	int done = 0;

	for (int i = 0; i < window; i++)
		if (rank == 0)
			MPI_Isend(to_send, bytes, MPI_BYTE, 1, TAG,
				  MPI_COMM_WORLD, &request[i]);
		else
			MPI_Irecv(received, bytes, MPI_BYTE, 0, TAG,
				  MPI_COMM_WORLD, &request[i]);
	while (!done)
		MPI_Testall(window, request, &done, MPI_STATUSES_IGNORE);
	if (rank == 0)
		receive_message(received, 1);
	else
		send_message(to_send, 1);
}

static void print_figures(double seconds)
{
	double messages = (double)rounds * window;

	if (!window)
		printf("{\"us\": %.4f}\n", seconds / rounds / 2 * 1e6);
	else
		printf("{\"GBps\": %.4f, \"Mps\": %.4f, \"sent\": %.0f}\n",
		       messages * bytes / seconds / 1e9,
		       messages / seconds / 1e6,
		       messages + (double)WARM * window);
}

static int parse_options(int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "s:n:w:")) != -1) {
		if (option == 's')
			bytes = atoi(optarg);
		else if (option == 'n')
			rounds = atoi(optarg);
		else if (option == 'w')
			window = atoi(optarg);
		else
			return 2;
	}
	return bytes < 1 || rounds < 1 || window < 0 || window > MOST ? 2 : 0;
}

int main(int argc, char **argv)
{
	int ranks = 0, bad = parse_options(argc, argv);
	double began = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	to_send = calloc(1, (size_t)bytes);
	received = calloc(1, (size_t)bytes);
	if (bad || ranks != 2 || !to_send || !received)
		MPI_Abort(MPI_COMM_WORLD, 2);
	pin_rank();
	for (int i = -WARM; i < rounds; i++) {
		if (i == 0)
			began = MPI_Wtime();
		if (window)
			send_window();
		else
			turn_once();
	}
	if (rank == 0)
		print_figures(MPI_Wtime() - began);
	free(to_send);
	free(received);
	return MPI_Finalize();
}
