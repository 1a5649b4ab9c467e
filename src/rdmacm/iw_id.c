/* SPDX-License-Identifier: BSD-2-Clause */
/* The objects of iWARP's ids: an id gets an object, the object's socket is
 * bound, and an id that is destroyed loses its object. */
#include "rdmacm/explain.h"
#include "rdmacm/iw_inside.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* Under r_lock: gives the id an object unless the id has one.  Returns 0 or
 * -errno. */
static int make_object(struct r_id *id)
{
	if (!id->iw)
		id->iw = r_iw_new(id);
	return id->iw ? 0 : -errno;
}

int r_iw_make(struct r_id *id)
{
	int err;

	r_take();
	err = make_object(id);
	r_give();
	if (err)
		return r_fail(-err,
			      "rdma_cm: the thread for connections of "
			      "iWARP devices cannot be started: %s; raise "
			      "ulimit -n, -u or -v",
			      strerror(-err));
	return 0;
}

/* Makes a socket for TCP or SCTP, and binds the socket.  Returns 0 or -errno.
 */
static int open_socket(struct r_iw *iw, const struct r_id *id,
		       const struct sockaddr *addr)
{
	int err;

	if (r_iw_uses_sctp())
		return r_iw_sctp_bind(iw, id, addr);
	err = r_iw_socket(iw, id, addr->sa_family);
	return err ? err : r_iw_bind_socket(iw, id, addr);
}

/* Does what r_iw_bind does, under r_lock, for an id that has an object.  After
 * a failure the object stays. */
static int bind_id(struct r_id *id, const struct sockaddr *addr)
{
	struct rdma_addr *a = &id->base.route.addr;
	struct sockaddr_storage got = {0};
	int err = open_socket(id->iw, id, addr);

	if (!err)
		err = r_iw_local(id->iw, &got);
	if (err) {
		r_iw_close_fd(id->iw);
		return err;
	}
	if (addr != &a->src_addr)
		memcpy(&a->src_storage, addr, r_addr_size(addr));
	r_addr_set_port(&a->src_addr, r_addr_port((struct sockaddr *)&got));
	memcpy(&a->addr.ibaddr.sgid, id->path.local, 16);
	return 0;
}

int r_iw_bind(struct r_id *id, const struct sockaddr *addr)
{
	int err;

	r_take();
	err = make_object(id);
	if (!err)
		err = bind_id(id, addr);
	if (err && id->iw) {
		r_iw_free(id->iw);
		id->iw = NULL;
	}
	r_give();
	return err;
}

void r_iw_forget(struct r_id *id)
{
	struct r_iw *iw = id->iw;

	if (!iw)
		return;
	if (!r_iw_is_foreign(iw)) {
		r_iw_leave_listener(iw);
		if (iw->state == R_IW_LISTENING)
			r_iw_drop_halves(iw);
		if (iw->state == R_IW_REQUESTED) {
			r_iw_refuse(iw, NULL, 0);
			return;
		}
	}
	id->iw = NULL;
	r_iw_free(iw);
}

void r_iw_drop(struct r_id *id)
{
	r_take();
	if (id->iw && !r_iw_is_foreign(id->iw))
		r_iw_abort_stream(id->iw);
	r_iw_forget(id);
	r_give();
}
