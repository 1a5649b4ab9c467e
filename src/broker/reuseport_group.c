/* SPDX-License-Identifier: BSD-2-Clause */
/* The receive sockets of port 4791; see reuseport_group.h. */
#include "broker/reuseport_group.h"

#include "broker/entropy.h"
#include "broker/fd_check.h"
#include "broker/other_user.h"
#include "broker/port_holder.h"
#include "broker/other_version.h"
#include "broker/shared_page.h"
#include "broker/thread_state.h"
#include "broker/user.h"
#include "wire/member.h"
#include "wire/relay.h"

#include "broker/proto.h"
#include "util/monotonic.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROCEV2_UDP_PORT 4791 /* IBTA A17.3.2.2 */
/* How many datagrams a drain takes at most: more than a receive buffer holds,
 * and few enough that a flood does not hold up the broker. */
#define DRAIN_MAX 65536
/* How long the broker keeps its findings about the process that has the port.
 */
#define HOLDER_MS 200
/* The lowest limit on open files with which there is an fd store. */
#define FEWEST_FOR_STORE 256

static void close_one(int fd)
{
	if (fd >= 0)
		close(fd);
}

static void drain_socket(int fd, int max)
{
	while (max-- > 0 && recv(fd, NULL, 0, MSG_DONTWAIT | MSG_TRUNC) >= 0)
		;
}

static int bind_any(int fd, int family)
{
	struct sockaddr_in6 six = {.sin6_family = AF_INET6,
				   .sin6_port = htons(ROCEV2_UDP_PORT)};
	struct sockaddr_in four = {.sin_family = AF_INET,
				   .sin_port = htons(ROCEV2_UDP_PORT)};

	if (family == AF_INET)
		return bind(fd, (struct sockaddr *)&four, sizeof(four));
	return bind(fd, (struct sockaddr *)&six, sizeof(six));
}

/* Opens a socket that is bound to the port, dual-stack where there is IPv6.
 * shared: with SO_REUSEPORT, so that the socket joins the group.  Returns the
 * socket or -errno. */
static int open_bound(bool shared)
{
	int family = AF_INET6, on = 1, off = 0, fd, err;

	fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 && errno == EAFNOSUPPORT) {
		family = AF_INET;
		fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	}
	if (fd < 0)
		return -errno;
	/* A member receives the datagrams of a multicast group only if the
	 * owner of its class has joined the group. */
	setsockopt(fd, IPPROTO_IP, IP_MULTICAST_ALL, &off, sizeof(off));
	if (family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, &off,
			   sizeof(off));
	if ((family == AF_INET6 &&
	     setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off))) ||
	    (shared &&
	     setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on))) ||
	    bind_any(fd, family)) {
		err = errno;
		close(fd);
		return -err;
	}
	return fd;
}

/*
 * Returns a sentence about the process that has the port, valid until the next
 * call.  The search for the process reads the descriptors of all processes, so
 * the sentence is kept for HOLDER_MS, however often programs ask.
 */
static const char *held_by(void)
{
	struct thread_state *s = thread_state_get();
	uint64_t now_ms = monotonic_ms();
	char who[96];

	if (!s)
		return "port 4791 is held by another program";
	if (now_ms < s->held_until_ms)
		return s->held;
	s->held_until_ms = now_ms + HOLDER_MS;
	if (!port_holder_name(who, sizeof(who)))
		snprintf(who, sizeof(who), "another program");
	snprintf(s->held, sizeof(s->held), "port 4791 is held by %s", who);
	return s->held;
}

/* Does what other_version_has_port does.  That function looks at the listeners
 * of all users and at the descriptors of processes, and a waiting client makes
 * the broker ask in each turn.  So the answer is kept for HOLDER_MS, or until
 * the port is free. */
static bool other_version_may_hold(void)
{
	struct thread_state *s = thread_state_get();
	uint64_t now_ms = monotonic_ms();

	if (!s)
		return other_version_has_port();
	if (now_ms >= s->version_until_ms) {
		s->is_other_version = other_version_has_port();
		s->version_until_ms = now_ms + HOLDER_MS;
	}
	return s->is_other_version;
}

