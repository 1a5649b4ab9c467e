/* SPDX-License-Identifier: BSD-2-Clause */
#include "ipoib/ask.h"

bool ask_is_late(const struct ask *a, uint64_t now_ms)
{
	return a->id && now_ms >= a->due_ms;
}

bool ask_may_begin(const struct ask *a, uint64_t now_ms)
{
	return !a->id && now_ms >= a->retry_ms;
}

void ask_begin(struct ask *a, uint32_t id, uint64_t now_ms)
{
	a->tries = a->id ? a->tries + 1 : 1;
	a->id = id;
	a->due_ms = now_ms + ASK_TRY_MS;
}

void ask_fail(struct ask *a, uint64_t now_ms)
{
	uint64_t pause = ASK_PAUSE_MS;

	for (uint32_t i = 0; i < a->failures && pause < ASK_PAUSE_MOST_MS; i++)
		pause *= 2;
	a->id = 0;
	a->failures++;
	a->retry_ms = now_ms + pause;
}

void ask_reset(struct ask *a)
{
	*a = (struct ask){0};
}

uint64_t ask_deadline(const struct ask *a)
{
	return a->id ? a->due_ms : a->retry_ms;
}
