/* SPDX-License-Identifier: BSD-2-Clause */
#include "ipoib_loop.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "heeded.h"
#include "ipoib/ipoib.h"
#include "ipoib/stream.h"
#include "ipoib_cm.h"
#include "ipoib_rc.h"
#include "ipoib_register.h"
#include "ipoib_verbs.h"
#include "util/monotonic.h"

enum {
	/* in one turn: the most frames, the most packets by UD, and the most
	 * packets by RC */
	FRAMES = 64,
	LOOK_MS = 1000,	   /* between two looks at the port and the groups */
	LEAVE_MS = 1000,   /* for the answers to the last questions */
	MTU_BEFORE = 2044, /* until the broadcast group is joined */
	SOURCES = 8,	   /* most events of one epoll_wait */
};

/* The kinds of descriptors for which the loop waits. */
enum source {
	SOURCE_TAP,
	SOURCE_CHANNEL,
	SOURCE_ASYNC,
	SOURCE_UMAD,
	SOURCE_SIGNAL,
	SOURCE_CM,
};

struct loop {
	const struct ipoib_loop_config *config;
	struct ipoib *m; /* the interface; owned */
	struct ipoib_verbs verbs;
	struct ipoib_tap tap;
	struct ipoib_register known; /* tells the fabric of the interface */
	struct ipoib_cm cm;	     /* used only in connected mode */
	struct ipoib_rc rc;	     /* used only in connected mode */
	struct ipoib_port port;	     /* as it was at the last look */
	int epoll, signals;
	bool is_up; /* the interface has joined its broadcast group */
	struct sa_member broadcast; /* the group, while is_up */
	bool looks;		    /* the kernel's groups are to be read */
	bool reads_tap;		    /* the loop waits for frames */
	bool writes_cm;		    /* the loop waits for room at the fabric */
	bool is_deaf;  /* the user knows that neighbours cannot connect */
	bool has_more; /* a source may have more without an event */
	bool ends;     /* a signal has come */
	bool is_cut;   /* the fabric has ended, or the port does not answer */
	int status;    /* -1: the loop goes on; else the exit status */
	uint64_t look_ms; /* when the kernel's groups are read next */
	uint64_t port_ms; /* when the port is read next */
};

/* Prints the sentence and ends the loop.  run_turns then leaves the multicast
 * groups, unless is_cut is set. */
static void end_loop(struct loop *l, const char *why)
{
	if (l->status < 0)
		fprintf(stderr, "adverb: %s: %s.\n", l->tap.name, why);
	l->status = 1;
}

/* Ends the loop because the fabric has closed this process's connections. */
static void cut_loop(struct loop *l)
{
	l->is_cut = true;
	end_loop(l, "the fabric has ended, so adverb ipoib ends");
}

static void take_frame(void *ctx, const uint8_t *p, size_t bytes)
{
	struct loop *l = ctx;

	/* EIO: the user has disabled the interface, and frames are lost */
	if (write(l->tap.fd, p, bytes) < 0 && errno == EBADFD)
		end_loop(l, "the interface was removed, so adverb ipoib ends");
}

static void take_packet(void *ctx, struct route *r, const uint8_t *p,
			size_t bytes)
{
	struct loop *l = ctx;

	ipoib_verbs_send(&l->verbs, r, p, bytes);
}

static void take_release(void *ctx, struct route *r)
{
	struct loop *l = ctx;

	ipoib_verbs_release(&l->verbs, r);
}

static void take_question(void *ctx, const uint8_t mad[MAD_BYTES])
{
	struct loop *l = ctx;

	ipoib_verbs_ask(&l->verbs, mad);
}

static bool take_attach(void *ctx, const uint8_t mgid[16], bool attaches)
{
	struct loop *l = ctx;

	return ipoib_verbs_attach(&l->verbs, mgid, attaches);
}

/* ---- the connected mode ---- */

