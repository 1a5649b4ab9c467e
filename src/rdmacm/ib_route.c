/* SPDX-License-Identifier: BSD-2-Clause */
#include "rdmacm/ib.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "rdmacm/explain.h"
#include "util/bits.h"

#define PREFIX	      8	     /* bytes of a GID */
#define PKEY_BASE     0x7fff /* without the bit of full membership */
#define MTU_MAX	      5
#define LIFE_TIME_MAX 63
#define TIMEOUT_MAX   31
#define SIX_BITS      0x3f /* the value below a selector */
#define UNICAST_MAX   0xbfff

/* ---- the source ---- */

/* How many ports a search has looked at. */
struct ports_seen {
	unsigned active;  /* active ports */
	unsigned members; /* active ports in the partition */
};

static bool is_active(const struct r_device *d, uint8_t number)
{
	struct ibv_port_attr port;

	return !ibv_query_port(d->verbs, number, &port) &&
	       port.state == IBV_PORT_ACTIVE;
}

static uint8_t count_ports(const struct r_device *d)
{
	struct ibv_device_attr attr;

	return ibv_query_device(d->verbs, &attr) ? 0 : attr.phys_port_cnt;
}

/* Returns the index of the port's P_Key of full membership in pkey's partition,
 * or of limited membership if the port has no other; -1: the port has neither.
 */
static int find_pkey(struct ibv_context *verbs, uint8_t number, uint16_t pkey)
{
	struct ibv_port_attr port;
	int limited = -1;
	__be16 entry;

	if (ibv_query_port(verbs, number, &port))
		return -1;
	for (int i = 0; i < port.pkey_tbl_len; i++) {
		if (ibv_query_pkey(verbs, number, i, &entry) ||
		    ((be16toh(entry) ^ pkey) & PKEY_BASE))
			continue;
		if (be16toh(entry) & ~PKEY_BASE)
			return i;
		limited = limited < 0 ? i : limited;
	}
	return limited;
}

/* Returns whether packets with the P_Key (0: any) may leave by the port, and
 * counts an active port in *seen. */
static bool is_usable(const struct r_device *d, uint8_t number, uint16_t pkey,
		      struct ports_seen *seen)
{
	bool is_member;

	if (!is_active(d, number))
		return false;
	is_member = !pkey || find_pkey(d->verbs, number, pkey) >= 0;
	seen->active++;
	seen->members += is_member;
	return is_member;
}

/* Finds the source GID for packets that go to the GID `to` with the P_Key.  If
 * `to` is a GID of a usable port of this host (is_usable), the source GID is
 * `to`.  Otherwise it is the first GID of the first usable port whose first GID
 * has the prefix of `to`; if `to` is NULL, any prefix will do.  Returns false,
 * and stores zeroes, if there is no such GID; *seen then counts the ports, and
 * may count the port of `to` twice. */
static bool find_source(const uint8_t *to, uint16_t pkey, uint8_t gid[16],
			struct ports_seen *seen)
{
	const struct r_device *d = r_device_ib();
	uint8_t ports = d ? count_ports(d) : 0;
	union ibv_gid own;
	struct r_path path;

	*seen = (struct ports_seen){0};
	if (d && to && r_device_find(to, R_ROCE, &path) &&
	    is_usable(d, path.port_num, pkey, seen)) {
		memcpy(gid, to, 16);
		return true;
	}
	for (uint8_t n = 1; n <= ports; n++) {
		if (!is_usable(d, n, pkey, seen) ||
		    ibv_query_gid(d->verbs, n, 0, &own))
			continue;
		if (to && memcmp(own.raw, to, PREFIX) != 0)
			continue;
		memcpy(gid, own.raw, 16);
		return true;
	}
	memset(gid, 0, 16);
	return false;
}

bool r_ib_own_gid(uint8_t gid[16])
{
	struct ports_seen seen;

	return find_source(NULL, 0, gid, &seen);
}

