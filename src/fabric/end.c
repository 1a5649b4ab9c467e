/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/end.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/gate.h"
#include "fabric/gid.h"
#include "fabric/port_info.h"
#include "fabric/rmpp.h"
#include "fabric/umad_header.h"
#include "hdr/bytes.h"
#include "util/bits.h"

enum {
	WAITS_MAX = 4096,    /* requests of an end that wait for a response */
	HELD_MAX = 16 << 20, /* bytes that a program has not fetched */
	AT_OUI = 37,
	AT_DR_SLID = 32,
	AT_DR_DLID = 34,
	/* As in the kernel, agents have the classes 0x00 to 0x4f, and 0x81, and
	 * the versions 0x00 to 0x82. */
	CLASSES = 0x50,
	VERSIONS = 0x83,
	TIMEOUT_MAX_MS = 600000,
	ROOM_MS = 100, /* until time_out tries again to add its message */
};

struct end_message {
	struct list list;
	size_t bytes;
	uint8_t data[];
};

#define OF_PORT(l)   CONTAINER_OF(l, struct end, of_port)
#define OF_FABRIC(l) CONTAINER_OF(l, struct end, of_fabric)
#define OF_READY(l)  CONTAINER_OF(l, struct end, ready)

static bool is_response(const uint8_t *mad)
{
	return (mad[3] & MAD_METHOD_RESPONSE) || mad[3] == METHOD_TRAP_REPRESS;
}

struct end *fabric_open(struct node *node, uint32_t number, void *owner,
			int *err)
{
	struct fabric *f = node->fabric;
	struct end *end;

	*err = -ENODEV;
	if (!node_has_port(node, number))
		return NULL;
	*err = -EMFILE;
	if (f->end_count == FABRIC_ENDS)
		return NULL;
	*err = -ENOMEM;
	end = calloc(1, sizeof(*end));
	if (!end)
		return NULL;
	*err = 0;
	end->port = &node->ports[number];
	end->owner = owner;
	list_init(&end->messages);
	list_init(&end->waits);
	list_init(&end->outgoing);
	list_init(&end->incoming);
	list_init(&end->ready);
	list_init(&end->of_fabric);
	list_init(&end->of_port);
	list_push_tail(&f->ends, &end->of_fabric);
	list_push_tail(&end->port->ends, &end->of_port);
	f->end_count++;
	return end;
}

/* Sets IsSM of the port if some program there has an agent for SubnGet, which
 * only subnet managers have; clears IsSM otherwise. */
static void update_sm(struct port *port)
{
	bool is_sm = false;

	list_for_each (l, &port->ends) {
		const struct end *end = OF_PORT(l);

		for (int i = 0; i < FABRIC_AGENTS; i++) {
			const struct agent *a = &end->agents[i];

			if (a->tid_high &&
			    inside_is_subnet(a->asked.mgmt_class) &&
			    (a->asked.methods[0] >> METHOD_GET & 1))
				is_sm = true;
		}
	}
	port_info_set_sm(port, is_sm);
}

void end_free_wait(struct end *end, struct wait *wait)
{
	list_remove(&wait->list);
	end->wait_count--;
	free(wait);
}

void fabric_close(struct end *end)
{
	struct fabric *f = end->port->node->fabric;
	struct list *l;

	list_for_each_safe (it, &end->waits)
		end_free_wait(end, (struct wait *)it);
	while ((l = list_pop_head(&end->messages)))
		free(l);
	rmpp_free(end, FABRIC_AGENTS);
	list_remove(&end->of_fabric);
	list_remove(&end->of_port);
	list_remove(&end->ready);
	f->end_count--;
	update_sm(end->port);
	free(end);
}

void end_free_all(struct fabric *f)
{
	list_for_each_safe (l, &f->ends)
		fabric_close(OF_FABRIC(l));
}

void *fabric_owner(const struct end *end)
{
	return end->owner;
}

static bool is_overlapping(const struct fabric_agent *a,
			   const struct fabric_agent *b)
{
	if (a->mgmt_class != b->mgmt_class ||
	    a->class_version != b->class_version)
		return false;
	if (fabric_has_oui(a->mgmt_class) && a->oui != b->oui)
		return false;
	return (a->methods[0] & b->methods[0]) ||
	       (a->methods[1] & b->methods[1]);
}

