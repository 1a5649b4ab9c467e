/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric_cm.h"

#include "fabric_host.h"
#include "fabric_query.h"

#include "fabric/umad_header.h"
#include "hdr/bytes.h"
#include "hdr/cmmsg.h"
#include "hdr/sa.h"
#include "util/bits.h"
#include "util/list.h"
#include "util/monotonic.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	EVENTS = 64,	   /* clients served in one call */
	LAST_TURNS = 1024, /* most reads from a program that has ended */
	/* bytes of a MAD with its header */
	MESSAGE = FABRIC_UMAD_BYTES + MAD_BYTES,
	NONE = FABRIC_HOST_NO_AGENT,
};

#define OF_HOSTS(l)   CONTAINER_OF(l, struct cm_host, link)
#define OF_ACTIVE(l)  CONTAINER_OF(l, struct cm_host, active)
#define OF_CLIENTS(l) CONTAINER_OF(l, struct fabric_cm_client, link)

/* Makes fabric_cm_turn look at the host. */
static void mark_active(struct cm_host *h)
{
	if (!list_is_linked(&h->active))
		list_push_tail(&h->cm->active, &h->active);
}

static bool is_own(void *user, const uint8_t ip[16])
{
	struct gid_place place;

	return fabric_host_port(user, ip, &place) != NULL;
}

/* Sends a MAD of the communication manager with the P_Key and the SL in f->way.
 * The MAD is lost, as on a wire, if no port of this host has the GID f->from,
 * if that port has no agent for the CM, if no port has the GID f->to and a LID,
 * or if the sending port is not in the partition.  A MAD from or to a GID that
 * is not the first one of its port needs a GRH, since a LID stands for the
 * first GID. */
static void send_frame(void *user, const struct cm_frame *f)
{
	struct cm_host *h = user;
	struct gid_place from, dest;
	struct host_port *p = fabric_host_port(h, f->from, &from);
	struct umad to = {.qpn = FABRIC_HOST_QP1, .qkey = MAD_QP1_QKEY};
	uint8_t message[MESSAGE];
	struct fabric_port port;

	if (!p || p->cm_agent == NONE ||
	    !gid_find(h->cm->fabric, f->to, &dest) || !dest.lid)
		return; /* the MAD is lost, as on a wire */
	fabric_show_port(h->node, p->number, &port);
	to.pkey_index = fabric_host_pkey_index(&port, f->way.pkey);
	if (to.pkey_index == FABRIC_HOST_PKEYS)
		return;
	to.agent = (uint32_t)p->cm_agent;
	to.lid = dest.lid;
	to.sl = f->way.sl;
	to.has_grh = from.index || dest.index;
	to.gid_index = (uint8_t)from.index;
	memcpy(to.gid, f->to, sizeof(to.gid));
	umad_header_write(&to, MAD_BYTES, message);
	memcpy(message + FABRIC_UMAD_BYTES, f->mad, MAD_BYTES);
	fabric_send_as_is(p->end, message, sizeof(message));
}

/* Finds the GID of the sender of a message: the GID in the GRH or, without
 * a GRH, the first GID of the port with the source LID.  False: no port has
 * that LID or, with a GRH, no port has both that LID and that GID. */
static bool find_sender(struct fabric *f, const struct umad *from,
			uint8_t gid[16])
{
	if (!from->has_grh)
		return gid_of_lid(f, from->lid, gid);
	memcpy(gid, from->gid, 16);
	return gid_has_lid(f, gid, from->lid);
}

/* Writes the GID of the port to which a message was sent. */
static void write_own_gid(const struct fabric_port *port,
			  const struct umad *from, uint8_t gid[16])
{
	bytes_put64(gid, port->gid_prefix);
	bytes_put64(gid + 8,
		    port->guids[from->has_grh ? from->gid_index % FABRIC_GUIDS
					      : 0]);
}