int r_ib_source(const struct sockaddr *to, struct sockaddr_storage *from)
{
	uint8_t peer[16], gid[16];
	uint16_t pkey = r_addr_pkey(to);
	struct ports_seen seen;
	char text[R_ADDR_TEXT];

	r_addr_ip(to, peer);
	if (find_source(peer, pkey, gid, &seen)) {
		r_addr_make_ib((struct sockaddr *)from, gid, 0, 0, pkey);
		return 0;
	}
	if (!seen.active)
		return r_fail(ENODEV, "rdma_resolve_addr: no port of advib0 is "
				      "active, since no subnet manager has "
				      "configured it, or its link is down; "
				      "start opensm on a host of the fabric, "
				      "and wait until ibv_devinfo shows "
				      "PORT_ACTIVE");
	if (!seen.members)
		return r_fail(
			ENODEV,
			"rdma_resolve_addr: no active port of advib0 is in "
			"the partition of the P_Key 0x%04x (sib_pkey); the "
			"subnet manager gives ports their P_Keys (opensm's "
			"partitions.conf), and ibv_devinfo -v shows them",
			pkey);
	return r_fail(ENODEV,
		      "rdma_resolve_addr: no active port of advib0 has the "
		      "subnet prefix of the GID %s; ibv_devinfo -v shows the "
		      "GIDs of a host",
		      r_addr_text(to, text));
}

/* Returns whether an id of this port space may have a service ID that begins
 * with `space`. */
static bool is_space(enum rdma_port_space ps, uint64_t space)
{
	if (space == RDMA_PS_TCP || space == RDMA_PS_UDP)
		return ps == RDMA_PS_IB || space == (uint64_t)ps;
	return space == RDMA_PS_IB && ps == RDMA_PS_IB;
}

int r_ib_check_space(const struct r_id *id, const struct sockaddr *addr)
{
	uint64_t space = r_addr_is_ib(addr) ? r_addr_space(addr) : 0;

	if (!space || is_space(id->base.ps, space))
		return 0;
	return r_fail(EPROTONOSUPPORT,
		      "rdma_cm: the service ID of the address (sib_sid) begins "
		      "with 0x%llx, and ids of the port space 0x%x have other "
		      "service IDs; set sib_sid to the port space shifted left "
		      "by 16 bits, plus the port",
		      (unsigned long long)space, (unsigned)id->base.ps);
}

/* ---- the path ---- */

/* Returns whether a path has valid values.  The path may come from the fabric,
 * from a peer or from the program. */
static bool is_valid_path(const struct cmproto_path *p)
{
	return p->local_lid && p->local_lid <= UNICAST_MAX && p->remote_lid &&
	       p->remote_lid <= UNICAST_MAX && p->mtu && p->mtu <= MTU_MAX &&
	       p->sl < 16 && p->life_time <= LIFE_TIME_MAX && p->pkey;
}

static void explain_error(const struct r_id *id, int err)
{
	const struct sockaddr *to = &id->base.route.addr.dst_addr;
	const struct sockaddr *from = &id->base.route.addr.src_addr;
	const char *kind = r_addr_is_ib(to) ? "the GID " : "";
	char text[R_ADDR_TEXT], own[R_ADDR_TEXT];

	r_addr_text(to, text);
	if (err == -ENETUNREACH)
		r_say("rdma_resolve_route: ROUTE_ERROR: the subnet manager "
		      "knows no path to %s%s with this P_Key; ibv_devinfo -v on "
		      "the peer's host shows its GIDs, and saquery -p shows "
		      "the paths",
		      kind, text);
	else if (err == -EREMOTEIO)
		r_say("rdma_resolve_route: ROUTE_ERROR: the port with the LID "
		      "of the subnet manager answers that no subnet manager "
		      "runs there, or that it is busy, so no path to %s%s is "
		      "known; start opensm on a host of the fabric, or wait "
		      "until it logs SUBNET UP",
		      kind, text);
	else if (err == -ETIMEDOUT)
		r_say("rdma_resolve_route: ROUTE_ERROR: no subnet manager has "
		      "answered the question for a path to %s%s; start opensm "
		      "on a host of the fabric",
		      kind, text);
	else if (err == -ENETDOWN)
		r_say("rdma_resolve_route: ROUTE_ERROR: the port with the "
		      "address %s is not active, since no subnet manager has configured "
		      "it, or its link is down; start opensm on a host of the "
		      "fabric, and wait until ibv_devinfo shows PORT_ACTIVE",
		      r_addr_text(from, own));
	else
		r_say("rdma_resolve_route: ROUTE_ERROR: the fabric has no path "
		      "to %s%s: %s; saquery -p on a host of the fabric shows "
		      "the paths",
		      kind, text, strerror(-err));
}

/* Returns the status of ROUTE_ERROR.  The kernel reports each status in an
 * answer of the subnet administration as EINVAL. */
static int status_of(int err)
{
	return err == -ENETUNREACH || err == -EREMOTEIO ? -EINVAL : err;
}

