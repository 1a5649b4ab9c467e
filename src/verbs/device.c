/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of devices, which is made once.  A program may use a device until
 * the process ends, also after ibv_free_device_list. */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs/fail.h"
#include "device/sysfs.h"
#include "verbs/object.h"
#include "verbs/ops.h"
#include "verbs/release.h"

/*
 * Drivers' libraries compare the address of this table with the address of
 * their own operations, find that the device is another driver's, and may print
 * the name.
 */
static const struct {
	const char *name;
	const void *rest[20];
} no_driver = {"adverb", {NULL}};

static struct v_device devices[DEVICE_MAX];
static uint32_t device_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const char *sysfs_folder(void)
{
	const char *tree = sysfs_path();

	return tree ? tree : "/sys";
}

static void device_init(struct v_device *d, uint32_t index,
			const struct device *host)
{
	struct ibv_device *b = &d->base;

	bool is_iwarp = host->kind == DEVICE_IWARP;

	b->node_type = is_iwarp ? IBV_NODE_RNIC : IBV_NODE_CA;
	b->transport_type = is_iwarp ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB;
	snprintf(b->name, sizeof(b->name), "%s", host->name);
	snprintf(b->dev_name, sizeof(b->dev_name), "uverbs%u", index);
	snprintf(b->dev_path, sizeof(b->dev_path),
		 "%s/class/infiniband_verbs/uverbs%u", sysfs_folder(), index);
	snprintf(b->ibdev_path, sizeof(b->ibdev_path), "%s/class/infiniband/%s",
		 sysfs_folder(), host->name);
	d->ops = &no_driver;
	d->refcount = 1;
	d->entry[0] = d->entry[1] = d->entry;
	d->host = host;
	d->index = index;
}

static void find_devices(void)
{
	const struct device *host;

	device_count = device_list(&host);
	if (device_count > DEVICE_MAX)
		device_count = DEVICE_MAX;
	for (uint32_t i = 0; i < device_count; i++)
		device_init(&devices[i], i, &host[i]);
}

/* The header has a macro of this name for programs that are linked
 * statically. */
#undef ibv_get_device_list
struct ibv_device **ibv_get_device_list(int *num_devices)
{
	struct ibv_device **list;

	pthread_once(&once, find_devices);
	if (num_devices)
		*num_devices = 0;
	list = calloc(device_count + 1, sizeof(struct ibv_device *));
	if (!list)
		return v_fail_null(ENOMEM, V_MEMORY, "ibv_get_device_list");
	for (uint32_t i = 0; i < device_count; i++)
		list[i] = &devices[i].base;
	if (num_devices)
		*num_devices = (int)device_count;
	return list;
}

const char *ibv_adverb_release(void)
{
	return ADVERB_VERSION;
}

void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

int ibv_get_device_index(struct ibv_device *device)
{
	return (int)((struct v_device *)(void *)device)->index;
}

__be64 ibv_get_device_guid(struct ibv_device *device)
{
	return htobe64(((struct v_device *)(void *)device)->host->guid);
}

const char *ibv_get_sysfs_path(void)
{
	return sysfs_folder();
}

int ibv_read_sysfs_file(const char *dir, const char *file, char *buf,
			size_t size)
{
	char path[512];
	ssize_t n;
	int fd;

	if (snprintf(path, sizeof(path), "%s/%s", dir, file) >=
	    (int)sizeof(path))
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, buf, size);
	close(fd);
	if (n > 0 && buf[n - 1] == '\n')
		buf[--n] = 0;
	else if (n >= 0 && (size_t)n < size)
		buf[n] = 0;
	else
		return -1;
	return (int)n;
}

int ibv_fork_init(void)
{
	return 0;
}

/* adverb pins no pages, so copy-on-write after a fork does no harm. */
enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

int ibv_dontfork_range(void *base, size_t size)
{
	return 0;
}

int ibv_dofork_range(void *base, size_t size)
{
	return 0;
}
