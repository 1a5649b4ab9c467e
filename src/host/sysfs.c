/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/sysfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "engine/counters.h"
#include "shim/tree.h"
#include "util/lock.h"

#define PATH_BYTES    400
#define TREE_VERSION  4 /* of the files' contents, part of the stamp */
#define STAMP_BYTES   32
#define MOST_CPUS     1024
#define CPUS_PER_WORD 32
#define REMOVE_FDS    8
#define TURN_NS	      5000000
#define MOST_TURNS    200 /* a second: who holds the lock may be stopped */

/* One writing of a tree; the first failure ends it. */
struct tree {
	const char *root;
	int err;
};

/*
 * Says that the tree is in use, to who would remove it (broker/sweep.h), for
 * as long as this process lives: -1, or a descriptor of the folder, locked.
 */
static int hold_fd = -1;
static struct lock lock;
static char root[PATH_BYTES / 2]; /* all three: under lock */
static bool written, usable;

/* mkdir -p of everything before the last '/'. */
static void make_parents(char *path)
{
	for (char *p = path + 1; (p = strchr(p, '/')); p++) {
		*p = 0;
		mkdir(path, 0755);
		*p = '/';
	}
}

static void put(struct tree *t, const char *text, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* The file of this name below the root gets the text and a newline. */
static void put(struct tree *t, const char *text, const char *fmt, ...)
{
	char path[PATH_BYTES], temp[PATH_BYTES + 32];
	size_t len = strlen(text);
	int fd, n = snprintf(path, sizeof path, "%s/", t->root);
	va_list ap;

	if (t->err)
		return;
	va_start(ap, fmt);
	vsnprintf(path + n, sizeof path - (size_t)n, fmt, ap);
	va_end(ap);
	snprintf(temp, sizeof temp, "%s.%d~", path, (int)getpid());
	fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 && errno == ENOENT) {
		make_parents(path);
		fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	}
	if (fd < 0) {
		t->err = -errno;
		return;
	}
	if (write(fd, text, len) != (ssize_t)len || write(fd, "\n", 1) != 1 ||
	    rename(temp, path)) {
		t->err = errno ? -errno : -EIO;
		unlink(temp);
	}
	close(fd);
}

static void drop(struct tree *t, const char *dir, const char *what,
		 uint32_t index)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof path, "%s/%s/%s/%u", t->root, dir, what, index);
	unlink(path);
}

static void put_gid(struct tree *t, const struct host_device *d, uint32_t i)
{
	const struct host_gid *entry = &d->port.gids[i];
	const uint8_t *g = entry->gid;
	char text[48], dir[96];

	snprintf(text, sizeof text,
		 "%02x%02x:%02x%02x:%02x%02x:%02x%02x:"
		 "%02x%02x:%02x%02x:%02x%02x:%02x%02x",
		 g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7], g[8], g[9],
		 g[10], g[11], g[12], g[13], g[14], g[15]);
	put(t, text, "class/infiniband/%s/ports/1/gids/%u", d->name, i);
	/* the kernel's do not open where there is no entry */
	snprintf(dir, sizeof dir, "class/infiniband/%s/ports/1/gid_attrs",
		 d->name);
	if (entry->ifindex) {
		put(t,
		    entry->type == HOST_GID_ROCE_V2 ? "RoCE v2" : "IB/RoCE v1",
		    "%s/types/%u", dir, i);
		put(t, d->netdev, "%s/ndevs/%u", dir, i);
		return;
	}
	drop(t, dir, "types", i);
	drop(t, dir, "ndevs", i);
}

/* All of the machine's, 32 to a word, as the kernel writes masks. */
static void put_cpus(struct tree *t, const char *device)
{
	char text[MOST_CPUS / CPUS_PER_WORD * 9 + 1] = "";
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	size_t len = 0;

	if (cpus < 1 || cpus > MOST_CPUS)
		cpus = MOST_CPUS;
	for (long w = (cpus - 1) / CPUS_PER_WORD; w >= 0; w--) {
		long bits = cpus - w * CPUS_PER_WORD;
		uint32_t mask =
			bits < CPUS_PER_WORD ? (1u << bits) - 1 : UINT32_MAX;

		len += (size_t)snprintf(text + len, sizeof text - len,
					len ? ",%08" PRIx32 : "%" PRIx32, mask);
	}
	put(t, text, "class/infiniband/%s/device/local_cpus", device);
}

static void put_guids(struct tree *t, const struct host_device *d)
{
	uint64_t g = d->guid;
	char text[32];

	snprintf(text, sizeof text, "%04x:%04x:%04x:%04x", (unsigned)(g >> 48),
		 (unsigned)(g >> 32) & 0xffff, (unsigned)(g >> 16) & 0xffff,
		 (unsigned)g & 0xffff);
	put(t, text, "class/infiniband/%s/node_guid", d->name);
	put(t, text, "class/infiniband/%s/sys_image_guid", d->name);
}

