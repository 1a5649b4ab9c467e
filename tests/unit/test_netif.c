/* SPDX-License-Identifier: BSD-2-Clause */
/* device/netif: the devices, GIDs and events of a network namespace that the
 * test makes. */
#include "test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "device/netif.h"
#include "device/netlink.h"
#include "util/shared.h"

/* posted once for each event */
static sem_t told;
static enum device_event events[64];
static const struct device *event_devices[64];
static int event_count;

static void on_port(const struct device *dev, uint32_t number,
		    enum device_event what)
{
	assert_int_equal(number, 1);
	event_devices[event_count % 64] = dev;
	events[event_count++ % 64] = what;
	sem_post(&told);
}

static int control_interface(unsigned long request, struct ifreq *r)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	int err = ioctl(fd, request, r);

	close(fd);
	return err;
}

static void set_up_flag(bool up)
{
	struct ifreq r = {.ifr_name = "lo", .ifr_flags = up ? IFF_UP : 0};

	assert_int_equal(control_interface(SIOCSIFFLAGS, &r), 0);
}

/* Sets the address of an alias of lo; 0.0.0.0 removes the alias. */
static void set_address(const char *text)
{
	struct ifreq r = {.ifr_name = "lo:1"};
	struct sockaddr_in *a = (struct sockaddr_in *)(void *)&r.ifr_addr;

	a->sin_family = AF_INET;
	inet_pton(AF_INET, text, &a->sin_addr);
	assert_int_equal(control_interface(SIOCSIFADDR, &r), 0);
}

static bool is_local(const char *text)
{
	uint8_t ip[16];

	assert_int_equal(inet_pton(AF_INET6, text, ip), 1);
	return netif_is_local(ip);
}

static int taken; /* how many events wait_for has taken */

/* Takes events up to the next of this kind, and returns the event's device.
 * Each post of `told` stands for one event, so that none is left out if several
 * events come before this thread runs. */
static const struct device *wait_for(enum device_event what)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += TEST_WAIT_S;
	do {
		while (sem_timedwait(&told, &end))
			if (errno != EINTR)
				fail_msg("no event %d came", (int)what);
	} while (events[taken++ % 64] != what);
	return event_devices[(taken - 1) % 64];
}

static int enter_namespace(void **state)
{
	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET)) {
		printf("skipped: no network namespace of our own\n");
		_exit(77);
	}
	sem_init(&told, 0, 0);
	setenv("ADVERB_EXPLAIN", "0", 1);
	set_up_flag(true);
	return 0;
}

