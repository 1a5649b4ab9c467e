/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wait of client_open (client.h) for a broker: how long it lasts, and what
 * the user is told meanwhile.  The owner of the client calls these functions,
 * and is the only thread to do so.
 */
#ifndef BROKER_CLIENT_WAIT_H
#define BROKER_CLIENT_WAIT_H

#include "broker/client.h"

/* The deadlines of client_open, in milliseconds of CLOCK_MONOTONIC.  Each is
 * put off by the time for which this process did not run, since the silence of
 * a broker in that time means nothing. */
struct client_wait {
	/* when client_open gives up; put off while a broker is awaited */
	uint64_t end_ms;
	uint64_t last_ms;  /* the latest end_ms */
	uint64_t began_ms; /* when client_open was called */
	bool is_reported;  /* the user was told that the broker is late */
};

/* Begins the wait.  patience_ms: that of struct client_want. */
void client_wait_begin(struct client_wait *w, uint64_t patience_ms);
/* Puts off the end of client_open while a broker is awaited, and tells the user
 * if the broker is late.  False: client_open fails. */
bool client_wait_goes_on(struct client *c, struct client_wait *w);
/* Waits until the broker has sent something or the client is due, for half a
 * second at most.  If this process did not run meanwhile, puts the deadlines
 * off. */
void client_wait_nap(struct client *c, struct client_wait *w);

#endif
