/* SPDX-License-Identifier: BSD-2-Clause */
/* IPoIB interfaces, as the fabric knows them: GID, P_Key and broadcast group.
 */
#include "rdmacm/ib.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "rdmacm/explain.h"
#include "util/remedy.h"
#include "wire/neighbour.h"

int r_ib_interface(struct r_id *id, const uint8_t mac[6], struct cmproto *m)
{
	*m = (struct cmproto){.is_ib = true};
	memcpy(m->at.peer, mac, NEIGHBOUR_MAC_BYTES);
	return id->ask_ms
		       ? r_call_within(id, m, CMPROTO_INTERFACE_OF, id->ask_ms)
		       : r_call(id, m, CMPROTO_INTERFACE_OF);
}

/* Does what r_ib_broadcast does, for an id whose address is an IP address. */
static int find_broadcast(struct r_id *id, struct cmproto *m)
{
	const struct sockaddr *from = &id->base.route.addr.src_addr;
	struct neighbour_interface i;
	uint8_t ip[16];
	int err;

	r_addr_ip(from, ip);
	err = neighbour_own(ip, r_addr_scope(from), &i);
	if (err)
		return err == -EADDRNOTAVAIL ? -ENODEV : err;
	err = r_ib_interface(id, i.mac, m);
	if (err)
		return err;
	/* another interface may have the IP address now */
	if (memcmp(m->at.local, id->path.local, 16) != 0)
		return -ENODEV;
	id->path.ifindex = i.ifindex;
	return m->group.mtu ? 0 : -EADDRNOTAVAIL;
}

int r_ib_broadcast(struct r_id *id, struct cmproto *m)
{
	const struct sockaddr *from = &id->base.route.addr.src_addr;
	int cancel, err;

	if (r_addr_is_ib(from) || r_addr_is_open(from))
		return -ENODEV;
	/* A thread that is cancelled here would leak a socket. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	err = find_broadcast(id, m);
	pthread_setcancelstate(cancel, NULL);
	return err;
}

int r_ib_fail_broadcast(const struct r_id *id, const char *call, int err)
{
	char text[R_ADDR_TEXT];

	r_addr_text(&id->base.route.addr.src_addr, text);
	if (err == -ENODEV)
		return r_fail(ENODEV,
			      "%s: the id's address, %s, is not the address of "
			      "an IPoIB interface, whose broadcast group is "
			      "needed; bind the id to such an address (adverb "
			      "ipoib --address)",
			      call, text);
	if (err == -EADDRNOTAVAIL)
		return r_fail(EADDRNOTAVAIL,
			      "%s: the IPoIB interface with the address %s is "
			      "not a member of a broadcast group; start opensm "
			      "on a host of the fabric, with the partition in "
			      "its partitions.conf as ipoib, and wait until "
			      "the interface is up (ip link)",
			      call, text);
	return r_fail(-err,
		      "%s: the IPoIB interface with the address %s cannot be "
		      "found: %s; %s",
		      call, text, strerror(-err),
		      remedy_of(-err, "see by adverb fabric --show whether the "
				      "fabric runs"));
}

/* An id whose address is a GID (AF_IB) has no IPoIB interface. */
int r_ib_take_qkey(struct r_id *id, const char *call)
{
	struct cmproto m;
	int err;

	if (id->base.ps != RDMA_PS_IPOIB ||
	    r_addr_is_ib(&id->base.route.addr.src_addr))
		return 0;
	err = r_ib_broadcast(id, &m);
	if (err)
		return r_ib_fail_broadcast(id, call, err);
	id->own.qkey = m.group.qkey;
	return 0;
}
