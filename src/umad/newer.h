/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of the version nodes IBUMAD_1.3 and IBUMAD_1.4, which older headers do
 * not declare.  An adapter may have one device for the subnet management
 * interface (SMI) and another one for the GSI; the adapter of a fabric's host
 * has one device for both.  The programs of infiniband-diags since rdma-core 56
 * open the ports that umad_get_smi_gsi_pair_by_ca_name names.
 */
#ifndef UMAD_NEWER_H
#define UMAD_NEWER_H

#include <infiniband/umad.h>

struct umad_ca_pair;

/* Opens a port of an adapter for the SMI.  ca_name NULL: the first adapter;
 * portnum 0: the first active port; if there is none, the first port with a
 * link; or else the first port.  Returns a handle, which umad_close_port
 * closes, or -errno. */
int umad_open_smi_port(const char *ca_name, int portnum);
/* Writes the names of the devices for SMI and GSI of each adapter to pairs[],
 * for at most `max` adapters, without ports, and zeros to the rest of pairs[].
 * Returns how many pairs were written, or -errno. */
int umad_get_smi_gsi_pairs(struct umad_ca_pair *pairs, size_t max);
/* Writes to *pair the devices for SMI and GSI of one port of an adapter, and
 * the port.  ca_name NULL: the first adapter; portnum 0: the port that
 * umad_open_port opens for 0.  enforce_smi not 0: the call fails if the port
 * has a device for the GSI but none for the SMI, which no adapter here does.
 * Returns 0 or -errno with errno set; -ENODEV: there is no such port. */
int umad_get_smi_gsi_pair_by_ca_name(const char *ca_name, uint8_t portnum,
				     struct umad_ca_pair *pair,
				     unsigned int enforce_smi);

#endif
