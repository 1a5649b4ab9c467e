/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/link_question.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "fabric/fabric_client.h"
#include "host/link_reach.h"

int link_question_send(struct link_question *q, int control,
		       struct fabric_proto *m)
{
	m->version = FABRIC_PROTO_VERSION;
	m->serial = fabric_client_serial();
	q->kind = m->kind;
	q->number = m->number;
	q->serial = m->serial;
	memcpy(q->gid, m->gid, sizeof(q->gid));
	if (send(control, m, sizeof(*m), MSG_DONTWAIT | MSG_NOSIGNAL) !=
	    sizeof(*m))
		return -errno;
	return 0;
}

bool link_question_is_answer(const struct link_question *q,
			     const struct fabric_proto *m)
{
	if (!q->kind || m->kind != q->kind || m->serial != q->serial ||
	    m->number != q->number)
		return false;
	if (m->kind == FABRIC_PROTO_PORT)
		return fabric_client_is_port(&m->port);
	if (m->kind == FABRIC_PROTO_REACH)
		return m->err || link_reach_is_sound(&m->reached);
	return m->kind == FABRIC_PROTO_ARENA || !memcmp(m->gid, q->gid, 16);
}

bool link_question_is_refused(const struct link_question *q, int err)
{
	return (q->kind == FABRIC_PROTO_JOIN || q->kind == FABRIC_PROTO_REACH ||
		q->kind == FABRIC_PROTO_ARENA) &&
	       err && err != -ECONNRESET && err != -EPROTO;
}

bool link_question_is_late(struct link_question *q,
			   const struct fabric_proto *m, size_t n)
{
	if (!q->late || n != sizeof(*m) || m->version != FABRIC_PROTO_VERSION ||
	    m->serial != q->late)
		return false;
	q->late = 0;
	return true;
}
