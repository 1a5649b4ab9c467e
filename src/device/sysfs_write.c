/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/sysfs_write.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "device/ib.h"
#include "device/netdev.h"
#include "hca/counters.h"
#include "util/folder.h"

#define PATH_BYTES    300 /* the most bytes of a path in the tree */
#define TREE_VERSION  7	  /* of the set of files; a part of the stamp */
#define STAMP_BYTES   32
#define STAMP	      ".stamp"
#define LOCK	      ".lock"
#define NODE_BYTES    20 /* the most bytes of the name of a device file */
#define UMAD_KINDS    2
#define MOST_CPUS     1024
#define CPUS_PER_WORD 32
#define TURN_NS	      5000000 /* between two tries to take a lock */
#define MOST_TURNS    200     /* one second: the lock's owner may be stopped */

/* A port that libibumad can open has a device file of each kind. */
static const char *const umad_kinds[UMAD_KINDS] = {"umad", "issm"};

/* The state while a tree is written. */
struct writing {
	int fd;		       /* the tree's folder */
	int err;	       /* the first error, which ends the writing */
	char last[PATH_BYTES]; /* the path of last_fd */
	int last_fd;	       /* the folder of the last file; negative: none */
};

static void put_file(struct writing *w, const char *text, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Returns a descriptor of the folder of a path, or -errno.  w keeps the last
 * folder open, since most files are in the same folder as the file
 * that was written before. */
static int folder_of(struct writing *w, const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t len = slash ? (size_t)(slash - path) : 0;

	if (w->last_fd >= 0 && strlen(w->last) == len &&
	    !memcmp(w->last, path, len))
		return w->last_fd;
	if (w->last_fd >= 0)
		close(w->last_fd);
	snprintf(w->last, sizeof(w->last), "%.*s", (int)len, path);
	w->last_fd = folder_open(w->fd, w->last, true);
	return w->last_fd;
}

/* Writes the text and a newline to the file of this path. */
static void put_file(struct writing *w, const char *text, const char *fmt, ...)
{
	char path[PATH_BYTES], line[PATH_BYTES];
	const char *name;
	int fd;
	va_list ap;

	if (w->err)
		return;
	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	snprintf(line, sizeof(line), "%s\n", text);
	fd = folder_of(w, path);
	name = strrchr(path, '/');
	w->err = fd < 0 ? fd : folder_put(fd, name ? name + 1 : path, line);
}

static void drop_entry(struct writing *w, const char *dir, const char *what,
		       uint32_t index)
{
	char path[PATH_BYTES], name[16];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, what);
	snprintf(name, sizeof(name), "%u", index);
	fd = folder_open(w->fd, path, false);
	if (fd < 0)
		return;
	unlinkat(fd, name, 0);
	close(fd);
}

static void put_gid(struct writing *w, const struct device *d, uint32_t number,
		    uint32_t i)
{
	struct device_gid entry;
	bool is_there = netdev_gid(d, &d->ports[number - 1], i, &entry);
	const uint8_t *g = entry.gid;
	char text[48], dir[96], netdev[IF_NAMESIZE];

	snprintf(text, sizeof(text),
		 "%02x%02x:%02x%02x:%02x%02x:%02x%02x:"
		 "%02x%02x:%02x%02x:%02x%02x:%02x%02x",
		 g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7], g[8], g[9],
		 g[10], g[11], g[12], g[13], g[14], g[15]);
	put_file(w, text, "class/infiniband/%s/ports/%u/gids/%u", d->name,
		 number, i);
	/* In the kernel's tree a read of types/I or ndevs/I fails if the GID
	 * table has no entry I.  A read of ndevs/I also fails if the entry has
	 * no interface. */
	snprintf(dir, sizeof(dir), "class/infiniband/%s/ports/%u/gid_attrs",
		 d->name, number);
	if (is_there)
		put_file(w,
			 entry.type == DEVICE_GID_ROCE_V2 ? "RoCE v2"
							  : "IB/RoCE v1",
			 "%s/types/%u", dir, i);
	else
		drop_entry(w, dir, "types", i);
	if (is_there && *d->netdev)
		put_file(w,
			 entry.ifindex != d->ifindex &&
					 if_indextoname(entry.ifindex, netdev)
				 ? netdev
				 : d->netdev,
			 "%s/ndevs/%u", dir, i);
	else
		drop_entry(w, dir, "ndevs", i);
}

