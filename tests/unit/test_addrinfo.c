/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of rdmacm/addrinfo, id and channel that need no connection. */
#include "test.h"

#include <rdma/rdma_cma.h>

#include <arpa/inet.h>
#include <errno.h>

static void a_list_is_freed_with_its_members(void **state)
{
	struct rdma_addrinfo *first = calloc(1, sizeof(*first));

	assert_non_null(first);
	first->ai_next = calloc(1, sizeof(*first));
	assert_non_null(first->ai_next);
	first->ai_src_addr = malloc(16);
	first->ai_dst_canonname = strdup("name");
	first->ai_next->ai_route = malloc(64);
	rdma_freeaddrinfo(first); /* LeakSanitizer reports what stays */
	rdma_freeaddrinfo(NULL);
}

static void ports_are_read_from_either_family(void **state)
{
	struct rdma_cm_id id = {0};

	id.route.addr.src_sin.sin_family = AF_INET;
	id.route.addr.src_sin.sin_port = htons(7471);
	id.route.addr.dst_sin6.sin6_family = AF_INET6;
	id.route.addr.dst_sin6.sin6_port = htons(18515);
	assert_int_equal(rdma_get_src_port(&id), htons(7471));
	assert_int_equal(rdma_get_dst_port(&id), htons(18515));
	id.route.addr.src_addr.sa_family = AF_UNSPEC;
	assert_int_equal(rdma_get_src_port(&id), 0);
}

static void events_have_their_names(void **state)
{
	assert_string_equal(rdma_event_str(RDMA_CM_EVENT_ESTABLISHED),
			    "RDMA_CM_EVENT_ESTABLISHED");
	assert_string_equal(rdma_event_str(RDMA_CM_EVENT_TIMEWAIT_EXIT),
			    "RDMA_CM_EVENT_TIMEWAIT_EXIT");
	assert_string_equal(rdma_event_str((enum rdma_cm_event_type)99),
			    "UNKNOWN EVENT");
	assert_string_equal(rdma_event_str((enum rdma_cm_event_type) - 1),
			    "UNKNOWN EVENT");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_is_freed_with_its_members),
		cmocka_unit_test(ports_are_read_from_either_family),
		cmocka_unit_test(events_have_their_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
