/* SPDX-License-Identifier: BSD-2-Clause */
/* hdr/pkt: a parsed packet lies inside the input, and its headers can be
 * written again. */
#include "fuzz.h"

#include <string.h>

#include "hdr/pkt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t first[PKT_MAX_HEADER_BYTES], second[PKT_MAX_HEADER_BYTES];
	struct pkt pkt, again;
	uint8_t *copy;
	size_t n;

	if (!pkt_parse(data, size, &pkt))
		return 0;
	FUZZ_REQUIRE(pkt.payload >= data + BTH_BYTES);
	FUZZ_REQUIRE(pkt.payload + pkt.payload_len + pkt.bth.pad ==
		     data + size);
	n = pkt_write_headers(first, &pkt);
	FUZZ_REQUIRE(n == pkt.info->header_bytes);
	FUZZ_REQUIRE(data + n == pkt.payload);

	/* the headers in `first` differ from those in `data` in reserved bits
	 * alone */
	copy = malloc(size);
	FUZZ_REQUIRE(copy);
	memcpy(copy, data, size);
	memcpy(copy, first, n);
	FUZZ_REQUIRE(pkt_parse(copy, size, &again));
	FUZZ_REQUIRE(again.payload_len == pkt.payload_len);
	FUZZ_REQUIRE(again.bth.opcode == pkt.bth.opcode);
	FUZZ_REQUIRE(again.bth.dest_qpn == pkt.bth.dest_qpn);
	FUZZ_REQUIRE(again.bth.psn == pkt.bth.psn);
	FUZZ_REQUIRE(pkt_write_headers(second, &again) == n);
	FUZZ_REQUIRE(memcmp(first, second, n) == 0);
	free(copy);
	return 0;
}
