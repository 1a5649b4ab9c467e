/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connection management by the broker, without a broker process: what share
 * each user may have, and that no user learns of another user's connections.
 */
#include "cmtalk.h"

#include "broker/cm_doubts.h"
#include "broker/cm_gsi.h"
#include "broker/cm_seal.h"
#include "broker/cmserver.h"
#include "broker/gsi.h"
#include "broker/user.h"
#include "cm/conv.h"

#include <linux/capability.h>
#include <stdlib.h>
#include <sys/prctl.h>

/* A server without a UDP socket, with a fd store in memory. */
struct alone {
	struct gsi *gsi;
	struct fd_store fd_store;
	struct cmserver *s;
	struct cmserver_client *c; /* the client of this process */
	int fd[2];
	struct cmproto sent; /* the answer to the last request; if there was
			      * none, err is -ENOMSG */
	uint64_t now_ns;
};

static void begin_alone(struct alone *a)
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

static void end_alone(struct alone *a)
{
	cmserver_client_free(a->s, a->c, 0);
	cmserver_free(a->s);
	gsi_flush(a->gsi); /* without a socket it drops all MADs */
	close(a->fd[0]);
	close(a->fd[1]);
	free(a->fd_store.ledger);
	free(a->gsi);
}

static void send_request(struct alone *a, struct cmproto m,
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

/* Opens another client of the same server, of this user. */
static struct alone join_alone(const struct alone *a, uid_t uid)
{
	struct alone b = *a;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, b.fd), 0);
	b.c = cmserver_client_new(b.s, b.fd[0], uid, getpid());
	assert_non_null(b.c);
	return b;
}

static void leave_alone(struct alone *b)
{
	cmserver_client_free(b->s, b->c, 0);
	gsi_flush(b->gsi); /* without a socket it drops all MADs */
	close(b->fd[0]);
	close(b->fd[1]);
}

/* A request to the server with the note of a connection in this state. */
static struct cmproto resume_of(uint32_t local_id, uint8_t state)
{
	const struct cm_note note = {.local_id = local_id,
				     .remote_id = 9,
				     .remote_qpn = 7,
				     .state = state};
	struct cmproto m = {.at.space = 0x106};

	memcpy(m.note, &note, sizeof(note));
	return m;
}

static void a_process_cannot_take_anothers_record(void **state)
{
	struct cmproto m = resume_of(77, CONV_TIMEWAIT);
	struct fd_store_ledger *l;
	struct alone a;
	pid_t other = fork();

	if (!other) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	begin_alone(&a);
	l = a.fd_store.ledger;
	l->records = 1;
	l->record[0].owner = fd_store_owner(getuid(), other);
	memcpy(&l->record[0].note, m.note, sizeof(l->record[0].note));
	cmserver_succeed(a.s, 0);
	assert_true(cmserver_awaits(a.s, other));

	send_request(&a, m, CMPROTO_RESUME, 0);
	assert_int_equal(a.sent.err, -EPERM);
	assert_true(cmserver_awaits(a.s, other));
	send_request(&a, m, CMPROTO_RELEASE, 0);
	assert_true(cmserver_awaits(a.s, other));
	/* a RELEASE of a port in the record's slot does not release the record
	 */
	send_request(&a, (struct cmproto){.at.space = 0x106}, CMPROTO_BIND, 0);
	send_request(&a, m, CMPROTO_RELEASE, a.sent.new_id);
	assert_int_equal(l->record[0].owner.is_owned, 1);

	cmserver_client_free(a.s, a.c, 0);
	a.c = cmserver_client_new(a.s, a.fd[0], getuid(), other);
	send_request(&a, resume_of(77, 0), CMPROTO_RESUME, 0);
	assert_int_equal(a.sent.err, -EINVAL);
	assert_true(cmserver_awaits(a.s, other));
	send_request(&a, m, CMPROTO_RESUME, 0);
	assert_int_equal(a.sent.err, 0);
	assert_false(cmserver_awaits(a.s, other));
	end_alone(&a);
	end_child(other);
}

