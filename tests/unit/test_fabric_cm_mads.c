/* SPDX-License-Identifier: BSD-2-Clause */
/* tools/fabric_cm: the MADs of connection management, as a program of libibumad
 * sends and sees them. */
#include "fabric_programs.h"

#include "fabric/umad_header.h"

enum { OTHER_SL = 5, QPN = 0x1234, ID = 0x77 };

/* Takes the program's next MAD, which must be a CM message of this kind. */
static struct umad take_mad(const struct umad_program *p, enum cmmsg_kind kind,
			    struct cmmsg *msg)
{
	struct pollfd wait = {.fd = p->umad, .events = POLLIN};
	uint8_t m[FABRIC_UMAD_BYTES + MAD_BYTES];
	struct umad from;

	assert_int_equal(poll(&wait, 1, TEST_WAIT_MS), 1);
	assert_int_equal(recv(p->umad, m, sizeof(m), 0), sizeof(m));
	umad_header_parse(m, &from);
	assert_true(cmmsg_parse(m + FABRIC_UMAD_BYTES, MAD_BYTES, msg));
	assert_int_equal(msg->kind, kind);
	return from;
}

/* Sends a message of the CM to QP1 of a LID. */
static void send_mad(const struct umad_program *p, struct umad to,
		     const struct cmmsg *msg)
{
	uint8_t m[FABRIC_UMAD_BYTES + MAD_BYTES];

	to.qpn = 1;
	to.qkey = 0x80010000;
	umad_header_write(&to, MAD_BYTES, m);
	cmmsg_write(m + FABRIC_UMAD_BYTES, msg);
	assert_int_equal(send(p->umad, m, sizeof(m), 0), sizeof(m));
}

/* Returns a REQ from port 1 of a host to a program's GID and port. */
static struct cmmsg make_req(const struct umad_program *p, const char *host,
			     const struct program *to)
{
	struct cmmsg msg = {.kind = CMMSG_REQ,
			    .local_id = ID,
			    .service_id = cmmsg_service_id(SPACE, to->port),
			    .qp.qpn = QPN,
			    .local_timeout = TIMEOUT,
			    .max_cm_retries = 3};

	read_gid(p->fabric, host, 1, 0, msg.primary.local_gid);
	memcpy(msg.primary.remote_gid, to->gid, 16);
	return msg;
}

static void a_request_goes_by_the_pkey_and_the_sl_of_its_path(void **state)
{
	const struct cmproto_path by = {.local_lid = LID_A1,
					.remote_lid = LID_SM,
					.pkey = PKEY,
					.sl = SA_SL};
	struct umad_program m = run_agent("M", CMMSG_CLASS, CMMSG_METHOD_SEND);
	struct program a = run_program("A", 1, 0), to = {.port = 1};
	struct cmmsg msg;
	struct umad from;

	read_gid(m.fabric, "M", 1, 0, to.gid);
	bind_port(&a, false);
	connect_to(&a, &to, &by);
	from = take_mad(&m, CMMSG_REQ, &msg);
	assert_int_equal(from.lid, LID_A1);
	assert_int_equal(from.sl, SA_SL);
	assert_int_equal(from.pkey_index, PKEY_AT_M);
	end_program(&a);
	end_agent(&m);
}

static void an_answer_goes_by_the_pkey_and_the_sl_of_the_request(void **state)
{
	const struct umad to = {
		.lid = LID_B, .sl = OTHER_SL, .pkey_index = PKEY_AT_M};
	struct umad_program m = run_agent("M", CMMSG_CLASS, CMMSG_METHOD_SEND);
	struct program b = run_program("B", 1, 0);
	struct cmmsg msg;

	listen_at(&b, false);
	for (int accepts = 0; accepts <= 1; accepts++) {
		struct cmmsg req = make_req(&m, "M", &b);
		struct umad from;

		req.local_id += (uint32_t)accepts;
		req.service_id += !accepts; /* of no listener */
		send_mad(&m, to, &req);
		if (accepts)
			call_ok(&b, (struct cmproto){.qp.qpn = QPN},
				CMPROTO_ACCEPT,
				take_event(&b, CMPROTO_REQUEST).new_id);
		from = take_mad(&m, accepts ? CMMSG_REP : CMMSG_REJ, &msg);
		assert_int_equal(from.lid, LID_B);
		assert_int_equal(from.sl, OTHER_SL);
		assert_int_equal(from.pkey_index, PKEY_AT_M);
	}
	end_program(&b);
	end_agent(&m);
}

/* Runs a program on B that does not use connection management. */
static struct umad_program run_other(void)
{
	return run_agent("B", CLASS_PERF, METHOD_TRAP);
}

static void a_host_without_cm_rejects_a_request(void **state)
{
	struct umad_program other = run_other();
	struct program a = run_program("A", 1, 0);

	for (int is_datagram = 0; is_datagram <= 1; is_datagram++) {
		struct cmproto m = request_of(&a, NULL);

		bind_port(&a, is_datagram);
		read_gid(a.fabric, "B", 1, 0, m.at.peer);
		m.at.peer_port = 1;
		m.is_datagram = (uint8_t)is_datagram;
		call_ok(&a, m, CMPROTO_CONNECT, a.object);
		m = take_event(&a, is_datagram ? CMPROTO_UNREACHABLE
					       : CMPROTO_REJECTED);
		assert_int_equal(m.status, is_datagram ? CMMSG_SIDR_NO_SERVICE
						       : NO_SERVICE);
	}
	end_program(&a);
	end_agent(&other);
}

