/* SPDX-License-Identifier: BSD-2-Clause */
/* rdmacm/ib_route: source addresses, P_Keys and paths.  This test replaces the
 * calls that find and query the adapter, which has two ports. */
#include "test.h"

#include "rdmacm/ib.h"
#include "util/bits.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* the GIDs of port 1 and port 2 */
static const uint8_t one[16] = {0xfe, 0x80, [15] = 1};
static const uint8_t two[16] = {0xfe, 0x80, 9, [15] = 2};
static struct ibv_context verbs;
static struct r_device device = {.verbs = &verbs, .is_ib = true};
static enum ibv_port_state states[2]; /* of the two ports */
static uint16_t pkeys[3];	      /* the P_Keys of each port */
static uint16_t pkey_of_one; /* not 0: the only P_Key of port 1, in place of
			      * pkeys */

const struct r_device *__wrap_r_device_ib(void);
struct r_device *__wrap_r_device_find(const uint8_t ip[16],
				      enum r_transport among,
				      struct r_path *path);
int __wrap_ibv_query_device(struct ibv_context *context,
			    struct ibv_device_attr *attr);
int __wrap_ibv_query_port(struct ibv_context *context, uint8_t number,
			  struct _compat_ibv_port_attr *attr);
int __wrap_ibv_query_gid(struct ibv_context *context, uint8_t number, int index,
			 union ibv_gid *gid);
int __wrap_ibv_query_pkey(struct ibv_context *context, uint8_t number,
			  int index, __be16 *pkey);

const struct r_device *__wrap_r_device_ib(void)
{
	return &device;
}

struct r_device *__wrap_r_device_find(const uint8_t ip[16],
				      enum r_transport among,
				      struct r_path *path)
{
	bool is_second = !memcmp(ip, two, 16);

	if (!is_second && memcmp(ip, one, 16) != 0)
		return NULL;
	path->port_num = is_second ? 2 : 1;
	path->sgid_index = 0;
	return &device;
}

int __wrap_ibv_query_device(struct ibv_context *context,
			    struct ibv_device_attr *attr)
{
	*attr = (struct ibv_device_attr){.phys_port_cnt = 2};
	return 0;
}

int __wrap_ibv_query_port(struct ibv_context *context, uint8_t number,
			  struct _compat_ibv_port_attr *attr)
{
	struct ibv_port_attr now = {.state = states[number - 1],
				    .lmc = 2,
				    .pkey_tbl_len = TEST_COUNT(pkeys)};

	memcpy(attr, &now, offsetof(struct ibv_port_attr, port_cap_flags2));
	return 0;
}

int __wrap_ibv_query_gid(struct ibv_context *context, uint8_t number, int index,
			 union ibv_gid *gid)
{
	memcpy(gid, number == 1 ? one : two, 16);
	return 0;
}

int __wrap_ibv_query_pkey(struct ibv_context *context, uint8_t number,
			  int index, __be16 *pkey)
{
	uint16_t found = pkeys[index];

	if (number == 1 && pkey_of_one)
		found = index ? 0 : pkey_of_one;
	*pkey = htobe16(found);
	return 0;
}

static void set_states(enum ibv_port_state first, enum ibv_port_state second)
{
	states[0] = first;
	states[1] = second;
}

/* Returns the last byte of the source GID for a destination; 0: there is no
 * source. */
static int source_for(const uint8_t to[16])
{
	struct sockaddr_storage dst, from = {0};
	uint8_t gid[16];

	r_addr_make_ib((struct sockaddr *)&dst, to, RDMA_PS_TCP, 1, 0x8001);
	errno = 0;
	if (r_ib_source((struct sockaddr *)&dst, &from)) {
		assert_int_equal(errno, ENODEV);
		return 0;
	}
	assert_int_equal(r_addr_pkey((struct sockaddr *)&from), 0x8001);
	assert_int_equal(r_addr_port((struct sockaddr *)&from), 0);
	r_addr_ip((struct sockaddr *)&from, gid);
	return gid[15];
}

