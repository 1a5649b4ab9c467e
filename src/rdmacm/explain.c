/* SPDX-License-Identifier: BSD-2-Clause */
/* One sentence a cause: see explain.h. */
#include "rdmacm/explain.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const sentences[] = {
	[R_NO_CM] = "adverb: rdma_cm is not built yet: %s fails with ENODEV; "
		    "let the program exchange addresses over its own socket "
		    "(perftest: leave out -R)\n",
	[R_NO_SOCKET] = "adverb: rsockets are not built yet: %s fails with "
			"ENOSYS; use ordinary sockets\n",
};

static bool silenced(void)
{
	const char *wish = getenv("ADVERB_EXPLAIN");

	return wish && strcmp(wish, "0") == 0;
}

void r_explain(enum r_cause cause, const char *call)
{
	static atomic_flag said[R_CAUSES] = {ATOMIC_FLAG_INIT,
					     ATOMIC_FLAG_INIT};
	int saved = errno;

	if (!atomic_flag_test_and_set(&said[cause]) && !silenced())
		dprintf(STDERR_FILENO, sentences[cause], call);
	errno = saved;
}

int r_no_cm(const char *call)
{
	r_explain(R_NO_CM, call);
	errno = ENODEV;
	return -1;
}
