/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/fabric_link.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "broker/shared_page.h"
#include "device/netif.h"
#include "fabric/fabric_client.h"
#include "hdr/bth.h"
#include "hdr/lrh.h"
#include "host/link_batch.h"
#include "host/link_groups.h"
#include "host/link_port.h"
#include "host/link_question.h"
#include "host/link_reach.h"
#include "host/local_peer.h"
#include "log/log.h"
#include "util/bits.h"
#include "util/fd_identity.h"
#include "util/shared.h"

#define TYPE_CA 1 /* NodeType (IBTA 14.2.5.3) */
/* One of this many looks at rings also looks at the sockets. */
#define LOOKS 16
/* Changes that are not of a port. */
#define NOT_OF_PORT (uint32_t)(DATA_DEATH | DATA_RING)
/* Shorter messages are news. */
#define PACKET_MIN (LRH_BYTES + BTH_BYTES + ICRC_BYTES + LRH_VCRC_BYTES)

_Static_assert(sizeof(struct fabric_proto_news) < PACKET_MIN,
	       "news are shorter than all packets");
_Static_assert(HCA_MAX_PORTS <= FABRIC_PROTO_PORTS,
	       "each port may have a data end");

static struct {
	/* is_begun: the descriptors of this struct are set; is_open: the link
	 * has been opened. */
	bool is_begun, is_open;
	int control; /* the connection to the fabric's process */
	/* The epoll set of `control`, with data 0, and of the data ends'
	 * sockets, with the numbers of their ports as data. */
	int epoll;
	uint32_t device; /* the index of the device in the engine */
	uint32_t count;	 /* how many ports the link has */
	uint32_t number; /* the data ends' number, the high bits of QPNs */
	struct link_question question;
	struct link_port ports[HCA_MAX_PORTS];
	/* The port whose socket or ring was full last; NULL: none was. */
	struct link_port *full;
	/* Received messages, of which the engine has not taken all yet. */
	struct link_batch batch;
	/* This program's number at the fabric; 0: the program does not share
	 * its arena. */
	uint32_t program;
	/* The subnet's number of changes (link_reach_map); NULL: the arena
	 * is not shared. */
	const shared_u32 *changes;
	struct link_reach reach; /* the questions about direct requests */
	uint32_t batch_port; /* the port from whose socket `batch` was read */
	/* Each port has rings, so the sockets have no packets. */
	bool has_rings;
	/* Counts the looks at the rings. */
	uint32_t looks;
	/* fabric_link_has_news has found a readable descriptor. */
	bool has_readable;
	char host[FABRIC_PROTO_NAME]; /* ADVERB_FABRIC_HOST, or "" */
	char path[128];		      /* the path of the fabric's socket */
} at;
/* Words that the thread that waits reads without a lock.  seen_fd: at.epoll + 1
 * until the link has ended; changes: counts stores to seen_fd. */
static shared_u32 seen_fd, changes;
/* has_ended: the link has ended.  is_lost: the program has closed a descriptor
 * of the link (fabric_link_is_ours). */
static shared_flag has_ended, is_lost;

static void publish_fd(int fd)
{
	shared_store(&seen_fd, (uint32_t)(fd + 1));
	/* Stored after seen_fd: a thread that loads the new value of `changes`
	 * then loads the new descriptor.  In the other order the thread could
	 * note the new value of `changes` with the old descriptor, and then
	 * wait on the old descriptor. */
	shared_store(&changes, shared_own(&changes) + 1);
}

static struct link_port *port_at(uint32_t number)
{
	return &at.ports[number - 1];
}

/* May the functions of this file still use the descriptors of the link? */
static bool is_usable(void)
{
	return at.is_open && !shared_load(&has_ended) && !shared_load(&is_lost);
}

/* ---- the end ---- */

/* Shuts a socket down, so that the fabric closes its end.  Otherwise the fabric
 * would keep packets for this process until their lifetime is over. */
static void shut_down(int fd)
{
	if (fd_identity_holds(fd))
		shutdown(fd, SHUT_RDWR);
}

static void shut_all(void)
{
	for (uint32_t i = 0; i < at.count; i++)
		shut_down(at.ports[i].fd);
	shut_down(at.control);
}

/* Ends the link.  The descriptors stay open until fabric_link_close, so that no
 * thread uses a number that belongs to another file by then. */