static void take_cm(struct host_port *p, const struct umad *from,
		    const uint8_t *mad)
{
	struct cm_way by = {.sl = from->sl};
	uint8_t sender[16], own[16];
	struct fabric_port port;

	if (!find_sender(p->host->cm->fabric, from, sender))
		return;
	fabric_show_port(p->host->node, p->number, &port);
	by.pkey = port.pkeys[from->pkey_index % FABRIC_HOST_PKEYS];
	write_own_gid(&port, from, own);
	cmserver_receive(p->host->server, sender, own, &by, mad,
			 monotonic_ns());
}

static void take_message(struct host_port *p, const uint8_t *message,
			 size_t bytes)
{
	const uint8_t *mad = message + FABRIC_UMAD_BYTES;
	struct umad from;

	umad_header_parse(message, &from);
	bytes -= FABRIC_UMAD_BYTES;
	if (p->sa_agent != NONE && from.agent == (uint32_t)p->sa_agent)
		fabric_query_take(p->host, &from, mad, bytes);
	else if (bytes == MAD_BYTES)
		take_cm(p, &from, mad);
}

static void read_end(void *user, struct end *end)
{
	struct host_port *p = user;
	const uint8_t *message;
	size_t bytes;

	while ((message = fabric_fetch(end, &bytes))) {
		take_message(p, message, bytes);
		fabric_fetched(end);
	}
	mark_active(p->host);
}

/* Tells the user, once for each port, that a program has registered for the
 * CM's class. */
static void say_taken(struct host_port *p)
{
	if (!p->has_said)
		fprintf(stderr,
			"adverb: rdma_cm does not work at port %u of host "
			"\"%s\": a program there has registered for MADs of "
			"connection management (class 7) by libibumad; end "
			"that program, and start the programs of rdma_cm "
			"again.\n",
			p->number, fabric_id(p->host->node));
	p->has_said = true;
}

/* Registers for the MADs of the CM, or tells the user that a program at the
 * port has done so. */
static void register_cm(struct host_port *p)
{
	const struct fabric_agent asked = {
		.mgmt_class = CMMSG_CLASS,
		.class_version = CMMSG_CLASS_VERSION,
		.methods = {1u << CMMSG_METHOD_SEND}};

	if (!p->end || p->cm_agent != NONE)
		return;
	p->cm_agent = fabric_register(p->end, &asked);
	if (p->cm_agent >= 0)
		return;
	p->cm_agent = NONE;
	say_taken(p);
}

static int open_end(struct cm_host *h, struct host_port *p, uint32_t number)
{
	const struct fabric_agent asked = {.mgmt_class = SA_CLASS,
					   .class_version = SA_VERSION};
	int err;

	p->reader = (struct fabric_cm_reader){.read = read_end, .user = p};
	p->host = h;
	p->number = number;
	p->cm_agent = NONE;
	p->end = fabric_open(h->node, number, &p->reader, &err);
	if (!p->end)
		return err;
	p->sa_agent = fabric_register(p->end, &asked);
	return 0;
}

static int open_ends(struct cm_host *h)
{
	struct fabric_ca ca;
	int err = 0;

	fabric_show_ca(h->node, &ca);
	for (uint32_t i = 1;
	     i <= ca.last_port && i <= FABRIC_PROTO_PORTS && !err; i++)
		err = open_end(h, &h->ports[i - 1], i);
	return err;
}

static void free_host(struct cm_host *h)
{
	fabric_query_free(h);
	if (h->server)
		cmserver_free(h->server);
	for (int i = 0; i < FABRIC_PROTO_PORTS; i++)
		if (h->ports[i].end)
			fabric_close(h->ports[i].end);
	list_remove(&h->active);
	list_remove(&h->link);
	h->cm->host_count--;
	free(h);
}

