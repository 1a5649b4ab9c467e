/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An open client gets from adverbd the datagrams of its class, pages, arenas,
 * and answers about other clients.  Each program has a network namespace of its
 * own, so that port 4791 and the broker's address are free.  ADVERB_BROKER
 * names adverbd.
 */
#include "brokers.h"

#include "broker/client.h"
#include "broker/dial.h"
#include "broker/shared_page.h"
#include "broker/proto.h"
#include "broker/steer.h"
#include "engine/credit.h"
#include "wire/member.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pid_t said_pid; /* getpid returns this; 0: the real process id */

pid_t getpid(void)
{
	return said_pid ? said_pid : (pid_t)syscall(SYS_getpid);
}

static void each_client_gets_the_datagrams_of_its_class(void **state)
{
	struct client c[3];
	pid_t pid;

	for (int i = 0; i < 3; i++)
		open_or_fail(&c[i]);
	pid = broker_of(&c[0]);
	for (int i = 0; i < 3; i++)
		for (uint32_t k = 0; k < 20; k++) {
			uint32_t qpn = steer_qpn(c[i].class, k * 811);

			assert_int_not_equal(c[i].class, c[(i + 1) % 3].class);
			send_to(qpn, AF_INET, "127.0.0.1");
			send_to(qpn, AF_INET6, "::1");
		}
	/* No client gets datagrams for class 0, for a class without a socket,
	 * or for the multicast QPN. */
	send_to(1, AF_INET, "127.0.0.1");
	send_to(steer_qpn(unowned_class(c, 3), 5), AF_INET, "127.0.0.1");
	send_to(0xffffff, AF_INET, "127.0.0.1");
	for (int i = 0; i < 3; i++)
		assert_int_equal(take_all(&c[i]), 40);
	for (int i = 0; i < 3; i++)
		client_close(&c[i]);
	end_broker(pid);
}

/* A process notes on its page that a queue pair of its own is closed. */
static void says_closed(struct client *me)
{
	uint32_t mine = steer_qpn(me->class, 5);
	struct credit_page *page = client_page(me);

	assert_int_equal(peer_state(me, mine), CLIENT_PEER_ALIVE);
	closed_note(&page->closed, mine);
	closed_note(&page->closed, mine);
	assert_int_equal(peer_state(me, mine), CLIENT_PEER_CLOSED);
	assert_int_equal(peer_state(me, steer_qpn(me->class, 6)),
			 CLIENT_PEER_ALIVE);
	closed_open(&page->closed, mine);
	assert_int_equal(peer_state(me, mine), CLIENT_PEER_ALIVE);
}

static void sigkill_of_a_client_frees_its_class(void **state)
{
	int go[2], out[2], hold[2];
	struct client me, next;
	struct open_report r;
	pid_t pid, broker;
	uint32_t qpn;

	open_or_fail(&me);
	broker = broker_of(&me);
	if (pipe(go) || pipe(out) || pipe(hold))
		fail();
	pid = fork();
	if (pid < 0)
		fail();
	if (!pid) {
		client_close(&me);
		close(go[1]);
		close(hold[1]);
		open_and_report(go[0], out[1], hold[0]);
	}
	close(go[1]);
	assert_int_equal(read(out[0], &r, sizeof(r)), sizeof(r));
	assert_int_equal(r.err, 0);
	qpn = steer_qpn(r.class, 77);
	assert_int_equal(peer_state(&me, qpn), CLIENT_PEER_ALIVE);
	assert_int_equal(peer_state(&me, 1), CLIENT_PEER_UNKNOWN);
	says_closed(&me);
	send_to(qpn, AF_INET, "127.0.0.1");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(peer_state(&me, qpn), CLIENT_PEER_GONE);
	send_to(qpn, AF_INET, "127.0.0.1");
	open_or_fail(&next);
	assert_int_not_equal(next.class, me.class);
	assert_int_equal(take_all(&next), 0);
	client_close(&next);
	client_close(&me);
	close(go[0]);
	close(out[0]);
	close(out[1]);
	close(hold[0]);
	close(hold[1]);
	end_broker(broker);
}

/* Leaves both multicast groups with a class's socket; returns how many groups
 * the socket was still a member of. */
static int leave_groups(int fd)
{
	struct ip_mreqn four = {.imr_ifindex = 1};
	struct ipv6_mreq six = {.ipv6mr_interface = 1};

	inet_pton(AF_INET, "239.1.2.3", &four.imr_multiaddr);
	inet_pton(AF_INET6, "ff0e::1234", &six.ipv6mr_multiaddr);
	return !setsockopt(fd, IPPROTO_IP, IP_DROP_MEMBERSHIP, &four,
			   sizeof(four)) +
	       !setsockopt(fd, IPPROTO_IPV6, IPV6_DROP_MEMBERSHIP, &six,
			   sizeof(six));
}

