/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory regions. */
#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/instrument.h"
#include "verbs/dm.h"
#include "verbs/fail.h"
#include "verbs/object.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

/* Flags that check_access accepts besides the rights.  ibv_reg_mr,
 * ibv_reg_mr_iova2 and ibv_rereg_mr apply IBV_ACCESS_ZERO_BASED to iova; the
 * other flags have no effect in adverb. */
#define HARMLESS                                                               \
	(IBV_ACCESS_ZERO_BASED | IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE)
#define RIGHTS                                                                 \
	(IBV_ACCESS_MW_BIND | IBV_ACCESS_LOCAL_WRITE |                         \
	 IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |                    \
	 IBV_ACCESS_REMOTE_ATOMIC)
/* Flags that are stored in a row of the table of regions. */
#define KEPT (RIGHTS | IBV_ACCESS_ZERO_BASED)
/* Rights for which the kernel pins the pages of a region for writing. */
#define WRITING (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND)

/* Returns 0, or a positive errno with a message. */
static int check_access(unsigned int access)
{
	if (access & IBV_ACCESS_ON_DEMAND)
		return v_fail(EOPNOTSUPP, V_NOT_SUPPORTED,
			      "registration on demand (ODP)");
	if (access & ~(unsigned int)(HARMLESS | RIGHTS))
		return v_fail(EOPNOTSUPP, V_ACCESS,
			      "an access flag is unknown; leave the flag out");
	/* IBTA 10.6.3.1 (C10-39) */
	if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
	    !(access & IBV_ACCESS_LOCAL_WRITE))
		return v_fail(EINVAL, V_ACCESS,
			      "IBV_ACCESS_REMOTE_WRITE and _REMOTE_ATOMIC need "
			      "IBV_ACCESS_LOCAL_WRITE; add the flag");
	return 0;
}

/*
 * Returns whether the page of this address is mapped, or true if a sandbox
 * refuses the system call.  msync(2) with MS_ASYNC does nothing but this check.
 * mincore(2) would be the obvious call, but systemd's filter @system-service
 * kills a process for mincore.  libc's msync is not called, since that function
 * is a cancellation point.
 */
static bool is_mapped(uintptr_t at)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	unsigned char in_core;

	/* valgrind treats msync's range as memory that is read, and reports
	 * uninitialised bytes. */
	if (instrument_by_valgrind())
		return !mincore((void *)(at & ~(page - 1)), page, &in_core) ||
		       errno != ENOMEM;
	return !syscall(SYS_msync, at & ~(page - 1), page, MS_ASYNC) ||
	       errno != ENOMEM;
}

/*
 * Returns whether the program may write the page of this address, or true if
 * that is unknown.  The futex operation ORs 0 into a word of the page in one
 * atomic step, so that no thread sees a change.  If the page is shared
 * copy-on-write, the program gets a copy of its own, as it does when a kernel
 * driver pins the page.  The operation also has to compare the word with a
 * number, here -2048; if the word has that value, a waiter for the word wakes
 * without a cause, which futex(2) allows.
 */
static bool is_writable(uintptr_t at)
{
	const uint32_t add_nothing =
		(uint32_t)FUTEX_OP_OR << 28 | FUTEX_OP_CMP_EQ << 24 | 0x800;
	uint32_t unused = 0;

	/* valgrind reports a word that is uninitialised. */
	if (instrument_by_valgrind())
		return true;
	return syscall(SYS_futex, &unused, FUTEX_WAKE_OP_PRIVATE, 0, NULL,
		       at & ~(uintptr_t)3, add_nothing) >= 0 ||
	       errno != EFAULT;
}

static bool has_pages(uintptr_t first, uintptr_t last)
{
	return is_mapped(first) && is_mapped(last);
}

/* Checks the first and the last byte of a range, which finds a stale pointer, a
 * wrong length, or read-only memory for which `access` has a right of WRITING.
 * Returns 0, or a positive errno with a message. */
static int check_range(const void *addr, size_t length, unsigned int access)
{
	uintptr_t at = (uintptr_t)addr, last = at + length - 1;
	bool is_fit;

	if (!length)
		return 0;
	if (last < at)
		return v_fail(EINVAL, V_INPUT,
			      "the memory to register exceeds the address "
			      "space; check address and length");
	is_fit = access & WRITING ? is_writable(at) && is_writable(last)
				  : has_pages(at, last);
	if (is_fit && !instrument_by_valgrind())
		return 0;
	if (!has_pages(at, last))
		return v_fail(EFAULT, V_ACCESS,
			      "the address range is not mapped; check address "
			      "and length");
	return is_fit ? 0
		      : v_fail(EFAULT, V_ACCESS,
			       "the memory is read-only, but the access flags "
			       "ask for writing; leave out "
			       "IBV_ACCESS_LOCAL_WRITE and _MW_BIND, or map "
			       "the memory with PROT_WRITE");
}

