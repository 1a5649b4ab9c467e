/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/peer.h"

#include <errno.h>

#include "broker/client.h"
#include "broker/steer.h"
#include "host/host.h"
#include "wire/udp.h"

#define ROCEV2_UDP_PORT 4791

static struct client broker;
static bool has_broker;

int peer_socket(void)
{
	const char *why = "";
	int err = client_open(&broker, &why);

	has_broker = !err;
	if (!err)
		return broker.udp_fd;
	host_say(0xb0, "%s", why);
	/* a port that somebody holds cannot be had alone either */
	return err == -EADDRINUSE ? err : udp_bind(ROCEV2_UDP_PORT);
}

uint32_t peer_qpn(uint32_t random)
{
	return has_broker ? steer_qpn(broker.class, random & 0x3fff)
			  : random & 0xffffff;
}

enum engine_peer peer_ask(const struct engine_event *e)
{
	int state = has_broker ? client_peer_state(&broker, e->dest_qpn) : 2;

	if (state == 0)
		return ENGINE_PEER_GONE;
	return state == 1 ? ENGINE_PEER_ALIVE : ENGINE_PEER_UNKNOWN;
}

void peer_close(void)
{
	if (has_broker)
		client_close(&broker);
	has_broker = false;
}
