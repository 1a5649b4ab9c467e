/* SPDX-License-Identifier: BSD-2-Clause */
/* The broker's client side; see client.h. */
#include "broker/client.h"

#include "broker/page.h"
#include "broker/proto.h"
#include "broker/steer.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define OPEN_MS	    2000
#define ASK_MS	    200
#define OPEN_TRIES  4 /* a broker may end its idle time as we come */
#define STACK_BYTES 16384

struct client_pages {
	const void *page[STEER_CLASS_MAX + 1];
	bool asked[STEER_CLASS_MAX + 1];
	uint32_t waiting; /* answers that are to come */
};

/* What start() and the two processes of its double fork share. */
struct starter {
	char path[PATH_MAX];
	int ready_fd;
	int error;
	char stack[2][STACK_BYTES] __attribute__((aligned(16)));
};

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
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
		if (!dladdr((void *)client_open, &self) || !self.dli_fname)
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
	char *argv[] = {s->path, NULL}, *envp[] = {NULL};

	if (dup2(s->ready_fd, 1) >= 0)
		execve(s->path, argv, envp);
	s->error = errno;
	_exit(127);
}

static int leave(void *arg)
{
	struct starter *s = arg;

	/* SIGCHLD of this one goes to init, which takes it in. */
	if (clone(become_broker, s->stack[1] + STACK_BYTES,
		  CLONE_VM | CLONE_VFORK | SIGCHLD, s) < 0)
		s->error = errno;
	_exit(0);
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
	pid = clone(leave, s->stack[0] + STACK_BYTES, CLONE_VM | CLONE_VFORK,
		    s);
	if (pid < 0)
		error = -errno;
	else
		while (waitpid(pid, NULL, __WCLONE) < 0 && errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return error ? error : -s->error;
}

/* Starts a broker and waits until it, or the one it lost to, is reachable. */
static int start(const char **why)
{
	struct starter *s = calloc(1, sizeof(*s));
	int pipe_fd[2] = {-1, -1}, error;
	struct pollfd p;

	if (!s || pipe2(pipe_fd, O_CLOEXEC)) {
		free(s);
		*why = "no memory or descriptor is left to start the broker";
		return -ENOMEM;
	}
	error = locate(s->path, sizeof(s->path));
	if (error) {
		*why = "the broker adverbd is not beside the library";
	} else {
		s->ready_fd = pipe_fd[1];
		error = fork_broker(s);
		if (error)
			*why = "the broker adverbd cannot be started here";
	}
	close(pipe_fd[1]);
	p = (struct pollfd){pipe_fd[0], POLLIN, 0};
	if (!error && poll(&p, 1, OPEN_MS) == 0) {
		*why = "the broker adverbd does not come up";
		error = -ETIMEDOUT;
	}
	close(pipe_fd[0]);
	free(s);
	return error;
}

static int connect_broker(struct client *c)
{
	struct timeval patience = {OPEN_MS / 1000, 0};
	struct sockaddr_un a;
	socklen_t length = proto_address(&a);

	c->unix_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (c->unix_fd < 0)
		return -errno;
	setsockopt(c->unix_fd, SOL_SOCKET, SO_SNDTIMEO, &patience,
		   sizeof(patience));
	if (!connect(c->unix_fd, (struct sockaddr *)&a, length))
		return 0;
	return errno == EAGAIN ? -ETIMEDOUT : -errno;
}

/* The descriptors of a message, unused ones -1. */
static void take_fds(struct msghdr *msg, int fds[PROTO_FDS])
{
	struct cmsghdr *h = CMSG_FIRSTHDR(msg);
	size_t bytes;

	for (int i = 0; i < PROTO_FDS; i++)
		fds[i] = -1;
	if (!h || h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
		return;
	bytes = h->cmsg_len - CMSG_LEN(0);
	if (bytes <= PROTO_FDS * sizeof(int))
		memcpy(fds, CMSG_DATA(h), bytes);
}

static void take_page(struct client *c, uint32_t class, int fd)
{
	struct client_pages *p = c->pages;

	if (!p || class > STEER_CLASS_MAX || !p->asked[class])
		return;
	p->asked[class] = false;
	p->waiting--;
	if (fd >= 0 && !p->page[class])
		p->page[class] = page_map(fd, PROT_READ);
}

/* What a message brings is kept if it was asked for. */
static void take_gifts(struct client *c, const struct proto *m, int *fds)
{
	if (m->kind == PROTO_WELCOME && c->udp_fd < 0) {
		c->udp_fd = fds[0];
		fds[0] = -1;
		if (fds[1] >= 0)
			c->page = page_map(fds[1], PROT_READ | PROT_WRITE);
	} else if (m->kind == PROTO_PAGE_IS) {
		take_page(c, m->value, fds[0]);
	}
}

/* One message, if there is one. */
static int receive(struct client *c, struct proto *m)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(PROTO_FDS * sizeof(int))];
	} control;
	struct iovec iov = {m, sizeof(*m)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(c->unix_fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	int fds[PROTO_FDS], error = 0;

	if (n <= 0)
		return n ? -errno : -EPIPE;
	take_fds(&msg, fds);
	if (n != sizeof(*m) || m->magic != PROTO_MAGIC ||
	    m->version != PROTO_VERSION)
		error = -EPROTO;
	else
		take_gifts(c, m, fds);
	for (int i = 0; i < PROTO_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return error;
}

/* Asks and waits for the answer to just that; late answers are lost. */
static int ask(struct client *c, struct proto *m, int wait_ms)
{
	uint64_t end = now_ms() + (uint64_t)wait_ms, now;
	struct pollfd p = {c->unix_fd, POLLIN, 0};
	uint32_t serial = ++c->serial;
	int error;

	m->magic = PROTO_MAGIC;
	m->version = PROTO_VERSION;
	m->serial = serial;
	if (send(c->unix_fd, m, sizeof(*m), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return -errno;
	while ((now = now_ms()) < end) {
		if (poll(&p, 1, (int)(end - now)) <= 0)
			continue;
		error = receive(c, m);
		if (error && error != -EAGAIN && error != -EINTR)
			return error;
		if (!error && m->serial == serial)
			return 0;
	}
	return -ETIMEDOUT;
}

static int greet(struct client *c, const char **why)
{
	struct proto m = {.kind = PROTO_HELLO};
	struct ucred who;
	socklen_t length = sizeof(who);
	int error = ask(c, &m, OPEN_MS);

	if (error) {
		*why = "the broker adverbd does not answer";
		return error;
	}
	if (m.kind == PROTO_REFUSED) {
		snprintf(c->why, sizeof(c->why), "%.*s",
			 (int)sizeof(c->why) - 1, m.why);
		*why = c->why;
		return m.value && m.value < 4096 ? -(int)m.value : -EPROTO;
	}
	if (m.kind != PROTO_WELCOME || c->udp_fd < 0) {
		*why = "the broker adverbd gives a senseless answer";
		return -EPROTO;
	}
	c->class = m.value;
	if (!getsockopt(c->unix_fd, SOL_SOCKET, SO_PEERCRED, &who, &length)) {
		c->broker_user = who.uid;
		c->is_foreign = who.uid && who.uid != geteuid();
	}
	return 0;
}

int client_open(struct client *c, const char **why)
{
	int error = 0;

	*why = "the broker adverbd comes and goes";
	for (int i = 0; i < OPEN_TRIES; i++) {
		*c = (struct client){.unix_fd = -1, .udp_fd = -1};
		error = connect_broker(c);
		if (!error) {
			error = greet(c, why);
			if (!error) {
				*why = "";
				return 0;
			}
		} else if (error == -ECONNREFUSED) {
			error = start(why);
			client_close(c);
			if (error)
				return error;
			error = -ECONNREFUSED;
			continue;
		} else {
			*why = "the broker adverbd cannot be reached";
		}
		client_close(c);
		/* It ended between our connect and our hello: once more. */
		if (error != -EPIPE && error != -ECONNRESET)
			return error;
	}
	return error;
}

int client_peer_state(struct client *c, uint32_t qpn)
{
	struct proto m = {.kind = PROTO_ASK, .value = qpn};
	int error = ask(c, &m, ASK_MS);

	if (error)
		return error;
	if (m.kind != PROTO_ANSWER || m.value > PROTO_PEER_UNKNOWN)
		return -EPROTO;
	return (int)m.value;
}

void *client_page(const struct client *c)
{
	return c->page;
}

const void *client_page_of(struct client *c, uint32_t class)
{
	struct proto m = {.magic = PROTO_MAGIC,
			  .version = PROTO_VERSION,
			  .kind = PROTO_PAGE,
			  .value = class};

	if (!class || class > STEER_CLASS_MAX)
		return NULL;
	if (!c->pages)
		c->pages = calloc(1, sizeof(*c->pages));
	if (!c->pages || c->pages->page[class])
		return c->pages ? c->pages->page[class] : NULL;
	if (!c->pages->asked[class]) {
		m.serial = ++c->serial;
		if (send(c->unix_fd, &m, sizeof(m),
			 MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			return NULL;
		c->pages->asked[class] = true;
		c->pages->waiting++;
	}
	while (c->pages->asked[class] && !receive(c, &m))
		;
	return c->pages->page[class];
}

static void unmap_pages(struct client *c)
{
	page_unmap(c->page);
	for (uint32_t i = 0; c->pages && i <= STEER_CLASS_MAX; i++)
		page_unmap(c->pages->page[i]);
	free(c->pages);
	c->page = NULL;
	c->pages = NULL;
}

void client_close(struct client *c)
{
	unmap_pages(c);
	if (c->udp_fd >= 0)
		close(c->udp_fd);
	if (c->unix_fd >= 0)
		close(c->unix_fd);
	c->unix_fd = c->udp_fd = -1;
}
