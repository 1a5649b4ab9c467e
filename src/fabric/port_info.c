/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/port_info.h"

#include <string.h>

#include "fabric/arbiter.h"
#include "fabric/data_end.h"
#include "fabric/trap.h"
#include "hdr/bytes.h"

/* Offsets of PortInfo's fields. */
enum {
	AT_MKEY = 0,
	AT_GID_PREFIX = 8,
	AT_LID = 16,
	AT_SM_LID = 18,
	AT_CAPABILITIES = 20,
	AT_LEASE = 26,
	AT_LOCAL_PORT = 28,
	AT_WIDTH_ENABLED = 29,
	AT_WIDTH_SUPPORTED = 30,
	AT_WIDTH_ACTIVE = 31,
	AT_SPEED_STATE = 32,  /* LinkSpeedSupported, PortState */
	AT_PHYS_DEFAULT = 33, /* PortPhysicalState, LinkDownDefaultState */
	AT_PROTECT_LMC = 34,
	AT_SPEEDS = 35, /* LinkSpeedActive, LinkSpeedEnabled */
	AT_MTU_SL = 36, /* NeighborMTU, MasterSMSL */
	AT_VL_CAP = 37,
	AT_VL_LIMIT = 38,
	AT_ARB_HIGH = 39,
	AT_ARB_LOW = 40,
	AT_MTU_CAP = 41,
	AT_HOQ = 42,	  /* VLStallCount, HOQLife */
	AT_OPER_VLS = 43, /* OperationalVLs, enforcement and filters */
	AT_MKEY_VIOLATIONS = 44,
	AT_PKEY_VIOLATIONS = 46,
	AT_QKEY_VIOLATIONS = 48,
	AT_GUID_CAP = 50,
	AT_TIMEOUT = 51, /* ClientReregister, SubnetTimeOut */
	AT_RESPONSE = 52,
	AT_ERRORS = 53, /* LocalPhyErrors, OverrunErrors */
};

enum {
	SPEEDS_SUPPORTED = 7,  /* SDR, DDR, QDR */
	WIDTHS_SUPPORTED = 15, /* 1x, 4x, 8x, 12x */
	WIDTH_4X = 2,
	SPEED_SDR = 1,
	MTU_4096 = 5,
	VL0_TO_7 = 4,
	VLARB_CAP = ARBITER_ENTRIES,
	/* The CapabilityMask of an adapter's port: traps, automatic path
	 * migration, SL mapping, SystemImageGUID, communication management, the
	 * route of an SMP in trap 256, trap 144 after a change of this mask,
	 * and client reregistration. */
	CAPABILITIES_CA = 0x02610868,
	/* The CapabilityMask of port 0 of a switch, which has no queue pairs:
	 * traps, SL mapping, SystemImageGUID, trap 259, the route of an SMP in
	 * trap 256, and trap 144 after a change of this mask. */
	CAPABILITIES_PORT0 = 0x00601848,
	CLIENT_REREGISTER = 0x80, /* in AT_TIMEOUT */
	ENFORCE_IN = 8,		  /* in AT_OPER_VLS */
	ENFORCE_OUT = 4,
	ADAPTER_LIFE_MS = 1000,
	NO_CHANGE = 0, /* a state in Set(PortInfo): the port's state stays */
};

static uint8_t highest_bit(uint8_t mask)
{
	uint8_t bit = 0x80;

	while (bit && !(mask & bit))
		bit >>= 1;
	return bit;
}

static void first_endport(struct port *port, const struct net_port *from)
{
	uint8_t *i = port->info;
	bool is_switch = node_is_switch(port->node);

	bytes_put64(i + AT_GID_PREFIX, 0xfe80000000000000);
	bytes_put16(i + AT_LID, from->lid);
	bytes_put32(i + AT_CAPABILITIES,
		    is_switch ? CAPABILITIES_PORT0 : CAPABILITIES_CA);
	i[AT_PROTECT_LMC] = from->lmc;
	i[AT_GUID_CAP] = is_switch ? 1 : PORT_GUIDS;
	i[AT_TIMEOUT] = 18;
	i[AT_RESPONSE] = 16;
}

static void first_vlarb(struct port *port)
{
	for (int vl = 0; vl < VLARB_CAP; vl++) {
		port->vlarb[0][2 * vl] = (uint8_t)vl;
		port->vlarb[0][2 * vl + 1] = vl ? 4 : 0;
		port->vlarb[2][2 * vl] = (uint8_t)vl;
		port->vlarb[2][2 * vl + 1] = vl ? 0 : 4;
	}
}

void port_info_first_slvl(uint8_t row[SLVL_BYTES])
{
	for (int i = 0; i < SLVL_BYTES; i++)
		row[i] = (uint8_t)((2 * i % 8) << 4 | (2 * i + 1) % 8);
}

