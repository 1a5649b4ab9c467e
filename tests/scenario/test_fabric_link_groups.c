/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The multicast groups of the link of a process to an emulated subnet: which
 * questions the process asks, and how the answers change the groups.  The test
 * plays the fabric.
 */
#include "test.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "host/fabric_link.h"
#include "host/host.h"
#include "host/link_groups.h"
#include "scenario/fabric_peer.h"

struct group {
	uint8_t gid[16];
};

static struct group group_of(uint8_t number)
{
	return (struct group){.gid = {0xff, 0x12, [15] = number}};
}

/* attach_group begins a use of a group, as the attach of a queue pair does, and
 * detach_group ends one.  Each returns the result of fabric_link_attach or
 * fabric_link_detach. */

static int attach_group(struct world *w, uint32_t port, uint8_t number)
{
	const char *why = NULL;
	const struct group g = group_of(number);
	int err =
		fabric_link_attach(w->engine, port, g.gid, w->d->now_ns, &why);

	assert_non_null(why);
	return err;
}

static int detach_group(struct world *w, uint32_t port, uint8_t number)
{
	const char *why = NULL;
	const struct group g = group_of(number);
	int err =
		fabric_link_detach(w->engine, port, g.gid, w->d->now_ns, &why);

	assert_non_null(why);
	return err;
}

/* Receives and returns the only question that waits, which must be of this kind
 * and about this group. */
static struct fabric_proto take_question(struct world *w, uint32_t kind,
					 uint32_t port, uint8_t number)
{
	struct fabric_proto m = fabric_peer_question(w, kind, port);
	const struct group g = group_of(number);

	assert_memory_equal(m.gid, g.gid, 16);
	assert_false(fabric_peer_is_readable(w->control));
	return m;
}

/* Answers a question, and lets the process receive the answer. */
static void answer_question(struct world *w, struct fabric_proto m, int err)
{
	m.err = err;
	fabric_peer_answer(w, &m);
	assert_true(fabric_link_has_news());
	assert_true(fabric_peer_turn(w));
}

static void serve_question(struct world *w, uint32_t kind, uint32_t port,
			   uint8_t number)
{
	answer_question(w, take_question(w, kind, port, number), 0);
}

static void assert_not_asked(struct world *w)
{
	assert_false(fabric_peer_turn(w));
	assert_false(fabric_peer_is_readable(w->control));
	assert_false(fabric_link_has_ended());
}

static void a_group_is_joined_once_and_left_after_the_last_detach(void **state)
{
	struct fabric_proto m;
	struct world w;

	fabric_peer_start(&w, HCA_QPT_UD, 0);
	assert_int_equal(attach_group(&w, 1, 7), 0);
	m = take_question(&w, FABRIC_PROTO_JOIN, 1, 7);
	assert_int_equal(attach_group(&w, 1, 7), 0);
	assert_not_asked(&w);
	answer_question(&w, m, 0);
	assert_not_asked(&w);
	assert_int_equal(attach_group(&w, 1, 7), 0);
	assert_int_equal(detach_group(&w, 1, 7), 0);
	assert_int_equal(detach_group(&w, 1, 7), 0);
	assert_not_asked(&w);
	assert_int_equal(detach_group(&w, 1, 7), 0);
	serve_question(&w, FABRIC_PROTO_LEAVE, 1, 7);
	assert_not_asked(&w);
	assert_int_equal(detach_group(&w, 1, 7), -EINVAL);
	assert_int_equal(attach_group(&w, 1, 7), 0);
	serve_question(&w, FABRIC_PROTO_JOIN, 1, 7);
	assert_not_asked(&w);
	fabric_peer_end(&w);
}

static void each_port_has_groups_of_its_own(void **state)
{
	struct world w;

	fabric_peer_start(&w, HCA_QPT_UD, 0);
	assert_int_equal(attach_group(&w, 1, 7), 0);
	assert_int_equal(attach_group(&w, 2, 7), 0);
	serve_question(&w, FABRIC_PROTO_JOIN, 1, 7);
	serve_question(&w, FABRIC_PROTO_JOIN, 2, 7);
	assert_int_equal(detach_group(&w, 1, 8), -EINVAL);
	assert_int_equal(detach_group(&w, 2, 7), 0);
	serve_question(&w, FABRIC_PROTO_LEAVE, 2, 7);
	assert_int_equal(detach_group(&w, 2, 7), -EINVAL);
	assert_int_equal(attach_group(&w, 1, 7), 0);
	assert_not_asked(&w);
	fabric_peer_end(&w);
}

