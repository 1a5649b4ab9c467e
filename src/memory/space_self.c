/* SPDX-License-Identifier: BSD-2-Clause */
#include "memory/space_self.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "memory/copy_nofault.h"
#include "util/bits.h"
#include "util/check.h"
#include "util/fd_identity.h"
#include "util/write_signals.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

static struct space_self *self_of(struct space *s)
{
	return CONTAINER_OF(s, struct space_self, space);
}

static size_t fill_iovec(struct iovec *iov, const struct space_vec *v, size_t n,
			 uint64_t *total)
{
	size_t k = 0;

	CHECK(n <= SPACE_VEC_MAX);
	*total = 0;
	for (size_t i = 0; i < n; i++) {
		if (!v[i].bytes)
			continue;
		iov[k].iov_base = (void *)(uintptr_t)v[i].va;
		iov[k++].iov_len = v[i].bytes;
		*total += v[i].bytes;
	}
	return k;
}

/* Splits the last range so that its tail is stored last (hca/space.h). */
static size_t split_tail(struct iovec *iov, size_t n)
{
	struct iovec *last = &iov[n - 1];
	struct space_vec v = {(uintptr_t)last->iov_base, last->iov_len};
	uint64_t tail = space_tail(&v);

	if (tail == v.bytes)
		return n;
	last->iov_len = v.bytes - tail;
	last[1].iov_base = (uint8_t *)last->iov_base + last->iov_len;
	last[1].iov_len = tail;
	return n + 1;
}

/* Makes the memfd, unless it exists; false: that failed.  The caller holds the
 * lock.  Checks the descriptor each time: the program may have closed it, and
 * its number may now refer to another file. */
static bool open_memfd(struct space_self *s)
{
	if (fd_identity_holds(s->memfd))
		return true;
	fd_identity_close(s->memfd); /* removes the mark */
	s->memfd = fd_identity_note(memfd_create("adverb-copy", MFD_CLOEXEC));
	return s->memfd >= 0;
}

/* May a copy go by the memfd after vm_copy has failed with err?  It may if the
 * error is that of a filter (seccomp) and the memfd can be made, or if another
 * thread has made the memfd since. */
static bool has_fallback(struct space_self *s, int err)
{
	bool is_filtered = err == -EPERM || err == -ENOSYS, has;

	lock_take(&s->lock);
	has = s->memfd >= 0 || (is_filtered && open_memfd(s));
	lock_give(&s->lock);
	return has;
}

static int write_by_file(struct space_self *s, struct iovec *to, size_t n,
			 const void *src, uint64_t bytes)
{
	off_t at = 0;

	if (pwrite(s->memfd, src, bytes, 0) != (ssize_t)bytes)
		return -EFAULT;
	for (size_t i = 0; i < n; i++) {
		if (pread(s->memfd, to[i].iov_base, to[i].iov_len, at) !=
		    (ssize_t)to[i].iov_len)
			return -EFAULT;
		at += (off_t)to[i].iov_len;
	}
	return 0;
}

static int file_write(struct space_self *s, struct iovec *to, size_t n,
		      const void *src, uint64_t bytes)
{
	struct write_signals held;
	int err;

	lock_take(&s->lock);
	write_signals_hold(&held);
	err = open_memfd(s) ? write_by_file(s, to, n, src, bytes) : -EFAULT;
	write_signals_give(&held);
	lock_give(&s->lock);
	return err;
}

static int read_by_file(struct space_self *s, struct iovec *from, size_t n,
			void *dst, uint64_t bytes)
{
	off_t at = 0;

	for (size_t i = 0; i < n; i++) {
		if (pwrite(s->memfd, from[i].iov_base, from[i].iov_len, at) !=
		    (ssize_t)from[i].iov_len)
			return -EFAULT;
		at += (off_t)from[i].iov_len;
	}
	return pread(s->memfd, dst, bytes, 0) == (ssize_t)bytes ? 0 : -EFAULT;
}