static bool take_connect(void *ctx, uint32_t id, const struct route *r,
			 const uint8_t data[CONN_DATA_BYTES])
{
	struct loop *l = ctx;
	struct cmproto m = {.private_bytes = CONN_DATA_BYTES};

	memcpy(m.at.local, l->port.gid, sizeof(m.at.local));
	memcpy(m.at.peer, r->gid, sizeof(m.at.peer));
	memcpy(m.private_data, data, CONN_DATA_BYTES);
	if (!ipoib_rc_ask(&l->rc, id, r, &l->port, &m))
		return false;
	if (ipoib_cm_connect(&l->cm, id, r->qpn, &m))
		return true;
	ipoib_rc_end(&l->rc, id);
	return false;
}

static void take_stream(void *ctx, uint32_t id, const uint8_t *p, size_t bytes)
{
	struct loop *l = ctx;

	ipoib_rc_send(&l->rc, id, p, bytes);
}

static void take_close(void *ctx, uint32_t id)
{
	struct loop *l = ctx;

	ipoib_cm_close(&l->cm, id);
	ipoib_rc_end(&l->rc, id);
}

/* Ends a connection, and tells the interface, which has not ended the
 * connection itself. */
static void lose_connection(struct loop *l, uint32_t id)
{
	take_close(l, id);
	stream_closed(l->m, id, monotonic_ms());
}

static void cm_asked(void *ctx, const struct cmproto *m)
{
	struct loop *l = ctx;
	struct cmproto reply = {.private_bytes = CONN_DATA_BYTES};
	uint32_t id = 0;

	if (ipoib_rc_may_serve(m, l->port.pkey))
		id = stream_asked(l->m, m->at.peer, m->private_data,
				  m->private_bytes, reply.private_data,
				  monotonic_ms());
	if (id && ipoib_rc_serve(&l->rc, id, m, &reply) &&
	    ipoib_cm_accept(&l->cm, m->new_id, id, &reply))
		return;
	if (!id || !ipoib_rc_has(&l->rc, id))
		ipoib_cm_reject(&l->cm, m->new_id);
	if (id)
		lose_connection(l, id);
}

static void cm_accepted(void *ctx, uint32_t id, const struct cmproto *m)
{
	struct loop *l = ctx;

	if (!ipoib_rc_accepted(&l->rc, id, m)) {
		lose_connection(l, id);
		return;
	}
	ipoib_cm_establish(&l->cm, id);
	if (!stream_opened(l->m, id, m->private_data, m->private_bytes,
			   monotonic_ms()))
		lose_connection(l, id);
}

static void cm_ended(void *ctx, uint32_t id)
{
	struct loop *l = ctx;

	ipoib_rc_end(&l->rc, id);
	stream_closed(l->m, id, monotonic_ms());
}

/* Says once that there is no listener; look_around asks for the listener again.
 */
static void cm_deaf(void *ctx, int err)
{
	struct loop *l = ctx;

	if (!l->is_deaf)
		fprintf(stderr,
			"adverb: %s: neighbours cannot connect to the "
			"interface, and send it shorter packets, since the "
			"interface has no listener: %s; adverb ipoib asks for "
			"the listener again each second; end other programs "
			"of rdma_cm on this host, or add memory.\n",
			l->tap.name,
			err ? strerror(-err) : "the fabric gives no reason");
	l->is_deaf = true;
}

static const struct ipoib_cm_sink cm_sink = {.asked = cm_asked,
					     .accepted = cm_accepted,
					     .ended = cm_ended,
					     .deaf = cm_deaf};

static void listen_for_neighbours(struct loop *l)
{
	ipoib_cm_listen(&l->cm, l->port.gid, l->verbs.qp->qp_num);
}

static void serve_cm(struct loop *l)
{
	switch (ipoib_cm_receive(&l->cm)) {
	case 0:
		break;
	case -EPROTO:
		end_loop(l, "the fabric has sent a message of the connected "
			    "mode that this version of adverb does not know, "
			    "so adverb ipoib ends; use one version of adverb "
			    "for both");
		break;
	case -ENOBUFS:
		end_loop(l, "the fabric does not read the messages of the "
			    "connected mode, so adverb ipoib ends; if the "
			    "fabric is stopped, continue it (kill -CONT), and "
			    "start adverb ipoib again");
		break;
	default:
		end_loop(l, "the fabric has closed the connection for the "
			    "connected mode, so adverb ipoib ends");
	}
}

