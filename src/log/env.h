/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The variables ADVERB_*: how processes of one host reach each other, for
 * host/local_peer and adverb doctor; and values that mean nothing.
 */
#ifndef LOG_ENV_H
#define LOG_ENV_H

#include <stdbool.h>

enum env_path {
	ENV_PATH_DIRECT,  /* without packets, where that can be had */
	ENV_PATH_PACKETS, /* ADVERB_DIRECT=0 */
	ENV_PATH_CAPTURE, /* ADVERB_PCAP shows packets, so there must be some */
};

enum env_path env_path(void);
/* Was ADVERB_DIRECT set?  Then the user is told if it cannot be had. */
bool env_is_said(void);

/* Says which variables have a value that means nothing. */
void env_check(void);

#endif
