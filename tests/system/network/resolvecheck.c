/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * resolvecheck wait ADDRESS MS     resolves an address within MS milliseconds,
 *                                  and prints the event and its status
 * resolvecheck destroy ADDRESS     destroys three ids whose address is still
 *                                  being resolved
 * resolvecheck fork ADDRESS LOCAL  the child of a fork resolves the address
 *                                  LOCAL while its parent resolves ADDRESS
 *
 * An address is one of IPv4 or IPv6.  One thread.  Exits with 1, after a
 * message, if a call fails or a child's event is not ADDR_RESOLVED.
 */
#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LONG_MS 1000000

static void must_hold(int is_good, const char *what)
{
	if (is_good)
		return;
	perror(what);
	exit(1);
}

/* Begins to resolve the address.  Returns the id. */
static struct rdma_cm_id *begin_resolve(const char *address, int ms)
{
	const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST};
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = NULL;
	struct addrinfo *a = NULL;

	must_hold(channel && !rdma_create_id(channel, &id, NULL, RDMA_PS_TCP),
		  "rdma_create_id");
	must_hold(!getaddrinfo(address, "7471", &hints, &a), "getaddrinfo");
	must_hold(!rdma_resolve_addr(id, NULL, a->ai_addr, ms),
		  "rdma_resolve_addr");
	freeaddrinfo(a);
	return id;
}

/* Destroys the id and its channel. */
static void destroy_id(struct rdma_cm_id *id)
{
	struct rdma_event_channel *channel = id->channel;

	must_hold(!rdma_destroy_id(id), "rdma_destroy_id");
	rdma_destroy_event_channel(channel);
}

static enum rdma_cm_event_type await_end(struct rdma_cm_id *id)
{
	enum rdma_cm_event_type type;
	struct rdma_cm_event *e;

	must_hold(!rdma_get_cm_event(id->channel, &e), "rdma_get_cm_event");
	type = e->event;
	printf("%s %d\n", rdma_event_str(type), e->status);
	fflush(stdout);
	rdma_ack_cm_event(e);
	return type;
}

static void destroy_early(const char *address)
{
	struct rdma_cm_id *id[3];

	for (int i = 0; i < 3; i++)
		id[i] = begin_resolve(address, LONG_MS);
	for (int i = 0; i < 3; i++)
		destroy_id(id[i]);
	puts("destroyed");
}

static void fork_early(const char *address, const char *local)
{
	struct rdma_cm_id *id = begin_resolve(address, LONG_MS);
	int status;

	if (!fork())
		_exit(await_end(begin_resolve(local, LONG_MS)) !=
		      RDMA_CM_EVENT_ADDR_RESOLVED);
	wait(&status);
	must_hold(!status, "the child has failed");
	destroy_id(id);
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "wait")) {
		struct rdma_cm_id *id = begin_resolve(argv[2], atoi(argv[3]));

		await_end(id);
		destroy_id(id);
	} else if (argc == 3 && !strcmp(argv[1], "destroy")) {
		destroy_early(argv[2]);
	} else if (argc == 4 && !strcmp(argv[1], "fork")) {
		fork_early(argv[2], argv[3]);
	} else {
		fputs("usage: resolvecheck wait ADDRESS MS | destroy ADDRESS | "
		      "fork ADDRESS LOCAL\n",
		      stderr);
		return 2;
	}
	return 0;
}
