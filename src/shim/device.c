/* SPDX-License-Identifier: BSD-2-Clause */
#include "shim/device.h"

#include "util/runtime_tree.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE 64

/* Reads the first line of a file under class/ of the tree, cut to LINE - 1
 * bytes.  False: the file is missing or empty. */
__attribute__((format(printf, 3, 4))) static bool
read_line(const char *tree, char line[LINE], const char *format, ...)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/class/", tree), fd;
	ssize_t got = -1;
	va_list args;

	line[0] = '\0';
	if (n >= PATH_MAX)
		return false;
	va_start(args, format);
	vsnprintf(path + n, sizeof(path) - (size_t)n, format, args);
	va_end(args);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		got = read(fd, line, LINE - 1);
		close(fd);
	}
	line[got > 0 ? got : 0] = '\0';
	line[strcspn(line, "\n")] = '\0';
	return got > 0;
}

/* Returns the number at the beginning of a file, as in "4: ACTIVE" or "0x1f"; 0
 * if there is no such file. */
static uint32_t read_number(const char *tree, const char *device,
			    const char *name)
{
	char line[LINE];

	read_line(tree, line, "infiniband/%s/%s", device, name);
	return (uint32_t)strtoul(line, NULL, 0);
}

/* Reads a GUID such as "0002:c9ff:fe00:0001", and returns the GUID in host
 * order; 0 if there is no such file. */
static uint64_t read_guid(const char *tree, const char *device,
			  const char *name)
{
	unsigned part[4] = {0};
	char line[LINE];

	read_line(tree, line, "infiniband/%s/%s", device, name);
	sscanf(line, "%x:%x:%x:%x", &part[0], &part[1], &part[2], &part[3]);
	return (uint64_t)part[0] << 48 | (uint64_t)part[1] << 32 |
	       (uint64_t)part[2] << 16 | part[3];
}

static void read_netdev(const char *tree, struct device *d)
{
	char line[LINE], name[sizeof(d->netdev) + 32];

	read_line(tree, line, "infiniband/%s/parent", d->name);
	if (strlen(line) >= sizeof(d->netdev))
		return;
	memcpy(d->netdev, line, strlen(line) + 1);
	snprintf(name, sizeof(name), "device/net/%s/ifindex", d->netdev);
	d->ifindex = read_number(tree, d->name, name);
}

static uint32_t read_of_port(const char *tree, const char *device,
			     uint32_t number, const char *file)
{
	char name[64];

	snprintf(name, sizeof(name), "ports/%u/%s", number, file);
	return read_number(tree, device, name);
}

static void read_subnet(const char *tree, const struct device *d,
			uint32_t number, struct device_port *p)
{
	char name[32];

	p->lid = (uint16_t)read_of_port(tree, d->name, number, "lid");
	p->sm_lid = (uint16_t)read_of_port(tree, d->name, number, "sm_lid");
	p->lmc = (uint8_t)read_of_port(tree, d->name, number, "lid_mask_count");
	p->capabilities = read_of_port(tree, d->name, number, "cap_mask");
	/* the first half of a GID has the form of a GUID */
	snprintf(name, sizeof(name), "ports/%u/gids/0", number);
	p->gid_prefix = read_guid(tree, d->name, name);
}

/* Reads port `number`; false: there is no such port. */
static bool read_port(const char *tree, struct device *d, uint32_t number)
{
	struct device_port *p = &d->ports[number - 1];
	char line[LINE];

	if (!read_line(tree, line, "infiniband/%s/ports/%u/link_layer", d->name,
		       number))
		return false;
	p->state = (uint8_t)read_of_port(tree, d->name, number, "state");
	p->phys_state =
		(uint8_t)read_of_port(tree, d->name, number, "phys_state");
	d->is_ib = !strcmp(line, "InfiniBand");
	if (d->is_ib)
		read_subnet(tree, d, number, p);
	return true;
}

static bool read_device(const char *tree, uint32_t index, struct device *d)
{
	*d = (struct device){.index = index};
	if (!read_line(tree, d->name, "infiniband_verbs/uverbs%u/ibdev", index))
		return false;
	read_line(tree, d->firmware, "infiniband/%s/fw_ver", d->name);
	d->node_guid = read_guid(tree, d->name, "node_guid");
	d->image_guid = read_guid(tree, d->name, "sys_image_guid");
	d->node_type = (uint8_t)read_number(tree, d->name, "node_type");
	while (d->port_count < DEVICE_PORTS &&
	       read_port(tree, d, d->port_count + 1))
		d->port_count++;
	read_netdev(tree, d);
	return true;
}

uint32_t device_read(struct device out[DEVICE_MOST])
{
	struct runtime_tree tree;
	uint32_t count = 0;

	if (runtime_tree_find(&tree))
		return 0;
	while (count < DEVICE_MOST &&
	       read_device(tree.path, count, &out[count]))
		count++;
	return count;
}