/* Adds a row to the table of regions.  Returns the row, or NULL and errno with
 * a message. */
static struct mr *row_new(struct v_context *c, struct v_pd *pd, void *addr,
			  size_t length, uint64_t iova, uint32_t access)
{
	uint32_t share = host_share(c->host, addr, length);
	struct mr *row;

	host_lock(c->host);
	row = mr_new(host_hca(c->host), pd->number, (uintptr_t)addr, length,
		     iova, access & KEPT);
	if (row)
		row->share = share;
	host_unlock(c->host);
	if (row)
		return row;
	host_unshare(c->host, share);
	return v_fail_null(ENOMEM, V_LIMIT, "the number of memory regions");
}

static access_set keys_of(const struct mr *row)
{
	return access_key(row->lkey) | access_key(row->rkey);
}

/* Removes a row, and waits until each peer of this host that has looked the row
 * up has ended its copy.  Returns 0, or EBUSY if windows are bound to the row,
 * with a message that begins with `call`. */
static int row_free(struct v_context *c, struct mr *row, const char *call)
{
	access_set keys = keys_of(row);
	uint32_t share = row->share;
	int err;

	host_lock(c->host);
	err = -mr_free(host_hca(c->host), row);
	host_unlock(c->host);
	host_await_accesses(c->host, keys);
	if (err)
		return v_fail(err, V_BUSY, call);
	host_unshare(c->host, share);
	return 0;
}

static void show_row(struct v_mr *m, void *addr, size_t length)
{
	m->base.addr = addr;
	m->base.length = length;
	m->base.lkey = m->mr->lkey;
	m->base.rkey = m->mr->rkey;
	m->base.handle = m->mr->lkey;
}

static struct ibv_mr *register_region(struct ibv_pd *pd, void *addr,
				      size_t length, uint64_t iova,
				      unsigned int access)
{
	struct v_context *c = v_context(pd->context);
	struct v_mr *m;
	int err;

	if (!v_is_ours(c))
		return v_fail_null(EPERM, V_FORKED, "ibv_reg_mr");
	err = check_access(access);
	if (!err)
		err = check_range(addr, length, access);
	if (err) {
		errno = err;
		return NULL;
	}
	m = calloc(1, sizeof(*m));
	if (!m)
		return v_fail_null(ENOMEM, V_MEMORY, "ibv_reg_mr");
	m->mr = row_new(c, v_pd(pd), addr, length, iova, access);
	if (!m->mr) {
		free(m);
		return NULL;
	}
	m->iova = iova;
	m->access = access;
	m->base.context = pd->context;
	m->base.pd = pd;
	show_row(m, addr, length);
	count_up(&v_pd(pd)->users);
	count_up(&c->objects);
	return &m->base;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
			  int access)
{
	uint64_t iova = access & IBV_ACCESS_ZERO_BASED ? 0 : (uintptr_t)addr;

	return register_region(pd, addr, length, iova, (unsigned int)access);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length,
			       uint64_t iova, int access)
{
	return register_region(pd, addr, length, iova, (unsigned int)access);
}

/* The header's inline function for ibv_reg_mr calls this function, too, with
 * iova equal to addr, if `access` is no constant or has an optional flag. */
struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
				uint64_t iova, unsigned int access)
{
	if ((access & IBV_ACCESS_ZERO_BASED) && iova == (uintptr_t)addr)
		iova = 0;
	return register_region(pd, addr, length, iova, access);
}

/*
 * Changes the rights of a region, which keeps its keys.  The store of the
 * rights comes before host_await_accesses loads the peers' access slots, by the
 * fence in access_scan_begin.  Without that order a peer could use the old
 * rights after this function has returned.
 */
static int change_access(struct v_context *c, struct v_mr *m, uint32_t access)
{
	uint32_t kept = (m->mr->access & ~(uint32_t)RIGHTS) | (access & RIGHTS);

	host_lock(c->host);
	__atomic_store_n(&m->mr->access, kept, __ATOMIC_RELEASE);
	host_unlock(c->host);
	host_await_accesses(c->host, keys_of(m->mr));
	m->access = access;
	return 0;
}

static int rereg_fail(int err, int answer)
{
	errno = err;
	return answer;
}

/*
 * Finds the errors for which ibv_rereg_mr returns IBV_REREG_MR_ERR_INPUT, by
 * which the caller learns that the region is unchanged.  Returns 0, or EINVAL
 * with a message.
 */
