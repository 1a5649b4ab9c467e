/* SPDX-License-Identifier: BSD-2-Clause */
#include "rdmacm/ib.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "fabric/fabric_client.h"
#include "rdmacm/explain.h"
#include "util/fd_identity.h"

#define PATIENCE_MS 30000 /* for the connection, and for each answer */
#define SENTENCE    512	  /* bytes of a text of fabric_client_explain */

/* The connection over which the fabric sent the socket for messages of the CM.
 * It must stay open as long as that socket is used.  -1: there is none. */
static int control = -1;
/* r_ib_end was called, and r_ib_forget was not called since. */
static bool has_ended;

static pthread_once_t looked = PTHREAD_ONCE_INIT;
static bool is_used;

static void look_once(void)
{
	is_used = *fabric_client_path() != '\0';
}

bool r_ib_is_used(void)
{
	pthread_once(&looked, look_once);
	return is_used;
}

bool r_ib_is_ip(const struct sockaddr *a)
{
	return r_ib_is_used() && !r_addr_is_ib(a);
}

const char *r_ib_server(void)
{
	return r_ib_is_used() ? "fabric" : "broker";
}

int r_ib_dial(int *fd)
{
	const char *path = fabric_client_path();
	char text[SENTENCE];
	int connection;

	if (has_ended)
		return -ENODEV;
	connection = fabric_client_open_cm(path, PATIENCE_MS, fd);
	if (connection >= 0) {
		control = fd_identity_note(connection);
		return 0;
	}
	fabric_client_explain(path, fabric_client_host(), connection, text,
			      sizeof(text));
	r_say("rdma_cm: there is no connection management on this host: %s",
	      text);
	/* To the caller (link.c) -EPIPE would mean that another thread is
	 * connecting. */
	return connection == -EPIPE ? -ECONNRESET : connection;
}

void r_ib_end(void)
{
	fd_identity_close(control);
	control = -1;
	if (!has_ended)
		r_say("rdma_cm: the fabric at %s (ADVERB_FABRIC) has closed "
		      "this process's connection, or the process has closed "
		      "it: all ids of rdma_cm get DEVICE_REMOVAL and cannot be "
		      "used any more; if the fabric has ended, start it by "
		      "adverb fabric FILE, and then start this program again",
		      fabric_client_path());
	has_ended = true;
}

void r_ib_forget(void)
{
	fd_identity_close(control);
	control = -1;
	has_ended = false;
}