/* Receives the packets of the connections, and ends the connections that have
 * failed. */
static void serve_connections(struct loop *l, uint64_t now_ms)
{
	uint32_t id;

	l->has_more |= ipoib_rc_receive(&l->rc, l->m, FRAMES, now_ms) >= FRAMES;
	/* the completions of failed sends show which connections have failed */
	ipoib_verbs_collect(&l->verbs);
	while ((id = ipoib_rc_broken(&l->rc, now_ms)))
		lose_connection(l, id);
}

/* Watches the socket to the fabric for room only while messages are kept. */
static void watch_cm(struct loop *l)
{
	bool writes = ipoib_cm_flush(&l->cm);
	struct epoll_event e = {.events = EPOLLIN | (writes ? EPOLLOUT : 0),
				.data.u32 = SOURCE_CM};

	if (writes != l->writes_cm)
		epoll_ctl(l->epoll, EPOLL_CTL_MOD, l->cm.fd, &e);
	l->writes_cm = writes;
}

/* ---- the interface ---- */

static void say_error(struct loop *l, const char *what, int err)
{
	if (err)
		fprintf(stderr, "adverb: %s: %s: %s.\n", l->tap.name, what,
			strerror(-err));
}

/* Tells the fabric the GID, the QPN and the P_Key of the interface, and its
 * broadcast group, for rdma_cm. */
static void tell_fabric(struct loop *l)
{
	const struct ipoib_port *p = &l->port;

	ipoib_register_tell(&l->known, p->gid, l->verbs.qp->qp_num,
			    p->has_pkey ? p->pkey : 0,
			    l->is_up ? &l->broadcast : NULL);
}

static void come_up(struct loop *l, const struct ipoib_link *link)
{
	uint32_t mtu = l->config->mtu;
	int err = ipoib_verbs_start(&l->verbs, link->broadcast.qkey);

	if (err) {
		say_error(l, "the queue pair cannot be started", err);
		end_loop(l, "adverb ipoib ends");
		return;
	}
	if (mtu && mtu > link->mtu)
		mtu = link->mtu;
	say_error(l, "the MTU cannot be set",
		  ipoib_tap_set_mtu(&l->tap, mtu ? mtu : link->mtu));
	if (l->config->is_connected)
		listen_for_neighbours(l);
	ipoib_tap_set_carrier(&l->tap, true);
	l->looks = true;
	l->broadcast = link->broadcast;
	l->is_up = true;
}

static void take_link(void *ctx, const struct ipoib_link *link)
{
	struct loop *l = ctx;

	say_error(l, "the hardware address cannot be set",
		  ipoib_tap_set_mac(&l->tap, link->mac));
	if (link->is_up) {
		come_up(l, link);
	} else {
		ipoib_tap_set_carrier(&l->tap, false);
		if (l->config->is_connected)
			ipoib_cm_unlisten(&l->cm);
		ipoib_verbs_stop(&l->verbs);
		l->is_up = false;
	}
	tell_fabric(l);
}

static void take_look(void *ctx)
{
	struct loop *l = ctx;

	l->looks = true;
}

static uint32_t take_addresses(void *ctx, struct announce_address *all,
			       uint32_t room)
{
	struct loop *l = ctx;

	return ipoib_tap_addresses(&l->tap, all, room);
}

static void take_sentence(void *ctx, const char *text)
{
	struct loop *l = ctx;

	fprintf(stderr, "adverb: %s: %s.\n", l->tap.name, text);
}

static const struct ipoib_sink sink = {
	.connect = take_connect,
	.stream = take_stream,
	.close = take_close,
	.frame = take_frame,
	.packet = take_packet,
	.release = take_release,
	.ask = take_question,
	.attach = take_attach,
	.link = take_link,
	.look = take_look,
	.addresses = take_addresses,
	.say = take_sentence,
};

