/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The function bodies of an inert library, and the macros that give one body
 * many versioned names.  The only file of each library includes this header:
 * .symver defines a name only in the file that has the body.
 *
 * The functions declare no parameters: callers pass arguments in registers, and
 * no result depends on them (System V AMD64 ABI, 3.2.3).
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
