/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port spaces of rdma_cm: which (space, address, port) is whose, for all
 * processes and users of a network namespace.  Sans-IO; one owner, no lock.
 */
#ifndef CM_PORTS_H
#define CM_PORTS_H

#include <stdbool.h>
#include <stdint.h>

#include "cm/cm.h"

#define PORTS_EPHEMERAL_FIRST 32768
#define PORTS_EPHEMERAL_LAST  60999
/*
 * Chosen before the others: a program with hundreds of ids would else meet, now
 * and then, the one that it names itself a moment later.  Few name such as are
 * these last ones.
 */
#define PORTS_PREFERRED 4096

struct ports;

struct ports_want {
	uint16_t space; /* as in the service id: 0x0106 is TCP's */
	uint16_t port;	/* 0: any free one */
	struct cm_where where;
	bool may_share; /* with others that may (SO_REUSEADDR's meaning) */
};

/* At most `bindings`; NULL without memory. */
struct ports *ports_new(uint32_t bindings);
void ports_free(struct ports *p);
/*
 * 0 with *binding and its *port; -EADDRINUSE, -ENOMEM.  `random` chooses where
 * the search for a free port begins, among those that are preferred first.
 */
int ports_bind(struct ports *p, const struct ports_want *want, uint32_t random,
	       uint32_t *binding, uint16_t *port);
/* Of those who share a port and an address one may listen: -EADDRINUSE. */
int ports_listen(struct ports *p, uint32_t binding);
/* It does not listen after all; others that share its port may. */
void ports_unlisten(struct ports *p, uint32_t binding);
void ports_unbind(struct ports *p, uint32_t binding);

#endif
