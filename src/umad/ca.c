/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of channel adapters, and the attributes of an adapter and of its one
 * port.  They come from libibverbs' list of devices and from the files that
 * libibverbs writes.  No device is opened.  If this process is a host of a
 * fabric, that host's adapter comes first in the list, and its attributes come
 * from the fabric (umad/fabric.h).
 */
#include "umad/explain.h"
#include "umad/fabric.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/umad.h>
#include <infiniband/verbs.h>

#include "verbs/release.h"

/* A function of libibverbs for tools, which no header declares. */
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf,
			size_t size);

#define PORT  1
#define PKEYS 1 /* the P_Key table has only the default key */

static int unknown_ca(void)
{
	errno = ENODEV;
	return -ENODEV;
}

/* Removes iWARP devices from the list, since they take no management datagrams;
 * rdma-core's libibumad does not list them either.  Removes the adapter of a
 * fabric's host, too: the callers put that adapter first in their own lists. */
static void drop_others(struct ibv_device **list)
{
	struct ibv_device **to = list;

	for (struct ibv_device **from = list; *from; from++)
		if ((*from)->node_type != IBV_NODE_RNIC &&
		    strcmp((*from)->name, U_FABRIC_CA) != 0)
			*to++ = *from;
	*to = NULL;
}

/*
 * Returns the list of ibv_get_device_list without the devices of drop_others,
 * or NULL with errno if ibv_get_device_list fails.  If the libibverbs.so.1 of
 * this process is not adverb's, prints a sentence and returns NULL with errno
 * ENODEV.  If that libibverbs.so.1 is of another release of adverb, which has
 * the same ABI, prints a sentence and returns the list.
 */
static struct ibv_device **list_devices(void)
{
	const char *path, *release = verbs_release_find(&path);
	struct ibv_device **list;

	if (!release) {
		u_say("umad: this libibumad.so.3 is adverb's, and %s is not, "
		      "and has none of adverb's devices; load both from one "
		      "folder, as adverb run does",
		      path);
		errno = ENODEV;
		return NULL;
	}
	if (strcmp(release, ADVERB_VERSION) != 0)
		u_say("umad: this libibumad.so.3 is of adverb " ADVERB_VERSION
		      ", and %s is of adverb %s; load both from one folder, as "
		      "adverb run does",
		      path, release);
	list = ibv_get_device_list(NULL);
	if (list)
		drop_others(list);
	return list;
}

/* Reads at most @size - 1 bytes of a file; the text is "" if there is no such
 * file. */
static void read_text(const char *folder, const char *name, char *text,
		      size_t size)
{
	char line[128] = "";

	if (ibv_read_sysfs_file(folder, name, line, sizeof(line)) < 0)
		line[0] = '\0';
	snprintf(text, size, "%.*s", (int)size - 1, line);
}

/* Returns the number at the start of a file: hexadecimal with a prefix 0x,
 * octal with a prefix 0. */
static unsigned read_number(const char *folder, const char *name)
{
	char text[64];

	read_text(folder, name, text, sizeof(text));
	return (unsigned)strtoul(text, NULL, 0);
}

/* The text is 16-bit words in hexadecimal, separated by colons.  Returns the
 * last four words in network order: a GUID, or a half of a GID. */
static __be64 parse_guid(const char *text)
{
	uint64_t guid = 0;

	for (const char *word = text; word && *word; word = strchr(word, ':')) {
		word += *word == ':';
		guid = guid << 16 | (strtoul(word, NULL, 16) & 0xffff);
	}
	return htobe64(guid);
}

static __be64 read_guid(const char *folder, const char *name)
{
	char text[64];

	read_text(folder, name, text, sizeof(text));
	return parse_guid(text);
}

static void read_gid(const char *folder, umad_port_t *port)
{
	char text[64], *half = text;

	read_text(folder, "gids/0", text, sizeof(text));
	port->port_guid = parse_guid(text); /* the GID's lower half */
	for (int i = 0; half && *half && i < 4; i++)
		half = strchr(half + 1, ':');
	if (half)
		*half = '\0';
	port->gid_prefix = parse_guid(text);
}

