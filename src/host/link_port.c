/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/link_port.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "host/capture.h"
#include "host/link_send.h"
#include "util/fd_identity.h"

#define PORT_DOWN   1 /* PortState (IBTA 14.2.5.6) */
#define PHYS_POLLS  2 /* PortPhysicalState: Polling */
#define ALL_CHANGES (DATA_DEATH - 1)
#define ROUND	    64 /* the most packets that are taken at once */

size_t link_port_send(struct link_port *port, const struct engine_frame *frames,
		      size_t n)
{
	return link_ring_is_open(&port->ring)
		       ? link_ring_send(&port->ring, port->fd, frames, n)
		       : link_send(port->fd, port->burst, frames, n);
}

int link_port_full_fd(const struct link_port *port)
{
	return link_ring_is_open(&port->ring) ? port->ring.room_fd : port->fd;
}

bool link_port_wants_room(struct link_port *port)
{
	return !link_ring_is_open(&port->ring) ||
	       link_ring_wants_room(&port->ring);
}

void link_port_take(const struct link_port *port, struct engine *engine,
		    const uint8_t *bytes, size_t n, uint64_t now_ns)
{
	const struct engine_packet packet = {.bytes = bytes,
					     .len = n,
					     .device = port->device,
					     .port = port->number};

	capture_packet(NULL, 0, bytes, n);
	if (engine_rx_link(engine, &packet, now_ns))
		link_send_refused(port->fd, bytes, n);
}

/* Returns why the ring is broken.  -ECONNRESET: the fabric has ended.  A fabric
 * that ends closes the socket, and then frees the memory of the rings, which
 * this process then reads as zeros.  -EPROTO: the fabric, which still has the
 * socket, has written into the rings what no fabric writes. */
static int why_broken(const struct link_port *port)
{
	struct pollfd end = {.fd = port->fd, .events = 0};
	const struct timespec at_once = {0};

	/* The C library's function is a cancellation point. */
	syscall(SYS_ppoll, &end, 1, &at_once, NULL, 0);
	return end.revents & POLLHUP ? -ECONNRESET : -EPROTO;
}

int link_port_take_ring(struct link_port *port, struct engine *engine,
			uint64_t now_ns)
{
	const uint8_t *bytes;
	int count = 0;
	size_t n;

	if (!link_ring_is_open(&port->ring))
		return 0;
	while (count < ROUND && !engine_is_choked(engine) &&
	       link_ring_take(&port->ring, &bytes, &n)) {
		link_port_take(port, engine, bytes, n, now_ns);
		count++;
	}
	link_ring_release(&port->ring, port->fd);
	return link_ring_is_broken(&port->ring) ? why_broken(port) : count;
}

bool link_port_has_packets(const struct link_port *port)
{
	return link_ring_is_open(&port->ring) &&
	       packet_ring_has(&port->ring.in);
}

bool link_port_idle(struct link_port *port)
{
	return !link_ring_is_open(&port->ring) ||
	       link_ring_idle(&port->ring, port->fd);
}

bool link_port_is_ours(const struct link_port *port)
{
	return fd_identity_holds(port->fd) &&
	       (!link_ring_is_open(&port->ring) ||
		fd_identity_holds(port->ring.room_fd));
}

int link_port_hear(struct link_port *port, uint32_t changes)
{
	if (changes & ~(uint32_t)ALL_CHANGES)
		return -EPROTO;
	port->heard |= changes;
	return 0;
}

bool link_port_ask(struct link_port *port)
{
	if (!port->heard)
		return false;
	port->asked = port->heard;
	port->heard = 0;
	return true;
}

void link_port_show(struct link_port *port, struct engine *engine,
		    const struct fabric_port *now)
{
	struct hca_port values = {.lid = now->lid, .lmc = now->lmc};

	_Static_assert(sizeof(values.pkeys) == sizeof(now->pkeys),
		       "both have the whole table");
	memcpy(values.pkeys, now->pkeys, sizeof(values.pkeys));
	port->now = *now;
	port->shown |= port->asked;
	port->asked = 0;
	engine_port(engine, port->device, port->number, &values);
}

void link_port_take_down(struct link_port *port)
{
	port->now.state = PORT_DOWN;
	port->now.phys_state = PHYS_POLLS;
	port->shown |= DATA_STATE;
}

uint32_t link_port_take_changes(struct link_port *port)
{
	uint32_t shown = port->shown;

	port->shown = 0;
	return shown;
}