/* Writes the mask of all processors in the kernel's format: words of 32 bits,
 * separated by commas. */
static void put_cpus(struct writing *w, const char *device)
{
	char text[MOST_CPUS / CPUS_PER_WORD * 9 + 1] = "";
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	size_t len = 0;

	if (cpus < 1 || cpus > MOST_CPUS)
		cpus = MOST_CPUS;
	for (long i = (cpus - 1) / CPUS_PER_WORD; i >= 0; i--) {
		long bits = cpus - i * CPUS_PER_WORD;
		uint32_t mask =
			bits < CPUS_PER_WORD ? (1u << bits) - 1 : UINT32_MAX;

		len += (size_t)snprintf(text + len, sizeof(text) - len,
					len ? ",%08" PRIx32 : "%" PRIx32, mask);
	}
	put_file(w, text, "class/infiniband/%s/device/local_cpus", device);
}

static void put_guid(struct writing *w, const struct device *d,
		     const char *file, uint64_t g)
{
	char text[32];

	snprintf(text, sizeof(text), "%04x:%04x:%04x:%04x", (unsigned)(g >> 48),
		 (unsigned)(g >> 32) & 0xffff, (unsigned)(g >> 16) & 0xffff,
		 (unsigned)g & 0xffff);
	put_file(w, text, "class/infiniband/%s/%s", d->name, file);
}

static void put_list(struct writing *w, const struct device *d,
		     const char *const files[][2], size_t count)
{
	for (size_t i = 0; i < count; i++)
		put_file(w, files[i][1], "class/infiniband/%s/%s", d->name,
			 files[i][0]);
}

static void put_fixed(struct writing *w, const struct device *d)
{
	static const char *const files[][2] = {
		{"fw_ver", "1.0"},	    {"hca_type", "adverb"},
		{"board_id", "adverb"},	    {"hw_rev", "0x1"},
		{"device/numa_node", "-1"},
	};

	put_list(w, d, files, sizeof(files) / sizeof(*files));
	put_file(w, d->kind == DEVICE_IWARP ? "4: RNIC" : "1: CA",
		 "class/infiniband/%s/node_type", d->name);
	put_file(w, d->node_desc, "class/infiniband/%s/node_desc", d->name);
	put_guid(w, d, "node_guid", d->guid);
	put_guid(w, d, "sys_image_guid", d->system_guid);
}

/* Writes the files whose contents are the same for the ports of all RoCE
 * devices, or of all iWARP devices.  iWARP has no P_Keys. */
static void put_ethernet(struct writing *w, const struct device *d)
{
	static const char *const files[][2] = {
		{"ports/1/link_layer", "Ethernet"},
		{"ports/1/rate", "100 Gb/sec (4X EDR)"},
		{"ports/1/lid", "0x0"},
		{"ports/1/sm_lid", "0x0"},
		{"ports/1/lid_mask_count", "0"},
		{"ports/1/sm_sl", "0"},
	};
	bool is_iwarp = d->kind == DEVICE_IWARP;

	put_list(w, d, files, sizeof(files) / sizeof(*files));
	put_file(w, is_iwarp ? "0x00090000" : "0x00010000",
		 "class/infiniband/%s/ports/1/cap_mask", d->name);
	if (!is_iwarp)
		put_file(w, "0xffff", "class/infiniband/%s/ports/1/pkeys/0",
			 d->name);
}

/* Creates a device file, as a symbolic link to /dev/null: programs only test
 * whether they may open the file. */
static void put_device_file(struct writing *w, const char *kind, uint32_t index)
{
	int fd = w->err ? w->err : folder_open(w->fd, "dev/infiniband", true);
	char name[NODE_BYTES];

	if (fd < 0) {
		w->err = fd;
		return;
	}
	snprintf(name, sizeof(name), "%s%u", kind, index);
	if (symlinkat("/dev/null", fd, name) && errno != EEXIST)
		w->err = -errno;
	close(fd);
}

static void put_node(struct writing *w, const char *device, uint32_t index)
{
	put_file(w, device, "class/infiniband_verbs/uverbs%u/ibdev", index);
	put_file(w, "1", "class/infiniband_verbs/uverbs%u/abi_version", index);
	put_device_file(w, "uverbs", index);
}

