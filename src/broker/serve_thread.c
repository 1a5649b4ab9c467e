/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/serve_thread.h"

#include "broker/server.h"
#include "util/fd_identity.h"

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
/* How many are closed one by one, if the kernel has no close_range. */
#define MOST_FDS 65536

/* The start of a thread.  The starter waits for `begun`, and frees this. */
struct thread_start {
	struct server_config config;
	int listen_fd; /* the thread's copy of the listener */
	sem_t begun;
	/* Set before `begun` is posted.  err: 0 or -errno. */
	int err;
	bool has_table; /* the thread has a table of its own */
};

/* Closes the descriptors first to last of the calling thread's table. */
static void close_range_of(unsigned first, unsigned last)
{
	long most = sysconf(_SC_OPEN_MAX);

	if (first > last || !syscall(SYS_close_range, first, last, 0))
		return;
	if (most < 0 || most > MOST_FDS)
		most = MOST_FDS;
	for (unsigned fd = first; fd <= last && fd < (unsigned long)most; fd++)
		syscall(SYS_close, fd);
}

/* Gives the calling thread a table of descriptors of its own, without the files
 * of the program.  Returns false if the kernel refuses. */
static bool take_table(int listen_fd)
{
	if (unshare(CLONE_FILES))
		return false;
	fd_identity_apart();
	close_range_of(FIRST_FD, (unsigned)listen_fd - 1);
	close_range_of((unsigned)listen_fd + 1, UINT_MAX);
	return true;
}

static struct server *begin_server(struct thread_start *start)
{
	struct server *s;

	start->has_table = take_table(start->listen_fd);
	s = server_new(start->listen_fd, &start->config);
	if (s)
		server_listen(s);
	else
		close(start->listen_fd);
	start->err = s ? 0 : -ENOMEM;
	return s;
}

static void *serve_clients(void *arg)
{
	struct thread_start *start = arg;
	struct server *s = begin_server(start);

	sem_post(&start->begun); /* from here on *start may be gone */
	while (s)
		server_turn(s);
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

static int begin_thread(int copy, bool no_bpf)
{
	struct thread_start start = {.config = {.idle_ms = INT_MAX,
						.no_bpf = no_bpf,
						.is_thread = true},
				     .listen_fd = copy};
	int err;

	sem_init(&start.begun, 0, 0);
	err = create_thread(&start);
	if (err) {
		close(copy);
	} else {
		while (sem_wait(&start.begun))
			; /* EINTR */
		err = start.err;
		if (start.has_table)
			close(copy);
	}
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
		return errno == EBADF ? -EBADF : -ENOMEM;
	/* The thread uses this function's variables until it has begun. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	err = begin_thread(copy, no_bpf);
	pthread_setcancelstate(cancel, NULL);
	return err;
}
