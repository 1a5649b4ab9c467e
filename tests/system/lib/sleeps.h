/* SPDX-License-Identifier: BSD-2-Clause */
/* sleeps: counts how often the threads of a process go to sleep. */
#ifndef TESTS_SYSTEM_LIB_SLEEPS_H
#define TESTS_SYSTEM_LIB_SLEEPS_H

/* Returns how often all threads of this process but the first have gone to
 * sleep so far; 0: /proc cannot be read. */
unsigned long sleeps_count(void);

#endif
