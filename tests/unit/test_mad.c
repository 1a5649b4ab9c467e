/* SPDX-License-Identifier: BSD-2-Clause */
/* umad/mad, names, device, ca: a datagram in memory; the adapter of lo, whose
 * port takes no datagrams; and the adapter of a fabric's host. */
#include "test.h"

#include <infiniband/umad.h>
#include <infiniband/umad_str.h>

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "brought.h"
#include "fabric/fabric_client.h"
#include "said_by.h"
#include "umad/newer.h"

struct buffer {
	struct ib_user_mad header;
	uint8_t mad[256];
};

static void the_mad_follows_the_header(void **state)
{
	struct buffer buffer = {.header.status = 7};

	assert_int_equal(umad_size(), 64);
	assert_ptr_equal(umad_get_mad(&buffer), buffer.mad);
	assert_ptr_equal(umad_get_mad_addr(&buffer), &buffer.header.addr);
	assert_int_equal(umad_status(&buffer), 7);
}

static void an_address_is_in_network_order(void **state)
{
	struct buffer buffer = {0}, same = {0};

	umad_set_addr(&buffer, 0x1234, 0x567890, 3, (int)0x80010000);
	assert_int_equal(buffer.header.addr.lid, htobe16(0x1234));
	assert_int_equal(buffer.header.addr.qpn, htobe32(0x567890));
	assert_int_equal(buffer.header.addr.qkey, htobe32(0x80010000));
	assert_int_equal(buffer.header.addr.sl, 3);
	umad_set_addr_net(&same, htobe16(0x1234), htobe32(0x567890), 3,
			  htobe32(0x80010000));
	assert_memory_equal(&same, &buffer, sizeof(same));
}

static void a_grh_is_set_and_removed(void **state)
{
	struct ib_mad_addr from = {.flow_label = 0x12345, .hop_limit = 64};
	struct buffer buffer = {0};

	from.gid[15] = 9;
	umad_set_grh(&buffer, &from);
	assert_int_equal(buffer.header.addr.grh_present, 1);
	assert_int_equal(buffer.header.addr.gid[15], 9);
	assert_int_equal(buffer.header.addr.flow_label, htobe32(0x12345));
	assert_int_equal(buffer.header.addr.hop_limit, 64);
	umad_set_grh(&buffer, NULL);
	assert_int_equal(buffer.header.addr.grh_present, 0);
}

static void a_pkey_index_is_kept(void **state)
{
	struct buffer buffer = {0};

	umad_set_pkey(&buffer, 3);
	assert_int_equal(umad_get_pkey(&buffer), 3);
}

static void classes_methods_and_attributes_have_words(void **state)
{
	assert_string_equal(umad_class_str(0x81), "Subn");
	assert_string_equal(umad_class_str(0x07), "ComMgt");
	assert_string_equal(umad_class_str(0x09), "Vendor");
	assert_string_equal(umad_class_str(0x2f), "Application");
	assert_string_equal(umad_class_str(0x50), "<unknown>");
	assert_string_equal(umad_method_str(1, 1), "Get");
	assert_string_equal(umad_method_str(3, 0x12), "GetTable");
	assert_string_equal(umad_method_str(1, 0x12), "<unknown>");
	assert_string_equal(umad_attribute_str(1, htobe16(0x15)), "PortInfo");
	assert_string_equal(umad_attribute_str(3, htobe16(0x35)), "PathRecord");
	assert_string_equal(umad_attribute_str(4, htobe16(2)), "Notice");
	assert_string_equal(umad_attribute_str(4, htobe16(0x15)), "<unknown>");
}

static void statuses_have_words(void **state)
{
	assert_string_equal(umad_common_mad_status_str(0), "Success");
	assert_string_equal(umad_common_mad_status_str(htobe16(1)), "Busy");
	assert_string_equal(umad_common_mad_status_str(htobe16(7 << 2)),
			    "Invalid attribute/modifier field");
	assert_string_equal(umad_sa_mad_status_str(htobe16(3 << 8)),
			    "No Records");
	assert_string_equal(umad_sa_mad_status_str(htobe16(0xff00)),
			    "Undefined Error");
}

static struct umad_device_node *new_node(const char *name,
					 struct umad_device_node *next)
{
	struct umad_device_node *made = malloc(sizeof(*made));

