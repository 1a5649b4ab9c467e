/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/wish.h"

#include <stdlib.h>
#include <string.h>

enum wish_way wish_way(void)
{
	const char *direct = getenv("ADVERB_DIRECT");
	const char *capture = getenv("ADVERB_PCAP");

	if (direct && !strcmp(direct, "0"))
		return WISH_PACKETS;
	return capture && *capture ? WISH_CAPTURE : WISH_DIRECT;
}

bool wish_is_said(void)
{
	const char *direct = getenv("ADVERB_DIRECT");

	return direct && *direct;
}
