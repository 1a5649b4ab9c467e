/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * daemoncheck: a program closes all descriptors but the first three while a
 * device is open, as daemons do, in the process that opened the device or in a
 * forked child.  From then on the program may reuse the numbers of the
 * descriptors: the library must not close, read or write a file or socket that
 * the program opens under such a number.  A program that has closed some of the
 * first three descriptors before it opens the device may reuse their numbers,
 * too.
 *
 * Each case is a process of its own, which opens a device, an event channel and
 * a completion channel.  In most cases the process then opens MOST files of 4
 * bytes, which get the numbers of the descriptors that it has closed.
 */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	FIRST = 3,	 /* the first descriptor that a daemon closes */
	MOST = 48,	 /* files or sockets that the program opens */
	LAST = 512,	 /* the descriptor after the last one that is closed */
	SETTLE_MS = 300, /* time in which a thread of the library would act */
	HANG_S = 300	 /* SIGALRM ends a process that runs longer */
};

/* The objects of a case. */
struct held {
	struct ibv_context *context;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	/*
	 * mr: the region of `shared`, which other processes may map
	 * dm_mr: the region of device memory
	 * adverb keeps a descriptor for each of the two.
	 */
	struct ibv_mr *mr, *dm_mr;
	struct ibv_dm *dm;
	void *shared;
};

enum { SHARED_BYTES = 65536 };

#define OPENING	   "opening the objects"
#define DESTROYING "destroying the objects"

static struct stat mine[MOST];
static int fds[MOST];

static struct ibv_context *open_first(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context =
		list && *list ? ibv_open_device(*list) : NULL;

	ibv_free_device_list(list);
	return context;
}

/* Maps a memfd, and closes its descriptor.  Returns the memory, or MAP_FAILED.
 */
static void *map_shared(void)
{
	int fd = memfd_create("daemoncheck", MFD_CLOEXEC);
	void *at = MAP_FAILED;

	if (fd >= 0 && !ftruncate(fd, SHARED_BYTES))
		at = mmap(NULL, SHARED_BYTES, PROT_READ | PROT_WRITE,
			  MAP_SHARED, fd, 0);
	close(fd);
	return at;
}

