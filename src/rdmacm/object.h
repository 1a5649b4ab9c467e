/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The objects behind the public handles of librdmacm; each starts with the
 * public struct.  The program makes and frees ids and channels; events are
 * ours until the program has acknowledged them.
 *
 * One lock, r_lock, covers everything here but what the program alone
 * changes: the fields of the public structs outside of calls.  It is a leaf
 * beside the verbs library, which is never called under it.
 */
#ifndef RDMACM_OBJECT_H
#define RDMACM_OBJECT_H

#include <rdma/rdma_cma.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "broker/cmproto.h"
#include "util/list.h"

/* A device that this process has opened for its ids. */
struct r_device {
	struct ibv_context *verbs;
	struct ibv_pd *pd; /* id->pd, until the program gives another */
	uint64_t guid;	   /* host order */
	uint8_t max_responder, max_initiator;
};

struct r_channel {
	struct rdma_event_channel base;
	struct list events; /* waiting; a token in base.fd for each */
};

struct r_event {
	struct rdma_cm_event base;
	struct list link;
	struct cmproto message; /* what caused it; private data point here */
	struct r_multicast *multicast;
};

struct r_multicast {
	struct list link; /* of its id */
	struct sockaddr_storage addr;
	void *context;
	union ibv_gid gid;
	bool only_sends, is_attached;
	bool is_joining; /* a thread has its event, and looks at it */
};

struct r_id {
	struct rdma_cm_id base;
	struct list by_handle; /* in the table of link.c */
	uint32_t handle;       /* the broker's; 0: none */
	/* its conversation, for the broker's successor; all 0: none */
	uint8_t note[CMPROTO_NOTE];
	struct r_device *device;
	bool is_sync; /* the channel is its own */
	bool is_passive, is_listening;
	bool is_up;	      /* the program has seen it established */
	bool is_disconnected; /* the program has seen it */
	bool is_binding;      /* r_bind_later has no answer yet */
	bool is_aimed;	   /* it has a destination, or one is being resolved */
	bool is_decided;   /* it has called; or accepted, or rejected */
	bool is_withdrawn; /* by the peer, before that */
	uint32_t backlog;
	uint32_t unacked; /* events that the program has */
	/* addresses: as GIDs, IPv4 mapped */
	uint8_t local[16], peer[16];
	uint8_t sgid_index, mtu;
	uint8_t way_mtu; /* that of the way to the peer; 0: not known */
	uint32_t scope;
	/* what both ends said */
	struct cmproto remote; /* REQ, REP */
	uint32_t psn, qpn;
	uint8_t responder_resources, initiator_depth;
	uint8_t retry_count, rnr_retry, flow_control, has_srq;
	uint32_t qkey;
	struct ibv_ece ece;
	/* options */
	uint8_t tos, ack_timeout;
	bool may_share, is_own_family;
	struct list multicasts;
	/* rdma_create_ep: what rdma_get_request makes queue pairs of */
	struct ibv_qp_init_attr *listen_attr;
	struct ibv_pd *listen_pd;
	struct rdma_addrinfo *info; /* of rdma_resolve_addrinfo */
	bool owns_send_cq, owns_recv_cq;
	struct r_cq *send_cq, *recv_cq; /* of its queue pair, if ours; qp.c */
};

static inline struct r_id *r_id(struct rdma_cm_id *id)
{
	return (struct r_id *)(void *)id;
}

static inline struct r_channel *r_channel(struct rdma_event_channel *channel)
{
	return (struct r_channel *)(void *)channel;
}

extern pthread_mutex_t r_lock;
extern pthread_cond_t r_changed; /* an answer, an acknowledgement */

/* link.c: r_lock; its holder is not cancelled, though it sends and waits. */
void r_take(void);
void r_give(void);
/* Under r_lock: until the program has given all events of the id back.  That
 * may take for ever, so here a thread is cancelled. */
void r_await_acks(const struct r_id *id);

/* device.c: 0 once the devices are open, or -1 and errno with a sentence. */
int r_devices(void);
/* The device and GID index of a local address; NULL: it is no device's. */
struct r_device *r_device_find(const uint8_t ip[16], uint8_t *sgid_index);
/* Sets verbs, pd, port and path facts of an id on a device; mtu is no more than
 * way_mtu. */
void r_device_use(struct r_id *id, struct r_device *d, uint8_t sgid_index);

/* link.c: the connection to the broker. */
/*
 * Sends m and waits for its answer, which replaces m; 0 or -errno.  When the
 * broker is killed before it answers, its successor is asked.
 */
