/* SPDX-License-Identifier: BSD-2-Clause */
/* device/sysfs, device/sysfs_write: the files of the synthesized tree that
 * programs read, for devices of the test. */
#include "test.h"

#include "remove_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "device/sysfs.h"
#include "device/sysfs_write.h"

static char root[64];
static struct device devices[2];

static int set_up(void **state)
{
	strcpy(root, "/tmp/adverb-sysfs-XXXXXX");
	memset(devices, 0, sizeof(devices));
	for (int i = 0; i < 2; i++) {
		struct device *d = &devices[i];

		snprintf(d->name, sizeof(d->name), "adv%d", i);
		snprintf(d->netdev, sizeof(d->netdev), "eth%d", i);
		d->ifindex = (uint32_t)i + 2;
		d->guid = 0x0002c9fffe000001u + (unsigned)i;
		d->port_count = 1;
		strcpy(d->node_desc, "adverb");
		d->ports[0].is_up = true;
		d->ports[0].gids[1] = (struct device_gid){
			{[10] = 0xff, 0xff, 10, 0, 0, (uint8_t)i},
			DEVICE_GID_ROCE_V2,
			d->ifindex};
	}
	devices[0].ports[0].gids[2] = devices[0].ports[0].gids[1];
	devices[0].ports[0].gids[2].type = DEVICE_GID_ROCE_V1;
	/* an address of another interface, which every machine has */
	devices[0].ports[0].gids[4] =
		(struct device_gid){{[10] = 0xff, 0xff, 127, 0, 0, 1},
				    DEVICE_GID_ROCE_V2,
				    if_nametoindex("lo")};
	return mkdtemp(root) ? 0 : -1;
}

static int tear_down(void **state)
{
	return remove_tree(root);
}

static int write_tree(uint32_t count)
{
	int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err;

	assert_true(fd >= 0);
	err = sysfs_write(fd, devices, count);
	close(fd);
	return err;
}

/* Returns the path of `name` below root.  The next call but one overwrites the
 * result. */
static const char *path_of(const char *name)
{
	static char path[2][256];
	static int turn;

	turn = !turn;
	snprintf(path[turn], sizeof(path[turn]), "%s/%s", root, name);
	return path[turn];
}

static void expect_file(const char *name, const char *want)
{
	char text[128] = "";
	int fd = open(path_of(name), O_RDONLY);
	ssize_t n;

	if (fd < 0)
		fail_msg("no %s", name);
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	assert_true(n > 0);
	assert_int_equal(text[n - 1], '\n');
	text[n - 1] = 0;
	assert_string_equal(text, want);
}

static void expect_none(const char *name)
{
	assert_int_equal(access(path_of(name), F_OK), -1);
}

static ino_t inode_of(const char *name)
{
	struct stat st;

	assert_int_equal(stat(path_of(name), &st), 0);
	return st.st_ino;
}

#define PORT "class/infiniband/adv0/ports/1/"

