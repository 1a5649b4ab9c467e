/* SPDX-License-Identifier: BSD-2-Clause */
/* tools/ipoib_cm: the communication management of an IPoIB interface.  The test
 * plays the fabric and the queue pairs of the interface. */
#include "test.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/ipoib_cm.h"

enum {
	QPN = 0x123,
	PEER = 0x456,
	LISTENER = 0x10001,
	OBJECT = 0x10002,
	REQUEST = 0x10003,
	ID = 7,
	NO_SERVICE = 8, /* reason of a REJ (IBTA 12.6.7.2) */
};

static const uint8_t own[16] = {0xfe, 0x80, [15] = 1};

struct seen {
	struct ipoib_cm cm;
	int fabric; /* the fabric's end of the socket for the CM */
	/* the last request; the last ids that were accepted and that ended; how
	 * many ids ended; how often the listener failed */
	uint32_t asked, accepted, ended, ends, deafs;
	int deaf;     /* the last error of the listener */
	bool accepts; /* take_asked accepts the request */
};

static void take_asked(void *ctx, const struct cmproto *m)
{
	const struct cmproto reply = {.private_bytes = 8};
	struct seen *s = ctx;

	s->asked = m->new_id;
	if (s->accepts)
		ipoib_cm_accept(&s->cm, m->new_id, ID, &reply);
	else
		ipoib_cm_reject(&s->cm, m->new_id);
}

static void take_accepted(void *ctx, uint32_t id, const struct cmproto *m)
{
	struct seen *s = ctx;

	s->accepted = id;
	ipoib_cm_establish(&s->cm, id);
}

static void take_ended(void *ctx, uint32_t id)
{
	struct seen *s = ctx;

	s->ended = id;
	s->ends++;
}

static void take_deaf(void *ctx, int err)
{
	struct seen *s = ctx;

	s->deaf = err;
	s->deafs++;
}

static const struct ipoib_cm_sink sink = {.asked = take_asked,
					  .accepted = take_accepted,
					  .ended = take_ended,
					  .deaf = take_deaf};

/* Returns the next message of the interface, which must be of this kind. */
static struct cmproto next_message(const struct seen *s, enum cmproto_kind kind)
{
	struct cmproto m = {0};

	assert_int_equal(recv(s->fabric, &m, sizeof(m), MSG_DONTWAIT),
			 sizeof(m));
	assert_int_equal(m.magic, CMPROTO_MAGIC);
	assert_int_equal(m.version, CMPROTO_VERSION);
	assert_int_equal(m.kind, kind);
	assert_true(m.is_ib);
	return m;
}

static void expect_silence(const struct seen *s)
{
	struct cmproto m;

	assert_int_equal(recv(s->fabric, &m, sizeof(m), MSG_DONTWAIT), -1);
}

static void tell_interface(struct seen *s, struct cmproto m)
{
	m.magic = CMPROTO_MAGIC;
	m.version = CMPROTO_VERSION;
	assert_int_equal(send(s->fabric, &m, sizeof(m), 0), sizeof(m));
	assert_int_equal(ipoib_cm_receive(&s->cm), 0);
}

static void answer_request(struct seen *s, const struct cmproto *asked,
			   uint32_t new_id, int err)
{
	tell_interface(s, (struct cmproto){.kind = CMPROTO_DONE,
					   .serial = asked->serial,
					   .new_id = new_id,
					   .err = err});
}

static void raise_event(struct seen *s, enum cmproto_event event, uint32_t id,
			uint32_t new_id)
{
	tell_interface(s, (struct cmproto){.kind = CMPROTO_EVENT,
					   .event = event,
					   .id = id,
					   .new_id = new_id});
}

static int set_up(void **state)
{
	struct seen *s = calloc(1, sizeof(*s));
	struct cmproto m;
	int ends[2], room = 4096; /* the default may hold all messages */

	assert_non_null(s);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	assert_int_equal(
		setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)),
		0);
	s->fabric = ends[1];
	assert_int_equal(ipoib_cm_init(&s->cm, &sink, s, ends[0]), 0);
	ipoib_cm_listen(&s->cm, own, QPN);
	m = next_message(s, CMPROTO_BIND);
	assert_true(m.at.service_id == (0x1000000000000000 | QPN));
	assert_memory_equal(m.at.local, own, 16);
	answer_request(s, &m, LISTENER, 0);
	m = next_message(s, CMPROTO_LISTEN);
	assert_int_equal(m.id, LISTENER);
	answer_request(s, &m, 0, 0);
	*state = s;
	return 0;
}

