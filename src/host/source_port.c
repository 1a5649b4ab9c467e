/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/source_port.h"

#include <string.h>

#include "broker/steer.h"
#include "host/broker_link.h"
#include "host/host.h"
#include "log/log.h"
#include "util/user_map.h"
#include "wire/port.h"

#define WAITING 64 /* questions that the broker has yet to answer */
#define KNOWN	64 /* answers kept for when the broker cannot be asked */
/* For so long after a process has ended, a broker gives its class to no process
 * of another user. */
#define REST_NS (STEER_USER_REST_MS * 1000000ull)

/* The broker has answered that the user of the process with this class owns
 * this port. */
struct known {
	uint32_t class;	    /* 0: there is no answer here */
	struct inaddr from; /* the address and the port */
	uid_t user;	    /* the owner of the port */
	uint64_t at_ns;	    /* when the broker answered */
};

static struct engine_source waiting[WAITING];
static uint32_t waiters;
static struct known known[KNOWN];
static uint32_t next_known;
/* The time since which no broker can be used; 0: a broker can be used. */
static uint64_t alone_ns;

static bool is_same_port(const struct inaddr *a, const struct inaddr *b)
{
	return a->port == b->port && inaddr_has_same_ip(a->ip, b->ip);
}

/* Returns the broker's answer about the port and the class of *s, if `user` was
 * the owner of the port; NULL: there is none. */
static struct known *find_known(const struct engine_source *s, uid_t user)
{
	for (uint32_t i = 0; i < KNOWN; i++)
		if (known[i].class && known[i].user == user &&
		    known[i].class == broker_link_class(s->qpn) &&
		    is_same_port(&known[i].from, &s->from))
			return &known[i];
	return NULL;
}

/*
 * Does an earlier answer of the broker hold?  Since that answer the process may
 * have died, and the broker may have given its class to another user's process
 * after REST_NS.  Without a broker, no class changes its owner.
 */
static bool was_believed(const struct engine_source *s, uid_t user,
			 uint64_t now_ns)
{
	const struct known *k = find_known(s, user);

	return k && (alone_ns ? alone_ns : now_ns) - k->at_ns < REST_NS;
}

static void keep_question(const struct engine_source *s, uint64_t now_ns)
{
	struct known *at, k = {.class = broker_link_class(s->qpn),
			       .from = s->from,
			       .at_ns = now_ns};

	if (port_owner(&s->from, &s->to, &k.user) != PORT_USER)
		return;
	at = find_known(s, k.user);
	*(at ? at : &known[next_known++ % KNOWN]) = k;
}

/* Asks the broker, which knows the users of both processes.  If the broker
 * cannot be asked now, uses an earlier answer, if there is one. */
static void ask_broker(struct engine *e, const struct engine_source *s,
		       uid_t user, uint64_t now_ns)
{
	if (waiters < WAITING &&
	    broker_link_ask_source(broker_link_class(s->qpn), &s->from, &s->to))
		waiting[waiters++] = *s;
	else if (was_believed(s, user, now_ns))
		engine_source(e, s, true, now_ns);
	/* else the packet is dropped after a while, and the engine asks
	 * again */
}

static void resolve_port(struct engine *e, struct engine_source *s,
			 uint64_t now_ns)
{
	uid_t user = ENGINE_NO_USER;
	enum port_owner owner = port_owner(&s->from, &s->to, &user);

	s->user = user;
	switch (owner) {
	case PORT_USER:
		if (!user || user_map_is_own(user))
			engine_source(e, s, true, now_ns);
		else
			ask_broker(e, s, user, now_ns);
		break;
	case PORT_NOBODY:
		engine_source(e, s, false, now_ns);
		break;
	case PORT_UNKNOWN:
		log_say(LOG_SOURCE_UNKNOWN, 0,
			"the kernel does not tell which user owns a UDP port, "
			"so other users of this host can forge packets of this "
			"program's connections; allow sock_diag(7) in the "
			"sandbox, or make /proc/net/udp and udp6 readable "
			"there");
		engine_source(e, s, true, now_ns);
		break;
	}
}

void source_port_find(struct engine *e, uint64_t now_ns)
{
	struct engine_source s;

	while (engine_wants_source(e, &s))
		resolve_port(e, &s, now_ns);
}

void source_port_answered(struct engine *e, const struct client_news *news,
			  uint64_t now_ns)
{
	uint32_t kept = 0;

	alone_ns = 0;
	for (uint32_t i = 0; i < waiters; i++) {
		struct engine_source s = waiting[i];

		if (broker_link_class(s.qpn) != news->class ||
		    !is_same_port(&s.from, &news->from)) {
			waiting[kept++] = s;
			continue;
		}
		if (news->is_peers)
			keep_question(&s, now_ns);
		engine_source(e, &s, news->is_peers, now_ns);
	}
	waiters = kept;
}

bool source_port_is_asking(void)
{
	return waiters > 0;
}

void source_port_ask_again(void)
{
	uint32_t kept = 0;

	alone_ns = 0;
	for (uint32_t i = 0; i < waiters; i++)
		if (broker_link_ask_source(broker_link_class(waiting[i].qpn),
					   &waiting[i].from, &waiting[i].to))
			waiting[kept++] = waiting[i];
	waiters = kept;
}

void source_port_give_up(struct engine *e, uint64_t now_ns)
{
	if (!alone_ns)
		alone_ns = now_ns;
	for (uint32_t i = 0; i < waiters; i++)
		if (was_believed(&waiting[i], waiting[i].user, now_ns))
			engine_source(e, &waiting[i], true, now_ns);
	waiters = 0;
}

void source_port_forget(void)
{
	waiters = 0;
	alone_ns = 0;
	memset(known, 0, sizeof(known));
}
