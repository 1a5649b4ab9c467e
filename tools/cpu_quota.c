/* SPDX-License-Identifier: BSD-2-Clause */
#include "cpu_quota.h"

#include "doctor.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Reads one or two numbers from the first line of the file `name` of a group.
 * Leaves a number as it is if the file has none there. */
static void read_numbers(const char *group, const char *name, long *first,
			 long *second)
{
	char path[PATH_MAX + 32], line[128];

	snprintf(path, sizeof(path), "%s/%s", group, name);
	if (doctor_read_line(path, line, sizeof(line)))
		sscanf(line, "%ld %ld", first, second);
}

/* Returns the group's quota in percent of one processor; 0: it has none. */
static long percent_of(const char *group, bool is_v2)
{
	long quota = -1, period = 0, none;

	if (is_v2) {
		/* the file has "max" in place of a quota if there is none */
		read_numbers(group, "cpu.max", &quota, &period);
	} else {
		read_numbers(group, "cpu.cfs_quota_us", &quota, &none);
		read_numbers(group, "cpu.cfs_period_us", &period, &none);
	}
	if (quota <= 0 || period <= 0 || quota > LONG_MAX / 100)
		return 0;
	return quota * 100 / period ? quota * 100 / period : 1;
}

static long lower_of(long a, long b)
{
	return !a || (b && b < a) ? b : a;
}

/* Returns the lowest quota of the group `path` below `mount` and of the groups
 * above it, up to `mount` itself. */
static long lowest_up_from(const char *mount, const char *path, bool is_v2)
{
	char group[PATH_MAX];
	size_t root = strlen(mount);
	long lowest = 0;
	char *end;

	snprintf(group, sizeof(group), "%s%s", mount, path);
	for (;;) {
		lowest = lower_of(lowest, percent_of(group, is_v2));
		end = strrchr(group, '/');
		if (!end || end < group + root)
			return lowest;
		*end = '\0';
	}
}

/* Does a line of /proc/self/cgroup, such as "4:cpu,cpuacct:/path", name the
 * controller "cpu" of version 1?  controllers: the line without its number and
 * the first ':'. */
static bool has_cpu(const char *controllers)
{
	size_t n;

	for (; *controllers && *controllers != ':'; controllers += n) {
		controllers += *controllers == ',';
		n = strcspn(controllers, ",:");
		if (n == strlen("cpu") && !strncmp(controllers, "cpu", n))
			return true;
	}
	return false;
}

long cpu_quota_percent(const char *mounts, const char *membership)
{
	char line[PATH_MAX], cpu[PATH_MAX];
	FILE *f = fopen(membership, "re");
	long lowest = 0;

	snprintf(cpu, sizeof(cpu), "%s/cpu", mounts);
	while (f && fgets(line, sizeof(line), f)) {
		char *controllers = strchr(line, ':');
		char *path = controllers ? strchr(++controllers, ':') : NULL;
		bool is_v2 = path == controllers;

		if (!path || !(is_v2 || has_cpu(controllers)))
			continue;
		path[strcspn(path, "\n")] = '\0';
		lowest = lower_of(lowest, lowest_up_from(is_v2 ? mounts : cpu,
							 path + 1, is_v2));
	}
	if (f)
		fclose(f);
	return lowest;
}
