/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts the broker; see start.h. */
#include "broker/start.h"

#include "broker/server.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define STACK_BYTES 16384

typedef int clone_call(int (*body)(void *), void *stack, int flags, void *arg,
		       ...);

/* What start_broker and the two processes of its double fork share. */
struct starter {
	char path[PATH_MAX];
	int listen_fd;
	bool no_bpf;
	int error;
	clone_call *clone;
	char stack[2][STACK_BYTES] __attribute__((aligned(16)));
};

/* For tests, and kernels that promise what they do not do. */
static bool no_bpf(void)
{
	const char *wish = secure_getenv("ADVERB_BPF");

	return wish && !strcmp(wish, "0");
}

/* Where adverbd is: as told, else beside the library that we are part of. */
static int locate(char *path, size_t size)
{
	const char *told = secure_getenv("ADVERB_BROKER");
	Dl_info self;
	const char *slash;

	if (told && *told) {
		snprintf(path, size, "%s", told);
	} else {
		if (!dladdr((void *)start_broker, &self) || !self.dli_fname)
			return -ENOENT;
		slash = strrchr(self.dli_fname, '/');
		snprintf(path, size, "%.*sadverbd",
			 slash ? (int)(slash - self.dli_fname) + 1 : 0,
			 self.dli_fname);
	}
	return access(path, X_OK) ? -ENOENT : 0;
}

/* In the grandchild, on the parent's memory: system calls only. */
static int become_broker(void *arg)
{
	struct starter *s = arg;
	char *argv[] = {s->path, s->no_bpf ? "--no-bpf" : NULL, NULL};
	char *envp[] = {NULL};

	if (dup2(s->listen_fd, 0) >= 0)
		execve(s->path, argv, envp);
	s->error = errno;
	_exit(127);
}

static int leave(void *arg)
{
	struct starter *s = arg;

	/* SIGCHLD of this one goes to init, which takes it in. */
	if (s->clone(become_broker, s->stack[1] + STACK_BYTES,
		     CLONE_VM | CLONE_VFORK | SIGCHLD, s) < 0)
		s->error = errno;
	_exit(0);
}

/* libc's own: that of ThreadSanitizer takes the child for a process with a
 * copy of our memory, and what it notes there is lost to us. */
static clone_call *find_clone(void)
{
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	clone_call *found = NULL;

	if (libc) {
		*(void **)&found = dlsym(libc, "clone");
		dlclose(libc);
	}
	return found ? found : clone;
}

/*
 * A double fork that the program cannot see: no SIGCHLD, nothing for its own
 * wait, and with CLONE_VFORK no copy of its page tables.
 */
static int fork_broker(struct starter *s)
{
	sigset_t all, old;
	pid_t pid;
	int error = 0;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pid = s->clone(leave, s->stack[0] + STACK_BYTES, CLONE_VM | CLONE_VFORK,
		       s);
	if (pid < 0)
		error = -errno;
	else
		while (waitpid(pid, NULL, __WCLONE) < 0 && errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return error ? error : -s->error;
}

static void *serve(void *arg)
{
	for (;;)
		server_turn(arg);
	return NULL;
}

/*
 * Where no process can be started: a thread of this one, until it ends.  Its
 * clients then start the next.
 */
static int start_thread(int listen_fd)
{
	int fd = fcntl(listen_fd, F_DUPFD_CLOEXEC, 0), error;
	struct server_config config = {.idle_ms = INT_MAX, .no_bpf = no_bpf()};
	struct server *s = fd < 0 ? NULL : server_new(fd, &config);
	sigset_t all, old;
	pthread_t thread;

	if (!s) {
		if (fd >= 0)
			close(fd);
		return -ENOMEM;
	}
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	error = pthread_create(&thread, NULL, serve, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (error) {
		server_free(s);
		return -error;
	}
	pthread_setname_np(thread, "adverbd");
	pthread_detach(thread);
	return 0;
}

static int start_process(int listen_fd)
{
	struct starter *s = calloc(1, sizeof(*s));
	int error = s ? locate(s->path, sizeof(s->path)) : -ENOMEM;

	if (!error) {
		s->listen_fd = listen_fd;
		s->no_bpf = no_bpf();
		s->clone = find_clone();
		error = fork_broker(s);
	}
	free(s);
	return error;
}

int start_broker(int listen_fd, const char **why)
{
	int error = start_process(listen_fd);

	if (error)
		error = start_thread(listen_fd);
	if (error)
		*why = "neither a process nor a thread can be started for the "
		       "broker";
	return error;
}
