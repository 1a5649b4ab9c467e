/* SPDX-License-Identifier: BSD-2-Clause */
/* Connection management without a broker process: a server and clients. */
#ifndef TESTS_UNIT_CMSERVER_ALONE_H
#define TESTS_UNIT_CMSERVER_ALONE_H

#include "cmtalk.h"

#include "broker/cm_gsi.h"
#include "broker/cm_seal.h"
#include "broker/cmserver.h"
#include "broker/gsi.h"
#include "cm/conv.h"

#include <stdlib.h>

/* A server without a UDP socket, with an fd store in memory. */
struct alone {
	/* the GSI of the server, without a socket */
	struct gsi *gsi;
	struct fd_store fd_store;
	struct cmserver *s;
	struct cmserver_client *c; /* the client of this process */
	/* the connection: the server's end, the client's end */
	int fd[2];
	struct cmproto sent; /* the answer to the last request; if the server
			      * gave no answer, err is -ENOMSG */
	/* the time that send_request gives to the server */
	uint64_t now_ns;
};

/* Starts a server with one client, of this process and its user. */
static inline void begin_alone(struct alone *a)
{
	*a = (struct alone){.gsi = calloc(1, sizeof(*a->gsi))};
	assert_non_null(a->gsi);
	fd_store_init(&a->fd_store);
	a->fd_store.ledger = calloc(1, sizeof(*a->fd_store.ledger));
	assert_non_null(a->fd_store.ledger);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, a->fd), 0);
	a->s = cm_gsi_new(a->gsi, &a->fd_store, 0);
	assert_non_null(a->s);
	a->c = cmserver_client_new(a->s, a->fd[0], getuid(), getpid());
	assert_non_null(a->c);
}

static inline void end_alone(struct alone *a)
{
	cmserver_client_free(a->s, a->c, 0);
	cmserver_free(a->s);
	gsi_flush(a->gsi); /* without a socket it drops all MADs */
	close(a->fd[0]);
	close(a->fd[1]);
	free(a->fd_store.ledger);
	free(a->gsi);
}

/* Gives the server a request of the client, and stores the answer in a->sent.
 */
static inline void send_request(struct alone *a, struct cmproto m,
				enum cmproto_kind kind, uint32_t id)
{
	m.version = CMPROTO_VERSION;
	m.kind = (uint16_t)kind;
	m.id = id;
	assert_true(cmserver_handle(a->s, a->c, &m, sizeof(m), a->now_ns));
	a->sent = (struct cmproto){.err = -ENOMSG};
	if (!cmserver_has_output(a->c))
		return;
	assert_true(cmserver_output(a->c));
	a->sent = take_message(a->fd[1]);
}

/* Opens another client of the same server.  The client belongs to user `uid`,
 * and has a connection of its own. */
static inline struct alone join_alone(const struct alone *a, uid_t uid)
{
	struct alone b = *a;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, b.fd), 0);
	b.c = cmserver_client_new(b.s, b.fd[0], uid, getpid());
	assert_non_null(b.c);
	return b;
}

/* Ends a client that join_alone has opened. */
static inline void leave_alone(struct alone *b)
{
	cmserver_client_free(b->s, b->c, 0);
	gsi_flush(b->gsi); /* without a socket it drops all MADs */
	close(b->fd[0]);
	close(b->fd[1]);
}

/* Returns the fields of a CMPROTO_RESUME: the note of a connection in this
 * state. */
static inline struct cmproto resume_of(uint32_t local_id, uint8_t state)
{
	const struct cm_note note = {.local_id = local_id,
				     .remote_id = 9,
				     .remote_qpn = 7,
				     .state = state};
	struct cmproto m = {.at.space = 0x106};

	memcpy(m.note, &note, sizeof(note));
	return m;
}

/* Returns m, with the seal of the broker's ledger behind the note. */
static inline struct cmproto seal_note(const struct alone *a, struct cmproto m)
{
	struct fd_store fd_store = a->fd_store;
	struct cm_seal seal;
	struct cm_note note;

	assert_true(cm_seal_init(&seal, &fd_store, 0));
	memcpy(&note, m.note, sizeof(note));
	cm_seal_write(&seal, &note, m.note);
	return m;
}

