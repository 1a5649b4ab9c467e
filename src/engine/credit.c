/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/credit.h"

#include <string.h>

#include "util/bits.h"

/* For a packet up to this length the kernel makes one allocation, whose size is
 * a power of two. */
#define LINEAR_BYTES 16000
#define SKB_BYTES    1024	/* the most that the kernel adds to a packet */
#define EPOCH_NS     500000000u /* how long a sender is counted at least */
/* A sender that has sent nothing for this time begins again, because the
 * receiver may have stopped counting it. */
#define IDLE_NS (EPOCH_NS / 2)
/* The time between two questions for a page: ASK_NS while a packet waits for
 * the page, ASK_AGAIN_NS while none does. */
#define ASK_NS	     50000u
#define ASK_AGAIN_NS 10000000u
#define PAGE_NS	     1000000000u /* how long packets wait for a page */
/* A sent packet may wait this long for the kernel thread that brings it to the
 * receiver's socket. */
#define UNDER_WAY_NS 20000000u
#define EMPTY_LOOKS  2	    /* the growth of `empties` that follow_page needs */
#define LOOK_MIN_NS  20000u /* bounds of credit_look_ns */
#define LOOK_MAX_NS  10000000u
/* Bytes that a process may send before it knows the page: so few that the
 * buffer has room even if many processes do so at once. */
#define NO_PAGE_BYTES 16384

/* Returns an estimate of the bytes that the kernel charges a socket for a
 * packet of len bytes. */
static uint32_t buffer_cost(size_t len)
{
	if (len > LINEAR_BYTES)
		return (uint32_t)len + 2 * SKB_BYTES;
	return bits_pow2_up((uint32_t)len + SKB_BYTES / 2) + SKB_BYTES / 4;
}

uint32_t credit_cost(size_t len, size_t segment)
{
	uint32_t whole = segment ? (uint32_t)((len - 1) / segment) : 0;

	if (!len || whole >= CREDIT_FEW)
		return buffer_cost(len);
	return whole * buffer_cost(segment) +
	       buffer_cost(len - whole * segment);
}

void credit_joins(struct credit_inbox *in)
{
	if (in->page && !in->is_off)
		shared_store(&in->page->apart, 0);
}

bool credit_is_joined(const struct credit *c)
{
	if (c->is_off)
		return true;
	return c->page ? !shared_load(&c->page->apart) : c->has_none;
}

static void begin_credit(struct credit *c)
{
	c->standing = CREDIT_BEGINS;
	c->since = c->sent;
}

/* Returns the number of the page's owner, which the broker may store at any
 * time.  Relaxed: no other access needs an order with this load, since wrong
 * numbers of a page can only make this sender slower or faster. */
static uint64_t load_generation(const struct credit_page *p)
{
	return __atomic_load_n(&p->generation, __ATOMIC_RELAXED);
}

/* Sets the count of sent bytes to that of drained bytes, if no packet can be in
 * flight (`over`), if the page has another owner, or if the receiver has
 * drained more bytes than were sent. */
static void follow_page(struct credit *c, uint32_t drained, uint64_t now_ns)
{
	const struct credit_page *p = c->page;
	bool over = !c->unsent && now_ns - c->marked_ns > UNDER_WAY_NS &&
		    shared_load(&p->empties) - c->mark - EMPTY_LOOKS <
			    UINT32_MAX / 2;
	/* The number is loaded once: a second load could find a newer number,
	 * which c->generation would then have without a new begin of the
	 * count. */
	uint64_t generation = load_generation(p);
	bool is_another = generation != c->generation;

	c->generation = generation;
	/* If more was drained than sent, the receiver has also counted packets
	 * of another process whose class has or had the same slot. */
	if (over || is_another || (int32_t)(c->sent - drained) < 0) {
		c->sent = drained;
		if (is_another || (int32_t)(c->since - drained) > 0)
			begin_credit(c);
	}
}

