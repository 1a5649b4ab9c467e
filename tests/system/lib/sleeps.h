/* SPDX-License-Identifier: BSD-2-Clause */
/* sleeps: tells how often the threads of a process go to sleep, and when all of
 * them sleep. */
#ifndef TESTS_SYSTEM_LIB_SLEEPS_H
#define TESTS_SYSTEM_LIB_SLEEPS_H

/* Returns how often the threads of this process, without its first thread, have
 * gone to sleep so far, all together.  Returns 0 if /proc cannot be read. */
unsigned long sleeps_count(void);

/* Waits until all threads of this process, without its first thread, which
 * calls this function, have slept for about 20 ms without waking up.  Returns
 * after about 20 ms if /proc cannot be read. */
void sleeps_await(void);

#endif
