/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions that limit the time of a step of a test process. */
#include "step_timeout.h"

#include <signal.h>

static const char *step = "", *reason = "";

static void handle_alarm(int number)
{
	const char *const words[] = {step, ": ", reason, "\n"};

	for (int i = 0; i < 4; i++)
		if (write(1, words[i], strlen(words[i])) < 0)
			_exit(2);
	_exit(1);
}

void step_timeout_watch(const char *why)
{
	reason = why;
	signal(SIGALRM, handle_alarm);
}

void step_timeout_step(const char *what, unsigned seconds)
{
	step = what;
	alarm(seconds);
}
