/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port spaces of rdma_cm: which (space, address, port) is bound, for all
 * processes and users of a network namespace.  Sans-IO.  One thread at a time
 * calls these functions; there is no lock.
 */
#ifndef CM_PORTS_H
#define CM_PORTS_H

#include <stdbool.h>
#include <stdint.h>

#include "cm/cm.h"

#define PORTS_EPHEMERAL_FIRST 32768
#define PORTS_EPHEMERAL_LAST  60999
/*
 * This many ports at the end of the ephemeral range are chosen before the rest.
 * Few programs ask for one of these ports by its number.  A port from the whole
 * range could be one that the same program asks for by number a moment later:
 * with hundreds of ids, that happens now and then.
 */
#define PORTS_PREFERRED 4096

struct ports;

/* A binding that a program wants. */
struct ports_want {
	uint16_t space; /* as in the service id: 0x0106 is RDMA_PS_TCP */
	uint16_t port;	/* in host byte order; 0: any free ephemeral port */
	struct cm_where where; /* the addresses; only_own has no meaning here */
	/* Bindings that all have may_share may have the same port, as sockets
	 * with SO_REUSEADDR may.  A port that ports_bind chooses (port 0) is
	 * never shared. */
	bool may_share;
};

/* Makes port spaces of at most `bindings` bindings, which the caller frees by
 * ports_free.  NULL: out of memory. */
struct ports *ports_new(uint32_t bindings);
/* Frees the port spaces with all bindings. */
void ports_free(struct ports *p);
/*
 * Binds a port.  Returns 0 with the binding's number in *binding and its port
 * in *port; -EADDRINUSE: the wanted port, or each ephemeral port, is taken;
 * -ENOMEM: no binding is free.  `random` picks the port at which the search for
 * a free ephemeral port begins.  While fewer than PORTS_PREFERRED bindings
 * exist, the preferred ports are searched first, then all; otherwise all.
 */
int ports_bind(struct ports *p, const struct ports_want *want, uint32_t random,
	       uint32_t *binding, uint16_t *port);
/* Marks the binding as listening.  Returns 0; -EADDRINUSE: another binding that
 * shares the port already listens at one of the addresses. */
int ports_listen(struct ports *p, uint32_t binding);
/* Marks the binding as not listening; another binding of the port may listen
 * then. */
void ports_unlisten(struct ports *p, uint32_t binding);
/* Ends the binding; its number may be given again. */
void ports_unbind(struct ports *p, uint32_t binding);

#endif