	assert_non_null(made);
	made->ca_name = name;
	made->next = next;
	return made;
}

static void a_device_list_is_sorted_by_name(void **state)
{
	struct umad_device_node *list;

	list = new_node("b", new_node("c", new_node("a", NULL)));
	assert_int_equal(umad_sort_ca_device_list(&list, 2), EINVAL);
	assert_int_equal(umad_sort_ca_device_list(&list, 0), 0);
	assert_string_equal(list->ca_name, "a");
	assert_string_equal(list->next->ca_name, "b");
	assert_string_equal(list->next->next->ca_name, "c");
	assert_null(list->next->next->next);
	umad_free_ca_device_list(list);
}

static void no_port_takes_datagrams(void **state)
{
	setenv("ADVERB_EXPLAIN", "0", 1);
	assert_int_equal(umad_init(), 0);
	assert_int_equal(umad_open_port(NULL, 0), -ENODEV);
	assert_int_equal(umad_open_port("adv0", 1), -ENODEV);
	assert_int_equal(umad_poll(3, 0), -EINVAL);
}

static void open_ports(void)
{
	umad_open_smi_port("adv0", 1);
	umad_open_port("adv0", 1); /* the same cause is not printed again */
}

static void a_failure_names_the_call_of_the_program(void **state)
{
	char text[512];

	said_by(open_ports, text, sizeof(text));
	assert_non_null(strstr(text, "umad_open_smi_port fails with ENODEV"));
	assert_null(strstr(text, "umad_open_port"));
}

static void expect_port(const umad_port_t *port, __be64 node)
{
	assert_string_equal(port->ca_name, "adv0");
	assert_int_equal(port->portnum, 1);
	assert_int_equal(port->base_lid, 0);
	assert_int_equal(port->rate, 100);
	assert_true(port->state == 1 || port->state == 4);
	assert_string_equal(port->link_layer, "Ethernet");
	assert_int_equal(be32toh(port->capmask), 0x00010000);
	assert_int_equal(port->pkeys_size, 1);
	assert_int_equal(port->pkeys[0], 0xffff);
	/* GID 0 is a link-local address */
	assert_int_equal(be64toh(port->gid_prefix), 0xfe80000000000000);
	assert_int_equal(port->port_guid, node);
}

/* The test uses lo, the only interface that every machine has.  The iWARP
 * device, which ADVERB_DEVICES names before the RoCE device, is no adapter of
 * libibumad. */
static void the_first_adapter_is_the_roce_device_of_libibverbs(void **state)
{
	char names[2][UMAD_CA_NAME_LEN];
	struct umad_device_node *list;
	__be64 guids[2];
	umad_port_t port;
	umad_ca_t ca;

	assert_int_equal(umad_get_cas_names(names, 2), 1);
	assert_string_equal(names[0], "adv0");
	assert_int_equal(umad_get_cas_names(names, 0), 0);
	list = umad_get_ca_device_list();
	assert_non_null(list);
	assert_string_equal(list->ca_name, "adv0");
	assert_null(list->next);
	umad_free_ca_device_list(list);
	assert_int_equal(umad_get_ca("adv0", &ca), 0);
	assert_int_equal(ca.node_type, 1);
	assert_int_equal(ca.numports, 1);
	assert_string_equal(ca.fw_ver, "1.0");
	assert_null(ca.ports[0]);
	expect_port(ca.ports[1], ca.node_guid);
	assert_int_equal(umad_get_ca_portguids(NULL, guids, 1), -ENOMEM);
	assert_int_equal(umad_get_ca_portguids(NULL, guids, 2), 2);
	assert_int_equal(guids[0], 0);
	assert_int_equal(guids[1], ca.node_guid);
	assert_int_equal(umad_release_ca(&ca), 0);
	assert_null(ca.ports[1]);
	assert_int_equal(umad_get_port(NULL, 0, &port), 0);
	assert_string_equal(port.ca_name, "adv0");
	assert_int_equal(umad_release_port(&port), 0);
}