static void a_source_is_at_an_active_port_with_the_prefix(void **state)
{
	const uint8_t near[16] = {0xfe, 0x80, [15] = 77};
	const uint8_t far[16] = {0xfe, 0x80, 9, [15] = 77};
	const uint8_t off[16] = {0xfe, 0x80, 7, [15] = 77};

	set_states(IBV_PORT_ACTIVE, IBV_PORT_ACTIVE);
	pkeys[0] = 0x8001;
	assert_int_equal(source_for(near), 1);
	assert_int_equal(source_for(far), 2);
	assert_int_equal(source_for(off), 0);
	assert_int_equal(source_for(two), 2);
	set_states(IBV_PORT_INIT, IBV_PORT_ACTIVE);
	assert_int_equal(source_for(near), 0);
	assert_int_equal(source_for(far), 2);
	set_states(IBV_PORT_INIT, IBV_PORT_DOWN);
	assert_int_equal(source_for(one), 0);
}

static void a_source_is_in_the_partition_of_the_destination(void **state)
{
	const uint8_t far[16] = {0xfe, 0x80, 9, [15] = 77};
	const uint8_t near[16] = {0xfe, 0x80, [15] = 77};

	set_states(IBV_PORT_ACTIVE, IBV_PORT_ACTIVE);
	memcpy(pkeys, (uint16_t[]){0xffff, 0x0001, 0}, sizeof(pkeys));
	pkey_of_one = 0xffff;
	assert_int_equal(source_for(far), 2); /* a limited member */
	assert_int_equal(source_for(near), 0);
	assert_int_equal(source_for(one), 0);
	pkey_of_one = 0x8001;
	assert_int_equal(source_for(near), 1);
	assert_int_equal(source_for(one), 1);
	pkey_of_one = 0;
}

static void this_host_is_its_first_active_port(void **state)
{
	static const uint8_t none[16];
	uint8_t gid[16];

	set_states(IBV_PORT_INIT, IBV_PORT_ACTIVE);
	assert_true(r_ib_own_gid(gid));
	assert_memory_equal(gid, two, 16);
	set_states(IBV_PORT_INIT, IBV_PORT_INIT);
	assert_false(r_ib_own_gid(gid));
	assert_memory_equal(gid, none, 16);
}

static bool is_allowed(enum rdma_port_space ps, uint64_t space)
{
	const struct r_id id = {.base.ps = ps};
	struct sockaddr_storage at;

	r_addr_make_ib((struct sockaddr *)&at, one, space, 7, 0xffff);
	return !r_ib_check_space(&id, (struct sockaddr *)&at);
}

static void ids_have_service_ids_of_their_port_space(void **state)
{
	assert_true(is_allowed(RDMA_PS_TCP, 0));
	assert_true(is_allowed(RDMA_PS_TCP, RDMA_PS_TCP));
	assert_true(is_allowed(RDMA_PS_UDP, RDMA_PS_UDP));
	assert_true(is_allowed(RDMA_PS_IB, RDMA_PS_IB));
	assert_true(is_allowed(RDMA_PS_IB, RDMA_PS_TCP));
	assert_true(is_allowed(RDMA_PS_IB, RDMA_PS_UDP));
	assert_false(is_allowed(RDMA_PS_TCP, RDMA_PS_UDP));
	assert_false(is_allowed(RDMA_PS_TCP, RDMA_PS_IB));
	assert_false(is_allowed(RDMA_PS_IPOIB, RDMA_PS_IPOIB));
	assert_false(is_allowed(RDMA_PS_TCP, 1ull << 32 | RDMA_PS_TCP));
}

static struct r_id *id_new(void)
{
	struct r_id *id = r_id_new(NULL, NULL, RDMA_PS_TCP, IBV_QPT_RC);

	assert_non_null(id);
	id->device = &device;
	id->base.verbs = &verbs;
	id->base.port_num = 2;
	id->path.mtu = IBV_MTU_4096;
	memcpy(id->path.local, one, 16);
	memcpy(id->path.peer, two, 16);
	return id;
}

static void id_free(struct r_id *id)
{
	free(id->base.route.path_rec);
	free(id);
}

static const struct cmproto_path path = {.local_lid = 6,
					 .remote_lid = 9,
					 .pkey = 0x8001,
					 .sl = 3,
					 .mtu = IBV_MTU_2048,
					 .rate = 7,
					 .life_time = 18,
					 .hop_limit = 64,
					 .traffic_class = 5};

