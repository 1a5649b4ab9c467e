/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The function bodies of an inert library, and the macros that give one body
 * many versioned names.  Each library is one file that includes this header:
 * .symver defines a name only in the file that has the body.
 *
 * The functions declare no parameters: no result depends on the arguments, and
 * the caller removes the arguments that it has put on the stack (System V AMD64
 * ABI, 3.2.3; arm64's procedure call standard does the same).
 */
#ifndef STUBS_INERT_H
#define STUBS_INERT_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

/* Returns EOPNOTSUPP. */
int inert_errno(void);
/* Returns -EOPNOTSUPP. */
int inert_negative(void);
/* Sets errno to EOPNOTSUPP and returns -1. */
long inert_minus_one(void);
/* Sets errno to EOPNOTSUPP and returns NULL. */
void *inert_null(void);
/* Returns false. */
bool inert_false(void);
/* Does nothing. */
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

/* Gives the function `body` one more symbol, `name`.  node: "@VERSION", or
 * "@@VERSION" for the default version of the symbol. */
#define STUB(body, name, node)	   __asm__(".symver " #body "," #name node);

#define STUB_ERRNO(name, node)	   STUB(inert_errno, name, node)
#define STUB_NEGATIVE(name, node)  STUB(inert_negative, name, node)
#define STUB_MINUS_ONE(name, node) STUB(inert_minus_one, name, node)
#define STUB_NULL(name, node)	   STUB(inert_null, name, node)
#define STUB_FALSE(name, node)	   STUB(inert_false, name, node)
#define STUB_VOID(name, node)	   STUB(inert_void, name, node)

#endif
