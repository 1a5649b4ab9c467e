/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "broker/client.h"
#include "broker/steer.h"
#include "host/host.h"
#include "host/netif.h"
#include "wire/udp.h"

#define ROCEV2_UDP_PORT 4791

static struct client broker;
static bool has_broker;

int peer_socket(void)
{
	const char *why = "";
	int err = client_open(&broker, &why);

	has_broker = !err;
	if (!err) {
		/* the lane and the client each close their own */
		int fd = fcntl(broker.udp_fd, F_DUPFD_CLOEXEC, 0);

		err = fd < 0 ? -errno : 0;
		if (err)
			peer_close();
		return err ? err : fd;
	}
	host_say(0xb0, "%s", why);
	/* a port that somebody holds cannot be had alone either */
	return err == -EADDRINUSE ? err : udp_bind(ROCEV2_UDP_PORT);
}

uint32_t peer_qpn(uint32_t random)
{
	return has_broker ? steer_qpn(broker.class, random & 0x3fff)
			  : random & 0xffffff;
}

void *peer_page(void)
{
	return has_broker ? client_page(&broker) : NULL;
}

const void *peer_page_of(uint32_t qpn)
{
	return has_broker ? client_page_of(&broker, steer_class(qpn)) : NULL;
}

enum engine_peer peer_ask(const struct engine_event *e)
{
	/* our broker knows the QPNs of this namespace only */
	if (!has_broker || !netif_is_local(e->peer.ip))
		return ENGINE_PEER_UNKNOWN;
	switch (client_peer_state(&broker, e->dest_qpn)) {
	case CLIENT_PEER_GONE:
		return ENGINE_PEER_GONE;
	case CLIENT_PEER_ALIVE:
		return ENGINE_PEER_ALIVE;
	}
	return ENGINE_PEER_UNKNOWN;
}

void peer_close(void)
{
	if (has_broker)
		client_close(&broker);
	has_broker = false;
}
