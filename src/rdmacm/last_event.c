/* SPDX-License-Identifier: BSD-2-Clause */
#include "rdmacm/last_event.h"

#include "util/monotonic.h"

#define BATCH 64 /* events that are asked about at once */

/* The withheld events, linked by r_event.link, in the order of their serial
 * numbers.  requests has those of connection requests, and withheld the others.
 */
static struct list withheld = {&withheld, &withheld};
static struct list requests = {&requests, &requests};
static uint64_t last_serial;

static struct rdma_event_channel *channel_of(const struct r_event *e)
{
	return r_event_owner(e)->channel;
}

/* Returns the serial number of the first event in withheld that is of this
 * channel; UINT64_MAX: there is none. */
static uint64_t first_serial(const struct rdma_event_channel *channel)
{
	list_for_each (n, &withheld)
		if (channel_of(r_event_of(n)) == channel)
			return r_event_of(n)->serial;
	return UINT64_MAX;
}

void r_last_event_add(struct r_event *e)
{
	r_last_event_end(e->base.id);
	e->serial = ++last_serial;
	e->rounds_left = R_LAST_EVENT_ROUNDS;
	list_push_tail(&withheld, &e->link);
}

void r_last_event_add_request(struct r_event *e)
{
	if (first_serial(channel_of(e)) == UINT64_MAX) {
		r_post_now(e);
		return;
	}
	e->serial = ++last_serial;
	list_push_tail(&requests, &e->link);
}

bool r_last_event_waits(void)
{
	return !list_is_empty(&withheld);
}

static void post_withheld(struct r_event *e)
{
	list_remove(&e->link);
	r_post_now(e);
}

/* Posts the connection requests of this channel that came before the first
 * event that is still withheld there. */
static void post_requests(const struct rdma_event_channel *channel)
{
	uint64_t end;

	if (list_is_empty(&requests))
		return;
	end = first_serial(channel);
	list_for_each_safe (n, &requests)
		if (channel_of(r_event_of(n)) == channel &&
		    r_event_of(n)->serial < end)
			post_withheld(r_event_of(n));
}

static void post_with_requests(struct r_event *e)
{
	const struct rdma_event_channel *channel = channel_of(e);

	post_withheld(e);
	post_requests(channel);
}

void r_last_event_end(const struct rdma_cm_id *id)
{
	list_for_each_safe (n, &withheld)
		if (!id || r_event_of(n)->base.id == id)
			post_with_requests(r_event_of(n));
	list_for_each_safe (n, &requests)
		if (r_event_of(n)->base.listen_id == id)
			post_withheld(r_event_of(n));
}

void r_post(struct r_event *e)
{
	r_last_event_end(e->base.id);
	r_post_now(e);
}

void r_last_event_forget(void)
{
	list_init(&withheld);
	list_init(&requests);
}

bool r_last_event_is_new(void)
{
	return !list_is_empty(&withheld) &&
	       !r_event_of(withheld.prev)->was_served;
}

/* A copy of an event in withheld, to ask about its queue pair without r_lock.
 */
struct asked {
	uint64_t serial;
	const struct r_device *device; /* NULL: the id has none */
	uint32_t qpn;
	bool must_wait; /* completions of the queue pair wait */
};

/* Copies the first events whose serial numbers are above `serial`, BATCH at
 * most, in the order of withheld.  only_new: only events that were not served.
 * Returns how many. */
static uint32_t copy_next(struct asked *to, uint64_t serial, bool only_new)
{
	uint32_t count = 0;

	list_for_each (n, &withheld) {
		struct r_event *e = r_event_of(n);

		if (e->serial <= serial || (only_new && e->was_served))
			continue;
		if (count == BATCH)
			break;
		e->was_served = true;
		to[count++] = (struct asked){
			.serial = e->serial,
			.device = r_id(e->base.id)->device,
			.qpn = r_id(e->base.id)->own.qpn,
		};
	}
	return count;
}

/* Posts the events of a batch that need not wait or have no round left, unless
 * they were posted or freed meanwhile.  is_new_round: a round begins. */
static void settle_batch(const struct asked *of, uint32_t count,
			 bool is_new_round)
{
	uint32_t i = 0;

	list_for_each_safe (n, &withheld) {
		struct r_event *e = r_event_of(n);

		while (i < count && of[i].serial < e->serial)
			i++;
		if (i == count)
			break;
		if (of[i].serial != e->serial)
			continue;
		e->rounds_left -= is_new_round;
		if (!of[i].must_wait || !e->rounds_left)
			post_with_requests(e);
	}
}

bool r_last_event_serve(bool only_new)
{
	static uint64_t round_ms; /* when the present round began */
	struct asked batch[BATCH];
	uint64_t serial = 0, now = monotonic_ms();
	bool is_due, remain;
	uint32_t count;

	r_take();
	is_due = only_new || now != round_ms;
	if (!only_new)
		round_ms = now;
	while (is_due && (count = copy_next(batch, serial, only_new))) {
		r_give();
		for (uint32_t i = 0; i < count; i++)
			batch[i].must_wait = batch[i].device &&
					     r_device_catch_up(batch[i].device,
							       batch[i].qpn);
		r_take();
		settle_batch(batch, count, !only_new);
		serial = batch[count - 1].serial;
	}
	remain = r_last_event_waits();
	r_give();
	return remain;
}
