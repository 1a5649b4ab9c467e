/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts the broker; see start.h. */
#include "broker/start.h"

#include "broker/procfs.h"
#include "broker/proto.h"
#include "broker/serve_thread.h"
#include "broker/server.h"
#include "broker/trust.h"
#include "util/fd_identity.h"
#include "util/process.h"
#include "util/remedy.h"
#include "util/scm_rights.h"
#include "util/shared.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define STACK_BYTES 16384
#define BACKLOG	    1024
#define FIRST_FD    3  /* the first descriptor after the standard ones */
#define MESSAGES    16 /* read in one turn */
/* The life of a broker is short below BRIEF_MS, and sudden below SUDDEN_MS.
 * After more than FREE_STARTS short lives in a row, a pause precedes the next
 * start. */
#define BRIEF_MS      1000
#define SUDDEN_MS     100
#define FREE_STARTS   3	 /* short lives without a pause */
#define PAUSE_MS      10 /* the first pause */
#define PAUSE_DOUBLES 10 /* number of pauses that double before the longest */
#define PAUSE_MAX_MS  10000 /* the longest pause */
/* After so many short lives in a row, the user is told (say_hopeless). */
#define HOPELESS 11
/*
 * The longest pause after a life that was not sudden.  Programs of other users
 * start a broker of their own after a second (OTHER_USER_MS, client.c), so this
 * pause is shorter.
 */
#define PAUSE_SHORT_MS 200

typedef int clone_call(int (*body)(void *), void *stack, int flags, void *arg,
		       ...);

/* The state that fork_broker shares with the two processes of its double fork.
 */
struct starter {
	char path[PATH_MAX]; /* the path of adverbd */
	int listen_fd; /* becomes standard input; is not a standard one yet */
	int status_fd; /* becomes standard error; is not a standard one yet */
	bool no_bpf;   /* adverbd gets --no-bpf */
	int err;       /* the errno of the second clone; 0: it has not failed */
	pid_t broker;  /* the result of the second clone */
	struct proto failed; /* the message that execve has failed */
	clone_call *clone;   /* libc's own clone (find_clone) */
	/* the stacks of the child and the grandchild */
	char stack[2][STACK_BYTES] __attribute__((aligned(16)));
};

/* The facts that this copy of the code (start.h) has learnt of the brokers that
 * it started in this process. */
static struct {
	/* the process that has learnt these facts (process_number); a fork's
	 * child has not */
	uint64_t owner;
	bool is_thread;	     /* adverbd has failed: a thread serves */
	pid_t broker;	     /* the last broker, until it is lost; 0: none */
	uint64_t started_ms; /* when that broker began to serve */
	uint64_t due_ms;     /* when the next broker may be started */
	unsigned brief;	     /* short lives in a row */
} past;

/* The descriptors of a start that is under way, each plus 1; 0: none.  A fork's
 * child closes its copies.  Its copy of the listener would keep the broker's
 * address bound after the broker has ended, and its copy of adverbd's end of
 * the status socket would hide the end of adverbd from the starter.  The
 * entries are atomic, since the thread that forks may be another one than the
 * thread that starts a broker; they order no other memory. */
enum { KEPT_LISTEN, KEPT_OURS, KEPT_THEIRS, KEPT };
static shared_u32 kept[KEPT];

static void after_fork(void)
{
	for (int i = 0; i < KEPT; i++) {
		fd_identity_close((int)shared_load(&kept[i]) - 1);
		shared_store(&kept[i], 0);
	}
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, after_fork);
}

/* Returns the descriptor's number, which may be another one now
 * (fd_identity_note). */
static int keep_fd(int what, int fd)
{
	fd = fd_identity_note(fd);
	shared_store(&kept[what], (uint32_t)(fd + 1));
	return fd;
}

static void close_kept(int what, int fd)
{
	shared_store(&kept[what], 0);
	fd_identity_close(fd);
}

/* Clears `past` in a fork's child, which has started no broker yet. */
static void renew_past(void)
{
	if (past.owner == process_number())
		return;
	memset(&past, 0, sizeof(past));
	past.owner = process_number();
}

/* Returns the pause, in milliseconds, after a life of life_ms milliseconds, the
 * last of past.brief short lives in a row. */
