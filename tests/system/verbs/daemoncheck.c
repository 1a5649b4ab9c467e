/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * daemoncheck: programs that close all descriptors but the first three while a
 * device is open, as a program does that becomes a daemon, in the child of a
 * fork or in one process.  From then on the numbers belong to the program: the
 * library neither closes, reads nor writes files that the program opens with
 * these numbers.
 *
 * Each case is a process of its own, which opens a device, an event channel and
 * a completion channel, and then MOST files of 4 bytes in place of their
 * descriptors.
 */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FIRST = 3, MOST = 48, LAST = 1024, SETTLE_MS = 300, HANG_S = 120 };

struct held {
	struct ibv_context *context;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
};

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

/* Opens all objects.  Returns false if there is no device that opens. */
static bool take_all(struct held *h)
{
	struct sockaddr_storage any = {.ss_family = AF_INET};

	h->context = open_first();
	h->channel = h->context ? ibv_create_comp_channel(h->context) : NULL;
	h->cq = h->channel ? ibv_create_cq(h->context, 16, NULL, h->channel, 0)
			   : NULL;
	h->events = rdma_create_event_channel();
	return h->cq && h->events &&
	       !rdma_create_id(h->events, &h->id, NULL, RDMA_PS_TCP) &&
	       !rdma_bind_addr(h->id, (struct sockaddr *)(void *)&any);
}

static bool give_all(struct held *h)
{
	bool good = !rdma_destroy_id(h->id);

	rdma_destroy_event_channel(h->events);
	good &= !ibv_destroy_cq(h->cq);
	good &= !ibv_destroy_comp_channel(h->channel);
	return !ibv_close_device(h->context) && good;
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
		_exit(2);
}

/* Closes all descriptors, as most daemons do, and opens files in their
 * place. */
static void become_another(void)
{
	for (int fd = FIRST; fd < LAST; fd++)
		close(fd);
	for (int i = 0; i < MOST; i++)
		open_file(i);
}

/* Returns how many of the files are not as they were: another file, read, or
 * with other bytes. */
static int files_hurt(void)
{
	int hurt = 0;

	for (int i = 0; i < MOST; i++) {
		struct stat s = {0};
		char text[8] = "";
		bool good = !fstat(fds[i], &s) && s.st_ino == mine[i].st_ino &&
			    s.st_dev == mine[i].st_dev && s.st_size == 4 &&
			    lseek(fds[i], 0, SEEK_CUR) == 0 &&
			    pread(fds[i], text, sizeof(text), 0) == 4 &&
			    !memcmp(text, "mine", 4);

		if (!good)
			fprintf(stderr, "descriptor %d is hurt\n", fds[i]);
		hurt += !good;
	}
	return hurt;
}

/* Runs the case in a child.  Returns the exit status, 0 if all is well. */
static int status_of(int (*body)(void))
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		alarm(HANG_S); /* so that a case that hangs ends */
		_exit(body());
	}
	if (waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* Opens the objects again, uses them, and destroys them. */
static int work_anew(void)
{
	struct held h;

	if (!take_all(&h))
		return 3;
	usleep(SETTLE_MS * 1000);
	if (files_hurt())
		return 4;
	return give_all(&h) ? 0 : 5;
}

static int child_of_one_that_opened(void)
{
	struct held h;
	int status;

	if (!take_all(&h))
		return 2;
	pid_t pid = fork();

	if (!pid) {
		setsid();
		become_another();
		status = work_anew();
		_exit(status ? status : files_hurt());
	}
	if (waitpid(pid, &status, 0) != pid || status)
		return WIFEXITED(status) ? WEXITSTATUS(status) : 9;
	return give_all(&h) ? 0 : 6;
}

/* The child destroys the objects inherited from its parent. */
static int child_that_destroys(void)
{
	struct held h;
	int status;

	if (!take_all(&h))
		return 2;
	pid_t pid = fork();

	if (!pid) {
		become_another();
		give_all(&h); /* may be refused, but must hurt no file */
		_exit(files_hurt() ? 4 : 0);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		return WIFEXITED(status) ? WEXITSTATUS(status) : 9;
	return give_all(&h) ? 0 : 6;
}

static int one_that_destroys(void)
{
	struct held h;

	if (!take_all(&h))
		return 2;
	become_another();
	usleep(SETTLE_MS * 1000);
	give_all(&h);
	return files_hurt() ? 4 : 0;
}

static int one_that_goes_on(void)
{
	int status = one_that_destroys();

	return status ? status : work_anew() ? 7 : files_hurt();
}

/* The program's sockets have the numbers of adverb's: data that comes to them
 * is left to the program. */
static int one_whose_sockets_follow(void)
{
	int pair[MOST][2], lost = 0;
	struct held h;

	if (!take_all(&h))
		return 2;
	for (int fd = FIRST; fd < LAST; fd++)
		close(fd);
	for (int i = 0; i < MOST; i++)
		if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair[i]))
			return 3;
	usleep(SETTLE_MS * 1000);
	for (int i = 0; i < MOST; i++)
		if (send(pair[i][0], "mine", 4, 0) != 4)
			return 4;
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
	return lost ? 5 : 0;
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

/* A program that keeps the descriptors which the API gave it, closes all others
 * and polls gets one IBV_EVENT_DEVICE_FATAL. */
static int one_that_hears_of_it(void)
{
	struct ibv_wc wc;
	struct held h;
	int event;

	if (!take_all(&h))
		return 2;
	for (int fd = FIRST; fd < LAST; fd++)
		if (fd != h.context->async_fd && fd != h.context->cmd_fd &&
		    fd != h.channel->fd && fd != h.events->fd)
			close(fd);
	do
		ibv_poll_cq(h.cq, 1, &wc);
	while ((event = async_event(h.context, 1)) < 0);
	if (event != IBV_EVENT_DEVICE_FATAL)
		return 3;
	ibv_poll_cq(h.cq, 1, &wc);
	if (async_event(h.context, SETTLE_MS) >= 0)
		return 4;
	give_all(&h);
	return 0;
}

#define CASE(body)                                                             \
	static void run_##body(void)                                           \
	{                                                                      \
		EXPECT(status_of(body) == 0);                                  \
	}

CASE(child_of_one_that_opened)
CASE(child_that_destroys)
CASE(one_that_destroys)
CASE(one_that_goes_on)
CASE(one_whose_sockets_follow)
CASE(one_that_hears_of_it)

int main(void)
{
	check_run("a child that closes all descriptors opens a device anew",
		  run_child_of_one_that_opened);
	check_run(
		"a child that destroys inherited objects closes none of its own files",
		run_child_that_destroys);
	check_run(
		"a process that closed all descriptors can destroy its objects",
		run_one_that_destroys);
	check_run("and opens a device anew", run_one_that_goes_on);
	check_run("data for the program's sockets is left to the program",
		  run_one_whose_sockets_follow);
	check_run("it is told by IBV_EVENT_DEVICE_FATAL, once",
		  run_one_that_hears_of_it);
	return check_end();
}
