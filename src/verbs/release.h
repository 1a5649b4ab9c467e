/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tells librdmacm.so.1 and libibumad.so.3 to which release of adverb the
 * libibverbs.so.1 of the process belongs.  rdma-core's libibverbs.so.1 lacks
 * the symbol ibv_adverb_release, so librdmacm.so.1 and libibumad.so.3 look the
 * symbol up by dlsym.
 */
#ifndef VERBS_RELEASE_H
#define VERBS_RELEASE_H

#include <infiniband/verbs.h>

#include <dlfcn.h>

/* Returns the release, such as "0.1.0", as a static string. */
const char *ibv_adverb_release(void);
/* The type of ibv_adverb_release, for dlsym. */
typedef const char *verbs_release(void);

/*
 * Returns the release of the libibverbs.so.1 that the caller's library is bound
 * to, or NULL if that libibverbs.so.1 is not adverb's.  Stores the name of that
 * libibverbs.so.1's file in *path; the caller does not free the string.  A
 * process has one libibverbs.so.1: the loader loads no second library of that
 * name.  No lock.
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
