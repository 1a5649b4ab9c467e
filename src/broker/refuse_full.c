/* SPDX-License-Identifier: BSD-2-Clause */
/* Who is turned away; see refuse_full.h. */
#include "broker/refuse_full.h"

#include "broker/cmproto.h"
#include "broker/proto.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define REFUSE_FULL_MS 100 /* a client speaks as soon as it has come */

static int spare(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void refuse_full_init(struct refuse_full *a)
{
	*a = (struct refuse_full){.spare_fd = spare(), .fd = -1};
}

static void part(struct refuse_full *a)
{
	close(a->fd);
	a->fd = -1;
	if (a->spare_fd < 0)
		a->spare_fd = spare();
}

void refuse_full_close(struct refuse_full *a)
{
	if (a->fd >= 0)
		part(a);
	close(a->spare_fd);
}

void refuse_full_take(struct refuse_full *a, int fd, uint64_t now_ms)
{
	if (a->fd >= 0) {
		close(fd);
		return;
	}
	a->fd = fd;
	a->is_crowd = true;
	a->since_ms = now_ms;
}

void refuse_full_accept(struct refuse_full *a, int listen_fd, uint64_t now_ms)
{
	close(a->spare_fd);
	a->spare_fd = -1;
	a->fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
	a->is_crowd = false;
	a->since_ms = now_ms;
	if (a->fd < 0)
		a->spare_fd = spare();
}

void refuse_full_why(int err, char *why, size_t size)
{
	struct rlimit files = {0};

	getrlimit(RLIMIT_NOFILE, &files);
	snprintf(why, size,
		 err == ETOOMANYREFS
			 ? "more descriptors of the broker's user are under "
			   "way than ulimit -n, %llu, allows: raise it"
			 : "the broker adverbd's limit on open files, %llu, is "
			   "reached: raise ulimit -n",
		 (unsigned long long)files.rlim_cur);
}

static void refuse(const struct refuse_full *a, const struct proto *question)
{
	struct proto m = {.kind = PROTO_REFUSED,
			  .serial = question->serial,
			  .value = a->is_crowd ? EUSERS : EMFILE};

	/* which is of no use to another version, but its name is */
	proto_introduce(&m, 0);
	if (a->is_crowd)
		snprintf(m.why, sizeof(m.why),
			 "the broker adverbd has as many clients as it serves");
	else
		refuse_full_why(EMFILE, m.why, sizeof(m.why));
	proto_send(a->fd, &m, NULL);
}

/* Who makes connections hears of the error alone. */
static void refuse_cm(const struct refuse_full *a, struct cmproto *m)
{
	m->kind = CMPROTO_DONE;
	m->err = a->is_crowd ? -EUSERS : -EMFILE;
	send(a->fd, m, sizeof(*m), MSG_DONTWAIT | MSG_NOSIGNAL);
}

void refuse_full_turn(struct refuse_full *a, uint64_t now_ms)
{
	union {
		struct proto proto;
		struct cmproto cm;
	} m = {0};
	ssize_t n;

	if (a->fd < 0)
		return;
	/* its descriptors, which would find no room, are not taken */
	n = recv(a->fd, &m, sizeof(m), MSG_DONTWAIT);
	if (n < 0 && now_ms - a->since_ms < REFUSE_FULL_MS)
		return;
	if (n == sizeof(m.cm) && m.cm.magic == CMPROTO_MAGIC)
		refuse_cm(a, &m.cm);
	else if (n)
		refuse(a, &m.proto);
	part(a);
}

int refuse_full_patience(const struct refuse_full *a, int wait)
{
	return a->fd >= 0 && (wait < 0 || wait > REFUSE_FULL_MS)
		       ? REFUSE_FULL_MS
		       : wait;
}
