/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Limits of this process (getrlimit(2)).  No state, no lock.
 */
#ifndef UTIL_RLIMIT_H
#define UTIL_RLIMIT_H

/* Raises the soft limit of a resource, RLIMIT_*, to the hard one.  If the
 * kernel refuses that, the limit stays as it is. */
void rlimit_raise(int resource);

#endif