void r_ib_routed(struct r_id *id, const struct cmproto *m)
{
	int err = m->err || is_valid_path(&m->path) ? m->err : -EPROTO;
	struct r_event *e = r_event_sure(id,
					 err ? RDMA_CM_EVENT_ROUTE_ERROR
					     : RDMA_CM_EVENT_ROUTE_RESOLVED,
					 status_of(err));

	if (err)
		explain_error(id, err);
	id->state.wants_route = err != 0;
	if (!e)
		return;
	if (!err)
		e->message = *m;
	r_post(e);
}

/* Gives the id a path, and an alternate path or NULL.  Returns 0 or -ENOMEM. */
static int use_path(struct r_id *id, const struct cmproto_path *path,
		    const struct cmproto_alternate *other)
{
	static const struct cmproto_alternate none;
	int err;

	id->path.ib = *path;
	id->path.alternate = other ? *other : none;
	id->path.mtu = bits_min_u8(id->path.mtu, path->mtu);
	err = r_set_record(id, path);
	if (!err)
		id->base.route.addr.addr.ibaddr.pkey = htobe16(path->pkey);
	return err;
}

void r_ib_take_route(struct r_event *e)
{
	struct r_id *id = r_id(e->base.id);

	e->base.status = use_path(id, &e->message.path, NULL);
	if (e->base.status)
		e->base.event = RDMA_CM_EVENT_ROUTE_ERROR;
	r_route_ended(id, e->base.status);
}

void r_ib_take_request(struct r_id *id)
{
	/* a SIDR_REQ names no path */
	if (!r_is_ib(id) || !id->path.ib.remote_lid)
		return;
	r_ib_check_alternate(id);
	r_set_record(id, &id->path.ib);
}

/* The timeout is the sum of the round trip, 4.096 us * 2^(life_time + 1), and
 * the ack delay, 4.096 us * 2^ack_delay (IBTA 12.7.34).  If the exponents
 * differ by at most 1, the sum is rounded up to the next power of 2; else the
 * smaller summand is neglected. */
static uint8_t timeout_of(uint8_t life_time, uint8_t ack_delay)
{
	int timeout = life_time + 1;

	if (timeout >= ack_delay)
		timeout += ack_delay >= timeout - 1;
	else
		timeout = ack_delay + (timeout >= ack_delay - 1);
	return timeout < TIMEOUT_MAX ? (uint8_t)timeout : TIMEOUT_MAX;
}

/* Finds the end of an alternate path at the id's device: the port and the index
 * of its GID, in *from, and the index of the P_Key.  Returns false if there is
 * no such port. */
static bool find_end(const struct r_id *id, const struct cmproto_alternate *a,
		     struct r_path *from, uint16_t *pkey_index)
{
	int found;

	*from = (struct r_path){0};
	if (r_device_find(a->local, R_ROCE, from) != id->device)
		return false;
	found = find_pkey(id->base.verbs, from->port_num, a->path.pkey);
	*pkey_index = (uint16_t)found;
	return found >= 0;
}

bool r_ib_is_alternate(const struct r_id *id, const struct cmproto_alternate *a)
{
	struct r_path from;
	uint16_t index;

	return find_end(id, a, &from, &index);
}

void r_ib_check_alternate(struct r_id *id)
{
	struct cmproto_alternate *a = &id->path.alternate;

	if (a->path.remote_lid &&
	    !(is_valid_path(&a->path) && r_ib_is_alternate(id, a)))
		*a = (struct cmproto_alternate){0};
}

static struct cmproto_path path_of(const struct ibv_path_record *r)
{
	uint32_t hops = be32toh(r->flowlabel_hoplimit) & 0xff;

	return (struct cmproto_path){
		.local_lid = be16toh(r->slid),
		.remote_lid = be16toh(r->dlid),
		.pkey = be16toh(r->pkey),
		.sl = be16toh(r->qosclass_sl) & 0xf,
		.mtu = r->mtu & SIX_BITS,
		.rate = r->rate & SIX_BITS,
		.life_time = r->packetlifetime & SIX_BITS,
		.hop_limit = (uint8_t)hops,
		.traffic_class = r->tclass,
		.is_global = hops > 1,
	};
}

/* Reads the alternate path `other` (NULL: none) of a connection by `path`.
 * Returns 0, or -1 and errno with a message. */
