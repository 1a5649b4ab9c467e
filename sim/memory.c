/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/memory.h"

#include <errno.h>
#include <string.h>

#include "util/step.h"

static uint8_t *find_bytes(struct space *s, uint64_t va, uint64_t bytes)
{
	struct memory *m = (struct memory *)(void *)s;

	if (va < m->va || va - m->va > m->size ||
	    bytes > m->size - (va - m->va))
		return NULL;
	return m->bytes + (va - m->va);
}

static void copy_bytes(uint8_t *to, const uint8_t *from, uint64_t bytes)
{
	uint64_t half = bytes / 2;

	memcpy(to, from, half);
	STEP("half of the bytes are copied");
	memcpy(to + half, from + half, bytes - half);
}

static int mem_write(struct space *s, const struct space_vec *to, size_t n,
		     const void *src)
{
	const uint8_t *from = src;

	for (size_t i = 0; i < n; i++) {
		uint8_t *p = find_bytes(s, to[i].va, to[i].bytes);

		if (!p)
			return -EFAULT;
		copy_bytes(p, from, to[i].bytes);
		from += to[i].bytes;
	}
	return 0;
}

static int mem_read(struct space *s, const struct space_vec *from, size_t n,
		    void *dst)
{
	uint8_t *to = dst;

	for (size_t i = 0; i < n; i++) {
		uint8_t *p = find_bytes(s, from[i].va, from[i].bytes);

		if (!p)
			return -EFAULT;
		copy_bytes(to, p, from[i].bytes);
		to += from[i].bytes;
	}
	return 0;
}

static int mem_atomic(struct space *s, enum space_atomic op, uint64_t va,
		      uint64_t swap_add, uint64_t compare, uint64_t *old)
{
	uint8_t *p = find_bytes(s, va, 8);
	uint64_t value;

	if (!p)
		return -EFAULT;
	memcpy(old, p, 8);
	value = op == SPACE_FETCH_ADD ? *old + swap_add
		: *old == compare     ? swap_add
				      : *old;
	memcpy(p, &value, 8);
	return 0;
}

void memory_init(struct memory *m, uint8_t *bytes, uint64_t va, uint64_t size)
{
	static const struct space_ops ops = {mem_write, mem_read, mem_atomic};

	*m = (struct memory){{&ops}, bytes, va, size};
}

static struct space *owner_space(struct space *s)
{
	return &((struct memory_elsewhere *)(void *)s)->of->space;
}

static bool is_closed(const struct space *s)
{
	return ((const struct memory_elsewhere *)(const void *)s)->is_closed;
}

static int elsewhere_write(struct space *s, const struct space_vec *to,
			   size_t n, const void *src)
{
	if (is_closed(s))
		return -EPERM;
	return mem_write(owner_space(s), to, n, src);
}

static int elsewhere_read(struct space *s, const struct space_vec *from,
			  size_t n, void *dst)
{
	if (is_closed(s))
		return -EPERM;
	return mem_read(owner_space(s), from, n, dst);
}

static int elsewhere_atomic(struct space *s, enum space_atomic op, uint64_t va,
			    uint64_t swap_add, uint64_t compare, uint64_t *old)
{
	if (!((struct memory_elsewhere *)(void *)s)->is_mapped)
		return -EPERM;
	return mem_atomic(owner_space(s), op, va, swap_add, compare, old);
}

/* A write needs a system call unless both processes map the memory, as in
 * memory/space_other.c. */
static bool elsewhere_is_call(struct space *s, const struct space_vec *to,
			      size_t n)
{
	return !((struct memory_elsewhere *)(void *)s)->is_mapped;
}

void memory_elsewhere(struct memory_elsewhere *e, struct memory *of,
		      bool is_mapped)
{
	static const struct space_ops ops = {.write = elsewhere_write,
					     .read = elsewhere_read,
					     .atomic = elsewhere_atomic,
					     .is_call = elsewhere_is_call};

	*e = (struct memory_elsewhere){{&ops}, of, is_mapped, false};
}