/* Writes the files of a port that libibumad can open. */
static void put_umad(struct writing *w, const char *device, uint32_t port,
		     uint32_t index)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", port);
	for (size_t i = 0; i < UMAD_KINDS; i++) {
		put_file(w, device, "class/infiniband_mad/%s%u/ibdev",
			 umad_kinds[i], index);
		put_file(w, text, "class/infiniband_mad/%s%u/port",
			 umad_kinds[i], index);
		put_device_file(w, umad_kinds[i], index);
	}
}

/* Writes infiniband_mad.  Ports of RoCE and iWARP are not there, since programs
 * exchange no management datagrams through them. */
static void put_umads(struct writing *w, const struct device *devices,
		      uint32_t count)
{
	uint32_t index = 0;

	put_file(w, "5", "class/infiniband_mad/abi_version");
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t n = 1; n <= devices[i].port_count; n++)
			if (devices[i].kind == DEVICE_IB)
				put_umad(w, devices[i].name, n, index++);
}

/* Creates the counter files that are missing.  The broker writes the counters
 * into them (broker/counter_files.h). */
static void put_counters(struct writing *w, const char *device)
{
	char path[PATH_BYTES];
	int fd;

	snprintf(path, sizeof(path), "class/infiniband/%s/ports/1", device);
	fd = w->err ? w->err : folder_open(w->fd, path, true);
	if (fd < 0) {
		w->err = fd;
		return;
	}
	for (uint32_t i = 0; i < COUNTERS_FILES && !w->err; i++) {
		const char *name = counters_files[i].name;

		if (faccessat(fd, name, F_OK, 0))
			put_file(w, "0", "%s/%s", path, name);
	}
	close(fd);
}

/* Removes all entries of the folder for which is_kept returns false, except
 * those whose names begin with a dot. */
static void sweep_below(struct writing *w, const char *below,
			bool (*is_kept)(const char *name,
					const struct device *devices,
					uint32_t count),
			const struct device *devices, uint32_t count)
{
	int fd = w->err ? w->err : folder_open(w->fd, below, false);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!dir && fd >= 0)
		close(fd);
	while (dir && (e = readdir(dir)))
		if (e->d_name[0] != '.' && !is_kept(e->d_name, devices, count))
			folder_remove(fd, e->d_name);
	if (dir)
		closedir(dir);
}

static bool is_interface(const char *name, const struct device *devices,
			 uint32_t count)
{
	return count && !strcmp(name, devices->netdev);
}

/* Writes the files that name the device's interface.  Removes the folders of
 * other interfaces, whose devices had this name before. */
static void put_link(struct writing *w, const struct device *d)
{
	char path[PATH_BYTES], text[16];

	snprintf(text, sizeof(text), "%u", d->ifindex);
	put_file(w, text, "class/infiniband/%s/device/net/%s/ifindex", d->name,
		 d->netdev);
	put_file(w, d->netdev, "class/infiniband/%s/parent", d->name);
	snprintf(path, sizeof(path), "class/infiniband/%s/device/net", d->name);
	sweep_below(w, path, is_interface, d, 1);
}

/* Writes the files of the port and of the interface of a RoCE or iWARP device,
 * except the GID table. */
static void put_interface(struct writing *w, const struct device *d)
{
	put_ethernet(w, d);
	put_counters(w, d->name);
	put_file(w, d->ports[0].is_up ? "4: ACTIVE" : "1: DOWN",
		 "class/infiniband/%s/ports/1/state", d->name);
	put_file(w, d->ports[0].is_up ? "5: LinkUp" : "3: Disabled",
		 "class/infiniband/%s/ports/1/phys_state", d->name);
	put_link(w, d);
}

