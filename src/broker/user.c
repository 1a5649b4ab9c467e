/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/user.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define OVERFLOW_UID	 65534u	     /* the kernel's default */
#define FIRST_USER_SPACE 0xeffffffdu /* the kernel's PROC_USER_INIT_INO */

/* Facts about a user namespace and a network namespace. */
struct finding {
	struct stat user, net; /* st_ino 0: the namespaces are not known */
	uid_t overflow;	       /* the overflow uid */
	bool has_all;  /* the user namespace has a number for every user */
	bool owns_net; /* the network namespace belongs to the user namespace */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct finding last_found; /* covered by `lock` */

/* The lock is held across fork(2).  So the child has a whole finding, which it
 * may need when no descriptor is left, and its thread can unlock the lock. */
static void about_to_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void has_forked(void)
{
	pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(about_to_fork, has_forked, has_forked);
}

/* Reads up to three numbers at the start of a file; false: the file cannot be
 * read, or begins with no number. */
static bool read_numbers(const char *path, unsigned long number[3])
{
	FILE *f = fopen(path, "re");
	bool good = f && fscanf(f, "%lu %lu %lu", &number[0], &number[1],
				&number[2]) >= 1;

	if (f)
		fclose(f);
	return good;
}

static bool is_one(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

/* Does this network namespace belong to the user namespace `ours`? */
static bool owns_network(const struct stat *ours)
{
	struct stat owners;
	int net = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	int user = net < 0 ? -1 : ioctl(net, NS_GET_USERNS);
	bool same = user >= 0 && !fstat(user, &owners) && is_one(&owners, ours);

	if (user >= 0)
		close(user);
	if (net >= 0)
		close(net);
	return same;
}

static void find_namespaces(struct finding *f)
{
	unsigned long overflow[3] = {OVERFLOW_UID}, map[3] = {0};

	/* stat needs no descriptor: there may be none left. */
	if (stat("/proc/self/ns/user", &f->user) ||
	    stat("/proc/self/ns/net", &f->net))
		memset(f, 0, sizeof(*f));
	f->has_all = f->user.st_ino == FIRST_USER_SPACE;
	f->overflow = OVERFLOW_UID;
	if (f->has_all)
		return;
	if (!read_numbers("/proc/sys/kernel/overflowuid", overflow))
		overflow[0] = OVERFLOW_UID;
	f->overflow = (uid_t)overflow[0];
	f->has_all =
		read_numbers("/proc/self/uid_map", map) && map[2] == UINT32_MAX;
	f->owns_net = owns_network(&f->user);
}

/* Returns the finding about the namespaces that this process is in now: a
 * program may enter others. */
static struct finding current_finding(void)
{
	struct finding now = {0};

	pthread_mutex_lock(&lock);
	if (!stat("/proc/self/ns/user", &now.user) &&
	    !stat("/proc/self/ns/net", &now.net) && last_found.user.st_ino &&
	    is_one(&now.user, &last_found.user) &&
	    is_one(&now.net, &last_found.net)) {
		now = last_found;
	} else {
		find_namespaces(&now);
		/* If no descriptor was left, has_all and owns_net are false,
		 * which may be wrong: such a finding is not kept. */
		last_found =
			now.has_all || now.owns_net ? now : (struct finding){0};
	}
	pthread_mutex_unlock(&lock);
	return now;
}

void user_prepare(void)
{
	current_finding();
}

bool user_is_nobody(uid_t user)
{
	struct finding f = current_finding();

	return user == f.overflow && !f.has_all && !f.owns_net;
}

bool user_has_proc(void)
{
	struct stat s;

	return !stat("/proc/self/ns/user", &s) &&
	       !stat("/proc/self/ns/net", &s);
}

/* Is a process in this user namespace?  The kernel shows a process's namespaces
 * to the process's user, and to users with power over that user. */
static bool is_of_our_namespace(pid_t pid)
{
	struct stat ours, its;
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	return !stat("/proc/self/ns/user", &ours) && !stat(path, &its) &&
	       is_one(&ours, &its);
}

uid_t user_of(const struct ucred *who)
{
	if (!user_is_nobody(who->uid) ||
	    (who->pid > 0 && is_of_our_namespace(who->pid)))
		return who->uid;
	return USER_NONE;
}
