/* SPDX-License-Identifier: BSD-2-Clause */
#include "doctor.h"

#include "cpu_quota.h"
#include "launch.h"
#include "ldcache.h"
#include "loader.h"

#include "fabric/fabric_client.h"
#include "host/host.h"
#include "util/runtime_tree.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

/* count_cpus asks for no larger set of processors. */
#define CPUS_MAX (1 << 20)

/* doctor_say has printed a line with DOCTOR_NO. */
static bool said_no;

void doctor_say(enum doctor_word word, const char *thing, const char *format,
		...)
{
	static const char *const words[] = {
		[DOCTOR_OK] = "ok", [DOCTOR_SLOW] = "slow", [DOCTOR_NO] = "no"};
	va_list args;

	printf("%-4s  %s: ", words[word], thing);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	/* some checks fork, and a child must not print a copy of the buffer */
	fflush(stdout);
	said_no |= word == DOCTOR_NO;
}

bool doctor_read_line(const char *path, char *text, int size)
{
	FILE *f = fopen(path, "re");
	bool good = f && fgets(text, size, f);

	if (!good)
		text[0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	if (f)
		fclose(f);
	return good;
}

static void check_version(void)
{
	struct utsname u;

	uname(&u);
	doctor_say(DOCTOR_OK, "version", "adverb %s on %s %s, %s",
		   ADVERB_VERSION, u.sysname, u.release, u.machine);
}

/* Returns how many processors this process may use; 0: unknown.  The kernel
 * refuses a set for fewer processors than the machine may have, which can be
 * more than a cpu_set_t has bits. */
static int count_cpus(void)
{
	int count = 0;

	for (int room = CPU_SETSIZE; !count && room <= CPUS_MAX; room *= 2) {
		size_t bytes = CPU_ALLOC_SIZE(room);
		cpu_set_t *set = CPU_ALLOC(room);

		if (set && !sched_getaffinity(0, bytes, set))
			count = CPU_COUNT_S(bytes, set);
		CPU_FREE(set);
	}
	return count;
}

static void check_cpus(void)
{
	long percent = cpu_quota_percent("/sys/fs/cgroup", "/proc/self/cgroup");
	int count = count_cpus();

	if (percent && percent < 100L * count)
		doctor_say(DOCTOR_SLOW, "processors",
			   "%d, but a cgroup allows %ld%% of one: throttled "
			   "polling stalls for milliseconds",
			   count, percent);
	else if (!count)
		doctor_say(DOCTOR_SLOW, "processors",
			   "their number is unknown: allow "
			   "sched_getaffinity(2) in the sandbox");
	else if (count < 2)
		doctor_say(DOCTOR_SLOW, "processors",
			   "one: two polling processes take turns on it");
	else
		doctor_say(DOCTOR_OK, "processors", "%d, no lower quota",
			   count);
}

static void check_sandbox(void)
{
	char version[256];
	char line[128];
	int mode = 0;
	FILE *f = fopen("/proc/self/status", "re");

	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "Seccomp: %d", &mode);
	if (f)
		fclose(f);
	doctor_read_line("/proc/version", version, sizeof(version));
	/* gVisor shows this version and time, whatever kernel the machine has
	 */
	if (strstr(version, "gVisor") ||
	    strstr(version, "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54"))
		doctor_say(DOCTOR_SLOW, "sandbox",
			   "gVisor: system calls are emulated");
	else if (mode == 2)
		doctor_say(DOCTOR_SLOW, "sandbox",
			   "a seccomp filter checks every system call");
	else
		doctor_say(DOCTOR_OK, "sandbox", "none");
}

static void check_kernel_rdma(void)
{
	/* syscall(2) asks the kernel itself; the access() of a preloaded shim
	 * would find adverb's devices. */
	if (!syscall(SYS_faccessat, AT_FDCWD, "/sys/module/rdma_rxe", F_OK))
		doctor_say(DOCTOR_SLOW, "kernel RDMA",
			   "rdma_rxe is loaded and takes UDP port 4791 once "
			   "an rxe link exists");
	else if (!syscall(SYS_faccessat, AT_FDCWD, "/sys/class/infiniband",
			  F_OK))
		doctor_say(DOCTOR_OK, "kernel RDMA",
			   "present; under adverb run programs see only "
			   "adverb's devices");
	else
		doctor_say(DOCTOR_OK, "kernel RDMA", "absent, and not needed");
}