static void end_link(struct engine *engine, int err, uint64_t now_ns)
{
	if (shared_load(&has_ended))
		return;
	shared_store(&has_ended, 1);
	link_batch_clear(&at.batch);
	publish_fd(-1);
	shut_all();
	for (uint32_t n = 1; n <= at.count; n++)
		link_port_take_down(port_at(n));
	engine_fail_device(engine, at.device, now_ns);
	if (shared_load(&is_lost))
		return; /* progress_has_files prints a message */
	log_say(LOG_FABRIC_ENDED, 0,
		"the link to the fabric at %s (ADVERB_FABRIC) has ended: %s; "
		"the InfiniBand device of this process (ADVERB_FABRIC_HOST=%s) "
		"has failed, and its queue pairs are in the state ERR; "
		"start a fabric by adverb fabric FILE, and then this program "
		"again",
		at.path, fabric_client_reason(err), at.host);
}

/* ---- questions and answers ---- */

/* Stores in *m the next question for the fabric.  Returns false if there is
 * nothing to ask. */
static bool choose_question(struct fabric_proto *m)
{
	for (uint32_t n = 1; n <= at.count; n++) {
		m->kind = FABRIC_PROTO_PORT;
		m->number = n;
		if (link_port_ask(port_at(n)))
			return true;
	}
	for (uint32_t n = 1; n <= at.count; n++) {
		m->number = n;
		if (link_groups_ask(&port_at(n)->groups, &m->kind, m->gid))
			return true;
	}
	return link_reach_ask(&at.reach, m);
}

/* Sends the next question, unless a question is open.  Since at most one
 * question is open, the socket always has room.  Returns 0 or -errno. */
static int ask_next(void)
{
	struct fabric_proto m = {.kind = 0};

	if (at.question.asked.kind || !choose_question(&m))
		return 0;
	memcpy(m.host, at.host, sizeof(m.host));
	return link_question_send(&at.question, at.control, &m);
}

/* Takes the answer m to the open question.  If the answer is about an arena,
 * also takes the descriptor *fd, and sets *fd to -1. */
static void take_answer(struct engine *engine, const struct fabric_proto *m,
			int err, int *fd)
{
	uint32_t kind = at.question.asked.kind;

	at.question.asked.kind = 0;
	if (kind == FABRIC_PROTO_PORT) {
		link_port_show(port_at(m->number), engine, &m->port);
	} else if (kind == FABRIC_PROTO_REACH) {
		link_reach_answered(&at.reach, err ? NULL : &m->reached);
	} else if (kind == FABRIC_PROTO_ARENA) {
		link_reach_give_arena(m, err, *fd);
		*fd = -1;
	} else {
		link_groups_answered(&port_at(m->number)->groups, m->gid, err);
		if (err)
			link_groups_say(m, at.path, at.host, err);
	}
}

/* Takes the message *m of the fabric, which has n bytes.  Returns 0 or
 * -errno. */
static int judge_message(struct engine *engine, struct fabric_proto *m,
			 size_t n, int *fd)
{
	int err;

	if (link_question_is_late(&at.question, m, n))
		return 0;
	err = fabric_client_judge(m, n);
	if (err && !link_question_is_refused(&at.question, err))
		return err == -ECONNRESET ? err : -EPROTO;
	if (!link_question_is_answer(&at.question, m))
		return -EPROTO;
	take_answer(engine, m, err, fd);
	return ask_next();
}

/* Receives the answer to the open question.  Returns 0 or -errno. */
static int read_control(struct engine *engine)
{
	struct fabric_proto m;
	bool is_cut;
	int fd, err;
	int n = fabric_client_receive(at.control, &m, MSG_DONTWAIT, &is_cut,
				      &fd);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	err = judge_message(engine, &m, (size_t)n, &fd);
	if (fd >= 0)
		close(fd);
	return err;
}

/* Takes the news of a port.  Returns 0 or -errno. */
static int take_news(uint32_t number, const uint8_t *bytes, size_t n)
{
	struct fabric_proto_news news;

	if (n != sizeof(news))
		return n ? -EPROTO : -ECONNRESET;
	memcpy(&news, bytes, sizeof(news));
	if (!news.changes ||
	    link_port_hear(port_at(number), news.changes & ~NOT_OF_PORT))
		return -EPROTO;
	if (news.changes & DATA_DEATH)
		local_peer_died();
	return ask_next();
}