static void put_fixed(struct tree *t, const struct host_device *d)
{
	static const char *const files[][2] = {
		{"node_type", "1: CA"},
		{"node_desc", "adverb"},
		{"fw_ver", "1.0"},
		{"hca_type", "adverb"},
		{"board_id", "adverb"},
		{"hw_rev", "0x1"},
		{"device/numa_node", "-1"},
		{"ports/1/link_layer", "Ethernet"},
		{"ports/1/rate", "100 Gb/sec (4X EDR)"},
		{"ports/1/lid", "0x0"},
		{"ports/1/sm_lid", "0x0"},
		{"ports/1/lid_mask_count", "0"},
		{"ports/1/sm_sl", "0"},
		{"ports/1/cap_mask", "0x00010000"},
		{"ports/1/pkeys/0", "0xffff"},
	};

	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
		put(t, files[i][1], "class/infiniband/%s/%s", d->name,
		    files[i][0]);
}

static void put_node(struct tree *t, const char *device, uint32_t index)
{
	char link[PATH_BYTES];

	put(t, device, "class/infiniband_verbs/uverbs%u/ibdev", index);
	put(t, "1", "class/infiniband_verbs/uverbs%u/abi_version", index);
	snprintf(link, sizeof link, "%s/dev/infiniband/uverbs%u", t->root,
		 index);
	make_parents(link);
	/* a device file that everybody may open, which is all that is asked */
	if (!t->err && symlink("/dev/null", link) && errno != EEXIST)
		t->err = -errno;
}

/* Those that are not there; from then on the broker writes them (tally.h). */
static void put_counters(struct tree *t, const char *device)
{
	char path[PATH_BYTES];

	for (uint32_t i = 0; i < COUNTERS_FILES; i++) {
		const char *name = counters_files[i].name;

		snprintf(path, sizeof path, "%s/class/infiniband/%s/ports/1/%s",
			 t->root, device, name);
		if (access(path, F_OK))
			put(t, "0", "class/infiniband/%s/ports/1/%s", device,
			    name);
	}
}

static int remove_one(const char *path, const struct stat *st, int type,
		      struct FTW *ftw)
{
	return remove(path);
}

/* The interface, and not that of the device which had the name before. */
static void put_link(struct tree *t, const struct host_device *d)
{
	char path[PATH_BYTES], text[16];
	struct dirent *e;
	DIR *dir;

	snprintf(text, sizeof text, "%u", d->ifindex);
	put(t, text, "class/infiniband/%s/device/net/%s/ifindex", d->name,
	    d->netdev);
	put(t, d->netdev, "class/infiniband/%s/parent", d->name);
	snprintf(path, sizeof path, "%s/class/infiniband/%s/device/net",
		 t->root, d->name);
	dir = opendir(path);
	while (dir && (e = readdir(dir))) {
		char inside[PATH_BYTES + 256];

		if (e->d_name[0] == '.' || !strcmp(e->d_name, d->netdev))
			continue;
		snprintf(inside, sizeof inside, "%s/%s", path, e->d_name);
		nftw(inside, remove_one, REMOVE_FDS, FTW_DEPTH | FTW_PHYS);
	}
	if (dir)
		closedir(dir);
}

static void put_device(struct tree *t, const struct host_device *d,
		       uint32_t index)
{
	put_fixed(t, d);
	put_guids(t, d);
	put_cpus(t, d->name);
	put_counters(t, d->name);
	put(t, d->port.is_up ? "4: ACTIVE" : "1: DOWN",
	    "class/infiniband/%s/ports/1/state", d->name);
	put(t, d->port.is_up ? "5: LinkUp" : "3: Disabled",
	    "class/infiniband/%s/ports/1/phys_state", d->name);
	for (uint32_t i = 0; i < HOST_MAX_GIDS; i++)
		put_gid(t, d, i);
	put_link(t, d);
	put_node(t, d->name, index);
}

static bool is_kept(const char *name, const struct host_device *devices,
		    uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		char node[20];

		snprintf(node, sizeof node, "uverbs%u", i);
		if (!strcmp(name, devices[i].name) || !strcmp(name, node))
			return true;
	}
	return name[0] == '.' || !strcmp(name, "abi_version");
}

/* What an earlier tree had more. */
static void sweep(const char *top, const char *below,
		  const struct host_device *devices, uint32_t count)
{
	char path[PATH_BYTES], inside[PATH_BYTES + 256];
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof path, "%s/%s", top, below);
	dir = opendir(path);
	while (dir && (e = readdir(dir))) {
		if (is_kept(e->d_name, devices, count))
			continue;
		snprintf(inside, sizeof inside, "%s/%s", path, e->d_name);
		nftw(inside, remove_one, REMOVE_FDS, FTW_DEPTH | FTW_PHYS);
	}
	if (dir)
		closedir(dir);
}

/* One word for all that a tree says. */
static void stamp_of(const struct host_device *devices, uint32_t count,
		     char text[STAMP_BYTES])
{
	const uint8_t *p = (const uint8_t *)devices;
	uint64_t h = 0xcbf29ce484222325u + TREE_VERSION; /* FNV-1a */

	for (size_t i = 0; i < count * sizeof *devices; i++)
		h = (h ^ p[i]) * 0x100000001b3u;
	snprintf(text, STAMP_BYTES, "%016" PRIx64, h);
}

