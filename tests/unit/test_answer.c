/* SPDX-License-Identifier: BSD-2-Clause */
/* broker/answer: for how long the broker tells a client to ask again for an
 * arena, if the eventfd of the arena's owner cannot be sent. */
#include "test.h"

#include <sys/socket.h>

#include "broker/answer.h"

#define CLASS 3

static struct server server;

/* Asks for the arena of CLASS, and returns the answer (enum proto_arena).  The
 * answer would bring the owner's peer_wake_fd, which cannot be sent. */
static uint32_t ask_at(struct conn *asker, int client, uint64_t now_ms)
{
	const struct proto question = {.kind = PROTO_ARENA, .value = CLASS};
	struct proto m;

	answer_arena(&server, asker, &question, now_ms);
	assert_int_equal(recv(client, &m, sizeof(m), 0), sizeof(m));
	assert_int_equal(m.kind, PROTO_ARENA_IS);
	return m.about;
}

static void an_old_lack_of_descriptors_does_not_shorten_a_new_one(void **state)
{
	struct conn *asker = &server.conn[0], *owner = &server.conn[1];
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	server.conns = 2;
	*asker = (struct conn){.fd = ends[0]};
	/* no file has this descriptor, so it cannot be sent */
	*owner = (struct conn){
		.fd = ends[1], .class = CLASS, .peer_wake_fd = 1 << 30};
	assert_int_equal(ask_at(asker, ends[1], 1000), PROTO_ARENA_LATER);
	assert_int_equal(ask_at(asker, ends[1], 2999), PROTO_ARENA_LATER);
	assert_int_equal(ask_at(asker, ends[1], 3000), PROTO_ARENA_NONE);
	assert_int_equal(ask_at(asker, ends[1], 90000), PROTO_ARENA_LATER);
	assert_int_equal(ask_at(asker, ends[1], 91999), PROTO_ARENA_LATER);
	assert_int_equal(ask_at(asker, ends[1], 92000), PROTO_ARENA_NONE);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			an_old_lack_of_descriptors_does_not_shorten_a_new_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
