/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The objects behind the public handles of librdmacm.  Each starts with the
 * public struct.  The program creates ids and channels, and destroys them;
 * librdmacm creates the id of a connection request.  librdmacm owns an event
 * until the program has acknowledged the event.
 *
 * Lock: r_lock covers what librdmacm's threads change, such as lists, events,
 * handles and notes.  The program's calls change the other members of an id,
 * such as options and depths, without r_lock.  Under r_lock no call of the
 * verbs library is made, except those for captures (verbs/iwarp.h).
 */
#ifndef RDMACM_OBJECT_H
#define RDMACM_OBJECT_H

#include <rdma/rdma_cma.h>

#include <infiniband/ib.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "broker/cmproto.h"
#include "util/bits.h"
#include "util/list.h"
#include "verbs/catch_up.h"

/* A device that this process has opened for its ids. */
struct r_device {
	struct ibv_context *verbs; /* owned, and never closed */
	struct ibv_pd *pd; /* the pd of ids to which the program gives none */
	uint64_t guid;	   /* host order */
	/* The calls for an iWARP device (verbs/iwarp.h); RoCE: NULL. */
	const struct verbs_iwarp *iwarp;
	/* ibv_adverb_catch_up; NULL: the libibverbs.so.1 lacks it. */
	verbs_catch_up *catch_up;
	/* The device is an adapter of a fabric (ib.h). */
	bool is_ib;
	/* The largest responder resources and initiator depth of a QP. */
	uint8_t max_responder, max_initiator;
	uint8_t ack_delay;  /* Local CA ACK Delay, as in struct cmproto_qp */
	uint8_t port_count; /* the device's ports have the numbers 1 to this */
};

struct r_channel {
	struct rdma_event_channel base;
	/* Events that the program has not taken; base.fd has a token for each,
	 * at the latest when r_lock is released. */
	struct list events;
};

struct r_event {
	struct rdma_cm_event base;
	/* In the list of last_event.c while the event is withheld, then in
	 * r_channel.events, and in r_id.taken once the program has taken the
	 * event. */
	struct list link;
	/* The broker's message that caused the event; the event's private_data
	 * points into the message.  All zeroes if no message caused the
	 * event. */
	struct cmproto message;
	struct r_multicast *multicast; /* the event's group, or NULL */
	/* While the event is withheld (last_event.h).  serial: its number, in
	 * the order of such events.  rounds_left: after so many more rounds the
	 * event is posted in any case.  was_served: r_last_event_serve has
	 * looked for completions that the event waits for. */
	uint64_t serial;
	uint32_t rounds_left;
	bool was_served;
	uint8_t mpa_private[UINT8_MAX]; /* iWARP: the event's private_data */
};

struct r_multicast {
	struct list link; /* in the id's list */
	/* The group's address, as the program gave it. */
	struct sockaddr_storage addr;
	void *context; /* the program's */
	/* The group's GID; on InfiniBand set by the answer to the join. */
	union ibv_gid gid;
	/* InfiniBand: by this number the fabric names the membership; 0: there
	 * is none. */
	uint32_t number;
	/* InfiniBand: a socket that makes the kernel a member of the group, or
	 * -1. */
	int kernel_fd;
	uint16_t lid;	  /* InfiniBand: the group's MLID */
	bool only_sends;  /* the program asked that the QP is not attached */
	bool is_attached; /* the QP is attached */
	bool is_joining;  /* a thread has taken the event and attaches the QP */
};

/* How far the program has come with an id. */
struct r_state {
	bool is_passive;   /* made for a connection request */
	bool is_listening; /* rdma_listen has succeeded */
	bool is_up; /* ESTABLISHED was taken, or rdma_establish has succeeded */
	bool is_disconnected; /* the program has taken DISCONNECTED */
	bool is_binding;      /* the broker has not answered r_bind_later yet */
	bool has_destination; /* rdma_resolve_addr runs or has succeeded */
	/* rdma_resolve_addr has succeeded, and the id neither has a route nor
	 * looks for one. */
	bool wants_route;
	/* rdma_resolve_route or RDMA_OPTION_IB_PATH has set a route. */
	bool has_route;
	bool is_decided; /* the program has connected, accepted or rejected */
	/* The peer's request ended before is_decided was set. */
	bool is_withdrawn;
	/* r_ip_find_peer or r_ib_find_peer has not ended yet; ADDR_RESOLVED
	 * waits for it. */
	bool is_resolving;
	bool uses_kept; /* r_id.kept is in use */
	/* The failure of r_bind_later, r_ip_find_peer or r_ib_find_peer, as
	 * -errno; if two have failed, the later failure; 0: none. */
	int resolve_err;
};

