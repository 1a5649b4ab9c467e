/* SPDX-License-Identifier: BSD-2-Clause */
/* The RDMA devices.  Each device is opened once, for all rdma_cm_ids of the
 * process. */
#include "rdmacm/explain.h"
#include "rdmacm/object.h"

#include "device/device.h"
#include "util/process.h"
#include "verbs/iwarp.h"
#include "verbs/release.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PORT 1 /* the only port of devices that are not of a fabric */

/* Covers devices, count and owner while a thread opens the devices.  A reader
 * of devices or count has called r_devices before, and does not take this lock.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Covers r_device.pd of each device. */
static pthread_mutex_t pd_lock = PTHREAD_MUTEX_INITIALIZER;
static struct r_device devices[DEVICE_MAX];
static int count;
/* The process that opened the devices (process_number).  A forked child opens
 * the devices again. */
static uint64_t owner;

/* Runs in a forked child, where the thread that held a lock may not exist. */
static void after_fork(void)
{
	pthread_mutex_init(&lock, NULL);
	pthread_mutex_init(&pd_lock, NULL);
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, after_fork);
}

/* Returns libibverbs' calls for iWARP devices, or NULL with a message. */
static const struct verbs_iwarp *iwarp_calls(void)
{
	const struct verbs_iwarp *calls = NULL;
	verbs_iwarp_calls *find;

	*(void **)&find = dlsym(RTLD_DEFAULT, "ibv_adverb_iwarp");
	if (find)
		calls = find(VERBS_IWARP_VERSION);
	if (!calls)
		r_say("rdma_cm: libibverbs.so.1 is of another release of "
		      "adverb, so rdma_cm does without iWARP devices; load "
		      "both libraries from one folder, as adverb run does");
	return calls;
}

/* Returns whether the device's link layer is InfiniBand. */
static bool is_infiniband(struct ibv_context *verbs)
{
	struct ibv_port_attr port;

	return !ibv_query_port(verbs, PORT, &port) &&
	       port.link_layer == IBV_LINK_LAYER_INFINIBAND;
}

static bool open_device(struct r_device *d, struct ibv_device *device)
{
	bool is_iwarp = device->transport_type == IBV_TRANSPORT_IWARP;
	struct ibv_device_attr attr;

	*d = (struct r_device){.iwarp = is_iwarp ? iwarp_calls() : NULL};
	if (is_iwarp && !d->iwarp)
		return false;
	d->verbs = ibv_open_device(device);
	if (!d->verbs)
		return false;
	*(void **)&d->catch_up = dlsym(RTLD_DEFAULT, "ibv_adverb_catch_up");
	d->is_ib = !is_iwarp && is_infiniband(d->verbs);
	d->guid = be64toh(ibv_get_device_guid(device));
	d->max_responder = d->max_initiator = 1;
	if (!ibv_query_device(d->verbs, &attr)) {
		d->max_responder = (uint8_t)attr.max_qp_rd_atom;
		d->max_initiator = (uint8_t)attr.max_qp_init_rd_atom;
		d->ack_delay = attr.local_ca_ack_delay;
		d->port_count = attr.phys_port_cnt;
	}
	return true;
}

static void open_all(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (int i = 0; list && list[i] && count < DEVICE_MAX; i++)
		if (open_device(&devices[count], list[i]))
			count++;
	if (list)
		ibv_free_device_list(list);
}

/*
 * Checks that the libibverbs.so.1 of this process is adverb's.  Returns 0, or
 * -1 and errno with a message.  If libibverbs.so.1 is of another release of
 * adverb, prints a message and returns 0, since the ABI is the same.
 */
static int check_verbs(void)
{
	const char *path, *release = verbs_release_find(&path);

	if (!release)
		return r_fail(ENODEV,
			      "rdma_cm: this librdmacm.so.1 is adverb's, and "
			      "%s is not, and has none of adverb's devices; "
			      "load both from one folder, as adverb run does",
			      path);
	if (strcmp(release, ADVERB_VERSION) != 0)
		r_say("rdma_cm: this librdmacm.so.1 is of adverb "
		      "" ADVERB_VERSION ", and %s is of adverb %s; load both "
		      "from one folder, as adverb run does",
		      path, release);
	return 0;
}