void port_info_first(struct port *port, const struct net_port *from)
{
	uint8_t *i = port->info;

	i[AT_WIDTH_ENABLED] = from->width;
	i[AT_WIDTH_SUPPORTED] = WIDTHS_SUPPORTED;
	i[AT_WIDTH_ACTIVE] = WIDTH_4X;
	i[AT_SPEED_STATE] = SPEEDS_SUPPORTED << 4;
	i[AT_PHYS_DEFAULT] = PHYS_POLLING;
	i[AT_SPEEDS] = (uint8_t)(SPEED_SDR << 4 | from->speed);
	i[AT_MTU_SL] = MTU_4096 << 4;
	i[AT_VL_CAP] = VL0_TO_7 << 4;
	i[AT_ARB_HIGH] = VLARB_CAP;
	i[AT_ARB_LOW] = VLARB_CAP;
	i[AT_MTU_CAP] = MTU_4096;
	i[AT_OPER_VLS] = VL0_TO_7 << 4;
	port->state = STATE_DOWN;
	port->phys_state = PHYS_POLLING;
	port->pkeys[0] = 0xffff;
	first_vlarb(port);
	if (!node_is_switch(port->node) || !port->number)
		first_endport(port, from);
}

static void set_active(struct port *port, uint8_t width, uint8_t speed)
{
	port->info[AT_WIDTH_ACTIVE] = width;
	port->info[AT_SPEEDS] =
		(uint8_t)(speed << 4 | (port->info[AT_SPEEDS] & 15));
}

void port_info_negotiate(struct port *port)
{
	struct port *peer = port->peer;
	uint8_t width = highest_bit(port->info[AT_WIDTH_ENABLED] &
				    peer->info[AT_WIDTH_ENABLED]);
	uint8_t speed =
		highest_bit(port->info[AT_SPEEDS] & peer->info[AT_SPEEDS] & 15);

	set_active(port, width ? width : WIDTH_4X, speed ? speed : SPEED_SDR);
	set_active(peer, width ? width : WIDTH_4X, speed ? speed : SPEED_SDR);
}

void port_info_write(const struct port *port, uint8_t in_number,
		     uint8_t to[PORT_INFO_BYTES])
{
	memcpy(to, port->info, PORT_INFO_BYTES);
	to[AT_LOCAL_PORT] = in_number;
	to[AT_SPEED_STATE] |= port->state;
	to[AT_PHYS_DEFAULT] |= (uint8_t)(port->phys_state << 4);
}

/* Are the values of a Set(PortInfo) allowed by IBTA and possible at this port?
 */
static bool is_allowed(const struct port *port, const uint8_t *from)
{
	uint8_t width = from[AT_WIDTH_ENABLED], speed = from[AT_SPEEDS] & 15;
	uint8_t state = from[AT_SPEED_STATE] & 15;
	uint8_t phys = from[AT_PHYS_DEFAULT] >> 4;
	uint8_t mtu = from[AT_MTU_SL] >> 4, vls = from[AT_OPER_VLS] >> 4;
	bool is_port0 = node_is_switch(port->node) && !port->number;

	if (width && width != 0xff && (width & ~WIDTHS_SUPPORTED))
		return false;
	if (speed && speed != 15 && (speed & ~SPEEDS_SUPPORTED))
		return false;
	if (state > STATE_ACTIVE || phys > PHYS_DISABLED)
		return false;
	if ((from[AT_PHYS_DEFAULT] & 15) > PHYS_POLLING)
		return false;
	if (mtu > MTU_4096 || vls > VL0_TO_7)
		return false;
	if (bytes_get16(from + AT_LID) >= MLID_FIRST)
		return false;
	return !is_port0 || (state != STATE_DOWN && phys == NO_CHANGE);
}

/* May a Set change PortState to `state`?  DOWN is always allowed: the link goes
 * down and may come up again.  INIT is never allowed.  A port becomes ARMED
 * only from INIT, and ACTIVE only from ARMED. */
static bool is_step(const struct port *port, uint8_t state)
{
	if (state == STATE_ARMED)
		return port->state == STATE_INIT || port->state == STATE_ARMED;
	if (state == STATE_ACTIVE)
		return port->state == STATE_ARMED ||
		       port->state == STATE_ACTIVE;
	return state == NO_CHANGE || state == STATE_DOWN;
}

/* Compares the port with the values `from` of a Set(PortInfo).  Returns the
 * changes to report to programs at the port, a set of enum data_change.
 * link_set_state reports changes of the state. */