/* The addresses and the path MTU of an id's connection. */
struct r_path {
	/* Addresses as GIDs; IPv4 addresses are mapped to IPv6. */
	uint8_t local[16], peer[16];
	uint8_t port_num;   /* the port of the id's device */
	uint8_t sgid_index; /* the index of `local` in that port's GID table */
	uint8_t mtu;	    /* the path MTU, IBV_MTU_* */
	uint8_t route_mtu;  /* the largest path MTU of the route; 0: unknown */
	uint32_t scope;	    /* the interface of a link-local peer address */
	uint32_t ifindex;   /* InfiniBand: of the IPoIB interface, or 0 */
	uint16_t pkey;	    /* InfiniBand: that interface's P_Key, or 0 */
	/* InfiniBand: the path of rdma_resolve_route or RDMA_OPTION_IB_PATH, or
	 * that of the peer's REQ; all zeroes: unknown. */
	struct cmproto_path ib;
	/* InfiniBand: the alternate path of RDMA_OPTION_IB_PATH, or that of the
	 * peer's REQ; remote_lid 0: there is none. */
	struct cmproto_alternate alternate;
};

/* Values that this side sends in its REQ or REP.  A SIDR_REP has only the qkey
 * from here. */
struct r_offer {
	uint32_t psn, qpn;
	uint8_t responder_resources, initiator_depth;
	uint8_t retry_count, rnr_retry, flow_control, has_srq;
	uint32_t qkey;
	struct ibv_ece ece;
};

/* The options of rdma_set_option. */
struct r_options {
	/* tos: the traffic class, RDMA_OPTION_ID_TOS.  ack_timeout:
	 * RDMA_OPTION_ID_ACK_TIMEOUT, a time of 4.096 us * 2^ack_timeout; 0:
	 * the default. */
	uint8_t tos, ack_timeout;
	/* may_share: RDMA_OPTION_ID_REUSEADDR is set.  is_family_only:
	 * RDMA_OPTION_ID_AFONLY is set. */
	bool may_share, is_family_only;
};

struct r_id {
	struct rdma_cm_id base;
	struct list by_handle; /* in the table of link_table.c */
	uint32_t handle;       /* the broker's name of the id, or 0 */
	/* The note of the conversation, for the broker's successor; zeroes:
	 * there is no conversation. */
	uint8_t note[CMPROTO_NOTE];
	/* The id's state for iWARP, with its socket (iw.h); or NULL.  An id
	 * that is bound to an open address (r_addr_is_open) may have both a
	 * socket and a handle. */
	struct r_iw *iw;
	struct r_device *device; /* NULL: the id has no device yet */
	bool is_sync;		 /* the id owns its channel */
	struct r_state state;
	/* The number (process_number) of the process that has a thread in
	 * r_call for the id; 0: there is no such thread.  A forked child copies
	 * the id, but not that thread. */
	uint64_t caller;
	uint32_t backlog; /* of the first rdma_listen; 0: the broker chooses */
	/* InfiniBand: how long each question about an IPoIB interface waits for
	 * the fabric's answer, in ms; 0: as long as r_call. */
	uint32_t ask_ms;
	/* The events (r_event.link) that the program has taken and not
	 * acknowledged, oldest first.  A connection request is in the list of
	 * its listener. */
	struct list taken;
	/* How many events of the id (r_event_owner) are in its channel's list.
	 */
	uint32_t queued;
	/* The event of r_event_sure when no memory is left; state.uses_kept:
	 * r_event_sure has returned it, and r_event_free was not called. */
	struct r_event kept;
	struct r_path path;
	/* The peer's REQ, SIDR_REQ or REP.  iWARP: only the depths of the
	 * peer's request, in remote.qp, are set. */
	struct cmproto remote;
	struct r_offer own;
	struct r_options options;
	struct list multicasts; /* its groups: nodes r_multicast.link */
	/* The attributes with which rdma_get_request creates queue pairs: a
	 * copy of those of rdma_create_ep, or NULL.  base.pd is the domain of
	 * these queue pairs; NULL: the device's. */
	struct ibv_qp_init_attr *listen_attr;
	/* The result of rdma_resolve_addrinfo, owned; or NULL. */
	struct rdma_addrinfo *info;
	/* owns_send_cq: rdma_create_qp has set base.send_cq.  owns_recv_cq:
	 * rdma_create_qp has set base.recv_cq. */
	bool owns_send_cq, owns_recv_cq;
	/* The queue pair's completion queues (struct r_cq in qp.c).  NULL: the
	 * program has created the queue, or there is no queue pair. */
	struct r_cq *send_cq, *recv_cq;
};