static bool take_memory(struct held *h)
{
	struct ibv_alloc_dm_attr attr = {.length = 4096};

	h->pd = ibv_alloc_pd(h->context);
	h->shared = map_shared();
	if (!h->pd || h->shared == MAP_FAILED)
		return false;
	h->mr = ibv_reg_mr(h->pd, h->shared, SHARED_BYTES,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	h->dm = ibv_alloc_dm(h->context, &attr);
	h->dm_mr = h->dm ? ibv_reg_dm_mr(h->pd, h->dm, 0, attr.length,
					 IBV_ACCESS_ZERO_BASED |
						 IBV_ACCESS_LOCAL_WRITE)
			 : NULL;
	return h->mr && h->dm_mr;
}

static bool give_memory(struct held *h)
{
	bool good = !ibv_dereg_mr(h->mr);

	good &= !ibv_dereg_mr(h->dm_mr);
	good &= !ibv_free_dm(h->dm);
	good &= !ibv_dealloc_pd(h->pd);
	return !munmap(h->shared, SHARED_BYTES) && good;
}

/* Opens all objects.  Returns false if one of them cannot be opened. */
static bool take_all(struct held *h)
{
	struct sockaddr_storage any = {.ss_family = AF_INET};

	h->context = open_first();
	h->channel = h->context ? ibv_create_comp_channel(h->context) : NULL;
	h->cq = h->channel ? ibv_create_cq(h->context, 16, NULL, h->channel, 0)
			   : NULL;
	h->events = rdma_create_event_channel();
	return h->cq && h->events && take_memory(h) &&
	       !rdma_create_id(h->events, &h->id, NULL, RDMA_PS_TCP) &&
	       !rdma_bind_addr(h->id, (struct sockaddr *)(void *)&any);
}

/* Destroys all objects.  Returns false if a call fails. */
static bool give_all(struct held *h)
{
	bool good = !rdma_destroy_id(h->id);

	good &= give_memory(h);
	rdma_destroy_event_channel(h->events);
	good &= !ibv_destroy_cq(h->cq);
	good &= !ibv_destroy_comp_channel(h->channel);
	return !ibv_close_device(h->context) && good;
}

/* Prints that a step of the case has failed, and the error of errno, on stderr.
 * Returns the exit status of the case. */
static int tell_failure(const char *step)
{
	fprintf(stderr, "process %d: %s: %s\n", (int)getpid(), step,
		strerror(errno));
	return 1;
}

/* Forks.  SIGALRM ends a child that hangs: a child does not inherit the alarm
 * of its parent, and would otherwise outlive a parent that the alarm ends.
 * Ends this process if fork fails, so that no caller passes the PID -1 to kill.
 */
static pid_t fork_with_alarm(void)
{
	pid_t pid = fork();

	if (pid < 0)
		_exit(tell_failure("fork"));
	if (!pid)
		alarm(HANG_S);
	return pid;
}

/* Waits until the child has ended.  Returns 0 if it has ended with status 0;
 * otherwise prints how it has ended, and returns 1. */
static int await_child(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		return tell_failure("waitpid");
	if (WIFSIGNALED(status))
		fprintf(stderr, "signal %d ended the child %d\n",
			WTERMSIG(status), (int)pid);
	else if (status)
		fprintf(stderr, "the child %d ended with status %d\n", (int)pid,
			WEXITSTATUS(status));
	return status != 0;
}

static void open_file(int i)
{
	char name[64];

	snprintf(name, sizeof(name), "/tmp/adverb-daemon-%d-%d", (int)getpid(),
		 i);
	fds[i] = open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
	unlink(name);
	if (fds[i] < 0 || write(fds[i], "mine", 4) != 4 ||
	    lseek(fds[i], 0, SEEK_SET) || fstat(fds[i], &mine[i]))
		_exit(tell_failure(name));
}

/* Closes the descriptors from FIRST on, and opens files under their numbers. */
static void become_daemon(void)
{
	for (int fd = FIRST; fd < LAST; fd++)
		close(fd);
	for (int i = 0; i < MOST; i++)
		open_file(i);
}

/* Returns how many of the program's files were closed, read or written. */
static int files_changed(void)
{
	int changed = 0;

	for (int i = 0; i < MOST; i++) {
		struct stat s = {0};
		char text[8] = "";
		bool good = !fstat(fds[i], &s) && s.st_ino == mine[i].st_ino &&
			    s.st_dev == mine[i].st_dev && s.st_size == 4 &&
			    lseek(fds[i], 0, SEEK_CUR) == 0 &&
			    pread(fds[i], text, sizeof(text), 0) == 4 &&
			    !memcmp(text, "mine", 4);

		if (!good)
			fprintf(stderr,
				"the program's file %d was closed, read or "
				"written\n",
				fds[i]);
		changed += !good;
	}
	return changed;
}

/* Runs the case in a child.  Returns the child's exit status, which is 0 if the
 * case passed; the negative number of the signal that killed the child; or -1
 * if waitpid fails. */
static int status_of(int (*body)(void))
{
	pid_t pid = fork_with_alarm();
	int status;

	if (!pid)
		_exit(body());
	if (waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* Opens the objects again, and destroys them after a while.  Returns 0, or 1 if
 * a call fails or a file of the program has changed. */
static int work_anew(void)
{
	struct held h;

	if (!take_all(&h))
		return tell_failure("opening the objects anew");
	usleep(SETTLE_MS * 1000);
	if (files_changed())
		return 1;
	return give_all(&h) ? 0 : tell_failure("destroying the new objects");
}

static int child_opens_anew(void)
{
	struct held h;
	pid_t pid;

	if (!take_all(&h))
		return tell_failure(OPENING);
	pid = fork_with_alarm();
	if (!pid) {
		setsid();
		become_daemon();
		_exit(work_anew() || files_changed());
	}
	if (await_child(pid))
		return 1;
	return give_all(&h) ? 0 : tell_failure(DESTROYING);
}

/* The child destroys the objects inherited from its parent. */
static int child_destroys_objects(void)
{
	struct held h;
	pid_t pid;

	if (!take_all(&h))
		return tell_failure(OPENING);
	pid = fork_with_alarm();
	if (!pid) {
		become_daemon();
		give_all(&h); /* may fail, but must change no file */
		_exit(files_changed() != 0);
	}
	if (await_child(pid))
		return 1;
	return give_all(&h) ? 0 : tell_failure(DESTROYING);
}

static int process_destroys_objects(void)
{
	struct held h;

	if (!take_all(&h))
		return tell_failure(OPENING);
	become_daemon();
	usleep(SETTLE_MS * 1000);
	give_all(&h);
	return files_changed() != 0;
}

static int process_opens_anew(void)
{
	return process_destroys_objects() || work_anew() || files_changed();
}

/* The library connects to the broker again, and gets the id's port back. */
static int process_keeps_its_port(void)
{
	struct held h;
	uint16_t port;

	if (!take_all(&h))
		return tell_failure(OPENING);
	port = rdma_get_src_port(h.id);
	become_daemon();
	if (rdma_listen(h.id, 1))
		return tell_failure("rdma_listen");
	if (!port || rdma_get_src_port(h.id) != port)
		return tell_failure("keeping the port");
	give_all(&h);
	return files_changed() != 0;
}

/* The program opens sockets under the numbers of adverb's sockets.  The library
 * must not receive the data that comes to the program's sockets. */
static int process_opens_sockets(void)
{
	int pair[MOST][2], lost = 0;
	struct held h;

	if (!take_all(&h))
		return tell_failure(OPENING);
	for (int fd = FIRST; fd < LAST; fd++)
		close(fd);
	for (int i = 0; i < MOST; i++)
		if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair[i]))
			return tell_failure("socketpair");
	usleep(SETTLE_MS * 1000);
	for (int i = 0; i < MOST; i++)
		if (send(pair[i][0], "mine", 4, 0) != 4)
			return tell_failure("a send to the program's socket");
	for (int k = 0; k < 1000; k++) {
		struct ibv_wc wc;

		ibv_poll_cq(h.cq, 1, &wc);
	}
	usleep(SETTLE_MS * 1000);
	for (int i = 0; i < MOST; i++) {
		char text[8];

		lost += recv(pair[i][1], text, sizeof(text), MSG_DONTWAIT) != 4;
		lost += recv(pair[i][0], text, sizeof(text), MSG_DONTWAIT) > 0;
	}
	if (lost)
		fprintf(stderr, "%d datagrams are lost or go the wrong way\n",
			lost);
	return lost != 0;
}

/* Opens listener number i, connects to it, and sends 4 bytes.  Returns the
 * listener, or -1 if a call fails. */
static int listen_and_connect(int i)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
	int caller = fcntl(socket(AF_UNIX, SOCK_SEQPACKET, 0), F_DUPFD, LAST);

	/* an abstract address */
	snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1, "daemoncheck-%d-%d",
		 (int)getpid(), i);
	if (bind(fd, (struct sockaddr *)(void *)&at, sizeof(at)) ||
	    listen(fd, 4) ||
	    connect(caller, (struct sockaddr *)(void *)&at, sizeof(at)) ||
	    send(caller, "mine", 4, 0) != 4)
		return -1;
	return fd;
}

