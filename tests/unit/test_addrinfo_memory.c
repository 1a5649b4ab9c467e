/* SPDX-License-Identifier: BSD-2-Clause */
/* rdmacm/addrinfo: a call that fails because memory runs out gives the program
 * no list, neither a part of one nor one that was freed.  rdmacm/channel and
 * rdmacm/id: a message says that a channel or an id cannot be made. */
#include "brokers.h"
#include "said_by.h"

#include <rdma/rdma_cma.h>

#include <netdb.h>
#include <stdlib.h>

#include "rdmacm/newer.h"
#include "rdmacm/object.h"

/* n: the n-th allocation of this thread from now on fails; 0: none fails. */
static _Thread_local long left;

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

static bool must_fail(void)
{
	if (!left || --left)
		return false;
	errno = ENOMEM;
	return true;
}

/* The linker directs the calls of calloc, malloc and strdup in adverb's code to
 * these functions. */
void *__wrap_calloc(size_t count, size_t size)
{
	return must_fail() ? NULL : __real_calloc(count, size);
}

void *__wrap_malloc(size_t size)
{
	return must_fail() ? NULL : __real_malloc(size);
}

char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);

char *__wrap_strdup(const char *text)
{
	return must_fail() ? NULL : __real_strdup(text);
}

/* Whether each result has a canonical name.  Some resolvers give names that
 * nobody has asked for. */
static bool gives_names;

int __real_getaddrinfo(const char *node, const char *service,
		       const struct addrinfo *ask, struct addrinfo **found);
int __wrap_getaddrinfo(const char *node, const char *service,
		       const struct addrinfo *ask, struct addrinfo **found);

int __wrap_getaddrinfo(const char *node, const char *service,
		       const struct addrinfo *ask, struct addrinfo **found)
{
	struct addrinfo more = *ask;

	more.ai_flags |= gives_names ? AI_CANONNAME : 0;
	return __real_getaddrinfo(node, service, &more, found);
}

/* With these hints there are two results, for IPv4 and for IPv6, without a name
 * server. */
static const struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE,
					   .ai_port_space = RDMA_PS_TCP};

static int resolve_port(struct rdma_addrinfo **res)
{
	return rdma_getaddrinfo(NULL, "7471", &hints, res);
}

static void a_list_is_whole_or_there_is_none(void **state)
{
	struct rdma_addrinfo *res = NULL;
	long tries = 0, failures = 0;

	assert_int_equal(resolve_port(&res), 0); /* opens the devices */
	assert_non_null(res->ai_next);
	rdma_freeaddrinfo(res);
	do {
		res = NULL;
		left = ++tries;
		if (resolve_port(&res)) {
			assert_int_equal(errno, ENOMEM);
			assert_null(res);
			failures++;
		}
	} while (!left);
	left = 0;
	assert_int_equal(failures, 4); /* two results with an address each */
	rdma_freeaddrinfo(res);
}

static void a_result_has_its_name_or_there_is_none(void **state)
{
	struct rdma_addrinfo *res = NULL;

	gives_names = true;
	for (long tries = 1; tries <= 3; tries++) {
		left = tries;
		assert_int_equal(
			rdma_getaddrinfo("127.0.0.1", "7471", NULL, &res), -1);
		assert_int_equal(errno, ENOMEM);
		assert_int_equal(left, 0);
	}
	assert_int_equal(rdma_getaddrinfo("127.0.0.1", "7471", NULL, &res), 0);
	assert_string_equal(res->ai_dst_canonname, "127.0.0.1");
	rdma_freeaddrinfo(res);
	gives_names = false;
}

static void an_id_keeps_no_list_that_failed(void **state)
{
	struct rdma_addrinfo *res = NULL;
	struct rdma_cm_id *id;

	for (long tries = 1; tries <= 4; tries++) {
		assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP),
				 0);
		left = tries;
		assert_int_equal(
			rdma_resolve_addrinfo(id, NULL, "7471", &hints), -1);
		assert_int_equal(left, 0);
		assert_int_equal(rdma_query_addrinfo(id, &res), -1);
		assert_int_equal(errno, ENODATA);
		assert_int_equal(rdma_destroy_id(id), 0);
	}
}

/* A forked child opens the devices anew.  The child calls this function before
 * it sets `left`, so that no allocation for the devices fails. */
static void open_devices(void)
{
	struct rdma_event_channel *first = rdma_create_event_channel();

	if (!first)
		_exit(2);
	rdma_destroy_event_channel(first);
}

static void make_a_channel_without_memory(void)
{
	open_devices();
	left = 1;
	if (rdma_create_event_channel() || errno != ENOMEM)
		_exit(1);
}

static void make_a_channel_without_descriptors(void)
{
	struct rlimit none = {0, 0};

	open_devices();
	if (setrlimit(RLIMIT_NOFILE, &none) || rdma_create_event_channel() ||
	    errno != EMFILE)
		_exit(1);
}

static void a_channel_that_cannot_be_made_is_told(void **state)
{
	char text[1024];

	unsetenv("ADVERB_EXPLAIN");
	said_by(make_a_channel_without_memory, text, sizeof(text));
	assert_non_null(strstr(text, "rdma_create_event_channel: "));
	assert_non_null(strstr(text, "free memory"));
	said_by(make_a_channel_without_descriptors, text, sizeof(text));
	assert_non_null(strstr(text, "rdma_create_event_channel: "));
	assert_non_null(strstr(text, "raise ulimit -n"));
}

/* Gives a listener the broker's message about a request. */
static void take_a_request_without_memory(void)
{
	const uint8_t loopback[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};
	struct r_id *listener = r_id_new(NULL, NULL, RDMA_PS_TCP, IBV_QPT_RC);
	const struct cmproto request = {.event = CMPROTO_REQUEST, .new_id = 1};

	if (!listener)
		_exit(1);
	r_addr_make(&listener->base.route.addr.src_addr, loopback, 7471);
	left = 1;
	r_take();
	r_id_message(listener, &request);
	r_give();
}

static void a_request_without_an_id_is_told(void **state)
{
	char text[1024];

	unsetenv("ADVERB_EXPLAIN");
	said_by(take_a_request_without_memory, text, sizeof(text));
	assert_non_null(strstr(text, "request to 127.0.0.1 port 7471 is "));
	assert_non_null(strstr(text, "no memory is left"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_is_whole_or_there_is_none),
		cmocka_unit_test(a_result_has_its_name_or_there_is_none),
		cmocka_unit_test(an_id_keeps_no_list_that_failed),
		cmocka_unit_test(a_channel_that_cannot_be_made_is_told),
		cmocka_unit_test(a_request_without_an_id_is_told),
	};

	return cmocka_run_group_tests(tests, enter_namespace, NULL);
}
