/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric_request.h"

#include "fabric_process.h"

#include "fabric/fabric.h"
#include "fabric/fabric_client.h"
#include "util/bits.h"
#include "util/scm_rights.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define BUFFER_BYTES (1 << 20) /* SO_SNDBUF of both ends of a port */

/* Returns the node that the request names; NULL: there is none. */
static struct node *named_node(const struct fabric_server *s,
			       const struct fabric_proto *m)
{
	return *m->host ? fabric_find(s->fabric, m->host)
			: fabric_node(s->fabric, 0);
}

static void set_name(char to[FABRIC_PROTO_NAME], const char *from)
{
	snprintf(to, FABRIC_PROTO_NAME, "%s", from);
}

static int take_host(struct fabric_server *s, struct connection *c,
		     struct fabric_proto *m)
{
	if (c->held)
		return -EBUSY;
	c->held = fabric_take(s->fabric, m->host);
	if (!c->held)
		return *m->host ? -ENODEV : -EUSERS;
	set_name(m->host, fabric_id(c->held));
	return 0;
}

static int show_ca(const struct fabric_server *s, struct fabric_proto *m)
{
	const struct node *node = named_node(s, m);

	if (!node)
		return -ENODEV;
	fabric_show_ca(node, &m->ca);
	m->number = s->direct.is_allowed;
	set_name(m->text, fabric_description(node));
	return 0;
}

static int show_node(const struct fabric_server *s, struct fabric_proto *m)
{
	const struct node *node = fabric_node(s->fabric, m->number);

	if (!node)
		return -ENOENT;
	fabric_show_ca(node, &m->ca);
	m->number = fabric_groups(node);
	set_name(m->host, fabric_id(node));
	set_name(m->text, fabric_description(node));
	return 0;
}

static int show_deadlock(const struct fabric_server *s, struct fabric_proto *m)
{
	const char *text = deadlock_text(s->fabric);

	snprintf(m->said, sizeof(m->said), "%s", text ? text : "");
	return 0;
}

/* Makes the sockets of a port; ends[1] is the program's. */
static int make_sockets(int ends[2])
{
	int bytes = BUFFER_BYTES;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	for (int i = 0; i < 2; i++)
		setsockopt(ends[i], SOL_SOCKET, SO_SNDBUF, &bytes,
			   sizeof(bytes));
	return 0;
}

/* Sends a program the messages of its port until none is left or the port's
 * socket is full.  A message that the kernel refuses for another reason is
 * lost, as on a wire. */
static void flush_port(void *user, struct end *end)
{
	struct fabric_server *s = user;
	struct connection *c =
		CONTAINER_OF(fabric_owner(end), struct connection, reader);
	const uint8_t *message;
	size_t bytes;

	while ((message = fabric_fetch(end, &bytes))) {
		ssize_t n = send(c->port.fd, message, bytes,
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN) {
			fabric_pause(end);
			fabric_watch_change(s->epoll, &c->port,
					    EPOLLIN | EPOLLOUT);
			return;
		}
		if (n < 0 && errno == EMSGSIZE)
			fprintf(stderr,
				"adverb: a datagram of %zu bytes to a program "
				"is lost: it is longer than this machine's "
				"socket buffers take; raise the sysctl "
				"net.core.wmem_max.\n",
				bytes);
		fabric_fetched(end);
	}
}

static int open_port(struct fabric_server *s, struct connection *c,
		     const struct fabric_proto *m, int *given)
{
	struct node *node = named_node(s, m);
	int ends[2], err;

	if (!node || c->end)
		return node ? -EBUSY : -ENODEV;
	err = make_sockets(ends);
	if (err)
		return err;
	c->reader = (struct fabric_cm_reader){.read = flush_port, .user = s};
	c->end = fabric_open(node, m->number, &c->reader, &err);
	if (!err) {
		c->port.fd = ends[0];
		*given = ends[1];
		err = fabric_watch_add(s->epoll, &c->port, EPOLLIN);
		if (!err)
			return 0;
		fabric_connection_close_port(s, c);
	} else {
		close(ends[0]);
	}
	close(ends[1]);
	*given = -1;
	return err;
}

/* Returns the place of a port's data end; NULL: the port can have none. */
static struct fabric_data_socket *data_at(struct connection *c, uint32_t port)
{
	return port && port <= FABRIC_PROTO_PORTS ? &c->data[port - 1] : NULL;
}