static uint64_t pause_after(uint64_t life_ms)
{
	uint64_t most = life_ms < SUDDEN_MS ? PAUSE_MAX_MS : PAUSE_SHORT_MS;
	uint64_t pause = PAUSE_MAX_MS;

	if (past.brief <= FREE_STARTS)
		return 0;
	if (past.brief - FREE_STARTS <= PAUSE_DOUBLES)
		pause = (uint64_t)PAUSE_MS << (past.brief - FREE_STARTS - 1);
	return pause < most ? pause : most;
}

void start_lost(pid_t broker, uint64_t now_ms)
{
	uint64_t life_ms = now_ms - past.started_ms;

	renew_past();
	/* The caller names the process that called listen last: the broker, or
	 * still this process. */
	if (!past.broker || (broker != past.broker && broker != getpid()))
		return;
	past.brief = life_ms < BRIEF_MS ? past.brief + 1 : 0;
	past.broker = 0;
	past.due_ms = now_ms + pause_after(life_ms);
}

/* Does ADVERB_BPF=0 turn steering off?  The variable is for tests, and for
 * kernels that accept the steering program and do not run it. */
static bool no_bpf(void)
{
	const char *value = secure_getenv("ADVERB_BPF");

	return value && !strcmp(value, "0");
}

static bool has_named_path(void)
{
	const char *path = secure_getenv("ADVERB_BROKER");

	return path && *path;
}

static const char *given_folder;

void start_folder(const char *folder)
{
	given_folder = folder;
}

/* Writes the path of adverbd: the value of ADVERB_BROKER, or adverbd in the
 * folder of start_folder, or adverbd beside the library that this code is part
 * of. */
static void locate_program(char *path, size_t size)
{
	const char *slash = NULL;
	Dl_info self;

	if (has_named_path() || given_folder) {
		snprintf(path, size, "%s%s",
			 has_named_path() ? secure_getenv("ADVERB_BROKER")
					  : given_folder,
			 has_named_path() ? "" : "/adverbd");
		return;
	}
	if (dladdr((void *)start_begin, &self) && self.dli_fname)
		slash = strrchr(self.dli_fname, '/');
	snprintf(path, size, "%.*sadverbd",
		 slash ? (int)(slash - self.dli_fname) + 1 : 0,
		 slash ? self.dli_fname : "");
}

/* Runs in the grandchild, which shares the program's memory: makes only system
 * calls. */
static int become_broker(void *arg)
{
	static char started[] = "--started", relays[] = "--no-bpf";
	struct starter *s = arg;
	char *argv[] = {s->path, started, s->no_bpf ? relays : NULL, NULL};
	char *envp[] = {NULL};

	if (dup2(s->listen_fd, 0) >= 0 && dup2(s->status_fd, 2) >= 0)
		execve(s->path, argv, envp);
	s->failed.value = (uint32_t)errno;
	send(s->status_fd, &s->failed, sizeof(s->failed),
	     MSG_DONTWAIT | MSG_NOSIGNAL);
	_exit(127);
}

static int fork_grandchild(void *arg)
{
	struct starter *s = arg;

	/* Once this process has ended, init or a subreaper above the program is
	 * the grandchild's parent and gets its SIGCHLD (adopts_orphans). */
	s->broker = s->clone(become_broker, s->stack[1] + STACK_BYTES,
			     CLONE_VM | CLONE_VFORK | SIGCHLD, s);
	if (s->broker < 0)
		s->err = errno;
	_exit(s->broker < 0);
}

/* Finds libc's own clone: ThreadSanitizer's clone expects a child with a copy
 * of the memory.  A child that shares the memory would make the records of
 * ThreadSanitizer wrong. */
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
 * Forks twice in such a way that the program cannot see it: the program gets no
 * SIGCHLD, its own wait finds no child, and CLONE_VM copies no page tables.
 * Returns 0 or the -errno of clone; later errors come by the status socket.
 */
