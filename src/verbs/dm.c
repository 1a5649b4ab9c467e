/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Device memory: a memfd that adverb maps and that the program accesses only by
 * ibv_memcpy_to_dm and ibv_memcpy_from_dm.  The list `all` has the device
 * memory of the process, so that each context of the process can import device
 * memory by its handle.  Lock: dm_lock, a leaf, for struct dm_memory and the
 * static variables.
 */
#include "verbs/dm.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "verbs/fail.h"
#include "verbs/ops.h"
#include "util/fd_identity.h"
#include "util/write_signals.h"

static struct lock dm_lock;
static struct list all = {&all, &all};
static uint32_t next_handle; /* the handle of the latest device memory */
static size_t taken;	     /* the bytes of all device memory */
static uint32_t open_files;  /* how many struct dm_memory have an open file */

/* At most this many files stay open for peers of this host to map.  If the file
 * of each allocation stayed open, the program could reach its limit of
 * descriptors. */
#define FILES_MAX 64

/* The lock is held across fork(2), so that the child has a consistent list and
 * a lock that the thread in the child can release. */
static void about_to_fork(void) ACQUIRE(&dm_lock)
{
	lock_take(&dm_lock);
}

static void has_forked(void) RELEASE(&dm_lock)
{
	lock_give(&dm_lock);
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(about_to_fork, has_forked, has_forked);
}

static struct v_dm *v_dm(struct ibv_dm *dm)
{
	return (struct v_dm *)(void *)dm;
}

/* Returns the first byte of an access, or NULL with a message.  An access
 * covers whole 4-byte words, as in the device memory of hardware adapters. */
static uint8_t *dm_at(struct ibv_dm *dm, uint64_t offset, size_t length)
{
	struct dm_memory *m = v_dm(dm)->memory;

	if (offset % 4 || length % 4 || length > m->length ||
	    offset > m->length - length) {
		v_fail(EINVAL, V_INPUT,
		       "ibv_memcpy_to_dm or ibv_memcpy_from_dm: the access is "
		       "outside the device memory, or its offset or length is "
		       "not a multiple of 4");
		return NULL;
	}
	return m->bytes + offset;
}

static int memcpy_to_dm(struct ibv_dm *dm, uint64_t offset, const void *from,
			size_t length)
{
	uint8_t *to = dm_at(dm, offset, length);

	if (!to)
		return EINVAL;
	memcpy(to, from, length);
	return 0;
}

static int memcpy_from_dm(void *to, struct ibv_dm *dm, uint64_t offset,
			  size_t length)
{
	const uint8_t *from = dm_at(dm, offset, length);

	if (!from)
		return EINVAL;
	memcpy(to, from, length);
	return 0;
}

/* Returns a new handle of m in this context; NULL: no memory is left.  The
 * caller counts the handle in m->holders. */
static struct v_dm *create_handle(struct ibv_context *context,
				  struct dm_memory *m)
{
	struct v_dm *dm = calloc(1, sizeof(*dm));

	if (!dm)
		return NULL;
	dm->memory = m;
	dm->base.context = context;
	dm->base.memcpy_to_dm = memcpy_to_dm;
	dm->base.memcpy_from_dm = memcpy_from_dm;
	dm->base.handle = m->handle;
	count_up(&v_context(context)->objects);
	return dm;
}

/* Closes the file, unless the program has closed it and reused its number.
 * close is a cancellation point, and a thread that is cancelled there would end
 * with the lock held. */
static void file_close(struct dm_memory *m) REQUIRES(&dm_lock)
{
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	fd_identity_close(m->fd);
	pthread_setcancelstate(cancel, NULL);
	m->fd = -1;
}

/* Removes one handle from the count of m, and frees m if no handle is left. */
static void drop_memory(struct dm_memory *m) REQUIRES(&dm_lock)
{
	if (--m->holders)
		return;
	list_remove(&m->link);
	taken -= m->length;
	munmap(m->bytes, m->length);
	if (m->fd >= 0) {
		file_close(m);
		open_files--;
	}
	free(m);
}

/* Returns 0 or -errno. */
static int map_memory(struct dm_memory *m, size_t length)
{
	struct write_signals held;
	int err;

	m->fd = fd_identity_note(memfd_create("adverb-dm", MFD_CLOEXEC));
	if (m->fd < 0)
		return -errno;
	m->bytes = MAP_FAILED;
	write_signals_hold(&held);
	err = ftruncate(m->fd, (off_t)length);
	write_signals_give(&held);
	if (!err)
		m->bytes = mmap(NULL, length, PROT_READ | PROT_WRITE,
				MAP_SHARED, m->fd, 0);
	if (m->bytes == MAP_FAILED) {
		err = -errno;
		fd_identity_close(m->fd);
	}
	m->length = length;
	return err;
}

static struct dm_memory *memory_new(size_t length)
{
	struct dm_memory *m = calloc(1, sizeof(*m));
	int err = m ? map_memory(m, length) : -ENOMEM;