static int file_read(struct space_self *s, struct iovec *from, size_t n,
		     void *dst, uint64_t bytes)
{
	struct write_signals held;
	int err;

	lock_take(&s->lock);
	write_signals_hold(&held);
	err = open_memfd(s) ? read_by_file(s, from, n, dst, bytes) : -EFAULT;
	write_signals_give(&held);
	lock_give(&s->lock);
	return err;
}

/* Copies from `buffer` (is_write) or to it.  Returns 0 or -errno.  The kernel
 * copies at most about 2 GiB in a call.  After a failure `target` has lost the
 * ranges that were copied: a caller that copies in another way fills it
 * again. */
static int vm_copy(struct space_self *s, struct iovec *target, size_t n,
		   void *buffer, uint64_t bytes, bool is_write)
{
	while (bytes) {
		struct iovec own = {buffer, bytes};
		ssize_t done;

		done = is_write ? process_vm_writev(s->pid, &own, 1, target, n,
						    0)
				: process_vm_readv(s->pid, &own, 1, target, n,
						   0);
		if (done <= 0)
			return done < 0 ? -errno : -EFAULT;
		buffer = (uint8_t *)buffer + done;
		bytes -= (uint64_t)done;
		for (; n && (size_t)done >= target->iov_len; n--)
			done -= (ssize_t)(target++)->iov_len;
		if (n) {
			target->iov_base = (uint8_t *)target->iov_base + done;
			target->iov_len -= (size_t)done;
		}
	}
	return 0;
}

/* Copies, and updates *crc with the bytes unless crc is NULL. */
static bool nofault_copy(void *to, const uint8_t *from, uint64_t bytes,
			 enum crc_kind kind, uint32_t *crc)
{
	return crc ? copy_nofault_crc_to(to, from, bytes, kind, crc)
		   : copy_nofault(to, from, bytes);
}

/* Copies the body, then the tail by one store (hca/space.h).  Updates *crc with
 * the bytes unless crc is NULL. */
static int nofault_write(const struct space_vec *to, size_t n, const void *src,
			 enum crc_kind kind, uint32_t *crc)
{
	const uint8_t *from = src;
	uint64_t tail = 0;

	for (size_t i = 0; i < n; i++) {
		uint8_t *at = (uint8_t *)(uintptr_t)to[i].va;

		if (!to[i].bytes)
			continue;
		if (i + 1 == n)
			tail = space_tail(&to[i]);
		if (!nofault_copy(at, from, to[i].bytes - tail, kind, crc))
			return -EFAULT;
		from += to[i].bytes;
		if (tail && !copy_nofault_store(at + to[i].bytes - tail,
						from - tail, tail))
			return -EFAULT;
	}
	if (tail && crc)
		*crc = crc_update(kind, *crc, from - tail, tail);
	return 0;
}

static int nofault_read(const struct space_vec *from, size_t n, void *dst)
{
	uint8_t *to = dst;

	for (size_t i = 0; i < n; to += from[i++].bytes)
		if (!copy_nofault(to, (const void *)(uintptr_t)from[i].va,
				  from[i].bytes))
			return -EFAULT;
	return 0;
}

/* Returns the number of ranges without the empty ones at the end, so that the
 * last range has the tail. */
static size_t without_empty_end(const struct space_vec *v, size_t n)
{
	while (n && !v[n - 1].bytes)
		n--;
	return n;
}

static int self_write(struct space *space, const struct space_vec *to, size_t n,
		      const void *src)
{
	struct space_self *s = self_of(space);
	struct iovec iov[SPACE_VEC_MAX + 1];
	void *bytes_of =
		(void *)(uintptr_t)src; /* process_vm_writev reads it */
	uint64_t bytes;
	size_t k;
	int err;

	if (copy_nofault_is_on())
		return nofault_write(to, without_empty_end(to, n), src, CRC_32,
				     NULL);
	k = fill_iovec(iov, to, n, &bytes);
	if (!bytes)
		return 0;
	k = split_tail(iov, k);
	if (s->memfd < 0) {
		err = vm_copy(s, iov, k, bytes_of, bytes, true);
		if (!err)
			return 0;
		if (!has_fallback(s, err))
			return -EFAULT;
		k = split_tail(iov, fill_iovec(iov, to, n, &bytes));
	}
	return file_write(s, iov, k, src, bytes);
}

