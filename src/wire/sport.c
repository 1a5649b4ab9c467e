/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/sport.h"

#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/fd_identity.h"
#include "util/inaddr.h"
#include "util/step.h"
#include "wire/sender.h"

#define FIRST_PORT 0xc000u /* the dynamic ports of RFC 6335, 6 */
#define PORTS	   0x4000u
#define TRIES	   512 /* the most ports to try: some may be in use */
/* How long the ports of a pair are not tried after none could be opened.
 * Otherwise each datagram would try TRIES ports while another user has them. */
#define RETRY_NS  1000000000u
#define ROCE_PORT 4791
#define CHECKED	  (SPORT_SLOTS / 16) /* slots that one check looks at */
/* A value of slot.port: the slot was used and is free now.  A look-up goes on
 * to the next slot. */
#define GONE 0x10000u

struct sport_slot {
	uint8_t ip[16];
	uint32_t class;
	uint32_t uses; /* how many queue pairs use the socket */
	struct sender sender;
	/* The port of the socket; GONE; or 0: the slot is free, and a look-up
	 * ends here.  Stored after ip and class, with release: a thread without
	 * the lock that loads the port reads the pair to which the port
	 * belongs.  Without this order the thread could match the slot's former
	 * pair. */
	shared_u32 port;
	/* Used since the last sweep; see sweep_ports.  Needs no order with
	 * other accesses: a late store at worst has the socket closed one sweep
	 * too early or too late. */
	shared_flag is_fresh;
};

struct sport_table {
	struct sport_slot slot[SPORT_SLOTS];
	uint16_t of_port[PORTS]; /* the index of a slot + 1; 0: none */
	/* When the ports of a pair may be tried again, by the number of its
	 * first port divided by TRIES. */
	uint64_t retry_ns[PORTS / TRIES];
};

/* Returns how many sockets may be open.  Three quarters of the descriptors that
 * the process may have are left to the program. */
static uint32_t most_sockets(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur / 4 > SPORT_MOST)
		return SPORT_MOST;
	return (uint32_t)files.rlim_cur / 4;
}

int sport_init(struct sports *s, uint16_t main_port, bool is_off)
{
	*s = (struct sports){.main_port = main_port,
			     .is_off = is_off,
			     .most = most_sockets()};
	s->table = calloc(1, sizeof(*s->table));
	return s->table ? 0 : -ENOMEM;
}

static bool is_open(const struct sport_slot *p)
{
	uint32_t port = shared_load(&p->port);

	return port && port != GONE;
}

void sport_fini(struct sports *s)
{
	for (uint32_t i = 0; s->table && i < SPORT_SLOTS; i++)
		if (is_open(&s->table->slot[i]))
			sender_close(&s->table->slot[i].sender);
	free(s->table);
	s->table = NULL;
}

/* Returns a hash of the pair: FNV-1a over the bytes of ip, with the class XORed
 * into the hash before and after these bytes.  The upper bits are combined with
 * the lower ones, since the callers use the lower bits alone. */
static uint32_t hash_of(const uint8_t ip[16], uint32_t class)
{
	uint32_t h = 2166136261u ^ class;

	for (int i = 0; i < 16; i++)
		h = (h ^ ip[i]) * 16777619u;
	h = (h ^ class) * 16777619u;
	return h ^ h >> 16;
}

static struct sport_slot *slot_at(const struct sports *s, uint32_t at)
{
	return &s->table->slot[at % SPORT_SLOTS];
}

/* Returns the slot of the pair, and stores the pair's port; or returns NULL.
 * While a caller without the lock reads a slot, another thread may change it.
 * So the port is loaded before and after the pair is compared, and a slot whose
 * port has changed is not taken. */
static struct sport_slot *look_up(const struct sports *s, const uint8_t ip[16],
				  uint32_t class, uint32_t *port)
{
	uint32_t home = hash_of(ip, class);

	for (uint32_t k = 0; k < SPORT_SLOTS; k++) {
		struct sport_slot *p = slot_at(s, home + k);

		*port = shared_load(&p->port);
		if (!*port)
			break;
		if (*port == GONE || p->class != class ||
		    !inaddr_has_same_ip(p->ip, ip))
			continue;
		/* Orders the reads of class and ip before the second load of
		 * port.  Without the fence, class and ip may be those of the
		 * slot's next use, while the second load still finds the old
		 * port.  The writer's fence is in make_socket. */
		shared_fence_acquire();
		if (shared_load(&p->port) == *port)
			return p;
	}
	return NULL;
}