static int rereg_check(const struct v_mr *m, int flags, const struct ibv_pd *pd,
		       const void *addr, size_t length, int access)
{
	if (m->dm || m->is_imported)
		return v_fail(EINVAL, V_INPUT,
			      "ibv_rereg_mr does not take a region of device "
			      "memory or an imported region; register a new "
			      "region");
	if (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED)
		return v_fail(EINVAL, V_INPUT,
			      "ibv_rereg_mr: a bit of flags is unknown; use "
			      "only IBV_REREG_MR_CHANGE_*");
	if ((flags & IBV_REREG_MR_CHANGE_PD) && !pd)
		return v_fail(EINVAL, V_INPUT,
			      "ibv_rereg_mr: IBV_REREG_MR_CHANGE_PD needs a "
			      "protection domain");
	if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) && (!length || !addr))
		return v_fail(EINVAL, V_INPUT,
			      "ibv_rereg_mr: IBV_REREG_MR_CHANGE_TRANSLATION "
			      "needs an address and a length");
	if (access && !(flags & IBV_REREG_MR_CHANGE_ACCESS))
		return v_fail(EINVAL, V_INPUT,
			      "ibv_rereg_mr: access other than 0 needs "
			      "IBV_REREG_MR_CHANGE_ACCESS");
	return 0;
}

/*
 * Gives a region a new row, and with it new keys.  The old row is removed after
 * the new row is complete, so that no peer finds a row that is half changed.
 * Returns 0, or a positive errno with a message; then nothing has changed.
 */
static int replace_row(struct v_context *c, struct v_mr *m, struct v_pd *pd,
		       void *addr, size_t length, uint64_t iova,
		       uint32_t access)
{
	struct mr *row = row_new(c, pd, addr, length, iova, access);
	int err;

	if (!row)
		return errno;
	err = row_free(c, m->mr,
		       "ibv_rereg_mr: memory windows are bound to the region");
	if (err) {
		row_free(c, row, "ibv_rereg_mr");
		return err;
	}
	m->mr = row;
	m->iova = iova;
	m->access = access;
	show_row(m, addr, length);
	return 0;
}

/* Changes the region as flags say.  Returns 0, or a positive errno with a
 * message. */
static int reregister_region(struct v_context *c, struct v_mr *m, int flags,
			     struct ibv_pd *pd, void *addr, size_t length,
			     uint32_t access)
{
	const uint32_t zero_based = IBV_ACCESS_ZERO_BASED;
	bool moved = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
	uint64_t iova = moved ? (uintptr_t)addr : m->iova;
	int err;

	/* IBV_ACCESS_ZERO_BASED determines the first iova of the region, which
	 * only a new address changes. */
	if (!moved)
		access = (access & ~zero_based) | (m->access & zero_based);
	err = check_access(access);
	if (!err && moved)
		err = check_range(addr, length, access);
	else if (!err && (access & WRITING) && !(m->access & WRITING))
		err = check_range(m->base.addr, m->base.length, access);
	if (err)
		return err;
	if (flags == IBV_REREG_MR_CHANGE_ACCESS)
		return change_access(c, m, access);
	if (moved && (access & IBV_ACCESS_ZERO_BASED))
		iova = 0;
	if (!moved) {
		addr = m->base.addr;
		length = m->base.length;
	}
	err = replace_row(c, m, v_pd(pd), addr, length, iova, access);
	if (err)
		return err;
	count_up(&v_pd(pd)->users);
	v_pd_drop(v_pd(m->base.pd));
	m->base.pd = pd;
	return 0;
}

int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr,
		 size_t length, int access)
{
	struct v_context *c = v_context(mr->context);
	struct v_mr *m = v_mr(mr);
	int err;

	if (!v_is_ours(c))
		return rereg_fail(v_fail(EPERM, V_FORKED, "ibv_rereg_mr"),
				  IBV_REREG_MR_ERR_CMD);
	err = rereg_check(m, flags, pd, addr, length, access);
	if (err)
		return rereg_fail(err, IBV_REREG_MR_ERR_INPUT);
	if (!flags)
		return rereg_fail(
			v_fail(EINVAL, V_INPUT,
			       "ibv_rereg_mr needs flags other than 0"),
			IBV_REREG_MR_ERR_CMD);
	err = reregister_region(
		c, m, flags, flags & IBV_REREG_MR_CHANGE_PD ? pd : mr->pd, addr,
		length,
		flags & IBV_REREG_MR_CHANGE_ACCESS ? (uint32_t)access
						   : m->access);
	return err ? rereg_fail(err, IBV_REREG_MR_ERR_CMD) : 0;
}

void v_mr_drop(struct v_mr *m)
{
	if (m->dm)
		v_dm_drop(m->dm);
	if (m->is_imported)
		count_down(&v_pd(m->base.pd)->imports);
	v_pd_drop(v_pd(m->base.pd));
	count_down(&v_context(m->base.context)->objects);
	free(m);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	struct v_context *c = v_context(mr->context);
	int err;

	if (!v_is_ours(c))
		return v_fail(EPERM, V_FORKED, "ibv_dereg_mr");
	err = row_free(c, v_mr(mr)->mr,
		       "ibv_dereg_mr: memory windows are bound to the region");
	if (!err)
		v_mr_drop(v_mr(mr));
	return err;
}