static bool is_taken(const struct port *port, const struct fabric_agent *asked)
{
	list_for_each (l, &port->ends) {
		const struct end *end = OF_PORT(l);

		for (int i = 0; i < FABRIC_AGENTS; i++)
			if (end->agents[i].tid_high &&
			    is_overlapping(&end->agents[i].asked, asked))
				return true;
	}
	return false;
}

static bool has_tid(const struct port *port, uint32_t tid_high)
{
	list_for_each (l, &port->ends) {
		const struct end *end = OF_PORT(l);

		for (int i = 0; i < FABRIC_AGENTS; i++)
			if (end->agents[i].tid_high == tid_high)
				return true;
	}
	return false;
}

/* Returns a tid_high for a new agent at the port: not 0, which means that there
 * is no agent, and not that of another agent there, which would get the
 * responses to the new agent. */
static uint32_t choose_tid(struct port *port)
{
	struct fabric *f = port->node->fabric;

	do
		f->next_tid++;
	while (!f->next_tid || has_tid(port, f->next_tid));
	return f->next_tid;
}

/* Does the kernel take an agent with these members?  Class 0 stands for an
 * agent that takes no requests. */
static bool is_valid_agent(const struct fabric_agent *asked)
{
	uint8_t class = asked->mgmt_class;

	if (asked->rmpp_version > 1 || asked->oui >> 24)
		return false;
	if (!class)
		return true;
	return (class < CLASSES || class == CLASS_SUBN_DIRECTED) &&
	       asked->class_version < VERSIONS &&
	       (!fabric_has_oui(class) || asked->oui) &&
	       (!asked->rmpp_version || fabric_has_rmpp(class));
}

int fabric_register(struct end *end, const struct fabric_agent *asked)
{
	if (!is_valid_agent(asked) || is_taken(end->port, asked))
		return -EINVAL;
	for (int i = 0; i < FABRIC_AGENTS; i++) {
		if (end->agents[i].tid_high)
			continue;
		end->agents[i].asked = *asked;
		end->agents[i].tid_high = choose_tid(end->port);
		update_sm(end->port);
		return i;
	}
	return -ENOMEM;
}

int fabric_unregister(struct end *end, uint32_t agent)
{
	if (agent >= FABRIC_AGENTS || !end->agents[agent].tid_high)
		return -EINVAL;
	list_for_each_safe (l, &end->waits) {
		struct wait *wait = (struct wait *)l;

		if (wait->agent == agent)
			end_free_wait(end, wait);
	}
	rmpp_free(end, agent);
	memset(&end->agents[agent], 0, sizeof(end->agents[agent]));
	update_sm(end->port);
	return 0;
}

/* Adds a message to end->messages.  False: the message was dropped, because the
 * program has too many bytes to fetch, or no memory is left. */
static bool add_message(struct end *end, const uint8_t *header,
			const uint8_t *mad, size_t bytes)
{
	struct end_message *m;

	if (end->held + bytes > HELD_MAX)
		return false;
	m = malloc(sizeof(*m) + FABRIC_UMAD_BYTES + bytes);
	if (!m)
		return false;
	list_init(&m->list);
	m->bytes = FABRIC_UMAD_BYTES + bytes;
	memcpy(m->data, header, FABRIC_UMAD_BYTES);
	memcpy(m->data + FABRIC_UMAD_BYTES, mad, bytes);
	end->held += m->bytes;
	list_push_tail(&end->messages, &m->list);
	if (!end->is_paused && !list_is_linked(&end->ready))
		list_push_tail(&end->port->node->fabric->ready, &end->ready);
	return true;
}

bool end_deliver(struct end *end, uint32_t agent, const struct packet *p,
		 const uint8_t *mad, size_t bytes)
{
	struct umad from = {
		.agent = agent,
		.qpn = p->src_qp,
		.lid = p->slid,
		.sl = p->sl,
		.path_bits = (uint8_t)(p->dlid &
				       ((1u << port_info_lmc(end->port)) - 1)),
		.has_grh = p->has_grh,
		.hop_limit = p->hop_limit,
		.traffic_class = p->traffic_class,
		.flow_label = p->flow_label,
		.pkey_index = gate_index(end->port, p->pkey),
	};
	uint8_t header[FABRIC_UMAD_BYTES];

	memcpy(from.gid, p->sgid, sizeof(from.gid));
	if (p->has_grh)
		from.gid_index = (uint8_t)gid_index(end->port, p->dgid);
	umad_header_write(&from, bytes, header);
	return add_message(end, header, mad, bytes);
}