/* ---- packets in ---- */

/* Takes a message of the fabric, or one of the packets of a message.  Returns 0
 * or -errno. */
static int take_part(struct engine *engine, const uint8_t *bytes, size_t n,
		     uint64_t now_ns)
{
	if (n < PACKET_MIN)
		return take_news(at.batch_port, bytes, n);
	link_port_take(port_at(at.batch_port), engine, bytes, n, now_ns);
	return 0;
}

/* Gives packets of the rings to the engine.  Returns how many, or -errno. */
static int give_rings(struct engine *engine, uint64_t now_ns)
{
	int sum = 0;

	for (uint32_t n = 1; n <= at.count; n++) {
		int count = link_port_take_ring(port_at(n), engine, now_ns);

		if (count < 0)
			return count;
		sum += count;
	}
	return sum;
}

/* Gives the remaining packets of the batch to the engine, until the engine is
 * choked.  Returns 0 or -errno. */
static int give_batch(struct engine *engine, uint64_t now_ns)
{
	const uint8_t *bytes = NULL;
	size_t n = 0;
	int err = 0;

	while (!err && fabric_link_is_behind() && !engine_is_choked(engine)) {
		err = link_batch_take(&at.batch, &bytes, &n);
		if (!err)
			err = take_part(engine, bytes, n, now_ns);
	}
	return err;
}

/* Stores the events of the readable descriptors: data.u32 is a port's number,
 * or 0 for the connection.  Returns how many descriptors are readable, or
 * -errno. */
static int ready_ports(struct epoll_event ready[HCA_MAX_PORTS + 1])
{
	/* The system call is made by syscall(2), since the C library's
	 * epoll_pwait is a cancellation point.  arm64 has no epoll_wait(2). */
	long n = syscall(SYS_epoll_pwait, at.epoll, ready, HCA_MAX_PORTS + 1, 0,
			 NULL, 8);

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	return (int)n;
}

/* Reads each readable descriptor once, until the engine is choked.  Returns how
 * many descriptors were readable, or -errno. */
static int read_ready(struct engine *engine, uint64_t now_ns)
{
	struct epoll_event ready[HCA_MAX_PORTS + 1];
	int n = ready_ports(ready), err = 0;

	at.has_readable = false;
	for (int i = 0; i < n && !err && !fabric_link_is_behind(); i++) {
		if (!ready[i].data.u32) {
			err = read_control(engine);
			continue;
		}
		at.batch_port = ready[i].data.u32;
		err = link_batch_fill(&at.batch, port_at(at.batch_port)->fd);
		if (!err)
			err = give_batch(engine, now_ns);
	}
	return err ? err : n;
}

/* Does this look include the sockets?  If a port has no rings, if a question is
 * open, or if a descriptor is known to be readable, each look does; otherwise
 * one of LOOKS looks does. */
static bool is_turn_of_sockets(void)
{
	return !at.has_rings || at.question.asked.kind || at.has_readable ||
	       !(++at.looks % LOOKS);
}

/* Takes packets from the rings.  Then, unless the engine is choked, reads each
 * readable descriptor once in two cases: if is_turn_of_sockets returns true, or
 * if the caller was woken and the rings had no packets.  In the second case a
 * descriptor has woken the caller.  Returns how many packets and readable
 * descriptors there were, or -errno. */
static int look_once(struct engine *engine, bool was_woken, uint64_t now_ns)
{
	int count = give_rings(engine, now_ns), n;

	if (count < 0 || engine_is_choked(engine) ||
	    ((count || !was_woken) && !is_turn_of_sockets()))
		return count;
	n = read_ready(engine, now_ns);
	return n < 0 ? n : n + count;
}

bool fabric_link_turn(struct engine *engine, unsigned rounds, bool was_woken,
		      uint64_t now_ns)
{
	int n = 1, err = 0;
	bool any;

	if (!at.is_open || shared_load(&has_ended))
		return false;
	any = fabric_link_is_behind() && !engine_is_choked(engine);
	err = shared_load(&is_lost)
		      ? -EBADF
		      : link_question_resume(&at.question, at.control);
	if (!err)
		err = give_batch(engine, now_ns);
	for (; !err && n && rounds && !engine_is_choked(engine); rounds--) {
		n = look_once(engine, was_woken, now_ns);
		err = n < 0 ? n : 0;
		any |= n != 0;
	}
	if (err)
		end_link(engine, err, now_ns);
	return any || err;
}