static void put_port(struct writing *w, const struct device *d, uint32_t number,
		     const char *file, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

/* Writes a text, which fmt and its arguments make, to a file of a port. */
static void put_port(struct writing *w, const struct device *d, uint32_t number,
		     const char *file, const char *fmt, ...)
{
	char text[48];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	put_file(w, text, "class/infiniband/%s/ports/%u/%s", d->name, number,
		 file);
}

/* Returns the name of a state from 1 to count; "" for any other state. */
static const char *name_of(uint32_t state, const char *const *names,
			   uint32_t count)
{
	return state && state <= count ? names[state - 1] : "";
}

static void put_state(struct writing *w, const struct device *d,
		      uint32_t number, const struct fabric_port *p)
{
	/* IBTA 14.2.5.6 */
	static const char *const logical[] = {"DOWN", "INIT", "ARMED",
					      "ACTIVE"};
	static const char *const physical[] = {
		"Sleep",    "Polling",
		"Disabled", "PortConfigurationTraining",
		"LinkUp",   "LinkErrorRecovery",
	};

	put_port(w, d, number, "state", "%u: %s", p->state,
		 name_of(p->state, logical, 4));
	put_port(w, d, number, "phys_state", "%u: %s", p->phys_state,
		 name_of(p->phys_state, physical, 6));
}

/* Writes the rate as the kernel does: "2.5 Gb/sec (1X SDR)". */
static void put_rate(struct writing *w, const struct device *d, uint32_t number,
		     const struct fabric_port *p)
{
	unsigned lanes = ib_lanes(p), tenths = 25 * lanes * p->speed;

	put_port(w, d, number, "rate", "%u%s Gb/sec (%uX %s)", tenths / 10,
		 tenths % 10 ? ".5" : "", lanes,
		 p->speed == 4	 ? "QDR"
		 : p->speed == 2 ? "DDR"
				 : "SDR");
}

static void put_pkeys(struct writing *w, const struct device *d,
		      uint32_t number, const struct fabric_port *p)
{
	for (uint32_t i = 0; i < sizeof(p->pkeys) / sizeof(*p->pkeys); i++) {
		char file[16];

		snprintf(file, sizeof(file), "pkeys/%u", i);
		put_port(w, d, number, file, "0x%04x", p->pkeys[i]);
	}
}

/* Writes the files of a port of an InfiniBand device. */
static void put_subnet(struct writing *w, const struct device *d,
		       uint32_t number)
{
	const struct fabric_port *p = &d->ports[number - 1].subnet;

	put_port(w, d, number, "link_layer", "InfiniBand");
	put_state(w, d, number, p);
	put_rate(w, d, number, p);
	put_port(w, d, number, "lid", "0x%x", p->lid);
	put_port(w, d, number, "lid_mask_count", "%u", p->lmc);
	put_port(w, d, number, "sm_lid", "0x%x", p->sm_lid);
	put_port(w, d, number, "sm_sl", "%u", p->sm_sl);
	put_port(w, d, number, "cap_mask", "0x%08x", p->capabilities);
	put_pkeys(w, d, number, p);
}

static bool is_port(const char *name, const struct device *d, uint32_t count)
{
	long number = strtol(name, NULL, 10);

	(void)count;
	return number > 0 && number <= (long)d->port_count;
}

/* Removes ports of a device that had this name before. */
static void drop_ports(struct writing *w, const struct device *d)
{
	char path[96];

	snprintf(path, sizeof(path), "class/infiniband/%s/ports", d->name);
	sweep_below(w, path, is_port, d, 1);
}

static void put_device(struct writing *w, const struct device *d,
		       uint32_t index)
{
	put_fixed(w, d);
	put_cpus(w, d->name);
	if (d->kind != DEVICE_IB)
		put_interface(w, d);
	for (uint32_t n = 1; n <= d->port_count; n++) {
		if (d->kind == DEVICE_IB)
			put_subnet(w, d, n);
		for (uint32_t i = 0; i < netdev_gid_count(d); i++)
			put_gid(w, d, n, i);
	}
	if (d->kind == DEVICE_IB)
		drop_ports(w, d);
	put_node(w, d->name, index);
}

/* Is the name `kind` followed by an index from 0 to count - 1? */
static bool is_indexed(const char *name, const char *kind, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		char node[NODE_BYTES];

		snprintf(node, sizeof(node), "%s%u", kind, i);
		if (!strcmp(name, node))
			return true;
	}
	return false;
}

static bool is_device(const char *name, const struct device *devices,
		      uint32_t count)
{
	uint32_t ports = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (!strcmp(name, devices[i].name))
			return true;
		if (devices[i].kind == DEVICE_IB)
			ports += devices[i].port_count;
	}
	for (size_t i = 0; i < UMAD_KINDS; i++)
		if (is_indexed(name, umad_kinds[i], ports))
			return true;
	return is_indexed(name, "uverbs", count) ||
	       !strcmp(name, "abi_version");
}

