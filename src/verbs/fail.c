/* SPDX-License-Identifier: BSD-2-Clause */
/* Sentences for verbs that fail: see fail.h. */
#include "verbs/fail.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "host/host.h"
#include "log/log.h"

static const char *const sentences[] = {
	[V_FORKED] = "%s: a forked child must open the device itself",
	[V_NOT_BUILT] = "%s: not built yet, answered as not supported",
	[V_LIMIT] = "%s is beyond what ibv_query_device reports",
	[V_ACCESS] = "registration refused: %s",
	[V_BUSY] = "%s: refused with EBUSY",
	[V_INPUT] = "%s: refused with EINVAL",
	[V_MODIFY] = "ibv_modify_qp refused: %s",
	[V_AH] = "ibv_create_ah refused: %s",
	[V_MCAST] = "joining or leaving a multicast group refused: %s",
	[V_STATE] = "posting refused: the queue pair is in state %s",
	[V_FULL] = "%s is full: poll completions before posting more",
	[V_SYSTEM] = "%s",
};

/* One sentence for each pair; what is always a literal. */
static uint64_t key_of(enum v_cause cause, const char *what)
{
	uint64_t key = 0x7662000000000000ull + (uint64_t)cause;

	for (; *what; what++)
		key = (key ^ (uint8_t)*what) * 0x100000001b3ull;
	return key;
}

int v_fail(int err, enum v_cause cause, const char *what)
{
	char text[256];
	const char *form = sentences[cause];
	const char *hole = strstr(form, "%s");
	size_t before = (size_t)(hole - form);

	text[0] = 0;
	strncat(text, form, before);
	strncat(text, what, sizeof(text) - 1 - strlen(text));
	strncat(text, hole + 2, sizeof(text) - 1 - strlen(text));
	if (cause == V_SYSTEM)
		log_say(key_of(cause, what), "%s: %s", text, strerror(err));
	else
		log_say(key_of(cause, what), "%s", text);
	errno = err;
	return err;
}

int v_fail_try(int err, enum v_cause cause, const char *what)
{
	const char *wish = secure_getenv("ADVERB_EXPLAIN");

	if (wish && strcmp(wish, "2") == 0)
		return v_fail(err, cause, what);
	errno = err;
	return err;
}

void *v_fail_null(int err, enum v_cause cause, const char *what)
{
	v_fail(err, cause, what);
	return NULL;
}

int v_fail_errno(int err, enum v_cause cause, const char *what)
{
	v_fail(err, cause, what);
	return -1;
}
