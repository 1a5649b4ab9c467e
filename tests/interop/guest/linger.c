/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Preloaded into programs of the guest that destroy a QP as soon as they have
 * what they wait for, as the pingpongs do: their last acknowledgement may be
 * lost, or not sent yet, and nobody is left to repeat it.  ibv_destroy_qp
 * waits here for the file $LINGER, which the test makes once the other end is
 * through, 300 s at most.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

int ibv_destroy_qp(void *qp);

int ibv_destroy_qp(void *qp)
{
	int (*destroy)(void *) = dlsym(RTLD_NEXT, "ibv_destroy_qp");
	const char *file = getenv("LINGER");
	int turns = 30000;

	while (file && turns-- > 0 && access(file, F_OK))
		usleep(10000);
	return destroy(qp);
}
