/* SPDX-License-Identifier: BSD-2-Clause */
/* broker/fd_check, broker/shared_page: a process takes from a broker only
 * descriptors of the right kind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "broker/fd_check.h"
#include "broker/shared_page.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static int bound_socket(int domain, int type, uint16_t port)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} a = {0};
	int fd = socket(domain, type, 0), on = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
	a.any.sa_family = (sa_family_t)domain;
	a.v4.sin_port = htons(port);
	if (bind(fd, &a.any, sizeof(a))) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool is_receiver(int fd)
{
	int other = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	bool is = fd_check_is_receiver(fd, other);

	close(other);
	if (fd >= 0)
		close(fd);
	return is;
}

static void a_receiver_is_a_udp_socket_of_the_port_or_a_relay(void **state)
{
	int pair[2], fd = bound_socket(AF_INET, SOCK_DGRAM, 4791);

	/* -1: another process has the port */
	if (fd >= 0)
		assert_true(is_receiver(fd));
	assert_false(is_receiver(bound_socket(AF_INET, SOCK_DGRAM, 0)));
	assert_false(is_receiver(socket(AF_INET, SOCK_STREAM, 0)));
	assert_false(is_receiver(socket(AF_UNIX, SOCK_DGRAM, 0)));
	assert_false(is_receiver(open("/dev/null", O_RDWR)));
	assert_false(is_receiver(-1));
	assert_false(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
	assert_true(fd_check_is_messages(pair[1]));
	close(pair[1]);
	assert_true(is_receiver(pair[0]));
}

static void a_wake_fd_is_an_eventfd_that_does_not_block(void **state)
{
	int good = eventfd(0, EFD_NONBLOCK), waits = eventfd(0, 0), pipes[2];

	assert_true(fd_check_is_wake(good));
	assert_false(fd_check_is_wake(waits));
	assert_false(pipe2(pipes, O_NONBLOCK));
	assert_false(fd_check_is_wake(pipes[1]));
	assert_false(fd_check_is_wake(-1));
	close(good);
	close(waits);
	close(pipes[0]);
	close(pipes[1]);
}

static void a_page_that_can_shrink_is_not_mapped(void **state)
{
	int sealed = shared_page_new();
	int loose = memfd_create("page", MFD_ALLOW_SEALING);
	void *page = shared_page_map(sealed, PROT_READ);

	assert_non_null(page);
	shared_page_unmap(page);
	assert_false(ftruncate(loose, SHARED_PAGE_BYTES));
	assert_null(shared_page_map(loose, PROT_READ));
	close(sealed);
	close(loose);
}

static void a_page_that_can_grow_is_not_mapped(void **state)
{
	int loose = memfd_create("page", MFD_ALLOW_SEALING);

	assert_false(ftruncate(loose, SHARED_PAGE_BYTES));
	assert_false(fcntl(loose, F_ADD_SEALS, F_SEAL_SHRINK));
	assert_false(shared_page_is(loose));
	assert_false(fcntl(loose, F_ADD_SEALS, F_SEAL_GROW));
	assert_true(shared_page_is(loose));
	close(loose);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_receiver_is_a_udp_socket_of_the_port_or_a_relay),
		cmocka_unit_test(a_wake_fd_is_an_eventfd_that_does_not_block),
		cmocka_unit_test(a_page_that_can_shrink_is_not_mapped),
		cmocka_unit_test(a_page_that_can_grow_is_not_mapped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