#define CHECK(what)                                                            \
	do                                                                     \
		if (!(what)) {                                                 \
			printf("not so: %s\n", #what);                         \
			return 1;                                              \
		}                                                              \
	while (0)

/* Runs in a child, since a process chooses its devices once.  Returns 0, or 1
 * if a CHECK fails. */
static int see_both_kinds(void)
{
	uint8_t lo[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};
	uint8_t other[16] = {[10] = 0xff, 0xff, 127, 0, 0, 9};
	/* the GID 0 of RoCE, which is no address of the interface */
	uint8_t eui[16] = {0xfe, 0x80, [8] = 2, [11] = 0xff, 0xfe, [15] = 1};
	const struct device *d;

	setenv("ADVERB_DEVICES", "iwarp:lo,lo", 1);
	CHECK(device_list(&d) == 2);
	CHECK(d[0].kind == DEVICE_IWARP && !strcmp(d[0].name, "iw0"));
	CHECK(d[1].kind == DEVICE_ROCE && !strcmp(d[1].name, "adv0"));
	CHECK(device_link(&d[0]) != device_link(&d[1]));
	for (int i = 0; i < 2; i++) {
		CHECK(netif_has_address(&d[i], lo));
		CHECK(!netif_has_address(&d[i], other));
		CHECK(!netif_has_address(&d[i], eui));
	}
	/* datagrams come to the RoCE device only */
	CHECK(netif_device(lo, 0) == 1);
	CHECK(netif_device(eui, 0) == 1);
	/* and events about the GID table concern the RoCE device only */
	netif_watch(on_port);
	set_address("127.0.0.9");
	wait_for(DEVICE_EVENT_GIDS);
	CHECK(netif_has_address(&d[0], other));
	set_up_flag(false);
	wait_for(DEVICE_EVENT_DOWN);
	netif_unwatch();
	for (int i = 0; i < event_count; i++)
		CHECK(events[i] != DEVICE_EVENT_GIDS ||
		      event_devices[i] == &d[1]);
	set_address("0.0.0.0");
	set_up_flag(true);
	return 0;
}

static int see_iwarp_alone(void)
{
	uint8_t lo[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};
	uint8_t group[16] = {0xff, 0x12, [15] = 1};
	const struct device *d;

	setenv("ADVERB_DEVICES", "iwarp", 1);
	CHECK(device_list(&d) == 1);
	CHECK(netif_has_address(d, lo));
	CHECK(netif_device(lo, d->ifindex) < 0);
	CHECK(netif_device(group, d->ifindex) < 0);
	CHECK(!netif_is_local(lo) && !netif_index(lo, 0));
	return 0;
}

static void in_a_child(int (*see)(void))
{
	int status;

	fflush(stdout);
	if (!fork()) {
		status = see();
		fflush(stdout);
		_exit(status);
	}
	assert_true(wait(&status) > 0);
	assert_int_equal(status, 0);
}

static void datagrams_come_to_roce_devices_alone(void **state)
{
	in_a_child(see_both_kinds);
	in_a_child(see_iwarp_alone);
}

/* The program has closed descriptor 0.  The watch must leave that number free,
 * and use `first` and higher numbers (fd_identity_note).  After the watch has
 * ended, the program's next files get the numbers 0 and `first`.  netif_forget
 * must leave these files open. */
static int watch_without_stdin(void)
{
	int first = dup(STDERR_FILENO);

	close(first);
	close(STDIN_FILENO);
	netif_watch(on_port);
	CHECK(fcntl(first, F_GETFD) >= 0);
	CHECK(fcntl(STDIN_FILENO, F_GETFD) < 0);
	netif_unwatch();
	CHECK(fcntl(first, F_GETFD) < 0);
	CHECK(open("/dev/null", O_RDONLY) == STDIN_FILENO);
	CHECK(open("/dev/null", O_RDONLY) == first);
	netif_forget();
	CHECK(fcntl(STDIN_FILENO, F_GETFD) >= 0);
	CHECK(fcntl(first, F_GETFD) >= 0);
	return 0;
}

/* Returns whether the pipe still has all 16 bytes that were written to it. */
static bool has_bytes(int fd)
{
	struct pollfd p = {fd, POLLIN, 0};
	int bytes = 0;

	return poll(&p, 1, 0) == 1 && !ioctl(fd, FIONREAD, &bytes) &&
	       bytes == 16;
}

/* Returns how many threads this process has; 0: /proc does not tell. */
static uint32_t count_threads(void)
{
	struct stat s = {.st_nlink = 2};

	stat("/proc/self/task", &s); /* each thread has a folder there */
	return (uint32_t)s.st_nlink - 2;
}

/* The program has replaced the descriptors of a watch.  The thread of this
 * watch reads none of the program's files, even after the next watch has begun.
 */
static int replace_watched_files(void)
{
	int pipe_fd[2], first = dup(STDERR_FILENO), last;
	uint32_t before = count_threads();

	close(first);
	netif_watch(on_port);
	last = dup(STDERR_FILENO);
	CHECK(!pipe(pipe_fd) &&
	      write(pipe_fd[1], "0123456789abcdef", 16) == 16);
	for (int fd = first; fd < last; fd++)
		CHECK(dup2(pipe_fd[0], fd) == fd);
	netif_unwatch();
	netif_watch(on_port);
	set_address("127.0.0.9");
	wait_for(DEVICE_EVENT_GIDS);
	set_address("0.0.0.0");
	wait_for(DEVICE_EVENT_GIDS);
	/* the first thread ends at a change of an interface */
	alarm(TEST_WAIT_S);
	while (count_threads() > before + 1)
		sched_yield();
	CHECK(has_bytes(pipe_fd[0]));
	netif_unwatch();
	CHECK(has_bytes(pipe_fd[0]));
	return 0;
}

static void a_watch_reads_no_file_of_the_program(void **state)
{
	in_a_child(replace_watched_files);
}

static void a_program_without_stdin_gets_its_descriptors_back(void **state)
{
	in_a_child(watch_without_stdin);
}

static void lo_alone_is_a_device_with_its_addresses(void **state)
{
	const struct device *d;
	struct device_port port;
	struct device_gid gid;

	assert_int_equal(device_list(&d), 1);
	assert_string_equal(d->netdev, "lo");
	assert_false(device_port(d, 0, &port));
	assert_false(device_port(d, 2, &port));
	assert_true(device_port(d, 1, &port));
	assert_int_equal(port.is_up, 1);
	assert_int_equal(port.mtu, 65536);
	assert_true(device_gid(d, 1, 1, &gid));
	assert_false(device_gid(d, 1, DEVICE_MAX_GIDS - 2, &gid));
	assert_true(device_gid(d, 1, DEVICE_MAX_GIDS - 1, &gid));
	assert_false(device_gid(d, 1, DEVICE_MAX_GIDS, &gid));
	assert_true(is_local("::ffff:127.0.0.1"));
	assert_true(is_local("::1"));
	/* no device has these addresses */
	assert_false(is_local("::ffff:127.0.0.9"));
	assert_false(is_local("::"));
}

static void changes_raise_events_and_are_seen(void **state)
{
	const struct device *d;
	uint32_t version;

	device_list(&d);
	netif_watch(on_port);
	version = netif_version();
	set_address("10.9.8.7");
	assert_ptr_equal(wait_for(DEVICE_EVENT_GIDS), d);
	assert_true(is_local("::ffff:10.9.8.7"));
	assert_int_not_equal(netif_version(), version);
	set_up_flag(false);
	wait_for(DEVICE_EVENT_DOWN);
	set_up_flag(true);
	wait_for(DEVICE_EVENT_UP);
	netif_unwatch();
}

/* Does poll report changes of interfaces by POLLERR? */
static shared_flag has_error;

/* This function replaces that of the C library.  The kernel reports POLLERR
 * without POLLIN if it had no memory for a message about a change. */
int poll(struct pollfd *fds, nfds_t count, int timeout)
{
	const struct timespec wait = {.tv_sec = timeout / 1000,
				      .tv_nsec = timeout % 1000 * 1000000L};
	int n = ppoll(fds, count, timeout < 0 ? NULL : &wait, NULL);

	if (n > 0 && fds->revents && shared_load(&has_error))
		fds->revents = POLLERR;
	return n;
}

static void a_change_that_the_kernel_could_not_report_is_seen(void **state)
{
	netif_watch(on_port);
	shared_store(&has_error, true);
	set_address("10.9.8.5");
	wait_for(DEVICE_EVENT_GIDS);
	shared_store(&has_error, false);
	netif_unwatch();
	assert_true(is_local("::ffff:10.9.8.5"));
}

static void a_watch_ends_and_begins_again(void **state)
{
	for (int i = 0; i < 20; i++) {
		netif_watch(on_port);
		netif_unwatch();
	}
	netif_unwatch();
	/* netif_watch reads the changes that came before the call */
	set_address("10.9.8.6");
	assert_false(is_local("::ffff:10.9.8.6"));
	netif_watch(NULL);
	assert_true(is_local("::ffff:10.9.8.6"));
	netif_unwatch();
}

static void a_forked_child_watches_anew(void **state)
{
	int status;

	netif_watch(on_port);
	if (!fork()) {
		netif_forget();
		netif_watch(on_port);
		netif_unwatch();
		_exit(is_local("::1") ? 0 : 1);
	}
	assert_true(wait(&status) > 0);
	assert_int_equal(status, 0);
	netif_unwatch();
}

/* A table that the kernel dumps. */
struct table {
	uint16_t type;
	uint8_t family;
};

/* The table whose dumps are interrupted. */
static struct table chosen;
/* Was the last dump that was asked for one of that table? */
static bool is_chosen;
/* How many more receives of a dump of that table get NLM_F_DUMP_INTR.  Each
 * receive of such a dump subtracts 1, also below 0. */
static int interrupted;

/* How many more requests for a dump the kernel refuses. */
static shared_u32 refused;

/* These functions replace those of the C library.  The kernel sets
 * NLM_F_DUMP_INTR if a table has changed during its dump. */
ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
	const struct nlmsghdr *m = bytes;
	const struct rtgenmsg *g = NLMSG_DATA(m);
	uint32_t left = shared_load(&refused);

	if (left) {
		shared_store(&refused, left - 1);
		errno = ENOBUFS;
		return -1;
	}
	is_chosen = m->nlmsg_type == chosen.type &&
		    g->rtgen_family == chosen.family;
	return sendto(fd, bytes, len, flags, NULL, 0);
}