static int tear_down(void **state)
{
	struct seen *s = *state;

	ipoib_cm_fini(&s->cm);
	close(s->fabric);
	free(s);
	return 0;
}

/* Begins a connection to the neighbour, up to the CMPROTO_CONNECT that the
 * fabric gets.  Returns that message. */
static struct cmproto ask_neighbour(struct seen *s)
{
	struct cmproto m = {.qp.qpn = 0x789, .private_bytes = 8};

	assert_true(ipoib_cm_connect(&s->cm, ID, PEER, &m));
	m = next_message(s, CMPROTO_BIND);
	answer_request(s, &m, OBJECT, 0);
	m = next_message(s, CMPROTO_CONNECT);
	assert_int_equal(m.id, OBJECT);
	assert_true(m.at.service_id == (0x1000000000000000 | PEER));
	assert_int_equal(m.qp.qpn, 0x789);
	assert_int_equal(m.private_bytes, 8);
	return m;
}

static void a_neighbour_accepts_and_ends_a_connection(void **state)
{
	struct seen *s = *state;
	struct cmproto m = ask_neighbour(s);

	answer_request(s, &m, 0, 0);
	raise_event(s, CMPROTO_RESPONSE, OBJECT, 0);
	assert_int_equal(s->accepted, ID);
	assert_int_equal(next_message(s, CMPROTO_ESTABLISH).id, OBJECT);
	raise_event(s, CMPROTO_DISCONNECTED, OBJECT, 0);
	assert_int_equal(s->ended, ID);
	assert_int_equal(next_message(s, CMPROTO_RELEASE).id, OBJECT);
	/* later events of the released object are ignored */
	raise_event(s, CMPROTO_RESPONSE, OBJECT, 0);
	raise_event(s, CMPROTO_DISCONNECTED, OBJECT, 0);
	raise_event(s, CMPROTO_TIMEWAIT_EXIT, OBJECT, 0);
	assert_int_equal(s->ends, 1);
	expect_silence(s);
}

static void refusals_and_errors_end_a_connection(void **state)
{
	struct seen *s = *state;
	struct cmproto m = ask_neighbour(s);

	tell_interface(s, (struct cmproto){.kind = CMPROTO_EVENT,
					   .event = CMPROTO_REJECTED,
					   .status = NO_SERVICE,
					   .id = OBJECT});
	assert_int_equal(s->ends, 1);
	next_message(s, CMPROTO_RELEASE);
	m = ask_neighbour(s);
	answer_request(s, &m, 0, -ENOMEM);
	assert_int_equal(s->ends, 2);
	next_message(s, CMPROTO_RELEASE);
	m = (struct cmproto){0};
	assert_true(ipoib_cm_connect(&s->cm, ID, PEER, &m));
	m = next_message(s, CMPROTO_BIND);
	answer_request(s, &m, 0, -EDQUOT);
	assert_int_equal(s->ends, 3);
	expect_silence(s);
}

/* A connection is closed before the fabric has named its object. */
static void an_object_that_comes_late_is_released(void **state)
{
	struct seen *s = *state;
	struct cmproto m = {0}, other;

	assert_true(ipoib_cm_connect(&s->cm, ID, PEER, &m));
	other = next_message(s, CMPROTO_BIND);
	ipoib_cm_close(&s->cm, ID);
	expect_silence(s);
	answer_request(s, &other, OBJECT, 0);
	assert_int_equal(next_message(s, CMPROTO_RELEASE).id, OBJECT);
	/* the same for a listener */
	ipoib_cm_listen(&s->cm, own, QPN + 1);
	assert_int_equal(next_message(s, CMPROTO_RELEASE).id, LISTENER);
	other = next_message(s, CMPROTO_BIND);
	ipoib_cm_listen(&s->cm, own, QPN + 2);
	m = next_message(s, CMPROTO_BIND);
	answer_request(s, &other, OBJECT + 1, 0);
	assert_int_equal(next_message(s, CMPROTO_RELEASE).id, OBJECT + 1);
	answer_request(s, &m, OBJECT + 2, 0);
	assert_int_equal(next_message(s, CMPROTO_LISTEN).id, OBJECT + 2);
	assert_int_equal(s->ends, 0);
}