/* Returns the message with the seal of the broker's ledger behind its note. */
static struct cmproto seal_note(const struct alone *a, struct cmproto m)
{
	struct fd_store fd_store = a->fd_store;
	struct cm_seal seal;
	struct cm_note note;

	assert_true(cm_seal_init(&seal, &fd_store, 0));
	memcpy(&note, m.note, sizeof(note));
	cm_seal_write(&seal, &note, m.note);
	return m;
}

/* When all listeners are in use, a port that may be shared stays free for
 * another listener after a listen has failed there. */
static void a_failed_listener_leaves_the_port_to_others(void **state)
{
	struct cmproto any = {.at.space = 0x106, .any_v4 = 1, .may_share = 1};
	struct cmproto shared = any;
	uint32_t first = 0, full;
	struct alone a;

	begin_alone(&a);
	do {
		send_request(&a, any, CMPROTO_BIND, 0);
		assert_int_equal(a.sent.err, 0);
		full = a.sent.new_id;
		shared.at.local_port = a.sent.at.local_port;
		first = first ? first : full;
		send_request(&a, (struct cmproto){0}, CMPROTO_LISTEN, full);
	} while (!a.sent.err);
	assert_int_equal(a.sent.err, -ENOMEM);
	send_request(&a, (struct cmproto){0}, CMPROTO_RELEASE, full);

	shared.at.local_port = 500;
	send_request(&a, shared, CMPROTO_BIND, 0);
	full = a.sent.new_id;
	send_request(&a, (struct cmproto){0}, CMPROTO_LISTEN, full);
	assert_int_equal(a.sent.err, -ENOMEM);
	send_request(&a, (struct cmproto){0}, CMPROTO_RELEASE, first);
	send_request(&a, shared, CMPROTO_BIND, 0);
	send_request(&a, (struct cmproto){0}, CMPROTO_LISTEN, a.sent.new_id);
	assert_int_equal(a.sent.err, 0);
	end_alone(&a);
}

#define SERVICES 1000

/* Makes and ends a listener of a service.  Until until_ns the service is
 * expected to get a listener again. */
static void end_listener(struct cm *cm, struct cm_owner *owner,
			 uint64_t service_id, uint64_t until_ns)
{
	const struct cm_where any = {.any_v4 = true};
	uint32_t listener;

	assert_int_equal(
		cm_listen(cm, owner, 0, service_id, &any, 1, &listener), 0);
	cm_unlisten(cm, listener, until_ns);
}

/* Returns how many of the SERVICES services from `first` on are expected to get
 * a listener again. */
static uint32_t count_expected(const struct cm *cm, uint64_t first)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < SERVICES; i++)
		count += listener_expected_until(cm, first + i, lo) > 0;
	return count;
}

static void no_user_makes_the_broker_forget_listeners_of_others(void **state)
{
	const struct cm_config config = {.conversations = 16, .half_open = 4};
	struct cm *cm = cm_new(&config, 0);
	struct cm_owner quiet = {.number = 1}, busy[3] = {
						       {.number = 2},
						       {.number = 3},
						       {.number = 4},
					       };
	uint64_t now_ns = 1;

	assert_non_null(cm);
	for (uint32_t i = 0; i < 8; i++)
		end_listener(cm, &quiet, i, now_ns++);
	for (uint32_t i = 0; i < SERVICES; i++)
		end_listener(cm, &busy[0], 10000 + i, now_ns++);
	assert_int_equal(count_expected(cm, 0), 8);
	assert_int_equal(count_expected(cm, 10000), CONV_RECENT - 8);
	for (uint32_t i = 0; i < SERVICES; i++)
		end_listener(cm, &busy[1 + i % 2], 20000 + i, now_ns++);
	assert_int_equal(count_expected(cm, 0), 8);
	assert_uint_in_range(count_expected(cm, 10000), CONV_RECENT / 4,
			     CONV_RECENT / 3);
	/* the latest services of each user are left */
	assert_int_not_equal(
		listener_expected_until(cm, 20000 + SERVICES - 1, lo), 0);
	assert_int_not_equal(
		listener_expected_until(cm, 10000 + SERVICES - 1, lo), 0);
	for (uint32_t i = 0; i < SERVICES; i++)
		end_listener(cm, &quiet, 30000 + i, now_ns++);
	assert_uint_in_range(count_expected(cm, 30000), CONV_RECENT / 4,
			     CONV_RECENT / 3);
	cm_free(cm);
}