/* Have packets come that the engine has not taken yet? */
static bool has_packets(void)
{
	for (uint32_t n = is_usable() ? at.count : 0; n; n--)
		if (link_port_has_packets(port_at(n)))
			return true;
	return fabric_link_is_behind();
}

bool fabric_link_idle(void)
{
	bool is_idle = !is_usable() || !at.question.is_owed;

	for (uint32_t n = is_usable() ? at.count : 0; n; n--)
		is_idle &= link_port_idle(port_at(n));
	return is_idle;
}

static bool is_readable(void)
{
	struct epoll_event ready[HCA_MAX_PORTS + 1];

	at.has_readable = ready_ports(ready) != 0;
	return at.has_readable;
}

bool fabric_link_has_news(void)
{
	return at.is_open && !shared_load(&has_ended) &&
	       (has_packets() || shared_load(&is_lost) ||
		(is_turn_of_sockets() && is_readable()));
}

bool fabric_link_is_behind(void)
{
	return link_batch_has(&at.batch);
}

/* ---- packets out ---- */

/* Returns the port of a frame; NULL: frames of this port are dropped. */
static struct link_port *port_of(const struct engine_frame *f)
{
	return is_usable() && f->port && f->port <= at.count ? port_at(f->port)
							     : NULL;
}

size_t fabric_link_send(const struct engine_frame *frames, size_t n)
{
	size_t sent = 0;

	while (sent < n) {
		struct link_port *port = port_of(&frames[sent]);
		size_t run = 1, k;

		while (sent + run < n && port_of(&frames[sent + run]) == port)
			run++;
		k = port ? link_port_send(port, frames + sent, run) : run;
		sent += k;
		if (k < run) {
			at.full = port;
			break;
		}
	}
	return sent;
}

bool fabric_link_wants_room(int full_fd)
{
	return full_fd < 0 || full_fd != fabric_link_full_fd() ||
	       link_port_wants_room(at.full);
}

int fabric_link_full_fd(void)
{
	return at.full ? link_port_full_fd(at.full) : -1;
}

/* ---- groups ---- */

/* Sends the next question, if there is one.  Ends the link if that fails. */
static void ask_or_end(struct engine *engine, uint64_t now_ns)
{
	int err = is_usable() ? ask_next() : 0;

	if (err)
		end_link(engine, err, now_ns);
}

int fabric_link_attach(struct engine *engine, uint32_t port,
		       const uint8_t gid[16], uint64_t now_ns, const char **why)
{
	int err;

	*why = "the device has failed, because its link to the fabric has "
	       "ended; start the program again";
	if (!is_usable())
		return -EIO;
	*why = "the device has no such port";
	if (!port || port > at.count)
		return -EINVAL;
	err = link_groups_attach(&port_at(port)->groups, gid);
	*why = err == -ENOSPC
		       ? "queue pairs are attached to as many multicast groups "
			 "at this port as adverb allows; detach queue pairs "
			 "from other groups first"
		       : "the GID is not a multicast GID; give one that begins "
			 "with ff";
	if (!err)
		ask_or_end(engine, now_ns);
	return err;
}

int fabric_link_detach(struct engine *engine, uint32_t port,
		       const uint8_t gid[16], uint64_t now_ns, const char **why)
{
	int err;

	*why = "the device has no such port";
	if (!port || port > at.count)
		return -EINVAL;
	*why = "no queue pair is attached to this multicast group at the port";
	err = link_groups_detach(&port_at(port)->groups, gid);
	if (!err)
		ask_or_end(engine, now_ns);
	return err;
}

/* ---- direct requests ---- */

/* Sends the next question.  False: the link cannot be used, the arena is not
 * shared, or the send has failed; after a failed send, the next
 * fabric_link_turn finds the reason, and ends the link. */
static bool may_ask(void)
{
	return is_usable() && at.program && !ask_next();
}

static bool ask_arena(uint32_t program)
{
	return link_reach_want_arena(&at.reach, program) && may_ask();
}

