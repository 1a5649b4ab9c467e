/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/client_send.h"

#include "util/fd_identity.h"

#include <errno.h>
#include <unistd.h>

int client_send_message(struct client *c, struct proto *m, const int *fds)
{
	m->magic = PROTO_MAGIC;
	m->version = PROTO_VERSION;
	m->serial = ++c->serial;
	if (!fd_identity_holds(c->unix_fd))
		return -EBADF;
	return proto_send(c->unix_fd, m, fds);
}

/* Are the arena and the eventfd still open under their numbers?  If the program
 * has closed them, the numbers may be those of files of the program, which
 * peers would then open or get from the broker. */
static bool can_share(const struct client *c)
{
	return fd_identity_holds(c->arena_fd) &&
	       fd_identity_holds(c->peer_wake_fd);
}

static struct proto_at own_arena(const struct client *c)
{
	return (struct proto_at){proto_pid_space(), (uint32_t)getpid(),
				 c->arena_fd};
}

static int send_hello(struct client *c, bool with_arena)
{
	struct proto m = {.kind = PROTO_HELLO, .value = c->class};
	int fds[PROTO_FDS], n = 0;

	if (c->udp_fd >= 0) {
		m.brings |= PROTO_FD_SOCKET;
		fds[n++] = c->udp_fd;
	}
	if (c->fd_store_fd >= 0) {
		m.brings |= PROTO_FD_STORE;
		fds[n++] = c->fd_store_fd;
	}
	if (with_arena) {
		m.arena = own_arena(c);
		m.brings |= PROTO_FD_WAKE;
		fds[n++] = c->peer_wake_fd;
	}
	return client_send_message(c, &m, fds);
}

/*
 * Sends PROTO_HELLO to a broker of another user, which takes no descriptor.  If
 * the client has no class yet, this broker makes the eventfd that wakes this
 * process.  A successor of this broker has no copy of the eventfd, so this
 * client does not tell the successor where the arena is.  Later connections to
 * this process then go by packets.
 */
static int send_hello_to_other(struct client *c)
{
	struct proto m = {
		.kind = PROTO_HELLO, .value = c->class, .token = c->token};

	c->hides_arena = false;
	if (!c->class && can_share(c))
		m.arena = own_arena(c);
	return client_send_message(c, &m, NULL);
}

/* Sends PROTO_HELLO to a broker of this user. */
static int send_hello_to_own(struct client *c)
{
	bool shares = can_share(c);
	int err = send_hello(c, shares);

	c->hides_arena = false;
	if (err == -ETOOMANYREFS && shares) {
		err = send_hello(c, false);
		c->hides_arena = !err;
	}
	return err;
}

int client_send_hello(struct client *c)
{
	return c->broker.is_other_user ? send_hello_to_other(c)
				       : send_hello_to_own(c);
}