/* Kinds of devices, as bits; an adapter of a fabric counts as R_ROCE.
 * r_device_find considers only devices of the given kinds. */
enum r_transport { R_ROCE = 1, R_IWARP = 2, R_ANY = 3 };

static inline struct r_id *r_id(struct rdma_cm_id *id)
{
	return (struct r_id *)(void *)id;
}

/* Returns whether the id is bound, by the program or by rdma_resolve_addr: at
 * the broker (handle), or for an iWARP device (iw). */
static inline bool r_is_bound(const struct r_id *id)
{
	return id->handle || id->iw;
}

/* Returns the kinds of devices that the id can have: iWARP has no UD. */
static inline enum r_transport r_transports(const struct r_id *id)
{
	return id->base.qp_type == IBV_QPT_UD ? R_ROCE : R_ANY;
}

/* Returns whether the id's device is an iWARP device; false if the id has no
 * device. */
static inline bool r_is_iwarp(const struct r_id *id)
{
	return id->device && id->device->iwarp;
}

/* Returns whether the id's device is an adapter of a fabric; false if the id
 * has no device. */
static inline bool r_is_ib(const struct r_id *id)
{
	return id->device && id->device->is_ib;
}

static inline struct r_channel *r_channel(struct rdma_event_channel *channel)
{
	return (struct r_channel *)(void *)channel;
}

/* Returns the event whose member `link` the node is. */
static inline struct r_event *r_event_of(struct list *node)
{
	return CONTAINER_OF(node, struct r_event, link);
}

/* Returns the id on whose channel the event is: the listener of a connection
 * request, else the event's id. */
static inline struct rdma_cm_id *r_event_owner(const struct r_event *e)
{
	return e->base.listen_id ? e->base.listen_id : e->base.id;
}

/* Taken by r_take and released by r_give.  The mutex itself is used only by a
 * holder that waits for r_changed, by a holder that releases the lock for a
 * call, and by tell_news (iw_stream.c), which must not wait. */
extern pthread_mutex_t r_lock;
/* Broadcast under r_lock after each change for which a thread may wait, such as
 * an answer of the broker, an acknowledgement, or a free place for a request.
 */
extern pthread_cond_t r_changed;

/* lock.c: disables cancellation of this thread, and takes r_lock.  The holder
 * must not be cancelled, but calls functions that are cancellation points. */
void r_take(void);
/* lock.c: releases r_lock, and restores the thread's cancellation state from
 * before r_take. */
void r_give(void);
/* lock.c, under r_lock: waits until the program has acknowledged all events of
 * the id.  The program may never do that, so the thread can be cancelled while
 * it waits, and a wait of 5 s prints a message.  call: the name of the
 * program's call, for the message. */
void r_await_acks(const struct r_id *id, const char *call);

/* device.c: opens the devices of this host, unless they are open.  Returns 0,
 * or -1 and errno with a message.  ENODEV: there is no device, or the process's
 * libibverbs.so.1 is not adverb's. */
int r_devices(void);
/*
 * device.c: returns the first device of these kinds that has the address `ip`,
 * which is in the form of a GID.  Stores the port and the index of that GID in
 * *path; the index is 0 for an iWARP device.  Returns NULL, and changes
 * nothing, if no such device has the address.  The device stays open until the
 * process ends.
 */
struct r_device *r_device_find(const uint8_t ip[16], enum r_transport among,
			       struct r_path *path);
/* device.c: returns the calls of an iWARP device of this host, or NULL. */
const struct verbs_iwarp *r_device_iwarp(void);
/* device.c: returns the adapter of a fabric, or NULL. */
const struct r_device *r_device_ib(void);
/*
 * device.c: fails a call, since no device that the id can have has the address.
 * Prints the message `format`, in which %s stands for the address.  For a
 * datagram id, prints instead that iWARP has no datagrams if an iWARP device
 * has the address, or if there is no RoCE device.  Returns -1 with errno
 * ENODEV.
 */