/* Updates c->standing.  Returns whether this process is among the senders that
 * share the receiver's capacity. */
static bool is_sharing(struct credit *c, uint32_t drained, uint64_t now_ns)
{
	if (now_ns - c->used_ns > IDLE_NS) {
		begin_credit(c);
	} else if (c->standing != CREDIT_SHARES &&
		   (int32_t)(drained - c->since) > 0) {
		c->standing++;
		c->since = c->sent;
	}
	return c->standing == CREDIT_SHARES;
}

static uint32_t find_share(struct credit *c, uint32_t drained, uint64_t now_ns)
{
	uint32_t capacity = shared_load(&c->page->capacity);
	uint32_t senders = bits_max_u32(shared_load(&c->page->senders), 1);

	if (!is_sharing(c, drained, now_ns))
		return capacity / 8;
	return capacity / 8 * 7 / bits_min_u32(senders, CREDIT_CLASSES);
}

/* May a packet be sent although there is no room, because it has waited long
 * enough? */
static bool is_out_of_patience(struct credit *c, uint64_t patience_ns,
			       uint64_t now_ns)
{
	uint64_t waited_ns;

	if (!c->stalled_ns) {
		c->stalled_ns = now_ns;
		c->waited_ns = 0;
	}
	waited_ns = now_ns - c->stalled_ns;
	if (waited_ns < bits_max_u64(patience_ns, 2 * c->waited_ns))
		return false;
	c->waited_ns = waited_ns;
	return true;
}

bool credit_has_room(struct credit *c, uint32_t us,
		     const struct credit_want *want, uint64_t now_ns)
{
	uint32_t drained, out;

	if (!c->page || c->is_off || !shared_load(&c->page->capacity))
		return true;
	drained = shared_load(&c->page->drained[us % CREDIT_SLOTS]);
	follow_page(c, drained, now_ns);
	c->share = find_share(c, drained, now_ns);
	out = c->sent - drained;
	if (!out || out + buffer_cost(want->bytes) <= c->share) {
		c->stalled_ns = 0;
		c->used_ns = now_ns;
		return true;
	}
	return is_out_of_patience(c, want->patience_ns, now_ns);
}

uint32_t credit_more(const struct credit *c, uint32_t us, size_t bytes)
{
	uint32_t out;

	if (c->is_off)
		return UINT32_MAX;
	if (!c->page)
		return 0;
	if (!shared_load(&c->page->capacity))
		return UINT32_MAX;
	out = c->sent - shared_load(&c->page->drained[us % CREDIT_SLOTS]);
	return out < c->share ? (c->share - out) / buffer_cost(bytes) : 0;
}

/* Could the class of the receiver have another page now?  A page that its class
 * has no more shows the capacity 0, or shows no growth of `drained`. */
static bool is_doubtful(const struct credit *c, uint64_t now_ns)
{
	if (c->is_off)
		return false;
	return !shared_load(&c->page->capacity) ||
	       (c->stalled_ns && now_ns - c->stalled_ns > PAGE_NS);
}

/* Asks for the page if the last question is older than pause_ns. */
static bool ask_for_page(struct credit *c, uint64_t pause_ns, uint64_t now_ns)
{
	if (now_ns - c->asked_ns <= pause_ns)
		return false;
	c->asked_ns = now_ns;
	return true;
}

bool credit_waits(struct credit *c, const struct credit_want *want,
		  uint64_t now_ns, bool *ask)
{
	uint64_t most_ns = bits_max_u64(want->patience_ns, PAGE_NS);
	bool waits;

	if (c->page) {
		*ask = is_doubtful(c, now_ns) &&
		       ask_for_page(c, PAGE_NS, now_ns);
		return false;
	}
	if (!c->first_ns)
		c->first_ns = now_ns;
	waits = !c->has_none && !c->is_off && now_ns - c->first_ns < most_ns &&
		c->sent + buffer_cost(want->bytes) > NO_PAGE_BYTES;
	*ask = ask_for_page(c, waits ? ASK_NS : ASK_AGAIN_NS, now_ns);
	return waits;
}