/* The program opens listeners under the numbers of adverb's descriptors.  The
 * library must not accept the connections there, nor may a thread that serves
 * in place of adverbd. */
static int process_opens_listeners(void)
{
	int listeners[MOST], lost = 0;
	struct held h;

	if (!take_all(&h))
		return tell_failure(OPENING);
	for (int fd = FIRST; fd < LAST; fd++)
		close(fd);
	for (int i = 0; i < MOST; i++) {
		listeners[i] = listen_and_connect(i);
		if (listeners[i] < 0)
			return tell_failure("a listener or its caller");
	}
	usleep(SETTLE_MS * 1000);
	for (int i = 0; i < MOST; i++) {
		int fd = accept(listeners[i], NULL, NULL);
		char text[8];

		lost += fd < 0 ||
			recv(fd, text, sizeof(text), MSG_DONTWAIT) != 4;
	}
	if (lost)
		fprintf(stderr, "%d listeners have lost their caller\n", lost);
	return lost != 0;
}

/* Returns the type of the next event, or -1 if none comes within `ms`. */
static int async_event(struct ibv_context *context, int ms)
{
	struct pollfd p = {context->async_fd, POLLIN, 0};
	struct ibv_async_event event;

	if (poll(&p, 1, ms) != 1 || ibv_get_async_event(context, &event))
		return -1;
	ibv_ack_async_event(&event);
	return (int)event.event_type;
}

