/* SPDX-License-Identifier: BSD-2-Clause */
/* The adapter of a fabric's host and its ports, as libibumad shows them. */
#include "umad/fabric.h"

#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "umad/explain.h"
#include "util/remedy.h"

enum { STATE_ACTIVE = 4 };		      /* PortState */
enum { PHYS_DISABLED = 3, PHYS_LINK_UP = 5 }; /* PortPhysicalState */

/* How well a port suits a program that names no port, as with rdma-core. */
enum rank { RANK_DISABLED, RANK_NO_LINK, RANK_LINK_UP, RANK_ACTIVE };

/* Makes a connection for one request, and closes it after the answer, which
 * replaces *m.  Returns 0 or -errno. */
static int ask_once(struct fabric_proto *m)
{
	int cancel, connection;

	/* A thread that is cancelled here would leak the connection. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	connection = u_fabric_query(m, NULL);
	if (connection >= 0)
		close(connection);
	pthread_setcancelstate(cancel, NULL);
	return connection < 0 ? connection : 0;
}

static int ask_ca(struct fabric_ca *ca)
{
	struct fabric_proto m = {.kind = FABRIC_PROTO_CA};
	int err = ask_once(&m);

	if (err)
		return err;
	*ca = m.ca;
	if (ca->first_port > ca->last_port)
		return -EPROTO;
	/* umad_ca_t has no room for more ports */
	if (ca->last_port >= UMAD_CA_MAX_PORTS)
		ca->last_port = UMAD_CA_MAX_PORTS - 1;
	return 0;
}

static int ask_port(uint32_t number, struct fabric_port *port)
{
	struct fabric_proto m = {.kind = FABRIC_PROTO_PORT, .number = number};
	int err = ask_once(&m);

	if (!err)
		*port = m.port;
	return err;
}

int u_fabric_has(const char *ca_name)
{
	struct fabric_ca ca;
	int err;

	if (!u_fabric_is_used() ||
	    (ca_name && strcmp(ca_name, U_FABRIC_CA) != 0))
		return 0;
	err = ask_ca(&ca);
	if (!err || !remedy_of(-err, NULL))
		return !err;
	errno = -err;
	return err;
}

static enum rank rank_of(const struct fabric_port *port)
{
	if (port->state == STATE_ACTIVE)
		return RANK_ACTIVE;
	if (port->phys_state == PHYS_LINK_UP)
		return RANK_LINK_UP;
	return port->phys_state == PHYS_DISABLED ? RANK_DISABLED : RANK_NO_LINK;
}

/* Stores in *number the first of the ports with the highest rank.  Returns 0;
 * -ENODEV after a sentence: all ports are disabled; or another -errno. */
static int choose_port(const struct fabric_ca *ca, uint32_t *number)
{
	enum rank best = RANK_DISABLED;

	for (uint32_t i = ca->first_port;
	     i <= ca->last_port && best < RANK_ACTIVE; i++) {
		struct fabric_port port;
		int err = ask_port(i, &port);

		if (err)
			return err;
		if (rank_of(&port) > best) {
			best = rank_of(&port);
			*number = i;
		}
	}
	if (best > RANK_DISABLED)
		return 0;
	u_say("umad: a call that names no port of " U_FABRIC_CA " fails with "
	      "ENODEV: all ports of the adapter are disabled; name a port by "
	      "its number, or enable a port from another host (ibportstate)");
	return -ENODEV;
}

int u_fabric_port(int portnum, uint32_t *number)
{
	struct fabric_ca ca;
	int err = ask_ca(&ca);

	if (err)
		return err;
	if (!portnum)
		return choose_port(&ca, number);
	*number = (uint32_t)portnum;
	return portnum >= ca.first_port && portnum <= ca.last_port ? 0
								   : -ENODEV;
}

int u_fabric_get_port(uint32_t number, umad_port_t *port)
{
	struct fabric_port from;
	int err = ask_port(number, &from);

	memset(port, 0, sizeof(*port));
	if (!err) {
		port->pkeys_size = sizeof(from.pkeys) / sizeof(*from.pkeys);
		port->pkeys = calloc(port->pkeys_size, sizeof(*port->pkeys));
		err = port->pkeys ? 0 : -ENOMEM;
	}
	if (err) {
		errno = -err;
		return err;
	}
	memcpy(port->pkeys, from.pkeys, sizeof(from.pkeys));
	snprintf(port->ca_name, sizeof(port->ca_name), U_FABRIC_CA);
	snprintf(port->link_layer, sizeof(port->link_layer), "InfiniBand");
	port->portnum = (int)number;
	port->base_lid = from.lid;
	port->lmc = from.lmc;
	port->sm_lid = from.sm_lid;
	port->sm_sl = from.sm_sl;
	port->state = from.state;
	port->phys_state = from.phys_state;
	port->rate = from.rate;
	port->capmask = htobe32(from.capabilities);
	port->gid_prefix = htobe64(from.gid_prefix);
	port->port_guid = htobe64(from.guids[0]);
	return 0;
}

int u_fabric_get_ca(umad_ca_t *ca)
{
	struct fabric_ca from = {0};
	int err = ask_ca(&from);

	memset(ca, 0, sizeof(*ca));
	for (uint32_t i = from.first_port; !err && i <= from.last_port; i++) {
		ca->ports[i] = calloc(1, sizeof(umad_port_t));
		err = ca->ports[i] ? u_fabric_get_port(i, ca->ports[i])
				   : -ENOMEM;
	}
	if (err) {
		umad_release_ca(ca);
		errno = -err;
		return err;
	}
	snprintf(ca->ca_name, sizeof(ca->ca_name), U_FABRIC_CA);
	snprintf(ca->ca_type, sizeof(ca->ca_type), "adverb");
	snprintf(ca->fw_ver, sizeof(ca->fw_ver), ADVERB_VERSION);
	snprintf(ca->hw_ver, sizeof(ca->hw_ver), "a1");
	ca->node_type = from.node_type;
	ca->numports = from.last_port;
	ca->node_guid = htobe64(from.node_guid);
	ca->system_guid = htobe64(from.system_guid);
	return 0;
}
