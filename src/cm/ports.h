/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port spaces of rdma_cm: which (space, address, port) is bound, for all
 * processes and users of a network namespace.  Sans-IO; one thread at a time,
 * no lock.
 */
#ifndef CM_PORTS_H
#define CM_PORTS_H

#include <stdbool.h>
#include <stdint.h>

#include "cm/cm.h"

#define PORTS_EPHEMERAL_FIRST 32768
#define PORTS_EPHEMERAL_LAST  60999
/*
 * The number of the last ephemeral ports, which are chosen before the others.
 * Few programs ask for one of these by its number; otherwise a program with
 * hundreds of ids would now and then get a port that it asks for by number a
 * moment later.
 */
#define PORTS_PREFERRED 4096

struct ports;

struct ports_want {
	uint16_t space; /* as in the service id: 0x0106 is RDMA_PS_TCP */
	uint16_t port;	/* 0: any ephemeral port that is free */
	struct cm_where where;
	/* Another binding may have the same port, if that binding may share the
	 * port, too; as by SO_REUSEADDR. */
	bool may_share;
};

/* Makes port spaces of at most `bindings` bindings; NULL without memory. */
struct ports *ports_new(uint32_t bindings);
/* Frees the port spaces with all bindings. */
void ports_free(struct ports *p);
/*
 * Binds a port.  0 with *binding and its *port; -EADDRINUSE: the port, or each
 * ephemeral port, is taken; -ENOMEM: there are as many bindings as may be.
 * `random` says where the search for a free port begins, first among the
 * preferred ones and then among all.
 */
int ports_bind(struct ports *p, const struct ports_want *want, uint32_t random,
	       uint32_t *binding, uint16_t *port);
/* Marks the binding as listening.  0; -EADDRINUSE: another binding that shares
 * the port listens at one of the addresses. */
int ports_listen(struct ports *p, uint32_t binding);
/* Marks the binding as not listening; another binding of the port may listen
 * then. */
void ports_unlisten(struct ports *p, uint32_t binding);
/* Ends the binding; its number may be given again. */
void ports_unbind(struct ports *p, uint32_t binding);

#endif
