/* SPDX-License-Identifier: BSD-2-Clause */
#include "watch.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "util/monotonic.h"
#include "util/printable.h"

/* The two parts of an arena: their memfds, and the offset in the arena at which
 * the second part begins. */
struct parts {
	int fd[2];
	aoff shared;
};

/* Copies `bytes` bytes from the offset off of the arena to `to`.  False: off is
 * 0, or neither of the two memfds has all these bytes. */
static bool read_arena(const struct parts *p, aoff off, void *to, size_t bytes)
{
	bool second = off >= p->shared;

	off -= second ? p->shared : 0;
	return (off || second) &&
	       pread(p->fd[second], to, bytes, (off_t)off) == (ssize_t)bytes;
}

/* Is fd a memfd whose size cannot shrink? */
static bool is_memfd(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & F_SEAL_SHRINK);
}

/* Returns the st_dev of memfds; 0: it is unknown.  Only files in the kernel's
 * internal tmpfs have this st_dev, and to open them has no effect. */
static dev_t memory_device(void)
{
	static dev_t device;
	int fd = device ? -1 : memfd_create("adverb-look", MFD_CLOEXEC);
	struct stat s;

	if (fd >= 0 && !fstat(fd, &s))
		device = s.st_dev;
	if (fd >= 0)
		close(fd);
	return device;
}

/* Opens a memfd for reading, or returns -1.  @path: a link in /proc/PID/fd.
 * Since the caller read the link, the process may have opened another file as
 * this descriptor.  To open a terminal, a FIFO, a device or a file that a
 * process serves (FUSE) has effects, or waits.  So the function compares the
 * file's device before it opens the file. */