static bool is_stamped(const char *top, const char *stamp)
{
	char path[PATH_BYTES], text[STAMP_BYTES];
	ssize_t n;
	int fd;

	snprintf(path, sizeof path, "%s/.stamp", top);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof text);
	close(fd);
	return n == (ssize_t)strlen(stamp) + 1 &&
	       memcmp(text, stamp, strlen(stamp)) == 0;
}

/* A folder in /tmp that somebody else made is not ours to trust. */
static bool is_ours(const char *top)
{
	struct stat st;
	char path[PATH_BYTES];

	snprintf(path, sizeof path, "%s/class/infiniband", top);
	return stat(path, &st) == 0 && st.st_uid == geteuid() &&
	       stat(top, &st) == 0 && st.st_uid == geteuid();
}

/*
 * Of many that start at once one writes.  Others wait until it is done or
 * does not get on; two that write at once do no harm.  Returns what to close.
 */
static int queue_up(const char *top, const char *stamp)
{
	const struct timespec turn = {0, TURN_NS};
	char path[PATH_BYTES];
	int fd;

	snprintf(path, sizeof path, "%s/.lock", top);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	for (int i = 0; i < MOST_TURNS && fd >= 0; i++) {
		if (!flock(fd, LOCK_EX | LOCK_NB) || is_stamped(top, stamp))
			break;
		nanosleep(&turn, NULL);
	}
	return fd;
}

static int write_tree(const char *top, const char *stamp,
		      const struct host_device *devices, uint32_t count)
{
	struct tree t = {.root = top};
	char path[PATH_BYTES];

	snprintf(path, sizeof path, "%s/.stamp", top);
	unlink(path);
	put(&t, "6", "class/infiniband_verbs/abi_version");
	for (uint32_t i = 0; i < count; i++)
		put_device(&t, &devices[i], i);
	sweep(top, "class/infiniband", devices, count);
	sweep(top, "class/infiniband_verbs", devices, count);
	sweep(top, "dev/infiniband", devices, count);
	put(&t, stamp, ".stamp");
	return t.err;
}

int sysfs_write(const char *top, const struct host_device *devices,
		uint32_t count)
{
	char stamp[STAMP_BYTES], path[PATH_BYTES];
	int fd, err = 0;

	stamp_of(devices, count, stamp);
	if (is_stamped(top, stamp) && is_ours(top))
		return 0;
	snprintf(path, sizeof path, "%s/class/infiniband/", top);
	make_parents(path);
	if (!is_ours(top))
		return -EPERM;
	fd = queue_up(top, stamp);
	if (!is_stamped(top, stamp))
		err = write_tree(top, stamp, devices, count);
	if (fd >= 0)
		close(fd);
	return err;
}

/* Is `fd` still what has the name? */
static bool is_there(int fd, const char *top)
{
	struct stat a, b;

	return !fstat(fd, &a) && !stat(top, &b) && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

/* It may be on its way out just now: then we make another. */
static int hold(const char *top)
{
	const struct timespec turn = {0, TURN_NS};
	char path[PATH_BYTES];

	snprintf(path, sizeof path, "%s/", top);
	for (int i = 0; i < MOST_TURNS; i++) {
		bool is_held;
		int fd;

		make_parents(path);
		fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			return -1;
		/* where there are no locks nobody removes it either */
		is_held = !flock(fd, LOCK_SH | LOCK_NB) || errno != EWOULDBLOCK;
		if (is_held && is_there(fd, top))
			return fd;
		close(fd);
		nanosleep(&turn, NULL);
	}
	return -1;
}

/* A copy with the ports of now; its padding is that of static memory. */
static void write_now(void)
{
	static struct host_device now[HOST_MAX_DEVICES];
	const struct host_device *devices;
	uint32_t count = host_devices(&devices);

	for (uint32_t i = 0; i < count; i++) {
		memcpy(&now[i], &devices[i],
		       offsetof(struct host_device, port));
		host_port(&devices[i], &now[i].port);
	}
	usable = sysfs_write(root, now, count) == 0;
}

/* Another root can have taken the name since it was free. */
static void write_somewhere(void)
{
	char tried[sizeof root];

	*tried = '\0';
	while (!usable && tree_path(root, sizeof root) &&
	       strcmp(tried, root) != 0) {
		if (hold_fd >= 0)
			close(hold_fd);
		memcpy(tried, root, sizeof tried);
		hold_fd = hold(root);
		write_now();
	}
}

const char *host_sysfs(void)
{
	bool good;

	lock_take(&lock);
	if (!written) {
		written = true;
		write_somewhere();
	}
	good = usable;
	lock_give(&lock);
	return good ? root : NULL;
}

void sysfs_refresh(void)
{
	lock_take(&lock);
	if (usable)
		write_now();
	lock_give(&lock);
}

void sysfs_forked(void)
{
	lock_init(&lock);
}