static void the_tree_has_the_files_that_programs_read(void **state)
{
	struct stat st;

	assert_int_equal(write_tree(2), 0);
	expect_file("class/infiniband_verbs/abi_version", "6");
	expect_file("class/infiniband_verbs/uverbs1/ibdev", "adv1");
	expect_file("class/infiniband/adv0/node_type", "1: CA");
	expect_file("class/infiniband/adv0/node_guid", "0002:c9ff:fe00:0001");
	expect_file("class/infiniband/adv1/device/net/eth1/ifindex", "3");
	expect_file("class/infiniband/adv0/device/numa_node", "-1");
	expect_file("class/infiniband/adv1/parent", "eth1");
	expect_file(PORT "state", "4: ACTIVE");
	expect_file(PORT "phys_state", "5: LinkUp");
	expect_file(PORT "link_layer", "Ethernet");
	expect_file(PORT "pkeys/0", "0xffff");
	expect_file(PORT "gids/1", "0000:0000:0000:0000:0000:ffff:0a00:0000");
	expect_file(PORT "gid_attrs/types/1", "RoCE v2");
	expect_file(PORT "gid_attrs/types/2", "IB/RoCE v1");
	expect_file(PORT "gid_attrs/ndevs/1", "eth0");
	expect_file(PORT "gid_attrs/ndevs/4", "lo");
	expect_file(PORT "gids/63", "0000:0000:0000:0000:0000:0000:0000:0000");
	expect_none(PORT "gid_attrs/types/63");
	expect_none(PORT "gids/64");
	assert_int_equal(stat(path_of("dev/infiniband/uverbs0"), &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	assert_int_equal(access(path_of("dev/infiniband/uverbs0"), R_OK | W_OK),
			 0);
}

#define IWARP "class/infiniband/iw0/"

static void an_iwarp_device_has_one_gid_and_no_pkey(void **state)
{
	strcpy(devices[1].name, "iw0");
	strcpy(devices[1].netdev, "eth0");
	devices[1].kind = DEVICE_IWARP;
	devices[1].ifindex = devices[0].ifindex;
	devices[1].guid = 0x0200000000020000u;
	assert_int_equal(write_tree(2), 0);
	expect_file("class/infiniband_verbs/uverbs1/ibdev", "iw0");
	expect_file(IWARP "node_type", "4: RNIC");
	expect_file(IWARP "node_guid", "0200:0000:0002:0000");
	expect_file(IWARP "hca_type", "adverb");
	expect_file(IWARP "ports/1/link_layer", "Ethernet");
	expect_file(IWARP "ports/1/cap_mask", "0x00090000");
	expect_file(IWARP "ports/1/gids/0",
		    "0200:0000:0002:0000:0000:0000:0000:0000");
	expect_file(IWARP "ports/1/gid_attrs/types/0", "IB/RoCE v1");
	expect_file(IWARP "ports/1/gid_attrs/ndevs/0", "eth0");
	expect_none(IWARP "ports/1/gids/1");
	expect_none(IWARP "ports/1/gid_attrs/types/1");
	expect_none(IWARP "ports/1/pkeys");
	expect_file(IWARP "device/net/eth0/ifindex", "2");
	expect_file(PORT "gid_attrs/types/1", "RoCE v2");
	expect_file("class/infiniband/adv0/node_type", "1: CA");
	expect_file("class/infiniband/adv0/device/net/eth0/ifindex", "2");
	assert_int_equal(write_tree(1), 0);
	expect_none("class/infiniband/iw0");
}

#define IB "class/infiniband/advib0/"

/* Makes an InfiniBand device with two ports. */
static void make_ib(struct device *d)
{
	*d = (struct device){.name = "advib0",
			     .node_desc = "H1 HCA",
			     .kind = DEVICE_IB,
			     .guid = 0x10,
			     .system_guid = 0x20,
			     .port_count = 2};
	for (int i = 0; i < 2; i++)
		d->ports[i].subnet = (struct fabric_port){
			.guids = {0x11u + (unsigned)i},
			.gid_prefix = 0xfe80000000000000u,
			.capabilities = 0x02514868,
			.lid = (uint16_t)(6 + i),
			.sm_lid = 1,
			.pkeys = {0xffff, 0x8001},
			.lmc = 2,
			.sm_sl = 3,
			.state = (uint8_t)(4 - 2 * i),
			.phys_state = 5,
			.width = (uint8_t)(2 - i),
			.speed = (uint8_t)(4 - 3 * i),
		};
}

static void an_infiniband_device_has_the_ports_of_its_subnet(void **state)
{
	make_ib(&devices[0]);
	assert_int_equal(write_tree(1), 0);
	expect_file("class/infiniband_verbs/uverbs0/ibdev", "advib0");
	expect_file(IB "node_type", "1: CA");
	expect_file(IB "node_desc", "H1 HCA");
	expect_file(IB "node_guid", "0000:0000:0000:0010");
	expect_file(IB "sys_image_guid", "0000:0000:0000:0020");
	expect_file(IB "ports/1/link_layer", "InfiniBand");
	expect_file(IB "ports/1/state", "4: ACTIVE");
	expect_file(IB "ports/2/state", "2: INIT");
	expect_file(IB "ports/2/phys_state", "5: LinkUp");
	expect_file(IB "ports/1/rate", "40 Gb/sec (4X QDR)");
	expect_file(IB "ports/2/rate", "2.5 Gb/sec (1X SDR)");
	expect_file(IB "ports/1/lid", "0x6");
	expect_file(IB "ports/2/lid", "0x7");
	expect_file(IB "ports/2/lid_mask_count", "2");
	expect_file(IB "ports/2/sm_lid", "0x1");
	expect_file(IB "ports/2/sm_sl", "3");
	expect_file(IB "ports/2/cap_mask", "0x02514868");
	expect_file(IB "ports/2/pkeys/1", "0x8001");
	expect_file(IB "ports/2/pkeys/63", "0x0000");
	expect_file(IB "ports/2/gids/0",
		    "fe80:0000:0000:0000:0000:0000:0000:0012");
	expect_file(IB "ports/2/gid_attrs/types/0", "IB/RoCE v1");
	expect_file(IB "ports/2/gids/31",
		    "0000:0000:0000:0000:0000:0000:0000:0000");
	expect_none(IB "ports/2/gid_attrs/types/1");
	expect_none(IB "ports/2/gid_attrs/ndevs");
	expect_none(IB "ports/2/gids/32");
	expect_none(IB "ports/3");
	expect_none(IB "device/net");
	expect_none(IB "parent");
	devices[0].ports[1].subnet.state = 4;
	assert_int_equal(write_tree(1), 0);
	expect_file(IB "ports/2/state", "4: ACTIVE");
}

static void the_mask_of_cpus_has_a_bit_for_each_cpu(void **state)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF), bits = 0;
	char text[1024] = "";
	int fd;

	assert_int_equal(write_tree(1), 0);
	fd = open(path_of("class/infiniband/adv0/device/local_cpus"), O_RDONLY);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	for (const char *p = text; *p && *p != '\n'; p++)
		if (*p != ',')
			bits += __builtin_popcountl(
				strtoul((char[]){*p, 0}, NULL, 16));
	assert_int_equal(bits, cpus);
}

