/* SPDX-License-Identifier: BSD-2-Clause */
/* Who is turned away; see away.h. */
#include "broker/away.h"

#include "broker/cmproto.h"
#include "broker/proto.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define AWAY_MS 100 /* a client speaks as soon as it has come */

static int spare(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void away_init(struct away *a)
{
	*a = (struct away){.spare_fd = spare(), .fd = -1};
}

static void part(struct away *a)
{
	close(a->fd);
	a->fd = -1;
	if (a->spare_fd < 0)
		a->spare_fd = spare();
}

void away_close(struct away *a)
{
	if (a->fd >= 0)
		part(a);
	close(a->spare_fd);
}

void away_take(struct away *a, int fd, uint64_t now_ms)
{
	if (a->fd >= 0) {
		close(fd);
		return;
	}
	a->fd = fd;
	a->is_crowd = true;
	a->since_ms = now_ms;
}

void away_accept(struct away *a, int listen_fd, uint64_t now_ms)
{
	close(a->spare_fd);
	a->spare_fd = -1;
	a->fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
	a->is_crowd = false;
	a->since_ms = now_ms;
	if (a->fd < 0)
		a->spare_fd = spare();
}

void away_why(int error, char *why, size_t size)
{
	struct rlimit files = {0};

	getrlimit(RLIMIT_NOFILE, &files);
	snprintf(why, size,
		 error == ETOOMANYREFS
			 ? "more descriptors of the broker's user are under "
			   "way than ulimit -n, %llu, allows: raise it"
			 : "the broker adverbd's limit on open files, %llu, is "
			   "reached: raise ulimit -n",
		 (unsigned long long)files.rlim_cur);
}

static void refuse(const struct away *a, const struct proto *question)
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
		away_why(EMFILE, m.why, sizeof(m.why));
	proto_send(a->fd, &m, NULL);
}

/* Who makes connections hears of the error alone. */
static void refuse_cm(const struct away *a, struct cmproto *m)
{
	m->kind = CMPROTO_DONE;
	m->error = a->is_crowd ? -EUSERS : -EMFILE;
	send(a->fd, m, sizeof(*m), MSG_DONTWAIT | MSG_NOSIGNAL);
}

void away_turn(struct away *a, uint64_t now_ms)
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
	if (n < 0 && now_ms - a->since_ms < AWAY_MS)
		return;
	if (n == sizeof(m.cm) && m.cm.magic == CMPROTO_MAGIC)
		refuse_cm(a, &m.cm);
	else if (n)
		refuse(a, &m.proto);
	part(a);
}

int away_patience(const struct away *a, int wait)
{
	return a->fd >= 0 && (wait < 0 || wait > AWAY_MS) ? AWAY_MS : wait;
}
