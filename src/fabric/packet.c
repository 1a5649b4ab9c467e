/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes, copies and frees packets; see fabric/inside.h. */
#include <stdlib.h>

#include "fabric/data_end.h"
#include "fabric/inside.h"

#define MOVING_MAX 65536 /* most packets in fabric.moving */

struct packet *packet_new(struct fabric *f, struct port *at)
{
	struct packet *p;

	if (f->moving_count >= MOVING_MAX)
		return NULL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	list_init(&p->list);
	p->at = at;
	return p;
}

void packet_inject(struct packet *p)
{
	struct fabric *f = p->at->node->fabric;

	f->moving_count++;
	list_push_tail(&f->moving, &p->list);
}

static void give_room(struct data_end *end, uint32_t bytes)
{
	end->unread_count--;
	end->unread_bytes -= bytes;
	if (!end->waits || end->unread_count > DATA_UNREAD / 2 ||
	    end->unread_bytes > DATA_UNREAD_BYTES / 2)
		return;
	end->waits = false;
	if (!list_is_linked(&end->resumed))
		list_push_tail(&end->port->node->fabric->data.resumed,
			       &end->resumed);
}

void packet_release(struct payload *payload)
{
	if (--payload->refs)
		return;
	list_remove(&payload->of_sender);
	if (payload->sender)
		give_room(payload->sender, payload->bytes);
	if (payload->orphans)
		--*payload->orphans;
	free(payload);
}

void packet_drop(struct packet *p)
{
	if (p->payload) {
		p->at->node->fabric->data.packets--;
		packet_release(p->payload);
	}
	free(p);
}

struct packet *packet_copy(const struct packet *p)
{
	struct fabric *f = p->at->node->fabric;
	struct packet *copy;

	if (p->payload && f->data.packets >= DATA_PACKETS)
		return NULL;
	copy = packet_new(f, p->at);
	if (!copy)
		return NULL;
	*copy = *p;
	list_init(&copy->list);
	if (copy->payload) {
		copy->payload->refs++;
		f->data.packets++;
	}
	return copy;
}
