/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/user_map.h"

#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#define OVERFLOW_UID 65534 /* Linux's default */

/* Returns whether this user namespace maps every user to the same number, as
 * the initial user namespace does.  Without /proc, or without user namespaces,
 * the namespace counts as the initial one. */
static bool has_every_user(void)
{
	FILE *f = fopen("/proc/self/uid_map", "re");
	unsigned long long first, outside, count;
	bool is_whole = !f;

	if (f && fscanf(f, "%llu %llu %llu", &first, &outside, &count) == 3)
		is_whole = !first && !outside && count == UINT32_MAX;
	if (f)
		fclose(f);
	return is_whole;
}

static uid_t overflow_user(void)
{
	FILE *f = fopen("/proc/sys/kernel/overflowuid", "re");
	unsigned user = OVERFLOW_UID;

	if (f && fscanf(f, "%u", &user) != 1)
		user = OVERFLOW_UID;
	if (f)
		fclose(f);
	return (uid_t)user;
}

bool user_map_is_one(uid_t user)
{
	return user != overflow_user() || has_every_user();
}

bool user_map_is_own(uid_t user)
{
	return user == geteuid() && user_map_is_one(user);
}
