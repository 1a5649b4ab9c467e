/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/rlimit.h"

#include <sys/resource.h>

void rlimit_raise(int resource)
{
	struct rlimit r;

	if (getrlimit(resource, &r))
		return;
	r.rlim_cur = r.rlim_max;
	setrlimit(resource, &r);
}
