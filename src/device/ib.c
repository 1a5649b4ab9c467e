/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/ib.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fabric/fabric_client.h"
#include "log/log.h"
#include "util/bits.h"

#define TYPE_CA	     1	 /* NodeType (IBTA 14.2.5.3) */
#define STATE_ACTIVE 4	 /* PortState (IBTA 14.2.5.6) */
#define MTU_LEAST    128 /* bytes; MTU code k stands for MTU_LEAST << k */

bool ib_is_used(void)
{
	return *fabric_client_path() != '\0';
}

void ib_set_port(struct device_port *port, const struct fabric_port *said)
{
	memset(port, 0, sizeof(*port));
	port->subnet = *said;
	port->is_up = said->state == STATE_ACTIVE;
	/* 0: the subnet manager has not set the MTU yet (IBTA 14.2.5.6). */
	port->active_mtu = said->mtu ? said->mtu : 1;
	port->mtu = MTU_LEAST << port->active_mtu;
}

/* LinkWidthActive is 1, 2, 4 or 8, for 1x, 4x, 8x or 12x (IBTA 14.2.5.6).  The
 * fabric has no link of width 2x. */
unsigned ib_lanes(const struct fabric_port *said)
{
	return said->width == 1	  ? 1
	       : said->width == 2 ? 4
	       : said->width == 4 ? 8
				  : 12;
}

bool ib_gid(const struct device_port *port, uint32_t index, uint8_t gid[16])
{
	uint64_t guid = index < FABRIC_GUIDS ? port->subnet.guids[index] : 0;

	memset(gid, 0, 16);
	if (!guid)
		return false;
	for (uint32_t i = 0; i < 8; i++) {
		gid[i] = (uint8_t)(port->subnet.gid_prefix >> (56 - 8 * i));
		gid[8 + i] = (uint8_t)(guid >> (56 - 8 * i));
	}
	return true;
}

static int ask_host(int connection, struct fabric_proto *m,
		    enum fabric_proto_kind kind, uint32_t number)
{
	*m = (struct fabric_proto){.kind = kind, .number = number};
	snprintf(m->host, sizeof(m->host), "%s", fabric_client_host());
	return fabric_client_ask(connection, m, NULL);
}

static int ask_port(int connection, uint32_t number, struct device_port *port)
{
	struct fabric_proto m;
	int err = ask_host(connection, &m, FABRIC_PROTO_PORT, number);

	if (!err && !fabric_client_is_port(&m.port))
		err = -EPROTO;
	if (!err)
		ib_set_port(port, &m.port);
	return err;
}

static int ask_adapter(int connection, struct device *d)
{
	struct fabric_proto m;
	int err = ask_host(connection, &m, FABRIC_PROTO_CA, 0);

	if (err)
		return err;
	if (m.ca.node_type != TYPE_CA)
		return -ENODEV;
	if (m.ca.first_port != 1 || !m.ca.last_port || !m.ca.node_guid)
		return -EPROTO;
	snprintf(d->name, sizeof(d->name), IB_NAME);
	snprintf(d->node_desc, sizeof(d->node_desc), "%s", m.text);
	d->kind = DEVICE_IB;
	d->may_go_direct = m.number;
	d->guid = m.ca.node_guid;
	d->system_guid = m.ca.system_guid;
	d->port_count = bits_min_u32(m.ca.last_port, HCA_MAX_PORTS);
	for (uint32_t n = 1; !err && n <= d->port_count; n++)
		err = ask_port(connection, n, &d->ports[n - 1]);
	return err;
}

int ib_find(struct device *d, uint32_t patience_ms)
{
	const char *path = fabric_client_path();
	int connection = fabric_client_connect(path, patience_ms), err;
	char text[512];

	err = connection < 0 ? connection : ask_adapter(connection, d);
	if (connection >= 0)
		close(connection);
	if (err) {
		fabric_client_explain(path, fabric_client_host(), err, text,
				      sizeof(text));
		log_say(LOG_FABRIC_NONE, (uint64_t)-err, "%s", text);
	}
	return err;
}
