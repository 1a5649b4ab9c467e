/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections that are refused; see refuse_full.h. */
#include "broker/refuse_full.h"

#include "broker/cmproto.h"
#include "broker/proto.h"
#include "util/remedy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static int open_spare(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void refuse_full_init(struct refuse_full *a)
{
	*a = (struct refuse_full){.spare_fd = open_spare()};
	for (int i = 0; i < REFUSE_FULL_SLOTS; i++)
		a->slot[i].fd = -1;
}

static bool is_full(int err)
{
	return err == EMFILE || err == ENFILE;
}

/* Opens the spare descriptor again if it is closed and a descriptor is left. */
static void restore_spare(struct refuse_full *a)
{
	if (a->spare_fd < 0)
		a->spare_fd = open_spare();
	/* After another error, for example if there is no /dev/null, a
	 * descriptor is left, and a connection can be accepted without the
	 * spare one. */
	a->is_spent &= a->spare_fd < 0 && is_full(errno);
}

static void end_slot(struct refuse_full *a, struct refuse_full_slot *r)
{
	close(r->fd);
	r->fd = -1;
	restore_spare(a);
}

void refuse_full_close(struct refuse_full *a)
{
	for (int i = 0; i < REFUSE_FULL_SLOTS; i++)
		if (a->slot[i].fd >= 0)
			end_slot(a, &a->slot[i]);
	if (a->spare_fd >= 0)
		close(a->spare_fd);
}

void refuse_full_take(struct refuse_full *a, enum refuse_full_place place,
		      int fd, int err, const char *why, uint64_t now_ms)
{
	if (a->slot[place].fd >= 0)
		close(fd);
	else
		refuse_full_fill(&a->slot[place], fd, err, why, now_ms);
}

void refuse_full_fill(struct refuse_full_slot *r, int fd, int err,
		      const char *why, uint64_t now_ms)
{
	*r = (struct refuse_full_slot){
		.fd = fd, .since_ms = now_ms, .err = err};
	snprintf(r->why, sizeof(r->why), "%s", why);
}

int refuse_full_accept(struct refuse_full *a, int listen_fd)
{
	int fd;

	if (a->spare_fd >= 0)
		close(a->spare_fd);
	a->spare_fd = -1;
	fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
	/* If another thread or process has taken the descriptor, or there was
	 * no spare one, the connection still waits at the listener.  Until
	 * restore_spare finds a descriptor, the caller does not poll the
	 * listener (refuse_full_may_accept), because each poll would return at
	 * once. */
	a->is_spent = fd >= 0 || is_full(errno);
	if (fd < 0)
		restore_spare(a);
	return fd;
}

void refuse_full_why(int err, char *why, size_t size)
{
	struct rlimit files = {0};

	getrlimit(RLIMIT_NOFILE, &files);
	/* The kernel compares the descriptors in flight with the soft limit,
	 * which proto_send raises to the hard limit for the repeated send after
	 * ETOOMANYREFS (util/scm_rights.h). */
	if (err == ETOOMANYREFS)
		snprintf(why, size,
			 "the broker's user has over %llu descriptors in "
			 "flight: %s",
			 (unsigned long long)files.rlim_max,
			 remedy_of(err, ""));
	else if (err == EMFILE)
		snprintf(why, size,
			 "the broker adverbd's limit on open files, %llu, is "
			 "reached: %s",
			 (unsigned long long)files.rlim_cur,
			 remedy_of(err, ""));
	else if (err == ENFILE)
		snprintf(why, size,
			 "this machine's limit on open files is reached: %s",
			 remedy_of(err, ""));
	else if (err == EAGAIN)
		snprintf(why, size, "the broker adverbd starts no thread: %s",
			 remedy_of(err, ""));
	else
		snprintf(why, size, "the broker adverbd lacks memory: %s",
			 remedy_of(ENOMEM, ""));
}

static void refuse_client(const struct refuse_full_slot *r,
			  const struct proto *question)
{
	struct proto m = {.kind = PROTO_REFUSED,
			  .serial = question->serial,
			  .value = (uint32_t)r->err};

	/* A client of another version reads only the members that
	 * proto_introduce sets.  idle_s 0: the message does not say when the
	 * broker ends. */
	proto_introduce(&m, 0);
	snprintf(m.why, sizeof(m.why), "%s", r->why);
	proto_send(r->fd, &m, NULL);
}

/* The answer to a client of connection management has the errno alone: struct
 * cmproto has no room for a sentence. */
static void refuse_cm(const struct refuse_full_slot *r, struct cmproto *m)
{
	m->kind = CMPROTO_DONE;
	m->err = -r->err;
	send(r->fd, m, sizeof(*m), MSG_DONTWAIT | MSG_NOSIGNAL);
}

bool refuse_full_answer(const struct refuse_full_slot *r, uint64_t now_ms)
{
	union {
		struct proto proto;
		struct cmproto cm;
	} m = {0};
	ssize_t n;

	/* recv drops the message's descriptors, for which there is no room */
	n = recv(r->fd, &m, sizeof(m), MSG_DONTWAIT);
	if (n < 0 && now_ms - r->since_ms < REFUSE_FULL_MS)
		return false;
	if (n == sizeof(m.cm) && m.cm.magic == CMPROTO_MAGIC)
		refuse_cm(r, &m.cm);
	else if (n)
		refuse_client(r, &m.proto);
	return true;
}

void refuse_full_turn(struct refuse_full *a, uint64_t now_ms)
{
	for (int i = 0; i < REFUSE_FULL_SLOTS; i++)
		if (a->slot[i].fd >= 0 &&
		    refuse_full_answer(&a->slot[i], now_ms))
			end_slot(a, &a->slot[i]);
	if (a->is_spent && a->slot[REFUSE_FULL_SPARE].fd < 0)
		restore_spare(a);
}

bool refuse_full_may_accept(const struct refuse_full *a)
{
	return a->slot[REFUSE_FULL_SPARE].fd < 0 && !a->is_spent;
}

void refuse_full_poll(const struct refuse_full *a, struct pollfd *p)
{
	for (int i = 0; i < REFUSE_FULL_SLOTS; i++)
		p[i] = (struct pollfd){.fd = a->slot[i].fd, .events = POLLIN};
}

int refuse_full_patience(const struct refuse_full *a, int wait)
{
	bool has_any = false;

	for (int i = 0; i < REFUSE_FULL_SLOTS; i++)
		has_any |= a->slot[i].fd >= 0;
	has_any |= a->is_spent;
	return has_any && (wait < 0 || wait > REFUSE_FULL_MS) ? REFUSE_FULL_MS
							      : wait;
}
