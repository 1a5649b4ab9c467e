/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tree that stands for /sys and /dev: real directories in the user's
 * runtime folder, so that ibdev_path, ibv_get_sysfs_path and the path shim
 * have something to point at.  Written once a process, each file whole or not
 * at all (rename), because another process may be reading it.
 */
#include "host/host.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES 400

static char root[PATH_BYTES / 2];
static bool usable;

/* mkdir -p of everything before the last '/'. */
static void make_parents(char *path)
{
	for (char *p = path + 1; (p = strchr(p, '/')); p++) {
		*p = 0;
		mkdir(path, 0755);
		*p = '/';
	}
}

static void put(const char *name, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* File `name` below the root gets the text; failure leaves it missing. */
static void put(const char *name, const char *fmt, ...)
{
	char path[PATH_BYTES], temp[PATH_BYTES + 32], text[256];
	va_list ap;
	int fd, n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	snprintf(path, sizeof path, "%s/%s", root, name);
	make_parents(path);
	snprintf(temp, sizeof temp, "%s.%d", path, (int)getpid());
	fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		return;
	if (write(fd, text, (size_t)n) != n || rename(temp, path))
		unlink(temp);
	close(fd);
}

static void put_gids(const struct host_device *d)
{
	struct host_port port;
	char name[128];

	host_port(d, &port);
	for (uint32_t i = 0; i < HOST_MAX_GIDS; i++) {
		const uint8_t *g = port.gids[i].gid;

		if (!port.gids[i].ifindex)
			continue;
		snprintf(name, sizeof name,
			 "class/infiniband/%s/ports/1/gids/%u", d->name, i);
		put(name,
		    "%02x%02x:%02x%02x:%02x%02x:%02x%02x:"
		    "%02x%02x:%02x%02x:%02x%02x:%02x%02x\n",
		    g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7], g[8], g[9],
		    g[10], g[11], g[12], g[13], g[14], g[15]);
		snprintf(name, sizeof name,
			 "class/infiniband/%s/ports/1/gid_attrs/types/%u",
			 d->name, i);
		put(name, "%s\n",
		    port.gids[i].type == HOST_GID_ROCE_V2 ? "RoCE v2"
							  : "IB/RoCE v1");
		snprintf(name, sizeof name,
			 "class/infiniband/%s/ports/1/gid_attrs/ndevs/%u",
			 d->name, i);
		put(name, "%s\n", d->netdev);
	}
}

static void put_device(const struct host_device *d, uint32_t index)
{
	static const char *const files[][2] = {
		{"node_type", "1: CA"},
		{"node_desc", "adverb"},
		{"fw_ver", "1.0"},
		{"hca_type", "adverb"},
		{"board_id", "adverb"},
		{"hw_rev", "0x1"},
		{"device/numa_node", "-1"},
		{"device/local_cpus", "ffffffff"},
		{"ports/1/state", "4: ACTIVE"},
		{"ports/1/phys_state", "5: LinkUp"},
		{"ports/1/link_layer", "Ethernet"},
		{"ports/1/rate", "10 Gb/sec (4X SDR)"},
		{"ports/1/lid", "0x0"},
		{"ports/1/sm_lid", "0x0"},
		{"ports/1/lid_mask_count", "0"},
		{"ports/1/sm_sl", "0"},
		{"ports/1/cap_mask", "0x00010000"},
		{"ports/1/pkeys/0", "0xffff"},
	};
	char name[128], link[PATH_BYTES];

	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
		snprintf(name, sizeof name, "class/infiniband/%s/%s", d->name,
			 files[i][0]);
		put(name, "%s\n", files[i][1]);
	}
	for (int i = 0; i < 2; i++) {
		uint64_t g = d->guid;

		snprintf(name, sizeof name, "class/infiniband/%s/%s", d->name,
			 i ? "sys_image_guid" : "node_guid");
		put(name, "%04x:%04x:%04x:%04x\n", (unsigned)(g >> 48),
		    (unsigned)(g >> 32) & 0xffff, (unsigned)(g >> 16) & 0xffff,
		    (unsigned)g & 0xffff);
	}
	put_gids(d);
	snprintf(name, sizeof name, "class/infiniband/%s/device/net/%s/ifindex",
		 d->name, d->netdev);
	put(name, "%u\n", d->ifindex);
	snprintf(name, sizeof name, "class/infiniband_verbs/uverbs%u/ibdev",
		 index);
	put(name, "%s\n", d->name);
	snprintf(link, sizeof link, "%s/dev/infiniband/uverbs%u", root, index);
	make_parents(link);
	if (symlink("/dev/null", link) && errno != EEXIST)
		usable = false;
}

static void choose_root(void)
{
	const char *tree = getenv("ADVERB_SYSFS");
	const char *runtime = getenv("ADVERB_RUNTIME");
	const char *user = getenv("XDG_RUNTIME_DIR");

	if (tree)
		snprintf(root, sizeof root, "%s", tree);
	else if (runtime)
		snprintf(root, sizeof root, "%s/sysfs", runtime);
	else
		snprintf(root, sizeof root, "%s/adverb-%u/sysfs",
			 user && access(user, W_OK) == 0 ? user : "/tmp",
			 (unsigned)geteuid());
}

/* A folder in /tmp that somebody else made is not ours to trust. */
static bool is_ours(void)
{
	struct stat st;
	char path[PATH_BYTES];

	snprintf(path, sizeof path, "%s/class/infiniband", root);
	return stat(path, &st) == 0 && st.st_uid == geteuid() &&
	       stat(root, &st) == 0 && st.st_uid == geteuid();
}

static void write_tree(void)
{
	const struct host_device *devices;
	uint32_t count = host_devices(&devices);

	choose_root();
	usable = true;
	for (uint32_t i = 0; i < count; i++)
		put_device(&devices[i], i);
	put("class/infiniband_verbs/abi_version", "6\n");
	usable = usable && is_ours();
}

const char *host_sysfs(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, write_tree);
	return usable ? root : NULL;
}
