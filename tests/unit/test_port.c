/* SPDX-License-Identifier: BSD-2-Clause */
/* wire/port: which user owns a UDP port; the test makes the sockets. */
#include "test.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire/bind.h"
#include "wire/port.h"

static const struct inaddr four = {.ip = {[10] = 0xff, 0xff, 127, 0, 0, 1},
				   .port = 4791};
static const struct inaddr six = {.ip = {[15] = 1}, .port = 4791};

static uint16_t port_of(int fd)
{
	struct sockaddr_in6 name;
	socklen_t len = sizeof(name);

	assert_int_equal(
		getsockname(fd, (struct sockaddr *)(void *)&name, &len), 0);
	return ntohs(name.sin6_port);
}

/* Checks which user owns the source port of a datagram from `fd` to `to`, by
 * port_owner and by port_owner_listed. */
static void assert_owner(int fd, const struct inaddr *to, enum port_owner want)
{
	struct inaddr from = *to;
	uid_t user = 12345;

	from.port = port_of(fd);
	assert_int_equal(port_owner(&from, to, &user), want);
	if (want == PORT_USER)
		assert_int_equal(user, geteuid());
	user = 12345;
	assert_int_equal(port_owner_listed(&from, &user), want);
	if (want == PORT_USER)
		assert_int_equal(user, geteuid());
}

static void a_port_at_every_address_belongs_to_its_user(void **state)
{
	bool is_v4 = true;
	int fd = bind_udp(0, &is_v4);

	assert_true(fd >= 0);
	assert_owner(fd, &four, PORT_USER);
	close(fd);
}

static void a_socket_of_both_families_has_both_ports(void **state)
{
	bool is_v4 = false;
	int fd = bind_udp(0, &is_v4);

	assert_true(fd >= 0);
	assert_owner(fd, &four, PORT_USER);
	if (!is_v4)
		assert_owner(fd, &six, PORT_USER);
	close(fd);
}

/* Another user may have the same number at another address. */
static void a_port_at_one_address_belongs_to_nobody(void **state)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)(void *)&a, sizeof(a)), 0);
	assert_owner(fd, &four, PORT_NOBODY);
	close(fd);
}

static void a_port_that_is_closed_belongs_to_nobody(void **state)
{
	bool is_v4 = true;
	int fd = bind_udp(0, &is_v4);
	struct inaddr from = four;
	uid_t user;

	from.port = port_of(fd);
	close(fd);
	assert_int_equal(port_owner(&from, &four, &user), PORT_NOBODY);
}

static int no_files; /* errno of each fopen; 0: it works */

/* Replaces libc's fopen. */
FILE *fopen(const char *path, const char *mode)
{
	static FILE *(*real)(const char *, const char *);

	if (no_files) {
		errno = no_files;
		return NULL;
	}
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "fopen");
	return real(path, mode);
}

/* Packets from a port whose owner is unknown are accepted, and the user is
 * told.  If such packets were refused, connected queue pairs of two processes
 * of the host would get no packets in a sandbox that has neither sock_diag(7)
 * nor /proc. */
static void without_proc_nothing_is_known_of_either_family(void **state)
{
	uid_t user;

	no_files = ENOENT;
	assert_int_equal(port_owner_listed(&four, &user), PORT_UNKNOWN);
	assert_int_equal(port_owner_listed(&six, &user), PORT_UNKNOWN);
	no_files = 0;
}

/* A peer that brings the process to its limit of descriptors cannot thereby
 * make the process trust a port. */
static void without_descriptors_no_port_is_believed(void **state)
{
	static const int limits[] = {EMFILE, ENFILE, ENOMEM};
	uid_t user;

	for (size_t i = 0; i < TEST_COUNT(limits); i++) {
		no_files = limits[i];
		assert_int_equal(port_owner_listed(&four, &user), PORT_NOBODY);
		assert_int_equal(port_owner_listed(&six, &user), PORT_NOBODY);
	}
	no_files = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_port_at_every_address_belongs_to_its_user),
		cmocka_unit_test(a_socket_of_both_families_has_both_ports),
		cmocka_unit_test(a_port_at_one_address_belongs_to_nobody),
		cmocka_unit_test(a_port_that_is_closed_belongs_to_nobody),
		cmocka_unit_test(
			without_proc_nothing_is_known_of_either_family),
		cmocka_unit_test(without_descriptors_no_port_is_believed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