static void questions_wait_for_one_another(void **state)
{
	struct fabric_proto m;
	struct world w;

	fabric_peer_start(&w, HCA_QPT_UD, 0);
	assert_int_equal(attach_group(&w, 2, 1), 0);
	assert_int_equal(attach_group(&w, 1, 2), 0);
	assert_int_equal(attach_group(&w, 1, 3), 0);
	m = take_question(&w, FABRIC_PROTO_JOIN, 2, 1);
	fabric_peer_tell(&w, 1, DATA_LID);
	assert_true(fabric_peer_turn(&w));
	assert_false(fabric_peer_is_readable(w.control));
	/* the fabric has not been asked about this group, and never is */
	assert_int_equal(detach_group(&w, 1, 2), 0);
	answer_question(&w, m, 0);
	m = fabric_peer_question(&w, FABRIC_PROTO_PORT, 1);
	assert_false(fabric_peer_is_readable(w.control));
	m.port = w.port;
	answer_question(&w, m, 0);
	assert_int_equal(fabric_link_take_changes(1), DATA_LID);
	serve_question(&w, FABRIC_PROTO_JOIN, 1, 3);
	assert_not_asked(&w);
	fabric_peer_end(&w);
}

/* The program detaches or attaches again before the fabric has answered. */
static void the_latest_attach_or_detach_holds(void **state)
{
	struct fabric_proto m;
	struct world w;

	fabric_peer_start(&w, HCA_QPT_UD, 0);
	assert_int_equal(attach_group(&w, 1, 7), 0);
	m = take_question(&w, FABRIC_PROTO_JOIN, 1, 7);
	assert_int_equal(detach_group(&w, 1, 7), 0);
	assert_int_equal(attach_group(&w, 1, 7), 0);
	answer_question(&w, m, 0);
	assert_not_asked(&w);
	assert_int_equal(detach_group(&w, 1, 7), 0);
	m = take_question(&w, FABRIC_PROTO_LEAVE, 1, 7);
	assert_int_equal(attach_group(&w, 1, 7), 0);
	answer_question(&w, m, 0);
	m = take_question(&w, FABRIC_PROTO_JOIN, 1, 7);
	assert_int_equal(detach_group(&w, 1, 7), 0);
	answer_question(&w, m, 0);
	serve_question(&w, FABRIC_PROTO_LEAVE, 1, 7);
	assert_not_asked(&w);
	fabric_peer_end(&w);
}

static void a_full_table_takes_no_other_group(void **state)
{
	struct fabric_proto m;
	struct world w;

	fabric_peer_start(&w, HCA_QPT_UD, 0);
	for (uint8_t i = 0; i < LINK_GROUPS_MAX; i++)
		assert_int_equal(attach_group(&w, 1, i), 0);
	assert_int_equal(attach_group(&w, 1, 100), -ENOSPC);
	for (uint8_t i = 0; i < LINK_GROUPS_MAX; i++)
		serve_question(&w, FABRIC_PROTO_JOIN, 1, i);
	assert_int_equal(attach_group(&w, 1, 100), -ENOSPC);
	assert_int_equal(detach_group(&w, 1, 100), -EINVAL);
	assert_int_equal(attach_group(&w, 1, 3), 0);
	assert_int_equal(detach_group(&w, 1, 3), 0);
	assert_not_asked(&w);
	assert_int_equal(attach_group(&w, 2, 100), 0);
	serve_question(&w, FABRIC_PROTO_JOIN, 2, 100);
	/* a group to which no queue pair is attached makes room for another
	 * one at once; but the process leaves such groups before it joins
	 * others, so no port is ever in more than LINK_GROUPS_MAX groups */
	assert_int_equal(attach_group(&w, 2, 101), 0);
	m = take_question(&w, FABRIC_PROTO_JOIN, 2, 101);
	for (uint8_t i = 0; i < LINK_GROUPS_MAX; i++) {
		assert_int_equal(detach_group(&w, 1, i), 0);
		assert_int_equal(attach_group(&w, 1, (uint8_t)(100 + i)), 0);
	}
	assert_int_equal(attach_group(&w, 1, 0), -ENOSPC);
	answer_question(&w, m, 0);
	for (int i = 0; i < LINK_GROUPS_MAX; i++) {
		m = fabric_peer_question(&w, FABRIC_PROTO_LEAVE, 1);
		assert_true(m.gid[15] < LINK_GROUPS_MAX);
		answer_question(&w, m, 0);
	}
	for (int i = 0; i < LINK_GROUPS_MAX; i++) {
		m = fabric_peer_question(&w, FABRIC_PROTO_JOIN, 1);
		assert_true(m.gid[15] >= 100);
		answer_question(&w, m, 0);
	}
	assert_not_asked(&w);
	fabric_peer_end(&w);
}