/* Reads the state of the port, and passes it to the interface and to the
 * fabric. */
static void tell_port(struct loop *l)
{
	uint64_t now_ms = monotonic_ms();
	struct ipoib_port port;

	if (ipoib_verbs_port(&l->verbs, &port)) {
		l->is_cut = true;
		end_loop(l, "the port does not answer, so adverb ipoib ends");
		return;
	}
	/* If the P_Key has moved to another index, the loop first reports a
	 * port without the P_Key.  The interface then goes down, and comes up
	 * again with the new index. */
	if (l->verbs.is_started && port.has_pkey &&
	    l->verbs.pkey_index != l->verbs.used_index) {
		struct ipoib_port none = port;

		none.has_pkey = false;
		ipoib_port(l->m, &none, now_ms);
	}
	l->port = port;
	ipoib_port(l->m, &port, now_ms);
	tell_fabric(l);
}

static void take_event(struct loop *l, const struct ibv_async_event *e)
{
	if (e->event_type == IBV_EVENT_DEVICE_FATAL) {
		cut_loop(l);
		return;
	}
	if (e->element.port_num != l->verbs.port)
		return;
	tell_port(l);
	if (e->event_type == IBV_EVENT_CLIENT_REREGISTER ||
	    e->event_type == IBV_EVENT_SM_CHANGE)
		ipoib_reregister(l->m, monotonic_ms());
}

static bool is_of_port(enum ibv_event_type type)
{
	return type == IBV_EVENT_PORT_ACTIVE || type == IBV_EVENT_PORT_ERR ||
	       type == IBV_EVENT_LID_CHANGE || type == IBV_EVENT_PKEY_CHANGE ||
	       type == IBV_EVENT_SM_CHANGE || type == IBV_EVENT_GID_CHANGE ||
	       type == IBV_EVENT_CLIENT_REREGISTER ||
	       type == IBV_EVENT_DEVICE_FATAL;
}

static void take_events(struct loop *l)
{
	struct ibv_async_event e;

	while (l->status < 0 && !ibv_get_async_event(l->verbs.context, &e)) {
		if (is_of_port(e.event_type))
			take_event(l, &e);
		ibv_ack_async_event(&e);
	}
}

static void read_frames(struct loop *l, uint64_t now_ms)
{
	uint8_t spare[IPOIB_FRAME_MAX], *place = NULL;
	int err = 0;
	ssize_t n;

	for (int i = 0; i < FRAMES; i++) {
		place = ipoib_verbs_place(&l->verbs);
		/* a frame of an interface that is down is only counted */
		if (!place && !l->is_up)
			place = spare;
		if (!place)
			break;
		n = read(l->tap.fd, place,
			 place == spare ? sizeof(spare)
					: l->verbs.places.bytes);
		err = n < 0 ? errno : 0;
		if (err)
			break;
		ipoib_frame(l->m, place, (size_t)n, now_ms);
	}
	ipoib_verbs_flush(&l->verbs);
	l->has_more |= place && !err;
	if (err == EBADFD)
		end_loop(l, "the interface was removed, so adverb ipoib ends");
}

static int watch_fd(struct loop *l, int fd, enum source source)
{
	struct epoll_event e = {.events = EPOLLIN, .data.u32 = source};

	return epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &e);
}

/* Waits for frames only while there is a place for one. */
static void watch_tap(struct loop *l)
{
	bool reads = !l->is_up || !ipoib_verbs_await_place(&l->verbs);
	struct epoll_event e = {.events = reads ? EPOLLIN : 0,
				.data.u32 = SOURCE_TAP};

	if (reads != l->reads_tap)
		epoll_ctl(l->epoll, EPOLL_CTL_MOD, l->tap.fd, &e);
	l->reads_tap = reads;
}

static sigset_t ending_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	heeded_add(&set, SIGINT);
	heeded_add(&set, SIGTERM);
	return set;
}

