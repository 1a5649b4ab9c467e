/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which devices take management datagrams: none, so lists are empty and a
 * question about one by name is ENODEV.
 */
#include "umad/explain.h"
#include "umad/newer.h"

#include <errno.h>
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

int umad_get_cas_names(char cas[][UMAD_CA_NAME_LEN], int max)
{
	return 0;
}

struct umad_device_node *umad_get_ca_device_list(void)
{
	errno = 0; /* NULL means "none" here, not "failed" */
	return NULL;
}

/* A node and its name are one allocation. */
void umad_free_ca_device_list(struct umad_device_node *head)
{
	while (head) {
		struct umad_device_node *next = head->next;

		free(head);
		head = next;
	}
}

static int by_name(const void *a, const void *b)
{
	const struct umad_device_node *const *one = a;
	const struct umad_device_node *const *other = b;

	return strcmp((*one)->ca_name, (*other)->ca_name);
}

/* A size of 0 asks us to count; answers 0 or a positive errno. */
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

int umad_get_ca_portguids(const char *ca_name, __be64 *portguids, int max)
{
	return u_no_port("umad_get_ca_portguids");
}

int umad_get_ca(const char *ca_name, umad_ca_t *ca)
{
	return u_no_port("umad_get_ca");
}

int umad_get_port(const char *ca_name, int portnum, umad_port_t *port)
{
	return u_no_port("umad_get_port");
}

/* The caller owns the struct; the table of keys in it is ours. */
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

int umad_get_issm_path(const char *ca_name, int portnum, char path[], int max)
{
	return u_no_port("umad_get_issm_path");
}

int umad_get_smi_gsi_pairs(struct umad_ca_pair *pairs, size_t max)
{
	return 0;
}

int umad_get_smi_gsi_pair_by_ca_name(const char *ca_name, uint8_t portnum,
				     struct umad_ca_pair *pair,
				     unsigned int enforce_smi)
{
	return u_no_port("umad_get_smi_gsi_pair_by_ca_name");
}