static void requests_are_accepted_or_rejected(void **state)
{
	struct seen *s = *state;

	raise_event(s, CMPROTO_REQUEST, LISTENER, REQUEST);
	assert_int_equal(s->asked, REQUEST);
	next_message(s, CMPROTO_TAKEN);
	assert_int_equal(next_message(s, CMPROTO_REJECT).status, 28);
	assert_int_equal(next_message(s, CMPROTO_RELEASE).id, REQUEST);
	s->accepts = true;
	raise_event(s, CMPROTO_REQUEST, LISTENER, REQUEST + 1);
	next_message(s, CMPROTO_TAKEN);
	assert_int_equal(next_message(s, CMPROTO_ACCEPT).id, REQUEST + 1);
	raise_event(s, CMPROTO_ESTABLISHED, REQUEST + 1, 0);
	ipoib_cm_close(&s->cm, ID);
	assert_int_equal(next_message(s, CMPROTO_RELEASE).id, REQUEST + 1);
	/* a request for a listener that is closed */
	ipoib_cm_unlisten(&s->cm);
	next_message(s, CMPROTO_RELEASE);
	raise_event(s, CMPROTO_REQUEST, LISTENER, REQUEST + 2);
	assert_int_equal(next_message(s, CMPROTO_RELEASE).id, REQUEST + 2);
	assert_int_equal(s->asked, REQUEST + 1);
}

/* A program may report the error, and ask again. */
static void a_listener_that_is_refused_may_be_asked_for_again(void **state)
{
	struct seen *s = *state;
	struct cmproto m;

	assert_true(ipoib_cm_is_listening(&s->cm));
	ipoib_cm_listen(&s->cm, own, QPN + 1);
	next_message(s, CMPROTO_RELEASE);
	m = next_message(s, CMPROTO_BIND);
	assert_true(ipoib_cm_is_listening(&s->cm));
	answer_request(s, &m, 0, -EADDRINUSE);
	assert_int_equal(s->deafs, 1);
	assert_int_equal(s->deaf, -EADDRINUSE);
	assert_false(ipoib_cm_is_listening(&s->cm));
	/* the object is there, and the listener is refused */
	ipoib_cm_listen(&s->cm, own, QPN + 1);
	m = next_message(s, CMPROTO_BIND);
	answer_request(s, &m, LISTENER + 9, 0);
	m = next_message(s, CMPROTO_LISTEN);
	answer_request(s, &m, 0, -ENOMEM);
	assert_int_equal(s->deafs, 2);
	assert_int_equal(s->deaf, -ENOMEM);
	assert_int_equal(next_message(s, CMPROTO_RELEASE).id, LISTENER + 9);
	ipoib_cm_listen(&s->cm, own, QPN + 1);
	m = next_message(s, CMPROTO_BIND);
	answer_request(s, &m, LISTENER + 10, 0);
	m = next_message(s, CMPROTO_LISTEN);
	/* no answer has come yet */
	assert_true(ipoib_cm_is_listening(&s->cm));
	assert_false(ipoib_cm_is_heard(&s->cm));
	answer_request(s, &m, 0, 0);
	assert_true(ipoib_cm_is_listening(&s->cm));
	assert_true(ipoib_cm_is_heard(&s->cm));
	/* an interface that goes down reports no lost listener */
	ipoib_cm_unlisten(&s->cm);
	assert_false(ipoib_cm_is_listening(&s->cm));
	assert_false(ipoib_cm_is_heard(&s->cm));
	assert_int_equal(s->deafs, 2);
	assert_int_equal(s->ends, 0);
}

static void connections_are_bounded(void **state)
{
	struct seen *s = *state;
	const struct cmproto m = {0};

	for (uint32_t i = 0; i < IPOIB_CM_LINKS; i++)
		assert_true(ipoib_cm_connect(&s->cm, 100 + i, PEER, &m));
	assert_false(ipoib_cm_connect(&s->cm, 99, PEER, &m));
	assert_false(ipoib_cm_accept(&s->cm, REQUEST, 99, &m));
}