int r_devices(void)
{
	int cancel, err = 0;

	/* A thread must not be cancelled while it holds the lock or opens
	 * files. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&lock);
	if (owner != process_number() || !count) {
		owner = process_number();
		count = 0;
		err = check_verbs();
		if (!err)
			open_all();
	}
	pthread_mutex_unlock(&lock);
	pthread_setcancelstate(cancel, NULL);
	if (err)
		return -1;
	if (count)
		return 0;
	return r_fail(ENODEV,
		      "rdma_cm: no RDMA device can be opened; in most "
		      "cases no network interface has a usable address; "
		      "run adverb doctor to see the cause");
}

/* Looks at the port path->port_num for a GID that equals the address `ip` and
 * has the type RoCE v2 or, if the link layer is InfiniBand, the type IB.
 * Stores the index of the GID in path->sgid_index.  Returns false if the port
 * has no such GID. */
static bool find_at_port(const struct r_device *d, const uint8_t ip[16],
			 struct r_path *path)
{
	const uint32_t type = d->is_ib ? IBV_GID_TYPE_IB : IBV_GID_TYPE_ROCE_V2;
	struct ibv_gid_entry e;
	struct ibv_port_attr port;

	if (ibv_query_port(d->verbs, path->port_num, &port))
		return false;
	for (int i = 0; i < port.gid_tbl_len; i++)
		if (!ibv_query_gid_ex(d->verbs, path->port_num, (uint32_t)i, &e,
				      0) &&
		    e.gid_type == type && !memcmp(e.gid.raw, ip, 16)) {
			path->sgid_index = (uint8_t)i;
			return true;
		}
	return false;
}

/* Stores the port and the index of the GID that is the address `ip` in *path.
 * Returns false, and changes nothing, if the device has no such GID. */
static bool find_gid(const struct r_device *d, const uint8_t ip[16],
		     struct r_path *path)
{
	struct r_path found = *path;

	for (uint32_t port = 1; port <= d->port_count; port++) {
		found.port_num = (uint8_t)port;
		if (!find_at_port(d, ip, &found))
			continue;
		*path = found;
		return true;
	}
	return false;
}

/* Returns whether the iWARP device has the address.  If so, stores its port and
 * 0, the index of its GID, in *path. */
static bool find_address(const struct r_device *d, const uint8_t ip[16],
			 struct r_path *path)
{
	if (!d->iwarp->has_address(d->verbs, ip))
		return false;
	path->port_num = PORT;
	path->sgid_index = 0;
	return true;
}

static enum r_transport transport_of(const struct r_device *d)
{
	return d->iwarp ? R_IWARP : R_ROCE;
}

struct r_device *r_device_find(const uint8_t ip[16], enum r_transport among,
			       struct r_path *path)
{
	for (int i = 0; i < count; i++) {
		struct r_device *d = &devices[i];

		if (!(transport_of(d) & among))
			continue;
		if (d->iwarp ? find_address(d, ip, path)
			     : find_gid(d, ip, path))
			return d;
	}
	return NULL;
}

bool r_device_catch_up(const struct r_device *d, uint32_t qpn)
{
	return d->catch_up && d->catch_up(d->verbs, qpn);
}

const struct verbs_iwarp *r_device_iwarp(void)
{
	for (int i = 0; i < count; i++)
		if (devices[i].iwarp)
			return devices[i].iwarp;
	return NULL;
}

const struct r_device *r_device_ib(void)
{
	for (int i = 0; i < count; i++)
		if (devices[i].is_ib)
			return &devices[i];
	return NULL;
}

int r_fail_device(const struct r_id *id, const struct sockaddr *addr,
		  const char *format)
{
	char text[R_ADDR_TEXT];
	struct r_path path;
	uint8_t ip[16];

	r_addr_text(addr, text);
	r_addr_ip(addr, ip);
	if (r_transports(id) == R_ROCE &&
	    (r_device_find(ip, R_IWARP, &path) || !r_device_exists(R_ROCE)))
		return r_fail(ENODEV,
			      "rdma_cm: %s cannot be the address of a datagram "
			      "id (RDMA_PS_UDP), since iWARP has connections "
			      "only; use RDMA_PS_TCP, or a RoCE device "
			      "(ADVERB_DEVICES)",
			      text);
	return r_fail(ENODEV, format, text);
}

bool r_device_exists(enum r_transport among)
{
	for (int i = 0; i < count; i++)
		if (transport_of(&devices[i]) & among)
			return true;
	return false;
}

struct ibv_pd *r_device_domain(struct r_device *d)
{
	struct ibv_pd *pd;

	pthread_mutex_lock(&pd_lock);
	if (!d->pd)
		d->pd = ibv_alloc_pd(d->verbs);
	pd = d->pd;
	pthread_mutex_unlock(&pd_lock);
	return pd;
}

void r_device_use(struct r_id *id, struct r_device *d)
{
	struct ibv_port_attr port;

	id->device = d;
	id->base.verbs = d->verbs;
	id->base.pd = r_device_domain(d);
	id->base.port_num = id->path.port_num;
	id->path.mtu = IBV_MTU_1024;
	if (!ibv_query_port(d->verbs, id->path.port_num, &port))
		id->path.mtu = (uint8_t)port.active_mtu;
	if (id->path.route_mtu && id->path.route_mtu < id->path.mtu)
		id->path.mtu = id->path.route_mtu;
}

struct ibv_context **rdma_get_devices(int *num_devices)
{
	struct ibv_context **list = NULL;

	if (num_devices)
		*num_devices = 0;
	if (r_devices())
		return NULL;
	list = calloc((size_t)count + 1, sizeof(struct ibv_context *));
	for (int i = 0; list && i < count; i++)
		list[i] = devices[i].verbs;
	if (list && num_devices)
		*num_devices = count;
	return list;
}

void rdma_free_devices(struct ibv_context **list)
{
	free(list);
}
