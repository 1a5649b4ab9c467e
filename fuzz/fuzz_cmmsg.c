/* SPDX-License-Identifier: BSD-2-Clause */
/* hdr/cmmsg: a message that was parsed and written can be parsed again, and is
 * then written with the same bytes.  Only a LAP is not written
 * (cmmsg_write). */
#include "fuzz.h"

#include <string.h>

#include "hdr/cmmsg.h"
#include "hdr/mad.h"

static bool is_v4(const uint8_t ip[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	return !memcmp(ip, mapped, sizeof(mapped));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t mad[MAD_BYTES] = {0}, twice[MAD_BYTES] = {0};
	uint8_t part[CMMSG_IP_BYTES];
	struct cmmsg m, again;
	struct cmmsg_ip ip, ip_again;

	if (!cmmsg_parse(data, size, &m))
		return 0;
	FUZZ_REQUIRE(m.info_bytes <= CMMSG_INFO_MAX);
	FUZZ_REQUIRE(cmmsg_private_bytes(m.kind) <= CMMSG_PRIVATE_MAX);
	if (m.kind == CMMSG_LAP)
		return 0;
	cmmsg_write(mad, &m);
	FUZZ_REQUIRE(cmmsg_parse(mad, sizeof(mad), &again));
	cmmsg_write(twice, &again);
	FUZZ_REQUIRE(memcmp(mad, twice, sizeof(mad)) == 0);
	if (!cmmsg_ip_parse(m.private_data, &ip))
		return 0;
	cmmsg_ip_write(part, &ip);
	FUZZ_REQUIRE(cmmsg_ip_parse(part, &ip_again));
	/* The header of RDMA IP CM has one IP version for both addresses.  If
	 * only the destination is IPv4, cmmsg_ip_write writes just four bytes
	 * of the source. */
	FUZZ_REQUIRE(is_v4(ip.src) != is_v4(ip.dst) ||
		     !memcmp(&ip, &ip_again, sizeof(ip)));
	return 0;
}
