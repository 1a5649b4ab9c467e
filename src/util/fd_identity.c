/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/fd_identity.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK  256  /* descriptors whose marks are one allocation */
#define CHUNKS 4096 /* for 2^20 descriptors, the default of fs.nr_open */
#define STAMP  43   /* a real-time signal that libc does not use */

/*
 * The identity of the file behind one descriptor number.  The kernel reuses a
 * number once its owner has closed it, and the next owner may write the mark
 * while another thread of the previous owner still reads it.  is_known orders
 * these accesses: the previous owner's loads of dev and ino come before its
 * release store of is_known = false, and the next owner's stores to dev and ino
 * come after the acquire exchange that reads that false.  Without this order
 * the previous owner could load the next owner's dev and ino, and close the
 * next owner's file.  The release store of is_known = true comes after the
 * stores to the other members, and pairs with the acquire load in
 * fd_identity_holds: otherwise a thread could compare the file with old
 * numbers, and give up a file of adverb's.
 */
struct mark {
	_Atomic(dev_t) dev; /* st_dev of the file */
	_Atomic(ino_t) ino; /* st_ino of the file */
	/* is_known: the other members are those of the file; has_stamp: adverb
	 * has set the file's signal (F_SETSIG) to STAMP; is_shown: the program
	 * sees the descriptor (fd_identity_note_shown) */
	atomic_bool is_known, has_stamp, is_shown;
};

/* Has this thread a table of descriptors of its own?  Then the marks, which are
 * by number, are of other files. */
static _Thread_local bool is_apart __attribute__((tls_model("initial-exec")));

#define load(at)      atomic_load_explicit(at, memory_order_relaxed)
#define store(at, to) atomic_store_explicit(at, to, memory_order_relaxed)

/* A chunk is never freed once its pointer is stored here.  The store is a
 * release and the load an acquire: a thread that loads the pointer sees the
 * zeros that calloc wrote before.  Otherwise it could take old contents of the
 * memory for a mark. */
static _Atomic(struct mark *) chunks[CHUNKS];

static struct mark *chunk_of(uint32_t i, bool makes)
{
	struct mark *have =
		atomic_load_explicit(&chunks[i], memory_order_acquire);
	struct mark *made;

	if (have || !makes)
		return have;
	made = calloc(CHUNK, sizeof(*made));
	if (made && !atomic_compare_exchange_strong(&chunks[i], &have, made)) {
		free(made);
		return have; /* another thread has stored its chunk first */
	}
	return made;
}

/* Returns the place of fd's mark, in a new chunk if `makes` and there is none
 * yet.  NULL: there is no chunk, or fd is out of range. */
static struct mark *mark_of(int fd, bool makes)
{
	uint32_t at = (uint32_t)fd;
	struct mark *chunk;

	if (fd < 0 || at / CHUNK >= CHUNKS)
		return NULL;
	chunk = chunk_of(at / CHUNK, makes);
	return chunk ? &chunk[at % CHUNK] : NULL;
}

/* Has the file no inode of its own?  All files that have no type in st_mode
 * (anon_inode), for example eventfds, share one inode. */
static bool is_nameless(const struct stat *s)
{
	return !(s->st_mode & S_IFMT);
}

bool fd_identity_holds(int fd)
{
	const struct mark *m = is_apart ? NULL : mark_of(fd, false);
	struct stat s;

	if (fd < 0 || !m ||
	    !atomic_load_explicit(&m->is_known, memory_order_acquire))
		return fd >= 0;
	return !fstat(fd, &s) && s.st_dev == load(&m->dev) &&
	       s.st_ino == load(&m->ino) &&
	       (!load(&m->has_stamp) || fcntl(fd, F_GETSIG) == STAMP);
}

static bool is_marked(const struct mark *m)
{
	return m && load(&m->is_known);
}

/*
 * Must the file leave its number?  A program that has closed a standard
 * descriptor may open a file of its own at that number at any time, and libc's
 * stdio writes to the number.  A mark of another file has an owner, whose file
 * the program has closed: that owner would take this file for its own, and
 * close it.  No owner gives a shown descriptor to another owner.  So if the
 * mark is that of a shown descriptor, this file is another one, even if the
 * mark fits it: one mark may fit several files (fd_identity_note_shown).
 */
static bool must_move(int fd)
{
	const struct mark *m = mark_of(fd, false);

	if (fd <= STDERR_FILENO)
		return true;
	return is_marked(m) && (load(&m->is_shown) || !fd_identity_holds(fd));
}

/* May a file be moved to this number?  Then it has no owner. */
static bool is_fit(int fd)
{
	return fd > STDERR_FILENO && !is_marked(mark_of(fd, false));
}

/* Moves the file to a number that has no owner, if it must leave its own.
 * Returns the file's new number, or fd if the file was not moved. */
static int leave_number(int fd)
{
	int moved = fd, next, from;

	if (fd < 0 || is_apart)
		return fd;
	while (must_move(moved)) {
		for (from = moved + 1; !is_fit(from); from++)
			;
		next = fcntl(fd, F_DUPFD_CLOEXEC, from);
		if (moved != fd)
			close(moved);
		if (next < 0)
			return fd;
		moved = next;
	}
	if (moved != fd)
		close(fd);
	return moved;
}

static int remember_fd(int fd, bool is_shown)
{
	struct mark *m = is_apart ? NULL : mark_of(fd, true);
	struct stat s;

	if (!m)
		return fd;
	atomic_exchange_explicit(&m->is_known, false, memory_order_acquire);
	if (fstat(fd, &s))
		return fd;
	store(&m->dev, s.st_dev);
	store(&m->ino, s.st_ino);
	store(&m->is_shown, is_shown);
	store(&m->has_stamp,
	      !is_shown && is_nameless(&s) && !fcntl(fd, F_SETSIG, STAMP));
	atomic_store_explicit(&m->is_known, true, memory_order_release);
	return fd;
}

void fd_identity_apart(void)
{
	is_apart = true;
}

bool fd_identity_is_apart(void)
{
	return is_apart;
}

int fd_identity_note(int fd)
{
	return remember_fd(leave_number(fd), false);
}

void fd_identity_mark(int fd)
{
	remember_fd(fd, false);
}

int fd_identity_note_shown(int fd)
{
	return remember_fd(leave_number(fd), true);
}

void fd_identity_forget(int fd)
{
	struct mark *m = is_apart ? NULL : mark_of(fd, false);

	if (m)
		atomic_store_explicit(&m->is_known, false,
				      memory_order_release);
}

void fd_identity_close_if(int fd, bool holds)
{
	fd_identity_forget(fd);
	if (holds)
		close(fd);
}

void fd_identity_close(int fd)
{
	fd_identity_close_if(fd, fd_identity_holds(fd));
}
