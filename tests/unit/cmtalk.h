/* SPDX-License-Identifier: BSD-2-Clause */
/* The common part of the tests of connection management by the broker. */
#ifndef TESTS_UNIT_CMTALK_H
#define TESTS_UNIT_CMTALK_H

#include "brokers.h"

#include "broker/cmproto.h"

#define TIMEOUT 20 /* 4.096 us * 2^20 */

static const uint8_t lo[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};

/* Waits for the next message to the client whose connection is fd. */
static inline struct cmproto take_message(int fd)
{
	struct cmproto m;

	assert_int_equal(recv(fd, &m, sizeof(m), 0), sizeof(m));
	return m;
}

/* Sets the members that every message has, and sends request m to the broker.
 */
static inline void post_message(int fd, struct cmproto *m,
				enum cmproto_kind kind, uint32_t id)
{
	static uint32_t serial;

	m->magic = CMPROTO_MAGIC;
	m->version = CMPROTO_VERSION;
	m->kind = (uint16_t)kind;
	m->id = id;
	m->serial = ++serial;
	assert_int_equal(send(fd, m, sizeof(*m), MSG_NOSIGNAL), sizeof(*m));
}

/* Takes the next message to a client, and checks that it is this event. */
static inline struct cmproto take_event(int fd, enum cmproto_event event)
{
	struct cmproto m = take_message(fd);

	assert_int_equal(m.kind, CMPROTO_EVENT);
	assert_int_equal(m.event, event);
	return m;
}

static inline void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

#endif
