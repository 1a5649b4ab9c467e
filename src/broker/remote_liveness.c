/* SPDX-License-Identifier: BSD-2-Clause */
/* Liveness across hosts; see remote_liveness.h. */
#include "broker/remote_liveness.h"

#include "broker/entropy.h"
#include "hdr/mad.h"

#include <stdlib.h>

struct remote_liveness {
	struct gsi *gsi;   /* sends and receives the MADs; borrowed */
	struct live *live; /* the questions that are open */
	/* answers questions of other brokers; gets `user` */
	remote_liveness_state *state;
	void *user; /* passed to state */
};

static void flush_mads(struct remote_liveness *f)
{
	struct cm_frame frame;

	while (live_tx(f->live, &frame))
		gsi_send_frame(f->gsi, &frame);
}

static void receive_mad(void *user, const struct gsi_mad *m, uint64_t now_ns)
{
	struct live_question q;
	struct remote_liveness *f = user;

	if (live_rx(f->live, m->from.ip, m->to.ip, m->scope, m->bytes,
		    MAD_BYTES, now_ns, &q))
		live_reply(f->live, &q, f->state(f->user, q.from.qpn));
	flush_mads(f);
}

struct remote_liveness *remote_liveness_new(struct gsi *gsi,
					    remote_liveness_state *state,
					    void *user, uint64_t now_ns)
{
	struct remote_liveness *f = calloc(1, sizeof(*f));
	struct gsi_agent agent = {
		.mgmt_class = LIVEMSG_CLASS, .user = f, .receive = receive_mad};

	if (!f)
		return NULL;
	*f = (struct remote_liveness){.gsi = gsi, .state = state, .user = user};
	f->live = live_new(entropy(), now_ns);
	if (!f->live || !gsi_attach(gsi, &agent)) {
		remote_liveness_free(f);
		return NULL;
	}
	return f;
}

void remote_liveness_free(struct remote_liveness *f)
{
	if (f->live)
		live_free(f->live);
	free(f);
}

bool remote_liveness_ask(struct remote_liveness *f, uint64_t asker,
			 const struct live_peer *about, uint64_t now_ns)
{
	bool is_asked;

	live_seed(f->live, entropy());
	is_asked = live_ask(f->live, asker, about, now_ns);
	flush_mads(f);
	return is_asked;
}

void remote_liveness_forget(struct remote_liveness *f, uint64_t asker)
{
	live_forget(f->live, asker);
}

bool remote_liveness_answer(struct remote_liveness *f,
			    struct live_answer *answer)
{
	return live_answer(f->live, answer);
}

void remote_liveness_tick(struct remote_liveness *f, uint64_t now_ns)
{
	live_tick(f->live, now_ns);
	flush_mads(f);
}

uint64_t remote_liveness_deadline(const struct remote_liveness *f)
{
	return live_deadline(f->live);
}
