/* SPDX-License-Identifier: BSD-2-Clause */
/* host/suspect_log: the message about a sender of forged packets, which names
 * the sender's address or LID.  This test plays the engine. */
#include "test.h"

#include "host/host.h"
#include "host/suspect_log.h"

#include <string.h>
#include <unistd.h>

/* The sender that the engine reports at the next call; NULL: none. */
static const struct engine_suspect *next;

bool __wrap_engine_suspect(struct engine *e, struct engine_suspect *who);

bool __wrap_engine_suspect(struct engine *e, struct engine_suspect *who)
{
	if (!next)
		return false;
	*who = *next;
	next = NULL;
	return true;
}

/* Stores in text the message about the sender. */
static void read_said(const struct engine_suspect *who, char *text, size_t size)
{
	int ends[2], old = dup(STDERR_FILENO);
	ssize_t n;

	assert_int_equal(pipe(ends), 0);
	dup2(ends[1], STDERR_FILENO);
	next = who;
	suspect_log_say(NULL);
	dup2(old, STDERR_FILENO);
	n = read(ends[0], text, size - 1);
	assert_true(n > 0);
	text[n] = '\0';
	close(old);
	close(ends[0]);
	close(ends[1]);
}

static void a_sender_is_named_by_its_address_or_its_lid(void **state)
{
	struct engine_suspect who = {.ip = {[10] = 0xff, 0xff, 10, 0, 0, 7},
				     .user = ENGINE_NO_USER,
				     .signs = {[ENGINE_SIGN_PSN] = 100}};
	char text[1024];

	read_said(&who, text, sizeof(text));
	assert_non_null(strstr(text, "packets from 10.0.0.7 fit no"));
	inaddr_map_lid(who.ip, 0x1234);
	read_said(&who, text, sizeof(text));
	assert_non_null(strstr(text, "packets from LID 4660 fit no"));
	assert_null(strstr(text, "firewall"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sender_is_named_by_its_address_or_its_lid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