#define FIRST_USER  1000001
#define SECOND_USER 1000002

/* Binds ports, each with a listener if `listens`, until the client is refused
 * with *err.  Returns how many ports the client got. */
static uint32_t count_until_refused(struct alone *a, bool listens, int *err)
{
	const struct cmproto any = {.at.space = 0x106, .any_v4 = 1};

	for (uint32_t count = 0;; count++) {
		send_request(a, any, CMPROTO_BIND, 0);
		if (!a->sent.err && listens)
			send_request(a, (struct cmproto){0}, CMPROTO_LISTEN,
				     a->sent.new_id);
		*err = a->sent.err;
		if (*err)
			return count;
	}
}

/* Checks that the first user gets no more by a second connection, and that
 * others still get their share. */
static void no_user_takes_all(bool listens, uint32_t most)
{
	struct alone a, first, again, second;
	uint32_t has, other;
	int err;

	begin_alone(&a);
	first = join_alone(&a, FIRST_USER);
	again = join_alone(&a, FIRST_USER);
	second = join_alone(&a, SECOND_USER);
	has = count_until_refused(&first, listens, &err);
	assert_int_equal(err, -EDQUOT);
	assert_uint_in_range(has, 1000, most / 2);
	assert_int_equal(count_until_refused(&again, listens, &err), 0);
	assert_int_equal(err, -EDQUOT);
	other = count_until_refused(&second, listens, &err);
	assert_int_equal(err, -EDQUOT);
	assert_uint_in_range(other, most / 8, most / 4);
	/* the broker's own user gets the rest */
	assert_uint_in_range(count_until_refused(&a, listens, &err), most / 8,
			     most);
	assert_int_not_equal(err, -EDQUOT);
	/* the ports of a client that leaves are free for its user again */
	leave_alone(&first);
	assert_uint_in_range(count_until_refused(&again, listens, &err), 1,
			     has);
	leave_alone(&again);
	leave_alone(&second);
	end_alone(&a);
}

static void no_user_takes_all_ports(void **state)
{
	no_user_takes_all(false, 32768);
}

static void no_user_takes_all_listeners(void **state)
{
	no_user_takes_all(true, 4096);
}

/* A request with the note of an established connection, of the active side. */
static struct cmproto resume_live(uint32_t local_id)
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

/* Each conversation waits for the answer to its DREQ, which nobody sends. */
static void no_user_takes_all_conversations(void **state)
{
	struct cmproto call = {.max_retries = 15, .timeout = TIMEOUT};
	struct alone a, first, second;
	uint32_t has = 0;

	begin_alone(&a);
	first = join_alone(&a, FIRST_USER);
	second = join_alone(&a, SECOND_USER);
	for (;; has++) {
		send_request(&first, resume_live(has + 1), CMPROTO_RESUME, 0);
		if (first.sent.err)
			break;
		send_request(&first, (struct cmproto){0}, CMPROTO_RELEASE,
			     first.sent.new_id);
		gsi_flush(a.gsi);
	}
	assert_int_equal(first.sent.err, -EDQUOT);
	assert_uint_in_range(has, 1000, 16384);
	/* a second connection gets no more while the conversations last */
	leave_alone(&first);
	first = join_alone(&a, FIRST_USER);
	send_request(&first, resume_live(has + 1), CMPROTO_RESUME, 0);
	assert_int_equal(first.sent.err, -EDQUOT);
	for (uint32_t i = 0; i < 1000; i++) {
		send_request(&second,
			     (struct cmproto){.at.space = 0x106, .any_v4 = 1},
			     CMPROTO_BIND, 0);
		send_request(&second, call, CMPROTO_CONNECT,
			     second.sent.new_id);
		assert_int_equal(second.sent.err, 0);
		gsi_flush(a.gsi);
	}
	leave_alone(&first);
	leave_alone(&second);
	end_alone(&a);
}

