/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the environment asks for: of the way between processes of one host, for
 * who goes it (neighbour.h) and for adverb doctor; and in vain.
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
/* Who asks for it wants to hear when it is not to be had. */
bool env_is_said(void);

/* Says which variables have a value that means nothing. */
void env_check(void);

#endif