ssize_t recv(int fd, void *bytes, size_t len, int flags)
{
	ssize_t n = recvfrom(fd, bytes, len, flags, NULL, NULL);

	if (n > 0 && is_chosen && interrupted-- > 0)
		((struct nlmsghdr *)bytes)->nlmsg_flags |= NLM_F_DUMP_INTR;
	return n;
}

static void an_interrupted_dump_of_any_table_is_repeated(void **state)
{
	static const struct table tables[] = {{RTM_GETLINK, AF_UNSPEC},
					      {RTM_GETADDR, AF_UNSPEC},
					      {RTM_GETROUTE, AF_INET},
					      {RTM_GETROUTE, AF_INET6}};

	for (size_t i = 0; i < TEST_COUNT(tables); i++) {
		bool has_routes = tables[i].type == RTM_GETROUTE;
		struct netdev_scene scene;

		chosen = tables[i];
		interrupted = 2;
		assert_int_equal(netlink_read(&scene, true), 0);
		assert_true(interrupted < 0);
		assert_true(scene.link_count > 0 && scene.addr_count > 0);
		netlink_free(&scene);
		/* The last attempt accepts an interrupted dump of routes. */
		interrupted = 100;
		assert_int_equal(netlink_read(&scene, true),
				 has_routes ? 0 : -EINTR);
		assert_true(interrupted <= 97);
		netlink_free(&scene);
	}
	interrupted = 0;
}

