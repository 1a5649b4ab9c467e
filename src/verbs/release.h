/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The release of adverb that libibverbs.so.1 is of, for our other libraries.
 * Not part of the ABI: rdma-core's has no such symbol, so look it up (dlsym).
 */
#ifndef VERBS_RELEASE_H
#define VERBS_RELEASE_H

#include <infiniband/verbs.h>

#include <dlfcn.h>

/* The release, as "0.1.0". */
const char *ibv_adverb_release(void);
typedef const char *verbs_release(void);

/*
 * The release of the libibverbs.so.1 that the caller's library is bound to;
 * NULL: that libibverbs.so.1 is not adverb's.  *path is the name of its file,
 * which the loader owns.  A process has one libibverbs.so.1: the loader takes
 * no second library of that name.  No lock.
 */
static inline const char *verbs_release_find(const char **path)
{
	Dl_info at = {0};
	verbs_release *release;

	*(void **)&release = dlsym(RTLD_DEFAULT, "ibv_adverb_release");
	*path = "libibverbs.so.1";
	if (dladdr((void *)ibv_get_device_guid, &at) && at.dli_fname)
		*path = at.dli_fname;
	return release ? release() : NULL;
}

#endif