bool fabric_link_share(struct engine *engine, int arena_fd, int wake_fd)
{
	struct fabric_proto m = {.kind = FABRIC_PROTO_SHARE,
				 .arena = link_reach_arena(arena_fd)};
	int fd = -1, err;

	if (!is_usable())
		return false;
	memcpy(m.host, at.host, sizeof(m.host));
	err = fabric_client_bring(at.control, &m, wake_fd, &fd);
	at.question.late = err == -ETIMEDOUT ? m.serial : 0;
	at.changes = err ? NULL : link_reach_map(fd);
	if (fd >= 0)
		close(fd);
	if (!at.changes || !m.number || m.number > DATA_NUMBER_MAX)
		return false;
	at.program = m.number;
	local_peer_use(at.program, ask_arena);
	engine_subnet(engine, at.changes);
	return true;
}

enum link_reach_is fabric_link_reach(const struct link_reach_about *about,
				     struct fabric_reached *reached)
{
	enum link_reach_is is;

	if (!is_usable() || !at.program)
		return LINK_REACH_NO;
	is = link_reach_get(&at.reach, about, reached);
	return is != LINK_REACH_ASKED || may_ask() ? is : LINK_REACH_NO;
}

/* ---- begin ---- */

static int watch_fd(int fd, uint32_t port)
{
	struct epoll_event e = {.events = EPOLLIN, .data.u32 = port};

	return epoll_ctl(at.epoll, EPOLL_CTL_ADD, fd, &e) ? -errno : 0;
}

static int ask_host(struct fabric_proto *m, enum fabric_proto_kind kind,
		    uint32_t number, int *fd)
{
	*m = (struct fabric_proto){.kind = kind, .number = number};
	memcpy(m->host, at.host, sizeof(m->host));
	return fabric_client_ask(at.control, m, fd);
}

/* Attaches to a port, and then asks for its state.  In this order no change is
 * lost: the fabric reports each change after the attachment. */
static int attach_port(struct engine *engine, uint32_t number)
{
	struct link_port *port = port_at(number);
	struct fabric_proto m;
	int err = ask_host(&m, FABRIC_PROTO_DATA, number, &port->fd);

	if (err)
		return err;
	port->device = at.device;
	port->number = number;
	port->fd = fd_identity_note(port->fd);
	if (!fabric_client_is_data(port->fd) || !m.number ||
	    m.number > DATA_NUMBER_MAX || (at.number && m.number != at.number))
		return -EPROTO;
	at.number = m.number;
	port->burst = fabric_client_burst(port->fd);
	m = (struct fabric_proto){.number = number};
	memcpy(m.host, at.host, sizeof(m.host));
	err = link_ring_open(&port->ring, at.control, port->fd, &m);
	at.has_rings =
		(number == 1 || at.has_rings) && link_ring_is_open(&port->ring);
	if (!err)
		err = watch_fd(port->fd, number);
	if (!err)
		err = ask_host(&m, FABRIC_PROTO_PORT, number, NULL);
	if (!err && !fabric_client_is_port(&m.port))
		err = -EPROTO;
	if (!err)
		link_port_show(port, engine, &m.port);
	return err;
}

/* Takes the host, and asks how many ports it has.  Without ADVERB_FABRIC_HOST
 * the process is on the first node of the fabric's file, and need not take that
 * host.  Returns 0 or -errno. */
static int take_host(void)
{
	struct fabric_proto m;
	int err = *at.host ? ask_host(&m, FABRIC_PROTO_TAKE, 0, NULL) : 0;

	if (!err)
		err = ask_host(&m, FABRIC_PROTO_CA, 0, NULL);
	if (err)
		return err;
	if (m.ca.node_type != TYPE_CA)
		return -ENODEV;
	if (m.ca.first_port != 1 || !m.ca.last_port)
		return -EPROTO;
	at.count = bits_min_u32(m.ca.last_port, HCA_MAX_PORTS);
	return 0;
}

static int connect_link(uint32_t patience_ms)
{
	if (link_batch_init(&at.batch))
		return -ENOMEM;
	at.epoll = fd_identity_note(epoll_create1(EPOLL_CLOEXEC));
	if (at.epoll < 0)
		return -errno;
	at.control = fd_identity_note(
		fabric_client_connect(fabric_client_path(), patience_ms));
	if (at.control < 0)
		return at.control;
	return watch_fd(at.control, 0);
}