static void forget_version(void)
{
	struct thread_state *s = thread_state_get();

	if (s)
		s->version_until_ms = 0;
}

/* Returns a sentence about an open_bound that has failed with err; the sentence
 * is valid until the next call. */
static const char *no_socket(int err)
{
	return thread_state_say("the broker adverbd cannot open port 4791: %s; "
				"run adverb doctor",
				strerror(-err));
}

/* Does what reuseport_group_port does.  If the port is not free, *err is
 * -EADDRINUSE, or says why no socket can be opened. */
static enum reuseport_group_port look_at_port(const char **why, int *err)
{
	int fd = open_bound(false);

	*err = fd;
	if (fd >= 0) {
		close(fd);
		forget_version();
		return REUSEPORT_PORT_FREE;
	}
	*why = held_by();
	if (fd != -EADDRINUSE)
		*why = no_socket(fd);
	else if (other_version_may_hold())
		*why = "port 4791 is held by the broker of another version of "
		       "adverb";
	else
		fd = open_bound(true);
	if (fd < 0)
		return REUSEPORT_PORT_HELD;
	/* This socket is the last member of the group, so its close moves no
	 * index. */
	close(fd);
	*why = "port 4791 is held by programs whose broker has died; end "
	       "these programs (ss -ulnp shows them)";
	return REUSEPORT_PORT_OURS;
}

enum reuseport_group_port reuseport_group_port(const char **why)
{
	int err;

	return look_at_port(why, &err);
}

/* Returns a sentence that joins @what, the text of err, and @remedy.  The
 * sentence is valid until the next call. */
static const char *name_error(const char *what, int err, const char *remedy)
{
	return thread_state_say("%s: %s; %s", what, strerror(-err), remedy);
}

/* Returns a sentence about a steer_attach that has failed with err, although
 * the call for the first member has succeeded; the sentence is valid until the
 * next call of name_error. */
static const char *no_steering(int err)
{
	if (err == -ENOMEM)
		return "the kernel lacks memory to steer datagrams: end "
		       "programs, or raise net.core.optmem_max";
	return name_error("the kernel refuses to steer datagrams", err,
			  "run adverb doctor");
}

/* Opens the member's own socket of the port.  If the kernel cannot steer, which
 * shows at the first member, the whole group is relayed.  Returns 0, or -errno
 * with a sentence in *why. */
static int open_member(struct reuseport_group *g,
		       struct reuseport_group_member *m, const char **why)
{
	int err, on = 1;

	m->fd = open_bound(true);
	if (m->fd < 0) {
		*why = no_socket(m->fd);
		return m->fd;
	}
	err = g->may_steer ? steer_attach(m->fd, g->count, &g->key)
			   : -ENOPROTOOPT;
	/* The members' filters are locked, since clients have the sockets.  A
	 * successor attaches its program by member 0, which no client has. */
	if (!err && g->count)
		setsockopt(m->fd, SOL_SOCKET, SO_LOCK_FILTER, &on, sizeof(on));
	if (!err)
		return 0;
	if (!g->count) {
		g->is_relayed = true;
		return 0;
	}
	close(m->fd); /* the last member: no index moves */
	*why = no_steering(err);
	return err;
}

static int open_relay(struct reuseport_group_member *m, const char **why)
{
	int pair[2], err = relay_pair(pair);

	*why = "the broker adverbd lacks memory for a relay of datagrams: end "
	       "programs, or add memory";
	if (err)
		return err;
	m->relay_fd = pair[0];
	m->relay_most = RELAY_NO_BOUND;
	m->fd = pair[1];
	return 0;
}

/* Whether the limit on open files allows an fd store.  The kernel counts the
 * descriptors in the store as in flight (unix(7)), like those in messages that
 * clients have not read. */