static void check_runtime_folder(void)
{
	struct runtime_tree tree;
	int err = runtime_tree_find(&tree);

	if (!err || err == -ENOENT)
		doctor_say(DOCTOR_OK, "runtime folder", "%s %s the sysfs tree",
			   tree.path, err ? "will hold" : "holds");
	else
		doctor_say(DOCTOR_SLOW, "runtime folder",
			   "%s: programs see no /sys/class/infiniband; %s",
			   tree.why, runtime_tree_remedy(-err));
}

/* Does /etc/ld.so.preload name the shim? */
static bool is_preloaded(void)
{
	FILE *f = fopen("/etc/ld.so.preload", "re");
	char line[PATH_MAX];
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f))
		found = line[0] != '#' && strstr(line, LOADER_SHIM);
	if (f)
		fclose(f);
	return found;
}

/* Is adverbd beside the libibverbs that the loader's cache names first?  If so,
 * `path` is the folder of both. */
static bool is_installed(char path[PATH_MAX])
{
	char broker[PATH_MAX + 16];
	char *slash;

	if (!ldcache_read(LDCACHE_FILE, "libibverbs.so.1", path))
		return false;
	slash = strrchr(path, '/');
	*slash = '\0';
	snprintf(broker, sizeof(broker), "%s/adverbd", path);
	return access(broker, X_OK) == 0;
}

/* Do programs find adverb without the variables that `adverb run` sets? */
static void check_other_programs(void)
{
	char path[PATH_MAX];

	if (!is_installed(path))
		doctor_say(DOCTOR_OK, "other programs",
			   "programs find adverb only under adverb run; sudo "
			   "-E, ssh, systemd-run, and mpirun on other hosts "
			   "drop its variables: put `adverb run --` behind "
			   "them, or use adverb install");
	else if (!is_preloaded())
		doctor_say(
			DOCTOR_OK, "other programs",
			"all find %s without adverb run, except UCX and MPI, "
			"which look in /sys: use `adverb install --shim`",
			path);
	else
		doctor_say(DOCTOR_OK, "other programs",
			   "all find %s and see /sys/class/infiniband without "
			   "adverb run",
			   path);
}

/*
 * Checks RLIMIT_MEMLOCK as this process sees it: a preloaded shim shows no
 * limit.  Adverb locks no memory.  But some programs, such as those that use
 * GASNet, test the limit before they register memory, and end if it is low.
 */
static void check_locked_memory(void)
{
	char path[PATH_MAX];
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) ||
	    limit.rlim_cur == RLIM_INFINITY)
		doctor_say(DOCTOR_OK, "locked memory",
			   "programs see no limit, and adverb locks none");
	else if (!is_installed(path))
		doctor_say(DOCTOR_OK, "locked memory",
			   "adverb locks none, and under adverb run programs "
			   "see no limit");
	else
		doctor_say(
			DOCTOR_SLOW, "locked memory",
			"adverb locks none, but without adverb run programs "
			"see a limit of %llu KiB, and some, such as those of "
			"GASNet, then end: use adverb install --shim, or raise "
			"the limit (ulimit -l unlimited; LimitMEMLOCK= of "
			"a unit)",
			(unsigned long long)limit.rlim_cur / 1024);
}

/* Functions of adverb's libibverbs, which load_verbs loads by dlopen. */
struct verbs {
	struct ibv_device **(*get_device_list)(int *);
	void (*free_device_list)(struct ibv_device **);
	const char *(*get_device_name)(struct ibv_device *);
	struct ibv_context *(*open_device)(struct ibv_device *);
	int (*close_device)(struct ibv_context *);
	int (*query_gid)(struct ibv_context *, uint8_t, int, union ibv_gid *);
};

/* Loads libibverbs and finds the functions.  False: that has failed, and a line
 * says so. */
