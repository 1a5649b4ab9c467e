/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs an IPoIB interface: moves frames and packets between the TAP device and
 * the queue pair, and follows the changes of the port.  One thread; no lock.
 */
#ifndef TOOLS_IPOIB_LOOP_H
#define TOOLS_IPOIB_LOOP_H

#include "ipoib_tap.h"

#define IPOIB_LOOP_ADDRESSES 32 /* most addresses of --address */

/* The options of adverb ipoib. */
struct ipoib_loop_config {
	const char *name;  /* of the interface */
	uint8_t port;	   /* 0: the first one that has a link */
	uint16_t pkey;	   /* 0: the first one of the port */
	bool is_connected; /* the connected mode */
	uint32_t mtu;	   /* the upper limit of the MTU of IP; 0: none */
	struct ipoib_tap_address addresses[IPOIB_LOOP_ADDRESSES];
	uint32_t address_count; /* entries of addresses */
	/* The loop calls this each time that the interface comes up. */
	void (*up)(void);
};

/* Runs the interface until SIGINT or SIGTERM comes, unless the process ignores
 * the signal (heeded.h); the fabric ends, does not
 * answer, or sends a message that this version does not know; the interface is
 * removed; or the interface or its queue pair cannot be started.  Returns the
 * exit status: 0 after a signal; else 1, after a sentence on stderr. */
int ipoib_loop_run(const struct ipoib_loop_config *config);

#endif