static bool may_keep_store(void)
{
	struct rlimit files;

	return !getrlimit(RLIMIT_NOFILE, &files) &&
	       files.rlim_cur >= FEWEST_FOR_STORE;
}

/* Returns a sentence about an fd_store_put that has failed with err; the
 * sentence is valid until the next call of name_error.  For a limit on
 * descriptors the caller of reuseport_group_take has a sentence that names the
 * limit. */
static const char *no_place(int err)
{
	if (err == -ENOMEM || err == -ENOBUFS)
		return "the broker adverbd lacks memory for the fd store: end "
		       "programs, or add memory";
	return name_error("the broker adverbd cannot store a socket", err,
			  "end programs");
}

/*
 * Puts m, whose index is g->count, into the fd store.  Returns 0, also if there
 * is no store; or -errno with a sentence in *why, and then the caller closes m.
 * A successor reads the members from the store in order, and takes its count of
 * them for the index in the kernel's group.  So a member that is not in the
 * store may not stay in the group: the count would be wrong for later members,
 * and their datagrams would reach the wrong processes.
 */
static int keep_member(struct reuseport_group *g,
		       const struct reuseport_group_member *m, const char **why)
{
	int err;

	if (g->fd_store.fd < 0)
		return 0;
	err = fd_store_put(&g->fd_store, g->count,
			   (int[]){m->fd, m->page_fd, m->relay_fd});
	if (!err)
		return 0;
	if (!g->count) { /* a group without a store */
		fd_store_close(&g->fd_store);
		return 0;
	}
	/* Without the member, its index has no socket.  If this call fails,
	 * only datagrams for a class that no process has reach a wrong socket,
	 * whose process drops them. */
	if (!g->is_relayed)
		steer_attach(g->member[0].fd, g->count - 1, &g->key);
	*why = no_place(err);
	return err;
}

/* Closes a member that does not join the group.  Its socket is the last of the
 * port, so no index moves. */
static void close_member(const struct reuseport_group_member *m)
{
	close_one(m->fd);
	close_one(m->page_fd);
	close_one(m->relay_fd);
}

/* Opens the next member, whose index is g->count.  Returns 0, or -errno with a
 * sentence in *why. */
static int join_group(struct reuseport_group *g, const char **why)
{
	struct reuseport_group_member m = {.page_fd = -1, .relay_fd = -1};
	int err;

	/* The first member has index 0 only if no other socket is bound. */
	if (!g->count && look_at_port(why, &err) != REUSEPORT_PORT_FREE)
		return err;
	if (!g->count)
		steer_draw(&g->key, entropy());
	err = g->is_relayed ? open_relay(&m, why) : open_member(g, &m, why);
	if (err)
		return err;
	/* Without a store, a successor of this broker cannot take over the
	 * sockets. */
	if (!g->count && may_keep_store() && !fd_store_new(&g->fd_store))
		g->fd_store.ledger->key = g->key;
	else if (g->count)
		m.page_fd = shared_page_new();
	/* fd_store_put stores no relay_fd of a member without a page_fd.  A
	 * successor would have no relay to this member, and could send it no
	 * datagram. */
	if (m.relay_fd >= 0 && m.page_fd < 0) {
		*why = "the broker adverbd lacks memory for a page of "
		       "counters: end programs, or add memory";
		err = m.page_fd;
	} else {
		err = keep_member(g, &m, why);
	}
	if (err)
		close_member(&m);
	else
		g->member[g->count++] = m;
	return err;
}

bool reuseport_group_claim(struct reuseport_group *g)
{
	const char *why;
	int fd = g->count ? -EBUSY : open_bound(false);

	if (fd < 0)
		return false;
	close(fd);
	return !join_group(g, &why);
}

/* Returns the index of the member with this use that was released first; 0:
 * there is none. */
static uint32_t find_member(const struct reuseport_group *g,
			    enum reuseport_group_use use)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < g->count; i++) {
		const struct reuseport_group_member *m = &g->member[i];

		if (m->use == use &&
		    (!best || m->freed_ms < g->member[best].freed_ms))
			best = i;
	}
	return best;
}