int r_fail_device(const struct r_id *id, const struct sockaddr *addr,
		  const char *format);
/* device.c: returns whether a device of one of these kinds exists. */
bool r_device_exists(enum r_transport among);
/*
 * device.c: returns the device's protection domain, or NULL and errno.  The
 * domain is created by the first call that can create it, and never freed,
 * since programs register memory in it.
 */
struct ibv_pd *r_device_domain(struct r_device *d);
/*
 * device.c, without r_lock: handles all packets that have arrived for the
 * queue pairs of this process, and sends their ACKs (verbs/catch_up.h).
 * Returns whether completions of d's queue pair qpn wait to be polled; false if
 * libibverbs.so.1 lacks the call.
 */
bool r_device_catch_up(const struct r_device *d, uint32_t qpn);
/* device.c: gives the id the device d, after r_device_find has stored the port
 * in id->path.  Sets verbs, pd, port and path MTU of the id; the path MTU is at
 * most path.route_mtu, if that is known.  The pd is NULL if r_device_domain
 * fails. */
void r_device_use(struct r_id *id, struct r_device *d);

/* ---- link.c: the connection to the broker ---- */

/*
 * Sends the request m and waits for the answer, which replaces m.  If the
 * broker is killed before it answers, the request is sent to its successor.
 * Takes r_lock.  Returns 0, or -errno from the broker or from a failure to
 * connect.  Waits at most 30 s, or longer if it has to open the connection
 * (dial_open, r_ib_dial).  After that time returns -EPIPE if there is no
 * broker, else -ETIMEDOUT: the broker has not answered, or another thread has
 * been in r_call for the id all the time.
 */
int r_call(struct r_id *id, struct cmproto *m, uint16_t kind);
/* As r_call, but waits for the answer at most most_ms, or 30 s if that is
 * less. */
int r_call_within(struct r_id *id, struct cmproto *m, uint16_t kind,
		  uint32_t most_ms);
/* Calls r_call with an empty request, and drops the answer.  Returns r_call's
 * result: 0 or -errno. */
int r_do(struct r_id *id, uint16_t kind);
/*
 * Sends the request m without waiting for the answer: a failure becomes an
 * event of the id.  Where processors are scarce, waiting for the answer would
 * cost three switches between processes.  Waits in three cases only: to open
 * the connection; for room in the socket, as r_tell_message does; and while 64
 * requests of this process have no answer, where ROUTE and JOIN are not
 * counted.  Takes r_lock.  Returns 0, or -errno if the request can neither be
 * sent nor be kept for the broker's successor.
 */
int r_request(struct r_id *id, struct cmproto *m, uint16_t kind);
/* Under r_lock: waits until no other thread of this process is in r_call for
 * the id. */
void r_await_calls(const struct r_id *id);
/* link_table.c, under r_lock: sends a message of this kind about the object
 * `handle` of the broker, as r_tell_message does. */
void r_tell(uint16_t kind, uint32_t handle);
/* Under r_lock: sends the message m about the object `handle` of the broker, or
 * about none.  The broker does not answer.  A failure is ignored.  If there is
 * no connection, first opens one, and waits as long as dial_open or r_ib_dial
 * does.  Then waits at most 30 s for room in the socket of a broker that reads
 * no messages; after that time the connection is closed, and no later call
 * waits for this broker. */
void r_tell_message(struct cmproto *m, uint16_t kind, uint32_t handle);
/* link_table.c, under r_lock: removes the id from the table of r_link, drops
 * the id's requests that have no answer, and releases the id at the broker if
 * the broker knows the id. */
void r_release(struct r_id *id);
/* link_table.c, under r_lock: sets id->handle, and adds the id to the table, so
 * that the id gets the broker's messages about the handle. */
void r_link(struct r_id *id, uint32_t handle);

/* ---- channel.c ---- */

/* Returns a new event of the id, which the caller passes to r_post or frees by
 * r_event_free.  status: 0, -errno, the reason of the peer's REJ, the status of
 * its SIDR_REP, or the program's number (rdma_write_cm_event).  Returns NULL
 * and errno if no memory is left. */
struct r_event *r_event_new(struct r_id *id, enum rdma_cm_event_type type,
			    int status);