static void a_tree_that_is_right_is_left_alone(void **state)
{
	ino_t before;

	assert_int_equal(write_tree(2), 0);
	before = inode_of(PORT "state");
	assert_int_equal(write_tree(2), 0);
	assert_int_equal(inode_of(PORT "state"), before);
}

/* Makes a file of the tree 11 days old. */
static void make_old(const char *name)
{
	const time_t then = time(NULL) - 11L * 24 * 3600;
	const struct timespec times[2] = {{.tv_sec = then}, {.tv_sec = then}};

	assert_int_equal(utimensat(AT_FDCWD, path_of(name), times, 0), 0);
}

static bool is_old(time_t t)
{
	return t < time(NULL) - 10L * 24 * 3600;
}

static void a_tree_without_its_lock_or_its_stamp_is_a_tree(void **state)
{
	static const char *const marks[] = {".lock", ".stamp"};

	for (size_t i = 0; i < TEST_COUNT(marks); i++) {
		assert_int_equal(write_tree(2), 0);
		assert_int_equal(unlink(path_of(marks[i])), 0);
		devices[0].ports[0].is_up = i > 0;
		assert_int_equal(write_tree(2), 0);
		expect_file(PORT "state", i > 0 ? "4: ACTIVE" : "1: DOWN");
	}
}

/* systemd-tmpfiles removes files that nobody has used for ten days. */
static void a_tree_that_is_used_keeps_its_lock(void **state)
{
	struct stat st;

	assert_int_equal(write_tree(2), 0);
	make_old(".lock");
	assert_int_equal(write_tree(2), 0);
	assert_int_equal(stat(path_of(".lock"), &st), 0);
	assert_false(is_old(st.st_mtime));
}

static void a_stamp_becomes_as_old_as_its_tree(void **state)
{
	struct stat st;

	assert_int_equal(write_tree(2), 0);
	make_old(".stamp");
	assert_int_equal(write_tree(2), 0);
	assert_int_equal(stat(path_of(".stamp"), &st), 0);
	assert_true(is_old(st.st_atime));
}

static void processes_that_start_at_once_leave_one_whole_tree(void **state)
{
	ino_t before;
	int status;

	for (int i = 0; i < 20; i++)
		if (!fork())
			_exit(write_tree(2) ? 1 : 0);
	while (wait(&status) > 0)
		assert_int_equal(status, 0);
	before = inode_of(PORT "state");
	expect_file(PORT "gid_attrs/types/1", "RoCE v2");
	expect_file("class/infiniband/adv1/node_desc", "adverb");
	assert_int_equal(write_tree(2), 0);
	assert_int_equal(inode_of(PORT "state"), before);
}

