/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A struct end stands for a port that a program has open.  It has the program's
 * agents, the requests that wait for a response, and the messages that the
 * program has not fetched.
 *
 * Agents work as in the kernel's interface for management datagrams.  The upper
 * half of the transaction ID of each request by fabric_send is the tid_high of
 * the agent that sends the request.  So a response goes to the agent whose
 * tid_high is in the response's transaction ID.  A request goes to the agent
 * that registered for the request's class, version and method.
 */
#ifndef FABRIC_END_H
#define FABRIC_END_H

#include "fabric/inside.h"

struct agent {
	struct fabric_agent asked; /* what the program registered */
	uint32_t tid_high; /* of transaction IDs; 0: this slot has no agent */
};

/* The header of the kernel's struct ib_user_mad, in host order.  In a message
 * to send, lid, sl, qpn, qkey and the GRH are those of the destination.  In a
 * received message they are those of the sender, but qkey is 0. */
struct umad {
	uint32_t agent;	     /* index of end.agents */
	uint32_t status;     /* of a message to the program: 0 or an errno */
	uint32_t timeout_ms; /* how long to wait for a response; 0: no wait */
	uint32_t retries;    /* how often to send again without a response */
	uint32_t qpn;
	uint32_t qkey;
	uint16_t lid;
	uint8_t sl;
	uint8_t path_bits; /* the low LMC bits of this port's LID */
	bool has_grh;
	uint8_t gid_index; /* of the GID in this port's GID table; only with a
			      GRH */
	uint8_t hop_limit;
	uint8_t traffic_class;
	uint8_t gid[16];
	uint32_t flow_label;
	uint16_t pkey_index; /* index in the P_Key table of this port */
};

/* A request whose response is awaited. */
struct wait {
	struct list list;
	uint8_t header[FABRIC_UMAD_BYTES]; /* as the program wrote it */
	uint8_t mad[MAD_BYTES]; /* the request, with its transaction ID */
	uint32_t agent;		/* the sender, an index of end.agents */
	uint32_t timeout_ms;	/* from one sending to the next */
	uint32_t retries;	/* how often the request may be sent again */
	uint64_t due_ms;	/* when the request is sent again, or fails */
};

struct end {
	struct list of_fabric; /* in fabric.ends */
	struct list of_port;   /* in port.ends */
	struct list ready;     /* in fabric.ready */
	struct port *port;
	void *owner; /* what fabric_owner returns */
	struct agent agents[FABRIC_AGENTS];
	struct list messages; /* struct end_message, oldest first */
	size_t held;	      /* bytes of the messages */
	struct list waits;    /* struct wait */
	uint32_t wait_count;
	struct list outgoing;	 /* struct rmpp_out: transfers to peers */
	uint32_t outgoing_count; /* how many these are */
	size_t outgoing_bytes;	 /* the length of their MADs together */
	struct list incoming;	 /* struct rmpp_in: transfers from peers */
	/* How many transfers from peers are under way, and how many have come
	 * whole and are not yet forgotten. */
	uint32_t incoming_count, finished_count;
	bool is_paused; /* between fabric_pause and fabric_resume */
};

/* Closes all ends of the fabric. */
void end_free_all(struct fabric *f);
/* Sends again the requests whose timeout has passed at f->now_ms, or fails
 * those without retries left.  Runs the timers of RMPP. */
void end_tick(struct fabric *f);
/* Returns the time at which end_tick has something to do, in ms; FABRIC_NEVER:
 * never. */
uint64_t end_deadline(const struct fabric *f);

/* Gives the request p to the agent, at the packet's port, that registered for
 * such requests.  False: no agent did.  The caller still owns the packet. */
bool end_take_request(const struct packet *p);
/* Gives the response p to the agent whose tid_high is in its transaction ID.
 * Ignores p if there is no such agent at the packet's port, if the agent waits
 * for no such response and p is no packet of RMPP, or if end_deliver fails.
 * The caller still owns the packet. */
void end_take_response(const struct packet *p);

/* For rmpp.c: makes a packet of a MAD that an agent of `end` sends to the
 * address `to`, and gives the packet to the fabric.  Returns 0 or -ENOMEM. */
int end_inject(struct end *end, const struct umad *to,
	       const uint8_t mad[MAD_BYTES]);
/* Adds a message for `agent` to an end: the `bytes` bytes at `mad`, with a
 * header that has the address of the sender of packet p.  False: the message is
 * lost, because the program has too many bytes to fetch, or no memory is left.
 */
bool end_deliver(struct end *end, uint32_t agent, const struct packet *p,
		 const uint8_t *mad, size_t bytes);
/* Finds the agent's request that the response p answers: the two have the same
 * class and transaction ID, and p comes from the port to which the request was
 * sent.  The port is not compared if the request went by directed route or to a
 * multicast group.  NULL: there is no such request. */
struct wait *end_find_wait(struct end *end, uint32_t agent,
			   const struct packet *p);
/* Removes a request from end.waits and frees it. */
void end_free_wait(struct end *end, struct wait *wait);

#endif