/* All connections are in use while a listener that has no object yet is
 * replaced. */
static void an_earlier_listener_is_released_beside_all_connections(void **state)
{
	struct seen *s = *state;
	const struct cmproto m = {0};
	struct cmproto other, last;

	ipoib_cm_unlisten(&s->cm);
	next_message(s, CMPROTO_RELEASE);
	ipoib_cm_listen(&s->cm, own, QPN + 1);
	other = next_message(s, CMPROTO_BIND);
	for (uint32_t i = 0; i < IPOIB_CM_LINKS; i++) {
		assert_true(ipoib_cm_accept(&s->cm, REQUEST + i, 100 + i, &m));
		next_message(s, CMPROTO_ACCEPT);
	}
	ipoib_cm_listen(&s->cm, own, QPN + 2);
	last = next_message(s, CMPROTO_BIND);
	answer_request(s, &other, OBJECT, 0);
	assert_int_equal(next_message(s, CMPROTO_RELEASE).id, OBJECT);
	answer_request(s, &last, LISTENER + 1, 0);
	assert_int_equal(next_message(s, CMPROTO_LISTEN).id, LISTENER + 1);
}

/* The socket is full: messages wait, in their order. */
static void messages_wait_for_a_fabric_that_does_not_read(void **state)
{
	struct seen *s = *state;
	const struct cmproto m = {0};
	uint32_t serial = 0;
	int count = 0;
	struct cmproto got;

	for (uint32_t i = 0; i < IPOIB_CM_LINKS; i++)
		assert_true(ipoib_cm_connect(&s->cm, 100 + i, PEER, &m));
	assert_true(ipoib_cm_flush(&s->cm));
	while (recv(s->fabric, &got, sizeof(got), MSG_DONTWAIT) > 0) {
		assert_true(got.serial > serial);
		serial = got.serial;
		count++;
		ipoib_cm_flush(&s->cm);
	}
	assert_int_equal(count, IPOIB_CM_LINKS);
	assert_false(ipoib_cm_flush(&s->cm));
}

static void a_fabric_that_never_reads_ends_all(void **state)
{
	struct seen *s = *state;

	ask_neighbour(s);
	for (int i = 0; i < 4 * IPOIB_CM_UNSENT; i++)
		ipoib_cm_reject(&s->cm, 1);
	assert_int_equal(ipoib_cm_receive(&s->cm), -ENOBUFS);
	assert_int_equal(s->ended, ID);
}

static void the_end_of_the_fabric_ends_all(void **state)
{
	struct seen *s = *state;

	ask_neighbour(s);
	shutdown(s->fabric, SHUT_RDWR);
	assert_int_equal(ipoib_cm_receive(&s->cm), -ECONNRESET);
	assert_int_equal(s->ended, ID);
}

static void nonsense_of_the_fabric_ends_all(void **state)
{
	struct seen *s = *state;
	const char nonsense[100] = {0};

	ask_neighbour(s);
	assert_int_equal(send(s->fabric, nonsense, sizeof(nonsense), 0),
			 sizeof(nonsense));
	assert_int_equal(ipoib_cm_receive(&s->cm), -EPROTO);
	assert_int_equal(s->ended, ID);
	assert_int_equal(ipoib_cm_receive(&s->cm), -EPROTO);
	assert_false(ipoib_cm_connect(&s->cm, ID, PEER, &(struct cmproto){0}));
	assert_int_equal(s->ends, 1);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_neighbour_accepts_and_ends_a_connection),
		CASE(refusals_and_errors_end_a_connection),
		CASE(an_object_that_comes_late_is_released),
		CASE(requests_are_accepted_or_rejected),
		CASE(a_listener_that_is_refused_may_be_asked_for_again),
		CASE(connections_are_bounded),
		CASE(an_earlier_listener_is_released_beside_all_connections),
		CASE(messages_wait_for_a_fabric_that_does_not_read),
		CASE(a_fabric_that_never_reads_ends_all),
		CASE(the_end_of_the_fabric_ends_all),
		CASE(nonsense_of_the_fabric_ends_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
