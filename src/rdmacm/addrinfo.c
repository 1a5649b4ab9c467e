/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_getaddrinfo: resolves names to the addresses that rdma_create_ep
 * takes. */
#include "rdmacm/explain.h"
#include "rdmacm/ib.h"
#include "rdmacm/newer.h"
#include "rdmacm/object.h"

#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#define PKEY 0xffff /* the P_Key in an address that make_gid makes */

void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	r_free_info(res);
}

static int copy_addr(struct sockaddr **to, socklen_t *size,
		     const struct sockaddr *from, socklen_t length)
{
	*to = malloc(length);
	if (!*to)
		return -1;
	memcpy(*to, from, length);
	*size = length;
	return 0;
}

/* Sets the port space and the type of queue pair from the hints.  A hint that
 * is 0 becomes the value that fits the other hint; if both are 0, the result is
 * a connected service: RDMA_PS_TCP and RC. */
static void set_types(struct rdma_addrinfo *r,
		      const struct rdma_addrinfo *hints)
{
	r->ai_port_space = hints->ai_port_space;
	r->ai_qp_type = hints->ai_qp_type;
	if (!r->ai_port_space)
		r->ai_port_space =
			r->ai_qp_type == IBV_QPT_UD ? RDMA_PS_UDP : RDMA_PS_TCP;
	if (!r->ai_qp_type)
		r->ai_qp_type =
			r->ai_port_space == RDMA_PS_UDP ||
					r->ai_port_space == RDMA_PS_IPOIB
				? IBV_QPT_UD
				: IBV_QPT_RC;
}

static bool wants_gid(const struct rdma_addrinfo *hints)
{
	return hints->ai_family == AF_IB;
}

/* Makes an address of the family AF_IB from the GID, which the program has
 * written as an IPv6 address, and from the service ID of the port space and the
 * port.  Without a port the mask leaves the port open. */
static void make_gid(struct sockaddr_ib *ib, const struct addrinfo *a,
		     int space)
{
	const struct sockaddr_in6 *six =
		(const struct sockaddr_in6 *)(void *)a->ai_addr;

	r_addr_make_ib((struct sockaddr *)ib, six->sin6_addr.s6_addr,
		       (uint64_t)space, ntohs(six->sin6_port), PKEY);
	ib->sib_flowinfo = six->sin6_flowinfo;
	ib->sib_scope_id = six->sin6_scope_id;
	ib->sib_sid_mask = htobe64(RDMA_IB_IP_PS_MASK);
	if (six->sin6_port)
		ib->sib_sid_mask |= htobe64(RDMA_IB_IP_PORT_MASK);
}

/* Copies the address that the resolver has found.  Returns 0 or -1. */
static int copy_found(struct rdma_addrinfo *r, const struct addrinfo *a)
{
	bool passive = r->ai_flags & RAI_PASSIVE;
	struct sockaddr **to = passive ? &r->ai_src_addr : &r->ai_dst_addr;
	socklen_t *size = passive ? &r->ai_src_len : &r->ai_dst_len;
	struct sockaddr_ib ib;

	if (r->ai_family != AF_IB)
		return copy_addr(to, size, a->ai_addr, a->ai_addrlen);
	make_gid(&ib, a, r->ai_port_space);
	return copy_addr(to, size, (struct sockaddr *)&ib, sizeof(ib));
}

static struct rdma_addrinfo *make_result(const struct addrinfo *a,
					 const struct rdma_addrinfo *hints)
{
	struct rdma_addrinfo *r = calloc(1, sizeof(*r));
	bool passive = hints->ai_flags & RAI_PASSIVE;
	int err;

	if (!r)
		return NULL;
	r->ai_flags = hints->ai_flags;
	r->ai_family = wants_gid(hints) ? AF_IB : a->ai_family;
	set_types(r, hints);
	err = copy_found(r, a);
	if (!err && !passive && hints->ai_src_len)
		err = copy_addr(&r->ai_src_addr, &r->ai_src_len,
				hints->ai_src_addr, hints->ai_src_len);
	if (!err && a->ai_canonname) {
		char **name =
			passive ? &r->ai_src_canonname : &r->ai_dst_canonname;

		*name = strdup(a->ai_canonname);
		err = *name ? 0 : -1;
	}
	if (!err)
		return r;
	r_free_info(r);
	return NULL;
}

static int fail_memory(void)
{
	return r_fail(ENOMEM, "rdma_getaddrinfo: no memory is left; free some, "
			      "or raise ulimit -v and -d");
}

/* Makes a list of the results that are IP addresses, in the resolver's order.
 * Returns 0 with the list in *res, or -1 and errno with a message. */
static int make_list(const struct addrinfo *found,
		     const struct rdma_addrinfo *hints,
		     struct rdma_addrinfo **res)
{
	struct rdma_addrinfo *first = NULL, **tail = &first;

	for (; found; found = found->ai_next) {
		if (!r_addr_is_known(found->ai_addr))
			continue;
		*tail = make_result(found, hints);
		if (!*tail) {
			r_free_info(first);
			return fail_memory();
		}
		tail = &(*tail)->ai_next;
	}
	*res = first;
	return 0;
}