static int open_memfd(const char *path)
{
	int at = open(path, O_PATH | O_CLOEXEC), fd = -1;
	char again[32];
	struct statx s;

	if (at >= 0 &&
	    !statx(at, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE,
		   &s) &&
	    makedev(s.stx_dev_major, s.stx_dev_minor) == memory_device()) {
		snprintf(again, sizeof(again), "/proc/self/fd/%d", at);
		fd = open(again, O_RDONLY | O_CLOEXEC);
	}
	if (at >= 0)
		close(at);
	if (fd >= 0 && !is_memfd(fd)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* Opens for reading the descriptor `number` of process @pid, if it is a memfd
 * whose name begins with @name.  -1: it is not, or this user may not read it.
 */
static int open_memory(int pid, int number, const char *name)
{
	char path[64], target[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, number);
	n = readlink(path, target, sizeof(target) - 1);
	if (n < (ssize_t)strlen(name) ||
	    strncmp(target, name, strlen(name)) != 0)
		return -1;
	return open_memfd(path);
}

/* The user that owns the process, by /proc/PID/status. */
struct identity {
	/* The real user ID, which a set-user-ID program does not change: that
	 * program may have the descriptors of its caller's arena. */
	uid_t user;
	uint32_t number; /* in its own PID namespace; 0: unknown */
};

/* False: the process has ended. */
static bool read_identity(int pid, struct identity *id)
{
	char path[32], line[256];
	const char *last = NULL;
	bool has_user = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && !last && fgets(line, sizeof(line), f)) {
		has_user |= sscanf(line, "Uid: %u", &id->user) == 1;
		if (strncmp(line, "NSpid:", 6) == 0)
			last = strrchr(line, '\t');
	}
	if (f)
		fclose(f);
	id->number = last ? (uint32_t)strtoul(last, NULL, 10) : 0;
	return has_user;
}

/* Returns the user's entry, or NULL if no memory is left. */
static struct watch_user *find_user(struct watch *w, uid_t id)
{
	struct watch_user *grown;

	for (size_t i = 0; i < w->user_count; i++)
		if (w->users[i].id == id)
			return &w->users[i];
	grown = realloc(w->users, (w->user_count + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	w->users = grown;
	grown[w->user_count] = (struct watch_user){.id = id};
	return &grown[w->user_count++];
}

/* Returns how many of `wanted` QPs of a user may be read, and counts them. */
static uint32_t take_share(struct watch *w, struct watch_user *user,
			   uint32_t wanted)
{
	uint32_t left = WATCH_USER_QPS - user->qps;

	if (left > WATCH_ALL_QPS - w->read)
		left = WATCH_ALL_QPS - w->read;
	user->is_cut |= wanted > left;
	if (wanted > left)
		wanted = left;
	user->qps += wanted;
	w->read += wanted;
	return wanted;
}

/* Reads the name and the state of the process.  /proc/PID/stat is "pid (name) S
 * ..."; the name may contain ")". */
static void read_stat(struct watch_process *p)
{
	char path[32], text[256];
	char *left, *right;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", p->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	left = strchr(text, '(');
	right = strrchr(text, ')');
	if (!left || !right || right[1] != ' ')
		return;
	*right = '\0';
	snprintf(p->name, sizeof(p->name), "%.19s", left + 1);
	printable_make(p->name); /* the process may have set it */
	p->stopped = right[2] == 'T' || right[2] == 't';
}

/* Adds the traffic that peers counted in the arena (src/direct). */
static void add_peers(const struct parts *parts, aoff at,
		      struct qp_stats *stats)
{
	struct qp_target counted;

	if (!read_arena(parts, at, &counted, sizeof(counted)))
		return;
	stats->rx_packets +=
		(uint64_t)counted.rx_wraps << 32 | counted.rx_packets;
	stats->rx_bytes += counted.rx_bytes;
	stats->tx_bytes += counted.tx_bytes;
}

/* Reads the QP at this place of the arena.  False: it is not the QP of the row,
 * as while a QP is made or destroyed. */
static bool read_qp(const struct parts *parts, aoff at, uint32_t row,
		    struct watch_qp *to)
{
	struct qp qp;

	if (!read_arena(parts, at, &qp, sizeof(qp)) || qp.stats.row != row)
		return false;
	*to = (struct watch_qp){.qpn = qp.qpn,
				.dest_qpn = qp.attr.dest_qpn,
				.state = qp.state,
				.stats = qp.stats};
	memcpy(to->dgid, qp.attr.ah.dgid, sizeof(to->dgid));
	add_peers(parts, qp.self + qp.peer_at, &to->stats);
	return true;
}

/* Reads the table of QPs.  Returns how many rows are in use; the caller frees
 * *rows, which is NULL if no memory is left. */
static uint32_t read_rows(const struct parts *parts, const struct hca_shared *s,
			  uint32_t top, aoff **rows)
{
	uint32_t count = 0;

	*rows = calloc(top + 1, sizeof(**rows));
	if (!*rows || !read_arena(parts, s->qps, *rows, top * sizeof(**rows)))
		return 0;
	for (uint32_t i = 0; i < top; i++)
		count += (*rows)[i] != 0;
	return count;
}

/* Reads the QPs of the process, as many as the user's share permits.  Returns 0
 * or -ENOMEM. */
static int read_qps(struct watch *w, struct watch_user *user,
		    const struct parts *parts, const struct hca_shared *s,
		    struct watch_process *p)
{
	uint32_t top = s->qp_top < HCA_MAX_QP ? s->qp_top : HCA_MAX_QP;
	aoff *rows;
	uint32_t left = take_share(w, user, read_rows(parts, s, top, &rows));

	p->qps = calloc(left + 1, sizeof(*p->qps));
	for (uint32_t i = 0; rows && p->qps && left; i++) {
		if (!rows[i])
			continue;
		p->qp_count += read_qp(parts, rows[i], i, &p->qps[p->qp_count]);
		left--;
	}
	free(rows);
	return rows && p->qps ? 0 : -ENOMEM;
}

/* Sums the counters of all devices. */
static bool read_counters(const struct parts *parts, const struct hca_shared *s,
			  struct watch_process *p)
{
	struct engine_counters of[HCA_MAX_DEVICES] = {0};
	const uint64_t *from = (const uint64_t *)of;
	uint64_t *to = (uint64_t *)&p->counters;
	size_t words = sizeof(*of) / sizeof(*to);

	if (!read_arena(parts, s->counters, of, sizeof(of)))
		return false;
	for (size_t i = 0; i < HCA_MAX_DEVICES * words; i++)
		to[i % words] += from[i];
	return true;
}

/* Orders by weight, the greatest first. */
static int compare_suspects(const void *left, const void *right)
{
	const struct engine_suspect *a = left, *b = right;

	return a->weight < b->weight ? 1 : a->weight > b->weight ? -1 : 0;
}

static bool read_suspects(const struct parts *parts, const struct hca_shared *s,
			  struct watch_process *p)
{
	if (!read_arena(parts, s->suspects, p->suspects, sizeof(p->suspects)))
		return false;
	qsort(p->suspects, ENGINE_SUSPECTS, sizeof(*p->suspects),
	      compare_suspects);
	while (p->suspect_count < ENGINE_SUSPECTS &&
	       p->suspects[p->suspect_count].weight)
		p->suspect_count++;
	return true;
}

/* Is the arena the process's own?  A child of fork also has the descriptors of
 * its parent's arena.  True, too, if the process's number in its own PID
 * namespace is unknown. */
static bool is_own(const struct arena_hdr *h, const struct identity *id)
{
	return !id->number || id->number == h->process;
}

/* Reads the arena into *p.  Returns 0; -ENOENT: the adapter is not complete yet
 * or belongs to another process, or its counters cannot be read; or -ENOMEM. */
static int read_process(struct watch *w, struct watch_process *p,
			struct parts *parts)
{
	struct watch_user *user;
	struct hca_shared s;
	struct arena_hdr h;
	struct identity id;

	if (pread(parts->fd[0], &h, sizeof(h), 0) != (ssize_t)sizeof(h) ||
	    !h.root)
		return -ENOENT;
	parts->shared = h.shared;
	read_stat(p);
	p->foreign = h.magic != ARENA_MAGIC || h.layout != ARENA_LAYOUT ||
		     !read_arena(parts, h.root, &s, sizeof(s)) ||
		     s.shape != HCA_SHAPE;
	if (p->foreign)
		return 0;
	if (!read_identity(p->pid, &id) || !is_own(&h, &id))
		return -ENOENT;
	parts->fd[1] = open_memory(p->pid, h.shared_fd, "/memfd:adverb-shared");
	if (!read_counters(parts, &s, p) || !read_suspects(parts, &s, p))
		return -ENOENT;
	user = find_user(w, id.user);
	return user ? read_qps(w, user, parts, &s, p) : -ENOMEM;
}

/* Adds the process, if its descriptor `number` is its arena.  Returns 0;
 * -ENOENT: the descriptor is not an arena, or read_process returns -ENOENT; or
 * -ENOMEM. */
static int add_arena(struct watch *w, int pid, int number)
{
	struct watch_process p = {.pid = pid}, *grown = NULL;
	struct parts parts = {
		{open_memory(pid, number, "/memfd:adverb-arena"), -1}, 0};
	int err;

	if (parts.fd[0] < 0)
		return -ENOENT;
	err = read_process(w, &p, &parts);
	close(parts.fd[0]);
	if (parts.fd[1] >= 0)
		close(parts.fd[1]);
	if (!err)
		grown = realloc(w->processes, (w->count + 1) * sizeof(*grown));
	if (!grown) {
		free(p.qps);
		return err ? err : -ENOMEM;
	}
	w->processes = grown;
	w->processes[w->count++] = p;
	return 0;
}

static int add_process(struct watch *w, int pid)
{
	int err = -ENOENT;
	char folder[32];
	struct dirent *e;
	DIR *d;

	snprintf(folder, sizeof(folder), "/proc/%d/fd", pid);
	d = opendir(folder);
	while (d && err == -ENOENT && (e = readdir(d)))
		if (isdigit((unsigned char)e->d_name[0]))
			err = add_arena(w, pid, atoi(e->d_name));
	if (d)
		closedir(d);
	return err == -ENOENT ? 0 : err;
}

static uint64_t key_of(uint32_t high, uint32_t low)
{
	return (uint64_t)high << 32 | low;
}

static int compare_keys(const void *left, const void *right)
{
	const struct watch_entry *a = left, *b = right;

	return a->key < b->key ? -1 : a->key > b->key;
}

/* Returns the entry with this key, or NULL. */
static const struct watch_entry *
find_entry(const struct watch *w, const struct watch_entry *index, uint64_t key)
{
	struct watch_entry wanted = {.key = key};

	return w->qp_count ? bsearch(&wanted, index, w->qp_count,
				     sizeof(*index), compare_keys)
			   : NULL;
}

/* Makes the two indexes.  Returns 0 or -ENOMEM. */
static int index_qps(struct watch *w)
{
	size_t count = 0;

	for (size_t i = 0; i < w->count; i++)
		count += w->processes[i].qp_count;
	w->by_process = calloc(count + 1, sizeof(*w->by_process));
	w->by_peer = calloc(count + 1, sizeof(*w->by_peer));
	if (!w->by_process || !w->by_peer)
		return -ENOMEM;
	for (size_t i = 0; i < w->count; i++) {
		const struct watch_process *p = &w->processes[i];

		for (size_t j = 0; j < p->qp_count; j++) {
			const struct watch_qp *qp = &p->qps[j];

			w->by_process[w->qp_count] = (struct watch_entry){
				key_of((uint32_t)p->pid, qp->qpn), p, qp};
			w->by_peer[w->qp_count++] = (struct watch_entry){
				key_of(qp->qpn, qp->dest_qpn), p, qp};
		}
	}
	qsort(w->by_process, count, sizeof(*w->by_process), compare_keys);
	qsort(w->by_peer, count, sizeof(*w->by_peer), compare_keys);
	return 0;
}

int watch_take(struct watch *w)
{
	DIR *proc = opendir("/proc");
	/* Stays -ENOENT only if /proc shows no process, not even this one. */
	int err = proc ? -ENOENT : -errno;
	struct dirent *e;

	*w = (struct watch){0};
	w->at_ns = monotonic_ns();
	while (proc && err != -ENOMEM && (e = readdir(proc)))
		if (isdigit((unsigned char)e->d_name[0]))
			err = add_process(w, atoi(e->d_name));
	if (proc)
		closedir(proc);
	if (!err)
		err = index_qps(w);
	if (err)
		watch_free(w);
	return err;
}

void watch_free(struct watch *w)
{
	for (size_t i = 0; i < w->count; i++)
		free(w->processes[i].qps);
	free(w->processes);
	free(w->users);
	free(w->by_process);
	free(w->by_peer);
	*w = (struct watch){0};
}

const struct watch_qp *watch_qp(const struct watch *w, int pid, uint32_t qpn)
{
	const struct watch_entry *e =
		find_entry(w, w->by_process, key_of((uint32_t)pid, qpn));

	return e ? e->qp : NULL;
}

/* A part of each QPN is random, so two pairs with the same QPNs are unlikely.
 */
const struct watch_process *watch_peer(const struct watch *w,
				       const struct watch_qp *qp)
{
	const struct watch_entry *e =
		find_entry(w, w->by_peer, key_of(qp->dest_qpn, qp->qpn));

	return e ? e->process : NULL;
}