/* Does the SMP begin its way by directed route, and not by LID (IBTA 14.2.2)?
 * A response takes the way of its request from the other end. */
static bool begins_by_route(const uint8_t mad[MAD_BYTES])
{
	return bytes_get16(mad +
			   (is_response(mad) ? AT_DR_DLID : AT_DR_SLID)) ==
	       LID_PERMISSIVE;
}

int end_inject(struct end *end, const struct umad *to,
	       const uint8_t mad[MAD_BYTES])
{
	struct port *port = end->port;
	struct packet *p = packet_new(port->node->fabric, port);
	uint16_t bits = (uint16_t)((1u << port_info_lmc(port)) - 1);

	if (!p)
		return -ENOMEM;
	memcpy(p->mad, mad, MAD_BYTES);
	p->slid = port_info_lid(port) | (to->path_bits & bits);
	p->dlid = to->lid;
	if (mad[1] == CLASS_SUBN_DIRECTED && begins_by_route(mad))
		p->slid = p->dlid = LID_PERMISSIVE;
	p->sl = to->sl;
	p->src_qp = inside_is_subnet(mad[1]) ? 0 : 1;
	p->dest_qp = to->qpn;
	p->qkey = to->qkey;
	if (to->pkey_index < PORT_PKEYS)
		p->pkey = port->pkeys[to->pkey_index];
	p->has_grh = to->has_grh;
	p->hop_limit = to->hop_limit;
	p->traffic_class = to->traffic_class;
	p->flow_label = to->flow_label;
	memcpy(p->dgid, to->gid, sizeof(p->dgid));
	port_info_gid(port, port_guid(port, to->gid_index), p->sgid);
	packet_inject(p);
	return 0;
}

/* Remembers a request until its response comes. */
static int add_wait(struct end *end, const struct umad *to,
		    const uint8_t *header, const uint8_t mad[MAD_BYTES])
{
	struct wait *wait;

	if (end->wait_count == WAITS_MAX)
		return -ENOBUFS;
	wait = calloc(1, sizeof(*wait));
	if (!wait)
		return -ENOMEM;
	list_init(&wait->list);
	memcpy(wait->header, header, FABRIC_UMAD_BYTES);
	memcpy(wait->mad, mad, MAD_BYTES);
	wait->agent = to->agent;
	wait->timeout_ms = to->timeout_ms < TIMEOUT_MAX_MS ? to->timeout_ms
							   : TIMEOUT_MAX_MS;
	wait->retries = to->retries < 64 ? to->retries : 64;
	wait->due_ms = end->port->node->fabric->now_ms + wait->timeout_ms;
	list_push_tail(&end->waits, &wait->list);
	end->wait_count++;
	return 0;
}

/* Does the response p come from the port to which the request was sent?  The
 * response to a request by directed route, or to a group, has another LID. */
static bool is_from_dest(const struct end *end, const struct wait *wait,
			 const struct packet *p)
{
	struct umad to;

	umad_header_parse(wait->header, &to);
	return p->mad[1] == CLASS_SUBN_DIRECTED || to.lid >= MLID_FIRST ||
	       to.lid == p->slid ||
	       gid_has_both_lids(end->port->node->fabric, to.lid, p->slid);
}

/* Does the agent's request have the class and the transaction ID of the
 * response p? */
static bool has_id_of(const struct wait *wait, uint32_t agent,
		      const struct packet *p)
{
	return wait->agent == agent && wait->mad[1] == p->mad[1] &&
	       !memcmp(wait->mad + 8, p->mad + 8, 8);
}

struct wait *end_find_wait(struct end *end, uint32_t agent,
			   const struct packet *p)
{
	list_for_each (l, &end->waits) {
		struct wait *wait = (struct wait *)l;

		if (has_id_of(wait, agent, p) && is_from_dest(end, wait, p))
			return wait;
	}
	return NULL;
}

/* Is p a packet for an agent that handles RMPP itself?  The agent's request
 * ends with the first segment of the response, and the agent gets the other
 * segments, ACKs and ABORTs as well, as in the kernel.  While a request waits,
 * a packet with the request's ID is a response to that request or forged. */