/* Returns the new host of a node; NULL: *err says why, as -errno. */
static struct cm_host *make_host(struct fabric_cm *cm, struct node *node,
				 int *err)
{
	struct cm_host *h =
		cm->host_count < FABRIC_CM_HOSTS ? calloc(1, sizeof(*h)) : NULL;
	const struct cmserver_wire wire = {
		.user = h, .send = send_frame, .is_own = is_own, .is_ib = true};

	*err = cm->host_count < FABRIC_CM_HOSTS ? -ENOMEM : -EMFILE;
	if (!h)
		return NULL;
	h->cm = cm;
	h->node = node;
	h->due_ns = UINT64_MAX;
	list_init(&h->link);
	list_init(&h->active);
	list_init(&h->clients);
	fabric_query_init(h);
	list_push_tail(&cm->hosts, &h->link);
	cm->host_count++;
	*err = open_ends(h);
	h->server = *err ? NULL
			 : cmserver_new(&wire, &cm->no_store, monotonic_ns());
	if (h->server)
		return h;
	*err = *err ? *err : -ENOMEM;
	free_host(h);
	return NULL;
}

/* Returns the host of a node; NULL: no program there has connection management,
 * and no conversation or question is left. */
static struct cm_host *host_of(const struct fabric_cm *cm,
			       const struct node *node)
{
	list_for_each (l, &cm->hosts)
		if (OF_HOSTS(l)->node == node)
			return OF_HOSTS(l);
	return NULL;
}

/* Returns the host with the GID, and makes the host first if there is none;
 * NULL: *err says why, as -errno. */
static struct cm_host *find_host(struct fabric_cm *cm, const uint8_t gid[16],
				 int *err)
{
	struct gid_place place;
	struct cm_host *h;

	*err = -ENODEV;
	if (!gid_find(cm->fabric, gid, &place) ||
	    place.port > FABRIC_PROTO_PORTS)
		return NULL;
	h = host_of(cm, place.node);
	return h ? h : make_host(cm, place.node, err);
}

/* Makes a client of the host for the process pid, and stores the client in
 * *place.  fd: this process's end of the socket pair.  Returns 0 and takes fd;
 * or -errno, and fd stays the caller's. */
static int make_client(struct cm_host *h, int fd, pid_t pid,
		       struct fabric_cm_client **place)
{
	struct fabric_cm_client *c = calloc(1, sizeof(*c));
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};

	if (!c)
		return -ENOMEM;
	c->client = cmserver_client_new(h->server, fd, geteuid(), pid);
	if (!c->client || epoll_ctl(h->cm->epoll, EPOLL_CTL_ADD, fd, &e)) {
		int err = c->client ? -errno : -ENOMEM;

		if (c->client)
			cmserver_client_free(h->server, c->client,
					     monotonic_ns());
		free(c);
		return err;
	}
	list_init(&c->link);
	list_init(&c->interface.link);
	list_push_tail(&h->clients, &c->link);
	h->client_count++;
	c->host = h;
	c->fd = fd;
	c->place = place;
	*place = c;
	return 0;
}

int fabric_cm_open(struct fabric_cm *cm, const uint8_t gid[16], pid_t pid,
		   struct fabric_cm_client **place)
{
	int ends[2], err;
	struct cm_host *h = find_host(cm, gid, &err);

	if (!h)
		return err;
	mark_active(h); /* so that the host is freed if it gets no client */
	if (h->client_count == FABRIC_CM_CLIENTS)
		return -EMFILE;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	err = make_client(h, ends[0], pid, place);
	if (err) {
		close(ends[0]);
		close(ends[1]);
		return err;
	}
	for (int i = 0; i < FABRIC_PROTO_PORTS; i++)
		register_cm(&h->ports[i]);
	return ends[1];
}

void fabric_cm_close(struct fabric_cm_client *c)
{
	struct cm_host *h = c->host;

	fabric_query_drop(c);
	cmserver_client_free(h->server, c->client, monotonic_ns());
	close(c->fd);
	h->cm->has_closed = true;
	list_remove(&c->interface.link);
	list_remove(&c->link);
	h->client_count--;
	*c->place = NULL;
	free(c);
	mark_active(h);
}

/* The program says that it is an interface of IPoIB.  The message is ignored if
 * the program's host does not have the interface's GID. */
static void handle_interface(struct fabric_cm_client *c,
			     const struct cmproto *m)
{
	struct gid_place place;

	if (fabric_host_port(c->host, m->at.local, &place))
		fabric_interface_set(&c->host->cm->interfaces, &c->interface,
				     m);
}

