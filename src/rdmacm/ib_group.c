/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Joins multicast groups by the fabric, and leaves them.  For an id with an
 * address of an IPoIB interface, the broadcast group of the interface gives the
 * parameters of a new group.  An id with a GID joins groups by their GIDs, and
 * the subnet administration chooses the parameters.  (The kernel's rdma_cm
 * refuses the joins of such ids, since they have no broadcast group.)
 */
#include "rdmacm/ib.h"

#include <errno.h>
#include <string.h>

#include "hdr/sa.h"
#include "rdmacm/explain.h"
#include "util/fd_identity.h"
#include "util/remedy.h"
#include "wire/neighbour.h"

/* Fills in the request to join. */
static void put_request(const struct r_id *id, const struct r_multicast *m,
			struct cmproto *r)
{
	const struct sockaddr *group = (const struct sockaddr *)&m->addr;

	memcpy(r->at.local, id->path.local, 16);
	r_ib_choose_gid(id, group, r->at.peer);
	r->group.qkey = id->own.qkey;
	r->group.join_state =
		m->only_sends ? SA_JOIN_FULL_SENDER : SA_JOIN_FULL;
	r->group.is_shared = m->kernel_fd >= 0;
	r->call_id = m->number;
}

/* If IP uses the group, and the program does not only send, makes the kernel a
 * member of the group.  Without this membership, adverb-ipoib would take the
 * port out of the group as soon as the kernel had no other member.  Returns 0,
 * or -1 and errno with a message. */
static int join_kernel(const struct r_id *id, struct r_multicast *m)
{
	const struct sockaddr *group = (const struct sockaddr *)&m->addr;
	char text[R_ADDR_TEXT];
	uint8_t ip[16];
	int fd;

	if (m->only_sends || !r_ib_is_of_ip(id, group))
		return 0;
	r_addr_ip(group, ip);
	fd = fd_identity_note(neighbour_join(id->path.ifindex, ip));
	if (fd < 0)
		return r_fail(-fd,
			      "rdma_join_multicast: the kernel does not join "
			      "the group %s at the IPoIB interface: %s; %s",
			      r_addr_text(group, text), strerror(-fd),
			      remedy_of(-fd, "check by ip link that the "
					     "interface exists and is up"));
	m->kernel_fd = fd;
	return 0;
}

/* Adds the group to the id, and sends the request.  Returns 0, or -1 and errno
 * with a message; then the id does not have the group. */
static int send_request(struct r_id *id, struct r_multicast *m,
			struct cmproto *r)
{
	static uint32_t last_number; /* under r_lock */
	int err;

	r_take();
	m->number = ++last_number;
	list_push_tail(&id->multicasts, &m->link);
	r_give();
	put_request(id, m, r);
	err = r_request(id, r, CMPROTO_JOIN);
	if (!err)
		return 0;
	r_take();
	list_remove(&m->link);
	r_give();
	return r_fail(-err,
		      "rdma_join_multicast: the fabric cannot be asked to join "
		      "the group: %s",
		      strerror(-err));
}

/* The part of r_ib_join that must not be cancelled.  Returns 0, or -1 and errno
 * with a message. */
static int join_apart(struct r_id *id, struct r_multicast *m, struct cmproto *r)
{
	if (join_kernel(id, m))
		return -1;
	if (!send_request(id, m, r))
		return 0;
	fd_identity_close(m->kernel_fd);
	m->kernel_fd = -1;
	return -1;
}

/* Begins the request of an id with a GID.  Returns 0, or -1 and errno with a
 * message. */
static int begin_by_gid(const struct r_id *id, const struct sockaddr *group,
			struct cmproto *r)
{
	if (!r_addr_is_ib(group) ||
	    !(r_addr_is_any(group) || r_addr_is_multicast(group)))
		return r_fail(EADDRNOTAVAIL,
			      "rdma_join_multicast: the id has a GID, so it "
			      "joins groups by their GIDs (AF_IB, of ff00::/8, "
			      "or all zeroes); for a group of IP, bind the id "
			      "to the address of an IPoIB interface (adverb "
			      "ipoib --address)");
	*r = (struct cmproto){.is_ib = true};
	r->path.pkey = r_ib_pkey(id);
	r->group.traffic_class = id->options.tos;
	return 0;
}

/* Begins the request of an id with an address of IP.  Returns 0, or -1 and
 * errno with a message. */
static int begin_by_ip(struct r_id *id, struct cmproto *r)
{
	int err = r_ib_broadcast(id, r);

	if (err)
		return r_ib_fail_broadcast(id, "rdma_join_multicast", err);
	if (id->base.ps == RDMA_PS_IPOIB)
		id->own.qkey = r->group.qkey;
	return 0;
}

int r_ib_join(struct r_id *id, struct r_multicast *m)
{
	const struct sockaddr *group = (const struct sockaddr *)&m->addr;
	bool has_gid = r_addr_is_ib(&id->base.route.addr.src_addr);
	struct cmproto r;
	int cancel, err;

	if (has_gid ? begin_by_gid(id, group, &r) : begin_by_ip(id, &r))
		return -1;
	/* A thread that is cancelled here would leak a socket. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	err = join_apart(id, m, &r);
	pthread_setcancelstate(cancel, NULL);
	return err;
}

void r_ib_leave(struct r_multicast *m)
{
	struct cmproto r = {.call_id = m->number};

	if (!m->number)
		return;
	r_take();
	r_tell_message(&r, CMPROTO_LEAVE, 0);
	fd_identity_close(m->kernel_fd);
	r_give();
}
