/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/mkey.h"

#include "hdr/bytes.h"

/* Offsets in PortInfo. */
enum { AT_KEY = 0, AT_LEASE = 26, AT_PROTECT = 34, AT_VIOLATIONS = 44 };

/* If the lease has run out, sets M_KeyProtectBits to 0: any Get then reads the
 * key. */
static void expire_lease(struct port *port)
{
	uint64_t now_ms = port->node->fabric->now_ms;

	if (!port->mkey_expires_ms || now_ms < port->mkey_expires_ms)
		return;
	port->mkey_expires_ms = 0;
	port->info[AT_PROTECT] &= 0x3f;
}

static void count_violation(struct port *port)
{
	uint16_t lease = bytes_get16(port->info + AT_LEASE);
	uint16_t count = bytes_get16(port->info + AT_VIOLATIONS);

	if (count != UINT16_MAX)
		bytes_put16(port->info + AT_VIOLATIONS, (uint16_t)(count + 1));
	if (lease && !port->mkey_expires_ms)
		port->mkey_expires_ms =
			port->node->fabric->now_ms + lease * 1000u;
}

enum mkey_verdict mkey_check(struct port *port, uint64_t key, bool is_get)
{
	uint64_t own = bytes_get64(port->info + AT_KEY);
	uint8_t protect;

	expire_lease(port);
	protect = port->info[AT_PROTECT] >> 6;
	if (!own || own == key) {
		port->mkey_expires_ms = 0;
		return MKEY_FITS;
	}
	if (is_get && protect == 0)
		return MKEY_FITS;
	if (is_get && protect == 1)
		return MKEY_HIDDEN;
	/* A Set always needs the key.  With M_KeyProtectBits 2 or 3 a Get needs
	 * the key, too. */
	count_violation(port);
	return MKEY_REFUSED;
}