#define FIRST_USER  1000001
#define SECOND_USER 1000002

/* Returns the fields of a CMPROTO_RESUME: the note that the active side has of
 * an established connection. */
static inline struct cmproto resume_live(uint32_t local_id)
{
	struct cmproto m = resume_of(local_id, CONV_ESTABLISHED);
	const struct cmmsg rtu = {
		.kind = CMMSG_RTU, .local_id = local_id, .remote_id = local_id};
	struct cm_note note;

	memcpy(&note, m.note, sizeof(note));
	note.remote_id = local_id;
	cmmsg_write(note.last, &rtu);
	memcpy(m.note, &note, sizeof(note));
	return m;
}

/* The address of a peer on another host. */
static const uint8_t far_ip[16] = {[10] = 0xff, 0xff, 198, 51, 100, 1};

/* Resumes `count` established connections with the peer `ip`.  The QPNs of the
 * peer's queue pairs are `first` and the numbers that follow.  scope: the
 * interface of a link-local ip.  are_sealed: each note has the broker's seal.
 */
static inline void connect_to(struct alone *a, const uint8_t ip[16],
			      uint32_t scope, uint32_t first, uint32_t count,
			      bool are_sealed)
{
	for (uint32_t i = first; i < first + count; i++) {
		struct cmproto m = resume_live(i);
		struct cm_note note;

		memcpy(&note, m.note, sizeof(note));
		note.remote_qpn = i;
		note.scope = scope;
		memcpy(note.local, lo, 16);
		memcpy(note.peer, ip, 16);
		memcpy(m.note, &note, sizeof(note));
		send_request(a, are_sealed ? seal_note(a, m) : m,
			     CMPROTO_RESUME, 0);
		assert_int_equal(a->sent.err, 0);
		gsi_flush(a->gsi);
	}
}

static inline void connect_to_far(struct alone *a, uint32_t first,
				  uint32_t count, bool are_sealed)
{
	connect_to(a, far_ip, 0, first, count, are_sealed);
}

/* Delivers `count` REQs of the peer `ip` for this port.  The REQs name the
 * peer's queue pairs from `first` on.  scope: the interface of a link-local ip.
 */
static inline void claim_from(const struct alone *a, const uint8_t ip[16],
			      uint32_t scope, uint16_t port, uint32_t first,
			      uint32_t count)
{
	const struct gsi_agent *agent = &a->gsi->agent[0];
	struct cmmsg req = {.kind = CMMSG_REQ,
			    .service_id = cmmsg_service_id(0x106, port)};
	uint8_t mad[MAD_BYTES];
	struct gsi_mad m = {.scope = scope, .bytes = mad};

	memcpy(m.from.ip, ip, 16);
	memcpy(m.to.ip, lo, 16);
	memcpy(req.primary.local_gid, ip, 16);
	memcpy(req.primary.remote_gid, lo, 16);
	for (uint32_t i = first; i < first + count; i++) {
		req.local_id = 0x100000 + i;
		req.qp.qpn = i;
		cmmsg_write(mad, &req);
		agent->receive(agent->user, &m, a->now_ns + 1);
		gsi_flush(a->gsi);
	}
}

static inline void claim_from_far(const struct alone *a, uint16_t port,
				  uint32_t first, uint32_t count)
{
	claim_from(a, far_ip, 0, port, first, count);
}

/* Takes all doubted peers (broker/cm_doubts.h), which must have QPNs from
 * `first` on.  Returns how many there were, and stores the last one in *about.
 */
static inline uint32_t count_doubts(struct alone *a, uint32_t first,
				    struct live_peer *about)
{
	uint32_t count = 0;

	while (cmserver_doubts(a->s, about)) {
		assert_true(about->qpn >= first);
		count++;
	}
	return count;
}

#endif
