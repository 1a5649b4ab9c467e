/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions of rdmacm/addrinfo, id, channel and qp that need no connection. */
#include "test.h"

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include <arpa/inet.h>
#include <errno.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rdmacm/newer.h"
#include "rdmacm/object.h"
#include "util/fd_identity.h"
#include "verbs/object.h"

static void a_list_is_freed_with_its_members(void **state)
{
	struct rdma_addrinfo *first = calloc(1, sizeof(*first));

	assert_non_null(first);
	first->ai_next = calloc(1, sizeof(*first));
	assert_non_null(first->ai_next);
	first->ai_src_addr = malloc(16);
	first->ai_dst_canonname = strdup("name");
	first->ai_next->ai_route = malloc(64);
	rdma_freeaddrinfo(first); /* LeakSanitizer reports memory that is not
				   * freed */
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
	assert_string_equal(
		rdma_event_str(
			(enum rdma_cm_event_type)NEWER_EVENT_ADDRINFO_ERROR),
		"RDMA_CM_EVENT_ADDRINFO_ERROR");
	assert_string_equal(
		rdma_event_str((enum rdma_cm_event_type)NEWER_EVENT_INTERNAL),
		"RDMA_CM_EVENT_INTERNAL");
	assert_string_equal(rdma_event_str((enum rdma_cm_event_type)99),
			    "UNKNOWN EVENT");
	assert_string_equal(rdma_event_str((enum rdma_cm_event_type) - 1),
			    "UNKNOWN EVENT");
}

/* The device was opened by another process, so ibv_alloc_pd fails. */
static void the_cause_is_told_if_there_is_no_domain(void **state)
{
	static struct v_context parents;
	struct r_device device = {.verbs = &parents.verbs.context};
	struct ibv_qp_init_attr qp = {.qp_type = IBV_QPT_RC};
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 1}};
	struct r_id *id = r_id_new(NULL, NULL, RDMA_PS_TCP, IBV_QPT_RC);

	assert_non_null(id);
	parents.process = v_process() + 1;
	id->device = &device;
	id->base.verbs = device.verbs;
	errno = 0;
	assert_int_equal(rdma_create_qp(&id->base, NULL, &qp), -1);
	assert_int_equal(errno, EPERM);
	errno = 0;
	assert_int_equal(rdma_create_srq(&id->base, NULL, &srq), -1);
	assert_int_equal(errno, EPERM);
	free(id);
}

/* The device was opened by another process, so no queue can be created. */
static void a_failed_second_queue_leaves_the_first_to_the_id(void **state)
{
	static struct v_context parents;
	struct r_device device = {.verbs = &parents.verbs.context};
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 1}};
	struct r_id *id = r_id_new(NULL, NULL, RDMA_PS_TCP, IBV_QPT_RC);
	struct ibv_pd pd = {.context = device.verbs};
	struct ibv_srq first;

	assert_non_null(id);
	parents.process = v_process() + 1;
	id->device = &device;
	id->base.verbs = device.verbs;
	id->base.srq = &first;
	assert_int_equal(rdma_create_srq(&id->base, NULL, &attr), -1);
	assert_ptr_equal(id->base.srq, &first);
	assert_int_equal(rdma_create_srq(&id->base, &pd, &attr), -1);
	assert_ptr_equal(id->base.srq, &first);
	assert_null(id->base.pd);
	free(id);
}

/* The program has put a file of its own in place of the channel's. */
static void a_dropped_event_reads_no_file_of_the_program(void **state)
{
	struct r_channel channel = {
		.base.fd = fd_identity_note_shown(eventfd(0, EFD_SEMAPHORE))};
	struct r_id *id =
		r_id_new(&channel.base, NULL, RDMA_PS_TCP, IBV_QPT_RC);
	char text[16];
	int own[2];

	assert_non_null(id);
	list_init(&channel.events);
	assert_int_equal(r_post_local(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, own), 0);
	assert_int_equal(write(own[1], "abcdefgh", 8), 8);
	assert_int_equal(dup2(own[0], channel.base.fd), channel.base.fd);
	assert_int_equal(rdma_destroy_id(&id->base), 0);
	assert_int_equal(recv(own[0], text, sizeof(text), MSG_DONTWAIT), 8);
	close(channel.base.fd);
	close(own[0]);
	close(own[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_is_freed_with_its_members),
		cmocka_unit_test(ports_are_read_from_either_family),
		cmocka_unit_test(events_have_their_names),
		cmocka_unit_test(a_dropped_event_reads_no_file_of_the_program),
		cmocka_unit_test(the_cause_is_told_if_there_is_no_domain),
		cmocka_unit_test(
			a_failed_second_queue_leaves_the_first_to_the_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