static int watch_all(struct loop *l)
{
	sigset_t set = ending_signals();

	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	l->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	l->reads_tap = true;
	return l->epoll < 0 || l->signals < 0 ||
	       watch_fd(l, l->tap.fd, SOURCE_TAP) ||
	       watch_fd(l, l->verbs.channel->fd, SOURCE_CHANNEL) ||
	       watch_fd(l, l->verbs.context->async_fd, SOURCE_ASYNC) ||
	       watch_fd(l, l->verbs.umad, SOURCE_UMAD) ||
	       (l->config->is_connected && watch_fd(l, l->cm.fd, SOURCE_CM)) ||
	       watch_fd(l, l->signals, SOURCE_SIGNAL);
}

/* Asks again for a listener that has failed since the last look. */
static void look_at_listener(struct loop *l)
{
	if (ipoib_cm_is_heard(&l->cm))
		l->is_deaf = false;
	else if (!ipoib_cm_is_listening(&l->cm))
		listen_for_neighbours(l);
}

static void look_around(struct loop *l, uint64_t now_ms)
{
	struct joined joined;

	/* no event tells that the MTU of the port has changed */
	if (now_ms >= l->port_ms) {
		tell_port(l);
		if (l->config->is_connected && l->is_up)
			look_at_listener(l);
		l->port_ms = now_ms + LOOK_MS;
	}
	if (!l->looks && now_ms < l->look_ms)
		return;
	/* if the kernel's groups cannot be read now, the interface leaves no
	 * group */
	if (ipoib_tap_joined(&l->tap, &joined))
		ipoib_joined(l->m, &joined, now_ms);
	l->looks = false;
	l->look_ms = now_ms + LOOK_MS;
}

static int wait_ms(const struct loop *l, uint64_t now_ms)
{
	uint64_t due = ipoib_deadline(l->m);

	if (l->has_more || l->looks)
		return 0;
	due = due < l->look_ms ? due : l->look_ms;
	due = due < l->port_ms ? due : l->port_ms;
	return due > now_ms ? (int)(due - now_ms) : 0;
}

static void take_answers(struct loop *l, uint64_t now_ms)
{
	if (ipoib_verbs_answers(&l->verbs, l->m, now_ms))
		cut_loop(l);
}

static void take_signal(struct loop *l)
{
	struct signalfd_siginfo info;

	if (read(l->signals, &info, sizeof(info)) == sizeof(info))
		l->ends = true;
}

static void serve_source(struct loop *l, enum source source, uint64_t now_ms)
{
	switch (source) {
	case SOURCE_TAP:
		read_frames(l, now_ms);
		break;
	case SOURCE_CHANNEL:
		ipoib_verbs_events(&l->verbs);
		break;
	case SOURCE_ASYNC:
		take_events(l);
		break;
	case SOURCE_UMAD:
		take_answers(l, now_ms);
		break;
	case SOURCE_CM:
		serve_cm(l);
		break;
	case SOURCE_SIGNAL:
		take_signal(l);
		break;
	}
}

/* Waits for events, handles them, and does the work that is due. */
static void turn_once(struct loop *l, int timeout_ms)
{
	struct epoll_event events[SOURCES];
	uint64_t now_ms;
	int n;

	ipoib_verbs_flush(&l->verbs);
	n = epoll_wait(l->epoll, events, SOURCES, timeout_ms);
	now_ms = monotonic_ms();
	l->has_more = false;
	for (int i = 0; i < n; i++)
		serve_source(l, events[i].data.u32, now_ms);
	l->has_more |=
		ipoib_verbs_receive(&l->verbs, l->m, FRAMES, now_ms) >= FRAMES;
	if (l->config->is_connected)
		serve_connections(l, now_ms);
	if (now_ms >= ipoib_deadline(l->m))
		ipoib_turn(l->m, now_ms);
	if (l->config->is_connected && l->cm.fd >= 0)
		watch_cm(l);
}

/* Leaves the groups, so that the subnet manager frees them; waits for the
 * answers for LEAVE_MS at most. */