/* Any client may give back a note as a broker has written it; a client of the
 * broker's own user may give back any note. */
static void another_user_can_give_back_only_what_a_broker_wrote(void **state)
{
	struct cmproto written, made_up = resume_live(8), changed;
	struct alone a, own, other;

	begin_alone(&a);
	other = join_alone(&a, FIRST_USER);
	send_request(&other, resume_live(7), CMPROTO_RESUME, 0);
	assert_int_equal(other.sent.err, 0);
	written = other.sent;
	/* the time in which clients of an earlier broker come back is over */
	other.now_ns = CM_SEAL_LENIENT_NS;
	send_request(&other, made_up, CMPROTO_RESUME, 0);
	assert_int_equal(other.sent.err, -EPERM);
	leave_alone(&other);
	cmserver_client_free(a.s, a.c, 0);
	cmserver_free(a.s);
	gsi_flush(a.gsi);
	/* the successor, which has the fd store */
	memset(a.gsi, 0, sizeof(*a.gsi));
	a.s = cm_gsi_new(a.gsi, &a.fd_store, 0);
	cmserver_succeed(a.s, 0);
	a.c = cmserver_client_new(a.s, a.fd[0], getuid(), getpid());
	own = a;
	other = join_alone(&a, FIRST_USER);
	send_request(&other, made_up, CMPROTO_RELEASE, 0);
	assert_false(cmserver_is_busy(a.s));
	send_request(&other, made_up, CMPROTO_RESUME, 0);
	assert_int_equal(other.sent.err, -EPERM);
	for (size_t i = 0; i < sizeof(struct cm_note) + 8; i++) {
		changed = written;
		changed.note[i] ^= 1;
		send_request(&other, changed, CMPROTO_RESUME, 0);
		assert_int_equal(other.sent.err, -EPERM);
	}
	send_request(&other, written, CMPROTO_RESUME, 0);
	assert_int_equal(other.sent.err, 0);
	assert_memory_equal(other.sent.note, written.note, CMPROTO_NOTE);
	send_request(&own, made_up, CMPROTO_RESUME, 0);
	assert_int_equal(own.sent.err, 0);
	leave_alone(&other);
	end_alone(&a);
}

static const uint8_t far_ip[16] = {[10] = 0xff, 0xff, 198, 51, 100, 1};

/* Resumes `count` established connections with the peer's queue pairs from
 * `first` on. */
static void connect_to_far(struct alone *a, uint32_t first, uint32_t count,
			   bool are_sealed)
{
	for (uint32_t i = first; i < first + count; i++) {
		struct cmproto m = resume_live(i);
		struct cm_note note;

		memcpy(&note, m.note, sizeof(note));
		note.remote_qpn = i;
		memcpy(note.local, lo, 16);
		memcpy(note.peer, far_ip, 16);
		memcpy(m.note, &note, sizeof(note));
		send_request(a, are_sealed ? seal_note(a, m) : m,
			     CMPROTO_RESUME, 0);
		assert_int_equal(a->sent.err, 0);
		gsi_flush(a->gsi);
	}
}