/* Zeroes the page, if there is one, so that the next owner finds nothing of the
 * last owner.  False: the page cannot be zeroed. */
static bool renew_member(struct reuseport_group_member *m)
{
	return m->page_fd < 0 || shared_page_clear(m->page_fd, ++m->generation);
}

void reuseport_group_init(struct reuseport_group *g, bool may_steer)
{
	memset(g, 0, sizeof(*g));
	g->may_steer = may_steer;
	g->user = geteuid();
	fd_store_init(&g->fd_store);
}

/* Returns the index of a member for a process of the broker's own user, or
 * -errno with a sentence in *why.  The member's page may still have contents of
 * its last owner. */
static int choose_member(struct reuseport_group *g, const char **why)
{
	uint32_t i = find_member(g, REUSEPORT_FREE);
	int err;

	if (!i && other_user_may_join(g)) {
		err = join_group(g, why);
		if (!err)
			i = g->count - 1;
		else if (!find_member(g, REUSEPORT_RESTING))
			return err;
	}
	if (!i)
		i = find_member(g, REUSEPORT_RESTING);
	if (!i) {
		*why = REUSEPORT_GROUP_FULL;
		return -ENOSPC;
	}
	return (int)i;
}

/*
 * Does what choose_member does, and empties the member for its next owner.  If
 * the page of a member cannot be cleared, tries the other members.  Gives up if
 * the page of a new member cannot be cleared: there is no memory.
 */
static int take_member(struct reuseport_group *g, const char **why)
{
	uint32_t count = g->count;
	int i;

	do {
		struct reuseport_group_member *m;

		i = choose_member(g, why);
		if (i < 0)
			return i;
		m = &g->member[i];
		drain_socket(m->fd, DRAIN_MAX);
		if (renew_member(m))
			return i;
		m->use = REUSEPORT_UNCLEARED;
	} while ((uint32_t)i < count);
	*why = "the broker adverbd lacks memory to clear a page of counters: "
	       "end programs, or add memory";
	return -ENOMEM;
}

int reuseport_group_take(struct reuseport_group *g, uid_t user, pid_t pid,
			 uint64_t now_ms, const char **why, uint32_t *class)
{
	struct fd_store_entry owner;
	int i = g->count ? 0 : join_group(g, why);

	if (i < 0)
		return i;
	reuseport_group_tick(g, now_ms);
	i = user_is_same(user, g->user) ? take_member(g, why)
					: other_user_take(g, user, why);
	if (i < 0)
		return i;
	g->member[i].use = REUSEPORT_OWNED;
	g->member[i].user = user;
	owner = fd_store_owner(user, pid);
	owner.token = g->member[i].token;
	fd_store_note(&g->fd_store, (uint32_t)i, &owner);
	*class = steer_class_at(&g->key, (uint32_t)i);
	return 0;
}

static struct reuseport_group_member *find_owner(struct reuseport_group *g,
						 uint32_t class)
{
	uint32_t i = steer_index(&g->key, class);

	if (!class || class > STEER_CLASS_MAX || !g->count ||
	    g->member[i].use == REUSEPORT_NOBODYS)
		return NULL;
	return &g->member[i];
}

const struct reuseport_group_member *
reuseport_group_at(const struct reuseport_group *g, uint32_t class)
{
	return find_owner((struct reuseport_group *)(uintptr_t)g, class);
}

