/* SPDX-License-Identifier: BSD-2-Clause */
#include "sleeps.h"

#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* sleeps_await looks at the threads once each millisecond.  It returns when at
 * least so many looks in a row have counted the same number of sleeps, and none
 * but the first of these looks has found a thread awake. */
#define LOOKS 20

struct look {
	unsigned long sum; /* how often the threads have gone to sleep */
	bool is_awake;	   /* a thread does not sleep */
};

static void look_at_thread(const char *path, struct look *l)
{
	static const char count[] = "voluntary_ctxt_switches:";
	static const char state[] = "State:\t";
	FILE *f = fopen(path, "re");
	char line[256];

	while (f && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, count, strlen(count)))
			l->sum += strtoul(line + strlen(count), NULL, 10);
		else if (!strncmp(line, state, strlen(state)))
			l->is_awake |= line[strlen(state)] != 'S';
	}
	if (f)
		fclose(f);
}

static struct look look_at_all(void)
{
	struct look l = {0};
	glob_t found;

	if (glob("/proc/self/task/*/status", 0, NULL, &found))
		return l;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		const char *path = found.gl_pathv[i];

		if (atoi(path + strlen("/proc/self/task/")) != getpid())
			look_at_thread(path, &l);
	}
	globfree(&found);
	return l;
}

unsigned long sleeps_count(void)
{
	return look_at_all().sum;
}

void sleeps_await(void)
{
	struct look before = look_at_all(), now;

	for (int looks = 0; looks < LOOKS; looks++) {
		usleep(1000);
		now = look_at_all();
		if (now.is_awake || now.sum != before.sum)
			looks = 0;
		before = now;
	}
}