/* Finds an adapter's name and the folder of its files; ca_name NULL: the first
 * adapter.  Returns 0; -ENODEV: there is no such adapter; or another -errno;
 * errno has the same error. */
static int find_ca(const char *ca_name, char folder[IBV_SYSFS_PATH_MAX],
		   char name[UMAD_CA_NAME_LEN])
{
	struct ibv_device **list = list_devices();
	bool found = false;

	if (!list)
		return -errno;
	for (int i = 0; list[i] && !found; i++) {
		const char *own = ibv_get_device_name(list[i]);

		found = !ca_name || strcmp(own, ca_name) == 0;
		if (!found)
			continue;
		memcpy(folder, list[i]->ibdev_path, IBV_SYSFS_PATH_MAX);
		snprintf(name, UMAD_CA_NAME_LEN, "%.*s", UMAD_CA_NAME_LEN - 1,
			 own);
	}
	ibv_free_device_list(list);
	return found ? 0 : unknown_ca();
}

static int read_port(const char *ca_folder, const char *name, umad_port_t *port)
{
	char folder[IBV_SYSFS_PATH_MAX + 16];

	snprintf(folder, sizeof(folder), "%s/ports/%d", ca_folder, PORT);
	memset(port, 0, sizeof(*port));
	port->pkeys = calloc(PKEYS, sizeof(*port->pkeys));
	if (!port->pkeys) {
		errno = ENOMEM;
		return -ENOMEM;
	}
	snprintf(port->ca_name, sizeof(port->ca_name), "%s", name);
	port->portnum = PORT;
	port->base_lid = read_number(folder, "lid");
	port->lmc = read_number(folder, "lid_mask_count");
	port->sm_lid = read_number(folder, "sm_lid");
	port->sm_sl = read_number(folder, "sm_sl");
	port->state = read_number(folder, "state");
	port->phys_state = read_number(folder, "phys_state");
	port->rate = read_number(folder, "rate");
	port->capmask = htobe32(read_number(folder, "cap_mask"));
	port->pkeys_size = PKEYS;
	port->pkeys[0] = (uint16_t)read_number(folder, "pkeys/0");
	read_gid(folder, port);
	read_text(folder, "link_layer", port->link_layer,
		  sizeof(port->link_layer));
	return 0;
}

int umad_get_cas_names(char cas[][UMAD_CA_NAME_LEN], int max)
{
	int count = max > 0 ? u_fabric_has(U_FABRIC_CA) : 0;
	struct ibv_device **list;

	if (count < 0)
		return count;
	if (count)
		snprintf(cas[0], UMAD_CA_NAME_LEN, U_FABRIC_CA);
	list = list_devices();
	if (!list)
		return count ? count : -errno;
	for (int i = 0; count < max && list[i]; i++)
		snprintf(cas[count++], UMAD_CA_NAME_LEN, "%.*s",
			 UMAD_CA_NAME_LEN - 1, ibv_get_device_name(list[i]));
	ibv_free_device_list(list);
	return count;
}

/* A node and its name are one allocation. */
static struct umad_device_node *new_node(const char *name)
{
	size_t bytes = strlen(name) + 1;
	struct umad_device_node *node = malloc(sizeof(*node) + bytes);

	if (!node)
		return NULL;
	node->next = NULL;
	node->ca_name = memcpy(node + 1, name, bytes);
	return node;
}

/* Appends a node at **end.  False: no memory is left. */
static bool append_node(struct umad_device_node ***end, const char *name)
{
	**end = new_node(name);
	if (!**end)
		return false;
	*end = &(**end)->next;
	return true;
}

struct umad_device_node *umad_get_ca_device_list(void)
{
	struct umad_device_node *head = NULL, **end = &head;
	int has_fabric = u_fabric_has(U_FABRIC_CA);
	struct ibv_device **list;
	bool ok = true;

