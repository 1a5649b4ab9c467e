/* SPDX-License-Identifier: BSD-2-Clause */
#include "ipoib/group.h"

#include <string.h>

struct group *group_find(struct group_table *t, const uint8_t mgid[16])
{
	for (uint32_t i = 0; i < GROUP_MAX; i++)
		if (t->all[i].state != GROUP_FREE &&
		    !memcmp(t->all[i].route.gid, mgid, 16))
			return &t->all[i];
	return NULL;
}

struct group *group_add(struct group_table *t, const uint8_t mgid[16],
			uint64_t now_ms)
{
	for (uint32_t i = 0; i < GROUP_MAX; i++) {
		struct group *g = &t->all[i];

		if (g->state != GROUP_FREE)
			continue;
		*g = (struct group){.state = GROUP_OUT, .used_ms = now_ms};
		memcpy(g->route.gid, mgid, 16);
		g->route.qpn = ROUTE_QPN_MULTICAST;
		return g;
	}
	return NULL;
}

void group_remove(struct group *g)
{
	*g = (struct group){.state = GROUP_FREE};
}