/* A program keeps the descriptors that the API has returned, closes all other
 * descriptors, and polls: it gets one IBV_EVENT_DEVICE_FATAL. */
static int process_gets_fatal_event(void)
{
	struct ibv_wc wc;
	struct held h;
	int event;

	if (!take_all(&h))
		return tell_failure(OPENING);
	for (int fd = FIRST; fd < LAST; fd++)
		if (fd != h.context->async_fd && fd != h.context->cmd_fd &&
		    fd != h.channel->fd && fd != h.events->fd)
			close(fd);
	do
		ibv_poll_cq(h.cq, 1, &wc);
	while ((event = async_event(h.context, 1)) < 0);
	if (event != IBV_EVENT_DEVICE_FATAL) {
		fprintf(stderr, "the first event has type %d\n", event);
		return 1;
	}
	ibv_poll_cq(h.cq, 1, &wc);
	event = async_event(h.context, SETTLE_MS);
	if (event >= 0)
		fprintf(stderr, "a second event, of type %d, comes\n", event);
	give_all(&h);
	return event >= 0;
}

/* A program that `adverb pair` has started with the pipe of ADVERB_READY_FD
 * closes the pipe, opens a file under its number, and listens. */
static int listen_without_pipe(int pipe_fd)
{
	struct held h;

	if (!take_all(&h))
		return tell_failure(OPENING);
	close(pipe_fd);
	open_file(0);
	if (fds[0] != pipe_fd) {
		fprintf(stderr, "a file has descriptor %d in place of %d\n",
			fds[0], pipe_fd);
		return 1;
	}
	for (int i = 1; i < MOST; i++)
		open_file(i);
	if (rdma_listen(h.id, 1))
		return tell_failure("rdma_listen");
	return files_changed() != 0;
}

/* Starts this program anew, since the library looks at ADVERB_READY_FD only
 * when it is loaded. */
static int process_listens(void)
{
	char number[16];
	int ends[2];

	if (pipe(ends))
		return tell_failure("pipe");
	snprintf(number, sizeof(number), "%d", ends[1]);
	setenv("ADVERB_READY_FD", number, 1);
	execl("/proc/self/exe", "daemoncheck", "listen", number, (char *)NULL);
	return tell_failure("execl of this program");
}

/* Opens all objects with a pipe as standard output, and closes the pipe.  Ends
 * with status 0 after a byte has come from the pipe `go`. */
__attribute__((noreturn)) static void close_output(int output, int go)
{
	struct held h;
	char byte;

	dup2(output, STDOUT_FILENO);
	dup2(output, STDERR_FILENO);
	close(output);
	if (!take_all(&h) || write(STDOUT_FILENO, "!", 1) != 1)
		_exit(3);
	close(STDOUT_FILENO);
	close(STDERR_FILENO);
	_exit(read(go, &byte, 1) != 1);
}

/* A daemon closes its standard output, a pipe.  The pipe's reader must then get
 * end of file, even if a thread serves in place of adverbd.  The daemon itself
 * must not have ended: it ends with status 0 only after the byte that is
 * written after the end of file. */