static void leave_groups(struct loop *l)
{
	uint64_t now_ms = monotonic_ms(), end_ms = now_ms + LEAVE_MS;

	/* epoll reports an interface that was removed as long as the interface
	 * is watched */
	epoll_ctl(l->epoll, EPOLL_CTL_DEL, l->tap.fd, NULL);
	while (!l->is_cut && !ipoib_leave(l->m, now_ms) && now_ms < end_ms) {
		turn_once(l, (int)(end_ms - now_ms));
		now_ms = monotonic_ms();
	}
}

static void run_turns(struct loop *l)
{
	bool was_up = false;

	tell_port(l);
	while (l->status < 0 && !l->ends) {
		turn_once(l, wait_ms(l, monotonic_ms()));
		look_around(l, monotonic_ms());
		watch_tap(l);
		if (l->is_up && !was_up)
			l->config->up();
		was_up = l->is_up;
	}
	if (l->is_up)
		leave_groups(l);
}

/* Gives the interface its addresses.  Returns 0, or -1 after a sentence. */
static int set_addresses(struct loop *l)
{
	struct ipoib_tap_address local = {.family = AF_INET6, .prefix = 64};
	struct ipoib_port port;
	int err = ipoib_tap_enable(&l->tap);

	say_error(l, "the interface cannot be enabled", err);
	for (uint32_t i = 0; !err && i < l->config->address_count; i++) {
		err = ipoib_tap_add(&l->tap, &l->config->addresses[i]);
		say_error(l, "an address cannot be set", err);
	}
	if (!err && !ipoib_verbs_port(&l->verbs, &port)) {
		hwaddr_link_local(port.gid, local.ip);
		/* a kernel without IPv6 has no such address */
		ipoib_tap_add(&l->tap, &local);
	}
	return err ? -1 : 0;
}

/* The threads of the libraries inherit the mask, so signals come to the loop
 * alone.  A sentence to a pipe whose reader has ended fails, and does not end
 * the process. */
static void set_signals(void)
{
	sigset_t set = ending_signals();

	signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

static int fail_start(struct loop *l, int err)
{
	fprintf(stderr,
		"adverb: %s: adverb ipoib cannot start: its state or the set "
		"of its descriptors cannot be made: %s; raise the limits of "
		"memory and open files (ulimit -v, ulimit -n).\n",
		l->tap.name, strerror(err));
	return -1;
}

static int start_all(struct loop *l)
{
	if (ipoib_tap_open(&l->tap, l->config->name))
		return -1;
	if (ipoib_verbs_open(&l->verbs, l->config->port, l->config->pkey,
			     l->config->is_connected))
		return -1;
	if (l->config->is_connected &&
	    (ipoib_rc_open(&l->rc, &l->verbs) ||
	     ipoib_cm_open(&l->cm, &cm_sink, l, l->tap.name)))
		return -1;
	ipoib_register_open(&l->known, l->tap.name);
	l->m = ipoib_new(&sink, l, l->verbs.qp->qp_num);
	if (!l->m)
		return fail_start(l, ENOMEM);
	if (watch_all(l))
		return fail_start(l, errno);
	if (l->config->is_connected)
		stream_enable(l->m, l->config->mtu ? l->config->mtu
						   : IPOIB_CONNECTED_MTU);
	say_error(l, "the MTU cannot be set",
		  ipoib_tap_set_mtu(&l->tap, MTU_BEFORE));
	return set_addresses(l);
}

int ipoib_loop_run(const struct ipoib_loop_config *config)
{
	static struct loop l; /* too large for a stack */
	int status = 1;

	l = (struct loop){.config = config,
			  .status = -1,
			  .verbs.umad = -1,
			  .cm = {.connection = -1, .fd = -1},
			  .known = {.connection = -1, .fd = -1}};
	set_signals();
	if (!start_all(&l)) {
		run_turns(&l);
		status = l.status < 0 ? 0 : l.status;
	}
	ipoib_free(l.m);
	ipoib_cm_fini(&l.cm);
	ipoib_rc_close(&l.rc);
	ipoib_register_close(&l.known);
	ipoib_verbs_close(&l.verbs);
	return status;
}
