/* SPDX-License-Identifier: BSD-2-Clause */
#include "ipoib/hwaddr.h"

#include <string.h>

#include "hdr/bytes.h"
#include "util/siphash.h"

#define QPN_MULTICAST	      0xffffffu
#define FLAG_RC		      0x80
#define QPN_FIRST	      2 /* QP 0 and 1 belong to management */
#define GID_MULTICAST	      0xff
#define MAC_MULTICAST	      1
#define MAC_LOCAL	      2 /* locally administered */
#define INTERFACE_ID_IS_EUI64 2 /* the bit "universal" of an interface ID */

bool hwaddr_is_interface(const struct hwaddr *a)
{
	static const uint8_t none[16];

	return a->qpn >= QPN_FIRST && a->qpn != QPN_MULTICAST &&
	       a->gid[0] != GID_MULTICAST && memcmp(a->gid, none, 16) != 0;
}

bool hwaddr_parse(const uint8_t *p, struct hwaddr *a)
{
	a->is_connected = p[0] & FLAG_RC;
	a->qpn = bytes_get24(p + 1);
	memcpy(a->gid, p + 4, 16);
	return hwaddr_is_interface(a);
}

void hwaddr_write(uint8_t *p, const struct hwaddr *a)
{
	bytes_put32(p, a->qpn & 0xffffff);
	p[0] = a->is_connected ? FLAG_RC : 0;
	memcpy(p + 4, a->gid, 16);
}

bool hwaddr_is_equal(const struct hwaddr *a, const struct hwaddr *b)
{
	return a->qpn == b->qpn && !memcmp(a->gid, b->gid, 16);
}

void hwaddr_mac(const struct hwaddr *a, uint8_t mac[HWADDR_MAC_BYTES])
{
	/* "adverb ipoib mac" */
	static const struct siphash_key key = {
		{0x6164766572622069u, 0x706f6962206d6163u}};
	uint8_t bytes[HWADDR_BYTES], hash[8];

	hwaddr_write(bytes, a);
	bytes[0] = 0; /* the flags */
	bytes_put64(hash, siphash(&key, bytes, sizeof(bytes)));
	memcpy(mac, hash, HWADDR_MAC_BYTES);
	mac[0] = (uint8_t)((mac[0] & ~MAC_MULTICAST) | MAC_LOCAL);
}

void hwaddr_link_local(const uint8_t gid[16], uint8_t ip[16])
{
	static const uint8_t prefix[8] = {0xfe, 0x80};

	memcpy(ip, prefix, 8);
	memcpy(ip + 8, gid + 8, 8);
	ip[8] |= INTERFACE_ID_IS_EUI64;
}
