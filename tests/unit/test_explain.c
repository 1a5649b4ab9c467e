/* SPDX-License-Identifier: BSD-2-Clause */
/* rdmacm/explain prints one sentence per cause, and none with ADVERB_EXPLAIN=0.
 * Messages of other files of librdmacm name the right cause. */
#include "said_by.h"

#include "rdmacm/explain.h"
#include "rdmacm/ib.h"
#include "rdmacm/iw_inside.h"

#include <errno.h>
#include <rdma/rsocket.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static size_t count_lines(const char *text)
{
	size_t count = 0;

	for (; *text; text++)
		count += *text == '\n';
	return count;
}

static void two_causes_thrice(void)
{
	for (int i = 0; i < 3; i++) {
		if (r_fail(ENODEV, "rdma_listen: no %s", "device") != -1 ||
		    errno != ENODEV)
			_exit(1);
		if (rsocket(AF_INET, SOCK_STREAM, 0) != -1 || errno != ENOSYS)
			_exit(2);
	}
}

static void causes_silenced(void)
{
	setenv("ADVERB_EXPLAIN", "0", 1);
	two_causes_thrice();
}

static void say_reason(void)
{
	r_say("%s", r_reason(EDQUOT));
}

static void say_reason_of_fabric(void)
{
	setenv("ADVERB_FABRIC", "socket", 1);
	say_reason();
}

static void only_the_quota_of_a_broker_suggests_private(void **state)
{
	char text[1024];

	unsetenv("ADVERB_EXPLAIN");
	said_by(say_reason, text, sizeof(text));
	assert_non_null(strstr(text, "close some, or use"));
	assert_non_null(strstr(text, "--private"));
	said_by(say_reason_of_fabric, text, sizeof(text));
	assert_non_null(strstr(text, "close some\n"));
}

static void each_cause_is_explained_once(void **state)
{
	char text[1024];

	unsetenv("ADVERB_EXPLAIN");
	said_by(two_causes_thrice, text, sizeof(text));
	assert_int_equal(count_lines(text), 2);
	assert_ptr_equal(strstr(text, "adverb: rdma_listen: no device\n"),
			 text);
	assert_non_null(strstr(text, "\nadverb: rsockets"));
}

static void a_user_that_wants_no_messages_gets_none(void **state)
{
	char text[1024];

	said_by(causes_silenced, text, sizeof(text));
	assert_string_equal(text, "");
}

static void explaining_keeps_errno(void **state)
{
	setenv("ADVERB_EXPLAIN", "0", 1);
	errno = EXDEV;
	r_say("rdma_listen");
	assert_int_equal(errno, EXDEV);
}

/* Nobody connects to this id. */
static void accept_nothing(void)
{
	struct r_id *id = r_id_new(NULL, NULL, RDMA_PS_TCP, IBV_QPT_RC);

	if (!id || r_iw_accept(id, NULL) != -1 || errno != EINVAL)
		_exit(1);
}

static void an_id_without_a_request_is_not_said_to_reject_it(void **state)
{
	char text[1024];

	unsetenv("ADVERB_EXPLAIN");
	said_by(accept_nothing, text, sizeof(text));
	assert_int_equal(count_lines(text), 1);
	assert_non_null(strstr(text, "no connection request"));
	assert_null(strstr(text, "rejected"));
}

/* No descriptor is free for the socket, or for the thread that serves it. */
static void bind_without_descriptors(void)
{
	/* the bind fails before it calls a function of *calls */
	const struct verbs_iwarp *calls = (void *)&calls;
	struct r_device iwarp = {.iwarp = calls};
	struct sockaddr_in any = {.sin_family = AF_INET};
	struct rlimit none = {0, 0};
	struct r_id *id = r_id_new(NULL, NULL, RDMA_PS_TCP, IBV_QPT_RC);

	if (!id || setrlimit(RLIMIT_NOFILE, &none))
		_exit(1);
	id->device = &iwarp;
	if (rdma_bind_addr(&id->base, (struct sockaddr *)&any) != -1 ||
	    errno != EMFILE || r_is_bound(id))
		_exit(2);
}

static void a_failed_bind_is_told_by_one_sentence(void **state)
{
	char text[1024];

	unsetenv("ADVERB_EXPLAIN");
	said_by(bind_without_descriptors, text, sizeof(text));
	assert_int_equal(count_lines(text), 1);
	assert_non_null(strstr(text, "0.0.0.0 port 0 cannot be bound"));
}

static bool is_watched(const struct r_iw *iw)
{
	bool is;

	r_take();
	is = iw->watched;
	r_give();
	return is;
}

/* A connection waits, and no descriptor is free for it. */
static void accept_without_descriptors(void)
{
	const uint8_t loopback[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};
	struct r_id *id = r_id_new(NULL, NULL, RDMA_PS_TCP, IBV_QPT_RC);
	struct rlimit none = {0, 0};
	struct sockaddr *at = &id->base.route.addr.src_addr;
	int caller = socket(AF_INET, SOCK_STREAM, 0);

	r_addr_make(at, loopback, 0);
	if (r_iw_make(id) || r_iw_bind(id, at) || r_iw_listen(id, 1) ||
	    connect(caller, at, sizeof(struct sockaddr_in)) ||
	    setrlimit(RLIMIT_NOFILE, &none))
		_exit(1);
	r_iw_serve(id);
	/* While a listener pauses, librdmacm's thread does not wait for the
	 * listener's socket. */
	while (is_watched(id->iw))
		usleep(1000);
}