static void a_group_of_processes_makes_a_node_a_host(void **state)
{
	struct fabric_proto take = {.kind = FABRIC_PROTO_TAKE, .host = "B"};
	struct umad_program m = run_agent("M", CMMSG_CLASS, CMMSG_METHOD_SEND);
	struct program b = {.port = 1};
	struct cmmsg msg, req;
	int group = join_fabric();

	assert_int_equal(ask_fabric(group, &take, NULL), 0);
	read_gid(m.fabric, "B", 1, 0, b.gid);
	req = make_req(&m, "M", &b);
	send_mad(&m, (struct umad){.lid = LID_B, .sl = OTHER_SL}, &req);
	assert_int_equal(take_mad(&m, CMMSG_REJ, &msg).sl, OTHER_SL);
	assert_int_equal(msg.remote_id, ID);
	assert_int_equal(msg.reason, CMMSG_REJ_BAD_SERVICE_ID);
	close(group);
	end_agent(&m);
}

static void a_host_without_cm_knows_no_conversation(void **state)
{
	static const struct {
		enum cmmsg_kind kind, answer;
	} row[] = {{CMMSG_DREQ, CMMSG_DREP},
		   {CMMSG_REP, CMMSG_REJ},
		   {CMMSG_RTU, CMMSG_REJ}};
	struct umad_program m = run_agent("M", CMMSG_CLASS, CMMSG_METHOD_SEND);
	struct umad_program other = run_other();
	struct cmmsg msg = {.local_id = ID, .remote_id = ID + 1};

	for (size_t i = 0; i < TEST_COUNT(row); i++) {
		struct cmmsg answer;

		msg.kind = row[i].kind;
		send_mad(&m, (struct umad){.lid = LID_B}, &msg);
		take_mad(&m, row[i].answer, &answer);
		assert_int_equal(answer.local_id, ID + 1);
		assert_int_equal(answer.remote_id, ID);
	}
	end_agent(&other);
	end_agent(&m);
}

/* Connects m, a program that is the communication manager of M, with the
 * listener of b. */
static void connect_by_hand(const struct umad_program *m,
			    const struct program *b, const struct cmmsg *req)
{
	const struct umad to = {.lid = LID_B};
	struct cmmsg rtu = {.kind = CMMSG_RTU, .local_id = req->local_id};
	struct cmmsg rep;

	send_mad(m, to, req);
	call_ok(b, (struct cmproto){.qp.qpn = QPN}, CMPROTO_ACCEPT,
		take_event(b, CMPROTO_REQUEST).new_id);
	take_mad(m, CMMSG_REP, &rep);
	rtu.remote_id = rep.local_id;
	send_mad(m, to, &rtu);
	take_event(b, CMPROTO_ESTABLISHED);
}

/* The communication manager of M has forgotten its connection, as after a
 * crash. */
static void a_connection_that_its_peer_has_lost_ends(void **state)
{
	struct umad_program m = run_agent("M", CMMSG_CLASS, CMMSG_METHOD_SEND);
	struct cmmsg req, msg, drep = {.kind = CMMSG_DREP, .local_id = ID};
	const struct umad to = {.lid = LID_B};
	struct program b = run_program("B", 1, 0);

	listen_at(&b, false);
	req = make_req(&m, "M", &b);
	connect_by_hand(&m, &b, &req);
	req.local_id++;
	send_mad(&m, to, &req);
	take_mad(&m, CMMSG_REJ, &msg);
	assert_int_equal(msg.reason, CMMSG_REJ_STALE);
	take_mad(&m, CMMSG_DREQ, &msg);
	drep.remote_id = msg.local_id;
	send_mad(&m, to, &drep);
	take_event(&b, CMPROTO_DISCONNECTED);
	req.local_id++;
	connect_by_hand(&m, &b, &req);
	end_program(&b);
	end_agent(&m);
}

/* Another program on host A sends a REQ with the QPN of a's connection. */
static void a_forged_request_ends_no_connection(void **state)
{
	struct umad_program other = run_agent("A", CLASS_PERF, METHOD_TRAP);
	struct program a = run_program("A", 1, 0), b = run_program("B", 1, 0);
	struct umad_program sa = run_sa();
	struct cmmsg req;
	uint32_t accepted;

	listen_at(&b, false);
	accepted = begin_pair(&a, &b, &sa, LID_A1, LID_B);
	req = make_req(&other, "A", &b);
	req.qp.qpn = QPN_OF_PAIR;
	send_mad(&other, (struct umad){.lid = LID_B}, &req);
	/* port_of asks the fabric, which reads the REQ at the latest in the
	 * turn of its loop in which it answers port_of */
	port_of(other.fabric, "A", 1);
	end_pair(&a, &b, accepted);
	end_program(&a);
	end_program(&b);
	end_agent(&sa);
	end_agent(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FABRIC_TEST(a_request_goes_by_the_pkey_and_the_sl_of_its_path),
		FABRIC_TEST(
			an_answer_goes_by_the_pkey_and_the_sl_of_the_request),
		FABRIC_TEST(a_host_without_cm_rejects_a_request),
		FABRIC_TEST(a_group_of_processes_makes_a_node_a_host),
		FABRIC_TEST(a_host_without_cm_knows_no_conversation),
		FABRIC_TEST(a_connection_that_its_peer_has_lost_ends),
		FABRIC_TEST(a_forged_request_ends_no_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
