/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Closes the descriptors that a broker has from the process that started it.
 * Thread-safe; has no lock.
 */
#ifndef BROKER_CLOSE_OTHERS_H
#define BROKER_CLOSE_OTHERS_H

/* Closes the descriptors of the calling thread's table, except the standard
 * ones and `kept`; -1: except the standard ones.  If the kernel lacks or
 * refuses close_range(2), the descriptors are found in /proc; without /proc at
 * most one of them is closed. */
void close_others_but(int kept);

#endif
