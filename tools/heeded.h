/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heeded: which signals end a command.  A caller has a signal ignored (nohup,
 * or a shell's `command &`) so that the signal does not end the command.  But
 * signalfd(2) reports a blocked signal even if it is ignored.
 */
#ifndef TOOLS_HEEDED_H
#define TOOLS_HEEDED_H

#include <signal.h>

/* Adds a signal to *set, unless the process ignores the signal. */
void heeded_add(sigset_t *set, int number);

#endif
