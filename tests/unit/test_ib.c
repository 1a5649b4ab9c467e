/* SPDX-License-Identifier: BSD-2-Clause */
/* device/ib: the adapter of a fabric's host is the process's only device, and
 * changes of its ports are events.  Each look at the devices is in a process of
 * its own, since a process chooses its devices once.  A child process answers
 * as the fabric. */
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "device/ib.h"
#include "device/netdev.h"
#include "device/netif.h"

#define PREFIX 0xfe80000000000000u

/* The attributes that the fabric of a test answers with. */
static struct fabric_ca adapter;
static struct fabric_port port_said;
static char folder[64], path[80];

static void answer_all(int fd)
{
	struct fabric_proto m;

	while (recv(fd, &m, sizeof(m), 0) == sizeof(m)) {
		if (m.kind == FABRIC_PROTO_CA)
			m.ca = adapter;
		else
			m.port = port_said;
		strcpy(m.text, "the node");
		m.err = m.number > 2 ? -ENODEV : 0;
		if (send(fd, &m, sizeof(m), MSG_NOSIGNAL) < 0)
			return;
	}
}

static void serve_clients(int listener)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		int fd = accept(listener, NULL, NULL);

		answer_all(fd);
		close(fd);
	}
}

/* Starts the fabric.  Returns its process ID. */
static pid_t start_fabric(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	pid_t pid;

	strcpy(folder, "/tmp/adverb-ib-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/fabric", folder);
	strcpy(address.sun_path, path);
	assert_int_equal(
		bind(listener, (struct sockaddr *)&address, sizeof(address)),
		0);
	assert_int_equal(listen(listener, 8), 0);
	setenv("ADVERB_FABRIC", path, 1);
	setenv("ADVERB_FABRIC_HOST", "H", 1);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		serve_clients(listener);
	close(listener);
	return pid;
}

static int set_up(void **state)
{
	adapter = (struct fabric_ca){.node_guid = 0x1234,
				     .system_guid = 0x5678,
				     .node_type = 1,
				     .first_port = 1,
				     .last_port = 2};
	port_said = (struct fabric_port){.guids = {0x1111, 0, 0x3333},
					 .gid_prefix = PREFIX,
					 .lid = 5,
					 .sm_lid = 1,
					 .pkeys = {0xffff, 0x8001},
					 .state = 2,
					 .phys_state = 5,
					 .width = 2,
					 .speed = 4,
					 .mtu = 4,
					 .max_mtu = 5};
	return 0;
}

/* Runs a function in a child, on a host of the fabric.  Returns the result of
 * the function, 0 to 255; -1: a signal has ended the child. */