static uint32_t changes_of(const struct port *port, const uint8_t *from)
{
	const uint8_t *i = port->info;
	uint32_t changes = 0;

	if (memcmp(i + AT_GID_PREFIX, from + AT_GID_PREFIX, 8) != 0)
		changes |= DATA_GIDS;
	if (memcmp(i + AT_LID, from + AT_LID, 2) != 0 ||
	    ((i[AT_PROTECT_LMC] ^ from[AT_PROTECT_LMC]) & 7))
		changes |= DATA_LID;
	if (memcmp(i + AT_SM_LID, from + AT_SM_LID, 2) != 0 ||
	    ((i[AT_MTU_SL] ^ from[AT_MTU_SL]) & 15))
		changes |= DATA_SM;
	if (from[AT_MTU_SL] >> 4 && (i[AT_MTU_SL] ^ from[AT_MTU_SL]) & 0xf0)
		changes |= DATA_MTU;
	if (from[AT_TIMEOUT] & CLIENT_REREGISTER)
		changes |= DATA_REREGISTER;
	return changes;
}

static void set_endport(struct port *port, const uint8_t *from)
{
	uint8_t *i = port->info;

	memcpy(i + AT_MKEY, from + AT_MKEY, 8);
	memcpy(i + AT_GID_PREFIX, from + AT_GID_PREFIX, 8);
	memcpy(i + AT_LID, from + AT_LID, 4); /* and MasterSMLID */
	memcpy(i + AT_LEASE, from + AT_LEASE, 2);
	i[AT_PROTECT_LMC] = from[AT_PROTECT_LMC] & 0xc7;
	i[AT_MTU_SL] =
		(uint8_t)((i[AT_MTU_SL] & 0xf0) | (from[AT_MTU_SL] & 0x0f));
	i[AT_TIMEOUT] = from[AT_TIMEOUT] & 0x1f;
	memcpy(i + AT_MKEY_VIOLATIONS, from + AT_MKEY_VIOLATIONS, 6);
}

static void set_link(struct port *port, const uint8_t *from)
{
	uint8_t *i = port->info, low;

	if (from[AT_WIDTH_ENABLED])
		i[AT_WIDTH_ENABLED] = from[AT_WIDTH_ENABLED] == 0xff
					      ? WIDTHS_SUPPORTED
					      : from[AT_WIDTH_ENABLED];
	low = from[AT_SPEEDS] & 15;
	if (low)
		i[AT_SPEEDS] = (uint8_t)((i[AT_SPEEDS] & 0xf0) |
					 (low == 15 ? SPEEDS_SUPPORTED : low));
	low = from[AT_PHYS_DEFAULT] & 15;
	if (low)
		i[AT_PHYS_DEFAULT] = low;
	if (from[AT_MTU_SL] >> 4)
		i[AT_MTU_SL] = (uint8_t)((from[AT_MTU_SL] & 0xf0) |
					 (i[AT_MTU_SL] & 0x0f));
	if (from[AT_OPER_VLS] >> 4)
		i[AT_OPER_VLS] = from[AT_OPER_VLS];
	else
		i[AT_OPER_VLS] = (uint8_t)((i[AT_OPER_VLS] & 0xf0) |
					   (from[AT_OPER_VLS] & 0x0f));
	i[AT_VL_LIMIT] = from[AT_VL_LIMIT];
	i[AT_HOQ] = from[AT_HOQ];
	i[AT_ERRORS] = from[AT_ERRORS];
}

static void set_states(struct port *port, const uint8_t *from)
{
	uint8_t state = from[AT_SPEED_STATE] & 15;
	uint8_t phys = from[AT_PHYS_DEFAULT] >> 4;

	if (phys == NO_CHANGE && state == STATE_DOWN)
		phys = PHYS_POLLING;
	if (phys != NO_CHANGE) {
		if (port->peer)
			port_info_negotiate(port);
		link_set_phys(port, phys);
	} else if (state != NO_CHANGE) {
		link_set_state(port, state);
	}
}

uint16_t port_info_set(struct port *port, const uint8_t from[PORT_INFO_BYTES])
{
	bool is_external = port->number || !node_is_switch(port->node);
	bool is_endport = !port->number || !node_is_switch(port->node);
	uint32_t changes = is_endport ? changes_of(port, from) : 0;

	if (!is_allowed(port, from) ||
	    (is_external && !is_step(port, from[AT_SPEED_STATE] & 15)))
		return STATUS_VALUE;
	if (is_endport)
		set_endport(port, from);
	set_link(port, from);
	/* after set_link: the callback of fabric_watch_ports reads the new
	 * values, NeighborMTU included */
	data_wake_port(port, changes);
	if (is_external)
		set_states(port, from);
	return 0;
}

uint32_t port_info_capabilities(const struct port *port)
{
	return bytes_get32(port->info + AT_CAPABILITIES);
}