static void a_device_that_does_not_exist_is_enodev(void **state)
{
	umad_port_t port;
	__be64 guid;
	umad_ca_t ca;

	assert_int_equal(umad_get_ca("adv9", &ca), -ENODEV);
	assert_int_equal(umad_get_ca("iw0", &ca), -ENODEV);
	assert_int_equal(umad_get_port("adv0", 2, &port), -ENODEV);
	assert_int_equal(umad_get_port("adv9", 1, &port), -ENODEV);
	assert_int_equal(umad_get_ca_portguids("adv9", &guid, 1), -ENODEV);
}

static int answers; /* how many questions serve_questions answers */

/* Plays a fabric: answers `answers` questions for an adapter with one port, and
 * refuses each further question with EMFILE. */
static void serve_questions(int listener)
{
	struct fabric_proto m;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;; answers--) {
		int fd = accept(listener, NULL, NULL);

		if (recv(fd, &m, sizeof(m), 0) != sizeof(m))
			_exit(1);
		m.ca = (struct fabric_ca){.first_port = 1, .last_port = 1};
		m.err = answers > 0 ? 0 : -EMFILE;
		if (send(fd, &m, sizeof(m), MSG_NOSIGNAL) < 0)
			_exit(1);
		close(fd);
	}
}

/* Starts the fabric that `serve` plays.  Returns the fabric's process. */
static pid_t start_fabric(void (*serve)(int listener))
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	pid_t pid;

	snprintf(address.sun_path, sizeof(address.sun_path),
		 "/tmp/adverb-mad-%d", (int)getpid());
	unlink(address.sun_path);
	assert_int_equal(
		bind(listener, (struct sockaddr *)&address, sizeof(address)),
		0);
	assert_int_equal(listen(listener, 8), 0);
	setenv("ADVERB_FABRIC", address.sun_path, 1);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		serve(listener);
	close(listener);
	return pid;
}

static void end_fabric(pid_t pid)
{
	unlink(getenv("ADVERB_FABRIC"));
	unsetenv("ADVERB_FABRIC");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void an_error_of_a_fabric_is_not_enodev(void **state)
{
	/* umad_get_port asks for the adapter twice, and then for the port */
	for (answers = 1; answers <= 2; answers++)
		for (int portnum = 0; portnum <= 1; portnum++) {
			pid_t fabric = start_fabric(serve_questions);
			umad_port_t port;

			errno = 0;
			assert_int_equal(
				umad_get_port("advib0", portnum, &port),
				-EMFILE);
			assert_int_equal(errno, EMFILE);
			end_fabric(fabric);
		}
}

enum { DOWN = 1, INIT, ARMED, ACTIVE };	     /* PortState */
enum { POLLING = 2, DISABLED, LINK_UP = 5 }; /* PortPhysicalState */

static struct fabric_port shown_ports[3]; /* of the fabric of serve_ports */

/* Plays a fabric: answers questions for an adapter with shown_ports. */
static void serve_ports(int listener)
{
	struct fabric_proto m;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		int fd = accept(listener, NULL, NULL);

		if (recv(fd, &m, sizeof(m), 0) != sizeof(m))
			_exit(1);
		m.err = 0;
		if (m.kind == FABRIC_PROTO_CA)
			m.ca = (struct fabric_ca){.first_port = 1,
						  .last_port = 3};
		else
			m.port = shown_ports[(m.number - 1) % 3];
		if (send(fd, &m, sizeof(m), MSG_NOSIGNAL) < 0)
			_exit(1);
		close(fd);
	}
}

/* As rdma-core's, libibumad prefers an active port, then a port with a link,
 * then a port that is not disabled. */
