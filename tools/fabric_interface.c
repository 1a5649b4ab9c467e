/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric_interface.h"

#include "util/bits.h"

#include <errno.h>
#include <string.h>

#define OF_ALL(l) CONTAINER_OF(l, struct fabric_interface, link)

/* Reads the address in the message; false: no interface can have this
 * address. */
static bool read_address(const struct cmproto *m, struct hwaddr *a)
{
	const struct hwaddr said = {.qpn = m->qp.qpn};
	uint8_t bytes[HWADDR_BYTES];

	hwaddr_write(bytes, &said);
	memcpy(bytes + HWADDR_BYTES - 16, m->at.local, 16);
	return m->qp.qpn < 1u << 24 && hwaddr_parse(bytes, a);
}

void fabric_interface_set(struct list *all, struct fabric_interface *i,
			  const struct cmproto *m)
{
	list_remove(&i->link);
	if (!m->path.pkey || !read_address(m, &i->address))
		return;
	hwaddr_mac(&i->address, i->mac);
	i->pkey = m->path.pkey;
	i->broadcast = m->group;
	list_push_tail(all, &i->link);
}

int fabric_interface_find(const struct list *all, const struct cmproto *m,
			  struct cmproto *reply)
{
	list_for_each (l, all) {
		const struct fabric_interface *i = OF_ALL(l);

		if (memcmp(i->mac, m->at.peer, sizeof(i->mac)) != 0)
			continue;
		memcpy(reply->at.local, i->address.gid, 16);
		reply->path.pkey = i->pkey;
		reply->group = i->broadcast;
		return 0;
	}
	return -ENODEV;
}