static int on_host(int (*see)(void))
{
	pid_t fabric = start_fabric(), pid = fork();
	int status = -1;

	assert_true(pid >= 0);
	if (!pid) {
		status = see();
		fflush(stdout);
		_exit(status);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	kill(fabric, SIGKILL);
	waitpid(fabric, NULL, 0);
	unlink(path);
	rmdir(folder);
	unsetenv("ADVERB_FABRIC");
	unsetenv("ADVERB_FABRIC_HOST");
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* If the expression is false, prints it and returns 1 from the calling
 * function. */
#define EXPECT(what)                                                           \
	do                                                                     \
		if (!(what)) {                                                 \
			printf("not so: %s\n", #what);                         \
			return 1;                                              \
		}                                                              \
	while (0)

static int see_adapter(void)
{
	static const uint8_t first[16] = {0xfe, 0x80, [14] = 0x11, 0x11};
	const struct device *d;
	struct device_port port;
	struct device_gid gid;

	EXPECT(device_list(&d) == 1);
	EXPECT(d->kind == DEVICE_IB && !strcmp(d->name, "advib0"));
	EXPECT(d->guid == 0x1234 && d->system_guid == 0x5678);
	EXPECT(!strcmp(d->node_desc, "the node") && !*d->netdev);
	EXPECT(d->port_count == 2 && device_link(d) == 0);
	EXPECT(device_port(d, 2, &port) && !device_port(d, 3, &port));
	EXPECT(device_port(d, 1, &port) && !port.is_up);
	EXPECT(port.active_mtu == 4 && port.mtu == 2048);
	EXPECT(port.subnet.lid == 5 && port.subnet.pkeys[1] == 0x8001);
	EXPECT(netdev_gid_count(d) == FABRIC_GUIDS);
	EXPECT(device_gid(d, 2, 0, &gid) && !memcmp(gid.gid, first, 16));
	EXPECT(!device_gid(d, 1, 1, &gid) && device_gid(d, 1, 2, &gid));
	EXPECT(!device_gid(d, 3, 0, &gid));
	EXPECT(!device_gid(d, 1, FABRIC_GUIDS, &gid));
	/* the port's GID is no address of this machine */
	EXPECT(!netif_is_local(first) && netif_device(first, 0) < 0);
	return 0;
}

static void the_adapter_of_the_host_is_the_only_device(void **state)
{
	assert_int_equal(on_host(see_adapter), 0);
}

static int see_none(void)
{
	const struct device *d;

	EXPECT(device_list(&d) == 0);
	return 0;
}

static void an_impossible_adapter_is_no_device(void **state)
{
	adapter.node_type = 2;
	assert_int_equal(on_host(see_none), 0);
	set_up(NULL);
	adapter.first_port = 0;
	assert_int_equal(on_host(see_none), 0);
	set_up(NULL);
	adapter.node_guid = 0;
	assert_int_equal(on_host(see_none), 0);
	set_up(NULL);
	adapter.last_port = 3; /* the fabric refuses to tell of port 3 */
	assert_int_equal(on_host(see_none), 0);
	set_up(NULL);
	port_said.state = 5;
	assert_int_equal(on_host(see_none), 0);
}

static void no_fabric_means_no_device(void **state)
{
	pid_t pid = fork();
	int status = -1;

	if (!pid) {
		setenv("ADVERB_FABRIC", "/nowhere", 1);
		_exit(see_none());
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
}

static sem_t told; /* posted for each event */
/* the events that on_port got, their ports, and how many came */
static enum device_event events[64];
static uint32_t numbers[64], event_count;

static void on_port(const struct device *dev, uint32_t number,
		    enum device_event what)
{
	numbers[event_count % 64] = number;
	events[event_count++ % 64] = what;
	sem_post(&told);
}

/* Waits for the next event.  Returns false if no event comes or if another
 * event comes. */
static bool has_told(uint32_t number, enum device_event what)
{
	static uint32_t taken;
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += TEST_WAIT_S;
	if (sem_timedwait(&told, &end))
		return false;
	taken++;
	return numbers[taken - 1] == number && events[taken - 1] == what;
}

static int see_events(void)
{
	struct fabric_port now = port_said;
	const struct device *d;
	struct device_port port;
	uint32_t version;

	sem_init(&told, 0, 0);
	device_list(&d);
	netif_watch(on_port);
	version = netif_version();
	now.state = 4;
	now.lid = 9;
	netif_set_port(d, 2, &now, DATA_STATE | DATA_LID | DATA_REREGISTER);
	EXPECT(device_port(d, 2, &port) && port.is_up && port.subnet.lid == 9);
	EXPECT(device_port(d, 1, &port) && !port.is_up);
	EXPECT(netif_version() != version);
	EXPECT(has_told(2, DEVICE_EVENT_LID));
	EXPECT(has_told(2, DEVICE_EVENT_REREGISTER));
	EXPECT(has_told(2, DEVICE_EVENT_UP));
	now.state = 1;
	netif_set_port(d, 2, &now, DATA_STATE | DATA_PKEYS | DATA_SM);
	EXPECT(has_told(2, DEVICE_EVENT_SM));
	EXPECT(has_told(2, DEVICE_EVENT_PKEYS));
	EXPECT(has_told(2, DEVICE_EVENT_DOWN));
	/* the port was down before, and the fabric reports no change */
	netif_set_port(d, 1, &now, 0);
	netif_set_port(d, 1, &now, DATA_GIDS);
	EXPECT(has_told(1, DEVICE_EVENT_GIDS));
	now.state = 4;
	netif_set_port(d, 1, &now, DATA_STATE);
	EXPECT(has_told(1, DEVICE_EVENT_UP));
	/* the port went down and up again before the fabric was asked, so its
	 * state is the same */
	netif_set_port(d, 1, &now, DATA_STATE);
	EXPECT(has_told(1, DEVICE_EVENT_DOWN));
	EXPECT(has_told(1, DEVICE_EVENT_UP));
	netif_unwatch();
	EXPECT(event_count == 10);
	/* after netif_unwatch, device_port shows a change, and no event about
	 * the change is ever reported */
	now.state = 1;
	netif_set_port(d, 1, &now, DATA_STATE | DATA_LID);
	EXPECT(device_port(d, 1, &port) && !port.is_up);
	netif_watch(on_port);
	now.state = 4;
	netif_set_port(d, 1, &now, DATA_STATE);
	EXPECT(has_told(1, DEVICE_EVENT_UP));
	netif_unwatch();
	EXPECT(event_count == 11);
	return 0;
}

static void changes_of_a_port_are_events_of_that_port(void **state)
{
	assert_int_equal(on_host(see_events), 0);
}

/* The functions read and write below delay the first read of wake_fd by netif's
 * thread until both netif_set_port and netif_unwatch have written there. */
static struct {
	_Atomic bool is_on, has_read, is_ending;
	sem_t reads, is_woken; /* a read begins; the read may go on */
} race;

ssize_t read(int fd, void *bytes, size_t count)
{
	if (race.is_on && !race.has_read && count == sizeof(uint64_t)) {
		race.has_read = true;
		sem_post(&race.reads);
		sem_wait(&race.is_woken);
	}
	return syscall(SYS_read, fd, bytes, count);
}

ssize_t write(int fd, const void *bytes, size_t count)
{
	ssize_t n = syscall(SYS_write, fd, bytes, count);

	if (race.is_ending)
		sem_post(&race.is_woken);
	return n;
}

/* One read of the eventfd returns the sum of what netif_set_port and
 * netif_unwatch have written. */
static int end_beside_an_event(void)
{
	const struct device *d;

	sem_init(&told, 0, 0);
	sem_init(&race.reads, 0, 0);
	sem_init(&race.is_woken, 0, 0);
	device_list(&d);
	netif_watch(on_port);
	alarm(TEST_WAIT_S);
	race.is_on = true;
	netif_set_port(d, 1, &port_said, DATA_LID);
	sem_wait(&race.reads);
	race.is_ending = true;
	netif_unwatch();
	return 0;
}

static void a_thread_ends_though_it_reads_its_last_token_early(void **state)
{
	assert_int_equal(on_host(end_beside_an_event), 0);
}

#define CHANGES 2000 /* the last LID that see_whole sets */

/* Reads port 1 until its LID is CHANGES. */
static void *read_port(void *arg)
{
	uint32_t *wrong = arg;
	const struct device *d;
	struct device_port port;

	device_list(&d);
	do {
		device_port(d, 1, &port);
		*wrong +=
			port.subnet.guids[FABRIC_GUIDS - 1] != port.subnet.lid;
	} while (port.subnet.lid < CHANGES);
	return NULL;
}

static int see_whole(void)
{
	struct fabric_port now = port_said;
	const struct device *d;
	pthread_t reader;
	uint32_t wrong = 0;

	device_list(&d);
	now.lid = 0;
	netif_set_port(d, 1, &now, DATA_LID);
	EXPECT(!pthread_create(&reader, NULL, read_port, &wrong));
	for (uint16_t lid = 1; lid <= CHANGES; lid++) {
		now.lid = lid;
		now.guids[FABRIC_GUIDS - 1] = lid;
		netif_set_port(d, 1, &now, DATA_LID);
	}
	pthread_join(reader, NULL);
	EXPECT(!wrong);
	return 0;
}

/* A thread of the program may read the attributes of a port while another
 * thread, which makes progress, changes them. */
static void a_port_is_read_whole(void **state)
{
	assert_int_equal(on_host(see_whole), 0);
}

static void a_link_has_its_lanes(void **state)
{
	static const struct {
		uint8_t width, lanes;
	} rows[] = {{1, 1}, {2, 4}, {4, 8}, {8, 12}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		port_said.width = rows[i].width;
		assert_int_equal(ib_lanes(&port_said), rows[i].lanes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(
			the_adapter_of_the_host_is_the_only_device, set_up),
		cmocka_unit_test_setup(an_impossible_adapter_is_no_device,
				       set_up),
		cmocka_unit_test(no_fabric_means_no_device),
		cmocka_unit_test_setup(
			changes_of_a_port_are_events_of_that_port, set_up),
		cmocka_unit_test_setup(
			a_thread_ends_though_it_reads_its_last_token_early,
			set_up),
		cmocka_unit_test_setup(a_port_is_read_whole, set_up),
		cmocka_unit_test_setup(a_link_has_its_lanes, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