uint64_t credit_look_ns(const struct credit *c, uint64_t now_ns)
{
	uint64_t since = c->page && c->stalled_ns ? now_ns - c->stalled_ns : 0;

	return bits_min_u64(LOOK_MIN_NS + since / 8, LOOK_MAX_NS);
}

void credit_page_is(struct credit *c, const struct credit_page *page)
{
	/* the pages of two owners may have the same generation */
	if (c->page && page && page != c->page)
		c->generation = ~load_generation(page);
	c->page = page;
	c->has_none = !page;
}

void credit_made(struct credit *c)
{
	c->unsent++;
}

void credit_sent(struct credit *c, uint64_t now_ns)
{
	c->unsent--;
	c->marked_ns = now_ns;
	if (c->page)
		c->mark = shared_load(&c->page->empties);
}

void credit_open(struct credit_inbox *in, struct credit_page *page,
		 uint32_t buffer_bytes, bool apart)
{
	in->page = page;
	if (!page || in->is_off)
		return;
	shared_store(&page->apart, apart);
	/* A quarter stays in reserve: after a receive, the kernel may still
	 * charge the bytes to the buffer, up to a quarter of its size. */
	shared_store(&page->capacity, buffer_bytes / 4 * 3);
}

static void count_senders(struct credit_inbox *in)
{
	uint32_t count = 0;

	for (int i = 0; i < CREDIT_CLASSES / 64; i++)
		count += (uint32_t)__builtin_popcountll(in->now[i] |
							in->before[i]);
	shared_store(&in->page->senders, count);
}

static void note_drained(struct credit_inbox *in, uint32_t from,
			 uint64_t now_ns)
{
	uint64_t bit = 1ull << from % 64;
	bool is_new = !((in->now[from / 64] | in->before[from / 64]) & bit);

	in->now[from / 64] |= bit;
	if (now_ns - in->epoch_ns > EPOCH_NS) {
		for (int i = 0; i < CREDIT_CLASSES / 64; i++) {
			in->before[i] = in->now[i];
			in->now[i] = 0;
		}
		in->epoch_ns = now_ns;
		is_new = true;
	}
	if (is_new)
		count_senders(in);
}

void credit_drained(struct credit_inbox *in, uint32_t from, size_t len,
		    size_t segment, uint64_t now_ns)
{
	shared_u32 *drained;

	if (!in->page || in->is_off)
		return;
	from %= CREDIT_CLASSES;
	note_drained(in, from, now_ns);
	drained = &in->page->drained[from % CREDIT_SLOTS];
	shared_store(drained, shared_own(drained) + credit_cost(len, segment));
	in->quiet = 0;
}

void credit_passed(struct credit_inbox *in)
{
	in->quiet = 0;
}

bool credit_owes_look(const struct credit_inbox *in)
{
	return in->page && !in->is_off && in->quiet < EMPTY_LOOKS;
}

void credit_empty(struct credit_inbox *in)
{
	/* After EMPTY_LOOKS polls in a row that receive nothing, the next such
	 * polls do not write the page, so that its cache line stays in the
	 * caches of the readers. */
	if (!credit_owes_look(in))
		return;
	in->quiet++;
	shared_store(&in->page->empties, shared_own(&in->page->empties) + 1);
}

void credit_show(struct credit_page *page,
		 const uint32_t links[HCA_MAX_DEVICES],
		 const struct engine_counters counters[HCA_MAX_DEVICES])
{
	_Static_assert(sizeof(*counters) <= sizeof(page->tallies[0].words),
		       "a page has room for all counters");

	for (uint32_t i = 0; page && i < HCA_MAX_DEVICES && links[i]; i++) {
		page->tallies[i].link = links[i];
		memcpy(page->tallies[i].words, &counters[i], sizeof(*counters));
	}
}