/* Under r_lock: as r_event_new, for an event whose loss no caller could report,
 * and not for a connection request.  If no memory is left, returns the event
 * r_id.kept; NULL, after a message, if r_id.kept is in use. */
struct r_event *r_event_sure(struct r_id *id, enum rdma_cm_event_type type,
			     int status);
/* Under r_lock: frees an event that is in no list.  The event's id must exist,
 * unless the event is a connection request. */
void r_event_free(struct r_event *e);
/* Under r_lock: posts the event to the channel of its listener
 * (base.listen_id), or of its id if it has no listener.  The channel then owns
 * the event. */
void r_post_now(struct r_event *e);
/* Under r_lock: takes an event that r_post_now has posted out of the channel's
 * list.  The caller then owns the event, and takes its token. */
void r_unqueue(struct r_event *e);
/* last_event.c, under r_lock: posts the event by r_post_now.  If an event of
 * the same id is withheld (last_event.h), posts that one first. */
void r_post(struct r_event *e);
/* Under r_lock, by a thread that is about to post several events: from now on,
 * one system call puts the tokens of successive events of one channel.  The
 * caller calls r_put_tokens before it releases r_lock. */
void r_hold_tokens(void);
/* Under r_lock: ends r_hold_tokens, if it was called. */
void r_put_tokens(void);
/* Under r_lock: takes back the token of an event that was removed from c. */
void r_take_back_token(const struct r_channel *c);
/* In a forked child: ends the r_hold_tokens of a thread of the parent. */
void r_forget_tokens(void);
/* Makes and posts an event that no message of the broker has caused.  Takes
 * r_lock.  Returns 0, or -1 and errno with a message. */
int r_post_local(struct r_id *id, enum rdma_cm_event_type type, int status);
/* Under r_lock: the program leaves the group m.  Frees the events about m that
 * the program has not taken. */
void r_forget_join(const struct r_id *id, const struct r_multicast *m);
/*
 * serve.c: the last step of a call of the program that causes an event, for an
 * id that was synchronous when the call began.  Waits for the event, which
 * becomes id->base.event.  Returns 0, or -1 and errno if no event can be read
 * or the event reports a failure.
 *
 * The caller reads is_sync before the event can be posted.  If the id is not
 * synchronous, another thread may take the event and destroy the id, so the
 * caller does not use the id after that point.
 */
int r_complete(struct r_id *id);

/* object.c: gives the id the record of a path, in place of the id's earlier
 * records.  The record has the GIDs and the MTU of the id.  If the id has an
 * alternate path, that path has the second record.  Returns 0 or -ENOMEM. */
int r_set_record(struct r_id *id, const struct cmproto_path *path);
/* object.c: the search for the id's route has ended.  If err is not 0, the
 * program may try again.  Takes r_lock. */
void r_route_ended(struct r_id *id, int err);
/* object.c: grows the heap of the calling thread, in one step, by the room for
 * the ids and events of many messages, unless the heap has that room.  Without
 * this call, the heap of a thread other than the first one grows by one page of
 * the kernel at a time, with an mprotect(2) for each. */
void r_grow_heap(void);
/* object.c: frees a list of results of rdma_getaddrinfo. */
void r_free_info(struct rdma_addrinfo *res);
/* object.c: returns a new id without address, device and handle, which the
 * caller owns.  On failure returns NULL and errno.  ENOMEM: no memory is left.
 * ENOSYS: there are no random numbers, so others could guess the id's PSN. */
struct r_id *r_id_new(struct rdma_event_channel *channel, void *context,
		      enum rdma_port_space ps, enum ibv_qp_type type);

/* ---- id.c, bind.c ---- */

/* A clause for messages, which says why a bind to a port fails with EACCES, and
 * what to do. */
#define R_LOW_PORT                                                             \
	"a port below 1024 (net.ipv4.ip_unprivileged_port_start) is for "      \
	"programs of root, and for programs with CAP_NET_BIND_SERVICE, "       \
	"unless setcap gave the capability to their file; choose a higher "    \
	"port"

/* Under r_lock: moves the id and all its waiting events to the channel `to`.
 * If `to` is NULL, frees the events, and the id keeps its channel. */