	if (has_fabric < 0)
		return NULL;
	list = list_devices();
	if (!list && !has_fabric)
		return NULL;
	if (has_fabric)
		ok = append_node(&end, U_FABRIC_CA);
	for (int i = 0; ok && list && list[i]; i++)
		ok = append_node(&end, ibv_get_device_name(list[i]));
	if (list)
		ibv_free_device_list(list);
	errno = 0; /* NULL with errno 0 is an empty list */
	if (ok)
		return head;
	umad_free_ca_device_list(head);
	errno = ENOMEM;
	return NULL;
}

void umad_free_ca_device_list(struct umad_device_node *head)
{
	while (head) {
		struct umad_device_node *next = head->next;

		free(head);
		head = next;
	}
}

int umad_get_ca(const char *ca_name, umad_ca_t *ca)
{
	char folder[IBV_SYSFS_PATH_MAX], name[UMAD_CA_NAME_LEN];
	int err = u_fabric_has(ca_name);

	if (err)
		return err < 0 ? err : u_fabric_get_ca(ca);
	err = find_ca(ca_name, folder, name);
	if (err)
		return err;
	memset(ca, 0, sizeof(*ca));
	memcpy(ca->ca_name, name, sizeof(name));
	ca->node_type = read_number(folder, "node_type");
	ca->numports = PORT;
	read_text(folder, "fw_ver", ca->fw_ver, sizeof(ca->fw_ver));
	read_text(folder, "hca_type", ca->ca_type, sizeof(ca->ca_type));
	read_text(folder, "hw_rev", ca->hw_ver, sizeof(ca->hw_ver));
	ca->node_guid = read_guid(folder, "node_guid");
	ca->system_guid = read_guid(folder, "sys_image_guid");
	ca->ports[PORT] = calloc(1, sizeof(umad_port_t));
	if (!ca->ports[PORT]) {
		errno = ENOMEM;
		return -ENOMEM;
	}
	err = read_port(folder, name, ca->ports[PORT]);
	if (err)
		umad_release_ca(ca);
	return err;
}

/* portnum 0 means the only port of a RoCE device, or the port of a fabric's
 * host that u_fabric_port chooses. */
int umad_get_port(const char *ca_name, int portnum, umad_port_t *port)
{
	char folder[IBV_SYSFS_PATH_MAX], name[UMAD_CA_NAME_LEN];
	uint32_t number;
	int err = u_fabric_has(ca_name);

	if (err < 0)
		return err;
	if (err) {
		err = u_fabric_port(portnum, &number);
		if (!err)
			return u_fabric_get_port(number, port);
		errno = -err;
		return err;
	}
	if (portnum && portnum != PORT)
		return unknown_ca();
	err = find_ca(ca_name, folder, name);
	return err ? err : read_port(folder, name, port);
}

/* Entry n of portguids is the GUID of port n; 0: there is no such port.
 * Returns how many entries were written, 0 if portguids is NULL, or -errno;
 * -ENOMEM: portguids has room for too few entries. */
int umad_get_ca_portguids(const char *ca_name, __be64 *portguids, int max)
{
	umad_ca_t ca;
	int count = 0, err = umad_get_ca(ca_name, &ca);

	if (err)
		return err;
	if (portguids && max <= ca.numports) {
		count = -ENOMEM;
	} else if (portguids) {
		for (int i = 0; i <= ca.numports; i++)
			portguids[i] = ca.ports[i] ? ca.ports[i]->port_guid : 0;
		count = ca.numports + 1;
	}
	umad_release_ca(&ca);
	return count;
}

/* Frees the P_Key table, which read_port or u_fabric_get_port allocated; the
 * caller owns the struct. */
int umad_release_port(umad_port_t *port)
{
	free(port->pkeys);
	port->pkeys = NULL;
	port->pkeys_size = 0;
	return 0;
}

int umad_release_ca(umad_ca_t *ca)
{
	for (int i = 0; i < UMAD_CA_MAX_PORTS; i++) {
		if (!ca->ports[i])
			continue;
		umad_release_port(ca->ports[i]);
		free(ca->ports[i]);
		ca->ports[i] = NULL;
	}
	return 0;
}
