/* SPDX-License-Identifier: BSD-2-Clause */
#include "rdmacm/last_event.h"

#include "util/monotonic.h"

/* In the order of their serial numbers; the nodes are r_event.link. */
static struct list withheld = {&withheld, &withheld};
static uint64_t last_serial;

/* Only r_last_event_serve uses it: when the present round began. */
static uint64_t round_ms;

void r_last_event_add(struct r_event *e)
{
	r_last_event_end(e->base.id);
	e->serial = ++last_serial;
	e->rounds_left = R_LAST_EVENT_ROUNDS;
	list_push_tail(&withheld, &e->link);
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

void r_last_event_end(const struct rdma_cm_id *id)
{
	list_for_each_safe (n, &withheld)
		if (!id || r_event_of(n)->base.id == id)
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
}

/* Returns the first event whose serial number is above `serial`, or NULL. */
static struct r_event *next_after(uint64_t serial)
{
	list_for_each (n, &withheld)
		if (r_event_of(n)->serial > serial)
			return r_event_of(n);
	return NULL;
}

/* Without r_lock: returns whether completions wait.  *serial: the event. */
static bool has_completions(uint64_t *serial)
{
	const struct r_device *d;
	const struct r_event *e;
	uint32_t qpn;

	r_take();
	e = next_after(*serial);
	*serial = e ? e->serial : 0;
	d = e ? r_id(e->base.id)->device : NULL;
	qpn = e ? r_id(e->base.id)->own.qpn : 0;
	r_give();
	return d && r_device_catch_up(d, qpn);
}

/* Posts the event with this serial number, if it has not been posted or freed
 * meanwhile, and is not withheld any longer. */
static void serve_one(uint64_t serial, bool must_wait, bool is_new_round)
{
	struct r_event *e;

	r_take();
	e = next_after(serial - 1);
	if (e && e->serial == serial) {
		e->rounds_left -= is_new_round;
		if (!must_wait || !e->rounds_left)
			post_withheld(e);
	}
	r_give();
}

bool r_last_event_serve(void)
{
	uint64_t serial = 0, now = monotonic_ms();
	bool is_new_round = now != round_ms, must_wait, remain;

	round_ms = now;
	for (;;) {
		must_wait = has_completions(&serial);
		if (!serial)
			break;
		serve_one(serial, must_wait, is_new_round);
	}
	r_take();
	remain = r_last_event_waits();
	r_give();
	return remain;
}