/* Returns the hints of getaddrinfo(3) that correspond to those of
 * rdma_getaddrinfo.  For datagram queue pairs the service is one of UDP, else
 * of TCP: the resolver knows some services for only one of the two protocols.
 * As in rdma-core, a family of IP counts also without RAI_FAMILY. */
static struct addrinfo make_question(const struct rdma_addrinfo *hints)
{
	struct rdma_addrinfo types = {0};
	struct addrinfo ask = {.ai_family = hints->ai_family};

	set_types(&types, hints);
	ask.ai_socktype =
		types.ai_qp_type == IBV_QPT_UD ? SOCK_DGRAM : SOCK_STREAM;
	if (hints->ai_flags & RAI_PASSIVE)
		ask.ai_flags |= AI_PASSIVE;
	if (hints->ai_flags & RAI_NUMERICHOST)
		ask.ai_flags |= AI_NUMERICHOST;
	if (wants_gid(hints)) {
		ask.ai_family = AF_INET6;
		ask.ai_flags |= AI_NUMERICHOST;
	}
	return ask;
}

/* Returns the family of the hints, or else that of their address. */
static int family_of(const struct rdma_addrinfo *hints)
{
	const struct sockaddr *addr =
		hints->ai_dst_len ? hints->ai_dst_addr : hints->ai_src_addr;

	return hints->ai_family ? hints->ai_family : addr->sa_family;
}

/* Makes the result from the hints alone, if there is no name to resolve. */
static int from_hints(const struct rdma_addrinfo *hints,
		      struct rdma_addrinfo **res)
{
	struct rdma_addrinfo *r = calloc(1, sizeof(*r));
	int err = 0;

	if (!r)
		return fail_memory();
	r->ai_flags = hints->ai_flags;
	r->ai_family = family_of(hints);
	set_types(r, hints);
	if (hints->ai_dst_len)
		err = copy_addr(&r->ai_dst_addr, &r->ai_dst_len,
				hints->ai_dst_addr, hints->ai_dst_len);
	if (!err && hints->ai_src_len)
		err = copy_addr(&r->ai_src_addr, &r->ai_src_len,
				hints->ai_src_addr, hints->ai_src_len);
	if (err) {
		r_free_info(r);
		return fail_memory();
	}
	*res = r;
	return 0;
}

int rdma_getaddrinfo(const char *node, const char *service,
		     const struct rdma_addrinfo *hints,
		     struct rdma_addrinfo **res)
{
	static const struct rdma_addrinfo none;
	struct addrinfo ask, *found;
	int err;

	if (!hints)
		hints = &none;
	if (!node && !service && !hints->ai_dst_len && !hints->ai_src_len)
		return r_fail(EINVAL, "rdma_getaddrinfo needs a node, a "
				      "service or an address in hints");
	if (wants_gid(hints) && !r_ib_is_used())
		return r_fail(EAFNOSUPPORT,
			      "rdma_getaddrinfo: this host has no InfiniBand "
			      "device, so there are no addresses of the family "
			      "AF_IB; use an IPv4 or IPv6 address, or run the "
			      "program on a host of a fabric (adverb run "
			      "--fabric)");
	if (r_devices())
		return -1;
	if (!node && !service)
		return from_hints(hints, res);
	ask = make_question(hints);
	err = getaddrinfo(node, service, &ask, &found);
	if (err) {
		r_say("rdma_getaddrinfo: node %s, service %s cannot be "
		      "resolved: %s; check the name and the service",
		      node ? node : "any", service ? service : "any",
		      gai_strerror(err));
		/* getaddrinfo sets errno for EAI_SYSTEM only, but programs read
		 * the errno of every call of librdmacm. */
		if (err != EAI_SYSTEM)
			errno = err == EAI_MEMORY ? ENOMEM : EINVAL;
		return err;
	}
	err = make_list(found, hints, res);
	freeaddrinfo(found);
	return err;
}

/* This function resolves the name before it returns; rdma-core's resolves the
 * name later.  In either case the result is an event. */
int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node,
			  const char *service,
			  const struct rdma_addrinfo *hints)
{
	struct rdma_addrinfo *info = NULL;
	bool is_sync = r_id(id)->is_sync;
	bool failed = rdma_getaddrinfo(node, service, hints, &info) != 0;

	r_free_info(r_id(id)->info);
	r_id(id)->info = info;
	if (r_post_local(r_id(id),
			 (enum rdma_cm_event_type)(
				 failed ? NEWER_EVENT_ADDRINFO_ERROR
					: NEWER_EVENT_ADDRINFO_RESOLVED),
			 failed ? -EINVAL : 0))
		return -1;
	return is_sync ? r_complete(r_id(id)) : 0;
}

int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info)
{
	if (!r_id(id)->info)
		return r_fail(ENODATA, "rdma_query_addrinfo: the id has no "
				       "result of rdma_resolve_addrinfo, or "
				       "the program has taken the result; call "
				       "rdma_resolve_addrinfo first");
	*info = r_id(id)->info;
	r_id(id)->info = NULL;
	return 0;
}
