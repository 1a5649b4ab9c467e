/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * joined_gate: a library to preload into a program that joins a multicast group
 * of an emulated subnet.  The subnet manager answers a join before it has
 * written the tables of the switches, and until then the switches drop the
 * program's datagrams, which the program does not repeat.  So after the join
 * the library makes the program wait until the test has made the file
 * $JOINED_GATE, for 300 s at most.  The program waits in a call that it makes
 * after the join:
 * - mckey calls sleep() to give the subnet manager time;
 * - perftest closes its umad port when it has the answer.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#define WAIT_MS 300000

int umad_close_port(int portid);
int umad_send(int portid, int agentid, void *umad, int length, int timeout_ms,
	      int retries);
int umad_recv(int portid, void *umad, int *length, int timeout_ms);

static void wait_at_gate(void)
{
	const char *path = getenv("JOINED_GATE");

	for (int turns = WAIT_MS / 10;
	     path && *path && turns && access(path, F_OK); turns--)
		usleep(10000);
}

unsigned sleep(unsigned seconds)
{
	(void)seconds;
	wait_at_gate();
	return 0;
}

/* perftest gives the subnet manager 600 ms for the answer. */
int umad_send(int portid, int agentid, void *umad, int length, int timeout_ms,
	      int retries)
{
	int (*next)(int, int, void *, int, int, int) =
		dlsym(RTLD_NEXT, "umad_send");

	(void)timeout_ms;
	(void)retries;
	return next(portid, agentid, umad, length, WAIT_MS, 0);
}

int umad_recv(int portid, void *umad, int *length, int timeout_ms)
{
	int (*next)(int, void *, int *, int) = dlsym(RTLD_NEXT, "umad_recv");

	(void)timeout_ms;
	return next(portid, umad, length, WAIT_MS);
}

int umad_close_port(int portid)
{
	int (*next)(int) = dlsym(RTLD_NEXT, "umad_close_port");

	wait_at_gate();
	return next(portid);
}
