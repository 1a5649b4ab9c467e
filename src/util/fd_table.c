/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/fd_table.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/single_threaded.h>
#include <unistd.h>

/* Returns the highest number that the table is to have, or -1. */
static int highest_wanted(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) || !r.rlim_cur)
		return -1;
	return (r.rlim_cur < FD_TABLE_ENTRIES ? (int)r.rlim_cur
					      : FD_TABLE_ENTRIES) -
	       1;
}

void fd_table_enlarge(void)
{
	int any, high;

	/* If another thread shares the table, the kernel waits here, too
	 * (fd_table.h).  That thread could also close `any` or `high` before
	 * this function does; this function would then close the file that has
	 * the number since. */
	if (!__libc_single_threaded)
		return;
	any = open("/", O_PATH | O_CLOEXEC);
	if (any < 0)
		return;
	high = fcntl(any, F_DUPFD_CLOEXEC, highest_wanted());
	if (high >= 0)
		close(high);
	close(any);
}
