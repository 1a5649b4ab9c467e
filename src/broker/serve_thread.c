/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/serve_thread.h"

#include "broker/close_others.h"
#include "broker/server.h"
#include "util/fd_identity.h"
#include "util/instrument.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FIRST_FD 3 /* the first that is not a standard one */
/* linux/close_range.h, since Linux 5.9 */
#define RANGE_UNSHARE 2u

/* The start of a thread, on the stack of the starter, which waits for `begun`.
 */
struct thread_start {
	struct server_config config; /* for server_new */
	int listen_fd; /* the listener's copy, in the program's table */
	sem_t begun;   /* posted when the thread serves or has failed */
	/* 0: the thread serves; or -errno; set before `begun` is posted */
	int err;
	/* the thread has a table of its own; set before `begun` is posted */
	bool has_table;
};

/* Opens /dev/null at the numbers of the standard descriptors.  Otherwise the
 * program's standard descriptors would stay open in this table after the
 * program has closed them, and a reader of the program's output would not get
 * the end of file. */
static void drop_standard_fds(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd < FIRST_FD; fd++) {
		if (null < 0)
			close(fd);
		else if (null != fd)
			dup3(null, fd, O_CLOEXEC);
	}
	if (null >= FIRST_FD)
		close(null);
}

/* Copies a descriptor of the program's table to the calling thread's.  Returns
 * the copy, or -errno. */
static int copy_from_program(int fd)
{
	int self = (int)syscall(SYS_pidfd_open, getpid(), 0), copy;

	if (self < 0)
		return -errno;
	copy = (int)syscall(SYS_pidfd_getfd, self, fd, 0);
	if (copy < 0)
		copy = -errno;
	close(self);
	return copy;
}

/*
 * Gives the calling thread an empty table of descriptors, and opens the
 * listener there.  Linux copies at most the first 64 descriptors of the program
 * meanwhile, and closes the copies.  (If a copy is of a file of a network file
 * system, its close can wait; if a copy is of a message queue, its close ends a
 * notification of mq_notify(3).)
 * Returns the listener, or -errno: the kernel lacks or refuses one of these
 * calls, or the program runs in valgrind.  After an error the thread may have
 * the new table, without the listener (fd_identity_is_apart).
 */
static int take_empty_table(int listen_fd)
{
	int fd;

	/* valgrind keeps files of its own in the table. */
	if (instrument_by_valgrind())
		return -ENOSYS;
	/* This copy only shows whether the process may copy a descriptor in
	 * this way.  After close_range it would be too late to find out. */
	fd = copy_from_program(listen_fd);
	if (fd < 0)
		return fd;
	close(fd);
	if (syscall(SYS_close_range, 0, UINT_MAX, RANGE_UNSHARE))
		return -errno;
	fd_identity_apart();
	drop_standard_fds();
	return copy_from_program(listen_fd);
}

/* Gives the calling thread a copy of the program's table, and closes there what
 * is the program's.  Returns whether the kernel allows that. */
static bool copy_table(int listen_fd)
{
	if (unshare(CLONE_FILES))
		return false;
	fd_identity_apart();
	drop_standard_fds();
	close_others_but(listen_fd);
	return true;
}

/* Takes a table for the calling thread.  Returns the listener's descriptor in
 * the table that the thread has then, or -errno: the listener is lost. */
static int take_table(struct thread_start *start)
{
	int fd = take_empty_table(start->listen_fd);

	start->has_table = fd >= 0 || fd_identity_is_apart();
	if (start->has_table)
		return fd;
	start->has_table = copy_table(start->listen_fd);
	return start->listen_fd;
}

static struct server *begin_server(struct thread_start *start)
{
	int fd = fd_identity_holds(start->listen_fd) ? take_table(start)
						     : -EBADF;
	struct server *s = fd < 0 ? NULL : server_new(fd, &start->config);

	if (s)
		server_listen(s);
	else if (fd >= 0 && start->has_table)
		close(fd);
	start->err = s ? 0 : fd < 0 ? fd : -ENOMEM;
	return s;
}

/* Serves until the listener accepts no more.  Clients find then that the broker
 * has ended, and start another. */
static void serve_to_end(struct server *s)
{
	while (server_turn(s) || !server_listener_err(s))
		;
}

static void *serve_clients(void *arg)
{
	struct thread_start *start = arg;
	struct server *s = begin_server(start);
	bool has_table = start->has_table;

	sem_post(&start->begun); /* from here on *start may be gone */
	if (s)
		serve_to_end(s);
	/* A thread without a table of its own uses the program's.  The program
	 * may have closed or replaced the server's descriptors there, so
	 * server_free, which closes them by number, could close files of the
	 * program. */
	if (s && has_table)
		server_free(s);
	return NULL;
}

/* Creates the thread with all signals blocked.  Returns 0 or -errno. */
static int create_thread(struct thread_start *start)
{
	sigset_t all, old;
	pthread_t thread;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&thread, NULL, serve_clients, start);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		return -err;
	pthread_setname_np(thread, "adverbd");
	pthread_detach(thread);
	return 0;
}

/* Starts the thread, and waits until the thread has begun to serve or has
 * failed.  Closes the copy of the listener, unless the thread serves with it.
 */
static int begin_thread(int copy, bool no_bpf)
{
	struct thread_start start = {.config = {.idle_ms = INT_MAX,
						.no_bpf = no_bpf,
						.is_thread = true},
				     .listen_fd = copy};
	int err;

	sem_init(&start.begun, 0, 0);
	err = create_thread(&start);
	if (!err) {
		while (sem_wait(&start.begun))
			; /* EINTR */
		err = start.err;
	}
	if (err || start.has_table)
		fd_identity_close(copy);
	sem_destroy(&start.begun);
	return err;
}

int serve_thread_start(int listen_fd, bool no_bpf)
{
	int copy, cancel, err;

	if (!fd_identity_holds(listen_fd))
		return -EBADF;
	copy = fcntl(listen_fd, F_DUPFD_CLOEXEC, FIRST_FD);
	if (copy < 0)
		return -errno;
	copy = fd_identity_note(copy);
	/* The thread uses begin_thread's variable `start` until the thread has
	 * begun to serve or has failed.  So begin_thread must not be cancelled
	 * while it waits for that. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	err = begin_thread(copy, no_bpf);
	pthread_setcancelstate(cancel, NULL);
	return err;
}
