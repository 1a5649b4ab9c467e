/* SPDX-License-Identifier: BSD-2-Clause */
#include "shim/nldev.h"

#include <errno.h>
#include <rdma/rdma_netlink.h>
#include <string.h>

#define GET	 RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET)
#define PORT_GET RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_PORT_GET)
#define NOTHING	 (-1) /* no such attribute */
#define RNIC	 4    /* the kernel's node type of iWARP devices */

static const char sentence[] =
	"adverb answers only requests for devices and links";

/* Appends @bytes zero bytes to the answer, padded to NLMSG_ALIGNTO.  NULL:
 * there is no room. */
static void *take_room(struct nldev_answer *a, size_t bytes)
{
	void *room = a->bytes + a->size;
	size_t all = NLMSG_ALIGN(bytes);

	if (all > sizeof(a->bytes) - a->size)
		return NULL;
	memset(room, 0, all);
	a->size += all;
	return room;
}

/* Begins a message with `bytes` zero bytes after its header.  NULL: there is no
 * room for both. */
static struct nlmsghdr *begin_message(struct nldev_answer *a, uint16_t type,
				      uint16_t flags,
				      const struct nlmsghdr *request,
				      size_t bytes)
{
	struct nlmsghdr *h = take_room(a, NLMSG_HDRLEN + bytes);

	if (h)
		*h = (struct nlmsghdr){.nlmsg_type = type,
				       .nlmsg_flags = flags,
				       .nlmsg_seq = request->nlmsg_seq,
				       .nlmsg_pid = a->portid};
	return h;
}

static void end_message(const struct nldev_answer *a, struct nlmsghdr *h)
{
	h->nlmsg_len = (uint32_t)(a->bytes + a->size - (const char *)h);
}

static void put_attr(struct nldev_answer *a, uint16_t type, const void *value,
		     size_t bytes)
{
	struct nlattr *attr = take_room(a, NLA_HDRLEN + bytes);

	if (!attr)
		return;
	attr->nla_type = type;
	attr->nla_len = (uint16_t)(NLA_HDRLEN + bytes);
	memcpy((char *)attr + NLA_HDRLEN, value, bytes);
}

static void put_u8(struct nldev_answer *a, uint16_t type, uint8_t value)
{
	put_attr(a, type, &value, sizeof(value));
}

static void put_u32(struct nldev_answer *a, uint16_t type, uint32_t value)
{
	put_attr(a, type, &value, sizeof(value));
}

static void put_u64(struct nldev_answer *a, uint16_t type, uint64_t value)
{
	put_attr(a, type, &value, sizeof(value));
}

static void put_text(struct nldev_answer *a, uint16_t type, const char *text)
{
	put_attr(a, type, text, strlen(text) + 1);
}

/* Puts an NLMSG_ERROR message with the request's header; err 0 acknowledges the
 * request (netlink(7)). */
static void put_error(struct nldev_answer *a, const struct nlmsghdr *request,
		      int err, const char *why)
{
	bool explains = why && a->explains;
	uint16_t flags =
		explains ? NLM_F_CAPPED | NLM_F_ACK_TLVS : NLM_F_CAPPED;
	struct nlmsgerr *e;
	struct nlmsghdr *h =
		begin_message(a, NLMSG_ERROR, flags, request, sizeof(*e));

	if (!h)
		return;
	e = NLMSG_DATA(h);
	e->error = err;
	e->msg = *request;
	if (explains)
		put_text(a, NLMSGERR_ATTR_MSG, why);
	end_message(a, h);
}

static void put_done(struct nldev_answer *a, const struct nlmsghdr *request,
		     int err)
{
	struct nlmsghdr *h =
		begin_message(a, NLMSG_DONE, NLM_F_MULTI, request, sizeof(err));

	if (!h)
		return;
	memcpy(NLMSG_DATA(h), &err, sizeof(err));
	end_message(a, h);
}

/* Returns the value of a 32-bit attribute of the request, or NOTHING. */
static int64_t find_attr(const struct nlmsghdr *request, uint16_t type)
{
	const char *at = (const char *)request + NLMSG_HDRLEN;
	size_t left = request->nlmsg_len - NLMSG_HDRLEN;
	struct nlattr attr;
	uint32_t value;

	while (left >= sizeof(attr)) {
		size_t all;

		memcpy(&attr, at, sizeof(attr));
		all = NLA_ALIGN((size_t)attr.nla_len);
		if (attr.nla_len < NLA_HDRLEN || attr.nla_len > left)
			break;
		if ((attr.nla_type & NLA_TYPE_MASK) == type &&
		    attr.nla_len == NLA_HDRLEN + sizeof(value)) {
			memcpy(&value, at + NLA_HDRLEN, sizeof(value));
			return value;
		}
		if (all >= left)
			break;
		at += all;
		left -= all;
	}
	return NOTHING;
}

/* port: the number of ports of a device, or the number of a port. */
static void put_handle(struct nldev_answer *a, const struct device *d,
		       uint32_t port)
{
	put_u32(a, RDMA_NLDEV_ATTR_DEV_INDEX, d->index);
	put_text(a, RDMA_NLDEV_ATTR_DEV_NAME, d->name);
	put_u32(a, RDMA_NLDEV_ATTR_PORT_INDEX, port);
}