void r_channel_move(struct r_id *id, struct r_channel *to);
/* Under r_lock: handles a message of the broker about an id. */
void r_id_message(struct r_id *id, const struct cmproto *m);
/* bind.c: binds the id to the address, and gives the id the device of the
 * address.  An id of RoCE is bound at the broker, and an id of iWARP by TCP or
 * SCTP.  With an open address (r_addr_is_open) the id is bound for all devices,
 * and gets no device.  Returns 0, or -1 and errno with a message. */
int r_bind(struct r_id *id, const struct sockaddr *addr);
/*
 * bind.c: gives the id the device of the address, and asks the broker for a
 * port.  Does not wait for the broker's answer.  ADDR_RESOLVED or ADDR_ERROR is
 * posted when the answer has come; if the id needs r_ib_find_peer, when that
 * has ended, too.  Before the broker is asked, sets *later to true: if the call
 * returns 0 then, another thread may already have destroyed the id.  For an
 * iWARP device the broker is not asked, and no event is posted.  Returns 0, or
 * -1 and errno with a message.
 */
int r_bind_later(struct r_id *id, const struct sockaddr *addr, bool *later);
/* Sets the address and the port, in host order, of an id that is bound, or
 * about to be. */
void r_set_bound(struct r_id *id, const struct sockaddr *addr, uint16_t port);
/* Under r_lock: handles the broker's answer m to the request of r_bind or
 * r_bind_later. */
void r_id_bound(struct r_id *id, const struct cmproto *m);
/* Under r_lock: the search for the id's destination has ended with err, which
 * is 0 or -errno.  Resets state.is_resolving.  If the id is bound, calls
 * r_id_resolved. */
void r_id_found(struct r_id *id, int err);
/* Under r_lock: rdma_resolve_addr has ended with err, which is 0 or -errno.
 * Posts ADDR_RESOLVED or ADDR_ERROR. */
void r_id_resolved(struct r_id *id, int err);
/* Fills in m, which is all zeroes before, as a request to bind the id to the
 * address.  Calls nothing of the verbs library, so that the caller may hold
 * r_lock. */
void r_bind_message(const struct r_id *id, const struct sockaddr *addr,
		    struct cmproto *m);
/* Under r_lock: posts the event of a conversation that was lost with the
 * broker: DISCONNECTED if the connection was established, else UNREACHABLE.
 * Posts no event if the program has taken DISCONNECTED.  Withdraws a connection
 * request that the program has neither accepted nor rejected, without an
 * event.  Clears the id's note, so that a request that fails later causes no
 * second event (r_table_settle). */
void r_post_lost(struct r_id *id);
/* Under r_lock: the device is gone.  Posts DEVICE_REMOVAL, or withdraws a
 * connection request as r_post_lost does. */
void r_post_removed(struct r_id *id);
/* Under r_lock: prints that a request of r_request has failed with err, which
 * is -errno.  Posts an event, or withdraws a connection request, as r_post_lost
 * does, with CONNECT_ERROR in place of UNREACHABLE.  The id keeps its note. */
void r_post_failed(struct r_id *id, int err);

/*
 * resolve.c: sets the route that the program passes (RDMA_OPTION_IB_PATH), and
 * posts ROUTE_RESOLVED.  The `size` bytes of paths may have several paths.  The
 * first one with the flags GMP, PRIMARY and BIDIRECTIONAL is the id's path:
 * InfiniBand uses the whole path, RoCE its traffic class and its MTU, and iWARP
 * nothing of the path.  On InfiniBand the alternate path is the first other
 * path with the same flags or with ALTERNATE and BIDIRECTIONAL.  A message says
 * that the remaining paths are not used.  Returns 0, or -1 and errno with a
 * message.
 */
int r_route_given(struct r_id *id, const struct ibv_path_data *paths,
		  size_t size);

/* ---- addr.c: addresses and GIDs ---- */

/* Returns whether the address is not NULL, and is IPv4, IPv6 or a GID (AF_IB).
 * Except for r_addr_check, the functions below are called only with such an
 * address. */
bool r_addr_is_known(const struct sockaddr *a);
/* Checks that an address, which may be NULL, is of a family that this host's
 * devices have: IPv4 and IPv6 and, on a host of a fabric, AF_IB.  Returns 0, or
 * -1 and errno EAFNOSUPPORT with a message that begins with the name of the
 * call. */
int r_addr_check(const struct sockaddr *a, const char *call);
/* Returns whether the address is a GID: a struct sockaddr_ib. */
bool r_addr_is_ib(const struct sockaddr *a);
/* Returns the service ID of a GID, shifted right by the 16 bits of its port.
 * Bits that sib_sid_mask leaves open are 0. */
