/* SPDX-License-Identifier: BSD-2-Clause */
/* hdr/eth, hdr/grh, hdr/mad: a header that was parsed and written again has the
 * same bytes, except for reserved ones. */
#include "fuzz.h"

#include <string.h>

#include "hdr/eth.h"
#include "hdr/grh.h"
#include "hdr/mad.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t out[GRH_BYTES] = {0};
	struct eth eth;
	struct grh grh;
	struct mad mad;

	if (eth_parse(data, size, &eth)) {
		eth_write(out, &eth);
		FUZZ_REQUIRE(memcmp(out, data, ETH_BYTES) == 0);
	}
	if (grh_parse(data, size, &grh)) {
		FUZZ_REQUIRE(grh.payload_length + (size_t)GRH_BYTES <= size);
		grh_write(out, &grh);
		FUZZ_REQUIRE(memcmp(out, data, GRH_BYTES) == 0);
	}
	if (mad_parse(data, size, &mad)) {
		mad_write(out, &mad);
		/* bytes 18 and 19 are reserved */
		FUZZ_REQUIRE(memcmp(out, data, 18) == 0);
		FUZZ_REQUIRE(memcmp(out + 20, data + 20, 4) == 0);
	}
	return 0;
}