/* Delivers REQs of the peer that name these queue pairs for new connections. */
static void claim_from_far(const struct alone *a, uint16_t port, uint32_t first,
			   uint32_t count)
{
	const struct gsi_agent *agent = &a->gsi->agent[0];
	struct cmmsg req = {.kind = CMMSG_REQ,
			    .service_id = cmmsg_service_id(0x106, port)};
	uint8_t mad[MAD_BYTES];
	struct gsi_mad m = {.bytes = mad};

	memcpy(m.from.ip, far_ip, 16);
	memcpy(m.to.ip, lo, 16);
	memcpy(req.primary.local_gid, far_ip, 16);
	memcpy(req.primary.remote_gid, lo, 16);
	for (uint32_t i = first; i < first + count; i++) {
		req.local_id = 0x100000 + i;
		req.qp.qpn = i;
		cmmsg_write(mad, &req);
		agent->receive(agent->user, &m, a->now_ns + 1);
		gsi_flush(a->gsi);
	}
}

/* Takes all doubts, which must be about queue pairs from `first` on.  Returns
 * how many there were, and stores the last one in *about. */
static uint32_t count_doubts(struct alone *a, uint32_t first,
			     struct live_peer *about)
{
	uint32_t count = 0;

	while (cmserver_doubts(a->s, about)) {
		assert_true(about->qpn >= first);
		count++;
	}
	return count;
}

static void no_user_takes_all_doubts(void **state)
{
	struct cmproto at = {.at.space = 0x106, .any_v4 = 1};
	struct alone a, first, second;
	struct live_peer about;
	uint32_t has, other;

	begin_alone(&a);
	first = join_alone(&a, FIRST_USER);
	second = join_alone(&a, SECOND_USER);
	send_request(&a, at, CMPROTO_BIND, 0);
	at.at.local_port = a.sent.at.local_port;
	send_request(&a, (struct cmproto){.backlog = 1}, CMPROTO_LISTEN,
		     a.sent.new_id);
	connect_to_far(&first, 1000, 2 * CM_DOUBTS_MAX, true);
	connect_to_far(&second, 2000, CM_DOUBTS_MAX, true);
	/* doubts count until they are settled, whether they are taken or not */
	claim_from_far(&a, at.at.local_port, 1000, 2);
	assert_int_equal(count_doubts(&a, 1000, &about), 2);
	claim_from_far(&a, at.at.local_port, 1002, 2 * CM_DOUBTS_MAX - 2);
	has = count_doubts(&a, 1000, &about);
	assert_int_equal(has, CM_DOUBTS_MAX / 2 - 2);
	claim_from_far(&a, at.at.local_port, 2000, 1);
	assert_int_equal(count_doubts(&a, 2000, &about), 1);
	/* a queue pair whose doubt is settled can be doubted again */
	cmserver_settle(a.s, &about);
	cmserver_settle(a.s, &about);
	claim_from_far(&a, at.at.local_port, 2001, CM_DOUBTS_MAX - 1);
	other = count_doubts(&a, 2000, &about);
	assert_int_equal(other, CM_DOUBTS_MAX / 4);
	/* the user's last client closes before the answer comes */
	leave_alone(&second);
	cmserver_settle(a.s, &about);
	leave_alone(&first);
	end_alone(&a);
}

/*
 * If the note claimed a queue pair, a user could claim that queue pairs of
 * another host are connected to its own, and that host's requests would be
 * refused as stale.
 */
static void a_note_without_a_seal_claims_no_queue_pair(void **state)
{
	struct cmproto at = {.at.space = 0x106, .any_v4 = 1}, own;
	struct alone a, first, caller, again;
	struct live_peer about;

	begin_alone(&a);
	first = join_alone(&a, FIRST_USER);
	caller = join_alone(&a, getuid());
	send_request(&a, at, CMPROTO_BIND, 0);
	at.at.local_port = a.sent.at.local_port;
	send_request(&a, (struct cmproto){.backlog = 4}, CMPROTO_LISTEN,
		     a.sent.new_id);
	connect_to_far(&first, 1000, 1, false);
	/* the seal that this broker puts on the same note changes nothing */
	own = first.sent;
	assert_int_not_equal(own.new_id, 0);
	leave_alone(&first);
	again = join_alone(&a, FIRST_USER);
	again.now_ns = CM_SEAL_LENIENT_NS;
	send_request(&again, own, CMPROTO_RESUME, 0);
	claim_from_far(&a, at.at.local_port, 1000, 1);
	assert_int_equal(count_doubts(&a, 0, &about), 0);
	assert_true(cmserver_has_output(a.c));
	assert_true(cmserver_output(a.c));
	take_event(a.fd[1], CMPROTO_REQUEST);
	/* a note of the broker's own user needs no seal */
	connect_to_far(&caller, 3000, 1, false);
	claim_from_far(&a, at.at.local_port, 3000, 1);
	assert_int_equal(count_doubts(&a, 3000, &about), 1);
	leave_alone(&again);
	leave_alone(&caller);
	end_alone(&a);
}

