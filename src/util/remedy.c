/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/remedy.h"

#include <errno.h>

const char *remedy_of(int err, const char *other)
{
	switch (err) {
	case EMFILE:
		return "raise ulimit -n";
	case ENFILE:
		return "end programs, or raise fs.file-max";
	case ETOOMANYREFS:
		return "end programs, or raise ulimit -Hn";
	case EAGAIN:
		return "free memory, or raise ulimit -u or the cgroup's "
		       "pids.max";
	case ENOMEM:
	case ENOBUFS:
		return "free memory, or raise ulimit -v, -d or the cgroup's "
		       "memory.max";
	default:
		return other;
	}
}
