/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PortInfo (IBTA 14.2.5.6) of a port: its first values, what a subnet manager
 * may set, and what other files read of it.  struct port has all of PortInfo as
 * bytes but for the two states, which change by events too.
 */
#ifndef FABRIC_PORT_INFO_H
#define FABRIC_PORT_INFO_H

#include "fabric/inside.h"

/* Bits of CapabilityMask. */
#define PORT_INFO_IS_SM 0x02u

/* Sets the values of a port that nobody has configured, with the LIDs, width
 * and speed of the file.  The link is down. */
void port_info_first(struct port *port, const struct net_port *from);
/* Writes a row of an SL to VL table that maps each SL to the VL of its
 * number. */
void port_info_first_slvl(uint8_t row[SLVL_BYTES]);
/* Sets LinkWidthActive and LinkSpeedActive at both ends of a port's cable. */
void port_info_negotiate(struct port *port);
/* Writes PortInfo for a request that came in at port `in_number`. */
void port_info_write(const struct port *port, uint8_t in_number,
		     uint8_t to[PORT_INFO_BYTES]);
/* Applies Set(PortInfo).  Returns 0, or STATUS_VALUE if a value is not allowed;
 * then nothing is changed. */
uint16_t port_info_set(struct port *port, const uint8_t from[PORT_INFO_BYTES]);
/* Sets or clears IsSM, without a trap. */
void port_info_set_sm(struct port *port, bool is_sm);
/* The port's base LID (0: none), LID mask count, and its SM's LID. */
uint16_t port_info_lid(const struct port *port);
uint8_t port_info_lmc(const struct port *port);
uint16_t port_info_sm_lid(const struct port *port);
/* Does the port receive packets to this unicast LID? */
bool port_info_has_lid(const struct port *port, uint16_t lid);
/* Fills what PortInfo says for libibumad. */
void port_info_show(const struct port *port, struct fabric_port *shown);

#endif
