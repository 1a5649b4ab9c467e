/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ports that programs have open: their agents, the requests that wait for a
 * response, and the messages that the program has not fetched.  The meaning is
 * that of the kernel's interface for management datagrams: an agent's number is
 * the upper half of its requests' transaction IDs, a response goes to the agent
 * whose number it has, and a request to the agent that registered its class,
 * version and method.
 */
#ifndef FABRIC_END_H
#define FABRIC_END_H

#include "fabric/inside.h"

struct agent {
	struct fabric_agent asked;
	uint32_t tid_high; /* upper half of transaction IDs; 0: slot is free */
};

/* struct ib_user_mad's header, in host order. */
struct umad {
	uint32_t agent;
	uint32_t status;
	uint32_t timeout_ms;
	uint32_t retries;
	uint32_t qpn;
	uint32_t qkey;
	uint16_t lid;
	uint8_t sl;
	uint8_t path_bits;
	bool has_grh;
	uint8_t gid_index;
	uint8_t hop_limit;
	uint8_t traffic_class;
	uint8_t gid[16];
	uint32_t flow_label;
	uint16_t pkey_index;
};

/* A request whose response is awaited. */
struct wait {
	struct list list;
	uint8_t header[FABRIC_UMAD_BYTES]; /* as the program wrote it */
	uint8_t mad[MAD_BYTES];
	uint32_t agent;
	uint32_t timeout_ms;
	uint32_t retries; /* left */
	uint64_t due_ms;
};

struct end {
	struct list of_fabric;
	struct list of_port;
	struct list ready;
	struct port *port;
	void *owner;
	struct agent agents[FABRIC_AGENTS];
	struct list messages; /* struct message */
	size_t held;	      /* bytes of the messages */
	struct list waits;    /* struct wait */
	uint32_t wait_count;
	struct list outgoing; /* struct rmpp_out */
	uint32_t outgoing_count;
	struct list incoming; /* struct rmpp_in */
	uint32_t incoming_count;
	bool is_paused;
};

void end_free_all(struct fabric *f);
/* Ends what has waited too long. */
void end_tick(struct fabric *f);
uint64_t end_deadline(const struct fabric *f);

/* Gives a request that the node's own agents do not take to the program that
 * does.  Returns false if there is none.  The packet stays the caller's. */
bool end_take_request(const struct packet *p);
/* Gives a response to the agent whose request it answers, if that agent waits
 * for it.  The packet stays the caller's. */
void end_take_response(const struct packet *p);

/* For rmpp.c: makes the packet of a MAD that an agent sends, and injects it.
 * Returns 0 or -ENOMEM. */
int end_inject(struct end *end, const struct umad *to,
	       const uint8_t mad[MAD_BYTES]);
/* Gives a message to an end: `bytes` of MAD from where packet p came.  Too many
 * messages: the message is lost. */
void end_deliver(struct end *end, uint32_t agent, const struct packet *p,
		 const uint8_t *mad, size_t bytes);
/* Finds the request that a response answers, or NULL. */
struct wait *end_find_wait(struct end *end, uint32_t agent, const uint8_t *mad);
void end_free_wait(struct end *end, struct wait *wait);

#endif