/* Makes a data end at the port for the place d.  All data ends of a connection
 * are at one host.  NULL: *err says why, as -errno. */
static struct data_end *make_data_end(struct connection *c, struct node *node,
				      uint32_t port,
				      struct fabric_data_socket *d, int *err)
{
	const struct data_end *other = NULL;

	for (int i = 0; i < FABRIC_PROTO_PORTS && !other; i++)
		other = c->data[i].end;
	*err = -EBUSY;
	if (d->end || (other && data_node(other) != node))
		return NULL;
	return other ? data_open_beside(other, port, d, err)
		     : data_open(node, port, d, err);
}

static int open_data(struct fabric_server *s, struct connection *c,
		     struct fabric_proto *m, int *given)
{
	struct node *node = named_node(s, m);
	struct fabric_data_socket *d = data_at(c, m->number);
	struct data_end *end;
	int ends[2], err;

	if (!node || !d)
		return -ENODEV;
	err = make_sockets(ends);
	if (err)
		return err;
	end = make_data_end(c, node, m->number, d, &err);
	if (end)
		err = fabric_data_open(&s->data, d, ends[0], end);
	else
		close(ends[0]);
	if (err) {
		close(ends[1]);
		return err;
	}
	m->number = data_number(d->end);
	*given = ends[1];
	return 0;
}

/* Gives a data end rings, and takes the descriptor *brought for them. */
static int open_ring(struct fabric_server *s, struct connection *c,
		     const struct fabric_proto *m, int *brought, int *given)
{
	struct fabric_data_socket *d = data_at(c, m->number);
	int fd;

	if (!d || !d->end)
		return -EINVAL;
	fd = fabric_data_ring(&s->data, d, fabric_process_pid(c->control.fd),
			      *brought);
	if (fd < 0)
		return fd;
	*brought = -1;
	*given = fd;
	return 0;
}

/* Gives the connection's process a client of connection management. */
static int open_cm(struct fabric_server *s, struct connection *c,
		   const struct fabric_proto *m, int *given)
{
	int fd;

	if (c->cm)
		return -EBUSY;
	fd = fabric_cm_open(s->cm, m->gid, fabric_process_pid(c->control.fd),
			    &c->cm);
	if (fd < 0)
		return fd;
	*given = fd;
	return 0;
}

/* Watches for the end of the program, whose children may keep the connection
 * open.  Returns 0, also if this kernel has no descriptor for the process; or
 * -errno. */
static int watch_process(struct fabric_server *s, struct connection *c)
{
	int fd, err;

	if (c->process.fd >= 0)
		return 0;
	fd = fabric_process_open(c->control.fd);
	if (fd < 0)
		return fd == -EOPNOTSUPP ? 0 : fd;
	c->process.fd = fd;
	err = fabric_watch_add(s->epoll, &c->process, EPOLLIN);
	if (err) {
		close(fd);
		c->process.fd = -1;
	}
	return err;
}

/* Takes the descriptor *brought if the program may share its arena. */
static int share_arena(struct fabric_server *s, struct connection *c,
		       struct fabric_proto *m, int *brought, int *given)
{
	int fd = fcntl(s->direct.page_fd, F_DUPFD_CLOEXEC, 0), err;

	if (s->direct.is_allowed && fd < 0)
		return -errno;
	err = s->direct.is_allowed ? watch_process(s, c) : 0;
	if (!err)
		err = fabric_direct_share(&s->direct, &c->program, &m->arena,
					  fabric_process_pid(c->control.fd),
					  *brought);
	if (err) {
		if (fd >= 0)
			close(fd);
		return err;
	}
	*brought = -1;
	*given = fd;
	m->number = c->program.number;
	return 0;
}

/* Stores in m->reached which program the packets of a queue pair reach, if both
 * programs share their arenas. */
static int find_reached(struct fabric_server *s, struct connection *c,
			struct fabric_proto *m)
{
	const struct fabric_data_socket *d = data_at(c, m->number), *there;
	struct fabric_reached reached = {.changes = reach_changes(s->fabric)};
	struct data_end *end;

	if (!c->program.number || !d || !d->end)
		return -EINVAL;
	end = reach_find(d->end, &m->reach, &reached.peer);
	there = end ? data_owner(end) : NULL;
	if (!there || !there->watch.connection->program.number)
		return -EHOSTUNREACH;
	reached.program = there->watch.connection->program.number;
	m->reached = reached;
	return 0;
}

