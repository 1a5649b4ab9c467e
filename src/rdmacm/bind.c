/* SPDX-License-Identifier: BSD-2-Clause */
/* Binds ids to addresses, for the devices that have these addresses. */
#include "rdmacm/explain.h"
#include "rdmacm/ib.h"
#include "rdmacm/iw.h"
#include "rdmacm/object.h"

#include <errno.h>
#include <string.h>

/* If the broker chooses the port: at most this many ports of the broker are
 * tried until one is also free with TCP or SCTP. */
#define PORT_TRIES 16

/* The members of an id that a bind sets before it has succeeded. */
struct was_bound {
	struct r_device *device;
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	uint8_t port_num;
	struct r_path path;
	struct rdma_addr addr;
};

static struct was_bound save_id(const struct r_id *id)
{
	return (struct was_bound){.device = id->device,
				  .verbs = id->base.verbs,
				  .pd = id->base.pd,
				  .port_num = id->base.port_num,
				  .path = id->path,
				  .addr = id->base.route.addr};
}

/* Undoes a bind that has failed.  If the id kept the device, a later bind to an
 * open address (r_addr_is_open) would bind the id at that device only. */
static void restore_id(struct r_id *id, const struct was_bound *was)
{
	id->device = was->device;
	id->base.verbs = was->verbs;
	id->base.pd = was->pd;
	id->base.port_num = was->port_num;
	id->path = was->path;
	id->base.route.addr = was->addr;
}

/* Gives the id the device that has the address.  Returns 0, or -1 and errno
 * with a message. */
static int take_device(struct r_id *id, const struct sockaddr *addr)
{
	struct r_device *d;
	uint8_t ip[16];

	if (r_ib_is_ip(addr))
		return r_ib_take_ip(id, addr);
	r_addr_ip(addr, ip);
	d = r_device_find(ip, r_transports(id), &id->path);
	if (!d)
		return r_fail_device(
			id, addr,
			"rdma_cm: %s is no address of an RDMA "
			"device of this host; ibv_devinfo -v shows "
			"the devices");
	r_device_use(id, d);
	memcpy(id->path.local, ip, 16);
	return 0;
}

/*
 * Checks a bind before the broker is asked.  With `takes`, the id gets the
 * device that has the address.  Returns 0, or -1 and errno with a message.
 */
static int may_bind(struct r_id *id, const struct sockaddr *addr, bool takes)
{
	if (id->state.is_binding)
		return r_fail(EINVAL,
			      "rdma_cm: the id cannot be bound, since "
			      "its rdma_resolve_addr has not ended yet; "
			      "wait for ADDR_RESOLVED or ADDR_ERROR");
	if (r_ib_check_space(id, addr))
		return -1;
	return takes ? take_device(id, addr) : 0;
}

/* As r_bind_later, but a failure leaves the id changed. */
static int request_bind(struct r_id *id, const struct sockaddr *addr,
			bool *later)
{
	struct cmproto m = {0};
	int err;

	if (may_bind(id, addr, true) || (r_is_iwarp(id) && r_iw_make(id)))
		return -1;
	r_bind_message(id, addr, &m);
	r_set_bound(id, addr, 0);
	if (r_is_iwarp(id))
		return 0; /* connect(2) chooses the port */
	id->state.is_binding = true;
	*later = true;
	err = r_request(id, &m, CMPROTO_BIND);
	if (!err)
		return 0;
	id->state.is_binding = false;
	return r_fail(-err,
		      "rdma_cm: the %s cannot be asked to bind a port: %s",
		      r_ib_server(), r_reason(-err));
}

int r_bind_later(struct r_id *id, const struct sockaddr *addr, bool *later)
{
	const struct was_bound was = save_id(id);

	if (!request_bind(id, addr, later))
		return 0;
	restore_id(id, &was);
	return -1;
}

/* Binds the id at the broker.  Returns 0 or -errno. */
static int bind_roce(struct r_id *id, const struct sockaddr *addr)
{
	struct cmproto m = {0};

	r_bind_message(id, addr, &m);
	r_set_bound(id, addr, r_addr_port(addr));
	return r_call(id, &m, CMPROTO_BIND);
}

static void release_roce(struct r_id *id)
{
	r_take();
	r_release(id);
	r_give();
}

/* Binds the id to the same port at the broker and with TCP or SCTP.  Returns 0
 * or -errno.  -EADDRINUSE: the port is in use at the broker, or with TCP or
 * SCTP.  Even a port that the broker has chosen may be in use with TCP or SCTP.
 */
static int bind_both(struct r_id *id, const struct sockaddr *addr)
{
	struct sockaddr_storage at;
	int err = bind_roce(id, addr);

	if (err)
		return err;
	memcpy(&at, addr, r_addr_size(addr));
	r_addr_set_port((struct sockaddr *)&at,
			r_addr_port(&id->base.route.addr.src_addr));
	err = r_iw_bind(id, (struct sockaddr *)&at);
	if (err)
		release_roce(id);
	return err;
}

/* Binds the id for the devices that it can have.  Returns 0 or -errno. */
static int bind_id(struct r_id *id, const struct sockaddr *addr)
{
	bool is_iwarp =
		r_is_iwarp(id) || (!id->device && r_transports(id) == R_ANY &&
				   r_device_exists(R_IWARP));
	int err = -EADDRINUSE;

	if (!is_iwarp)
		return bind_roce(id, addr);
	if (id->device || !r_device_exists(R_ROCE))
		return r_iw_bind(id, addr);
	for (int i = 0; err == -EADDRINUSE && i < PORT_TRIES; i++) {
		err = bind_both(id, addr);
		if (r_addr_port(addr))
			break;
	}
	return err;
}

/* As r_bind, but a failure leaves the id changed. */
static int bind_now(struct r_id *id, const struct sockaddr *addr)
{
	char text[R_ADDR_TEXT];
	int err;

	if (may_bind(id, addr, !r_addr_is_open(addr)))
		return -1;
	if (!r_device_exists(r_transports(id)) && r_device_exists(R_IWARP))
		return r_fail_device(id, addr,
				     "rdma_cm: %s cannot be bound: there is no "
				     "device");
	err = bind_id(id, addr);
	if (!err)
		return 0;
	if (err == -EACCES)
		return r_fail(EACCES,
			      "rdma_cm: %s cannot be bound: " R_LOW_PORT,
			      r_addr_text(addr, text));
	if (err == -EADDRINUSE)
		return r_fail(EADDRINUSE,
			      "rdma_cm: %s is in use by another id%s, of this "
			      "program or of another program; choose another "
			      "port",
			      r_addr_text(addr, text),
			      r_device_exists(R_IWARP)
				      ? " or by a TCP socket (iWARP uses TCP's "
					"ports)"
				      : "");
	return r_fail(-err, "rdma_cm: %s cannot be bound: %s",
		      r_addr_text(addr, text), r_reason(-err));
}

int r_bind(struct r_id *id, const struct sockaddr *addr)
{
	const struct was_bound was = save_id(id);

	if (!bind_now(id, addr))
		return 0;
	restore_id(id, &was);
	return -1;
}

int rdma_bind_addr(struct rdma_cm_id *base, struct sockaddr *addr)
{
	struct r_id *id = r_id(base);

	if (r_addr_check(addr, "rdma_bind_addr"))
		return -1;
	if (r_is_bound(id))
		return r_fail(EINVAL,
			      "rdma_bind_addr: the id already has an address "
			      "(rdma_get_local_addr); create another id");
	return r_bind(id, addr);
}