/* Puts the attributes that the kernel gives a device, except the capability
 * flags, which the sysfs tree (shim/device.h) lacks. */
static void put_device(struct nldev_answer *a, const struct device *d)
{
	put_handle(a, d, d->port_count);
	put_text(a, RDMA_NLDEV_ATTR_FW_VERSION, d->firmware);
	put_u64(a, RDMA_NLDEV_ATTR_NODE_GUID, d->node_guid);
	put_u64(a, RDMA_NLDEV_ATTR_SYS_IMAGE_GUID, d->image_guid);
	put_u8(a, RDMA_NLDEV_ATTR_DEV_NODE_TYPE, d->node_type);
	put_u8(a, RDMA_NLDEV_ATTR_DEV_DIM, 0);
	put_text(a, RDMA_NLDEV_ATTR_DEV_PROTOCOL,
		 d->is_ib		? "ib"
		 : d->node_type == RNIC ? "iw"
					: "roce");
}

/* Puts the attributes that the kernel gives ports of InfiniBand alone. */
static void put_subnet(struct nldev_answer *a, const struct device_port *p)
{
	put_u64(a, RDMA_NLDEV_ATTR_CAP_FLAGS, p->capabilities);
	put_u64(a, RDMA_NLDEV_ATTR_SUBNET_PREFIX, p->gid_prefix);
	put_u32(a, RDMA_NLDEV_ATTR_LID, p->lid);
	put_u32(a, RDMA_NLDEV_ATTR_SM_LID, p->sm_lid);
	put_u8(a, RDMA_NLDEV_ATTR_LMC, p->lmc);
}

/* Puts the attributes that the kernel gives a port, of which RoCE and iWARP
 * have fewer than InfiniBand. */
static void put_port(struct nldev_answer *a, const struct device *d,
		     uint32_t port)
{
	const struct device_port *p = &d->ports[port - 1];

	put_handle(a, d, port);
	if (d->is_ib)
		put_subnet(a, p);
	put_u8(a, RDMA_NLDEV_ATTR_PORT_STATE, p->state);
	put_u8(a, RDMA_NLDEV_ATTR_PORT_PHYS_STATE, p->phys_state);
	if (!d->ifindex)
		return;
	put_u32(a, RDMA_NLDEV_ATTR_NDEV_INDEX, d->ifindex);
	put_text(a, RDMA_NLDEV_ATTR_NDEV_NAME, d->netdev);
}

/* Puts the message about a device or, if ports are requested, about the port
 * with the number `port`. */
static void put_one(struct nldev_answer *a, const struct nlmsghdr *request,
		    const struct device *d, uint32_t port, uint16_t flags)
{
	struct nlmsghdr *h =
		begin_message(a, request->nlmsg_type, flags, request, 0);

	if (!h)
		return;
	if (request->nlmsg_type == GET)
		put_device(a, d);
	else
		put_port(a, d, port);
	end_message(a, h);
}

/* Dumps all devices; or all ports of one device, whose index must be in the
 * request, as the kernel also requires. */
static void dump_devices(struct nldev_answer *a, const struct nlmsghdr *request,
			 const struct device *devices, uint32_t count)
{
	bool all = request->nlmsg_type == GET;
	int64_t index = find_attr(request, RDMA_NLDEV_ATTR_DEV_INDEX);
	int err = all || index < count ? 0 : -ENODEV;

	if (!all && index == NOTHING)
		err = -EINVAL;
	for (uint32_t i = 0; i < count && !err; i++) {
		uint32_t last = all ? 1 : devices[i].port_count;

		for (uint32_t port = 1; port <= last; port++)
			if (all || devices[i].index == index)
				put_one(a, request, &devices[i], port,
					NLM_F_MULTI);
	}
	put_done(a, request, err);
}

static void get_device(struct nldev_answer *a, const struct nlmsghdr *request,
		       const struct device *devices, uint32_t count)
{
	int64_t index = find_attr(request, RDMA_NLDEV_ATTR_DEV_INDEX);
	int64_t port = request->nlmsg_type == PORT_GET
			       ? find_attr(request, RDMA_NLDEV_ATTR_PORT_INDEX)
			       : 1;

	if (index == NOTHING || index >= count || port < 1 ||
	    port > devices[index].port_count) {
		put_error(a, request, -EINVAL, NULL);
		return;
	}
	put_one(a, request, &devices[index], (uint32_t)port, 0);
	if (request->nlmsg_flags & NLM_F_ACK)
		put_error(a, request, 0, NULL);
}

void nldev_answer(struct nldev_answer *a, const struct nlmsghdr *request,
		  const struct device *devices, uint32_t count)
{
	uint16_t type = request->nlmsg_type;

	if (type < NLMSG_MIN_TYPE || !(request->nlmsg_flags & NLM_F_REQUEST)) {
		if (request->nlmsg_flags & NLM_F_ACK)
			put_error(a, request, 0, NULL);
	} else if (type != GET && type != PORT_GET) {
		put_error(a, request, -EOPNOTSUPP, sentence);
	} else if ((request->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP) {
		dump_devices(a, request, devices, count);
	} else {
		get_device(a, request, devices, count);
	}
}