/* Computes the stamp: a hash of all members of the devices. */
static void stamp_of(const struct device *devices, uint32_t count,
		     char text[STAMP_BYTES])
{
	const uint8_t *p = (const uint8_t *)devices;
	uint64_t h = 0xcbf29ce484222325u + TREE_VERSION; /* FNV-1a */

	for (size_t i = 0; i < count * sizeof(*devices); i++)
		h = (h ^ p[i]) * 0x100000001b3u;
	snprintf(text, STAMP_BYTES, "%016" PRIx64, h);
}

/* Has the tree this stamp?  The access time of the stamp is not changed: after
 * days without a change, clean-up jobs such as systemd-tmpfiles then remove the
 * stamp together with the files of the tree that nobody reads, and the tree is
 * written again. */
static bool is_stamped(int fd, const char *stamp)
{
	char text[STAMP_BYTES];
	int file = openat(fd, STAMP,
			  O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOATIME);
	ssize_t n;

	if (file < 0)
		return false;
	n = read(file, text, sizeof(text));
	close(file);
	return n == (ssize_t)strlen(stamp) + 1 &&
	       memcmp(text, stamp, strlen(stamp)) == 0;
}

/* Returns 0 if the folder is empty or contains a tree; -ENOTEMPTY if it
 * contains files but no tree; or another -errno.  A folder that a user chose
 * may contain files of the user, which must not be removed.  A tree is
 * recognised by the lock's file, which is created first, or by the stamp: a
 * clean-up job may have removed one of these files. */
static int check_tree(int fd)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	int err = dir ? 0 : -errno;
	bool is_empty = true, has_mark = false;
	struct dirent *e;

	if (!dir && copy >= 0)
		close(copy);
	while (dir && (e = readdir(dir))) {
		has_mark |=
			!strcmp(e->d_name, LOCK) || !strcmp(e->d_name, STAMP);
		is_empty &= !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..");
	}
	if (dir)
		closedir(dir);
	return is_empty || has_mark ? err : -ENOTEMPTY;
}

/*
 * Waits while another process writes the tree, but at most for a second, since
 * two processes that write at once do no harm.  Returns a descriptor of the
 * lock's file, which the caller closes, or -1.
 */
static int queue_up(int fd, const char *stamp)
{
	const struct timespec turn = {0, TURN_NS};
	int file = openat(fd, LOCK, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
			  0600);

	for (int i = 0; i < MOST_TURNS && file >= 0; i++) {
		if (!flock(file, LOCK_EX | LOCK_NB) || is_stamped(fd, stamp))
			break;
		nanosleep(&turn, NULL);
	}
	return file;
}

static int make_folder(int fd, const char *path)
{
	int made = folder_open(fd, path, true);

	if (made < 0)
		return made;
	close(made);
	return 0;
}

static int write_tree(int fd, const char *stamp, const struct device *devices,
		      uint32_t count)
{
	static const char *const swept[] = {
		"class/infiniband", "class/infiniband_verbs",
		"class/infiniband_mad", "dev/infiniband"};
	struct writing w = {.fd = fd, .last_fd = -1};

	unlinkat(fd, STAMP, 0);
	put_file(&w, "6", "class/infiniband_verbs/abi_version");
	w.err = w.err ? w.err : make_folder(fd, swept[0]);
	for (uint32_t i = 0; i < count; i++)
		put_device(&w, &devices[i], i);
	put_umads(&w, devices, count);
	for (size_t i = 0; i < sizeof(swept) / sizeof(swept[0]); i++)
		sweep_below(&w, swept[i], is_device, devices, count);
	put_file(&w, stamp, STAMP);
	if (w.last_fd >= 0)
		close(w.last_fd);
	return w.err;
}

int sysfs_write(int fd, const struct device *devices, uint32_t count)
{
	char stamp[STAMP_BYTES];
	int file, err;

	stamp_of(devices, count, stamp);
	/* Clean-up jobs remove files that nobody uses. */
	utimensat(fd, LOCK, NULL, AT_SYMLINK_NOFOLLOW);
	if (is_stamped(fd, stamp))
		return 0;
	err = check_tree(fd);
	if (err)
		return err;
	file = queue_up(fd, stamp);
	if (!is_stamped(fd, stamp))
		err = write_tree(fd, stamp, devices, count);
	if (file >= 0)
		close(file);
	return err;
}
