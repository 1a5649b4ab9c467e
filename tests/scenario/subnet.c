/* SPDX-License-Identifier: BSD-2-Clause */
#include "scenario/subnet.h"

#include <stdlib.h>
#include <string.h>

#include "fabric/data.h"
#include "fabric/inside.h"
#include "fabric/net.h"
#include "fabric/port_info.h"
#include "fabric/reach_qp.h"
#include "hdr/bytes.h"
#include "hdr/lrh.h"
#include "util/check.h"

/* Offsets in PortInfo, and values there (IBTA 14.2.5.6). */
enum {
	AT_GID_PREFIX = 8,
	AT_LID = 16,
	AT_MTU = 36,
	AT_LANES = 43,
	MTU_4096 = 5 << 4,
	LANES_8 = 4 << 4,
};

struct subnet {
	struct fabric *fabric;
	struct data_end *ends[2][SUBNET_PORTS]; /* [host][port number - 1] */
};

static const char net_text[] =
	"Switch 2 \"S1\"\n[1] \"H0\"[1]\n[2] \"S2\"[1]\n\n"
	"Switch 2 \"S2\"\n[1] \"S1\"[2]\n[2] \"S3\"[1]\n\n"
	"Switch 2 \"S3\"\n[1] \"S2\"[2]\n[2] \"H1\"[1]\n\n"
	"Switch 2 \"S4\"\n[1] \"H0\"[2]\n[2] \"H1\"[2]\n\n"
	"Hca 2 \"H0\"\n[1] \"S1\"[1]\n[2] \"S4\"[1]\n\n"
	"Hca 2 \"H1\"\n[1] \"S3\"[2]\n[2] \"S4\"[2]\n";

uint16_t subnet_lid(int host)
{
	return (uint16_t)(16 + host);
}

uint16_t subnet_second_lid(int host)
{
	return (uint16_t)(32 + host);
}

static struct port *port_of(const struct subnet *s, int host, int number)
{
	return &fabric_find(s->fabric, host ? "H1" : "H0")->ports[number];
}

/* Port 1 of each switch leads to host 0, port 2 to host 1. */
static void set_tables(struct node *node)
{
	if (!node_is_switch(node))
		return;
	bytes_put16(node->switch_info + 6, subnet_second_lid(1));
	node->lft[subnet_lid(0)] = node->lft[subnet_second_lid(0)] = 1;
	node->lft[subnet_lid(1)] = node->lft[subnet_second_lid(1)] = 2;
	node->mft[(SUBNET_MLID - 0xc000) * node->mft_columns] = 1 << 1 | 1 << 2;
}

static void set_ports(struct node *node)
{
	for (int i = 1; i <= node->port_count; i++) {
		struct port *port = &node->ports[i];

		port->info[AT_MTU] =
			(uint8_t)((port->info[AT_MTU] & 15) | MTU_4096);
		port->info[AT_LANES] =
			(uint8_t)((port->info[AT_LANES] & 15) | LANES_8);
		port->state = STATE_ACTIVE;
	}
}

static void open_ends(struct subnet *s, int host)
{
	struct port *one = port_of(s, host, 1), *two = port_of(s, host, 2);
	struct data_end **ends = s->ends[host];
	int err;

	bytes_put16(one->info + AT_LID, subnet_lid(host));
	bytes_put16(two->info + AT_LID, subnet_second_lid(host));
	ends[0] = data_open(one->node, 1, NULL, &err);
	CHECK(ends[0]);
	ends[1] = data_open_beside(ends[0], 2, NULL, &err);
	CHECK(ends[1]);
}

struct subnet *subnet_new(void)
{
	struct subnet *s = calloc(1, sizeof(*s));
	struct net_error error;
	struct node *node;
	struct net net;

	CHECK(s && !net_parse(net_text, sizeof(net_text) - 1, &net, &error));
	s->fabric = fabric_new(&net);
	net_free(&net);
	CHECK(s->fabric);
	for (uint32_t i = 0; (node = fabric_node(s->fabric, i)); i++) {
		set_tables(node);
		set_ports(node);
	}
	for (int host = 0; host < 2; host++)
		open_ends(s, host);
	return s;
}

void subnet_free(struct subnet *s)
{
	fabric_free(s->fabric);
	free(s);
}

struct fabric *subnet_fabric(struct subnet *s)
{
	return s->fabric;
}

static void gid_of(const struct port *port, uint8_t gid[16])
{
	port_info_gid(port, port_guid(port, 0), gid);
}

void subnet_gid(const struct subnet *s, int host, uint8_t gid[16])
{
	gid_of(port_of(s, host, 1), gid);
}

void subnet_second_gid(const struct subnet *s, int host, uint8_t gid[16])
{
	gid_of(port_of(s, host, 2), gid);
}

uint32_t subnet_qpn(const struct subnet *s, int host, uint32_t rest)
{
	return data_number(s->ends[host][0]) << DATA_REST_BITS | rest;
}

void subnet_set_pkey(struct subnet *s, int host, uint32_t index, uint16_t pkey)
{
	port_of(s, host, 1)->pkeys[index] = pkey;
}

void subnet_set_prefix(struct subnet *s, int host, uint64_t prefix)
{
	bytes_put64(port_of(s, host, 1)->info + AT_GID_PREFIX, prefix);
}

struct hca_port subnet_port(const struct subnet *s, int host)
{
	struct hca_port port = {.lid = subnet_lid(host)};

	memcpy(port.pkeys, port_of(s, host, 1)->pkeys, sizeof(port.pkeys));
	return port;
}

struct hca_port subnet_second_port(const struct subnet *s, int host)
{
	struct hca_port port = {.lid = subnet_second_lid(host)};

	memcpy(port.pkeys, port_of(s, host, 2)->pkeys, sizeof(port.pkeys));
	return port;
}

void subnet_join(struct subnet *s, int host, const uint8_t gid[16])
{
	CHECK(!data_join(s->ends[host][0], gid));
}

bool subnet_reaches(const struct subnet *s, int host,
		    const struct hca_qp_attr *a, struct hca_way *way)
{
	const struct reach r = reach_of_qp(a);
	struct reach_peer peer;

	if (reach_find(s->ends[host][0], &r, &peer) != s->ends[!host][0])
		return false;
	*way = reach_way(&peer, reach_changes(s->fabric));
	return true;
}

int subnet_send(struct subnet *s, int host, uint32_t number,
		const uint8_t *head, size_t head_bytes, const uint8_t *bytes,
		size_t len, uint64_t now_ns)
{
	uint8_t packet[LRH_FRAME_MAX];
	int err;

	CHECK(head_bytes + len <= sizeof(packet));
	memcpy(packet, head, head_bytes);
	memcpy(packet + head_bytes, bytes, len);
	fabric_set_time(s->fabric, now_ns / 1000000);
	err = data_send(s->ends[host][number - 1], packet, head_bytes + len);
	fabric_turn(s->fabric, now_ns / 1000000);
	return err;
}

size_t subnet_fetch(struct subnet *s, int host, uint32_t number, uint8_t *buf)
{
	size_t bytes = 0;
	const uint8_t *packet = data_fetch(s->ends[host][number - 1], &bytes);

	if (!packet)
		return 0;
	memcpy(buf, packet, bytes);
	data_fetched(s->ends[host][number - 1]);
	return bytes;
}