static void a_port_that_changes_is_written_anew(void **state)
{
	assert_int_equal(write_tree(2), 0);
	devices[0].ports[0].is_up = false;
	memset(&devices[0].ports[0].gids[1], 0,
	       sizeof(devices[0].ports[0].gids[1]));
	assert_int_equal(write_tree(2), 0);
	expect_file(PORT "state", "1: DOWN");
	expect_file(PORT "phys_state", "3: Disabled");
	expect_file(PORT "gids/1", "0000:0000:0000:0000:0000:0000:0000:0000");
	expect_none(PORT "gid_attrs/types/1");
	expect_none(PORT "gid_attrs/ndevs/1");
}

/* An InfiniBand device has two ports, and then one port.  Then a RoCE device,
 * which has no files for libibumad, takes its place. */
static void ports_for_libibumad_come_and_go(void **state)
{
	struct device roce = devices[0];

	make_ib(&devices[0]);
	assert_int_equal(write_tree(1), 0);
	expect_file("class/infiniband_mad/abi_version", "5");
	expect_file("class/infiniband_mad/umad1/ibdev", "advib0");
	expect_file("class/infiniband_mad/umad1/port", "2");
	expect_file("class/infiniband_mad/issm0/port", "1");
	devices[0].port_count = 1;
	assert_int_equal(write_tree(1), 0);
	expect_file("class/infiniband_mad/umad0/port", "1");
	expect_none("class/infiniband_mad/umad1");
	expect_none("dev/infiniband/issm1");
	devices[0] = roce;
	assert_int_equal(write_tree(1), 0);
	expect_none("class/infiniband_mad/umad0");
	expect_none("dev/infiniband/umad0");
}

static void a_device_that_is_no_more_leaves_nothing(void **state)
{
	assert_int_equal(write_tree(2), 0);
	assert_int_equal(write_tree(1), 0);
	expect_none("class/infiniband/adv1");
	expect_none("class/infiniband_verbs/uverbs1");
	expect_none("dev/infiniband/uverbs1");
	expect_file("class/infiniband_verbs/abi_version", "6");
	expect_file("class/infiniband/adv0/node_desc", "adverb");
}

static void a_tree_that_cannot_be_written_is_an_error(void **state)
{
	int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(sysfs_write(fd, devices, 1) < 0);
	close(fd);
}

