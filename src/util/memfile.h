/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory files of a fixed size (memfd_create(2)), which processes share.  No
 * lock.
 */
#ifndef UTIL_MEMFILE_H
#define UTIL_MEMFILE_H

#include <stddef.h>

/* Makes a file of `bytes` zeroes, which memfile_seal can seal.  /proc shows the
 * file's name.  Returns a descriptor, which the caller owns; -EFBIG:
 * RLIMIT_FSIZE is smaller (the program gets no SIGXFSZ, see write_signals.h);
 * or another -errno. */
int memfile_new(const char *name, size_t bytes);
/* Fixes the size of the file, so that an access to a mapping of it never raises
 * SIGBUS, and forbids further seals.  Returns 0 or -errno. */
int memfile_seal(int fd);

#endif
