/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the environment asks for: of the way between processes of one host, for
 * who goes it (neighbour.h) and for adverb doctor; and in vain.
 */
#ifndef HOST_WISH_H
#define HOST_WISH_H

#include <stdbool.h>

enum wish_way {
	WISH_DIRECT,  /* without packets, where that can be had */
	WISH_PACKETS, /* ADVERB_DIRECT=0 */
	WISH_CAPTURE, /* ADVERB_PCAP shows packets, so there must be some */
};

enum wish_way wish_way(void);
/* Who asks for it wants to hear when it is not to be had. */
bool wish_is_said(void);

/* Says which variables have a value that means nothing. */
void wish_check(void);

#endif
