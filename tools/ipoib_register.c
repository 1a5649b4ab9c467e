/* SPDX-License-Identifier: BSD-2-Clause */
#include "ipoib_register.h"

#include "fabric_group.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fabric/fabric_client.h"

enum { PATIENCE_MS = 10000, SENTENCE = 512 };

void ipoib_register_open(struct ipoib_register *r, const char *name)
{
	const char *path = fabric_client_path();
	char why[SENTENCE];

	*r = (struct ipoib_register){.fd = -1};
	r->connection = fabric_client_open_cm(path, PATIENCE_MS, &r->fd);
	if (r->connection >= 0)
		return;
	fabric_client_explain(path, fabric_client_host(), r->connection, why,
			      sizeof(why));
	fprintf(stderr,
		"adverb: %s: programs cannot use the addresses of the "
		"interface by rdma_cm: %s.\n",
		name, why);
	r->fd = r->connection = -1;
}

/* Does the fabric know the interface as m describes it? */
static bool is_known(const struct ipoib_register *r, const struct cmproto *m)
{
	return r->qpn == m->qp.qpn && r->pkey == m->path.pkey &&
	       !memcmp(r->gid, m->at.local, sizeof(r->gid)) &&
	       !memcmp(&r->broadcast, &m->group, sizeof(r->broadcast));
}

void ipoib_register_tell(struct ipoib_register *r, const uint8_t gid[16],
			 uint32_t qpn, uint16_t pkey,
			 const struct sa_member *broadcast)
{
	struct cmproto m = {.magic = CMPROTO_MAGIC,
			    .version = CMPROTO_VERSION,
			    .kind = CMPROTO_INTERFACE,
			    .is_ib = 1,
			    .qp.qpn = qpn,
			    .path.pkey = pkey};

	memcpy(m.at.local, gid, 16);
	if (broadcast)
		m.group = fabric_group_write(broadcast);
	if (r->fd < 0 || is_known(r, &m))
		return;
	/* After an error the next call sends the message again.  If the fabric
	 * has ended, cut_loop in ipoib_loop.c ends this program. */
	if (send(r->fd, &m, sizeof(m), MSG_DONTWAIT | MSG_NOSIGNAL) !=
	    sizeof(m))
		return;
	memcpy(r->gid, gid, sizeof(r->gid));
	r->qpn = qpn;
	r->pkey = pkey;
	r->broadcast = m.group;
}

void ipoib_register_close(struct ipoib_register *r)
{
	if (r->connection < 0)
		return;
	close(r->fd);
	close(r->connection);
}