void reuseport_group_release(struct reuseport_group *g, uint32_t class,
			     uint64_t now_ms)
{
	struct reuseport_group_member *m = find_owner(g, class);

	if (!m)
		return;
	if (m->is_other_user) {
		other_user_leave(g, m);
	} else {
		/* The socket stays open, so its owner's memberships of
		 * multicast groups would stay too. */
		if (m->relay_fd < 0)
			member_leave_all(m->fd);
		drain_socket(m->fd, DRAIN_MAX);
		/* if this fails, take_member tries again */
		if (m->page_fd >= 0)
			shared_page_end(m->page_fd, ++m->generation);
	}
	m->use = REUSEPORT_RESTING;
	m->freed_ms = now_ms;
	fd_store_note(
		&g->fd_store, (uint32_t)(m - g->member),
		&(struct fd_store_entry){.user = m->user, .freed_ms = now_ms});
}

/* Whether these may be the descriptors of member `index`: any process that has
 * the store can put other descriptors there. */
static bool is_member(uint32_t index, const int fds[FD_STORE_MEMBER_FDS],
		      int own)
{
	return fd_check_is_receiver(fds[0], own) &&
	       (index || !fd_check_is_messages(fds[0])) &&
	       (fds[1] < 0 || shared_page_is(fds[1])) &&
	       (fds[2] < 0 || fd_check_is_messages(fds[2]));
}

/* Adds a member of the dead broker's group, and takes ownership of fds. */
static void adopt_member(struct reuseport_group *g,
			 const int fds[FD_STORE_MEMBER_FDS], uint64_t now_ms)
{
	struct fd_store_entry e = g->fd_store.ledger->at[g->count];
	struct reuseport_group_member m = {
		.fd = fds[0],
		.page_fd = fds[1],
		.relay_fd = fds[2],
		.relay_most = RELAY_NO_BOUND,
		.use = e.is_owned ? REUSEPORT_OWNED : REUSEPORT_RESTING,
		.user = g->user,
		.freed_ms = now_ms};

	if (m.page_fd >= 0)
		m.generation = shared_page_generation(m.page_fd);
	g->is_relayed |= m.relay_fd >= 0;
	g->member[g->count++] = m;
}

/* Adds all members that the fd store has.  Returns 0, or -errno: a member is
 * malformed, or cannot be received.  Without that member the indexes of this
 * group would differ from the kernel's. */
static int adopt_members(struct reuseport_group *g, int own, uint64_t now_ms)
{
	int fds[FD_STORE_MEMBER_FDS], err;

	while (!(err = fd_store_get(&g->fd_store, g->count, fds))) {
		if (!is_member(g->count, fds, own)) {
			for (int i = 0; i < FD_STORE_MEMBER_FDS; i++)
				close_one(fds[i]);
			return -EPROTO;
		}
		adopt_member(g, fds, now_ms);
	}
	return err == -ENOENT ? 0 : err;
}

/* Attaches this broker's BPF program to the adopted group, unless the group is
 * relayed.  If that fails for a group of member 0 alone, the kernel cannot
 * steer, and the group is relayed from now on.  Returns 0 or -errno. */
static int steer_adopted(struct reuseport_group *g)
{
	int err = g->is_relayed ? 0
				: steer_attach(g->member[0].fd, g->count - 1,
					       &g->key);

	if (err && g->count == 1) {
		g->is_relayed = true;
		err = 0;
	}
	return err;
}

int reuseport_group_adopt(struct reuseport_group *g, int fd_store_fd, int own,
			  uint64_t now_ms)
{
	int err = fd_store_open(&g->fd_store, fd_store_fd);

	if (err)
		return err;
	g->key = g->fd_store.ledger->key;
	err = steer_is_key(&g->key) ? adopt_members(g, own, now_ms) : -EPROTO;
	if (!err)
		err = g->count ? steer_adopted(g) : -ENOENT;
	if (err)
		reuseport_group_close(g);
	else
		other_user_adopt(g, now_ms);
	return err;
}

static void relay_one(struct reuseport_group *g,
		      const struct reuseport_group_member *m,
		      const struct udp_dgram *d)
{
	if (m && m->use == REUSEPORT_OWNED && m->relay_fd >= 0 &&
	    relay_send(m->relay_fd, m->relay_most, d))
		g->relayed++;
}