static void port_0_is_the_best_port_of_an_adapter(void **state)
{
	static const struct {
		struct {
			uint8_t state, phys_state;
		} ports[3];
		int chosen; /* a port's number, or -errno */
	} cases[] = {
		{{{DOWN, POLLING}, {ARMED, LINK_UP}, {ACTIVE, LINK_UP}}, 3},
		{{{DOWN, DISABLED}, {INIT, LINK_UP}, {ARMED, LINK_UP}}, 2},
		{{{DOWN, DISABLED}, {DOWN, DISABLED}, {DOWN, POLLING}}, 3},
		{{{DOWN, POLLING}, {DOWN, POLLING}, {DOWN, POLLING}}, 1},
		{{{DOWN, DISABLED}, {DOWN, DISABLED}, {DOWN, DISABLED}},
		 -ENODEV},
	};

	for (size_t i = 0; i < 2 * TEST_COUNT(cases); i++) {
		umad_port_t port;
		pid_t fabric;
		int got;

		for (int k = 0; k < 3; k++) {
			shown_ports[k].state = cases[i / 2].ports[k].state;
			shown_ports[k].phys_state =
				cases[i / 2].ports[k].phys_state;
		}
		fabric = start_fabric(serve_ports);
		got = umad_get_port(i % 2 ? "advib0" : NULL, 0, &port);
		if (!got) {
			got = port.portnum;
			umad_release_port(&port);
		}
		assert_int_equal(got, cases[i / 2].chosen);
		/* the program may open a disabled port by its number */
		assert_int_equal(umad_get_port("advib0", 1, &port), 0);
		umad_release_port(&port);
		end_fabric(fabric);
	}
}

static void a_port_that_does_not_exist_has_no_issm_path(void **state)
{
	char path[64] = "";
	pid_t fabric;

	answers = 4; /* two for each call */
	fabric = start_fabric(serve_questions);
	assert_int_equal(umad_get_issm_path("advib0", 1, path, sizeof(path)),
			 0);
	assert_string_equal(path, "/dev/null");
	errno = 0;
	assert_int_equal(umad_get_issm_path("advib0", 2, path, sizeof(path)),
			 -ENODEV);
	assert_int_equal(errno, ENODEV);
	end_fabric(fabric);
}

/* The layout of struct umad_ca_pair, which older headers do not define. */
struct pair_of_names {
	char smi_name[UMAD_CA_NAME_LEN];
	uint32_t smi_port;
	char gsi_name[UMAD_CA_NAME_LEN];
	uint32_t gsi_port;
};

/* Programs of infiniband-diags open the ports that the pair names. */
static void an_adapter_is_a_pair_with_itself(void **state)
{
	struct pair_of_names p[2];
	void *pair = p;
	pid_t fabric;

	answers = 4;
	fabric = start_fabric(serve_questions);
	memset(p, 1, sizeof(p));
	assert_int_equal(umad_get_smi_gsi_pairs(pair, 2), 1);
	assert_string_equal(p[0].smi_name, "advib0");
	assert_string_equal(p[0].gsi_name, "advib0");
	assert_int_equal(p[1].smi_name[0], 0);
	memset(p, 1, sizeof(p));
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name("advib0", 1, pair, 1),
			 0);
	assert_string_equal(p[0].smi_name, "advib0");
	assert_string_equal(p[0].gsi_name, "advib0");
	assert_int_equal(p[0].smi_port, 1);
	assert_int_equal(p[0].gsi_port, 1);
	errno = 0;
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name("mlx5_0", 1, pair, 1),
			 -ENODEV);
	assert_int_equal(errno, ENODEV);
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name("advib0", 1, NULL, 1),
			 -EINVAL);
	end_fabric(fabric);
}

/* Receives a request, and answers it with the descriptor fd; -1: with none. */
static void answer_one(int connection, int fd)
{
	struct fabric_proto m;

	if (recv(connection, &m, sizeof(m), 0) != sizeof(m))
		_exit(1);
	m.err = 0;
	m.ca = (struct fabric_ca){.first_port = 1, .last_port = 1};
	if (brought_pass(connection, &m, sizeof(m), fd, fd >= 0) < 0)
		_exit(1);
}

/* Plays a fabric that opens a port, in which one datagram waits. */
static void serve_port(int listener)
{
	struct buffer datagram = {0};
	int ends[2];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) ||
	    send(ends[0], &datagram, sizeof(datagram), 0) < 0)
		_exit(1);
	answer_one(accept(listener, NULL, NULL), -1);
	answer_one(accept(listener, NULL, NULL), ends[1]);
	for (;;)
		pause();
}

static bool loses_message; /* another process takes each message that waits */
/* the fabric that ends before a message is taken; 0: none */
static pid_t ending_fabric;

ssize_t __real_recv(int fd, void *bytes, size_t size, int flags);
ssize_t __wrap_recv(int fd, void *bytes, size_t size, int flags);