static int show_arena(struct fabric_server *s, const struct connection *c,
		      struct fabric_proto *m, int *given)
{
	const struct fabric_program *p =
		fabric_direct_find(&s->direct, m->number);

	if (!c->program.number || !p)
		return -ESRCH;
	*given = fcntl(p->wake_fd, F_DUPFD_CLOEXEC, 0);
	if (*given < 0)
		return -errno;
	m->arena = p->arena;
	return 0;
}

static int change_group(struct connection *c, const struct fabric_proto *m)
{
	const struct fabric_data_socket *d = data_at(c, m->number);

	if (!d || !d->end)
		return -EINVAL;
	return m->kind == FABRIC_PROTO_JOIN ? data_join(d->end, m->gid)
					    : data_leave(d->end, m->gid);
}

static int register_agent(const struct connection *c, struct fabric_proto *m)
{
	int id = c->end ? fabric_register(c->end, &m->agent) : -EINVAL;

	if (id < 0)
		return id;
	m->number = (uint32_t)id;
	return 0;
}

/* Does what the request *m asks, and makes *m the answer.  Sets *brought to -1
 * if the request's descriptor is used, and *given to a descriptor for the
 * program.  Returns 0 or -errno, the `err` of the answer. */
static int run_request(struct fabric_server *s, struct connection *c,
		       struct fabric_proto *m, int *brought, int *given)
{
	struct node *node;

	switch ((enum fabric_proto_kind)m->kind) {
	case FABRIC_PROTO_TAKE:
		return take_host(s, c, m);
	case FABRIC_PROTO_CA:
		return show_ca(s, m);
	case FABRIC_PROTO_PORT:
		node = named_node(s, m);
		return node ? fabric_show_port(node, m->number, &m->port)
			    : -ENODEV;
	case FABRIC_PROTO_OPEN:
		return open_port(s, c, m, given);
	case FABRIC_PROTO_REGISTER:
		return register_agent(c, m);
	case FABRIC_PROTO_UNREGISTER:
		return c->end ? fabric_unregister(c->end, m->number) : -EINVAL;
	case FABRIC_PROTO_SHOW:
		return show_node(s, m);
	case FABRIC_PROTO_STOP:
		s->stops = true;
		return 0;
	case FABRIC_PROTO_DATA:
		return open_data(s, c, m, given);
	case FABRIC_PROTO_JOIN:
	case FABRIC_PROTO_LEAVE:
		return change_group(c, m);
	case FABRIC_PROTO_CM:
		return open_cm(s, c, m, given);
	case FABRIC_PROTO_DEADLOCK:
		return show_deadlock(s, m);
	case FABRIC_PROTO_SHARE:
		return share_arena(s, c, m, brought, given);
	case FABRIC_PROTO_REACH:
		return find_reached(s, c, m);
	case FABRIC_PROTO_ARENA:
		return show_arena(s, c, m, given);
	case FABRIC_PROTO_RING:
		return open_ring(s, c, m, brought, given);
	}
	return -EOPNOTSUPP;
}

/* Returns false if the answer cannot be sent. */
static bool send_answer(const struct connection *c, struct fabric_proto *m,
			int given)
{
	return scm_rights_send(c->control.fd, m, sizeof(*m), &given, given >= 0,
			       0) == sizeof(*m);
}

static void answer_request(struct fabric_server *s, struct connection *c,
			   struct fabric_proto *m, int *brought)
{
	int given = -1;
	bool sent;

	m->host[FABRIC_PROTO_NAME - 1] = m->text[FABRIC_PROTO_NAME - 1] = '\0';
	m->err = run_request(s, c, m, brought, &given);
	sent = send_answer(c, m, given);
	if (given >= 0)
		close(given);
	if (!sent)
		fabric_connection_end(s, c);
}

void fabric_request_read(struct fabric_server *s, struct connection *c)
{
	struct fabric_proto m;
	bool is_cut;
	int brought;
	int n = fabric_client_receive(c->control.fd, &m, 0, &is_cut, &brought);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n != sizeof(m) || m.version != FABRIC_PROTO_VERSION)
		fabric_connection_end(s, c);
	else
		answer_request(s, c, &m, &brought);
	if (brought >= 0)
		close(brought);
}
