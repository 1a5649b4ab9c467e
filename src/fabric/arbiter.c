/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/arbiter.h"

#include "util/bits.h"

enum {
	NO_VL = 32,
	LIMIT_BLOCKS = 64, /* 4096 bytes, the unit of VLHighLimit */
	NO_LIMIT = 255,
	VL_MASK = 15,
};

static uint32_t vl_at(const uint8_t *table, const struct arbiter_place *place)
{
	return table[2 * place->at] & VL_MASK;
}

static void next_entry(const uint8_t *table, struct arbiter_place *place)
{
	place->at = (uint8_t)((place->at + 1) % ARBITER_ENTRIES);
	place->left = table[2 * place->at + 1];
}

/* Goes to the entry of the table that sends next.  Returns its VL, or NO_VL: no
 * entry with a weight has a VL that is ready. */
static uint32_t find_entry(const uint8_t *table, struct arbiter_place *place,
			   uint32_t ready)
{
	for (int i = 0; i <= ARBITER_ENTRIES; i++) {
		uint32_t vl = vl_at(table, place);

		if (place->left && (ready >> vl & 1))
			return vl;
		next_entry(table, place);
	}
	return NO_VL;
}

static void spend_weight(struct arbiter_place *place, uint32_t blocks)
{
	place->left -= bits_min_u32(place->left, blocks);
}

/* May the table of high priority send although packets of low priority wait?
 * A limit of 0 allows one packet. */
static bool has_precedence(const struct arbiter *a, uint8_t limit)
{
	return limit == NO_LIMIT || !a->high_blocks ||
	       a->high_blocks < (uint32_t)limit * LIMIT_BLOCKS;
}

static uint32_t first_of(uint32_t ready)
{
	return (uint32_t)__builtin_ctz(ready);
}

uint32_t arbiter_pick(struct arbiter *a, const struct arbiter_tables *t,
		      uint32_t ready, const uint32_t blocks[])
{
	uint32_t high = find_entry(t->high, &a->high, ready);
	uint32_t low = find_entry(t->low, &a->low, ready);

	if (high != NO_VL &&
	    (low == NO_VL || has_precedence(a, t->high_limit))) {
		spend_weight(&a->high, blocks[high]);
		a->high_blocks =
			low == NO_VL ? 0 : a->high_blocks + blocks[high];
		return high;
	}
	a->high_blocks = 0;
	if (low == NO_VL)
		return first_of(ready);
	spend_weight(&a->low, blocks[low]);
	return low;
}
