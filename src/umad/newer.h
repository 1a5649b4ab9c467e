/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of the version nodes IBUMAD_1.3 and 1.4, which the headers of this
 * build may not declare: they are for adapters whose subnet management (SMI)
 * has a device of its own.
 */
#ifndef UMAD_NEWER_H
#define UMAD_NEWER_H

#include <infiniband/umad.h>

struct umad_ca_pair;

int umad_open_smi_port(const char *ca_name, int portnum);
/* Fills at most `max` pairs, and returns the number of pairs. */
int umad_get_smi_gsi_pairs(struct umad_ca_pair *pairs, size_t max);
/* enforce_smi: the call fails if the device has a port for GSI alone. */
int umad_get_smi_gsi_pair_by_ca_name(const char *ca_name, uint8_t portnum,
				     struct umad_ca_pair *pair,
				     unsigned int enforce_smi);

#endif
