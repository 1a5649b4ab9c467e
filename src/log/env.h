/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The variables ADVERB_*: how processes of one host reach each other, for
 * host/local_peer and adverb doctor; and a check of the values.
 */
#ifndef LOG_ENV_H
#define LOG_ENV_H

#include <stdbool.h>

enum env_path {
	ENV_PATH_DIRECT,  /* from memory to memory, where that is possible */
	ENV_PATH_PACKETS, /* by packets, since ADVERB_DIRECT=0 */
	ENV_PATH_CAPTURE, /* by packets, which ADVERB_PCAP captures */
};

/* Returns how processes of one host are to reach each other. */
enum env_path env_path(void);
/* Returns whether ADVERB_DIRECT is set: the user then wants a message if the
 * direct path is not possible. */
bool env_is_said(void);

/* Prints a message for each variable that has an invalid value. */
void env_check(void);

#endif