static void a_clients_multicast_groups_end_with_the_client(void **state)
{
	uint8_t four[16] = {[10] = 0xff, 0xff, 239, 1, 2, 3};
	uint8_t six[16] = {0xff, 0x0e, [14] = 0x12, 0x34};
	struct client me, next;
	uint32_t class;
	pid_t pid;

	open_or_fail(&me);
	pid = broker_of(&me);
	for (int round = 0; round < 2; round++) {
		assert_int_equal(member_join(me.udp_fd, four, 1), 0);
		assert_int_equal(member_join(me.udp_fd, six, 1), 0);
		if (round)
			break;
		/* A member can leave without a route to the group. */
		member_leave(me.udp_fd, four);
		member_leave(me.udp_fd, six);
		assert_int_equal(leave_groups(me.udp_fd), 0);
	}
	class = me.class;
	client_close(&me);
	/* A class is given again after a pause. */
	for (open_or_fail(&next); next.class != class; open_or_fail(&next))
		client_close(&next);
	assert_int_equal(leave_groups(next.udp_fd), 0);
	client_close(&next);
	end_broker(pid);
}

static void a_page_is_written_by_its_owner_and_read_by_all(void **state)
{
	struct client c[2], next;
	const uint8_t *seen;
	uint8_t *own;
	uint32_t class;
	pid_t pid;

	for (int i = 0; i < 2; i++)
		open_or_fail(&c[i]);
	pid = broker_of(&c[0]);
	own = client_page(&c[0]);
	assert_non_null(own);
	own[7] = 42;
	seen = page_of(&c[1], c[0].class);
	assert_int_equal(seen[7], 42);
	own[7] = 43;
	assert_int_equal(seen[7], 43);
	assert_int_equal(mprotect((void *)(uintptr_t)seen, SHARED_PAGE_BYTES,
				  PROT_READ | PROT_WRITE),
			 -1);
	/* The page ends with its class; the next owner gets zeros. */
	class = c[0].class;
	client_close(&c[0]);
	do {
		open_or_fail(&next);
		if (next.class != class)
			client_close(&next);
	} while (next.class != class);
	assert_int_equal(seen[7], 0);
	client_close(&next);
	client_close(&c[1]);
	end_broker(pid);
}

static void there_is_no_page_of_a_class_without_an_owner(void **state)
{
	const void *page = NULL;
	struct client c;
	pid_t pid;

	open_or_fail(&c);
	pid = broker_of(&c);
	assert_true(client_page_of(&c, 0, &page) && !page);
	assert_true(client_page_of(&c, 5000, &page) && !page);
	for (int i = 0; i < 3; i++) {
		assert_false(client_page_of(&c, 77, &page));
		assert_null(page_of(&c, 77));
	}
	client_close(&c);
	end_broker(pid);
}

/* Each client takes several descriptors in this process and in the broker, so
 * the test raises the limit on open files. */
static void more_clients_than_classes_are_refused_with_a_reason(void **state)
{
	static struct client c[STEER_CLASS_MAX];
	struct rlimit files;
	struct client more;
	const char *why = "";
	pid_t pid;

	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	if (files.rlim_cur < 6 * STEER_CLASS_MAX)
		SKIP_FOR("RLIMIT_NOFILE is too low for a client per class");
	for (int i = 0; i < STEER_CLASS_MAX; i++)
		open_or_fail(&c[i]);
	pid = broker_of(&c[0]);
	assert_int_equal(open_client(&more, &why), -ENOSPC);
	assert_string_equal(why, "every steering class of port 4791 is taken: "
				 "end some RDMA programs");
	send_to(steer_qpn(c[1000].class, 5), AF_INET, "127.0.0.1");
	assert_int_equal(take_all(&c[1000]), 1);
	client_close(&c[500]);
	open_or_fail(&more);
	assert_int_equal(more.class, c[500].class);
	client_close(&more);
	for (int i = 0; i < STEER_CLASS_MAX; i++)
		client_close(&c[i]);
	end_broker(pid);
}

/* Returns whether the broker says that the owner of a class may send from a
 * port. */
static bool is_source(struct client *c, uint32_t class, uint16_t port)
{
	const struct inaddr from = {{[10] = 0xff, 0xff, 127, 0, 0, 1}, port};
	const struct inaddr to = {{[10] = 0xff, 0xff, 127, 0, 0, 1}, 4791};
	struct client_news news;

	assert_true(client_ask_source(c, class, &from, &to));
	while (!wait_turn(c, &news))
		;
	assert_int_equal(news.what, CLIENT_NEWS_SOURCE);
	assert_int_equal(news.class, class);
	return news.is_peers;
}