static void handle_interface_of(struct fabric_cm_client *c,
				const struct cmproto *m)
{
	struct cmproto reply = {
		.kind = CMPROTO_DONE, .serial = m->serial, .is_ib = true};

	reply.err = fabric_interface_find(&c->host->cm->interfaces, m, &reply);
	cmserver_tell(c->host->server, c->client, &reply);
}

/* Handles a message of any contents.  False: the client is to be closed. */
static bool handle_message(struct fabric_cm_client *c, const struct cmproto *m,
			   size_t length)
{
	bool is_sound = length == sizeof(*m) && m->version == CMPROTO_VERSION;

	if (is_sound && m->kind == CMPROTO_ROUTE)
		fabric_query_route(c, m);
	else if (is_sound && m->kind == CMPROTO_INTERFACE)
		handle_interface(c, m);
	else if (is_sound && m->kind == CMPROTO_INTERFACE_OF)
		handle_interface_of(c, m);
	else if (is_sound && m->kind == CMPROTO_JOIN)
		fabric_query_join(c, m);
	else if (is_sound && m->kind == CMPROTO_LEAVE)
		fabric_query_leave(c, m);
	else
		return cmserver_handle(c->host->server, c->client, m, length,
				       monotonic_ns());
	return true;
}

/* Serves at most CM_INBOX_MESSAGES messages, and returns how many; -1: the
 * client is to be closed.  If a program has ended before it has read all its
 * messages, the first receive fails with ECONNRESET (0 is returned), and the
 * next receives get the program's last messages. */
static int read_client(struct fabric_cm_client *c)
{
	struct cm_inbox *in = &c->host->cm->inbox;
	int n = cm_inbox_receive(in, c->fd, MSG_DONTWAIT | MSG_TRUNC);

	if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNRESET))
		return 0;
	if (n <= 0)
		return -1;
	for (int i = 0; i < n; i++)
		if (!handle_message(c, &in->messages[i], in->of[i].msg_len))
			return -1;
	return n;
}

void fabric_cm_hang_up(struct fabric_cm_client *c)
{
	int turns = 0;

	/* the loop ends after two reads without a message, since the first of
	 * them may have failed with ECONNRESET */
	for (int idle = 0; idle < 2 && turns < LAST_TURNS; turns++) {
		int n = read_client(c);

		if (n < 0)
			break;
		idle = n ? 0 : idle + 1;
	}
	fabric_cm_close(c);
}

/* Sends the messages that wait for the client, and watches the client's socket
 * for room if messages still wait.  False: the client is to be closed. */
static bool flush_client(struct fabric_cm_client *c)
{
	bool stays =
		!cmserver_has_output(c->client) || cmserver_output(c->client);
	bool is_full = cmserver_has_output(c->client) &&
		       !cmserver_lacks_memory(c->client);
	struct epoll_event e = {.events = EPOLLIN | (is_full ? EPOLLOUT : 0),
				.data.ptr = c};

	if (stays && is_full != c->is_full)
		epoll_ctl(c->host->cm->epoll, EPOLL_CTL_MOD, c->fd, &e);
	c->is_full = is_full;
	return stays;
}

void fabric_cm_serve(struct fabric_cm *cm)
{
	struct epoll_event events[EVENTS];
	int n = epoll_wait(cm->epoll, events, EVENTS, 0);

	for (int i = 0; i < n; i++) {
		struct fabric_cm_client *c = events[i].data.ptr;

		mark_active(c->host);
		if ((events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) &&
		    read_client(c) < 0)
			fabric_cm_close(c);
	}
}

/* Does the server of the peer's host have the peer's end of the connection? */
static bool has_peer(const struct cm_host *h, const struct live_peer *about)
{
	struct gid_place place;
	struct cm_host *peers = gid_find(h->cm->fabric, about->peer, &place)
					? host_of(h->cm, place.node)
					: NULL;

	return peers && cmserver_has_peer(h->server, peers->server, about);
}

/* Settles each doubt about a peer (cm_doubts.h) at once: this process has the
 * servers of both hosts. */
