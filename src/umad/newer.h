/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of the version nodes IBUMAD_1.3 and IBUMAD_1.4, which older headers do
 * not declare.  The calls are for adapters that have one device for the subnet
 * management interface (SMI) and another one for the GSI.
 */
#ifndef UMAD_NEWER_H
#define UMAD_NEWER_H

#include <infiniband/umad.h>

struct umad_ca_pair;

/* Opens a port of an adapter for the SMI.  ca_name NULL: the first adapter;
 * portnum 0: the first active port or, if no port is active, another one.
 * Returns a handle, which umad_close_port closes, or -errno. */
int umad_open_smi_port(const char *ca_name, int portnum);
/* Writes the names of the devices for SMI and GSI of each adapter to pairs[],
 * for at most `max` adapters.  Returns how many pairs were written; adverb has
 * no such adapter and returns 0. */
int umad_get_smi_gsi_pairs(struct umad_ca_pair *pairs, size_t max);
/* Writes the names of the devices for SMI and GSI of one port of an adapter to
 * *pair.  enforce_smi not 0: the call fails if the port has a device for the
 * GSI but none for the SMI.  Returns 0 or -errno; adverb has no such adapter
 * and returns -ENODEV. */
int umad_get_smi_gsi_pair_by_ca_name(const char *ca_name, uint8_t portnum,
				     struct umad_ca_pair *pair,
				     unsigned int enforce_smi);

#endif
