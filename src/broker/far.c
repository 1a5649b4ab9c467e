/* SPDX-License-Identifier: BSD-2-Clause */
/* Liveness across hosts; see far.h. */
#include "broker/far.h"

#include "hdr/mad.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define PKEY_DEFAULT 0xffff

struct far {
	struct gsi *gsi;
	struct live *live;
	far_state *state;
	void *user;
};

static uint64_t entropy(void)
{
	uint64_t random = 0;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = 0;
	return random;
}

static void flush(struct far *f)
{
	struct cm_frame frame;

	while (live_tx(f->live, &frame)) {
		struct gsi_mad mad = {.remote_qpn = GSI_QPN,
				      .pkey = PKEY_DEFAULT,
				      .ifindex = frame.scope,
				      .bytes = frame.mad};

		memcpy(mad.from.ip, frame.from, 16);
		memcpy(mad.to.ip, frame.to, 16);
		gsi_send(f->gsi, &mad);
	}
}

static void receive(void *user, const struct gsi_mad *m, uint64_t now_ns)
{
	bool is_link_local = m->from.ip[0] == 0xfe && m->from.ip[1] == 0x80;
	struct live_question q;
	struct far *f = user;

	if (live_rx(f->live, m->from.ip, m->to.ip,
		    is_link_local ? m->ifindex : 0, m->bytes, MAD_BYTES, now_ns,
		    &q))
		live_reply(f->live, &q, f->state(f->user, q.from.qpn));
	flush(f);
}

struct far *far_new(struct gsi *gsi, far_state *state, void *user,
		    uint64_t now_ns)
{
	struct far *f = calloc(1, sizeof(*f));
	struct gsi_agent agent = {
		.mgmt_class = LIVEMSG_CLASS, .user = f, .receive = receive};

	if (!f)
		return NULL;
	*f = (struct far){.gsi = gsi, .state = state, .user = user};
	f->live = live_new(entropy(), now_ns);
	if (!f->live || !gsi_attach(gsi, &agent)) {
		far_free(f);
		return NULL;
	}
	return f;
}

void far_free(struct far *f)
{
	if (f->live)
		live_free(f->live);
	free(f);
}

bool far_ask(struct far *f, uint64_t asker, const struct live_peer *about,
	     uint64_t now_ns)
{
	bool is_asked;

	live_seed(f->live, entropy());
	is_asked = live_ask(f->live, asker, about, now_ns);
	flush(f);
	return is_asked;
}

void far_forget(struct far *f, uint64_t asker)
{
	live_forget(f->live, asker);
}

bool far_answer(struct far *f, struct live_answer *answer)
{
	return live_answer(f->live, answer);
}

void far_tick(struct far *f, uint64_t now_ns)
{
	live_tick(f->live, now_ns);
	flush(f);
}

uint64_t far_deadline(const struct far *f)
{
	return live_deadline(f->live);
}
