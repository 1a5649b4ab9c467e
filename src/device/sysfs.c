/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/sysfs.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "device/device.h"
#include "device/sysfs_write.h"
#include "log/log.h"
#include "util/fd_identity.h"
#include "util/folder.h"
#include "util/lock.h"
#include "util/runtime_tree.h"

#define TURN_NS	   5000000 /* between two tries to hold the folder */
#define MOST_TURNS 200	   /* one second */

/* Protects the variables below. */
static struct lock lock;
/* A descriptor of the tree's folder with a lock by flock(2), or -1.  The broker
 * does not remove a tree that a living process has locked
 * (broker/sysfs_gc.h). */
static int hold_fd = -1;
static struct runtime_tree tree;
static int failure;  /* a positive errno: why sysfs_path returns NULL */
static bool written; /* write_first has returned */
static bool usable;  /* the tree was written without an error */

/* Do both descriptors refer to the same folder? */
static bool is_same(int a, int b)
{
	struct stat x, y;

	return !fstat(a, &x) && !fstat(b, &y) && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

/*
 * Returns a descriptor of the tree's folder, locked by a shared flock(2), or
 * -errno.  The broker may remove the folder at the same time.  Then the name
 * refers to another folder, or to none, and the loop tries again.
 */
static int hold_tree(struct runtime_tree *t)
{
	const struct timespec turn = {0, TURN_NS};

	for (int i = 0; i < MOST_TURNS; i++) {
		int fd = runtime_tree_make(t), again;
		bool is_held;

		if (fd < 0)
			return fd;
		/* An error other than EWOULDBLOCK means that the file system
		 * has no locks; the broker removes no tree there. */
		is_held = !flock(fd, LOCK_SH | LOCK_NB) || errno != EWOULDBLOCK;
		again = is_held ? runtime_tree_make(t) : -EBUSY;
		is_held = again >= 0 && is_same(fd, again);
		if (again >= 0)
			close(again);
		if (is_held)
			return fd;
		close(fd);
		nanosleep(&turn, NULL);
	}
	return -EBUSY;
}

/* Writes the tree of the devices with their present ports.  The padding of the
 * copies is 0, so that the stamp depends on the members alone. */
static int write_now(void)
{
	const struct device *devices;
	uint32_t count = device_list(&devices);
	struct device *now = calloc(count + 1, sizeof(*now));
	int err;

	if (!now)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		memcpy(&now[i], &devices[i], offsetof(struct device, ports));
		for (uint32_t n = 1; n <= now[i].port_count; n++)
			device_port(&devices[i], n, &now[i].ports[n - 1]);
	}
	err = sysfs_write(hold_fd, now, count);
	free(now);
	return err;
}

/* Prints a message if the folder has other files, or if runtime_tree_make gave
 * -EPERM, for example because others may write to the folder.  If the folder is
 * not there and cannot be made, the shim prints a message when a program that
 * `adverb run` has started looks for the tree. */
static void say_no_tree(int err)
{
	if (err == -ENOTEMPTY)
		log_say(LOG_TREE, 0,
			"%s, so nothing is written there, and programs find "
			"no devices in /sys; %s",
			tree.why, runtime_tree_remedy(-err));
	else if (err == -EPERM)
		log_say(LOG_TREE, 0, "%s: programs find no devices in /sys; %s",
			tree.why, runtime_tree_remedy(-err));
}

/* Sets tree.why, unless runtime_tree_make has set it, and `failure`. */
static void note_failure(int err)
{
	failure = -err;
	if (err == -ENOTEMPTY)
		snprintf(tree.why, sizeof(tree.why),
			 "%s contains files that are not adverb's", tree.path);
	else if (!tree.why[0])
		snprintf(tree.why, sizeof(tree.why), "%s cannot be written: %s",
			 tree.path, strerror(-err));
}

static void write_first(void)
{
	int err;

	hold_fd = fd_identity_note(hold_tree(&tree));
	err = hold_fd < 0 ? hold_fd : write_now();
	usable = !err;
	if (!err)
		return;
	note_failure(err);
	say_no_tree(err);
}

/* Takes the lock.  The thread is not cancelled until give_shielded: under the
 * lock it calls open and write, which are cancellation points. */
static void take_shielded(int *cancel) NO_LOCK_ANALYSIS
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, cancel);
	lock_take(&lock);
}

static void give_shielded(int cancel) NO_LOCK_ANALYSIS
{
	lock_give(&lock);
	pthread_setcancelstate(cancel, NULL);
}

const char *sysfs_path(void)
{
	bool good;
	int cancel;

	take_shielded(&cancel);
	if (!written)
		write_first();
	/* This store follows write_first: if another thread forks during
	 * write_first, `written` is false in the child, and the child writes
	 * the tree itself. */
	written = true;
	good = usable;
	give_shielded(cancel);
	return good ? tree.path : NULL;
}

void sysfs_failure(char *why, size_t room)
{
	int cancel;

	take_shielded(&cancel);
	snprintf(why, room, "%s; %s", tree.why, runtime_tree_remedy(failure));
	give_shielded(cancel);
}

int sysfs_devices(void)
{
	int fd = -1, cancel;

	take_shielded(&cancel);
	if (usable && fd_identity_holds(hold_fd))
		fd = folder_open(hold_fd, "class/infiniband", false);
	give_shielded(cancel);
	return fd < 0 ? -1 : fd;
}

void sysfs_refresh(void)
{
	int cancel;

	take_shielded(&cancel);
	/* Writes the tree even if the last attempt failed, for example because
	 * the disk was full: a complete tree is usable again. */
	if (fd_identity_holds(hold_fd)) {
		int err = write_now();

		usable = !err;
		tree.why[0] = '\0';
		if (err)
			note_failure(err);
	} else if (usable) {
		write_first();
	}
	give_shielded(cancel);
}

void sysfs_forked(void)
{
	lock_init(&lock);
}