/* The second read fails, too. */
static void interfaces_are_read_again_after_a_failed_read(void **state)
{
	netif_watch(on_port);
	shared_store(&refused, 2);
	set_address("10.9.8.4");
	wait_for(DEVICE_EVENT_GIDS);
	netif_unwatch();
	assert_true(is_local("::ffff:10.9.8.4"));
	shared_store(&refused, 2);
	set_address("10.9.8.3");
	netif_watch(on_port);
	wait_for(DEVICE_EVENT_GIDS);
	netif_unwatch();
	assert_true(is_local("::ffff:10.9.8.3"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* first, before this process has chosen its devices */
		cmocka_unit_test(datagrams_come_to_roce_devices_alone),
		cmocka_unit_test(a_watch_reads_no_file_of_the_program),
		cmocka_unit_test(
			a_program_without_stdin_gets_its_descriptors_back),
		cmocka_unit_test(lo_alone_is_a_device_with_its_addresses),
		cmocka_unit_test(changes_raise_events_and_are_seen),
		cmocka_unit_test(
			a_change_that_the_kernel_could_not_report_is_seen),
		cmocka_unit_test(a_watch_ends_and_begins_again),
		cmocka_unit_test(a_forked_child_watches_anew),
		cmocka_unit_test(an_interrupted_dump_of_any_table_is_repeated),
		cmocka_unit_test(interfaces_are_read_again_after_a_failed_read),
	};

	return cmocka_run_group_tests(tests, enter_namespace, NULL);
}