/* The linker directs the tested code's calls of recv to this function. */
ssize_t __wrap_recv(int fd, void *bytes, size_t size, int flags)
{
	struct buffer taken;
	siginfo_t ended;

	if (loses_message && !(flags & MSG_PEEK))
		__real_recv(fd, &taken, sizeof(taken), MSG_DONTWAIT);
	if (ending_fabric && !(flags & MSG_PEEK)) {
		kill(ending_fabric, SIGKILL);
		waitid(P_PID, (id_t)ending_fabric, &ended, WEXITED | WNOWAIT);
		ending_fabric = 0;
	}
	return __real_recv(fd, bytes, size, flags);
}

/* A child of fork has the port, too, and may take a message after umad_recv has
 * read the message's length. */
static void a_message_that_another_process_takes_is_no_message(void **state)
{
	pid_t fabric = start_fabric(serve_port);
	struct buffer buffer;
	int length = sizeof(buffer.mad), port = umad_open_port("advib0", 1);

	assert_true(port >= 0);
	loses_message = true;
	assert_int_equal(umad_recv(port, &buffer, &length, 0), -EWOULDBLOCK);
	assert_int_equal(errno, EWOULDBLOCK);
	loses_message = false;
	assert_int_equal(umad_close_port(port), 0);
	end_fabric(fabric);
}

/* A fabric that ends before it has read all messages resets its sockets. */
static void a_fabric_that_ends_leaves_its_last_message(void **state)
{
	pid_t fabric = start_fabric(serve_port);
	struct buffer buffer = {0};
	int length = sizeof(buffer.mad), port = umad_open_port("advib0", 1);

	assert_true(port >= 0);
	assert_int_equal(umad_send(port, 0, &buffer, length, 0, 0), 0);
	ending_fabric = fabric;
	assert_int_equal(umad_recv(port, &buffer, &length, 0), 0);
	assert_int_equal(length, sizeof(buffer.mad));
	assert_int_equal(umad_recv(port, &buffer, &length, 0), -EIO);
	assert_int_equal(umad_close_port(port), 0);
	end_fabric(fabric);
}

static int replaced_port;

static void send_long_datagram(void)
{
	enum { LENGTH = 16 << 20 };
	void *umad = calloc(1, umad_size() + LENGTH);

	unsetenv("ADVERB_EXPLAIN");
	assert_non_null(umad);
	assert_int_equal(umad_send(replaced_port, 0, umad, LENGTH, 0, 0), -EIO);
	free(umad);
}