static void give_path(struct r_id *id, struct cmproto_path p)
{
	struct r_event e = {.base.id = &id->base, .message.path = p};

	r_ib_take_route(&e);
	assert_int_equal(e.base.status, 0);
}

static void the_route_shows_the_path(void **state)
{
	struct r_id *id = id_new();
	const struct ibv_sa_path_rec *r;

	give_path(id, path);
	give_path(id, path); /* replaces the first record */
	assert_int_equal(id->base.route.num_paths, 1);
	r = id->base.route.path_rec;
	assert_memory_equal(&r->sgid, one, 16);
	assert_memory_equal(&r->dgid, two, 16);
	assert_int_equal(r->slid, htobe16(6));
	assert_int_equal(r->dlid, htobe16(9));
	assert_int_equal(r->pkey, htobe16(0x8001));
	assert_int_equal(r->sl, 3);
	assert_int_equal(r->mtu, IBV_MTU_2048);
	assert_int_equal(r->rate, 7);
	assert_int_equal(r->packet_life_time, 18);
	assert_int_equal(id->path.mtu, IBV_MTU_2048);
	assert_int_equal(id->base.route.addr.addr.ibaddr.pkey, r->pkey);
	id_free(id);
}

static void packets_have_a_grh_only_on_a_global_path(void **state)
{
	struct ibv_ah_attr near = {0}, far = {0};
	struct cmproto_path global = path;
	struct r_id *id = id_new();

	give_path(id, path);
	r_ib_fill_av(id, &near);
	assert_int_equal(near.dlid, 9);
	assert_int_equal(near.sl, 3);
	assert_int_equal(near.static_rate, 7);
	assert_int_equal(near.port_num, 2);
	assert_int_equal(near.src_path_bits, 6 % 4);
	assert_int_equal(near.is_global, 0);
	global.is_global = 1;
	give_path(id, global);
	r_ib_fill_av(id, &far);
	assert_int_equal(far.is_global, 1);
	assert_memory_equal(&far.grh.dgid, two, 16);
	assert_int_equal(far.grh.hop_limit, 64);
	assert_int_equal(far.grh.traffic_class, 5);
	id_free(id);
}

static void a_timeout_covers_the_round_trip_and_the_ack_delay(void **state)
{
	struct r_id *id = id_new();

	id->path.ib.life_time = 18;
	assert_int_equal(r_ib_ack_timeout(id, 0), 19);
	assert_int_equal(r_ib_ack_timeout(id, 17), 19);
	assert_int_equal(r_ib_ack_timeout(id, 18), 20);
	assert_int_equal(r_ib_ack_timeout(id, 19), 20);
	assert_int_equal(r_ib_ack_timeout(id, 25), 25);
	id->path.ib.life_time = 63;
	assert_int_equal(r_ib_ack_timeout(id, 0), 31);
	id_free(id);
}

static void a_pkey_is_found_with_full_membership_first(void **state)
{
	struct r_id *id = id_new();
	__be16 *pkey = &id->base.route.addr.addr.ibaddr.pkey;
	uint16_t index = 9;

	memcpy(pkeys, (uint16_t[]){0xffff, 0x0001, 0x8001}, sizeof(pkeys));
	assert_int_equal(r_ib_pkey_index(id, &index), 0);
	assert_int_equal(index, 0); /* no P_Key is given: the default one */
	*pkey = htobe16(0x8001);
	assert_int_equal(r_ib_pkey_index(id, &index), 0);
	assert_int_equal(index, 2);
	pkeys[2] = 0;
	assert_int_equal(r_ib_pkey_index(id, &index), 0);
	assert_int_equal(index, 1);
	*pkey = htobe16(0x8002);
	assert_int_equal(r_ib_pkey_index(id, &index), EINVAL);
	id_free(id);
}

/* The program gives no P_Key, and the port lacks the default one: the message
 * names the P_Key that was looked for. */