/* If other users learned of the end, they could find out which processes are
 * connected. */
static void only_its_user_learns_of_the_end_of_a_connection(void **state)
{
	static const uint8_t peer[16];
	struct alone a, first, second, none;

	begin_alone(&a);
	first = join_alone(&a, FIRST_USER);
	second = join_alone(&a, SECOND_USER);
	none = join_alone(&a, USER_NONE);
	send_request(&first, seal_note(&a, resume_of(7, CONV_TIMEWAIT)),
		     CMPROTO_RESUME, 0);
	assert_int_equal(first.sent.err, 0);
	assert_true(cmserver_has_ended(a.s, FIRST_USER, peer, 7));
	assert_false(cmserver_has_ended(a.s, FIRST_USER, peer, 8));
	assert_false(cmserver_has_ended(a.s, SECOND_USER, peer, 7));
	assert_false(cmserver_has_ended(a.s, getuid(), peer, 7));
	/* a user that has no connection here */
	assert_false(cmserver_has_ended(a.s, SECOND_USER + 1, peer, 7));
	/* also when that queue pair is connected to another user's */
	send_request(&second, seal_note(&a, resume_live(8)), CMPROTO_RESUME, 0);
	assert_int_equal(second.sent.err, 0);
	assert_true(cmserver_has_ended(a.s, FIRST_USER, peer, 7));
	assert_false(cmserver_has_ended(a.s, SECOND_USER, peer, 7));
	/* two clients of USER_NONE may be of two users */
	leave_alone(&first);
	send_request(&none, seal_note(&a, resume_of(10, CONV_TIMEWAIT)),
		     CMPROTO_RESUME, 0);
	assert_int_equal(none.sent.err, 0);
	assert_false(cmserver_has_ended(a.s, USER_NONE, peer, 7));
	leave_alone(&second);
	leave_alone(&none);
	end_alone(&a);
}

/* A successor accepts notes without a seal until it gets the fd store, or for
 * CM_SEAL_LENIENT_NS if the fd store is lost. */
static void without_a_store_a_successor_accepts_notes_at_first(void **state)
{
	struct fd_store_ledger *ledger;
	struct alone a, other;

	begin_alone(&a);
	ledger = a.fd_store.ledger;
	a.fd_store.ledger = NULL;
	other = join_alone(&a, FIRST_USER);
	other.now_ns = CM_SEAL_LENIENT_NS - 1;
	send_request(&other, resume_live(7), CMPROTO_RESUME, 0);
	assert_int_equal(other.sent.err, 0);
	other.now_ns++;
	send_request(&other, resume_live(8), CMPROTO_RESUME, 0);
	assert_int_equal(other.sent.err, -EPERM);
	a.fd_store.ledger = ledger;
	ledger->note_key.word[0] = 1;
	other.now_ns = 0;
	send_request(&other, resume_live(8), CMPROTO_RESUME, 0);
	assert_int_equal(other.sent.err, -EPERM);
	leave_alone(&other);
	end_alone(&a);
}

/* Reads the client's messages until no more come; returns the last. */
static struct cmproto read_all(struct alone *a, uint32_t *count, bool *stays)
{
	struct cmproto last = {0};

