/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PortInfo (IBTA 14.2.5.6) of a port: its values before a subnet manager sets
 * any, Set(PortInfo), and functions that read single fields.  port.info has the
 * bytes of PortInfo.  PortState and PortPhysicalState are not there, but in
 * port.state and port.phys_state.
 */
#ifndef FABRIC_PORT_INFO_H
#define FABRIC_PORT_INFO_H

#include "fabric/inside.h"

/* IsSM, a bit of CapabilityMask: a subnet manager runs at the port. */
#define PORT_INFO_IS_SM 0x02u

/* The least value of HOQLife and LifeTimeValue that means no limit. */
enum { PORT_INFO_LIFE_ENDLESS = 20 };

/* Sets PortInfo, the P_Key table and the VL arbitration of a port that no
 * subnet manager has configured.  LID, LMC, LinkWidthEnabled and
 * LinkSpeedEnabled are those of the net file.  The link is down. */
void port_info_first(struct port *port, const struct net_port *from);
/* Writes a row of an SL-to-VL table that maps SL n to VL n modulo 8. */
void port_info_first_slvl(uint8_t row[SLVL_BYTES]);
/* Sets LinkWidthActive and LinkSpeedActive at both ends of a port's cable to
 * the greatest values that both ends have enabled.  If they have no width in
 * common, sets 4x; if they have no speed in common, sets SDR. */
void port_info_negotiate(struct port *port);
/* Writes the PortInfo that answers a request which came in at port `in_number`
 * (LocalPortNum). */
void port_info_write(const struct port *port, uint8_t in_number,
		     uint8_t to[PORT_INFO_BYTES]);
/* Applies Set(PortInfo) with the values `from`.  Returns 0; or STATUS_VALUE: a
 * value is not allowed, and nothing has changed. */
uint16_t port_info_set(struct port *port, const uint8_t from[PORT_INFO_BYTES]);
/* Returns CapabilityMask. */
uint32_t port_info_capabilities(const struct port *port);
/* Sets or clears IsSM in CapabilityMask.  A change begins trap 144. */
void port_info_set_sm(struct port *port, bool is_sm);
/* Returns the port's base LID; 0: none. */
uint16_t port_info_lid(const struct port *port);
/* Returns the port's LID mask count, 0 to 7. */
uint8_t port_info_lmc(const struct port *port);
/* Returns the LID of the port's subnet manager; 0: none. */
uint16_t port_info_sm_lid(const struct port *port);
/* Returns NeighborMTU in bytes: 4096 before an SM sets it. */
uint32_t port_info_mtu(const struct port *port);
/* Returns how many data VLs the port has (OperationalVLs). */
uint8_t port_info_vls(const struct port *port);
/* Does a switch's port drop a data end's packet that comes in, if the port's
 * table has no P_Key of the packet's partition (PartitionEnforcementInbound)?
 */
bool port_info_enforces_in(const struct port *port);
/* Does a switch's port drop a data end's packet that would leave, if no P_Key
 * in the port's table fits that of the packet (gate_fits;
 * PartitionEnforcementOutbound)? */
bool port_info_enforces_out(const struct port *port);
/* Returns HOQLife of a switch's port in ms.  A packet that has been the first
 * in an egress queue of the port for this time is discarded (lane.c).  At the
 * other end of the link, the first packet that waits for a data end is
 * discarded this time after it came or after the data end last fetched a
 * packet, whichever was later (data_end.c).  For a port of an adapter or router
 * returns 1000, a limit that only data_end.c applies: a packet may be the first
 * in such a port's egress queue for any time.  FABRIC_NEVER: no limit. */
uint64_t port_info_queue_life(const struct port *port);
/* Returns the time in ms that `life`, a value of HOQLife or of SwitchInfo's
 * LifeTimeValue, means: 4.096 us times 2 to the power `life`, rounded up to ms;
 * FABRIC_NEVER for 20 and greater values. */
uint64_t port_info_life_ms(uint8_t life);
/* Returns VLStallCount: how many packets in sequence are discarded after
 * HOQLife until the VL is stalled; 0: it is never stalled. */
uint8_t port_info_stall_count(const struct port *port);
/* Returns VLHighLimit (arbiter.h). */
uint8_t port_info_high_limit(const struct port *port);
/* Counts a packet that the port refuses, because no P_Key in the port's table
 * fits that of the packet (gate_fits; P_KeyViolations). */
void port_info_count_pkey(struct port *port);
/* Counts a packet that a queue pair refuses, because the packet's Q_Key is
 * wrong (Q_KeyViolations). */
void port_info_count_qkey(struct port *port);
/* Writes the GID that the port's GidPrefix and `guid` form. */
void port_info_gid(const struct port *port, uint64_t guid, uint8_t gid[16]);
/* Is this one of the port's GIDs? */
bool port_info_has_gid(const struct port *port, const uint8_t gid[16]);
/* Does the port receive packets to this unicast LID? */
bool port_info_has_lid(const struct port *port, uint16_t lid);
/* Stores in *shown the rate, and those fields of PortInfo that struct
 * fabric_port has, but neither PortState nor PortPhysicalState. */
void port_info_show(const struct port *port, struct fabric_port *shown);

#endif