	if (err) {
		free(m);
		errno = -err;
		return NULL;
	}
	m->holders = 1;
	lock_take(&dm_lock);
	m->handle = ++next_handle;
	list_push_tail(&all, &m->link);
	if (open_files < FILES_MAX)
		open_files++;
	else
		file_close(m);
	lock_give(&dm_lock);
	return m;
}

/* Takes `length` bytes of the DM_BYTES that the process may have.  Returns
 * false if fewer bytes are left.  A caller that fails later calls
 * unreserve_memory. */
static bool reserve_memory(size_t length)
{
	bool fits;

	lock_take(&dm_lock);
	fits = length <= DM_BYTES - taken;
	if (fits)
		taken += length;
	lock_give(&dm_lock);
	return fits;
}

static void unreserve_memory(size_t length)
{
	lock_take(&dm_lock);
	taken -= length;
	lock_give(&dm_lock);
}

struct ibv_dm *v_alloc_dm(struct ibv_context *context,
			  struct ibv_alloc_dm_attr *a)
{
	struct dm_memory *m;
	struct v_dm *dm;
	int err;

	if (a->comp_mask || !a->length || a->log_align_req > 12)
		return v_fail_null(EINVAL, V_INPUT,
				   "ibv_alloc_dm needs comp_mask 0, a length "
				   "and a log_align_req of at most 12");
	if (!reserve_memory(a->length))
		return v_fail_null(ENOMEM, V_LIMIT,
				   "the device memory of this process");
	m = memory_new(a->length);
	if (!m) {
		err = errno;
		unreserve_memory(a->length);
		return v_fail_null(err, V_SYSTEM, "ibv_alloc_dm fails");
	}
	dm = create_handle(context, m);
	if (dm)
		return &dm->base;
	lock_take(&dm_lock);
	drop_memory(m);
	lock_give(&dm_lock);
	return v_fail_null(ENOMEM, V_MEMORY, "ibv_alloc_dm");
}

static void free_handle(struct ibv_dm *dm)
{
	lock_take(&dm_lock);
	drop_memory(v_dm(dm)->memory);
	lock_give(&dm_lock);
	count_down(&v_context(dm->context)->objects);
	free(dm);
}

int v_free_dm(struct ibv_dm *dm)
{
	if (count_now(&v_dm(dm)->users))
		return v_fail(EBUSY, V_BUSY,
			      "ibv_free_dm: memory regions use the device "
			      "memory");
	free_handle(dm);
	return 0;
}

struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t handle)
{
	struct dm_memory *m = NULL;
	struct v_dm *dm = NULL;

	lock_take(&dm_lock);
	for (struct list *n = all.next; n != &all && !m; n = n->next) {
		m = CONTAINER_OF(n, struct dm_memory, link);
		if (m->handle != handle)
			m = NULL;
	}
	if (m)
		dm = create_handle(context, m);
	if (dm)
		m->holders++;
	lock_give(&dm_lock);
	if (m && !dm)
		return v_fail_null(ENOMEM, V_MEMORY, "ibv_import_dm");
	if (!m)
		return v_fail_null(ENOENT, V_INPUT,
				   "ibv_import_dm: this process has no device "
				   "memory with that handle; pass the member "
				   "`handle` of an ibv_dm");
	return &dm->base;
}

/* The function cannot fail with EBUSY as ibv_free_dm does, so a handle that
 * memory regions use stays until the last of them is deregistered. */
void ibv_unimport_dm(struct ibv_dm *dm)
{
	bool is_used;

	lock_take(&dm_lock);
	is_used = count_now(&v_dm(dm)->users);
	v_dm(dm)->is_given_back = is_used;
	lock_give(&dm_lock);
	if (!is_used)
		free_handle(dm);
}

void v_dm_drop(struct v_dm *dm)
{
	bool is_last;

	lock_take(&dm_lock);
	count_down(&dm->users);
	is_last = dm->is_given_back && !count_now(&dm->users);
	lock_give(&dm_lock);
	if (is_last)
		free_handle(&dm->base);
}

struct ibv_mr *v_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm,
			   uint64_t offset, size_t length, unsigned int access)
{
	struct dm_memory *m = v_dm(dm)->memory;
	struct ibv_mr *mr;

	if (!(access & IBV_ACCESS_ZERO_BASED) || length > m->length ||
	    offset > m->length - length)
		return v_fail_null(EINVAL, V_INPUT,
				   "ibv_reg_dm_mr needs IBV_ACCESS_ZERO_BASED "
				   "and a range inside the device memory");
	mr = ibv_reg_mr_iova2(pd, m->bytes + offset, length, 0, access);
	if (!mr)
		return NULL;
	mr->addr = NULL;
	v_mr(mr)->dm = v_dm(dm);
	count_up(&v_dm(dm)->users);
	return mr;
}