static int fork_broker(struct starter *s)
{
	sigset_t all, old;
	int status = 0, err = 0;
	pid_t pid;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pid = s->clone(fork_grandchild, s->stack[0] + STACK_BYTES,
		       CLONE_VM | CLONE_VFORK, s);
	if (pid < 0)
		err = -errno;
	else
		while (waitpid(pid, &status, __WCLONE) < 0 && errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	/* Under valgrind the child has its own memory, and s->err stays 0. */
	if (!err && WIFEXITED(status) && WEXITSTATUS(status))
		err = s->err ? -s->err : -EAGAIN;
	return err;
}

void start_drop(struct start *s)
{
	if (s->owner && s->owner == process_number()) {
		close_kept(KEPT_OURS, s->status_fd);
		close_kept(KEPT_LISTEN, s->listen_fd);
	}
	s->owner = 0;
}

static const char *remedy_text(void)
{
	return has_named_path() ? "mend what ADVERB_BROKER names"
				: "mend or reinstall adverb";
}

/*
 * Makes a thread of this process serve in place of adverbd, and says why in
 * s->sentence.  If the thread serves, this process does not run adverbd again,
 * since adverbd would probably fail again.  Returns what start_turn returns.
 */
static int serve_instead(struct start *s, const char *what, const char *reason,
			 const char *cure)
{
	int err = serve_thread_start(s->listen_fd, no_bpf());

	if (err)
		snprintf(s->sentence, sizeof(s->sentence),
			 "%s: %s; nor can a thread of this program serve "
			 "instead (%s); %s",
			 what, reason, strerror(-err), remedy_of(-err, cure));
	else
		snprintf(s->sentence, sizeof(s->sentence),
			 "%s: %s; a thread of this program serves instead "
			 "until it ends; %s",
			 what, reason, cure);
	past.is_thread = !err;
	start_drop(s);
	/* to the caller, -EAGAIN means that another process starts a broker */
	return err == -EAGAIN ? -ENOMEM : err;
}

/* Makes a thread of this process serve where adverbd is not to be run.  Returns
 * 0; -EBADF: the program has closed or replaced the listener; or another
 * -errno, with the reason in s->sentence. */
static int serve_here(struct start *s)
{
	int err = serve_thread_start(s->listen_fd, no_bpf());

	if (err && err != -EBADF)
		snprintf(s->sentence, sizeof(s->sentence),
			 "no thread of this program can serve as the broker "
			 "adverbd: %s; %s",
			 strerror(-err),
			 remedy_of(-err, "run adverb doctor to see what this "
					 "machine allows"));
	return err;
}

static int give_up(struct start *s, const char *reason, const char *cure)
{
	char what[REASON_PATH + 40];

	snprintf(what, sizeof(what), "the broker %s could not be run", s->path);
	return serve_instead(s, what, reason, cure);
}

static void note_words(struct start *s, const char *text, size_t bytes)
{
	size_t excess;

	if (bytes > sizeof(s->words)) {
		text += bytes - sizeof(s->words);
		bytes = sizeof(s->words);
	}
	if (s->words_bytes + bytes > sizeof(s->words)) {
		excess = s->words_bytes + bytes - sizeof(s->words);
		memmove(s->words, s->words + excess, s->words_bytes - excess);
		s->words_bytes -= (uint32_t)excess;
	}
	memcpy(s->words + s->words_bytes, text, bytes);
	s->words_bytes += (uint32_t)bytes;
}

/* Takes an answer of adverbd, or of the process that could not become adverbd.
 * Returns what start_turn returns. */
static int take_answer(struct start *s, const struct proto *m, uint64_t now_ms)
{
	char path[PATH_MAX], reason[REASON_TEXT];

	if (m->version != PROTO_VERSION) {
		reason_version("it", m, reason, sizeof(reason));
		return give_up(s, reason, "use the one of this version");
	}
	if (m->kind != PROTO_WHO_IS) {
		locate_program(path, sizeof(path));
		reason_exec(path, (int)m->value, reason);
		return give_up(s, reason, remedy_text());
	}
	past.broker = s->broker;
	past.started_ms = now_ms;
	start_drop(s);
	return 0;
}

/* Is adverbd's end of the status socket closed?  recv does not tell, since it
 * returns 0 for an empty message, too. */
static bool has_ended(const struct start *s)
{
	struct pollfd p = {s->status_fd, POLLIN, 0};

	return poll(&p, 1, 0) == 1 && p.revents & (POLLHUP | POLLERR);
}

/* Takes a message of the status socket.  Returns what start_turn returns, or
 * -EAGAIN: there is no message; -EINPROGRESS: it was no answer. */
static int read_status(struct start *s, uint64_t now_ms)
{
	union {
		struct proto proto;
		char text[START_WORDS];
	} m = {0};
	char path[PATH_MAX], reason[REASON_TEXT];
	ssize_t n = recv(s->status_fd, &m, sizeof(m), MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return -EAGAIN;
	/* ECONNRESET: adverbd's end is closed, and its last message comes next
	 */
	if (n < 0 && (errno == EINTR || errno == ECONNRESET))
		return -EINPROGRESS;
	if (n >= PROTO_HEAD && m.proto.magic == PROTO_MAGIC)
		return take_answer(s, &m.proto, now_ms);
	if (n > 0) {
		note_words(s, m.text, (size_t)n);
		return -EINPROGRESS;
	}
	if (!n && !has_ended(s))
		return -EAGAIN;
	locate_program(path, sizeof(path));
	reason_words(path, s->words, s->words_bytes, reason);
	return give_up(s, reason, remedy_text());
}

/* Ends the wait for an adverbd that lives and has not served in time. */
static int withdraw_start(struct start *s, uint64_t now_ms)
{
	char what[REASON_PATH + 80], reason[REASON_TEXT];
	struct procfs_stat p;
	bool is_stopped;
	int err;

	/*
	 * A WHO_IS that was sent before this shutdown is there to be read; each
	 * later send fails with EPIPE.
	 */
	shutdown(s->status_fd, SHUT_RD);
	do
		err = read_status(s, now_ms);
	while (err == -EINPROGRESS);
	if (err != -EAGAIN)
		return err;
	is_stopped = procfs_look(s->broker, &p) &&
		     (p.state == 'T' || p.state == 't');
	snprintf(what, sizeof(what), "the broker %s (process %d%s)", s->path,
		 (int)s->broker, is_stopped ? ", stopped" : "");
	snprintf(reason, sizeof(reason), "it has not served for %u s",
		 (unsigned)((now_ms - s->began_ms) / 1000));
	return serve_instead(s, what, reason,
			     "see what that process waits for");
}

/*
 * Abandons the start, since the program has closed the status socket or put a
 * file of its own there.  The adverbd that was started cannot say WHO_IS any
 * more, and ends; the next start_begin starts another adverbd.
 */
static int abandon_start(struct start *s)
{
	snprintf(s->sentence, sizeof(s->sentence),
		 "this program closed or replaced descriptors of adverb while "
		 "the broker %s was starting; close descriptors before the "
		 "devices are opened",
		 s->path);
	start_drop(s);
	return -EPIPE;
}

int start_turn(struct start *s, uint64_t now_ms)
{
	int err = -EINPROGRESS;

	s->sentence[0] = '\0';
	if (!fd_identity_holds(s->status_fd))
		return abandon_start(s);
	for (int i = 0; i < MESSAGES && err == -EINPROGRESS; i++)
		err = read_status(s, now_ms);
	if ((err == -EAGAIN || err == -EINPROGRESS) && now_ms >= s->limit_ms)
		err = withdraw_start(s, now_ms);
	return err == -EAGAIN ? -EINPROGRESS : err;
}

/* Moves fd away from the standard numbers, which adverbd needs.  Takes
 * ownership of fd, which may be -1 with errno set.  Returns the descriptor
 * under its new number, or -1 with errno set. */
static int move_up(int fd)
{
	int moved, err;

	if (fd < 0 || fd >= FIRST_FD)
		return fd;
	moved = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FD);
	err = errno;
	close(fd);
	errno = err;
	return moved;
}

/* Binds the broker's address, which makes this process the starter.  Returns
 * the listener or -errno; -EAGAIN: another process has bound the address. */
static int open_listener(void)
{
	struct sockaddr_un a;
	socklen_t length = proto_address(&a);
	int fd = move_up(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
	int err;

	if (fd < 0)
		return -errno;
	fd = keep_fd(KEPT_LISTEN, fd);
	scm_rights_let_bring(fd, false);
	if (!bind(fd, (struct sockaddr *)&a, length) && !listen(fd, BACKLOG))
		return fd;
	err = errno == EADDRINUSE ? EAGAIN : errno;
	close_kept(KEPT_LISTEN, fd);
	return -err;
}

/* Runs adverbd with the listener and `theirs`, adverbd's end of the status
 * socket.  Returns 0 or -errno; *is_clone: the error is one of clone. */
static int run_process(struct start *s, int theirs, bool *is_clone)
{
	struct starter *starter = calloc(1, sizeof(*starter));
	struct proto who = {.kind = PROTO_WHO};
	int err = starter ? 0 : -ENOMEM;

	proto_introduce(&who, 0);
	*is_clone = false;
	if (!err)
		err = proto_send(s->status_fd, &who, NULL);
	if (!err) {
		locate_program(starter->path, sizeof(starter->path));
		reason_path(starter->path, s->path);
		starter->failed.kind = PROTO_REFUSED;
		proto_introduce(&starter->failed, 0);
		starter->listen_fd = s->listen_fd;
		starter->status_fd = theirs;
		starter->no_bpf = no_bpf();
		starter->clone = find_clone();
		*is_clone = true;
		err = fork_broker(starter);
		s->broker = starter->broker > 0 ? starter->broker : 0;
	}
	free(starter);
	return err;
}

static int start_process(struct start *s, uint64_t now_ms)
{
	int pair[2], err;
	bool is_clone;
	char reason[REASON_TEXT];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	s->status_fd = keep_fd(KEPT_OURS, pair[0]);
	pair[1] = move_up(pair[1]);
	if (pair[1] < 0)
		return -errno;
	pair[1] = keep_fd(KEPT_THEIRS, pair[1]);
	err = run_process(s, pair[1], &is_clone);
	close_kept(KEPT_THEIRS, pair[1]);
	if (!err)
		return start_turn(s, now_ms);
	if (!is_clone)
		return err;
	reason_clone(-err, reason);
	return serve_instead(
		s, "no process can be started for the broker adverbd", reason,
		err == -EAGAIN ? "raise that limit"
			       : "first start the program that "
				 "will run longest");
}

/* Says that the last brokers, past.brief of them, had short lives. */
static int say_hopeless(struct start *s)
{
	char path[PATH_MAX];

	locate_program(path, sizeof(path));
	reason_path(path, s->path);
	snprintf(s->sentence, sizeof(s->sentence),
		 "the broker %s has ended %u times in a row within a second of "
		 "its start: see what ends it; this program waits up to %d s "
		 "before each further start",
		 s->path, past.brief, PAUSE_MAX_MS / 1000);
	return -ENOTRECOVERABLE;
}

/* Says why a privileged program starts no broker: its caller could disturb that
 * broker, which all programs would trust. */
static int say_privileged(struct start *s)
{
	snprintf(s->sentence, sizeof(s->sentence),
		 "there is no broker adverbd, and this program starts none, "
		 "since it has rights that its caller has not (set-user-ID, "
		 "file capabilities): have root set up the system's broker "
		 "(adverb install --service)");
	return -EPERM;
}

/* Is this process a subreaper (PR_SET_CHILD_SUBREAPER)?  A subreaper would
 * become the parent of adverbd: the program's wait(2) would return a child that
 * the program does not know, or would wait for adverbd's end. */
static bool adopts_orphans(void)
{
	int adopts = 0;

	return !prctl(PR_GET_CHILD_SUBREAPER, &adopts) && adopts;
}

int start_begin(struct start *s, uint64_t now_ms, uint64_t patience_ms)
{
	bool serves;
	int fd, err;

	renew_past();
	*s = (struct start){.status_fd = -1, .listen_fd = -1};
	if (trust_is_privileged())
		return say_privileged(s);
	if (now_ms < past.due_ms)
		return past.brief >= HOPELESS ? say_hopeless(s) : -EAGAIN;
	fd = open_listener();
	if (fd < 0)
		return fd;
	s->listen_fd = fd;
	s->owner = process_number();
	s->began_ms = now_ms;
	/* Other processes wait for patience_ms, which is longer. */
	s->limit_ms = now_ms + patience_ms / 4 * 3;
	/* If past.is_thread, a thread of this process serves another network
	 * namespace, or has stopped serving (serve_thread.h).  Then another
	 * thread serves this namespace. */
	serves = past.is_thread || adopts_orphans();
	err = serves ? serve_here(s) : start_process(s, now_ms);
	if (serves || (err && err != -EINPROGRESS))
		start_drop(s);
	return err == -EAGAIN ? -ENOMEM : err;
}
