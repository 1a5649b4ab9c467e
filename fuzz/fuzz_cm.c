/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm: the input is a program of commands for two communication managers.  Some
 * of the messages between them are lost, duplicated or changed.  A manager
 * never has more conversations than its configuration allows.
 */
#include "fuzz.h"
#include "input.h"

#include <string.h>

#include "cm/cm.h"

#define CONVERSATIONS 8
#define IDS	      16
#define SERVICE	      0x1000000000061234ull

struct script {
	struct input_bytes in;
	struct cm *cm[2];
	uint32_t listener[2];
	bool listens[2];
	/* id: the latest ids of conversations of each manager; ids: how many
	 * ids there have been */
	uint32_t id[2][IDS], ids[2];
	uint64_t now_ns;
	/* the latest message, without the change by carry_frames */
	struct cm_frame last;
};

static void address_of(int i, uint8_t ip[16])
{
	memset(ip, 0, 16);
	ip[10] = ip[11] = 0xff;
	ip[12] = 10;
	ip[15] = (uint8_t)(i + 1);
}

static uint32_t some_id(struct script *s, int i)
{
	return s->ids[i] ? s->id[i][input_u8(&s->in) % IDS] : input_u8(&s->in);
}

static void note_id(struct script *s, int i, uint32_t id)
{
	s->id[i][s->ids[i]++ % IDS] = id;
}

static void connect_side(struct script *s, int i)
{
	struct cm_start start = {.user = 1, .strict = input_u8(&s->in) & 1};
	uint32_t id;

	address_of(i, start.local);
	address_of(!i, start.peer);
	start.msg.kind = input_u8(&s->in) & 1 ? CMMSG_SIDR_REQ : CMMSG_REQ;
	start.msg.service_id = SERVICE + input_u8(&s->in) % 2;
	start.msg.max_cm_retries = input_u8(&s->in) % 16;
	start.msg.local_timeout = input_u8(&s->in) % 32;
	start.msg.remote_timeout = start.msg.local_timeout;
	if (cm_connect(s->cm[i], &start, s->now_ns, &id) == 0)
		note_id(s, i, id);
}

static void listen_side(struct script *s, int i)
{
	struct cm_where any = {.any_v4 = true, .any_v6 = true};

	if (s->listens[i])
		cm_unlisten(s->cm[i], s->listener[i], 0);
	s->listens[i] = cm_listen(s->cm[i], NULL, 2, SERVICE, &any,
				  input_u8(&s->in) % 8, &s->listener[i]) == 0;
}

static void answer_id(struct script *s, int i, uint32_t id)
{
	struct cmmsg reply = {.kind = input_u8(&s->in) & 1 ? CMMSG_REP
							   : CMMSG_SIDR_REP};

	switch (input_u8(&s->in) % 8) {
	case 0:
	case 1:
	case 2:
		cm_accept(s->cm[i], id, &reply, s->now_ns);
		break;
	case 3:
		reply.reason = input_u8(&s->in);
		cm_reject(s->cm[i], id, &reply, s->now_ns);
		break;
	case 4:
	case 5:
		cm_establish(s->cm[i], id, s->now_ns);
		break;
	case 6:
		cm_disconnect(s->cm[i], id, s->now_ns);
		break;
	case 7:
		cm_release(s->cm[i], id, s->now_ns);
		break;
	}
}

static void deliver_frame(struct script *s, int to, const struct cm_frame *f)
{
	cm_rx(s->cm[to], f->from, f->to, &f->way, f->mad, sizeof(f->mad),
	      s->now_ns);
}

static void carry_frames(struct script *s, int from)
{
	struct cm_event event;
	struct cm_frame f;

	while (cm_tx(s->cm[from], &f)) {
		uint8_t dice = s->in.at < s->in.end ? input_u8(&s->in) % 8 : 1;

		s->last = f;
		if (dice == 2)
			f.mad[input_u8(&s->in)] = input_u8(&s->in);
		for (int copies = dice == 0 ? 0 : dice == 3 ? 2 : 1; copies--;)
			deliver_frame(s, !from, &f);
	}
	for (int i = 0; i < 2; i++)
		while (cm_event(s->cm[i], &event))
			note_id(s, i, event.id);
}

/* Moves the time to the next deadline, or by some amount. */
static void pass_time(struct script *s)
{
	uint64_t due = cm_deadline(s->cm[0]), other = cm_deadline(s->cm[1]);
	uint8_t how = input_u8(&s->in);

	if (other < due)
		due = other;
	if (how & 1 && due != UINT64_MAX && due > s->now_ns)
		s->now_ns = due;
	else
		s->now_ns += 1000ull << how % 30;
	cm_tick(s->cm[0], s->now_ns);
	cm_tick(s->cm[1], s->now_ns);
}

/* Resumes a note of manager i, with up to three changed bytes, in one of the
 * two managers. */
static void take_up(struct script *s, int i)
{
	struct cm_note n;
	uint32_t id;
	int heir;

	cm_note_make(s->cm[i], some_id(s, i), &n);
	for (int k = input_u8(&s->in) % 4; k > 0; k--)
		((uint8_t *)&n)[input_u8(&s->in) % sizeof(n)] =
			input_u8(&s->in);
	heir = input_u8(&s->in) & 1;
	if (cm_note_resume(s->cm[heir], NULL, 3, &n, s->now_ns, &id) == 0)
		note_id(s, heir, id);
}

static void run_command(struct script *s)
{
	uint8_t c = input_u8(&s->in);
	int i = c >> 7;

	switch (c % 8) {
	case 0:
		connect_side(s, i);
		break;
	case 1:
		listen_side(s, i);
		break;
	case 2:
	case 3:
		answer_id(s, i, some_id(s, i));
		break;
	case 4:
		pass_time(s);
		break;
	case 5: /* changes up to three bytes of the latest message, and
		 * delivers the message again */
		for (int n = input_u8(&s->in) % 4; n > 0; n--)
			s->last.mad[input_u8(&s->in)] = input_u8(&s->in);
		deliver_frame(s, i, &s->last);
		break;
	case 6:
		cm_taken(s->cm[i], some_id(s, i));
		cm_seed(s->cm[i], c);
		break;
	case 7:
		take_up(s, i);
		break;
	}
	carry_frames(s, 0);
	carry_frames(s, 1);
	FUZZ_REQUIRE(cm_count(s->cm[i]) <= CONVERSATIONS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct script s = {.in = {data, data + size}};

	for (int i = 0; i < 2; i++) {
		struct cm_config config = {.seed = (uint64_t)i + 1,
					   .conversations = CONVERSATIONS,
					   .half_open = 4};

		s.cm[i] = cm_new(&config, 0);
		FUZZ_REQUIRE(s.cm[i]);
		listen_side(&s, i);
	}
	while (s.in.at < s.in.end)
		run_command(&s);
	cm_free(s.cm[0]);
	cm_free(s.cm[1]);
	return 0;
}
