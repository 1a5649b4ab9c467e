/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The channel adapter of a host of an emulated subnet (`adverb fabric`) as an
 * RDMA device.  A process on such a host has this device and no other one.
 * Stateless: netif.c owns the device.
 */
#ifndef DEVICE_IB_H
#define DEVICE_IB_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"

/* The device's name. */
#define IB_NAME "advib0"

/* Returns whether this process is on a host of a fabric (ADVERB_FABRIC). */
bool ib_is_used(void);
/* Asks the fabric for the adapter of this process's host, and fills in *d,
 * which the caller has zeroed.  Waits at most patience_ms for each answer.
 * Returns 0; or prints a message and returns, with *d undefined, -ENODEV: the
 * host's node is no channel adapter; -EPROTO: the fabric's answer is wrong; or
 * another -errno. */
int ib_find(struct device *d, uint32_t patience_ms);
/* Sets *port to a state that the fabric has reported. */
void ib_set_port(struct device_port *port, const struct fabric_port *said);
/* Returns how many lanes the link of a port uses: 1, 4, 8 or 12. */
unsigned ib_lanes(const struct fabric_port *said);
/* Copies the GID at an index of the port's table to gid.  Returns false, and
 * sets gid to zeros, if the table has no GID there. */
bool ib_gid(const struct device_port *port, uint32_t index, uint8_t gid[16]);

#endif
