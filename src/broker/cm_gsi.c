/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/cm_gsi.h"

#include "broker/cmserver.h"
#include "broker/gsi.h"

#include "wire/local_ip.h"

static void send_frame(void *user, const struct cm_frame *f)
{
	gsi_send_frame(user, f);
}

static bool is_own(void *user, const uint8_t ip[16])
{
	(void)user;
	return local_ip_is(ip, 0);
}

static void receive_mad(void *user, const struct gsi_mad *m, uint64_t now_ns)
{
	const struct cm_way by = {.scope = m->scope};

	cmserver_receive(user, m->from.ip, m->to.ip, &by, m->bytes, now_ns);
}

struct cmserver *cm_gsi_new(struct gsi *gsi, struct fd_store *fd_store,
			    uint64_t now_ns)
{
	const struct cmserver_wire wire = {
		.user = gsi, .send = send_frame, .is_own = is_own};
	struct cmserver *s = cmserver_new(&wire, fd_store, now_ns);
	const struct gsi_agent agent = {
		.mgmt_class = CMMSG_CLASS, .user = s, .receive = receive_mad};

	if (!s || gsi_attach(gsi, &agent))
		return s;
	cmserver_free(s);
	return NULL;
}