static void the_message_names_the_default_pkey(void **state)
{
	char text[512] = "";
	int ends[2], status;
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (!child) {
		struct r_id *id = id_new();
		uint16_t index;

		dup2(ends[1], STDERR_FILENO);
		memset(pkeys, 0, sizeof(pkeys));
		_exit(r_ib_pkey_index(id, &index) != EINVAL);
	}
	close(ends[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(read(ends[0], text, sizeof(text) - 1) > 0);
	assert_non_null(strstr(text, "the P_Key 0xffff;"));
	close(ends[0]);
}

static const struct ibv_path_record record = {.mtu = 2 << 6 | IBV_MTU_1024,
					      .rate = 2 << 6 | 7,
					      .packetlifetime = 2 << 6 | 14};

/* Returns the record of a path from slid to dlid, with the source GID `gid`. */
static struct ibv_path_record record_of(uint16_t slid, uint16_t dlid,
					const uint8_t gid[16])
{
	struct ibv_path_record r = record;

	r.slid = htobe16(slid);
	r.dlid = htobe16(dlid);
	r.pkey = htobe16(0xffff);
	memcpy(&r.sgid, gid, 16);
	return r;
}

/* Gives the id the paths of a program.  Returns 0 or errno. */
static int give_paths(struct r_id *id, const struct ibv_path_data *paths,
		      size_t count)
{
	struct r_channel channel = {.base.fd = -1};
	struct list *l;
	int err;

	list_init(&channel.events);
	id->base.channel = &channel.base;
	id->state.wants_route = true;
	errno = 0;
	err = r_route_given(id, paths, count * sizeof(*paths)) ? errno : 0;
	assert_int_equal(id->state.wants_route, err != 0);
	l = list_pop_head(&channel.events);
	assert_int_equal(l == NULL, err != 0);
	if (l)
		free(CONTAINER_OF(l, struct r_event, link));
	return err;
}

enum {
	MAIN = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY |
	       IBV_PATH_FLAG_BIDIRECTIONAL,
	OTHER = IBV_PATH_FLAG_ALTERNATE | IBV_PATH_FLAG_BIDIRECTIONAL,
};

static void assert_lids(const struct r_id *id, uint16_t first, uint16_t second)
{
	assert_int_equal(id->path.ib.remote_lid, first);
	assert_int_equal(id->path.alternate.path.remote_lid, second);
	assert_int_equal(id->base.route.num_paths, second ? 2 : 1);
	if (second)
		assert_int_equal(id->base.route.path_rec[1].dlid,
				 htobe16(second));
}

static void the_first_path_counts_and_the_second_is_the_alternate(void **state)
{
	struct ibv_path_data all[3] = {{MAIN, 0, record_of(6, 9, one)},
				       {OTHER, 0, record_of(7, 10, two)},
				       {MAIN, 0, record_of(6, 11, one)}};
	struct r_id *id = id_new();

	memcpy(pkeys, (uint16_t[]){0x8001, 0xffff, 0}, sizeof(pkeys));
	assert_int_equal(give_paths(id, all, 1), 0);
	assert_lids(id, 9, 0);
	assert_int_equal(give_paths(id, all, 3), 0);
	assert_lids(id, 9, 10);
	assert_memory_equal(&id->base.route.path_rec[1].sgid, two, 16);
	all[1].flags = MAIN;
	assert_int_equal(give_paths(id, all, 2), 0);
	assert_lids(id, 9, 10);
	all[1].flags = IBV_PATH_FLAG_INBOUND;
	assert_int_equal(give_paths(id, all, 3), 0);
	assert_lids(id, 9, 11);
	all[0].flags = all[2].flags = OTHER;
	assert_int_equal(give_paths(id, all, 3), EINVAL);
	id_free(id);
}

static void an_alternate_path_begins_at_a_port_of_the_partition(void **state)
{
	static const uint8_t elsewhere[16] = {0xfe, 0x80, [15] = 9};
	struct ibv_path_data all[2] = {{MAIN, 0, record_of(6, 9, one)},
				       {OTHER, 0, record_of(7, 10, elsewhere)}};
	struct r_id *id = id_new();

	memcpy(pkeys, (uint16_t[]){0xffff, 0x8001, 0}, sizeof(pkeys));
	assert_int_equal(give_paths(id, all, 2), EINVAL);
	all[1].path = record_of(7, 10, two);
	all[1].path.pkey = htobe16(0x8001);
	assert_int_equal(give_paths(id, all, 2), EINVAL);
	all[0].path.pkey = htobe16(0x8001);
	assert_int_equal(give_paths(id, all, 2), 0);
	pkeys[1] = 0;
	assert_int_equal(give_paths(id, all, 2), EINVAL);
	/* such an alternate path in a peer's REQ is ignored */
	id->path.alternate.path.remote_lid = 10;
	r_ib_check_alternate(id);
	assert_int_equal(id->path.alternate.path.remote_lid, 0);
	id_free(id);
}

static void an_alternate_path_is_loaded_unless_the_peer_refuses(void **state)
{
	struct ibv_path_data all[2] = {{MAIN, 0, record_of(6, 9, one)},
				       {OTHER, 0, record_of(7, 10, two)}};
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR};
	struct r_id *id = id_new();

	memcpy(pkeys, (uint16_t[]){0x8001, 0xffff, 0}, sizeof(pkeys));
	assert_int_equal(give_paths(id, all, 1), 0);
	assert_int_equal(r_ib_fill_alternate(id, &a), 0);
	assert_int_equal(give_paths(id, all, 2), 0);
	assert_int_equal(r_ib_fill_alternate(id, &a), IBV_QP_ALT_PATH);
	assert_int_equal(a.alt_port_num, 2);
	assert_int_equal(a.alt_ah_attr.port_num, 2);
	assert_int_equal(a.alt_ah_attr.dlid, 10);
	assert_int_equal(a.alt_ah_attr.src_path_bits, 7 % 4);
	assert_int_equal(a.alt_pkey_index, 1);
	assert_int_equal(a.alt_timeout, 15);
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS};
	assert_int_equal(r_ib_fill_alternate(id, &a), IBV_QP_PATH_MIG_STATE);
	assert_int_equal(a.path_mig_state, IBV_MIG_REARM);
	id->remote.alternate.failover = CMMSG_FAILOVER_UNSUPPORTED;
	assert_int_equal(r_ib_fill_alternate(id, &a), 0);
	id->state.is_passive = true;
	assert_int_equal(r_ib_fill_alternate(id, &a), IBV_QP_PATH_MIG_STATE);
	id_free(id);
}

