/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of ids. */
#include "rdmacm/explain.h"
#include "rdmacm/object.h"

#include <errno.h>
#include <string.h>

/* Returns whether the id is in the kernel's state IDLE: the id has no address
 * and no destination, and did not come with a connection request. */
static bool is_idle(const struct r_id *id)
{
	return !r_is_bound(id) && !id->state.has_destination &&
	       !id->state.is_passive;
}

/* As with the kernel's cma.c, the option cannot be cleared unless the id is
 * IDLE, and cannot be set while the id listens. */
static int set_reuse(struct r_id *id, bool may_share)
{
	if (may_share ? id->state.is_listening : !is_idle(id))
		return r_fail(
			EINVAL,
			"rdma_set_option: RDMA_OPTION_ID_REUSEADDR cannot "
			"be %s, since the id %s; set the option before "
			"rdma_bind_addr",
			may_share ? "set" : "cleared",
			may_share ? "already listens"
				  : "already has an address");
	id->options.may_share = may_share;
	return 0;
}

/* The kernel lets the option change until the id listens or has a destination.
 * With adverb, an earlier bind to :: or ::1 has already taken the port of IPv4,
 * or left that port to others. */
static int set_family_only(struct r_id *id, bool is_on)
{
	const struct sockaddr *at = &id->base.route.addr.src_addr;

	if (id->state.has_destination || id->state.is_passive ||
	    id->state.is_listening)
		return r_fail(EINVAL,
			      "rdma_set_option: RDMA_OPTION_ID_AFONLY cannot "
			      "be changed, since the id already listens, has a "
			      "destination, or came with a connection request; "
			      "set the option before rdma_listen");
	if (r_is_bound(id) && is_on != id->options.is_family_only &&
	    at->sa_family == AF_INET6 && r_addr_is_open(at))
		return r_fail(EINVAL,
			      "rdma_set_option: RDMA_OPTION_ID_AFONLY cannot "
			      "be changed, since rdma_bind_addr to :: or ::1 "
			      "has %s; set the option before rdma_bind_addr",
			      is_on ? "taken the same port of IPv4, too"
				    : "left the same port of IPv4 to others");
	id->options.is_family_only = is_on;
	return 0;
}

/* As with the kernel's cma.c, only a queue pair whose requests are acknowledged
 * has the timeout. */
static int set_ack_timeout(struct r_id *id, uint8_t timeout)
{
	enum ibv_qp_type type = id->base.qp_type;

	if (type != IBV_QPT_RC && type != IBV_QPT_XRC_SEND)
		return r_fail(EINVAL,
			      "rdma_set_option: RDMA_OPTION_ID_ACK_TIMEOUT is "
			      "for ids with queue pairs of type RC or "
			      "XRC_SEND, and this id has another type; do not "
			      "set the option for this id");
	id->options.ack_timeout = timeout;
	return 0;
}

static int id_option(struct r_id *id, int name, const void *value, size_t size)
{
	bool is_int = size == sizeof(int);
	int number = 0;

	if (is_int)
		memcpy(&number, value, sizeof(number));
	switch (name) {
	case RDMA_OPTION_ID_TOS:
		if (size != 1)
			break;
		id->options.tos = *(const uint8_t *)value;
		return 0;
	case RDMA_OPTION_ID_REUSEADDR:
		if (!is_int)
			break;
		return set_reuse(id, number != 0);
	case RDMA_OPTION_ID_AFONLY:
		if (!is_int)
			break;
		return set_family_only(id, number != 0);
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		if (size != 1 || *(const uint8_t *)value > 31)
			break;
		return set_ack_timeout(id, *(const uint8_t *)value);
	default:
		return r_fail(ENOSYS,
			      "rdma_set_option: option %d of level "
			      "RDMA_OPTION_ID is unknown; the options are TOS, "
			      "REUSEADDR, AFONLY and ACK_TIMEOUT",
			      name);
	}
	return r_fail(EINVAL,
		      "rdma_set_option: the value of option %d has a wrong "
		      "size or is out of range; man rdma_set_option has the "
		      "types and ranges",
		      name);
}

int rdma_set_option(struct rdma_cm_id *id, int level, int optname, void *optval,
		    size_t optlen)
{
	if (level == RDMA_OPTION_ID)
		return id_option(r_id(id), optname, optval, optlen);
	if (level == RDMA_OPTION_IB && optname == RDMA_OPTION_IB_PATH)
		return r_route_given(r_id(id), optval, optlen);
	return r_fail(ENOSYS,
		      "rdma_set_option: option %d of level %d is unknown; the "
		      "levels are RDMA_OPTION_ID, and RDMA_OPTION_IB with "
		      "RDMA_OPTION_IB_PATH",
		      optname, level);
}