void port_info_set_sm(struct port *port, bool is_sm)
{
	uint32_t old = port_info_capabilities(port);
	uint32_t mask =
		(old & ~PORT_INFO_IS_SM) | (is_sm ? PORT_INFO_IS_SM : 0);

	if (mask == old)
		return;
	bytes_put32(port->info + AT_CAPABILITIES, mask);
	trap_capabilities(port);
}

/* Returns the rate in Gbit/s, rounded down: 1x SDR has 2.5, which gives 2. */
static uint8_t rate_of(uint8_t width, uint8_t speed)
{
	unsigned lanes = width == 1 ? 1 : width == 2 ? 4 : width == 4 ? 8 : 12;

	return (uint8_t)(lanes * speed * 5 / 2);
}

void port_info_show(const struct port *port, struct fabric_port *shown)
{
	const uint8_t *i = port->info;

	shown->gid_prefix = bytes_get64(i + AT_GID_PREFIX);
	shown->capabilities = bytes_get32(i + AT_CAPABILITIES);
	shown->lid = port_info_lid(port);
	shown->sm_lid = port_info_sm_lid(port);
	shown->lmc = port_info_lmc(port);
	shown->sm_sl = i[AT_MTU_SL] & 15;
	shown->width = i[AT_WIDTH_ACTIVE];
	shown->speed = i[AT_SPEEDS] >> 4;
	shown->rate = rate_of(shown->width, shown->speed);
	shown->mtu = i[AT_MTU_SL] >> 4;
	shown->max_mtu = i[AT_MTU_CAP] & 15;
	shown->vl_cap = i[AT_VL_CAP] >> 4;
	shown->timeout = i[AT_TIMEOUT] & 31;
}

uint16_t port_info_lid(const struct port *port)
{
	return bytes_get16(port->info + AT_LID);
}

uint16_t port_info_sm_lid(const struct port *port)
{
	return bytes_get16(port->info + AT_SM_LID);
}

uint8_t port_info_lmc(const struct port *port)
{
	return port->info[AT_PROTECT_LMC] & 7;
}

bool port_info_has_lid(const struct port *port, uint16_t lid)
{
	uint16_t own = port_info_lid(port);

	return own && (lid & (0xffff << port_info_lmc(port))) == own;
}

uint32_t port_info_mtu(const struct port *port)
{
	return 128u << (port->info[AT_MTU_SL] >> 4);
}

uint8_t port_info_vls(const struct port *port)
{
	static const uint8_t counts[16] = {0, 1, 2, 4, 8, 15};

	return counts[port->info[AT_OPER_VLS] >> 4];
}

bool port_info_enforces_in(const struct port *port)
{
	return port->info[AT_OPER_VLS] & ENFORCE_IN;
}

bool port_info_enforces_out(const struct port *port)
{
	return port->info[AT_OPER_VLS] & ENFORCE_OUT;
}

uint64_t port_info_life_ms(uint8_t life)
{
	return life >= PORT_INFO_LIFE_ENDLESS ? FABRIC_NEVER
					      : (4096ull << life) / 1000000 + 1;
}

/* An adapter's port has no HOQLife.  If such a port has sent a packet straight
 * to another adapter, without a switch, data_end.c discards the packet if the
 * receiver fetches none for ADAPTER_LIFE_MS while the packet waits. */
uint64_t port_info_queue_life(const struct port *port)
{
	return node_is_switch(port->node)
		       ? port_info_life_ms(port->info[AT_HOQ] & 31)
		       : ADAPTER_LIFE_MS;
}

uint8_t port_info_stall_count(const struct port *port)
{
	return port->info[AT_HOQ] >> 5;
}

uint8_t port_info_high_limit(const struct port *port)
{
	return port->info[AT_VL_LIMIT];
}

/* The counters of violations stop at their greatest value. */
static void count_violation(uint8_t *at)
{
	uint16_t count = bytes_get16(at);

	if (count != UINT16_MAX)
		bytes_put16(at, (uint16_t)(count + 1));
}

void port_info_count_pkey(struct port *port)
{
	count_violation(port->info + AT_PKEY_VIOLATIONS);
}

void port_info_count_qkey(struct port *port)
{
	count_violation(port->info + AT_QKEY_VIOLATIONS);
}

void port_info_gid(const struct port *port, uint64_t guid, uint8_t gid[16])
{
	memcpy(gid, port->info + AT_GID_PREFIX, 8);
	bytes_put64(gid + 8, guid);
}

bool port_info_has_gid(const struct port *port, const uint8_t gid[16])
{
	for (uint32_t i = 0; i < PORT_GUIDS; i++) {
		uint64_t guid = port_guid(port, i);
		uint8_t own[16];

		port_info_gid(port, guid, own);
		if (guid && !memcmp(own, gid, 16))
			return true;
	}
	return false;
}
