/* SPDX-License-Identifier: BSD-2-Clause */
/* tools/fabric_cm: the MADs of connection management, as a program of libibumad
 * sends and sees them. */
#include "fabric_programs.h"

#include "fabric/umad_header.h"

enum { OTHER_SL = 5, QPN = 0x1234, ID = 0x77 };

/* Takes the program's next MAD, which is a message of the CM of this kind. */
static struct umad take_mad(const struct umad_program *p, enum cmmsg_kind kind,
			    struct cmmsg *msg)
{
	struct pollfd wait = {.fd = p->umad, .events = POLLIN};
	uint8_t m[FABRIC_UMAD_BYTES + MAD_BYTES];
	struct umad from;

	assert_int_equal(poll(&wait, 1, 20000), 1);
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

/* A REQ from port 1 of M to a program's GID and port. */
static struct cmmsg make_req(const struct umad_program *p,
			     const struct program *to)
{
	struct cmmsg msg = {.kind = CMMSG_REQ,
			    .local_id = ID,
			    .service_id = cmmsg_service_id(SPACE, to->port),
			    .qp.qpn = QPN,
			    .local_timeout = TIMEOUT,
			    .max_cm_retries = 3};

	read_gid(p->fabric, "M", 1, 0, msg.primary.local_gid);
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
		struct cmmsg req = make_req(&m, &b);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		FABRIC_TEST(a_request_goes_by_the_pkey_and_the_sl_of_its_path),
		FABRIC_TEST(
			an_answer_goes_by_the_pkey_and_the_sl_of_the_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
