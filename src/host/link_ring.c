/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/link_ring.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "broker/fd_check.h"
#include "fabric/fabric_client.h"
#include "host/capture.h"
#include "log/env.h"
#include "util/fd_identity.h"

#define EVENTFD_MOST (UINT64_MAX - 1) /* the limit of its count */

void link_ring_init(struct link_ring *r)
{
	memset(r, 0, sizeof(*r));
	r->room_fd = -1;
}

/* Wakes the fabric.  If the socket is full, the fabric finds messages there
 * anyway.  If the kernel has no memory for the message now, the wake-up is
 * owed: the fabric has no other reason to look at the ring. */
static void wake_fabric(struct link_ring *r, int fd)
{
	const struct fabric_proto_news news = {.changes = DATA_RING};

	r->owes_wake = false;
	if (!fd_identity_holds(fd))
		return;
	/* The C library's send is a cancellation point. */
	if (syscall(SYS_sendto, fd, &news, sizeof(news),
		    MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0) < 0)
		r->owes_wake = errno == ENOBUFS || errno == ENOMEM;
}

/* Maps the rings.  The child of a fork does not get them, since two processes
 * must not use one ring.  Returns 0, or -ENOMEM. */
static int map_rings(struct link_ring *r, int fd)
{
	void *memory = mmap(NULL, PACKET_RING_FILE, PROT_READ | PROT_WRITE,
			    MAP_SHARED, fd, 0);

	if (memory == MAP_FAILED)
		return -ENOMEM;
	if (madvise(memory, PACKET_RING_FILE, MADV_DONTFORK)) {
		munmap(memory, PACKET_RING_FILE);
		return -ENOMEM;
	}
	r->memory = memory;
	packet_ring_init_out(&r->out, memory);
	packet_ring_init_in(&r->in, (uint8_t *)memory + PACKET_RING_BYTES);
	return 0;
}

/* Asks for the rings, and maps them.  Returns 0 or -errno. */
static int get_rings(struct link_ring *r, int control, struct fabric_proto *m)
{
	int fd = -1, err;

	m->kind = FABRIC_PROTO_RING;
	err = fabric_client_bring(control, m, r->room_fd, &fd);
	if (err)
		return err;
	err = fd_check_is_sealed(fd, PACKET_RING_FILE) ? map_rings(r, fd)
						       : -EPROTO;
	if (fd >= 0)
		close(fd);
	return err;
}

/* Does err mean only that this data end gets no rings, while the connection is
 * still good? */
static bool is_refusal(int err)
{
	return err != -EPROTO && err != -ECONNRESET && err != -EPIPE &&
	       err != -ETIMEDOUT;
}

static void drop_room_fd(struct link_ring *r)
{
	fd_identity_close(r->room_fd);
	r->room_fd = -1;
}

int link_ring_open(struct link_ring *r, int control, int fd,
		   struct fabric_proto *m)
{
	int err;

	if (env_is_without(ENV_RINGS))
		return 0;
	r->room_fd = fd_identity_note(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (r->room_fd < 0)
		return 0;
	err = get_rings(r, control, m);
	if (!err) {
		/* from this message on the fabric uses the rings */
		wake_fabric(r, fd);
		return 0;
	}
	drop_room_fd(r);
	return is_refusal(err) ? 0 : err;
}

void link_ring_close(struct link_ring *r, bool is_child)
{
	if (r->memory && !is_child)
		munmap(r->memory, PACKET_RING_FILE);
	drop_room_fd(r);
	link_ring_init(r);
}

bool link_ring_is_open(const struct link_ring *r)
{
	return r->memory;
}

static void publish_packets(struct link_ring *r, int fd)
{
	if (packet_ring_publish(&r->out) || r->owes_wake)
		wake_fabric(r, fd);
}

static bool put_frame(struct link_ring *r, const struct engine_frame *f)
{
	size_t n = f->head_bytes + f->len;
	uint8_t *room = packet_ring_room(&r->out, n);

	if (!room)
		return false;
	memcpy(room, f->head, f->head_bytes);
	memcpy(room + f->head_bytes, f->bytes, f->len);
	packet_ring_put(&r->out, n);
	if (capture_is_open())
		capture_packet(f->head, f->head_bytes, f->bytes, f->len);
	return true;
}

size_t link_ring_send(struct link_ring *r, int fd,
		      const struct engine_frame *frames, size_t n)
{
	size_t sent = 0;

	/* A link with a broken ring is about to end, and its frames are lost.
	 */
	while (sent < n && (put_frame(r, &frames[sent]) || r->out.is_broken))
		sent++;
	publish_packets(r, fd);
	return sent;
}

bool link_ring_wants_room(struct link_ring *r)
{
	uint64_t count = EVENTFD_MOST;

	/* If the eventfd's count is at the limit already, the write fails, and
	 * the count stays there. */
	if (fd_identity_holds(r->room_fd))
		syscall(SYS_write, r->room_fd, &count, sizeof(count));
	packet_ring_want_room(&r->out);
	return !packet_ring_room(&r->out, LRH_FRAME_MAX) && !r->out.is_broken;
}

bool link_ring_take(struct link_ring *r, const uint8_t **bytes, size_t *n)
{
	const uint8_t *p = packet_ring_next(&r->in, sizeof(r->packet), n);

	if (!p)
		return false;
	memcpy(r->packet, p, *n);
	*bytes = r->packet;
	return true;
}

void link_ring_release(struct link_ring *r, int fd)
{
	if (packet_ring_release(&r->in) || r->owes_wake)
		wake_fabric(r, fd);
}

bool link_ring_idle(struct link_ring *r, int fd)
{
	if (r->owes_wake)
		wake_fabric(r, fd);
	return packet_ring_idle(&r->in) && !r->owes_wake;
}

bool link_ring_is_broken(const struct link_ring *r)
{
	return r->in.is_broken || r->out.is_broken;
}