static void a_path_of_the_program_needs_lids_and_an_mtu(void **state)
{
	struct ibv_path_record r = record_of(6, 9, one);
	struct r_id *id = id_new();

	assert_int_equal(r_ib_give_route(id, &r, NULL), 0);
	assert_int_equal(id->path.ib.remote_lid, 9);
	assert_int_equal(id->path.ib.life_time, 14);
	assert_int_equal(id->path.mtu, IBV_MTU_1024);
	assert_false(id->path.ib.is_global);
	r.dlid = htobe16(0xc000); /* the LID of a multicast group */
	errno = 0;
	assert_int_equal(r_ib_give_route(id, &r, NULL), -1);
	assert_int_equal(errno, EINVAL);
	r.dlid = htobe16(9);
	r.mtu = 2 << 6 | 6;
	assert_int_equal(r_ib_give_route(id, &r, NULL), -1);
	id_free(id);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* This test comes first: its child prints the message only if
		 * no earlier test has printed it. */
		cmocka_unit_test(the_message_names_the_default_pkey),
		cmocka_unit_test(a_source_is_at_an_active_port_with_the_prefix),
		cmocka_unit_test(
			a_source_is_in_the_partition_of_the_destination),
		cmocka_unit_test(this_host_is_its_first_active_port),
		cmocka_unit_test(ids_have_service_ids_of_their_port_space),
		cmocka_unit_test(the_route_shows_the_path),
		cmocka_unit_test(packets_have_a_grh_only_on_a_global_path),
		cmocka_unit_test(
			a_timeout_covers_the_round_trip_and_the_ack_delay),
		cmocka_unit_test(a_pkey_is_found_with_full_membership_first),
		cmocka_unit_test(a_path_of_the_program_needs_lids_and_an_mtu),
		cmocka_unit_test(
			the_first_path_counts_and_the_second_is_the_alternate),
		cmocka_unit_test(
			an_alternate_path_begins_at_a_port_of_the_partition),
		cmocka_unit_test(
			an_alternate_path_is_loaded_unless_the_peer_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