void reuseport_group_relay(struct reuseport_group *g, uint32_t class,
			   const struct udp_dgram *d)
{
	if (class)
		relay_one(g, find_owner(g, class), d);
	for (uint32_t i = 1; !class && i <= STEER_CLASS_MAX; i++)
		if (g->member[i].use == REUSEPORT_OWNED &&
		    (g->is_relayed || g->member[i].is_other_user))
			relay_one(g, &g->member[i], d);
}

static uint64_t socket_cookie(int fd)
{
	uint64_t value = 0;
	socklen_t length = sizeof(value);

	getsockopt(fd, SOL_SOCKET, SO_COOKIE, &value, &length);
	return value;
}

int reuseport_group_recognise(struct reuseport_group *g, uint32_t class,
			      uid_t user, pid_t pid, int fd, uint64_t token)
{
	struct reuseport_group_member *m = find_owner(g, class);
	struct fd_store_entry owner = fd_store_owner(user, pid);
	uint32_t i;
	int err;

	if (!m || m->use != REUSEPORT_OWNED || !user_is_same(user, m->user))
		return -ESTALE;
	i = (uint32_t)(m - g->member);
	if (m->is_other_user) {
		err = other_user_comes(g, m, token);
		if (err)
			return err;
		owner.token = m->token;
	} else if (fd < 0 || !socket_cookie(fd) ||
		   socket_cookie(fd) != socket_cookie(m->fd)) {
		return -ESTALE;
	}
	fd_store_note(&g->fd_store, i, &owner);
	return 0;
}

void reuseport_group_sent(struct reuseport_group *g, uint32_t class)
{
	struct reuseport_group_member *m = find_owner(g, class);

	if (m && m->is_other_user)
		other_user_sent(m);
}

bool reuseport_group_is_owned(const struct reuseport_group *g, uint32_t class)
{
	const struct reuseport_group_member *m = reuseport_group_at(g, class);

	return m && m->use == REUSEPORT_OWNED;
}

int reuseport_group_page(const struct reuseport_group *g, uint32_t class)
{
	const struct reuseport_group_member *m = reuseport_group_at(g, class);

	return m && m->use == REUSEPORT_OWNED ? m->page_fd : -1;
}

/* Lets a member whose page could not be cleared rest, so that take_member tries
 * it again after the others. */
static void rest_again(struct reuseport_group_member *m, uint64_t now_ms)
{
	if (m->use != REUSEPORT_UNCLEARED)
		return;
	m->use = REUSEPORT_RESTING;
	m->freed_ms = now_ms;
}

int reuseport_group_tick(struct reuseport_group *g, uint64_t now_ms)
{
	int next = -1;

	for (uint32_t i = 1; i <= STEER_CLASS_MAX; i++) {
		struct reuseport_group_member *m = &g->member[i];
		uint64_t rested;

		if (m->is_other_user)
			other_user_tick(g, m, now_ms);
		rest_again(m, now_ms);
		rested = now_ms - m->freed_ms;
		if (m->use != REUSEPORT_RESTING)
			continue;
		if (rested >= REUSEPORT_REST_MS) {
			drain_socket(m->fd, DRAIN_MAX);
			m->use = REUSEPORT_FREE;
		} else if (next < 0 ||
			   (int)(REUSEPORT_REST_MS - rested) < next) {
			next = (int)(REUSEPORT_REST_MS - rested);
		}
	}
	return next;
}

void reuseport_group_close(struct reuseport_group *g)
{
	for (uint32_t i = 0; i <= STEER_CLASS_MAX; i++) {
		struct reuseport_group_member *m = &g->member[i];

		if (i >= g->count && !m->is_other_user)
			continue;
		close_one(m->fd);
		close_one(m->page_fd);
		close_one(m->relay_fd);
		*m = (struct reuseport_group_member){.use = REUSEPORT_NOBODYS};
	}
	g->count = 0;
	/* the first member of a new group finds out whether the kernel steers
	 */
	g->is_relayed = false;
	fd_store_close(&g->fd_store);
}