static bool load_verbs(const char *libdir, struct verbs *v)
{
	char path[PATH_MAX + 32], why[LOADER_WHY];
	void *lib;

	if (loader_lacks_library(libdir, why)) {
		doctor_say(DOCTOR_NO, "libraries", "%s", why);
		return false;
	}
	snprintf(path, sizeof(path), "%s/libibverbs.so.1", libdir);
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib) {
		doctor_say(DOCTOR_NO, "libraries",
			   "libibverbs.so.1 cannot be loaded: %s; install "
			   "adverb again",
			   dlerror());
		return false;
	}
	*(void **)&v->get_device_list = dlsym(lib, "ibv_get_device_list");
	*(void **)&v->free_device_list = dlsym(lib, "ibv_free_device_list");
	*(void **)&v->get_device_name = dlsym(lib, "ibv_get_device_name");
	*(void **)&v->open_device = dlsym(lib, "ibv_open_device");
	*(void **)&v->close_device = dlsym(lib, "ibv_close_device");
	*(void **)&v->query_gid = dlsym(lib, "ibv_query_gid");
	if (v->get_device_list && v->free_device_list && v->get_device_name &&
	    v->open_device && v->close_device && v->query_gid)
		return true;
	doctor_say(DOCTOR_NO, "libraries",
		   "%s lacks a function, so it is of another project; install "
		   "adverb again",
		   path);
	return false;
}

/* Returns the device of this name in device_list, which is part of this program
 * and not of the libibverbs that load_verbs loads; NULL: there is none. */
static const struct device *find_device(const char *name)
{
	const struct device *d;
	uint32_t count = device_list(&d);

	for (uint32_t i = 0; i < count; i++)
		if (!strcmp(d[i].name, name))
			return &d[i];
	return NULL;
}

/* Prints a line for each port of an InfiniBand device. */
static void say_ports(const struct device *d)
{
	struct device_port port;

	for (uint32_t n = 1; device_port(d, n, &port); n++) {
		const struct fabric_port *p = &port.subnet;

		if (port.is_up)
			doctor_say(DOCTOR_OK, "device",
				   "%s, port %u by InfiniBand, LID %u", d->name,
				   n, p->lid);
		else if (p->state == 1)
			doctor_say(
				DOCTOR_SLOW, "device",
				"%s, port %u has no link; add a cable in the "
				"file of the fabric, or choose another "
				"adapter (adverb run --host NAME)",
				d->name, n);
		else
			doctor_say(
				DOCTOR_SLOW, "device",
				"%s, port %u waits for a subnet manager; run "
				"one on a host of the fabric (adverb run "
				"--fabric -- opensm)",
				d->name, n);
	}
}

/* Sets *flags to the IFF_ bits of an interface.  Returns 0 or -errno; -ENODEV:
 * there is no such interface. */
static int link_flags(const char *netdev, unsigned *flags)
{
	struct ifreq r = {0};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), err = 0;

	if (fd < 0)
		return -errno;
	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", netdev);
	if (ioctl(fd, SIOCGIFFLAGS, &r) < 0)
		err = -errno;
	close(fd);
	*flags = (unsigned short)r.ifr_flags;
	return err;
}

/* Says why the port of a device is down, and what to do. */
static void say_down(enum doctor_word word, const struct device *d)
{
	unsigned flags = 0;
	int err = link_flags(d->netdev, &flags);

	if (err == -ENODEV)
		doctor_say(word, "device",
			   "%s, but its interface %s is gone: restart the "
			   "programs that use the device",
			   d->name, d->netdev);
	else if (err)
		doctor_say(word, "device",
			   "%s, but its port is down, and the state of %s "
			   "cannot be read: %s; ip link show %s tells it",
			   d->name, d->netdev, strerror(-err), d->netdev);
	else if (flags & IFF_UP)
		doctor_say(word, "device",
			   "%s, but %s has no carrier: connect its cable, or "
			   "set the other end of its link up",
			   d->name, d->netdev);
	else
		doctor_say(word, "device",
			   "%s, but %s is down: ip link set %s up", d->name,
			   d->netdev, d->netdev);
}

/* Is the device's port down?  If so, prints a line: "no" for the first device,
 * which programs use by default, and "slow" for another device. */
static bool is_down(const struct device *d)
{
	const struct device *first;
	struct device_port port;

	device_list(&first);
	device_port(d, 1, &port);
	if (port.is_up)
		return false;
	say_down(d == first ? DOCTOR_NO : DOCTOR_SLOW, d);
	return true;
}

