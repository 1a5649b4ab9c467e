/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric_connection.h"

#include "fabric/fabric.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* The most datagrams read from the port of a program that has ended. */
#define REST 1024

void fabric_connection_close_port(struct fabric_server *s, struct connection *c)
{
	if (c->port.fd < 0)
		return;
	s->has_closed = true;
	close(c->port.fd);
	c->port.fd = -1;
	fabric_close(c->end);
	c->end = NULL;
}

void fabric_connection_read_port(struct fabric_server *s, struct connection *c,
				 int most)
{
	for (int i = 0; i < most; i++) {
		/* MSG_TRUNC: n is the length of the whole message */
		ssize_t n =
			recv(c->port.fd, s->buffer, FABRIC_CONNECTION_MESSAGE,
			     MSG_DONTWAIT | MSG_TRUNC);

		if (n < 0 && errno == ECONNRESET)
			continue; /* the program left messages unread */
		if (n < 0)
			return;
		if (!n) { /* the program has closed its socket */
			fabric_connection_close_port(s, c);
			return;
		}
		/* a message that fabric_send refuses, for example one that is
		 * longer than the buffer, is lost, as on a wire */
		fabric_send(c->end, s->buffer, (size_t)n);
	}
}

void fabric_connection_end(struct fabric_server *s, struct connection *c)
{
	if (c->is_dead)
		return;
	if (c->port.fd >= 0)
		fabric_connection_read_port(s, c, REST);
	fabric_connection_close_port(s, c);
	for (int i = 0; i < FABRIC_PROTO_PORTS; i++)
		fabric_data_leave(&s->data, &c->data[i]);
	if (c->cm)
		fabric_cm_hang_up(c->cm);
	if (fabric_direct_leave(&s->direct, &c->program))
		data_tell_death(s->fabric);
	if (c->held)
		fabric_release(c->held);
	c->held = NULL;
	close(c->control.fd);
	if (c->process.fd >= 0)
		close(c->process.fd);
	c->control.fd = c->process.fd = -1;
	s->has_closed = true;
	c->is_dead = true;
}

void fabric_connection_free(struct fabric_server *s, struct connection *c)
{
	fabric_connection_end(s, c);
	for (int i = 0; i < FABRIC_PROTO_PORTS; i++)
		fabric_data_close(&s->data, &c->data[i]);
	list_remove(&c->list);
	s->connection_count--;
	free(c);
}

bool fabric_connection_has_data(const struct connection *c)
{
	for (int i = 0; i < FABRIC_PROTO_PORTS; i++)
		if (c->data[i].end)
			return true;
	return false;
}
