/* SPDX-License-Identifier: BSD-2-Clause */
/* The SO_REUSEPORT group of a broker, for tests without a broker. */
#ifndef TESTS_UNIT_ONE_GROUP_H
#define TESTS_UNIT_ONE_GROUP_H

#include "brokers.h"

#include "broker/reuseport_group.h"

static struct reuseport_group group;

/* Begins a group with one class, which this process has. */
static inline void begin_group(void)
{
	const char *why = "";
	uint32_t class;

	reuseport_group_init(&group, true);
	if (reuseport_group_take(&group, geteuid(), getpid(), 1, &why, &class))
		fail_msg("%s", why);
}

static inline int end_group(void **state)
{
	reuseport_group_close(&group);
	return 0;
}

static inline int setup_group(void **state)
{
	reuseport_group_init(&group, true);
	return enter_namespace(state);
}

#endif