static int self_write_crc(struct space *space, const struct space_vec *to,
			  size_t n, const void *src, enum crc_kind kind,
			  uint32_t *crc)
{
	uint64_t bytes = 0;

	if (copy_nofault_is_on())
		return nofault_write(to, without_empty_end(to, n), src, kind,
				     crc);
	for (size_t i = 0; i < n; i++)
		bytes += to[i].bytes;
	*crc = crc_update(kind, *crc, src, bytes);
	return self_write(space, to, n, src);
}

static int self_read(struct space *space, const struct space_vec *from,
		     size_t n, void *dst)
{
	struct space_self *s = self_of(space);
	struct iovec iov[SPACE_VEC_MAX + 1];
	uint64_t bytes;
	size_t k;
	int err;

	if (copy_nofault_is_on())
		return nofault_read(from, n, dst);
	k = fill_iovec(iov, from, n, &bytes);
	if (!bytes)
		return 0;
	if (s->memfd < 0) {
		err = vm_copy(s, iov, k, dst, bytes, false);
		if (!err)
			return 0;
		if (!has_fallback(s, err))
			return -EFAULT;
		k = fill_iovec(iov, from, n, &bytes);
	}
	return file_read(s, iov, k, dst, bytes);
}

static int self_read_crc(struct space *space, const struct space_vec *from,
			 size_t n, void *dst, enum crc_kind kind, uint32_t *crc)
{
	uint8_t *to = dst;
	uint64_t bytes = 0;

	if (copy_nofault_is_on()) {
		for (size_t i = 0; i < n; to += from[i++].bytes)
			if (!copy_nofault_crc(
				    to, (const void *)(uintptr_t)from[i].va,
				    from[i].bytes, kind, crc))
				return -EFAULT;
		return 0;
	}
	if (self_read(space, from, n, dst))
		return -EFAULT;
	for (size_t i = 0; i < n; i++)
		bytes += from[i].bytes;
	*crc = crc_update(kind, *crc, dst, bytes);
	return 0;
}

/* Makes the kernel prepare the page of va for writing; false: the page may not
 * be written, or the kernel does not know the request. */
static bool populates_page(uint64_t va)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return madvise((void *)(uintptr_t)(va & ~(page - 1)), page,
		       MADV_POPULATE_WRITE) == 0;
}

static bool is_writable(struct space_self *s, uint64_t va)
{
	struct space_vec v = {va, 8};
	uint64_t probe;

	if (self_read(&s->space, &v, 1, &probe))
		return false;
	/* Before Linux 5.14 populates_page fails even for the stack; there each
	 * readable page counts as writable. */
	return populates_page(va) || !populates_page((uintptr_t)&probe);
}

static int self_atomic(struct space *space, enum space_atomic op, uint64_t va,
		       uint64_t swap_add, uint64_t compare, uint64_t *old)
{
	uint64_t *p = (uint64_t *)(uintptr_t)va;

	if (va % 8 || !is_writable(self_of(space), va))
		return -EFAULT;
	switch (op) {
	case SPACE_CAS:
		__atomic_compare_exchange_n(p, &compare, swap_add, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
		*old = compare;
		break;
	case SPACE_FETCH_ADD:
		*old = __atomic_fetch_add(p, swap_add, __ATOMIC_SEQ_CST);
		break;
	}
	return 0;
}

static const struct space_ops self_ops = {
	.write = self_write,
	.read = self_read,
	.read_crc = self_read_crc,
	.write_crc = self_write_crc,
	.atomic = self_atomic,
};

void space_self_init(struct space_self *s)
{
	s->space.ops = &self_ops;
	s->pid = getpid();
	s->memfd = -1;
	lock_init(&s->lock);
}

void space_self_fini(struct space_self *s)
{
	fd_identity_close(s->memfd);
	lock_fini(&s->lock);
}
