/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/libc.h"

#include <dlfcn.h>

int (*libc_epoll_pwait2)(int fd, struct epoll_event *events, int most,
			 const struct timespec *timeout, const sigset_t *mask);
struct libc_rseq libc_rseq;

__attribute__((constructor)) static void look_up(void)
{
	const unsigned int *bytes = dlsym(RTLD_DEFAULT, "__rseq_size");
	const ptrdiff_t *offset = dlsym(RTLD_DEFAULT, "__rseq_offset");

	*(void **)&libc_epoll_pwait2 = dlsym(RTLD_DEFAULT, "epoll_pwait2");
	if (bytes && offset)
		libc_rseq = (struct libc_rseq){*bytes != 0, *offset};
}