/* Prints the device's kind and a GID: the one at index 1 of a RoCE device,
 * which is for RoCEv2, or the only one of an iWARP device. */
static void say_device(const struct verbs *v, struct ibv_context *ctx,
		       const struct device *d)
{
	bool is_iwarp = d->kind == DEVICE_IWARP;
	int index = is_iwarp ? 0 : 1;
	char text[INET6_ADDRSTRLEN] = "none";
	union ibv_gid gid;

	if (v->query_gid(ctx, 1, index, &gid) == 0)
		inet_ntop(AF_INET6, gid.raw, text, sizeof(text));
	doctor_say(DOCTOR_OK, "device", "%s, %s by %s, GID %d is %s", d->name,
		   is_iwarp ? "iWARP" : "RoCE", d->netdev, index, text);
}

static void check_device(const struct verbs *v, struct ibv_device *dev)
{
	const char *name = v->get_device_name(dev);
	const struct device *d = find_device(name);
	struct ibv_context *ctx = v->open_device(dev);

	if (!ctx) {
		doctor_say(DOCTOR_NO, "device",
			   "%s cannot be opened: %s; the message on standard "
			   "error says more",
			   name, strerror(errno));
		return;
	}
	if (d && d->kind == DEVICE_IB)
		say_ports(d);
	else if (d && !is_down(d))
		say_device(v, ctx, d);
	v->close_device(ctx);
}

/* Says why programs have no device. */
static void say_no_device(void)
{
	const char *fabric = fabric_client_path();

	if (*fabric)
		doctor_say(
			DOCTOR_NO, "device",
			"the fabric at %s (ADVERB_FABRIC) gives this process "
			"no adapter; the message on standard error says why",
			fabric);
	else
		doctor_say(DOCTOR_NO, "device",
			   "no network interface can become a device; see "
			   "ADVERB_DEVICES in man 7 adverb");
}

static void check_devices(void)
{
	char why[LOADER_WHY];
	struct ibv_device **list;
	static struct launch l; /* static: doctor_net_broker keeps l.libdir */
	struct verbs v;
	int count = 0;

	if (launch_init(&l) < 0) {
		doctor_say(DOCTOR_NO, "libraries",
			   "not found beside this program; build or install "
			   "adverb completely");
		return;
	}
	if (!load_verbs(l.libdir, &v))
		return;
	if (loader_lacks_library(l.libdir, why) ||
	    loader_lacks_shim(l.libdir, why))
		doctor_say(DOCTOR_NO, "libraries", "%s", why);
	else
		doctor_say(DOCTOR_OK, "libraries", "%s", l.libdir);
	doctor_net_broker(l.libdir);
	list = v.get_device_list(&count);
	if (!list || count == 0)
		say_no_device();
	for (int i = 0; list && i < count; i++)
		check_device(&v, list[i]);
	if (list)
		v.free_device_list(list);
}

int doctor_main(int argc, char **argv)
{
	if (argc > 1) {
		bool asked = strcmp(argv[1], "--help") == 0 ||
			     strcmp(argv[1], "-h") == 0;

		fprintf(asked ? stdout : stderr,
			"usage: adverb doctor\n\nPrints one line for each thing "
			"that adverb needs from this machine.  The line\n"
			"begins with ok, slow or no.  A line with slow says "
			"why, a line with no says\nwhat to do.\n"
			"The exit status is 1 if a line begins with no.\n\n"
			"More: man adverb-doctor\n");
		return asked ? 0 : 2;
	}
	/* If the process that executed this program ignores SIGCHLD, so does
	 * this program, and waitpid would fail. */
	signal(SIGCHLD, SIG_DFL);
	check_version();
	doctor_net_port();
	doctor_net_steering();
	doctor_net_batches();
	doctor_net_buffer();
	doctor_mem_self();
	doctor_mem_other();
	doctor_mem_memfd();
	check_cpus();
	check_sandbox();
	check_kernel_rdma();
	check_runtime_folder();
	check_other_programs();
	check_locked_memory();
	check_devices();
	return said_no ? 1 : 0;
}
