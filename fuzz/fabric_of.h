/* SPDX-License-Identifier: BSD-2-Clause */
/* The emulated subnet of a harness. */
#ifndef FUZZ_FABRIC_OF_H
#define FUZZ_FABRIC_OF_H

#include <string.h>

#include "fabric/fabric.h"
#include "fabric/net.h"
#include "fuzz.h"

/* Returns the fabric of a net file whose text is right.  The caller frees the
 * fabric. */
static inline struct fabric *fabric_of(const char *text)
{
	struct net_error error;
	struct fabric *f;
	struct net net;

	FUZZ_REQUIRE(!net_parse(text, strlen(text), &net, &error));
	f = fabric_new(&net);
	net_free(&net);
	FUZZ_REQUIRE(f);
	return f;
}

#endif