static void settle_doubts(struct cm_host *h)
{
	struct live_peer about;

	while (cmserver_doubts(h->server, &about)) {
		if (!has_peer(h, &about))
			cmserver_stale(h->server, &about, monotonic_ns());
		cmserver_settle(h->server, &about);
	}
}

/* Sends what waits for the clients of the host.  Returns whether a client has
 * to be served again after a pause, for lack of memory. */
static bool flush_clients(struct cm_host *h)
{
	bool lacks_memory = false;

	list_for_each_safe (l, &h->clients) {
		struct fabric_cm_client *c = OF_CLIENTS(l);

		if (flush_client(c))
			lacks_memory |= cmserver_lacks_memory(c->client);
		else
			fabric_cm_close(c);
	}
	return lacks_memory;
}

/* Finishes the turn of a host, and frees the host if nothing is left of it. */
static void finish_host(struct cm_host *h)
{
	uint64_t pause_ns = UINT64_MAX;

	settle_doubts(h);
	if (flush_clients(h))
		pause_ns =
			monotonic_ns() + CMSERVER_MEMORY_MS * UINT64_C(1000000);
	h->due_ns = bits_min_u64(pause_ns, cmserver_deadline(h->server));
	list_remove(&h->active);
	if (!h->client_count && !cmserver_is_busy(h->server) &&
	    !fabric_query_is_busy(h))
		free_host(h);
}

static void run_timers(struct fabric_cm *cm)
{
	uint64_t now_ns = monotonic_ns();

	if (now_ns < cm->due_ns)
		return;
	list_for_each (l, &cm->hosts) {
		struct cm_host *h = OF_HOSTS(l);

		if (h->due_ns > now_ns)
			continue;
		cmserver_tick(h->server, now_ns);
		mark_active(h);
	}
}

/* Finishes the turn of each host at which something has happened. */
static void finish_hosts(struct fabric_cm *cm)
{
	if (list_is_empty(&cm->active))
		return;
	list_for_each_safe (l, &cm->active)
		finish_host(OF_ACTIVE(l));
	cm->due_ns = UINT64_MAX;
	list_for_each (l, &cm->hosts)
		cm->due_ns = bits_min_u64(cm->due_ns, OF_HOSTS(l)->due_ns);
}

bool fabric_cm_turn(struct fabric_cm *cm)
{
	bool has_closed;

	run_timers(cm);
	finish_hosts(cm);
	has_closed = cm->has_closed;
	cm->has_closed = false;
	return has_closed;
}

uint64_t fabric_cm_deadline(const struct fabric_cm *cm)
{
	if (!list_is_empty(&cm->active))
		return 0;
	return cm->due_ns == UINT64_MAX ? FABRIC_NEVER
					: (cm->due_ns + 999999) / 1000000;
}

/* A port has changed (fabric_watch_ports). */
static void take_change(void *arg, const struct node *node, uint32_t port,
			uint32_t changes)
{
	struct cm_host *h = host_of(arg, node);

	if (!h)
		return;
	fabric_query_changed(h, port, changes);
	mark_active(h);
}

struct fabric_cm *fabric_cm_new(struct fabric *f)
{
	struct fabric_cm *cm = calloc(1, sizeof(*cm));

	if (!cm)
		return NULL;
	cm->fabric = f;
	fd_store_init(&cm->no_store);
	list_init(&cm->hosts);
	list_init(&cm->active);
	list_init(&cm->interfaces);
	cm->due_ns = UINT64_MAX;
	cm_inbox_init(&cm->inbox);
	cm->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (cm->epoll >= 0) {
		fabric_watch_ports(f, take_change, cm);
		return cm;
	}
	free(cm);
	return NULL;
}

void fabric_cm_free(struct fabric_cm *cm)
{
	fabric_watch_ports(cm->fabric, NULL, NULL);
	list_for_each_safe (l, &cm->hosts)
		free_host(OF_HOSTS(l));
	close(cm->epoll);
	free(cm);
}

int fabric_cm_fd(const struct fabric_cm *cm)
{
	return cm->epoll;
}