static void clear_state(void)
{
	memset(&at, 0, sizeof(at));
	at.control = at.epoll = -1;
	for (uint32_t i = 0; i < HCA_MAX_PORTS; i++) {
		at.ports[i].fd = -1;
		link_ring_init(&at.ports[i].ring);
	}
	shared_store(&has_ended, 0);
	shared_store(&is_lost, 0);
}

/* Closes the descriptors that are open.  is_child: leaves the rings mapped, for
 * the reasons that fabric_link_forget gives. */
static void close_all(bool is_child)
{
	publish_fd(-1);
	for (uint32_t i = 0; i < at.count; i++) {
		fd_identity_close(at.ports[i].fd);
		link_ring_close(&at.ports[i].ring, is_child);
	}
	fd_identity_close(at.control);
	fd_identity_close(at.epoll);
	link_batch_fini(&at.batch);
	clear_state();
}

int fabric_link_open(struct engine *engine, uint32_t device,
		     uint32_t patience_ms)
{
	const char *path = fabric_client_path(), *host = fabric_client_host();
	char text[512];
	int err;

	clear_state();
	at.is_begun = true;
	at.device = device;
	snprintf(at.path, sizeof(at.path), "%s", path);
	snprintf(at.host, sizeof(at.host), "%s", host);
	err = connect_link(patience_ms);
	if (!err)
		err = take_host();
	for (uint32_t n = 1; !err && n <= at.count; n++)
		err = attach_port(engine, n);
	if (!err) {
		at.is_open = true;
		publish_fd(at.epoll);
		return 0;
	}
	fabric_client_explain(path, host, err, text, sizeof(text));
	log_say(LOG_FABRIC_NONE, (uint64_t)-err, "%s", text);
	close_all(false);
	return err;
}

void fabric_link_forget(void)
{
	/* Does not unmap the page of at.changes and the rings.  In the child of
	 * a fork they are not mapped (MADV_DONTFORK), and the child may have
	 * memory of its own at these addresses.  In a process whose progress
	 * thread could not be stopped (host_put), that thread may still use
	 * them. */
	if (at.is_begun)
		close_all(true);
}

void fabric_link_close(void)
{
	if (!at.is_open)
		return;
	shut_all();
	shared_page_unmap(at.changes);
	close_all(false);
}

bool fabric_link_is_open(void)
{
	return at.is_open;
}

bool fabric_link_has_ended(void)
{
	return shared_load(&has_ended);
}

uint32_t fabric_link_qpn(uint32_t random)
{
	return shared_load(&has_ended)
		       ? 0
		       : at.number << DATA_REST_BITS |
				 (random & ((1u << DATA_REST_BITS) - 1));
}

/* ---- what the fabric says of ports ---- */

uint32_t fabric_link_ports(void)
{
	return at.count;
}

bool fabric_link_port(uint32_t number, struct fabric_port *port)
{
	if (!number || number > at.count)
		return false;
	*port = port_at(number)->now;
	return true;
}

uint32_t fabric_link_take_changes(uint32_t number)
{
	if (!number || number > at.count)
		return 0;
	return link_port_take_changes(port_at(number));
}

void fabric_link_show(const struct device *dev, bool is_new)
{
	uint32_t count = dev ? bits_min_u32(at.count, dev->port_count) : 0;

	for (uint32_t n = 1; n <= count; n++) {
		uint32_t shown = fabric_link_take_changes(n);

		if (shown || is_new)
			netif_set_port(dev, n, &port_at(n)->now, shown);
	}
}

/* ---- for the thread that waits ---- */

int fabric_link_fd(void)
{
	return (int)shared_load(&seen_fd) - 1;
}

uint32_t fabric_link_changes(void)
{
	return shared_load(&changes);
}

/* Reads the descriptors without a lock, since they do not change while the link
 * is open. */
bool fabric_link_is_ours(void)
{
	bool has = true;

	if (!at.is_open || shared_load(&has_ended))
		return !shared_load(&is_lost);
	for (uint32_t i = 0; i < at.count; i++)
		has &= link_port_is_ours(&at.ports[i]);
	if (has && fd_identity_holds(at.control) && fd_identity_holds(at.epoll))
		return true;
	shared_store(&is_lost, 1);
	return false;
}