static int read_alternate(const struct r_id *id,
			  const struct cmproto_path *path,
			  const struct ibv_path_record *other,
			  struct cmproto_alternate *a)
{
	*a = (struct cmproto_alternate){0};
	if (!other)
		return 0;
	a->path = path_of(other);
	memcpy(a->local, &other->sgid, 16);
	memcpy(a->peer, &other->dgid, 16);
	a->ack_timeout = timeout_of(a->path.life_time, id->device->ack_delay);
	/* The REQ has one MTU, for both paths. */
	if (is_valid_path(&a->path) && a->path.pkey == path->pkey &&
	    a->path.mtu == path->mtu && r_ib_is_alternate(id, a))
		return 0;
	return r_fail(EINVAL, "rdma_set_option: the alternate path of "
			      "RDMA_OPTION_IB_PATH needs two unicast LIDs, the "
			      "P_Key and the MTU of the first path, and a GID "
			      "of this host as its sgid, at a port in that "
			      "partition");
}

int r_ib_give_route(struct r_id *id, const struct ibv_path_record *r,
		    const struct ibv_path_record *other)
{
	const struct cmproto_path path = path_of(r);
	struct cmproto_alternate a;

	if (!is_valid_path(&path))
		return r_fail(EINVAL,
			      "rdma_set_option: the path of "
			      "RDMA_OPTION_IB_PATH needs two unicast LIDs, a "
			      "P_Key and an MTU of 1 to 5");
	if (read_alternate(id, &path, other, &a))
		return -1;
	if (use_path(id, &path, &a))
		return r_fail(ENOMEM, "rdma_set_option: no memory is left; "
				      "free some, or raise ulimit -v and -d");
	return 0;
}

/* ---- attributes of queue pairs ---- */

/* Returns the path bits of the source LID: its low bits, as many as the LMC of
 * the port. */
static uint8_t path_bits(const struct r_id *id, uint8_t port_num, uint16_t lid)
{
	struct ibv_port_attr port;

	if (ibv_query_port(id->base.verbs, port_num, &port))
		return 0;
	return (uint8_t)(lid & ((1u << port.lmc) - 1));
}

/* Fills in the members of *a for the path p, which leads from *from (a port and
 * the index of a GID) to the GID `peer`. */
static void fill_av(const struct r_id *id, const struct cmproto_path *p,
		    const struct r_path *from, const uint8_t peer[16],
		    struct ibv_ah_attr *a)
{
	a->dlid = p->remote_lid;
	a->sl = p->sl;
	a->src_path_bits = path_bits(id, from->port_num, p->local_lid);
	a->static_rate = p->rate;
	a->port_num = from->port_num;
	if (!p->is_global)
		return;
	a->is_global = 1;
	a->grh.sgid_index = from->sgid_index;
	a->grh.hop_limit = p->hop_limit;
	a->grh.traffic_class = p->traffic_class;
	memcpy(&a->grh.dgid, peer, 16);
}

void r_ib_fill_av(const struct r_id *id, struct ibv_ah_attr *a)
{
	const struct r_path from = {.port_num = id->base.port_num,
				    .sgid_index = id->path.sgid_index};

	fill_av(id, &id->path.ib, &from, id->path.peer, a);
}

uint8_t r_ib_ack_timeout(const struct r_id *id, uint8_t ack_delay)
{
	return timeout_of(id->path.ib.life_time, ack_delay);
}

int r_ib_pkey_index(const struct r_id *id, uint16_t *index)
{
	uint16_t pkey = r_ib_pkey(id);
	int found = find_pkey(id->base.verbs, id->base.port_num, pkey);

	if (found < 0) {
		r_say("rdma_cm: port %u of advib0 is not in the "
		      "partition of the P_Key 0x%04x; the subnet manager gives "
		      "ports their P_Keys (opensm's partitions.conf), and "
		      "ibv_devinfo -v shows them",
		      id->base.port_num, pkey);
		return EINVAL;
	}
	*index = (uint16_t)found;
	return 0;
}

int r_ib_fill_alternate(const struct r_id *id, struct ibv_qp_attr *a)
{
	const struct cmproto_alternate *other = &id->path.alternate;
	struct r_path from;

	/* the passive side may have refused the alternate path in its REP */
	if (!r_is_ib(id) || !other->path.remote_lid ||
	    (!id->state.is_passive && id->remote.alternate.failover) ||
	    !find_end(id, other, &from, &a->alt_pkey_index))
		return 0;
	if (a->qp_state == IBV_QPS_RTS) {
		a->alt_pkey_index = 0;
		a->path_mig_state = IBV_MIG_REARM;
		return IBV_QP_PATH_MIG_STATE;
	}
	fill_av(id, &other->path, &from, other->peer, &a->alt_ah_attr);
	a->alt_port_num = from.port_num;
	a->alt_timeout = other->ack_timeout;
	return IBV_QP_ALT_PATH;
}
