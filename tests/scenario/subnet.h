/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A subnet of two hosts, whose ports and tables are set as a subnet manager
 * sets them.  Three switches connect ports 1 of the hosts, and a fourth switch
 * connects ports 2.  Each port of a host has a data end (fabric/data.h).
 *
 *	host 0 [1] --- S1 --- S2 --- S3 --- [1] host 1
 *	       [2] ---------- S4 ---------- [2]
 */
#ifndef TESTS_SCENARIO_SUBNET_H
#define TESTS_SCENARIO_SUBNET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hca/qp.h"

#define SUBNET_PORTS 2	     /* ports of a host */
#define SUBNET_MLID  0xc001u /* switches forward its packets to both hosts */

struct fabric;
struct subnet;

/* Makes the subnet, which the caller frees. */
struct subnet *subnet_new(void);
void subnet_free(struct subnet *s);
/* Returns the fabric, which the subnet owns, for changes of its tables. */
struct fabric *subnet_fabric(struct subnet *s);
/* Returns the LID of a host's port 1. */
uint16_t subnet_lid(int host);
/* Returns the LID of a host's port 2. */
uint16_t subnet_second_lid(int host);
/* Writes the first GID of a host's port 1. */
void subnet_gid(const struct subnet *s, int host, uint8_t gid[16]);
/* Writes the first GID of a host's port 2. */
void subnet_second_gid(const struct subnet *s, int host, uint8_t gid[16]);
/* Returns a QPN of the data end of a host's port 1; `rest` has at most
 * DATA_REST_BITS bits. */
uint32_t subnet_qpn(const struct subnet *s, int host, uint32_t rest);
/* Sets an entry of the P_Key table of a host's port 1. */
void subnet_set_pkey(struct subnet *s, int host, uint32_t index, uint16_t pkey);
/* Sets the prefix of the GIDs of a host's port 1. */
void subnet_set_prefix(struct subnet *s, int host, uint64_t prefix);
/* Returns the LID and the P_Keys of a host's port 1. */
struct hca_port subnet_port(const struct subnet *s, int host);
/* Returns the LID and the P_Keys of a host's port 2. */
struct hca_port subnet_second_port(const struct subnet *s, int host);
/* Joins the data end of a host's port 1 to a multicast group. */
void subnet_join(struct subnet *s, int host, const uint8_t gid[16]);
/* Returns whether packets of a connection with the attributes `a` get from port
 * 1 of a host to port 1 of the other host, and back.  If so, sets *way. */
bool subnet_reaches(const struct subnet *s, int host,
		    const struct hca_qp_attr *a, struct hca_way *way);
/* Sends a packet, which is `head` and then `bytes`, from port `number` of a
 * host, and runs the subnet until now_ns.  Returns the result of data_send. */
int subnet_send(struct subnet *s, int host, uint32_t number,
		const uint8_t *head, size_t head_bytes, const uint8_t *bytes,
		size_t len, uint64_t now_ns);
/* Copies the next packet that has arrived at port `number` of a host to buf,
 * which has LRH_FRAME_MAX bytes.  Returns its length; 0: there is none. */
size_t subnet_fetch(struct subnet *s, int host, uint32_t number, uint8_t *buf);

#endif