static bool is_of_user_rmpp(const struct end *end, uint32_t agent,
			    const struct packet *p)
{
	if (end->agents[agent].asked.rmpp_version || !rmpp_is_active(p->mad))
		return false;
	list_for_each (l, &end->waits)
		if (has_id_of((const struct wait *)l, agent, p))
			return false;
	return true;
}

/* Ends the wait of a request that was not sent because of err.  A program has
 * no other news of its request than a response or a timeout.  So a request that
 * finds no room or memory counts as lost on its way: after its timeout it is
 * sent again.  Without retries, or if it is one of RMPP, whose transfer does
 * not exist, it times out at once.  Then 0 is returned. */
static int refuse_wait(struct end *end, struct wait *wait, bool is_rmpp,
		       int err)
{
	if (err != -ENOBUFS && err != -ENOMEM) {
		end_free_wait(end, wait);
		return err;
	}
	if (!is_rmpp && wait->retries)
		return 0;
	wait->retries = 0;
	wait->due_ms = end->port->node->fabric->now_ms;
	return 0;
}

/* Sends a message, and returns as fabric_send does.  keeps_id: the transaction
 * ID of a request stays as it is. */
static int send_message(struct end *end, const uint8_t *umad, size_t bytes,
			bool keeps_id)
{
	const uint8_t *from = umad + FABRIC_UMAD_BYTES;
	uint8_t mad[MAD_BYTES] = {0};
	const struct agent *agent;
	struct umad to;
	bool is_rmpp, waits;
	size_t n;
	int err;

	if (bytes < FABRIC_UMAD_BYTES + MAD_HEADER_BYTES ||
	    bytes > FABRIC_UMAD_BYTES + FABRIC_MAD_MAX)
		return -EINVAL;
	n = bytes - FABRIC_UMAD_BYTES;
	umad_header_parse(umad, &to);
	if (to.agent >= FABRIC_AGENTS || !end->agents[to.agent].tid_high)
		return -EINVAL;
	agent = &end->agents[to.agent];
	memcpy(mad, from, n < MAD_BYTES ? n : MAD_BYTES);
	is_rmpp = agent->asked.rmpp_version && rmpp_is_active(mad);
	if (n > MAD_BYTES && !is_rmpp)
		return -EINVAL;
	if (!is_response(mad) && !keeps_id)
		bytes_put32(mad + 8, agent->tid_high);
	waits = to.timeout_ms && !is_response(mad);
	/* A response goes to the agent whose tid_high is the upper half of the
	 * transaction ID.  With another upper half in the request, the sender
	 * would never get the response. */
	if (waits && keeps_id)
		return -EINVAL;
	if (waits) {
		err = add_wait(end, &to, umad, mad);
		if (err)
			return err;
	}
	err = is_rmpp ? rmpp_send(end, &to, mad, from, n)
		      : end_inject(end, &to, mad);
	if (err && waits)
		err = refuse_wait(end, (struct wait *)end->waits.prev, is_rmpp,
				  err);
	return err;
}

int fabric_send(struct end *end, const uint8_t *umad, size_t bytes)
{
	return send_message(end, umad, bytes, false);
}

int fabric_send_as_is(struct end *end, const uint8_t *umad, size_t bytes)
{
	return send_message(end, umad, bytes, true);
}

static bool takes_request(const struct agent *a, const uint8_t *mad)
{
	uint8_t method = mad[3] & 0x7f;

	if (!a->tid_high || a->asked.mgmt_class != mad[1] ||
	    a->asked.class_version != mad[2] ||
	    !(a->asked.methods[method / 64] >> method % 64 & 1))
		return false;
	return !fabric_has_oui(mad[1]) ||
	       a->asked.oui == bytes_get24(mad + AT_OUI);
}

static void take_packet(struct end *end, uint32_t agent, const struct packet *p)
{
	if (end->agents[agent].asked.rmpp_version && rmpp_is_active(p->mad))
		rmpp_take(end, agent, p);
	else
		end_deliver(end, agent, p, p->mad, MAD_BYTES);
}

bool end_take_request(const struct packet *p)
{
	struct port *port = port_managed(p->at);

	list_for_each (l, &port->ends) {
		struct end *end = OF_PORT(l);

		for (uint32_t i = 0; i < FABRIC_AGENTS; i++) {
			if (!takes_request(&end->agents[i], p->mad))
				continue;
			take_packet(end, i, p);
			return true;
		}
	}
	return false;
}