	do {
		*stays = cmserver_output(a->c);
		while (recv(a->fd[1], &last, sizeof(last), MSG_DONTWAIT) > 0)
			++*count;
	} while (*stays && cmserver_has_output(a->c));
	return last;
}

/* Clients that read lose no message, not even clients of the same user. */
static void
a_client_that_does_not_read_gets_an_event_and_is_dropped(void **state)
{
	enum { SILENT = 8, MANY = 8000, SOME = 100 };
	struct cmproto m = {.version = CMPROTO_VERSION, .kind = CMPROTO_LISTEN};
	struct alone a, reads, other, silent[SILENT];
	uint32_t count = 0, dropped = 0, heard = 0;
	struct cmproto last;
	bool stays;

	begin_alone(&a);
	reads = join_alone(&a, FIRST_USER);
	other = join_alone(&a, SECOND_USER);
	for (int i = 0; i < SILENT; i++) {
		silent[i] = join_alone(&a, FIRST_USER);
		assert_false(cmserver_has_output(silent[i].c));
	}
	for (int i = 0; i < SILENT * MANY; i++) {
		assert_true(cmserver_handle(a.s, silent[i % SILENT].c, &m,
					    sizeof(m), 0));
		/* may find no memory left, since silent clients took it */
		send_request(&reads, m, CMPROTO_LISTEN, 0);
		assert_int_equal(reads.sent.kind, CMPROTO_DONE);
		if (i % SOME)
			continue;
		send_request(&other, m, CMPROTO_LISTEN, 0);
		assert_int_equal(other.sent.kind, CMPROTO_DONE);
	}
	for (int i = 0; i < SILENT; i++) {
		last = read_all(&silent[i], &count, &stays);
		dropped += !stays;
		if (stays)
			continue;
		assert_int_equal(last.kind, CMPROTO_EVENT);
		assert_int_equal(last.event, CMPROTO_DROPPED);
		/* so the loop calls cmserver_output for this client again */
		assert_true(cmserver_has_output(silent[i].c));
		assert_false(
			cmserver_handle(a.s, silent[i].c, &m, sizeof(m), 0));
	}
	assert_uint_in_range(dropped, 1, SILENT);
	assert_uint_in_range(count, MANY, (16 << 20) / sizeof(m));
	read_all(&reads, &heard, &stays);
	assert_true(stays);
	read_all(&other, &heard, &stays);
	assert_true(stays);
	assert_int_equal(heard, 0); /* each answer came with its request */
	for (int i = 0; i < SILENT; i++)
		leave_alone(&silent[i]);
	leave_alone(&reads);
	leave_alone(&other);
	end_alone(&a);
}

/* Starts a process that calls `first`, which returns true, and then waits until
 * it is killed. */
static pid_t begin_child(bool (*first)(void))
{
	int ready[2];
	char done = 0;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		done = first();
		if (write(ready[1], &done, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &done, 1), 1);
	assert_true(done);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static bool has_all(void)
{
	return true;
}

static bool drop_capabilities(void)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct none[2] = {0};

	return !syscall(SYS_capset, &head, none);
}

/* Gets all capabilities, but in a user namespace of its own. */
static bool enter_users(void)
{
	return !unshare(CLONE_NEWUSER);
}

/* Makes the process undumpable, as after exec of a file with capabilities. */
static bool hide_memory(void)
{
	return !prctl(PR_SET_DUMPABLE, 0);
}

/* Binds port 500 for a client of this user in a process that has called
 * `first`; returns the error. */
