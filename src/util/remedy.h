/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The clauses that tell a user what to do when a system call has failed because
 * a process, a user or a machine has reached a limit.  Messages about such
 * failures take the clause from here; some have a clause of their own.  The
 * text is constant: no state, no lock.
 */
#ifndef UTIL_REMEDY_H
#define UTIL_REMEDY_H

/*
 * Returns the remedy for `err`, a positive errno: an imperative clause without
 * a full stop, such as "end programs, or raise fs.file-max".  Returns `other`,
 * which may be NULL, if `err` is about no such limit.  The limits: EMFILE, open
 * files of the process that made the call; ENFILE, those of the machine;
 * ETOOMANYREFS, descriptors that the user's processes have sent in messages and
 * that no process has received yet; EAGAIN, threads or processes, or memory for
 * a new thread (pthread_create(3)); ENOMEM and ENOBUFS, memory.
 */
const char *remedy_of(int err, const char *other);

#endif