int r_call(struct r_id *id, struct cmproto *m, uint16_t kind);
/* The same for an id's operation without an answer of interest. */
int r_do(struct r_id *id, uint16_t kind);
/*
 * Sends m and does not wait: whatever is wrong with it comes as an event.  0,
 * or -errno when there is no broker.  On a machine where processors are scarce
 * each wait for an answer costs three of the scheduler's turns.
 */
int r_request(struct r_id *id, struct cmproto *m, uint16_t kind);
/* Under r_lock: until what r_bind_later asked for is answered. */
void r_await_bound(const struct r_id *id);
/* Under r_lock; nobody waits for an answer. */
void r_tell(uint16_t kind, uint32_t handle);
/* Under r_lock: the id, which may have none, needs its conversation no more,
 * nor what it has asked for; unlinks it. */
void r_release(struct r_id *id);
/* Under r_lock: events for this handle are this id's. */
void r_link(struct r_id *id, uint32_t handle);
void r_unlink(struct r_id *id);

/* channel.c; posting is under r_lock, and takes the event. */
struct r_event *r_event_new(struct r_id *id, enum rdma_cm_event_type type,
			    int status);
void r_post(struct r_event *e);
/* Post an event that this process itself has caused. */
int r_post_local(struct r_id *id, enum rdma_cm_event_type type, int status);
/* All that waits of an id: to another channel, or away (NULL).  Locked. */
void r_channel_move(struct r_id *id, struct r_channel *to);
/* The event of a group that is left before the program took it.  Locked. */
void r_forget_join(const struct r_id *id, const struct r_multicast *m);
/* After a call on a synchronous id: its event; else 0. */
int r_complete(struct r_id *id);

/* id.c */
struct r_id *r_id_new(struct rdma_event_channel *channel, void *context,
		      enum rdma_port_space ps, enum ibv_qp_type type);
/* Under r_lock: a message of the broker about an id. */
void r_id_message(struct r_id *id, const struct cmproto *m);
/* Bind at the broker; to an open address that is to all devices'. */
int r_bind(struct r_id *id, const struct sockaddr *addr);
/*
 * The same to a port of the broker's choice, and does not wait: ADDR_RESOLVED
 * comes with the answer.
 */
int r_bind_later(struct r_id *id, const struct sockaddr *addr);
/* Under r_lock: the answer to either of them. */
void r_id_bound(struct r_id *id, const struct cmproto *m);
/* What r_bind asks the broker for; no call of the verbs library. */
void r_bind_message(const struct r_id *id, const struct sockaddr *addr,
		    struct cmproto *m);
/* Under r_lock: the conversation ended with the broker. */
void r_post_lost(struct r_id *id);
/* Under r_lock: what was asked for and not waited for is refused. */
void r_post_failed(struct r_id *id, int err);

/*
 * resolve.c: the route that the program brings (RDMA_OPTION_IB_PATH), of which
 * Ethernet has traffic class and MTU.  0, or -1 and errno.
 */
int r_route_given(struct r_id *id, const struct ibv_path_data *paths,
		  size_t size);

/* addr.c: addresses and GIDs. */
bool r_addr_is_known(const struct sockaddr *a);
bool r_addr_is_any(const struct sockaddr *a);
bool r_addr_is_loopback(const struct sockaddr *a);
bool r_addr_is_multicast(const struct sockaddr *a);
/* Any or loopback: as with the kernel's, to bind to it takes no device. */
bool r_addr_is_open(const struct sockaddr *a);
socklen_t r_addr_size(const struct sockaddr *a);
uint16_t r_addr_port(const struct sockaddr *a); /* host order */
void r_addr_set_port(struct sockaddr *a, uint16_t port);
void r_addr_ip(const struct sockaddr *a, uint8_t ip[16]);
/* a: at least a sockaddr_in6. */
void r_addr_make(struct sockaddr *a, const uint8_t ip[16], uint16_t port);
/* "10.0.0.1 port 5", for sentences; text of R_ADDR_TEXT. */
#define R_ADDR_TEXT 80
const char *r_addr_text(const struct sockaddr *a, char *text);

#define R_REJ_NO_RESOURCES 3 /* IBTA 12.6.7.2 */
/*
 * connect.c: rejects a request that the program is not to see (reason: of IBTA
 * 12.6.7.2), and frees it and its id.
 */
void r_refuse(struct r_event *e, int reason);

/* qp.c: queue pairs through the states of a connection; 0 or -1 and errno. */
int r_qp_connect(struct r_id *id);
void r_qp_fail(struct r_id *id);

/* multicast.c */
int r_multicast_joined(struct r_event *e);
void r_multicast_leave_all(struct r_id *id);

#endif