uint64_t r_addr_space(const struct sockaddr *a);
/* Returns the service ID of a GID without the bits that sib_sid_mask leaves
 * open; 0: only bits of the port are set, or none. */
uint64_t r_addr_service(const struct sockaddr *a);
/* Sets the service ID of a GID.  `space` is as in r_addr_space. */
void r_addr_set_service(struct sockaddr *a, uint64_t space, uint16_t port);
/* Returns the traffic class in the flow information of a GID's address. */
uint8_t r_addr_traffic_class(const struct sockaddr *a);
/* Returns the interface of a link-local address of IPv6; 0: there is none. */
uint32_t r_addr_scope(const struct sockaddr *a);
/* Returns the P_Key of a GID's address, in host order. */
uint16_t r_addr_pkey(const struct sockaddr *a);
/* Fills in *a, which has room for a struct sockaddr_ib, with the GID, the P_Key
 * in host order, and the service ID of `space` (as in r_addr_space) and port.
 */
void r_addr_make_ib(struct sockaddr *a, const uint8_t gid[16], uint64_t space,
		    uint16_t port, uint16_t pkey);
/* Replaces the address and keeps the port.  *a has room for a struct
 * sockaddr_in6 or, if *a is a GID, for a struct sockaddr_ib. */
void r_addr_move(struct sockaddr *a, const uint8_t ip[16]);
/* Returns whether the address is 0.0.0.0, :: or the GID of zeroes. */
bool r_addr_is_any(const struct sockaddr *a);
/* Returns whether the address is a loopback address, also as a mapped IPv4
 * address. */
bool r_addr_is_loopback(const struct sockaddr *a);
/* Returns whether the address is a multicast address. */
bool r_addr_is_multicast(const struct sockaddr *a);
/* Returns whether r_addr_is_any is true, or the address is a loopback address
 * of IP.  Binding to such an address gives an id no device, as with the kernel.
 */
bool r_addr_is_open(const struct sockaddr *a);
/* Returns the size of the address struct in bytes. */
socklen_t r_addr_size(const struct sockaddr *a);
/* Returns the port, in host order. */
uint16_t r_addr_port(const struct sockaddr *a);
/* Sets the port, which is in host order. */
void r_addr_set_port(struct sockaddr *a, uint16_t port);
/* Stores the address as a GID; IPv4 becomes ::ffff:a.b.c.d. */
void r_addr_ip(const struct sockaddr *a, uint8_t ip[16]);
/* Fills in *a, which has room for a struct sockaddr_in6, from a GID and a port
 * in host order. */
void r_addr_make(struct sockaddr *a, const uint8_t ip[16], uint16_t port);
/* The size of the text of r_addr_text in bytes, with its NUL. */
#define R_ADDR_TEXT 80
/* Writes an address for a message, such as "10.0.0.1 port 5", to text, which
 * has room for R_ADDR_TEXT bytes.  Returns text. */
const char *r_addr_text(const struct sockaddr *a, char *text);

/* Reasons of a rejection: IBTA 12.6.7.2. */
enum {
	R_REJ_NO_RESOURCES = 3,
	R_REJ_CONSUMER = 28, /* the program rejects */
};
/*
 * connect.c: rejects a connection request, which the program then does not get.
 * reason: as in IBTA 12.6.7.2.  Frees the event and the id of the request.  The
 * event was taken from its channel, and is acknowledged here.
 */
void r_refuse(struct r_event *e, int reason);

/* qp.c: moves the id's QP to RTS with the values of id->remote.  Returns 0, or
 * -1 and errno. */
int r_qp_connect(struct r_id *id);
/* qp.c: moves the id's QP to ERR, if the id has a QP of a connected type. */
void r_qp_fail(struct r_id *id);

/* group.c: the program takes e, the event of a join.  Attaches the id's QP
 * to the group e->multicast, unless the program asked that the QP is not
 * attached.  Returns 0, or -1 and errno. */
int r_group_joined(struct r_event *e);
/* group.c: leaves a group of the id, and frees it.  The group is not in the
 * id's list any more. */
void r_group_leave(struct r_id *id, struct r_multicast *m);
/* group.c: leaves and frees all groups of the id. */
void r_group_leave_all(struct r_id *id);

#endif
