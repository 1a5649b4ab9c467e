/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/deadlock.h"

#include <stdio.h>
#include <string.h>

#include "fabric/lane.h"
#include "util/bits.h"

#define OF_WAITING(l) CONTAINER_OF(l, struct lanes, waiting)

/* The state of a lane's queue in the search. */
enum mark {
	MOVES,	  /* the queue can move, or is empty */
	STANDS,	  /* not found to move */
	FOLLOWED, /* STANDS, and find_cycle has visited the queue */
};

static uint32_t vl_of(const struct lane *l)
{
	return (uint32_t)(l - l->port->lanes->lane);
}

/* Returns the input buffer for which the packets in the queue of l wait. */
static struct lane *far_of(const struct lane *l)
{
	return &l->port->peer->lanes->lane[vl_of(l)];
}

/* struct packet begins with its list. */
static struct packet *packet_of(struct list *l)
{
	return (struct packet *)l;
}

static void for_each_queue(struct fabric *f, void (*visit)(struct lane *l))
{
	list_for_each (it, &f->data.waiting)
		for (uint32_t vl = 0; vl < LANES; vl++)
			if (OF_WAITING(it)->queued >> vl & 1)
				visit(&OF_WAITING(it)->lane[vl]);
}

static void clear_queue(struct lane *l)
{
	l->mark = STANDS;
	far_of(l)->hopeless = 0;
	list_for_each (it, &l->queue)
		if (packet_of(it)->room)
			packet_of(it)->room->hopeless = 0;
}

/* Adds the blocks of each packet in the queue of l to `hopeless` of the input
 * buffer that has the packet.  After a call for each queue that stands,
 * `hopeless` counts the blocks of the buffer's packets in these queues. */
static void add_blocks(struct lane *l)
{
	list_for_each (it, &l->queue)
		if (packet_of(it)->room)
			packet_of(it)->room->hopeless += packet_of(it)->blocks;
}

static void remove_queue(struct lane *l)
{
	l->mark = MOVES;
	list_for_each (it, &l->queue)
		if (packet_of(it)->room)
			packet_of(it)->room->hopeless -= packet_of(it)->blocks;
}

/* Can the first packet of a queue that stands leave, now or later?  It can if
 * it is discarded after some time, or if it fits beside the packets that can
 * never leave the buffer. */
static bool can_move(const struct lane *l)
{
	const struct data_ends *d = &l->port->node->fabric->data;
	const struct lane *far = far_of(l);

	return lane_due(l->port->lanes, vl_of(l)) != FABRIC_NEVER ||
	       !far->hopeless ||
	       far->hopeless + packet_of(l->queue.next)->blocks <=
		       d->buffer_blocks;
}

/* Removes the queues of a port that can move.  Returns whether there was one.
 */
static bool remove_moving(struct lanes *l)
{
	bool was_any = false;

	for (uint32_t vl = 0; vl < LANES; vl++) {
		struct lane *lane = &l->lane[vl];

		if (!(l->queued >> vl & 1) || lane->mark == MOVES ||
		    !can_move(lane))
			continue;
		remove_queue(lane);
		was_any = true;
	}
	return was_any;
}

static void remove_all_moving(struct fabric *f)
{
	bool goes_on;

	do {
		goes_on = false;
		list_for_each (it, &f->data.waiting)
			goes_on |= remove_moving(OF_WAITING(it));
	} while (goes_on);
}

static struct lane *standing_lane(struct lanes *l)
{
	for (uint32_t vl = 0; vl < LANES; vl++)
		if ((l->queued >> vl & 1) && l->lane[vl].mark != MOVES)
			return &l->lane[vl];
	return NULL;
}

static struct lane *any_standing(struct fabric *f)
{
	list_for_each (it, &f->data.waiting) {
		struct lane *l = standing_lane(OF_WAITING(it));

		if (l)
			return l;
	}
	return NULL;
}

static bool has_packet_of(const struct lane *queue, const struct lane *buffer)
{
	list_for_each (it, &queue->queue)
		if (packet_of(it)->room == buffer)
			return true;
	return false;
}

/* Returns a queue that stands and has a packet of the buffer for which l
 * waits.  For every queue that stands there is one: without such a packet, the
 * first packet of l would fit into the buffer later, and l could move. */