static void a_listener_that_has_to_pause_is_named(void **state)
{
	char text[1024];

	unsetenv("ADVERB_EXPLAIN");
	said_by(accept_without_descriptors, text, sizeof(text));
	assert_int_equal(count_lines(text), 1);
	assert_non_null(strstr(text, "a connection to 127.0.0.1 port "));
	assert_non_null(strstr(text, "ulimit -n"));
}

static struct r_id *id_at_interface(struct sockaddr_in *at)
{
	struct r_id *id = r_id_new(NULL, NULL, RDMA_PS_TCP, IBV_QPT_RC);
	struct rlimit none = {0, 0};

	*at = (struct sockaddr_in){.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(0x0a090001)};
	if (!id || setrlimit(RLIMIT_NOFILE, &none))
		_exit(1);
	memcpy(&id->base.route.addr.src_addr, at, sizeof(*at));
	return id;
}

/* No descriptor is free to ask the kernel for its interfaces. */
static void take_an_interface_without_descriptors(void)
{
	struct sockaddr_in at;
	struct r_id *id = id_at_interface(&at);

	if (r_ib_take_ip(id, (struct sockaddr *)&at) != -1 || errno != EMFILE)
		_exit(2);
}

static void find_a_broadcast_group_without_descriptors(void)
{
	struct sockaddr_in at;
	struct r_id *id = id_at_interface(&at);
	struct cmproto m;
	int err = r_ib_broadcast(id, &m);

	if (err != -EMFILE || r_ib_fail_broadcast(id, "call", err) != -1 ||
	    errno != EMFILE)
		_exit(2);
}

static void an_interface_that_cannot_be_looked_for_is_not_missing(void **state)
{
	char text[1024];

	unsetenv("ADVERB_EXPLAIN");
	said_by(take_an_interface_without_descriptors, text, sizeof(text));
	assert_non_null(strstr(text, "10.9.0.1"));
	assert_non_null(strstr(text, "raise ulimit -n"));
	said_by(find_a_broadcast_group_without_descriptors, text, sizeof(text));
	assert_non_null(strstr(text, "call: "));
	assert_non_null(strstr(text, "raise ulimit -n"));
}

/* Returns an id with a channel of its own. */
static struct r_id *id_with_channel(void)
{
	static struct r_channel channel;
	struct r_id *id;

	list_init(&channel.events);
	channel.base.fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	id = r_id_new(&channel.base, NULL, RDMA_PS_TCP, IBV_QPT_RC);
	if (!id)
		_exit(1);
	return id;
}

/* Exits unless the id's first event is ADDR_ERROR with the status. */
static void expect_addr_error(struct r_id *id, int status)
{
	struct r_event *e =
		r_event_of(list_pop_head(&r_channel(id->base.channel)->events));

	if (e->base.event != RDMA_CM_EVENT_ADDR_ERROR ||
	    e->base.status != status)
		_exit(2);
}

/* No descriptor is free for the socket that looks for the route. */
static void resolve_without_descriptors(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rlimit none = {0, 0};
	struct r_id *id = id_with_channel();

	if (setrlimit(RLIMIT_NOFILE, &none) ||
	    rdma_resolve_addr(&id->base, NULL, (struct sockaddr *)&to, 1000))
		_exit(1);
	expect_addr_error(id, -EMFILE);
}

static void a_route_that_cannot_be_looked_for_is_not_missing(void **state)
{
	char text[1024];

	unsetenv("ADVERB_EXPLAIN");
	said_by(resolve_without_descriptors, text, sizeof(text));
	assert_non_null(strstr(text, "127.0.0.1"));
	assert_non_null(strstr(text, "raise ulimit -n"));
	assert_null(strstr(text, "no route"));
}

/* id->path names an interface, and no fabric runs. */
static void resolve_without_a_fabric(void)
{
	const uint8_t loopback[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};
	struct r_id *id = id_with_channel();

	setenv("ADVERB_FABRIC", "/nowhere/socket", 1);
	id->path.ifindex = 1;
	r_addr_make(&id->base.route.addr.dst_addr, loopback, 0);
	r_ib_limit_asking(id, 1000);
	r_ib_find_peer(id, 1000);
	expect_addr_error(id, -ENOENT);
}

static void a_fabric_that_does_not_run_is_no_missing_route(void **state)
{
	char text[1024];

	unsetenv("ADVERB_EXPLAIN");
	said_by(resolve_without_a_fabric, text, sizeof(text));
	assert_non_null(strstr(text, "the GID of 127.0.0.1"));
	assert_null(strstr(text, "no route"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_the_quota_of_a_broker_suggests_private),
		cmocka_unit_test(each_cause_is_explained_once),
		cmocka_unit_test(a_user_that_wants_no_messages_gets_none),
		cmocka_unit_test(explaining_keeps_errno),
		cmocka_unit_test(
			an_id_without_a_request_is_not_said_to_reject_it),
		cmocka_unit_test(a_failed_bind_is_told_by_one_sentence),
		cmocka_unit_test(a_listener_that_has_to_pause_is_named),
		cmocka_unit_test(
			an_interface_that_cannot_be_looked_for_is_not_missing),
		cmocka_unit_test(
			a_route_that_cannot_be_looked_for_is_not_missing),
		cmocka_unit_test(
			a_fabric_that_does_not_run_is_no_missing_route),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
