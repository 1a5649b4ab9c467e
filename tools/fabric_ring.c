/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric_ring.h"

#include "broker/fd_check.h"
#include "util/bits.h"
#include "util/memfile.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

/* Makes a memory file for both rings.  Returns its descriptor or -errno. */
static int make_file(void)
{
	int err, fd = memfile_new("adverb-ring", PACKET_RING_FILE);

	if (fd < 0)
		return fd;
	err = memfile_seal(fd);
	if (!err)
		return fd;
	close(fd);
	return err;
}

/* Sets an eventfd to 0.  RWF_NOWAIT keeps the call from waiting even if the
 * program has cleared O_NONBLOCK, a flag that the descriptors of both processes
 * share.  Returns 0 or -errno. */
static int empty_eventfd(int fd)
{
	uint64_t count;
	struct iovec part = {&count, sizeof(count)};

	return preadv2(fd, &part, 1, -1, RWF_NOWAIT) < 0 && errno != EAGAIN
		       ? -errno
		       : 0;
}

static bool has_quota(const struct list *all, int pid)
{
	int count = 0, its = 0;

	list_for_each (l, all) {
		count++;
		its += CONTAINER_OF(l, struct fabric_ring, list)->pid == pid;
	}
	return count < FABRIC_RING_ALL &&
	       its < (pid ? FABRIC_RING_EACH : FABRIC_RING_UNSEEN);
}

/* Checks whether rings may be made with this eventfd.  Returns 0 or -errno, as
 * fabric_ring_open does. */
static int judge_request(const struct fabric_ring *r, const struct list *all,
			 int pid, int room_fd)
{
	if (r->memory)
		return -EBUSY;
	if (!has_quota(all, pid))
		return -ENOBUFS;
	if (room_fd < 0 || !fd_check_is_wake(room_fd))
		return -EINVAL;
	/* kernels before Linux 5.8 refuse this */
	return empty_eventfd(room_fd);
}

static int map_file(struct fabric_ring *r, int fd)
{
	void *memory = mmap(NULL, PACKET_RING_FILE, PROT_READ | PROT_WRITE,
			    MAP_SHARED, fd, 0);

	if (memory == MAP_FAILED)
		return -ENOMEM;
	r->memory = memory;
	packet_ring_init_in(&r->in, memory);
	packet_ring_init_out(&r->out, (uint8_t *)memory + PACKET_RING_BYTES);
	return 0;
}

int fabric_ring_open(struct fabric_ring *r, struct list *all, int pid,
		     int room_fd)
{
	int fd, err = judge_request(r, all, pid, room_fd);

	if (err)
		return err;
	fd = make_file();
	if (fd < 0)
		return fd;
	err = map_file(r, fd);
	if (err) {
		close(fd);
		return err;
	}
	r->pid = pid;
	r->room_fd = room_fd;
	list_init(&r->list);
	list_push_tail(all, &r->list);
	return fd;
}

void fabric_ring_close(struct fabric_ring *r)
{
	if (!r->memory)
		return;
	fabric_ring_tell_room(r);
	madvise(r->memory, PACKET_RING_FILE, MADV_REMOVE);
	munmap(r->memory, PACKET_RING_FILE);
	close(r->room_fd);
	list_remove(&r->list);
	memset(r, 0, sizeof(*r));
}

void fabric_ring_tell_room(const struct fabric_ring *r)
{
	empty_eventfd(r->room_fd);
}
