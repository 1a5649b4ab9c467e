/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/thread_state.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_once_t is_made = PTHREAD_ONCE_INIT;
static pthread_key_t state_key;
static bool has_key;

static void make_key(void)
{
	has_key = !pthread_key_create(&state_key, free);
}

struct thread_state *thread_state_get(void)
{
	struct thread_state *s;

	pthread_once(&is_made, make_key);
	if (!has_key)
		return NULL;
	s = pthread_getspecific(state_key);
	if (s)
		return s;
	s = calloc(1, sizeof(*s));
	if (s && pthread_setspecific(state_key, s)) {
		free(s);
		s = NULL;
	}
	return s;
}

const char *thread_state_say(const char *format, ...)
{
	struct thread_state *s = thread_state_get();
	va_list args;

	if (!s)
		return "the broker adverbd lacks memory: end programs";
	va_start(args, format);
	vsnprintf(s->error, sizeof(s->error), format, args);
	va_end(args);
	return s->error;
}
