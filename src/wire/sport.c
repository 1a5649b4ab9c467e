/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/sport.h"

#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/inaddr.h"
#include "wire/udp.h"

#define FIRST_PORT 0xc000u /* IBTA A17.3.1: the dynamic ports */
#define PORTS	   0x4000u
#define TRIES	   512 /* ports that others may have */

/* FNV-1a, and its upper bits folded onto the lower ones. */
static uint32_t hash(const uint8_t ip[16], uint32_t class)
{
	uint32_t h = 2166136261u ^ class;

	for (int i = 0; i < 16; i++)
		h = (h ^ ip[i]) * 16777619u;
	h = (h ^ class) * 16777619u;
	return h ^ h >> 16;
}

/* The slot of the pair, or the empty one where it belongs; without either
 * somebody's, which is shared then. */
static uint32_t slot_of(const struct sports *s, const uint8_t ip[16],
			uint32_t class)
{
	uint32_t home = hash(ip, class) % SPORT_MAX;

	for (uint32_t k = 0; k < SPORT_MAX; k++) {
		const struct sport *p = &s->slot[(home + k) % SPORT_MAX];

		if (!ring_load(&p->port) ||
		    (p->class == class && inaddr_has_same_ip(p->ip, ip)))
			return (home + k) % SPORT_MAX;
	}
	return home;
}

/* What comes to the port is nobody's. */
static void deafen(int fd)
{
	struct sock_filter code = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog none = {1, &code};
	int least = 0;

	setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &none, sizeof none);
	/* and where there are no filters it costs little */
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &least, sizeof least);
}

/* The socket of a new slot; its port, 0 if there is none to be had. */
static uint16_t open_at(uint32_t at, int *fd)
{
	for (uint32_t k = 0; k < TRIES; k++) {
		uint16_t port = (uint16_t)(FIRST_PORT + (at + k) % PORTS);

		*fd = udp_bind_sender(port);
		if (*fd >= 0) {
			deafen(*fd);
			return port;
		}
		if (*fd != -EADDRINUSE)
			break;
	}
	*fd = -1;
	return 0;
}

uint16_t sport_find(const struct sports *s, const uint8_t ip[16],
		    uint32_t class)
{
	/* all members of a group get all that is sent to it */
	if (s->is_off || inaddr_is_multicast(ip))
		return s->main_port;
	return (uint16_t)ring_load(&s->slot[slot_of(s, ip, class)].port);
}

uint16_t sport_open(struct sports *s, const uint8_t ip[16], uint32_t class)
{
	uint16_t port = sport_find(s, ip, class);
	struct sport *p;

	if (port)
		return port;
	p = &s->slot[slot_of(s, ip, class)];
	port = open_at(hash(ip, class), &p->fd);
	memcpy(p->ip, ip, 16);
	p->class = class;
	if (!port)
		port = s->main_port;
	ring_store(&p->port, port);
	return port;
}

int sport_fd(const struct sports *s, uint16_t port)
{
	for (uint32_t i = 0; port != s->main_port && i < SPORT_MAX; i++)
		if (ring_own(&s->slot[i].port) == port)
			return s->slot[i].fd;
	return -1;
}

void sport_close(struct sports *s)
{
	for (uint32_t i = 0; i < SPORT_MAX; i++)
		if (ring_own(&s->slot[i].port) && s->slot[i].fd >= 0)
			close(s->slot[i].fd);
	memset(s->slot, 0, sizeof s->slot);
}
