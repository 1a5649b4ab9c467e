/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/gate.h"

#include "fabric/port_info.h"
#include "fabric/trap.h"
#include "hdr/bth.h"
#include "hdr/lrh.h"
#include "util/bits.h"

enum {
	PKEY_FULL = 0x8000,
	HEADERS_MAX = 124, /* bytes from LRH to ICRC besides the payload */
};

bool gate_fits(const struct port *port, uint16_t pkey)
{
	for (int i = 0; i < PORT_PKEYS; i++)
		if (bth_is_same_partition(port->pkeys[i], pkey))
			return true;
	return false;
}

/* Returns the index of this P_Key in the port's table; -1: it is not there. */
static int find_pkey(const struct port *port, uint16_t pkey)
{
	for (int i = 0; (pkey & ~PKEY_FULL) && i < PORT_PKEYS; i++)
		if (port->pkeys[i] == pkey)
			return i;
	return -1;
}

uint16_t gate_index(const struct port *port, uint16_t pkey)
{
	int index;

	pkey = pkey ? pkey : BTH_DEFAULT_PKEY;
	index = find_pkey(port, pkey | PKEY_FULL);
	if (index < 0 && (pkey & PKEY_FULL))
		index = find_pkey(port, pkey & ~PKEY_FULL);
	return index < 0 ? 0 : (uint16_t)index;
}

bool gate_has(const struct port *port, uint16_t pkey)
{
	return find_pkey(port, pkey) >= 0;
}

uint8_t gate_vl(const struct port *out, const struct port *in, uint8_t sl)
{
	bool is_switch = node_is_switch(out->node);
	uint8_t pair = out->slvl[is_switch && in ? in->number : 0][sl / 2];

	return sl % 2 ? pair & 15 : pair >> 4;
}

/* A port of the fabric has at most the data VLs 0 to LANES - 1, so this
 * function refuses VL15, too. */
bool gate_has_vl(const struct port *out, uint8_t vl)
{
	return vl < bits_min_u8(port_info_vls(out), LANES);
}

bool gate_lets_out(const struct port *out, uint16_t pkey)
{
	return !node_is_switch(out->node) || !port_info_enforces_out(out) ||
	       gate_fits(out, pkey);
}

bool gate_leave(struct port *out, struct packet *p)
{
	uint32_t mtu = port_info_mtu(out);

	p->vl = gate_vl(out, p->in, p->sl);
	if (!gate_has_vl(out, p->vl) ||
	    p->payload->bytes - LRH_VCRC_BYTES > mtu + HEADERS_MAX) {
		out->counters.tx_discards++;
		return false;
	}
	if (!gate_lets_out(out, p->pkey)) {
		out->counters.tx_constraint++;
		trap_switch_pkey(out, p);
		return false;
	}
	return true;
}

/* Does the port's table have the packet's partition?  A switch's port has the
 * P_Keys of the adapter at the other end of its link.  A limited member sends
 * its own limited P_Key, so gate_fits would refuse the packet here; the port by
 * which the packet leaves the last switch, and the receiver, keep limited
 * members apart. */
static bool has_partition(const struct port *in, uint16_t pkey)
{
	return find_pkey(in, pkey | PKEY_FULL) >= 0 ||
	       find_pkey(in, pkey & ~PKEY_FULL) >= 0;
}

bool gate_lets_in(const struct port *in, uint16_t pkey)
{
	return !node_is_switch(in->node) || !port_info_enforces_in(in) ||
	       has_partition(in, pkey);
}

bool gate_enter(struct port *in, const struct packet *p)
{
	if (gate_lets_in(in, p->pkey))
		return true;
	in->counters.rx_constraint++;
	trap_switch_pkey(in, p);
	return false;
}