static void a_member_of_the_group_sends_from_port_4791(void **state)
{
	struct client c[3];
	pid_t pid;

	for (int i = 0; i < 3; i++)
		open_or_fail(&c[i]);
	pid = broker_of(&c[0]);
	for (int i = 0; i < 3; i++)
		assert_true(is_source(&c[0], c[i].class, 4791));
	assert_false(is_source(&c[0], unowned_class(c, 3), 4791));
	assert_false(is_source(&c[0], c[1].class, 9));
	for (int i = 0; i < 3; i++)
		client_close(&c[i]);
	end_broker(pid);
}

static void an_arena_is_shown_to_clients_of_its_user_that_ask(void **state)
{
	struct client owner, other, both[2];
	struct client_news news;
	const char *why = "";
	uint64_t one = 1;
	int arena = memfd_create("arena", MFD_CLOEXEC);
	int wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct client_want shares = {arena, wake_fd, 60000, NULL};
	pid_t pid;

	assert_int_equal(client_open(&owner, &shares, &why), 0);
	open_or_fail(&other);
	pid = broker_of(&owner);
	news = arena_of(&other, owner.class);
	assert_int_equal(news.arena, CLIENT_ARENA_HERE);
	assert_int_equal(news.arena_at.fd, arena);
	assert_int_equal(news.arena_at.pid, getpid());
	assert_int_equal(news.arena_at.pid_space, proto_pid_space());
	assert_int_equal(write(news.peer_wake_fd, &one, sizeof(one)),
			 sizeof(one));
	assert_int_equal(read(wake_fd, &one, sizeof(one)), sizeof(one));
	close(news.peer_wake_fd);
	/* a client without an arena, a class without an owner, no class */
	assert_int_equal(arena_of(&owner, other.class).arena,
			 CLIENT_ARENA_NONE);
	both[0] = owner;
	both[1] = other;
	assert_int_equal(arena_of(&other, unowned_class(both, 2)).arena,
			 CLIENT_ARENA_GONE);
	assert_int_equal(arena_of(&other, 0).arena, CLIENT_ARENA_GONE);
	client_close(&owner);
	while (arena_of(&other, owner.class).arena == CLIENT_ARENA_HERE)
		usleep(1000); /* until the broker notices the end */
	client_close(&other);
	close(arena);
	close(wake_fd);
	end_broker(pid);
}

static void a_client_that_claims_another_process_id_shares_nothing(void **state)
{
	struct client owner, other;
	const char *why = "";
	int arena = memfd_create("arena", MFD_CLOEXEC);
	int wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct client_want shares = {arena, wake_fd, 60000, NULL};
	pid_t pid;

	said_pid = getppid();
	assert_int_equal(client_open(&owner, &shares, &why), 0);
	said_pid = 0;
	open_or_fail(&other);
	pid = broker_of(&owner);
	assert_int_equal(arena_of(&other, owner.class).arena,
			 CLIENT_ARENA_NONE);
	client_close(&owner);
	client_close(&other);
	close(arena);
	close(wake_fd);
	end_broker(pid);
}

static void an_arena_is_not_shown_to_another_user(void **state)
{
	struct client owner;
	const char *why = "";
	int arena = memfd_create("arena", MFD_CLOEXEC);
	int wake_fd = eventfd(0, EFD_CLOEXEC), status;
	struct client_want shares = {arena, wake_fd, 60000, NULL};
	pid_t pid;

	if (!test_can_be(65534))
		SKIP_FOR(ONE_USER);
	assert_int_equal(client_open(&owner, &shares, &why), 0);
	pid = fork();
	if (!pid) {
		struct client c;

		if (setresuid(65534, 65534, 65534))
			_exit(2);
		open_or_fail(&c);
		_exit(arena_of(&c, owner.class).arena != CLIENT_ARENA_NONE);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	pid = broker_of(&owner);
	client_close(&owner);
	close(arena);
	close(wake_fd);
	end_broker(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_client_gets_the_datagrams_of_its_class),
		cmocka_unit_test(sigkill_of_a_client_frees_its_class),
		cmocka_unit_test(
			a_clients_multicast_groups_end_with_the_client),
		cmocka_unit_test(
			a_page_is_written_by_its_owner_and_read_by_all),
		cmocka_unit_test(there_is_no_page_of_a_class_without_an_owner),
		cmocka_unit_test(
			more_clients_than_classes_are_refused_with_a_reason),
		cmocka_unit_test(a_member_of_the_group_sends_from_port_4791),
		cmocka_unit_test(
			an_arena_is_shown_to_clients_of_its_user_that_ask),
		cmocka_unit_test(
			a_client_that_claims_another_process_id_shares_nothing),
		cmocka_unit_test(an_arena_is_not_shown_to_another_user),
	};

	return cmocka_run_group_tests(tests, enter_namespace, NULL);
}