/* Answers the question with the error err, and stores the text that the process
 * prints in text[room]. */
static void refuse_question(struct world *w, const struct fabric_proto *m,
			    int err, char *text, size_t room)
{
	int old = dup(STDERR_FILENO),
	    file = memfd_create("stderr", MFD_CLOEXEC);
	ssize_t n;

	dup2(file, STDERR_FILENO);
	answer_question(w, *m, err);
	dup2(old, STDERR_FILENO);
	n = pread(file, text, room - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	close(old);
	close(file);
}

static void a_refusal_is_reported_and_the_next_attach_asks_again(void **state)
{
	struct fabric_proto m;
	struct world w;
	char text[1024];

	fabric_peer_start(&w, HCA_QPT_UD, 0);
	assert_int_equal(attach_group(&w, 2, 0xab), 0);
	assert_int_equal(attach_group(&w, 2, 1), 0);
	m = take_question(&w, FABRIC_PROTO_JOIN, 2, 0xab);
	refuse_question(&w, &m, -ENOSPC, text, sizeof(text));
	assert_non_null(strstr(text, fabric_peer_path));
	assert_non_null(
		strstr(text, "(ADVERB_FABRIC_HOST=" FABRIC_PEER_HOST ")"));
	assert_non_null(strstr(text, "port 2"));
	assert_non_null(strstr(text, "ff12::ab"));
	assert_non_null(strstr(text, "as many groups there as the fabric "));
	assert_non_null(strstr(text, "attach one to this group again"));
	/* the other group is joined, and nothing is asked about the refused
	 * group */
	serve_question(&w, FABRIC_PROTO_JOIN, 2, 1);
	assert_not_asked(&w);
	fabric_peer_tell(&w, 1, DATA_LID);
	assert_true(fabric_peer_turn(&w));
	m = fabric_peer_question(&w, FABRIC_PROTO_PORT, 1);
	m.port = w.port;
	answer_question(&w, m, 0);
	assert_not_asked(&w);
	assert_int_equal(attach_group(&w, 2, 0xab), 0);
	serve_question(&w, FABRIC_PROTO_JOIN, 2, 0xab);
	assert_int_equal(detach_group(&w, 2, 0xab), 0);
	assert_not_asked(&w);
	assert_int_equal(detach_group(&w, 2, 0xab), 0);
	serve_question(&w, FABRIC_PROTO_LEAVE, 2, 0xab);
	assert_not_asked(&w);
	fabric_peer_end(&w);
}

/* The port is not in a group that the fabric has refused.  So the process does
 * not ask to leave that group, and the group takes no room. */
static void a_refused_group_is_not_left(void **state)
{
	struct fabric_proto m;
	struct world w;
	char text[1024];

	fabric_peer_start(&w, HCA_QPT_UD, 0);
	for (uint8_t i = 1; i <= 3 * LINK_GROUPS_MAX; i++) {
		assert_int_equal(attach_group(&w, 1, i), 0);
		m = take_question(&w, FABRIC_PROTO_JOIN, 1, i);
		/* every second group is refused after the detach */
		if (i % 2)
			assert_int_equal(detach_group(&w, 1, i), 0);
		refuse_question(&w, &m, -EINVAL, text, sizeof(text));
		if (!(i % 2))
			assert_int_equal(detach_group(&w, 1, i), 0);
		assert_int_equal(detach_group(&w, 1, i), -EINVAL);
		assert_not_asked(&w);
	}
	fabric_peer_end(&w);
}

static void wrong_arguments_ask_nothing(void **state)
{
	uint8_t gid[16] = {0xfe, 0x80, [15] = 1};
	const char *why;
	struct world w;

	fabric_peer_start(&w, HCA_QPT_UD, 0);
	assert_int_equal(attach_group(&w, 0, 1), -EINVAL);
	assert_int_equal(attach_group(&w, FABRIC_PEER_PORTS + 1, 1), -EINVAL);
	assert_int_equal(detach_group(&w, 0, 1), -EINVAL);
	assert_int_equal(detach_group(&w, FABRIC_PEER_PORTS + 1, 1), -EINVAL);
	assert_int_equal(fabric_link_attach(w.engine, 1, gid, 1, &why),
			 -EINVAL);
	assert_non_null(strstr(why, "multicast"));
	assert_int_equal(fabric_link_detach(w.engine, 1, gid, 1, &why),
			 -EINVAL);
	assert_not_asked(&w);
	fabric_link_close();
	assert_int_equal(attach_group(&w, 1, 1), -EIO);
	assert_int_equal(detach_group(&w, 1, 1), -EINVAL);
	fabric_peer_end(&w);
}

static void groups_can_be_detached_after_the_link_has_ended(void **state)
{
	struct world w;

	fabric_peer_start(&w, HCA_QPT_UD, 0);
	assert_int_equal(attach_group(&w, 1, 1), 0);
	assert_int_equal(attach_group(&w, 1, 2), 0);
	assert_int_equal(attach_group(&w, 2, 3), 0);
	serve_question(&w, FABRIC_PROTO_JOIN, 1, 1);
	take_question(&w, FABRIC_PROTO_JOIN, 1, 2);
	shutdown(w.control, SHUT_RDWR);
	assert_true(fabric_peer_turn(&w));
	fabric_peer_assert_ended(&w);
	/* the program destroys its queue pairs */
	assert_int_equal(attach_group(&w, 1, 4), -EIO);
	assert_int_equal(detach_group(&w, 1, 1), 0);
	assert_int_equal(detach_group(&w, 1, 2), 0);
	assert_int_equal(detach_group(&w, 1, 2), -EINVAL);
	assert_int_equal(detach_group(&w, 2, 3), 0);
	fabric_peer_assert_ended(&w);
	fabric_peer_end(&w);
	/* another link begins without groups and questions */
	fabric_peer_start(&w, HCA_QPT_UD, 0);
	assert_int_equal(detach_group(&w, 1, 1), -EINVAL);
	assert_int_equal(attach_group(&w, 1, 2), 0);
	serve_question(&w, FABRIC_PROTO_JOIN, 1, 2);
	assert_not_asked(&w);
	fabric_peer_end(&w);
}

static void a_question_that_cannot_be_sent_ends_the_link(void **state)
{
	struct world w;

	fabric_peer_start(&w, HCA_QPT_UD, 0);
	assert_int_equal(attach_group(&w, 1, 1), 0);
	serve_question(&w, FABRIC_PROTO_JOIN, 1, 1);
	shutdown(w.control, SHUT_RDWR);
	assert_int_equal(attach_group(&w, 1, 2), 0);
	fabric_peer_assert_ended(&w);
	assert_int_equal(detach_group(&w, 1, 2), 0);
	fabric_peer_end(&w);
	fabric_peer_start(&w, HCA_QPT_UD, 0);
	assert_int_equal(attach_group(&w, 1, 1), 0);
	serve_question(&w, FABRIC_PROTO_JOIN, 1, 1);
	shutdown(w.control, SHUT_RDWR);
	assert_int_equal(detach_group(&w, 1, 1), 0);
	fabric_peer_assert_ended(&w);
	fabric_peer_end(&w);
}

enum hostile {
	OF_PORT,
	OF_OTHER_KIND,
	OF_NO_PORT,
	OF_OTHER_PORT,
	OF_OTHER_GROUP,
	OF_OTHER_VERSION,
	OF_EARLIER_QUESTION,
	OF_LATER_QUESTION,
	TOO_SHORT,
	ERR_IS_POSITIVE,
	ERR_IS_NO_ERRNO,
	ERR_IS_EPROTO,
	ERR_AND_OTHER_GROUP,
	TWICE,
	AFTER_THE_LAST,
	AFTER_THE_LAST_OF_KIND_0,
	HOSTILES
};

static void make_hostile(struct fabric_proto *m, enum hostile how)
{
	if (how == OF_PORT) {
		m->kind = FABRIC_PROTO_PORT;
		m->port = (struct fabric_port){
			.state = 4, .mtu = 5, .max_mtu = 5};
	}
	if (how == OF_OTHER_KIND)
		m->kind = m->kind == FABRIC_PROTO_JOIN ? FABRIC_PROTO_LEAVE
						       : FABRIC_PROTO_JOIN;
	if (how == OF_NO_PORT)
		m->number = 0;
	if (how == OF_OTHER_PORT)
		m->number = 2;
	if (how == OF_OTHER_GROUP || how == ERR_AND_OTHER_GROUP)
		m->gid[15]++;
	if (how == OF_OTHER_VERSION)
		m->version++;
	if (how == ERR_IS_POSITIVE)
		m->err = ENOMEM;
	if (how == ERR_IS_NO_ERRNO)
		m->err = INT32_MIN;
	if (how == ERR_IS_EPROTO)
		m->err = -EPROTO;
	if (how == ERR_AND_OTHER_GROUP)
		m->err = -ENOMEM;
	if (how == AFTER_THE_LAST_OF_KIND_0)
		*m = (struct fabric_proto){.version = FABRIC_PROTO_VERSION,
					   .serial = m->serial,
					   .number = FABRIC_PEER_PORTS};
	if (how == OF_EARLIER_QUESTION)
		m->serial--;
	if (how == OF_LATER_QUESTION)
		m->serial++;
}

/* Answers a question of a kind in a hostile way, and expects that this ends the
 * link.  The process has two groups at port 1 and one at port 2, so that a
 * wrong answer may be about another group or another port. */
static void answer_hostile(uint32_t kind, enum hostile how)
{
	struct fabric_proto m;
	struct world w;
	size_t size = how == TOO_SHORT ? sizeof(m) - 1 : sizeof(m);
	bool is_late = how == AFTER_THE_LAST || how == AFTER_THE_LAST_OF_KIND_0;

	fabric_peer_start(&w, HCA_QPT_UD, 0);
	assert_int_equal(attach_group(&w, 1, 1), 0);
	assert_int_equal(attach_group(&w, 1, 2), 0);
	assert_int_equal(attach_group(&w, 2, 1), 0);
	if (kind == FABRIC_PROTO_LEAVE) {
		serve_question(&w, FABRIC_PROTO_JOIN, 1, 1);
		serve_question(&w, FABRIC_PROTO_JOIN, 1, 2);
		serve_question(&w, FABRIC_PROTO_JOIN, 2, 1);
		assert_int_equal(detach_group(&w, 1, 1), 0);
	}
	m = take_question(&w, kind, 1, 1);
	if (how == TWICE || is_late)
		answer_question(&w, m, 0);
	if (is_late && kind == FABRIC_PROTO_JOIN) {
		serve_question(&w, FABRIC_PROTO_JOIN, 1, 2);
		m = take_question(&w, FABRIC_PROTO_JOIN, 2, 1);
		answer_question(&w, m, 0);
	}
	make_hostile(&m, how);
	assert_int_equal(send(w.control, &m, size, 0), size);
	assert_true(fabric_peer_turn(&w));
	fabric_peer_assert_ended(&w);
	fabric_peer_end(&w);
}

static void hostile_answers_end_the_link(void **state)
{
	for (int how = 0; how < HOSTILES; how++) {
		answer_hostile(FABRIC_PROTO_JOIN, (enum hostile)how);
		answer_hostile(FABRIC_PROTO_LEAVE, (enum hostile)how);
	}
}

/* A correct fabric refuses to let a port leave a group only if the port is not
 * in the group. */
static void a_refusal_to_leave_ends_the_link(void **state)
{
	struct fabric_proto m;
	struct world w;

	fabric_peer_start(&w, HCA_QPT_UD, 0);
	assert_int_equal(attach_group(&w, 1, 1), 0);
	serve_question(&w, FABRIC_PROTO_JOIN, 1, 1);
	assert_int_equal(detach_group(&w, 1, 1), 0);
	m = take_question(&w, FABRIC_PROTO_LEAVE, 1, 1);
	answer_question(&w, m, -EINVAL);
	fabric_peer_assert_ended(&w);
	fabric_peer_end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_group_is_joined_once_and_left_after_the_last_detach),
		cmocka_unit_test(each_port_has_groups_of_its_own),
		cmocka_unit_test(questions_wait_for_one_another),
		cmocka_unit_test(the_latest_attach_or_detach_holds),
		cmocka_unit_test(a_full_table_takes_no_other_group),
		cmocka_unit_test(
			a_refusal_is_reported_and_the_next_attach_asks_again),
		cmocka_unit_test(a_refused_group_is_not_left),
		cmocka_unit_test(wrong_arguments_ask_nothing),
		cmocka_unit_test(
			groups_can_be_detached_after_the_link_has_ended),
		cmocka_unit_test(a_question_that_cannot_be_sent_ends_the_link),
		cmocka_unit_test(hostile_answers_end_the_link),
		cmocka_unit_test(a_refusal_to_leave_ends_the_link),
	};

	return cmocka_run_group_tests(tests, fabric_peer_make_folder,
				      fabric_peer_remove_folder);
}