static int bind_500(struct alone *a, bool (*first)(void), uid_t uid)
{
	struct cmproto m = {
		.at.space = 0x106, .any_v4 = 1, .at.local_port = 500};
	struct alone b = *a;
	pid_t pid = begin_child(first);
	int err;

	b.c = cmserver_client_new(a->s, a->fd[0], uid, pid);
	assert_non_null(b.c);
	send_request(&b, m, CMPROTO_BIND, 0);
	err = b.sent.err;
	/* a port from 1024 on needs no capability */
	m.at.local_port = 1024;
	send_request(&b, m, CMPROTO_BIND, 0);
	assert_int_equal(b.sent.err, 0);
	/* a conversation continues without its port */
	m = resume_of(pid, CONV_TIMEWAIT);
	m.at.local_port = 500;
	m.any_v4 = 1;
	send_request(&b, m, CMPROTO_RESUME, 0);
	assert_int_equal(b.sent.err, 0);
	if (err) {
		send_request(a,
			     (struct cmproto){.at.space = 0x106,
					      .any_v4 = 1,
					      .at.local_port = 500},
			     CMPROTO_BIND, 0);
		assert_int_equal(a->sent.err, 0);
		send_request(a, (struct cmproto){0}, CMPROTO_RELEASE,
			     a->sent.new_id);
	}
	cmserver_client_free(a->s, b.c, 0);
	end_child(pid);
	return err;
}

/* rdma_cm requires the capability for a low port that the kernel requires for
 * UDP. */
static void a_low_port_needs_the_capability(void **state)
{
	char map[2];
	FILE *f = fopen("/proc/self/uid_map", "re");
	bool has_map = f && fgets(map, sizeof(map), f);
	struct alone a;

	if (f)
		fclose(f);
	begin_alone(&a);
	assert_int_equal(bind_500(&a, has_all, getuid()), 0);
	assert_int_equal(bind_500(&a, drop_capabilities, getuid()), -EACCES);
	/* the process connected as another user */
	assert_int_equal(bind_500(&a, has_all, FIRST_USER), -EACCES);
	if (has_map)
		assert_int_equal(bind_500(&a, enter_users, getuid()), -EACCES);
	if (getuid() && has_map)
		assert_int_equal(bind_500(&a, hide_memory, getuid()), -EACCES);
	end_alone(&a);
}

static int refusal_of(struct alone *a, enum cmproto_kind kind, bool is_ib)
{
	struct cmproto m = {.is_ib = is_ib, .at.space = 0x106};

	send_request(a, m, kind, 0);
	return a->sent.err;
}

/* GIDs and paths are of a host of a fabric. */
static void a_broker_refuses_gids_and_paths(void **state)
{
	struct alone a;

	begin_alone(&a);
	assert_int_equal(refusal_of(&a, CMPROTO_BIND, true), -EINVAL);
	assert_int_equal(refusal_of(&a, CMPROTO_CONNECT, true), -EINVAL);
	assert_int_equal(refusal_of(&a, CMPROTO_RESUME, true), -EINVAL);
	assert_int_equal(refusal_of(&a, CMPROTO_ROUTE, true), -EOPNOTSUPP);
	assert_int_equal(refusal_of(&a, CMPROTO_ROUTE, false), -EOPNOTSUPP);
	assert_int_equal(refusal_of(&a, CMPROTO_BIND, false), 0);
	end_alone(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_broker_refuses_gids_and_paths),
		cmocka_unit_test(a_process_cannot_take_anothers_record),
		cmocka_unit_test(a_failed_listener_leaves_the_port_to_others),
		cmocka_unit_test(a_low_port_needs_the_capability),
		cmocka_unit_test(no_user_takes_all_ports),
		cmocka_unit_test(no_user_takes_all_listeners),
		cmocka_unit_test(no_user_takes_all_conversations),
		cmocka_unit_test(
			another_user_can_give_back_only_what_a_broker_wrote),
		cmocka_unit_test(
			only_its_user_learns_of_the_end_of_a_connection),
		cmocka_unit_test(no_user_takes_all_doubts),
		cmocka_unit_test(a_note_without_a_seal_claims_no_queue_pair),
		cmocka_unit_test(
			no_user_makes_the_broker_forget_listeners_of_others),
		cmocka_unit_test(
			without_a_store_a_successor_accepts_notes_at_first),
		cmocka_unit_test(
			a_client_that_does_not_read_gets_an_event_and_is_dropped),
	};

	return cmocka_run_group_tests(tests, enter_namespace, NULL);
}
