/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who has UDP port 4791, as far as /proc shows it to our user.  No state.
 */
#ifndef BROKER_PORT_HOLDER_H
#define BROKER_PORT_HOLDER_H

#include <stdbool.h>
#include <stddef.h>

/* "rxe_tester (process 12 of user 1000)"; false: nobody has it. */
bool port_holder_name(char *text, size_t size);

/* Is it another user's?  What the kernel has by itself is nobody's. */
bool port_holder_is_foreign(void);

#endif