static void take_response(struct end *end, uint32_t agent,
			  const struct packet *p)
{
	struct wait *wait = end_find_wait(end, agent, p);
	bool is_rmpp =
		end->agents[agent].asked.rmpp_version && rmpp_is_active(p->mad);

	/* A packet of RMPP needs no waiting request: it may be an ACK for a
	 * request that was sent without a timeout. */
	if (is_rmpp)
		rmpp_take(end, agent, p);
	else if (wait && end_deliver(end, agent, p, p->mad, MAD_BYTES))
		end_free_wait(end, wait);
	else if (is_of_user_rmpp(end, agent, p))
		end_deliver(end, agent, p, p->mad, MAD_BYTES);
}

void end_take_response(const struct packet *p)
{
	struct port *port = port_managed(p->at);
	uint32_t tid_high = bytes_get32(p->mad + 8);

	list_for_each (l, &port->ends) {
		struct end *end = OF_PORT(l);

		for (uint32_t i = 0; tid_high && i < FABRIC_AGENTS; i++) {
			if (end->agents[i].tid_high != tid_high)
				continue;
			take_response(end, i, p);
			return;
		}
	}
}

/* Returns the request to the program, cut to its MAD header, with ETIMEDOUT, as
 * the kernel does.  If add_message fails, tries again after ROOM_MS: a program
 * gets either a response or a timeout for each request that has a timeout. */
static void time_out(struct end *end, struct wait *wait, uint64_t now_ms)
{
	uint8_t header[FABRIC_UMAD_BYTES];

	memcpy(header, wait->header, sizeof(header));
	umad_header_fail(header, ETIMEDOUT, MAD_HEADER_BYTES);
	if (add_message(end, header, wait->mad, MAD_HEADER_BYTES))
		end_free_wait(end, wait);
	else
		wait->due_ms = now_ms + ROOM_MS;
}

static void tick_wait(struct end *end, struct wait *wait, uint64_t now_ms)
{
	struct umad to;

	if (wait->due_ms > now_ms)
		return;
	if (!wait->retries) {
		time_out(end, wait, now_ms);
		return;
	}
	wait->retries--;
	wait->due_ms = now_ms + wait->timeout_ms;
	umad_header_parse(wait->header, &to);
	/* rmpp_tick sends the segments of a long MAD again */
	if (!end->agents[wait->agent].asked.rmpp_version ||
	    !rmpp_is_active(wait->mad))
		end_inject(end, &to, wait->mad);
}

void end_tick(struct fabric *f)
{
	list_for_each (l, &f->ends) {
		struct end *end = OF_FABRIC(l);

		list_for_each_safe (w, &end->waits)
			tick_wait(end, (struct wait *)w, f->now_ms);
		rmpp_tick(end);
	}
}

uint64_t end_deadline(const struct fabric *f)
{
	uint64_t first = FABRIC_NEVER;

	list_for_each (l, &f->ends) {
		const struct end *end = OF_FABRIC(l);
		uint64_t rmpp = rmpp_deadline(end);

		first = rmpp < first ? rmpp : first;
		list_for_each (w, &end->waits) {
			uint64_t due = ((const struct wait *)w)->due_ms;

			first = due < first ? due : first;
		}
	}
	return first;
}

struct end *fabric_ready(struct fabric *f)
{
	return list_is_empty(&f->ready) ? NULL : OF_READY(f->ready.next);
}

const uint8_t *fabric_fetch(struct end *end, size_t *bytes)
{
	const struct end_message *m =
		(const struct end_message *)end->messages.next;

	if (list_is_empty(&end->messages))
		return NULL;
	*bytes = m->bytes;
	return m->data;
}

void fabric_fetched(struct end *end)
{
	struct end_message *m =
		(struct end_message *)list_pop_head(&end->messages);

	if (!m)
		return;
	end->held -= m->bytes;
	free(m);
	if (list_is_empty(&end->messages))
		list_remove(&end->ready);
}

void fabric_pause(struct end *end)
{
	end->is_paused = true;
	list_remove(&end->ready);
}

void fabric_resume(struct end *end)
{
	end->is_paused = false;
	if (!list_is_empty(&end->messages) && !list_is_linked(&end->ready))
		list_push_tail(&end->port->node->fabric->ready, &end->ready);
}
