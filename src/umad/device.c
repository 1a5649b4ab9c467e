/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls about devices that take management datagrams.  The only such device
 * is the adapter of a fabric's host, if this process is such a host.  A call
 * that names another device fails with ENODEV.  ca.c lists the adapters.
 */
#include "umad/explain.h"
#include "umad/fabric.h"
#include "umad/newer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int umad_init(void)
{
	return 0;
}

int umad_done(void)
{
	return 0;
}

static int by_name(const void *a, const void *b)
{
	const struct umad_device_node *const *one = a;
	const struct umad_device_node *const *other = b;

	return strcmp((*one)->ca_name, (*other)->ca_name);
}

/* Sorts the list by name.  size: the number of nodes; 0: unknown.  Returns 0 or
 * a positive errno; EINVAL: the list has another number of nodes than size. */
int umad_sort_ca_device_list(struct umad_device_node **head, size_t size)
{
	struct umad_device_node **nodes;
	size_t count = 0;

	for (struct umad_device_node *node = *head; node; node = node->next)
		count++;
	if (size && size != count)
		return EINVAL;
	if (count < 2)
		return 0;
	nodes = malloc(count * sizeof(struct umad_device_node *));
	if (!nodes)
		return ENOMEM;
	count = 0;
	for (struct umad_device_node *node = *head; node; node = node->next)
		nodes[count++] = node;
	qsort(nodes, count, sizeof(struct umad_device_node *), by_name);
	for (size_t i = 0; i < count; i++)
		nodes[i]->next = i + 1 < count ? nodes[i + 1] : NULL;
	*head = nodes[0];
	free(nodes);
	return 0;
}

/* Stores the path of the file that a subnet manager keeps open.  With a file of
 * the kernel, the kernel sets IsSM of the port meanwhile.  A fabric instead
 * sets IsSM while a program has an agent for SubnGet, so here the file can be
 * /dev/null.  Returns 0, or -errno with errno set; -ENODEV: there is no such
 * port. */
int umad_get_issm_path(const char *ca_name, int portnum, char path[], int max)
{
	uint32_t number;
	int err = u_fabric_has(ca_name);

	if (err < 0)
		return err;
	if (!err)
		return u_no_port("umad_get_issm_path");
	err = u_fabric_port(portnum, &number);
	if (err) {
		errno = -err;
		return err;
	}
	snprintf(path, (size_t)(max > 0 ? max : 0), "/dev/null");
	return 0;
}

/* The layout of struct umad_ca_pair, which older headers do not define.  The
 * devices for the subnet management interface (SMI) and for the GSI, and the
 * port of each that a program is to open; 0: any. */
struct ca_pair {
	char smi_name[UMAD_CA_NAME_LEN];
	uint32_t smi_port;
	char gsi_name[UMAD_CA_NAME_LEN];
	uint32_t gsi_port;
};

_Static_assert(sizeof(struct ca_pair) == 48, "rdma-core 56's layout");

/* The fabric's adapter has one device for both interfaces. */
static void fill_pair(struct umad_ca_pair *to, uint32_t port)
{
	const struct ca_pair p = {.smi_name = U_FABRIC_CA,
				  .smi_port = port,
				  .gsi_name = U_FABRIC_CA,
				  .gsi_port = port};

	memcpy(to, &p, sizeof(p));
}

int umad_get_smi_gsi_pairs(struct umad_ca_pair *pairs, size_t max)
{
	int has = max ? u_fabric_has(NULL) : 0;

	if (max)
		memset(pairs, 0, max * sizeof(struct ca_pair));
	if (has > 0)
		fill_pair(pairs, 0);
	return has;
}

int umad_get_smi_gsi_pair_by_ca_name(const char *ca_name, uint8_t portnum,
				     struct umad_ca_pair *pair,
				     unsigned int enforce_smi)
{
	int err = pair ? u_fabric_has(ca_name) : -EINVAL;
	uint32_t number;

	if (!err)
		return u_no_port("umad_get_smi_gsi_pair_by_ca_name");
	if (err > 0)
		err = u_fabric_port(portnum, &number);
	if (err) {
		errno = -err;
		return err;
	}
	fill_pair(pair, number);
	return 0;
}
