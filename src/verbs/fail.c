/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of verbs that fail: see fail.h. */
#include "verbs/fail.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "host/host.h"
#include "log/env.h"
#include "log/log.h"

static const char *const sentences[] = {
	[V_FORKED] = "%s fails: the parent of this forked process opened the "
		     "device; open the device in the child too",
	[V_NOT_SUPPORTED] = "not supported: %s; the program must do without it",
	[V_LIMIT] = "%s exceeds the limit that the device reports "
		    "(ibv_query_device_ex, ibv_query_comp_cntr_caps); ask for "
		    "less, or free some first",
	[V_ACCESS] = "the memory is not registered: %s",
	[V_BUSY] = "%s; the call fails with EBUSY until they are gone",
	[V_INPUT] = "invalid argument: %s",
	[V_MODIFY] = "ibv_modify_qp fails: %s",
	[V_CONNECT] = "the queue pair cannot take its connection: %s",
	[V_AH] = "ibv_create_ah fails: %s",
	[V_MCAST] = "ibv_attach_mcast or ibv_detach_mcast fails: %s",
	[V_STATE] = "posting fails: the queue pair is in state %s; call "
		    "ibv_modify_qp first (INIT to receive, RTS to send)",
	[V_FULL] = "posting fails: %s is full; poll completions first, or "
		   "create a deeper queue",
	[V_MEMORY] = "%s fails: no memory is left; free some, or raise ulimit "
		     "-v and -d",
	[V_SYSTEM] = "%s",
};

/* Returns a hash (FNV-1a) of cause and text, by which log_say finds out whether
 * the message was printed before. */
static uint64_t detail_of(enum v_cause cause, const char *what)
{
	uint64_t key = (uint64_t)cause;

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

	/* The text is put together without printf, since compilers warn of a
	 * format that is not a literal. */
	text[0] = 0;
	strncat(text, form, before);
	strncat(text, what, sizeof(text) - 1 - strlen(text));
	strncat(text, hole + 2, sizeof(text) - 1 - strlen(text));
	if (cause == V_SYSTEM)
		log_say(LOG_VERB, detail_of(cause, what), "%s: %s", text,
			strerror(err));
	else
		log_say(LOG_VERB, detail_of(cause, what), "%s", text);
	errno = err;
	return err;
}

bool v_tells_tries(void)
{
	const char *value = env_text("ADVERB_EXPLAIN");

	return value && strcmp(value, "2") == 0;
}

void *v_fail_null(int err, enum v_cause cause, const char *what)
{
	v_fail(err, cause, what);
	return NULL;
}

void *v_fail_number(int err, const char *argument, int64_t number,
		    const char *why)
{
	log_say(LOG_VERB,
		detail_of(V_INPUT, argument) + detail_of(V_INPUT, why),
		"invalid argument: %s %" PRId64 ": %s", argument, number, why);
	errno = err;
	return NULL;
}

int v_fail_errno(int err, enum v_cause cause, const char *what)
{
	v_fail(err, cause, what);
	return -1;
}
