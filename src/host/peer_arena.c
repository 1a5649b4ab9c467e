/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/peer_arena.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include "memory/arena_map.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

const char peer_arena_not_yet[] = "it is about to begin or to end";

static const char not_allowed[] =
	"the kernel does not let processes of one user access each other's "
	"memory (Yama, or a container's rights); run adverb doctor for help";

static const char other_build[] =
	"it runs another build of adverb; use the same build for both";

/* st_dev of all memfds without huge pages; an arena is such a memfd.  No user
 * can mount this device. */
static dev_t memory;

bool peer_arena_init(void)
{
	int fd = memfd_create("adverb-look", MFD_CLOEXEC);
	struct stat st;
	bool done;

	if (fd < 0)
		return false;
	done = !fstat(fd, &st);
	close(fd);
	memory = st.st_dev;
	return done;
}

static bool fits_arena(const struct hca *h, aoff at, uint64_t bytes)
{
	return at % 64 == 0 && arena_has(&h->arena, at, bytes);
}

/*
 * Is the file of an O_PATH descriptor a memfd of this user?  The check sends no
 * request to a file server (FUSE), because the server may be the peer and may
 * never answer.
 */
static bool is_memory(int path_fd)
{
	struct statx s;

	return !statx(path_fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
		      STATX_TYPE | STATX_UID, &s) &&
	       S_ISREG(s.stx_mode) && s.stx_uid == geteuid() &&
	       makedev(s.stx_dev_major, s.stx_dev_minor) == memory;
}

/* Returns why open has failed with `err` for a descriptor of another process.
 */
static const char *why_not_open(int err)
{
	switch (err) {
	case ENOENT: /* the process has died, or has closed the descriptor */
		return peer_arena_not_yet;
	case EACCES:
	case EPERM:
		return not_allowed;
	case EMFILE:
		return "this process has no descriptor left to open its arena; "
		       "raise ulimit -n";
	case ENFILE:
		return "this host has no open file left to open its arena; "
		       "raise the sysctl fs.file-max";
	case ENOMEM:
		return "the kernel has no memory left to open its arena; free "
		       "some";
	}
	return "its arena cannot be opened";
}

/*
 * Opens a memfd by a path /proc/PID/fd/NUMBER, whose number another process has
 * named.  The path may lead to any file, and opening a terminal, a FIFO or a
 * device has effects, so the function first checks that the file is a memfd.
 * Returns a descriptor, or -1 with *why.
 */
