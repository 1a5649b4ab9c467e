/* SPDX-License-Identifier: BSD-2-Clause */
#include "hdr/eth.h"

#include <string.h>

#include "hdr/bytes.h"

bool eth_parse(const uint8_t *p, size_t len, struct eth *eth)
{
	if (len < ETH_BYTES)
		return false;
	memcpy(eth->dst, p, ETH_ADDRESS_BYTES);
	memcpy(eth->src, p + 6, ETH_ADDRESS_BYTES);
	eth->type = bytes_get16(p + 12);
	return true;
}

void eth_write(uint8_t *p, const struct eth *eth)
{
	memcpy(p, eth->dst, ETH_ADDRESS_BYTES);
	memcpy(p + 6, eth->src, ETH_ADDRESS_BYTES);
	bytes_put16(p + 12, eth->type);
}