static int process_closes_its_output(void)
{
	int ends[2], go[2];
	bool is_open = false;
	char byte;
	pid_t pid;

	if (pipe(ends) || pipe(go))
		return tell_failure("pipe");
	pid = fork_with_alarm();
	if (!pid) {
		close(ends[0]);
		close_output(ends[1], go[0]);
	}
	close(ends[1]);
	while (read(ends[0], &byte, 1) > 0)
		is_open = is_open || byte == '!';
	if (!is_open)
		fprintf(stderr, "the process has not opened its objects\n");
	/* go[0] is still open here, so this succeeds without the daemon, too */
	if (write(go[1], "!", 1) != 1)
		return tell_failure("write");
	return await_child(pid) || !is_open;
}

/* The standard descriptors that the next process closes: bit n for number n. */
static unsigned closed_standard;

static bool is_closed_standard(int fd)
{
	return closed_standard >> fd & 1;
}

/* A program that has closed some standard descriptors opens a device.  No
 * descriptor of adverb may take such a number; the program opens files under
 * these numbers, and the device must continue to work.  The exit status, which
 * the parent process prints, says which step has failed, since a message may
 * have no descriptor. */
static int process_lacks_standard_files(void)
{
	struct held h;
	int status = 0;

	for (int fd = 0; fd < FIRST; fd++)
		if (is_closed_standard(fd))
			close(fd);
	if (!take_all(&h))
		return 2;
	usleep(SETTLE_MS * 1000);
	for (int fd = 0; fd < FIRST; fd++)
		if (is_closed_standard(fd) && fcntl(fd, F_GETFD) >= 0)
			return 3;
	for (int fd = 0; fd < FIRST; fd++)
		if (is_closed_standard(fd) && open("/dev/null", O_RDWR) != fd)
			return 4;
	if (async_event(h.context, SETTLE_MS) >= 0)
		status = 5;
	return give_all(&h) ? status : 6;
}

static void run_without_standard_files(void)
{
	for (closed_standard = 1; closed_standard < 1 << FIRST;
	     closed_standard++) {
		int status = status_of(process_lacks_standard_files);

		check_expect(!status,
			     "the bits of the closed descriptors are %u, and "
			     "the status is %d",
			     closed_standard, status);
	}
}

#define CASE(body)                                                             \
	static void run_##body(void)                                           \
	{                                                                      \
		EXPECT(status_of(body) == 0);                                  \
	}

CASE(child_opens_anew)
CASE(child_destroys_objects)
CASE(process_destroys_objects)
CASE(process_opens_anew)
CASE(process_keeps_its_port)
CASE(process_opens_sockets)
CASE(process_opens_listeners)
CASE(process_gets_fatal_event)
CASE(process_listens)
CASE(process_closes_its_output)

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "listen"))
		return listen_without_pipe(atoi(argv[2]));
	check_run("a child that closes all descriptors opens a device anew",
		  run_child_opens_anew);
	check_run(
		"a child that destroys inherited objects changes none of its own files",
		run_child_destroys_objects);
	check_run(
		"a process that destroys objects without descriptors changes none of its files",
		run_process_destroys_objects);
	check_run("a process that closed all descriptors opens a device anew",
		  run_process_opens_anew);
	check_run("a process that closed all descriptors listens at its port",
		  run_process_keeps_its_port);
	check_run("data for the program's sockets is left to the program",
		  run_process_opens_sockets);
	check_run(
		"connections to the program's listeners are left to the program",
		run_process_opens_listeners);
	check_run(
		"a process that closed adverb's descriptors gets one IBV_EVENT_DEVICE_FATAL",
		run_process_gets_fatal_event);
	check_run(
		"rdma_listen writes nothing to a file under the number of a pipe",
		run_process_listens);
	check_run("the reader of a closed output sees its end",
		  run_process_closes_its_output);
	check_run("no file of adverb becomes a standard descriptor",
		  run_without_standard_files);
	return check_end();
}