/* Returns a free slot for a new pair, or NULL. */
static struct sport_slot *place_port(const struct sports *s,
				     const uint8_t ip[16], uint32_t class)
{
	uint32_t home = hash_of(ip, class);

	for (uint32_t k = 0; k < SPORT_SLOTS; k++)
		if (!is_open(slot_at(s, home + k)))
			return slot_at(s, home + k);
	return NULL;
}

/* Returns the slot of another pair of the same address family, whose socket the
 * pair can share, or NULL.  Either pair may be a process of this host, so the
 * socket does not stay connected. */
static struct sport_slot *share_port(const struct sports *s,
				     const uint8_t ip[16], uint32_t class)
{
	uint32_t home = hash_of(ip, class);
	bool is_v4 = inaddr_is_v4(ip);

	for (uint32_t k = 0; k < SPORT_SLOTS; k++) {
		struct sport_slot *p = slot_at(s, home + k);

		if (!is_open(p) || p->sender.is_v4 != is_v4)
			continue;
		if (p->sender.is_connected)
			sender_disconnect(&p->sender);
		return p;
	}
	return NULL;
}

/* Makes the kernel drop all datagrams that come to the socket. */
static void discard_input(int fd)
{
	struct sock_filter code = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog none;
	int least = 0;

	memset(&none, 0, sizeof(none)); /* valgrind checks the padding */
	none.len = 1;
	none.filter = &code;
	setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &none, sizeof(none));
	/* Where the filter is refused, a small buffer limits the cost. */
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &least, sizeof(least));
}

/* Opens a socket at the port number `at` of the range, or at the next free
 * port.  Returns its port; 0: none could be opened. */
static uint16_t open_at(uint32_t at, const uint8_t ip[16], struct sender *out)
{
	struct inaddr to = {.port = ROCE_PORT};

	memcpy(to.ip, ip, 16);
	for (uint32_t k = 0; k < TRIES; k++) {
		uint16_t port = (uint16_t)(FIRST_PORT + (at + k) % PORTS);
		int err = sender_open(out, port, &to);

		if (!err) {
			discard_input(out->fd);
			return port;
		}
		if (err != -EADDRINUSE)
			break;
	}
	return 0;
}

/* Does the work of open_at, unless it opened no socket at these ports less than
 * RETRY_NS ago. */
static uint16_t try_ports(struct sports *s, uint32_t at, const uint8_t ip[16],
			  uint64_t now_ns, struct sender *out)
{
	uint64_t *retry_ns = &s->table->retry_ns[at % PORTS / TRIES];
	uint16_t port;

	if (now_ns < *retry_ns)
		return 0;
	port = open_at(at, ip, out);
	if (!port)
		*retry_ns = now_ns + RETRY_NS;
	return port;
}

/* Closes the socket of the slot `at`.  A look-up ends at a slot whose port is
 * 0.  So if the next slot is such a slot, the ports of `at` and of all GONE
 * slots right before it become 0, and later look-ups end there. */
static void forget_port(struct sports *s, uint32_t at)
{
	struct sport_slot *p = slot_at(s, at);

	sender_close(&p->sender);
	s->table->of_port[shared_own(&p->port) - FIRST_PORT] = 0;
	s->count--;
	shared_store(&p->port, GONE);
	if (shared_own(&slot_at(s, at + 1)->port))
		return;
	while (shared_own(&slot_at(s, at)->port) == GONE)
		shared_store(&slot_at(s, at--)->port, 0);
}

/* Closes the sockets that no queue pair uses and that are not fresh.  A socket
 * is fresh if it was opened, found by sport_find or given back by sport_give
 * since the last sweep.  Does nothing until SPORT_IDLE_NS after the last sweep.
 */
static void sweep_ports(struct sports *s, uint64_t now_ns)
{
	if (now_ns - s->swept_ns < SPORT_IDLE_NS)
		return;
	s->swept_ns = now_ns;
	for (uint32_t i = 0; i < SPORT_SLOTS; i++) {
		struct sport_slot *p = slot_at(s, i);

		if (!is_open(p) || p->uses)
			continue;
		if (shared_load(&p->is_fresh))
			shared_store(&p->is_fresh, 0);
		else
			forget_port(s, i);
	}
}

