/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/link_question.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fabric/fabric_client.h"
#include "host/link_reach.h"

int link_question_send(struct link_question *q, int control,
		       struct fabric_proto *m)
{
	m->version = FABRIC_PROTO_VERSION;
	m->serial = fabric_client_serial();
	q->asked = *m;
	q->is_owed = true;
	return link_question_resume(q, control);
}

int link_question_resume(struct link_question *q, int control)
{
	if (!q->is_owed)
		return 0;
	/* The C library's send is a cancellation point. */
	if (syscall(SYS_sendto, control, &q->asked, sizeof(q->asked),
		    MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0) != sizeof(q->asked))
		return errno == ENOBUFS || errno == ENOMEM ? 0 : -errno;
	q->is_owed = false;
	return 0;
}

bool link_question_is_answer(const struct link_question *q,
			     const struct fabric_proto *m)
{
	if (!q->asked.kind || m->kind != q->asked.kind ||
	    m->serial != q->asked.serial || m->number != q->asked.number)
		return false;
	if (m->kind == FABRIC_PROTO_PORT)
		return fabric_client_is_port(&m->port);
	if (m->kind == FABRIC_PROTO_REACH)
		return m->err || link_reach_is_sound(&m->reached);
	return m->kind == FABRIC_PROTO_ARENA ||
	       !memcmp(m->gid, q->asked.gid, 16);
}

bool link_question_is_refused(const struct link_question *q, int err)
{
	return (q->asked.kind == FABRIC_PROTO_JOIN ||
		q->asked.kind == FABRIC_PROTO_REACH ||
		q->asked.kind == FABRIC_PROTO_ARENA) &&
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
