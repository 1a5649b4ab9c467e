/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The names of the environment variables ADVERB_*, by which a name that a user
 * has mistyped is found.  No state, no lock.
 */
#ifndef LOG_ENV_NAMES_H
#define LOG_ENV_NAMES_H

/*
 * Prints a message for each variable of the environment whose name begins with
 * ADVERB_ and is not one of adverb's, once for each variable.  The message
 * names the variable and the nearest of adverb's names.  Prints nothing in a
 * program that has more privileges than its caller, since such a program reads
 * none of the variables (secure_getenv(3)).  The environment must not change
 * meanwhile, as for secure_getenv(3).
 */
void env_names_check(void);

#endif
