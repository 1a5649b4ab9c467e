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
 * So many of the last ephemeral ports are chosen before the others.  Few
 * programs ask for one of these by its number: otherwise a program with
 * hundreds of ids would now and then get a port that it asks for a moment
 * later.
 */
#define PORTS_PREFERRED 4096

struct ports;

struct ports_want {
	uint16_t space; /* as in the service id: 0x0106 is RDMA_PS_TCP */
	uint16_t port;	/* 0: any ephemeral port that is free */
	struct cm_where where;
	/* The port may be bound again by another that may share it, too, as by
	 * SO_REUSEADDR. */
	bool may_share;
};

/* Port spaces of at most `bindings` bindings; NULL without memory. */
struct ports *ports_new(uint32_t bindings);
void ports_free(struct ports *p);
/*
 * Binds a port.  0 with *binding and its *port; -EADDRINUSE: the port, or each
 * ephemeral port, is taken; -ENOMEM: there are as many bindings as may be.
 * `random` says where the search for a free port begins, first among the
 * preferred ones and then among all.
 */
int ports_bind(struct ports *p, const struct ports_want *want, uint32_t random,
	       uint32_t *binding, uint16_t *port);
/* 0; -EADDRINUSE: another binding that shares the port listens at one of the
 * addresses. */
int ports_listen(struct ports *p, uint32_t binding);
/* The binding no longer listens; another that shares its port may. */
void ports_unlisten(struct ports *p, uint32_t binding);
void ports_unbind(struct ports *p, uint32_t binding);

#endif