/* A stream socket takes what its buffer has room for. */
static void a_part_of_a_datagram_is_no_closed_socket(void **state)
{
	pid_t fabric = start_fabric(serve_port);
	char text[512];
	int ends[2];

	replaced_port = umad_open_port("advib0", 1);
	assert_true(replaced_port >= 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	assert_int_equal(dup2(ends[0], replaced_port), replaced_port);
	said_by(send_long_datagram, text, sizeof(text));
	assert_non_null(strstr(text, "only a part of the datagram was sent"));
	close(ends[0]);
	close(ends[1]);
	umad_close_port(replaced_port);
	end_fabric(fabric);
}

static void note_signal(int number)
{
}

/* Starts a timer that sends SIGALRM to this process every 20 ms, or stops the
 * timer if `on` is false. */
static void send_alarms(bool on)
{
	const struct timeval pause = {.tv_usec = on ? 20000 : 0};
	const struct itimerval every = {.it_interval = pause,
					.it_value = pause};

	assert_int_equal(setitimer(ITIMER_REAL, &every, NULL), 0);
}

/* poll(2) is not restarted after a signal, whatever the handler's flags. */
static void a_caught_signal_ends_umad_recv_and_umad_poll(void **state)
{
	static const int flags[] = {0, SA_RESTART};
	pid_t fabric = start_fabric(serve_port);
	struct buffer buffer;
	int length = sizeof(buffer.mad), port = umad_open_port("advib0", 1);

	assert_true(port >= 0);
	assert_true(umad_recv(port, &buffer, &length, TEST_WAIT_MS) >= 0);
	for (size_t i = 0; i < TEST_COUNT(flags); i++) {
		const struct sigaction caught = {.sa_handler = note_signal,
						 .sa_flags = flags[i]};

		assert_int_equal(sigaction(SIGALRM, &caught, NULL), 0);
		send_alarms(true);
		assert_int_equal(
			umad_recv(port, &buffer, &length, TEST_WAIT_MS), -EIO);
		assert_int_equal(errno, EINTR);
		assert_int_equal(umad_poll(port, TEST_WAIT_MS), -EIO);
		assert_int_equal(errno, EINTR);
		send_alarms(false);
	}
	assert_int_equal(umad_close_port(port), 0);
	end_fabric(fabric);
}

static int count_fds(void)
{
	DIR *all = opendir("/proc/self/fd");
	int count = 0;

	assert_non_null(all);
	while (readdir(all))
		count++;
	closedir(all);
	return count;
}

/* Asks for a port, with a cancellation of this thread pending. */
static void *ask_cancelled(void *arg)
{
	umad_port_t port;

	pthread_cancel(pthread_self());
	if (!umad_get_port("advib0", 1, &port))
		umad_release_port(&port);
	pthread_testcancel();
	return NULL;
}

static void a_thread_that_is_cancelled_leaks_no_connection(void **state)
{
	pid_t fabric;
	int before;
	pthread_t asker;
	void *result;

	answers = 3;
	fabric = start_fabric(serve_questions);
	before = count_fds();
	assert_int_equal(pthread_create(&asker, NULL, ask_cancelled, NULL), 0);
	assert_int_equal(pthread_join(asker, &result), 0);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_int_equal(count_fds(), before);
	end_fabric(fabric);
}

/* the calls of calloc up to the one that fails; 0: none fails */
static long callocs_left;

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

/* The linker directs the tested code's calls of calloc to this function. */
void *__wrap_calloc(size_t count, size_t size)
{
	if (!callocs_left || --callocs_left)
		return __real_calloc(count, size);
	errno = ENOMEM;
	return NULL;
}

static void a_lack_of_memory_is_enomem(void **state)
{
	long tries = 0, seen = 0;
	__be64 guids[2];
	int got;

	do {
		callocs_left = ++tries;
		got = umad_get_ca_portguids("adv0", guids, 2);
		assert_true(got == 2 || (got == -ENOMEM && errno == ENOMEM));
		seen += got == -ENOMEM;
	} while (!callocs_left);
	callocs_left = 0;
	assert_int_equal(got, 2);
	assert_true(seen >= 2); /* the port and its P_Keys */
}

static int set_devices(void **state)
{
	setenv("ADVERB_DEVICES", "iwarp:lo,lo", 1);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* first: a later test has this process print the sentence */
		cmocka_unit_test(a_failure_names_the_call_of_the_program),
		cmocka_unit_test(the_mad_follows_the_header),
		cmocka_unit_test(an_address_is_in_network_order),
		cmocka_unit_test(a_grh_is_set_and_removed),
		cmocka_unit_test(a_pkey_index_is_kept),
		cmocka_unit_test(classes_methods_and_attributes_have_words),
		cmocka_unit_test(statuses_have_words),
		cmocka_unit_test(a_device_list_is_sorted_by_name),
		cmocka_unit_test(an_adapter_is_a_pair_with_itself),
		cmocka_unit_test(no_port_takes_datagrams),
		cmocka_unit_test(an_error_of_a_fabric_is_not_enodev),
		cmocka_unit_test(port_0_is_the_best_port_of_an_adapter),
		cmocka_unit_test(a_port_that_does_not_exist_has_no_issm_path),
		cmocka_unit_test(
			a_message_that_another_process_takes_is_no_message),
		cmocka_unit_test(a_fabric_that_ends_leaves_its_last_message),
		cmocka_unit_test(a_part_of_a_datagram_is_no_closed_socket),
		cmocka_unit_test(a_caught_signal_ends_umad_recv_and_umad_poll),
		cmocka_unit_test(
			a_thread_that_is_cancelled_leaks_no_connection),
		cmocka_unit_test(
			the_first_adapter_is_the_roce_device_of_libibverbs),
		cmocka_unit_test(a_device_that_does_not_exist_is_enodev),
		cmocka_unit_test(a_lack_of_memory_is_enomem),
	};

	return cmocka_run_group_tests(tests, set_devices, NULL);
}
