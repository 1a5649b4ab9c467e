/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * one_to_many: one process writes to many processes, which may be in other
 * namespaces.  The processes exchange their addresses by files in a shared
 * folder.
 *
 *	one_to_many serve FOLDER I	  is target I, until the file `end.0`
 *					  exists
 *	one_to_many write FOLDER N ROUNDS writes to N targets in turn, small
 *					  and large messages
 *
 * The writer makes the file `written.0` when all requests are acknowledged, and
 * stays until the file `end.0` exists, too.  Exit status 0: no check failed;
 * otherwise the program prints what failed.  SIGALRM ends a process after
 * PATIENCE_S seconds.
 */
#include "check.h"
#include "endpoint.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	MOST = 256,   /* the most targets */
	SMALL = 700,  /* bytes of each of a round's first 3 messages */
	LARGE = 5000, /* bytes of the fourth message of a round */
	/* Limit of a process.  lib/netlab.py waits 400 s for the file
	 * `written.0`, works for some time, and waits 400 s for the end. */
	PATIENCE_S = 1200,
	TURN_US = 500 /* from one look for a file to the next */
};

static const char *folder;

static void name_of(const char *what, int i, char name[512])
{
	snprintf(name, 512, "%s/%s.%d", folder, what, i);
}

/* Makes the file FOLDER/WHAT.I with the address *a; a reader never sees a part
 * of the file. */
static void publish_address(const char *what, int i,
			    const struct endpoint_address *a)
{
	char name[512], temp[520];
	FILE *f;

	name_of(what, i, name);
	snprintf(temp, sizeof(temp), "%s.new", name);
	f = fopen(temp, "we");
	check_need(f && fwrite(a, sizeof(*a), 1, f) == 1 && !fclose(f) &&
			   !rename(temp, name),
		   temp);
}

/* Waits for the file FOLDER/WHAT.I, and reads the address in it. */
static void await_address(const char *what, int i, struct endpoint_address *a)
{
	char name[512];
	FILE *f;

	name_of(what, i, name);
	while (!(f = fopen(name, "re")))
		usleep(TURN_US);
	check_need(fread(a, sizeof(*a), 1, f) == 1, name);
	fclose(f);
}

/* Returns the byte that the writer puts into the region of target i.  This byte
 * is never ENDPOINT_FILL, which was there before. */
static uint8_t mark_of(int i)
{
	return (uint8_t)(ENDPOINT_FILL + 1 + i % 255);
}

static int serve_target(int i)
{
	struct endpoint_address self, peer, end;
	struct endpoint e;

	endpoint_open(&e, ENDPOINT_ALL_REMOTE | IBV_ACCESS_LOCAL_WRITE,
		      IBV_ACCESS_REMOTE_WRITE);
	endpoint_address_get(&e, &self);
	publish_address("server", i, &self);
	await_address("client", i, &peer);
	endpoint_to_rtr(&e, &peer);
	publish_address("ready", i, &self);
	await_address("end", 0, &end);
	check_need(e.region[i] == mark_of(i),
		   "the writer changed no byte of this target");
	endpoint_close(&e);
	return 0;
}

static void post_write(struct endpoint *e, const struct endpoint_address *to,
		       int i, bool large)
{
	struct ibv_sge sge = {(uintptr_t)e->region, large ? LARGE : SMALL,
			      e->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE},
			   *bad;

	e->region[i] = mark_of(i);
	wr.wr.rdma.remote_addr = to->region;
	wr.wr.rdma.rkey = to->rkey;
	errno = ibv_post_send(e->qp, &wr, &bad);
	check_need(errno == 0, "ibv_post_send");
}

static int write_to(int count, int rounds)
{
	static struct endpoint_address self[MOST], peer[MOST];
	static struct endpoint e[MOST];
	struct ibv_wc wc;

	for (int i = 0; i < count; i++) {
		endpoint_open(&e[i], IBV_ACCESS_LOCAL_WRITE, 0);
		endpoint_address_get(&e[i], &self[i]);
		publish_address("client", i, &self[i]);
	}
	for (int i = 0; i < count; i++) {
		await_address("ready", i, &peer[i]);
		endpoint_to_rtr(&e[i], &peer[i]);
		endpoint_to_rts(&e[i], &self[i], 0);
	}
	for (int r = 0; r < rounds; r++) {
		for (int k = 0; k < 4; k++)
			for (int i = 0; i < count; i++)
				post_write(&e[i], &peer[i], i, k == 3);
		for (int k = 0; k < 4; k++)
			for (int i = 0; i < count; i++)
				check_need(endpoint_wait(&e[i], &wc) &&
						   wc.status == IBV_WC_SUCCESS,
					   "a WRITE fails");
	}
	publish_address("written", 0, &self[0]);
	await_address("end", 0, &peer[0]);
	for (int i = 0; i < count; i++)
		endpoint_close(&e[i]);
	return 0;
}

int main(int argc, char **argv)
{
	int count = argc > 3 ? atoi(argv[3]) : 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	alarm(PATIENCE_S);
	folder = argc > 2 ? argv[2] : "";
	if (argc == 4 && !strcmp(argv[1], "serve"))
		return serve_target(count);
	if (argc == 5 && !strcmp(argv[1], "write") && count <= MOST)
		return write_to(count, atoi(argv[4]));
	fprintf(stderr, "usage: one_to_many serve FOLDER I\n"
			"       one_to_many write FOLDER N ROUNDS\n");
	return 2;
}
