/* SPDX-License-Identifier: BSD-2-Clause */
#include "rdmacm/last_event.h"

#include "util/monotonic.h"

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

/* Returns the first event whose serial number is above `serial`, or NULL.
 * only_new: considers only events that were not served. */
static struct r_event *next_after(uint64_t serial, bool only_new)
{
	list_for_each (n, &withheld)
		if (r_event_of(n)->serial > serial &&
		    !(only_new && r_event_of(n)->was_served))
			return r_event_of(n);
	return NULL;
}

/* Posts the event with this serial number, unless it was posted or freed
 * meanwhile.  must_wait: completions of the queue pair wait, so the event is
 * posted only when no round is left.  is_new_round: a round begins. */
static void settle_one(uint64_t serial, bool must_wait, bool is_new_round)
{
	struct r_event *e = next_after(serial - 1, false);

	if (!e || e->serial != serial)
		return;
	e->rounds_left -= is_new_round;
	if (!must_wait || !e->rounds_left)
		post_with_requests(e);
}

bool r_last_event_serve(bool only_new)
{
	static uint64_t round_ms; /* when the present round began */
	uint64_t serial = 0, now = monotonic_ms();
	bool is_due, must_wait, remain;
	const struct r_device *d;
	struct r_event *e;
	uint32_t qpn;

	r_take();
	is_due = only_new || now != round_ms;
	if (!only_new)
		round_ms = now;
	while (is_due && (e = next_after(serial, only_new))) {
		e->was_served = true;
		serial = e->serial;
		d = r_id(e->base.id)->device;
		qpn = r_id(e->base.id)->own.qpn;
		r_give();
		must_wait = d && r_device_catch_up(d, qpn);
		r_take();
		settle_one(serial, must_wait, !only_new);
	}
	remain = r_last_event_waits();
	r_give();
	return remain;
}