static int open_memory(const char *path, int how, const char **why)
{
	char again[32];
	int path_fd = open(path, O_PATH | O_CLOEXEC), fd = -1;

	*why = why_not_open(errno);
	if (path_fd < 0)
		return -1;
	*why = "its arena is not a memfd of this user";
	if (is_memory(path_fd)) {
		snprintf(again, sizeof(again), "/proc/self/fd/%d", path_fd);
		fd = open(again, how | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		*why = why_not_open(errno);
	}
	close(path_fd);
	return fd;
}

/* Opens a memfd of another process through /proc, which the kernel allows if
 * this process may trace that process.  Returns a descriptor, or -1 with
 * *why. */
static int open_at(const struct proto_at *at, int how, const char **why)
{
	char path[48];

	if (at->pid_space != proto_pid_space()) {
		*why = "it is in another PID namespace";
		return -1;
	}
	if (!at->pid || at->pid > INT32_MAX) {
		*why = "the broker does not know its process";
		return -1;
	}
	if (at->fd < 0) {
		*why = "it names no descriptor of its arena";
		return -1;
	}
	snprintf(path, sizeof(path), "/proc/%u/fd/%d", (unsigned)at->pid,
		 (int)at->fd);
	return open_memory(path, how, why);
}

/* Returns the size of a sealed memfd of this user, at least 4096; 0: fd is no
 * such memfd. */
static size_t sealed_bytes(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	if (seals < 0 || (seals & SEALS) != SEALS)
		return 0;
	if (fstat(fd, &st) || st.st_uid != geteuid() || st.st_size < 4096)
		return 0;
	return (size_t)st.st_size;
}

/* Maps both parts of the arena that hdr describes, the first part read-only.
 * hdr is a private copy, which the peer cannot change.  Returns NULL, or the
 * reason why the arena is not mapped. */
static const char *map_arena(struct hca *h, const struct arena_hdr *hdr, int fd,
			     int shared_fd)
{
	const struct arena_parts p = {.fd = fd,
				      .shared_fd = shared_fd,
				      .bytes = sealed_bytes(fd),
				      .shared_bytes = sealed_bytes(shared_fd),
				      .prot = PROT_READ};
	void *base;

	if (!p.bytes || !p.shared_bytes || p.bytes % 4096 ||
	    hdr->shared != p.bytes || hdr->size < p.bytes ||
	    hdr->size - p.bytes != p.shared_bytes)
		return "its arena is not sealed memory of the size it claims";
	if (hdr->size > arena_map_limit())
		return "its arena is too large for this program, which runs "
		       "under valgrind";
	base = arena_map_parts(&p);
	if (!base)
		return "this process cannot map its arena (out of memory or "
		       "address space)";
	madvise(base, hdr->size, MADV_DONTFORK);
	h->arena = (struct arena){base, hdr->size, p.bytes};
	return NULL;
}

/* Reads the header of an arena.  Returns NULL, or why this build cannot use the
 * arena. */
static const char *read_header(int fd, struct arena_hdr *hdr)
{
	ssize_t n = pread(fd, hdr, sizeof(*hdr), 0);

	if (n < 0)
		return "its arena cannot be read";
	if (n != (ssize_t)sizeof(*hdr))
		return "its arena is too short for a header";
	if (hdr->magic != ARENA_MAGIC)
		return "its memory does not begin as an arena does";
	return hdr->layout == ARENA_LAYOUT ? NULL : other_build;
}

/* Maps the arena and stores its header in *hdr.  `at` names the descriptor of
 * the first part; the header in that part names the descriptor of the second
 * part.  Returns NULL, or the reason why the arena is not mapped. */
static const char *map_at(struct hca *h, const struct proto_at *at,
			  struct arena_hdr *hdr)
{
	struct proto_at shared = *at;
	const char *why;
	int shared_fd, fd = open_at(at, O_RDONLY, &why);

	if (fd < 0)
		return why;
	why = read_header(fd, hdr);
	if (!why) {
		shared.fd = hdr->shared_fd;
		shared_fd = open_at(&shared, O_RDWR, &why);
		if (shared_fd >= 0) {
			why = map_arena(h, hdr, fd, shared_fd);
			close(shared_fd);
		}
	}
	close(fd);
	return why;
}

/* Checks that the arena has the layout of this build, and sets the pointers of
 * *h into the arena.  Returns NULL, or what is wrong with the arena. */
static const char *read_view(struct hca *h, aoff root)
{
	aoff mrs, target;

	if (!fits_arena(h, root, sizeof(struct hca_shared)))
		return other_build;
	h->shared = arena_at(&h->arena, root);
	if (h->shared->shape != HCA_SHAPE)
		return other_build;
	mrs = h->shared->mrs;
	if (!fits_arena(h, mrs, HCA_MAX_MR * sizeof(struct mr)))
		return "its arena has no room for the table of memory regions "
		       "at the place that it names";
	h->mrs = arena_at(&h->arena, mrs);
	target = h->shared->peer_area;
	if (!arena_shares(&h->arena, target, sizeof(struct hca_peer_area)))
		return "its arena has no room for the part that peers write at "
		       "the place that it names";
	h->peer_area = arena_at(&h->arena, target);
	return NULL;
}

static const char *probe_failure(void)
{
	if (errno == ESRCH) /* the process has died meanwhile */
		return peer_arena_not_yet;
	if (errno == EPERM)
		return not_allowed;
	return "its memory cannot be reached";
}

/* Checks that the kernel lets this process read and write the peer's memory,
 * and that the arena is the peer's: only the peer has the arena's nonce at the
 * address that the arena names.  Returns NULL, or which check has failed. */
static const char *probe_memory(const struct hca *h, int pid)
{
	uint64_t found, nonce = h->shared->nonce.value;
	struct iovec to = {&found, sizeof(found)};
	struct iovec from = {(void *)(uintptr_t)h->shared->nonce.va,
			     sizeof(found)};

	if (process_vm_readv(pid, &to, 1, &from, 1, 0) != sizeof(found))
		return probe_failure();
	if (found != nonce)
		return "its memory does not hold what its arena says";
	/* Also checks writing, because seccomp may allow only reading.  The
	 * value that is written is the one that is there. */
	if (process_vm_writev(pid, &to, 1, &from, 1, 0) != sizeof(found))
		return probe_failure();
	return NULL;
}

/* Checks a mapped arena.  `pid` is the pid that the kernel told the broker, or
 * the fabric, when the peer connected.  Returns NULL, or what is wrong. */
static const char *check_arena(struct hca *h, aoff root, int pid)
{
	const char *why = read_view(h, root);

	if (why)
		return why;
	if (!h->shared->pid)
		return "it does not share its memory";
	if (h->shared->pid != (uint32_t)pid)
		return "its arena says that it is another process's";
	why = probe_memory(h, pid);
	if (why)
		return why;
	return hca_is_alive(h) ? NULL : peer_arena_not_yet;
}

const char *peer_arena_map(struct hca *h, const struct proto_at *at)
{
	struct arena_hdr hdr;
	const char *why = map_at(h, at, &hdr);

	if (why)
		return why;
	why = check_arena(h, hdr.root, (int)at->pid);
	if (why)
		munmap(h->arena.base, h->arena.size);
	return why;
}
