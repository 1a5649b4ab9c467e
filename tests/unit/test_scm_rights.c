/* SPDX-License-Identifier: BSD-2-Clause */
/* util/scm_rights: each descriptor that a message brings is stored or closed.
 */
#include "brought.h"

#include "util/scm_rights.h"

#define MOST 4

/* A message that recvmsg(2) has filled in. */
struct received {
	struct msghdr head;
	char byte;
	struct iovec iov;
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(16) + CMSG_SPACE(MOST * sizeof(int))];
	} control;
};

static void receive_message(int socket, struct received *r)
{
	*r = (struct received){.byte = 0};
	r->iov = (struct iovec){&r->byte, 1};
	r->head = (struct msghdr){.msg_iov = &r->iov,
				  .msg_iovlen = 1,
				  .msg_control = &r->control,
				  .msg_controllen = sizeof(r->control)};
	assert_true(recvmsg(socket, &r->head, MSG_DONTWAIT) >= 0);
}

static void descriptors_without_room_are_closed(void **state)
{
	struct brought b = brought_new();
	struct received r;
	int fds[2], pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	brought_send(&b, pair[0], "x", 1, 3);
	receive_message(pair[1], &r);
	assert_int_equal(scm_rights_take(&r.head, fds, 2), 2);
	assert_false(brought_are_closed(&b));
	close(fds[0]);
	close(fds[1]);
	assert_true(brought_are_closed(&b));
	brought_free(&b);
	close(pair[0]);
	close(pair[1]);
}

/* With SO_PASSCRED the kernel puts the sender's credentials before the
 * descriptors. */
static void descriptors_after_other_control_data_are_found(void **state)
{
	struct brought b = brought_new();
	int fd, on = 1, pair[2];
	struct received r;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(
		setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)),
		0);
	brought_send(&b, pair[0], "x", 1, 1);
	receive_message(pair[1], &r);
	assert_int_equal(CMSG_FIRSTHDR(&r.head)->cmsg_type, SCM_CREDENTIALS);
	assert_int_equal(scm_rights_take(&r.head, &fd, 1), 1);
	close(fd);
	assert_true(brought_are_closed(&b));
	brought_free(&b);
	close(pair[0]);
	close(pair[1]);
}

static void a_message_may_bring_no_descriptor(void **state)
{
	struct received r;
	int fd, pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(send(pair[0], "x", 1, 0), 1);
	receive_message(pair[1], &r);
	assert_int_equal(scm_rights_take(&r.head, &fd, 1), 0);
	close(pair[0]);
	close(pair[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(descriptors_without_room_are_closed),
		cmocka_unit_test(
			descriptors_after_other_control_data_are_found),
		cmocka_unit_test(a_message_may_bring_no_descriptor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