static struct lane *next_of(const struct lane *l)
{
	const struct lane *far = far_of(l);
	struct node *node = far->port->node;

	for (uint32_t i = 1; i <= node->port_count; i++) {
		struct lanes *lanes = node->ports[i].lanes;

		for (uint32_t vl = 0; lanes && vl < LANES; vl++)
			if ((lanes->queued >> vl & 1) &&
			    lanes->lane[vl].mark != MOVES &&
			    has_packet_of(&lanes->lane[vl], far))
				return &lanes->lane[vl];
	}
	return NULL;
}

/* Returns a queue of a cycle; NULL: there is no cycle. */
static struct lane *find_cycle(struct fabric *f)
{
	struct lane *l;

	for_each_queue(f, clear_queue);
	for_each_queue(f, add_blocks);
	remove_all_moving(f);
	for (l = any_standing(f); l && l->mark != FOLLOWED; l = next_of(l))
		l->mark = FOLLOWED;
	return l;
}

static uint32_t length_of(struct lane *first)
{
	struct lane *l = first;
	uint32_t n = 0;

	do
		n++;
	while ((l = next_of(l)) && l != first);
	return n;
}

/* A text that is cut where its room ends. */
struct sentence {
	char *at;
	size_t room;
};

#define APPEND(t, ...)                                                         \
	advance_text(t, snprintf((t)->at, (t)->room, __VA_ARGS__))

static void advance_text(struct sentence *t, int n)
{
	size_t used = n < 0 ? 0 : bits_min_u64((uint64_t)n, t->room - 1);

	t->at += used;
	t->room -= used;
}

static const char remedy[] =
	"; choose routes without such a cycle (opensm -R updn), or a finite "
	"HOQLife (head_of_queue_lifetime of OpenSM)";

/* Writes the cycle's links; if there is no room for all, the first ones and how
 * many more there are. */
static void write_links(struct sentence *t, struct lane *first)
{
	enum {
		NAME = 32, /* bytes of a node's ID that are shown, at most */
		LINK = 2 * NAME + sizeof(", [255] to [255] on VL 15") - 1,
		MORE = sizeof(" and 4294967295 more") - 1,
		/* bytes for one more link and for what follows it */
		REST = LINK + MORE + sizeof(remedy) - 1
	};
	uint32_t left = length_of(first);
	struct lane *l = first;

	for (; left && t->room > REST; left--, l = next_of(l)) {
		const struct port *from = l->port, *to = from->peer;

		APPEND(t, "%s%.*s[%u] to %.*s[%u] on VL %u",
		       l == first ? "" : ", ", NAME, from->node->id,
		       from->number, NAME, to->node->id, to->number, vl_of(l));
	}
	if (left)
		APPEND(t, " and %u more", left);
}

static void write_sentence(char *text, struct lane *first)
{
	struct sentence t = {text, DEADLOCK_TEXT};

	APPEND(&t, "the packets of these links wait for each other in a "
		   "cycle, and none can move: ");
	write_links(&t, first);
	APPEND(&t, "%s", remedy);
}

/* Once a search has found a deadlock, the search runs every DEADLOCK_MS, until
 * the deadlock has ended. */
uint64_t deadlock_deadline(const struct fabric *f)
{
	const struct deadlock *d = &f->data.deadlock;
	uint64_t oldest = lane_oldest(f);

	if (*d->text)
		oldest = d->searched_ms;
	return oldest == FABRIC_NEVER
		       ? FABRIC_NEVER
		       : bits_max_u64(oldest, d->searched_ms) + DEADLOCK_MS;
}

void deadlock_tick(struct fabric *f)
{
	struct deadlock *d = &f->data.deadlock;
	struct lane *l;

	if (deadlock_deadline(f) > f->now_ms)
		return;
	l = find_cycle(f);
	d->searched_ms = f->now_ms;
	if (!l)
		*d->text = '\0';
	else if (!*d->text)
		d->is_told = false;
	if (l)
		write_sentence(d->text, l);
}

const char *deadlock_text(const struct fabric *f)
{
	return *f->data.deadlock.text ? f->data.deadlock.text : NULL;
}

const char *deadlock_news(struct fabric *f)
{
	const char *text = f->data.deadlock.is_told ? NULL : deadlock_text(f);

	f->data.deadlock.is_told |= text != NULL;
	return text;
}
