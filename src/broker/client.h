/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process's side of the broker: finds or starts it, holds the class and the
 * receive socket, asks about others.  Not thread-safe: the owner's lock covers
 * it.  Does not survive fork: a child opens anew.
 */
#ifndef ADVERB_BROKER_CLIENT_H
#define ADVERB_BROKER_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum client_peer { CLIENT_PEER_GONE, CLIENT_PEER_ALIVE, CLIENT_PEER_UNKNOWN };

struct client {
	int unix_fd; /* closing it, or dying, frees the class */
	int udp_fd;  /* bound to port 4791, dual-stack; blocking, no pktinfo */
	uint32_t class;
	uint32_t serial;
	/* The broker is another user's, who can see and drop our packets. */
	bool is_foreign;
	uid_t broker_user;
	char why[96];
	void *page;		    /* ours; NULL: there is none */
	struct client_pages *pages; /* of others */
};

/*
 * 0, or -errno with a sentence in *why, which borrows from c or is constant:
 * -ENOENT there is no broker to start, -EADDRINUSE the port is somebody's.
 */
int client_open(struct client *c, const char **why);
/*
 * Is the process of this namespace that a QPN belongs to alive?  Waits at most
 * 200 ms.  enum client_peer or -errno.
 */
int client_peer_state(struct client *c, uint32_t qpn);
/*
 * This process's page, to write; page.h says what is in it.  NULL when there
 * is none.  Valid until client_close.
 */
void *client_page(const struct client *c);
/*
 * The page of another class of this namespace, to read, until client_close.
 * Never waits: NULL when there is none, or none yet; the first call asks the
 * broker, a later one finds the answer, and it is asked anew when the class
 * had no owner.  Until it is there a call may cost two system calls.
 */
const void *client_page_of(struct client *c, uint32_t class);
void client_close(struct client *c);

#endif