/* A program without descriptors must not be told to choose an empty folder. */
static void a_tree_that_cannot_be_listed_is_no_foreign_folder(void **state)
{
	int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err;
	struct rlimit was, none;

	assert_true(fd >= 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = (struct rlimit){0, was.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	err = sysfs_write(fd, devices, 1);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	close(fd);
	assert_int_equal(err, -EMFILE);
}

/* While the tree cannot be written it has no path. */
static void a_tree_is_written_again_after_an_error(void **state)
{
	struct rlimit was, none;

	setenv("ADVERB_DEVICES", "lo", 1);
	setenv("ADVERB_SYSFS", root, 1);
	assert_non_null(sysfs_path());
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = (struct rlimit){0, was.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	sysfs_refresh();
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_null(sysfs_path());
	sysfs_refresh();
	assert_non_null(sysfs_path());
}

static void a_folder_of_other_things_is_left_alone(void **state)
{
	assert_int_equal(mkdir(path_of("class"), 0755), 0);
	assert_int_equal(mkdir(path_of("class/infiniband"), 0755), 0);
	assert_int_equal(mkdir(path_of("class/infiniband/mine"), 0755), 0);
	assert_int_equal(write_tree(1), -ENOTEMPTY);
	assert_int_equal(access(path_of("class/infiniband/mine"), F_OK), 0);
	assert_int_equal(rmdir(path_of("class/infiniband/mine")), 0);
	assert_int_equal(rmdir(path_of("class/infiniband")), 0);
	assert_int_equal(rmdir(path_of("class")), 0);
	assert_int_equal(write_tree(1), 0);
}

/* Returns 0 if the reason why root holds no tree, with the remedy, has the text
 * `want`. */
static int look_for_failure(const char *want)
{
	char why[512] = "";
	bool is_usable;

	setenv("ADVERB_DEVICES", "lo", 1);
	setenv("ADVERB_SYSFS", root, 1);
	is_usable = sysfs_path();
	sysfs_failure(why, sizeof(why));
	if (!is_usable && strstr(why, want))
		return 0;
	fprintf(stderr, "it says: %s\n", why);
	return 1;
}

/* Calls look_for_failure in a child, since a process writes its tree only once.
 * The child may have `files` descriptors. */
static void expect_failure(const char *want, rlim_t files)
{
	struct rlimit limit;
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = files; /* valgrind refuses another hard limit */
	if (!pid)
		_exit(setrlimit(RLIMIT_NOFILE, &limit) ||
		      look_for_failure(want));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void a_failure_has_its_remedy(void **state)
{
	expect_failure("cannot be written: Too many open files; raise ulimit "
		       "-n",
		       0);
	assert_int_equal(chmod(root, 0777), 0);
	expect_failure("; set ADVERB_SYSFS to an empty or a new folder that "
		       "you alone can write",
		       64);
	assert_int_equal(chmod(root, 0700), 0);
	assert_int_equal(mkdir(path_of("mine"), 0755), 0);
	expect_failure("contains files that are not adverb's; set ADVERB_SYSFS "
		       "to an empty or a new folder that you alone can write",
		       64);
}

/* Checks that the file outside the tree, which a link in the tree names, is
 * unchanged. */
static void expect_untouched(const char *outside)
{
	int fd = open(outside, O_RDONLY | O_CLOEXEC);
	char text[8] = "";

	assert_int_equal(read(fd, text, sizeof(text)), 4);
	assert_string_equal(text, "kept");
	close(fd);
}

static void links_in_a_tree_are_not_followed(void **state)
{
	char outside[] = "/tmp/adverb-outside-XXXXXX", kept[64];
	int fd;

	assert_non_null(mkdtemp(outside));
	snprintf(kept, sizeof(kept), "%s/adv7", outside);
	fd = open(kept, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, "kept", 4), 4);
	close(fd);
	assert_int_equal(write_tree(2), 0);
	/* links in the place of a folder, of a file, and of a device that no
	 * longer exists */
	assert_int_equal(rename(path_of("class"), path_of("was")), 0);
	assert_int_equal(symlink(outside, path_of("class")), 0);
	devices[0].ports[0].is_up = false;
	assert_true(write_tree(1) < 0);
	assert_int_equal(unlink(path_of("class")), 0);
	assert_int_equal(rename(path_of("was"), path_of("class")), 0);
	assert_int_equal(unlink(path_of(PORT "state")), 0);
	assert_int_equal(symlink(kept, path_of(PORT "state")), 0);
	assert_int_equal(symlink(outside, path_of("class/infiniband/adv8")), 0);
	assert_int_equal(write_tree(1), 0);
	expect_file(PORT "state", "1: DOWN");
	expect_none("class/infiniband/adv8");
	expect_untouched(kept);
	assert_int_equal(unlink(kept), 0);
	assert_int_equal(rmdir(outside), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* first: a child must not inherit a tree that is written */
		cmocka_unit_test_setup_teardown(a_failure_has_its_remedy,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			the_tree_has_the_files_that_programs_read, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			an_iwarp_device_has_one_gid_and_no_pkey, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			an_infiniband_device_has_the_ports_of_its_subnet,
			set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			the_mask_of_cpus_has_a_bit_for_each_cpu, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			a_tree_that_is_right_is_left_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_stamp_becomes_as_old_as_its_tree, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_tree_without_its_lock_or_its_stamp_is_a_tree, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			a_tree_that_is_used_keeps_its_lock, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			processes_that_start_at_once_leave_one_whole_tree,
			set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_port_that_changes_is_written_anew, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_device_that_is_no_more_leaves_nothing, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(ports_for_libibumad_come_and_go,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_tree_that_cannot_be_written_is_an_error, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			a_tree_that_cannot_be_listed_is_no_foreign_folder,
			set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_tree_is_written_again_after_an_error, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			a_folder_of_other_things_is_left_alone, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			links_in_a_tree_are_not_followed, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