/* Opens a socket for the pair and returns its slot.  NULL: s->most sockets are
 * open, none of TRIES ports is free, the kernel opens no socket, or that was so
 * less than RETRY_NS ago. */
static struct sport_slot *make_socket(struct sports *s, const uint8_t ip[16],
				      uint32_t class, uint64_t now_ns)
{
	struct sport_slot *p =
		s->count < s->most ? place_port(s, ip, class) : NULL;
	uint16_t port = 0;

	if (p)
		port = try_ports(s, hash_of(ip, class), ip, now_ns, &p->sender);
	if (!port)
		return NULL;
	/* Orders the store of GONE in forget_port before the stores of ip and
	 * class.  Without the fence, look_up may read the new ip and class
	 * while both of its loads of port find the slot's former port. */
	shared_fence_release();
	memcpy(p->ip, ip, 16);
	p->class = class;
	p->uses = 0;
	s->table->of_port[port - FIRST_PORT] =
		(uint16_t)(p - s->table->slot + 1);
	s->count++;
	shared_store(&p->is_fresh, 1);
	shared_store(&p->port, port);
	return p;
}

/* Returns the slot of the pair.  If the pair has no slot, opens a socket for
 * it, or returns a slot to share.  NULL: the pair uses the main socket. */
static struct sport_slot *get_port(struct sports *s, const uint8_t ip[16],
				   uint32_t class, uint64_t now_ns)
{
	struct sport_slot *p;
	uint32_t port;

	/* Datagrams to a multicast group need no port of their own: if GRO
	 * joins some of them to one datagram, that datagram goes to all members
	 * of the group. */
	if (s->is_off || inaddr_is_multicast(ip))
		return NULL;
	p = look_up(s, ip, class, &port);
	if (p)
		return p;
	sweep_ports(s, now_ns);
	p = make_socket(s, ip, class, now_ns);
	return p ? p : share_port(s, ip, class);
}

uint16_t sport_find(const struct sports *s, const uint8_t ip[16],
		    uint32_t class)
{
	struct sport_slot *p;
	uint32_t port;

	if (s->is_off || inaddr_is_multicast(ip))
		return s->main_port;
	p = look_up(s, ip, class, &port);
	if (!p)
		return 0;
	STEP("a port is found");
	if (!shared_load(&p->is_fresh))
		shared_store(&p->is_fresh, 1);
	/* Before is_fresh was set, another thread may have given the slot to
	 * another pair. */
	return shared_load(&p->port) == port ? (uint16_t)port : 0;
}

uint16_t sport_open(struct sports *s, const uint8_t ip[16], uint32_t class,
		    uint64_t now_ns)
{
	struct sport_slot *p = get_port(s, ip, class, now_ns);

	return p ? (uint16_t)shared_own(&p->port) : s->main_port;
}

uint16_t sport_take(struct sports *s, const uint8_t ip[16], uint32_t class,
		    uint64_t now_ns)
{
	struct sport_slot *p = get_port(s, ip, class, now_ns);

	if (!p)
		return s->main_port;
	p->uses++;
	return (uint16_t)shared_own(&p->port);
}

static struct sport_slot *of_port(const struct sports *s, uint16_t port)
{
	uint32_t i = 0;

	if (port >= FIRST_PORT && port != s->main_port)
		i = s->table->of_port[port - FIRST_PORT];
	return i ? slot_at(s, i - 1) : NULL;
}

void sport_give(struct sports *s, uint16_t port)
{
	struct sport_slot *p = of_port(s, port);

	if (!p || !p->uses)
		return;
	p->uses--;
	shared_store(&p->is_fresh, 1);
}

struct sender *sport_sender(const struct sports *s, uint16_t port)
{
	struct sport_slot *p = of_port(s, port);

	return p ? &p->sender : NULL;
}

bool sport_check_next(struct sports *s)
{
	bool holds = true;

	for (uint32_t k = 0; s->count && k < CHECKED; k++) {
		const struct sport_slot *p = slot_at(s, s->check_at++);

		holds &= !is_open(p) || fd_identity_holds(p->sender.fd);
	}
	return holds;
}
