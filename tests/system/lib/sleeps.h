/* SPDX-License-Identifier: BSD-2-Clause */
/* sleeps: counts how often the threads of a process go to sleep. */
#ifndef TESTS_SYSTEM_LIB_SLEEPS_H
#define TESTS_SYSTEM_LIB_SLEEPS_H

/* Returns how often the threads of this process, without its first thread, have
 * gone to sleep so far, all together.  Returns 0 if /proc cannot be read. */
unsigned long sleeps_count(void);

#endif
