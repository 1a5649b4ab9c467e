/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of data ends that have something to fetch; see fabric/data_end.h. */
#include "fabric/data_end.h"
#include "util/bits.h"

#define OF_PORT(l) CONTAINER_OF(l, struct data_end, of_port)

void data_wake(struct data_end *end)
{
	if (!end->is_paused && !end->is_deaf && !list_is_linked(&end->ready) &&
	    (end->changes || !list_is_empty(&end->inbox)))
		list_push_tail(&end->port->node->fabric->data.ready,
			       &end->ready);
}

void data_wake_port(struct port *port, uint32_t changes)
{
	const struct fabric *f = port->node->fabric;

	if (!changes)
		return;
	if (f->changed)
		f->changed(f->changed_arg, port->node, port->number, changes);
	list_for_each (l, &port->data_ends) {
		OF_PORT(l)->changes |= changes;
		data_wake(OF_PORT(l));
	}
}
