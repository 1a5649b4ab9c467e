/* SPDX-License-Identifier: BSD-2-Clause */
#include "ipoib_register.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "broker/cmproto.h"
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

void ipoib_register_tell(struct ipoib_register *r, const uint8_t gid[16],
			 uint32_t qpn, uint16_t pkey)
{
	struct cmproto m = {.magic = CMPROTO_MAGIC,
			    .version = CMPROTO_VERSION,
			    .kind = CMPROTO_INTERFACE,
			    .is_ib = 1,
			    .qp.qpn = qpn,
			    .path.pkey = pkey};

	if (r->fd < 0 || (r->qpn == qpn && r->pkey == pkey &&
			  !memcmp(r->gid, gid, sizeof(r->gid))))
		return;
	memcpy(m.at.local, gid, 16);
	/* An error but EAGAIN means that the fabric has ended, which the loop
	 * notices elsewhere. */
	if (send(r->fd, &m, sizeof(m), MSG_DONTWAIT | MSG_NOSIGNAL) !=
	    sizeof(m))
		return;
	memcpy(r->gid, gid, sizeof(r->gid));
	r->qpn = qpn;
	r->pkey = pkey;
}

void ipoib_register_close(struct ipoib_register *r)
{
	if (r->connection < 0)
		return;
	close(r->fd);
	close(r->connection);
}
