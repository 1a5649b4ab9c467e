/* SPDX-License-Identifier: BSD-2-Clause */
/* Liveness across hosts; see far.h. */
#include "broker/far.h"

#include "broker/entropy.h"
#include "hdr/mad.h"

#include <stdlib.h>

struct far {
	struct gsi *gsi;
	struct live *live;
	far_state *state;
	void *user;
};

static void flush(struct far *f)
{
	struct cm_frame frame;

	while (live_tx(f->live, &frame))
		gsi_send_frame(f->gsi, &frame);
}

static void receive(void *user, const struct gsi_mad *m, uint64_t now_ns)
{
	struct live_question q;
	struct far *f = user;

	if (live_rx(f->live, m->from.ip, m->to.ip, m->scope, m->bytes,
		    MAD_BYTES, now_ns, &q))
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
