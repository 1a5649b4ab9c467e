/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starts adverbd so that the program does not see it: no child to wait for, no
 * signal.  Where that is forbidden, or adverbd is not there, a thread of this
 * process is the broker.  The listener is bound before, so that of several
 * starters one wins and the others' connections wait for what it starts.
 */
#ifndef ADVERB_BROKER_START_H
#define ADVERB_BROKER_START_H

/* Borrows the listening socket; 0 once it runs, or -errno and *why. */
int start_broker(int listen_fd, const char **why);

#endif
