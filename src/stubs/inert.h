/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bodies behind an inert library's exports, and the macros that give one
 * body its many versioned names.  Included once by each library's only file:
 * .symver binds names only in the file that holds the body.
 *
 * Arguments are left out: callers pass theirs in registers and no answer
 * depends on one (System V AMD64 ABI, 3.2.3).
 */
#ifndef STUBS_INERT_H
#define STUBS_INERT_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

int inert_errno(void);
int inert_negative(void);
long inert_minus_one(void);
void *inert_null(void);
bool inert_false(void);
void inert_void(void);

int inert_errno(void)
{
	return EOPNOTSUPP;
}

int inert_negative(void)
{
	return -EOPNOTSUPP;
}

long inert_minus_one(void)
{
	errno = EOPNOTSUPP;
	return -1;
}

void *inert_null(void)
{
	errno = EOPNOTSUPP;
	return NULL;
}

bool inert_false(void)
{
	return false;
}

void inert_void(void)
{
}

#define STUB(body, name, node)	   __asm__(".symver " #body "," #name node);

#define STUB_ERRNO(name, node)	   STUB(inert_errno, name, node)
#define STUB_NEGATIVE(name, node)  STUB(inert_negative, name, node)
#define STUB_MINUS_ONE(name, node) STUB(inert_minus_one, name, node)
#define STUB_NULL(name, node)	   STUB(inert_null, name, node)
#define STUB_FALSE(name, node)	   STUB(inert_false, name, node)
#define STUB_VOID(name, node)	   STUB(inert_void, name, node)

#endif
