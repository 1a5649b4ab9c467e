/* SPDX-License-Identifier: BSD-2-Clause */
/* The interfaces of a network namespace that the test makes. */
#include "test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "device/netif.h"

#define PATIENCE_S 60

static sem_t told;
static enum device_event events[64];
static const struct device *event_device;
static int event_count;

static void on_port(const struct device *dev, enum device_event what)
{
	event_device = dev;
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

/* Sets the address of an alias of lo; 0.0.0.0 removes it. */
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

/* Waits for an event of this kind. */
static void wait_for(enum device_event what)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += PATIENCE_S;
	do
		if (sem_timedwait(&told, &end) && errno != EINTR)
			fail_msg("no event %d came", (int)what);
	while (events[(event_count - 1) % 64] != what);
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

static void lo_alone_is_a_device_with_its_addresses(void **state)
{
	const struct device *d;
	struct device_port port;
	struct device_gid gid;

	assert_int_equal(device_list(&d), 1);
	assert_string_equal(d->netdev, "lo");
	device_port(d, &port);
	assert_int_equal(port.is_up, 1);
	assert_int_equal(port.mtu, 65536);
	assert_true(device_gid(d, 1, &gid));
	assert_false(device_gid(d, DEVICE_MAX_GIDS - 1, &gid));
	assert_false(device_gid(d, DEVICE_MAX_GIDS, &gid));
	assert_true(is_local("::ffff:127.0.0.1"));
	assert_true(is_local("::1"));
	/* local addresses that no device has */
	assert_false(is_local("::ffff:127.0.0.9"));
	assert_false(is_local("::"));
}

static void changes_are_told_and_seen(void **state)
{
	const struct device *d;
	uint32_t version;

	device_list(&d);
	netif_watch(on_port);
	version = netif_version();
	set_address("10.9.8.7");
	wait_for(DEVICE_EVENT_GIDS);
	assert_ptr_equal(event_device, d);
	assert_true(is_local("::ffff:10.9.8.7"));
	assert_int_not_equal(netif_version(), version);
	set_up_flag(false);
	wait_for(DEVICE_EVENT_DOWN);
	set_up_flag(true);
	wait_for(DEVICE_EVENT_UP);
	netif_unwatch();
}

static void a_watch_ends_and_begins_again(void **state)
{
	for (int i = 0; i < 20; i++) {
		netif_watch(on_port);
		netif_unwatch();
	}
	netif_unwatch();
	/* the watch sees at its beginning what has changed before */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lo_alone_is_a_device_with_its_addresses),
		cmocka_unit_test(changes_are_told_and_seen),
		cmocka_unit_test(a_watch_ends_and_begins_again),
		cmocka_unit_test(a_forked_child_watches_anew),
	};

	return cmocka_run_group_tests(tests, enter_namespace, NULL);
}
