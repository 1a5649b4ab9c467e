/* SPDX-License-Identifier: BSD-2-Clause */
/* Destroys ids. */
#include "rdmacm/iw.h"
#include "rdmacm/neighbour.h"
#include "rdmacm/object.h"

#include <stdlib.h>

static void id_free(struct r_id *id)
{
	if (id->is_sync)
		rdma_destroy_event_channel(id->base.channel);
	r_free_info(id->info);
	free(id->base.route.path_rec);
	free(id->listen_attr);
	free(id);
}

int rdma_destroy_id(struct rdma_cm_id *base)
{
	struct r_id *id = r_id(base);

	r_group_leave_all(id);
	if (base->event)
		rdma_ack_cm_event(base->event);
	base->event = NULL;
	r_iw_drop(id);
	r_take();
	/* The program may destroy the id in a thread that has taken the event
	 * of a call, while the call has not returned in another thread. */
	r_neighbour_stop(id);
	r_await_calls(id);
	/* r_release also drops a request to bind that has no answer yet.  It
	 * comes before the wait for acknowledgements, so that the peer learns
	 * of the end now. */
	r_release(id);
	r_channel_move(id, NULL);
	r_await_acks(id, "rdma_destroy_id");
	r_give();
	id_free(id);
	return 0;
}
