/* SPDX-License-Identifier: BSD-2-Clause */
/* One sentence: see explain.h. */
#include "umad/explain.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/heard.h"

int u_no_port(const char *call)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;
	const char *wish = secure_getenv("ADVERB_EXPLAIN");
	char line[256];

	if (!atomic_flag_test_and_set(&said) && !(wish && !strcmp(wish, "0")))
		heard_write(line,
			    (size_t)snprintf(
				    line, sizeof line,
				    "adverb: management datagrams (umad) are "
				    "not built yet: %s fails with ENODEV; "
				    "ibv_devinfo shows the devices there are\n",
				    call));
	errno = ENODEV;
	return -ENODEV;
}
