/* SPDX-License-Identifier: BSD-2-Clause */
#include "ipoib_cm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fabric/fabric_client.h"

enum {
	PATIENCE_MS = 10000, /* for the fabric, in ipoib_cm_open */
	SENTENCE = 512,
	MESSAGES = 64, /* received in one call */
	LISTENER = 1,  /* the id of the listener */
	BACKLOG = 64,
	CM_TIMEOUT = 20, /* 4.3 s: see struct cmproto_qp */
	CM_RETRIES = 5,
	REJ_CONSUMER = 28, /* IBTA 12.6.7.2 */
};

/* The service ID of an interface is this value ORed with the QPN of its UD
 * queue pair, as with the kernel's IPoIB. */
#define SERVICE 0x1000000000000000u

int ipoib_cm_init(struct ipoib_cm *c, const struct ipoib_cm_sink *sink,
		  void *ctx, int fd)
{
	memset(c, 0, sizeof(*c));
	c->sink = sink;
	c->ctx = ctx;
	c->connection = -1;
	c->fd = fd;
	c->unsent = calloc(IPOIB_CM_UNSENT, sizeof(*c->unsent));
	return c->unsent ? 0 : -1;
}

int ipoib_cm_open(struct ipoib_cm *c, const struct ipoib_cm_sink *sink,
		  void *ctx, const char *name)
{
	const char *path = fabric_client_path();
	char why[SENTENCE];
	int fd = -1, connection = fabric_client_open_cm(path, PATIENCE_MS, &fd);

	if (connection < 0) {
		fabric_client_explain(path, fabric_client_host(), connection,
				      why, sizeof(why));
		fprintf(stderr,
			"adverb: %s: the interface cannot use the connected "
			"mode: %s.\n",
			name, why);
		c->connection = c->fd = -1;
		return -1;
	}
	if (ipoib_cm_init(c, sink, ctx, fd)) {
		fprintf(stderr,
			"adverb: %s: the interface cannot use the connected "
			"mode: this process has no memory; choose --mode "
			"datagram.\n",
			name);
		close(connection);
		close(fd);
		c->fd = -1;
		return -1;
	}
	c->connection = connection;
	return 0;
}

void ipoib_cm_fini(struct ipoib_cm *c)
{
	for (uint32_t i = 0; i < IPOIB_CM_LINKS; i++)
		free(c->links[i].request);
	free(c->listener.request);
	free(c->unsent);
	if (c->fd >= 0)
		close(c->fd);
	if (c->connection >= 0)
		close(c->connection);
	c->fd = c->connection = -1;
}

/* ---- sending ---- */

/* Sends the message.  Returns false if the socket has no room now, so that the
 * message has to be sent later; true also after any other error. */
static bool send_now(struct ipoib_cm *c, const struct cmproto *m)
{
	ssize_t n = send(c->fd, m, sizeof(*m), MSG_DONTWAIT | MSG_NOSIGNAL);

	/* after another error ipoib_cm_receive ends all connections */
	return n == sizeof(*m) || (errno != EAGAIN && errno != EINTR);
}

static bool is_full(const struct ipoib_cm *c)
{
	return c->unsent_count == IPOIB_CM_UNSENT;
}

static void send_message(struct ipoib_cm *c, struct cmproto *m, uint16_t kind,
			 uint32_t object)
{
	m->magic = CMPROTO_MAGIC;
	m->version = CMPROTO_VERSION;
	m->kind = kind;
	m->id = object;
	m->is_ib = 1;
	m->serial = ++c->last_serial;
	if (c->fd < 0 || (!c->unsent_count && send_now(c, m)))
		return;
	if (is_full(c)) {
		/* after this, ipoib_cm_receive ends all connections */
		c->err = -ENOBUFS;
		shutdown(c->fd, SHUT_RDWR);
		return;
	}
	c->unsent[(c->unsent_at + c->unsent_count++) % IPOIB_CM_UNSENT] = *m;
}

bool ipoib_cm_flush(struct ipoib_cm *c)
{
	while (c->unsent_count && send_now(c, &c->unsent[c->unsent_at])) {
		c->unsent_at = (c->unsent_at + 1) % IPOIB_CM_UNSENT;
		c->unsent_count--;
	}
	return c->unsent_count > 0;
}

static void send_plain(struct ipoib_cm *c, uint16_t kind, uint32_t object)
{
	struct cmproto m = {0};

	send_message(c, &m, kind, object);
}

/* ---- objects ---- */

static void free_link(struct ipoib_cm_link *l)
{
	free(l->request);
	*l = (struct ipoib_cm_link){0};
}

/* Forgets a connection or the listener.  If its object is still to come,
 * take_answer releases the object. */
static void close_link(struct ipoib_cm *c, struct ipoib_cm_link *l)
{
	if (l->object)
		send_plain(c, CMPROTO_RELEASE, l->object);
	free_link(l);
}

/* Asks the fabric for an object, with which take_object then sends the request.
 * False: there is no memory. */
static bool bind_link(struct ipoib_cm *c, struct ipoib_cm_link *l, uint32_t id,
		      const struct cmproto *request)
{
	struct cmproto m = {.at.service_id = c->service_id};

	l->request = malloc(sizeof(*l->request));
	if (!l->request)
		return false;
	*l->request = *request;
	l->id = id;
	memcpy(m.at.local, c->gid, sizeof(c->gid));
	send_message(c, &m, CMPROTO_BIND, 0);
	l->serial = c->last_serial;
	return true;
}

static struct ipoib_cm_link *new_link(struct ipoib_cm *c)
{
	for (uint32_t i = 0; i < IPOIB_CM_LINKS; i++)
		if (!c->links[i].id)
			return &c->links[i];
	return NULL;
}

static struct ipoib_cm_link *find_link(struct ipoib_cm *c, uint32_t id)
{
	for (uint32_t i = 0; id && i < IPOIB_CM_LINKS; i++)
		if (c->links[i].id == id)
			return &c->links[i];
	return NULL;
}

void ipoib_cm_listen(struct ipoib_cm *c, const uint8_t gid[16], uint32_t qpn)
{
	const struct cmproto request = {.kind = CMPROTO_LISTEN,
					.backlog = BACKLOG};

	ipoib_cm_unlisten(c);
	memcpy(c->gid, gid, sizeof(c->gid));
	c->service_id = SERVICE | qpn;
	if (!bind_link(c, &c->listener, LISTENER, &request))
		c->sink->deaf(c->ctx, -ENOMEM);
}

void ipoib_cm_unlisten(struct ipoib_cm *c)
{
	if (c->listener.id)
		close_link(c, &c->listener);
}

bool ipoib_cm_is_listening(const struct ipoib_cm *c)
{
	return c->listener.id;
}

bool ipoib_cm_is_heard(const struct ipoib_cm *c)
{
	return c->listener.id && c->listener.is_done;
}

bool ipoib_cm_connect(struct ipoib_cm *c, uint32_t id, uint32_t qpn,
		      const struct cmproto *m)
{
	struct ipoib_cm_link *l = c->fd >= 0 ? new_link(c) : NULL;
	struct cmproto request = *m;

	request.kind = CMPROTO_CONNECT;
	request.at.service_id = SERVICE | qpn;
	request.timeout = CM_TIMEOUT;
	request.max_retries = CM_RETRIES;
	return l && bind_link(c, l, id, &request);
}

bool ipoib_cm_accept(struct ipoib_cm *c, uint32_t object, uint32_t id,
		     const struct cmproto *m)
{
	struct ipoib_cm_link *l = new_link(c);
	struct cmproto reply = *m;

	if (!l) {
		ipoib_cm_reject(c, object);
		return false;
	}
	l->id = id;
	l->object = object;
	send_message(c, &reply, CMPROTO_ACCEPT, object);
	l->awaited = c->last_serial;
	return true;
}

void ipoib_cm_reject(struct ipoib_cm *c, uint32_t object)
{
	struct cmproto m = {.status = REJ_CONSUMER};

	send_message(c, &m, CMPROTO_REJECT, object);
	send_plain(c, CMPROTO_RELEASE, object);
}

void ipoib_cm_establish(struct ipoib_cm *c, uint32_t id)
{
	struct ipoib_cm_link *l = find_link(c, id);

	if (l)
		send_plain(c, CMPROTO_ESTABLISH, l->object);
}

void ipoib_cm_close(struct ipoib_cm *c, uint32_t id)
{
	struct ipoib_cm_link *l = find_link(c, id);

	if (l)
		close_link(c, l);
}

/* ---- receiving ---- */

/* Closes the connection or the listener, and tells the sink.  err: the fabric's
 * -errno; 0: the fabric gives no reason. */
static void end_link(struct ipoib_cm *c, struct ipoib_cm_link *l, int err)
{
	uint32_t id = l->id;

	close_link(c, l);
	if (id && l == &c->listener)
		c->sink->deaf(c->ctx, err);
	else if (id)
		c->sink->ended(c->ctx, id);
}

/* Handles the answer to a request for an object: sends the request for which
 * the object was wanted. */
static void take_object(struct ipoib_cm *c, struct ipoib_cm_link *l,
			const struct cmproto *m)
{
	struct cmproto *request = l->request;

	l->serial = 0;
	if (m->err || !m->new_id) {
		end_link(c, l, m->err);
		return;
	}
	l->object = m->new_id;
	l->request = NULL;
	send_message(c, request, request->kind, l->object);
	l->awaited = c->last_serial;
	free(request);
}

/* Returns the connection or the listener whose object is `object`, or whose
 * member serial or awaited is `serial`.  An argument of 0 is not looked for.
 * NULL: there is none. */
static struct ipoib_cm_link *link_by(struct ipoib_cm *c, uint32_t serial,
				     uint32_t object)
{
	struct ipoib_cm_link *l = &c->listener;

	for (uint32_t i = 0; i <= IPOIB_CM_LINKS; l = &c->links[i++])
		if ((serial && (l->serial == serial || l->awaited == serial)) ||
		    (object && l->object == object))
			return l;
	return NULL;
}

/* Handles the answer to a request.  If the answer names an object whose
 * connection or listener was closed meanwhile, releases the object: otherwise
 * the fabric would keep the object until this process ends. */
static void take_answer(struct ipoib_cm *c, const struct cmproto *m)
{
	struct ipoib_cm_link *l = link_by(c, m->serial, 0);

	if (!l && m->new_id)
		send_plain(c, CMPROTO_RELEASE, m->new_id);
	if (!l)
		return;
	if (l->serial == m->serial)
		take_object(c, l, m);
	else if (m->err)
		end_link(c, l, m->err);
	else
		l->is_done = true;
}

static void take_request(struct ipoib_cm *c, const struct cmproto *m)
{
	if (!m->new_id)
		return;
	if (c->listener.object != m->id || m->is_datagram) {
		send_plain(c, CMPROTO_RELEASE, m->new_id);
		return;
	}
	send_plain(c, CMPROTO_TAKEN, m->new_id);
	c->sink->asked(c->ctx, m);
}

static void take_event(struct ipoib_cm *c, const struct cmproto *m)
{
	struct ipoib_cm_link *l = link_by(c, 0, m->id);

	if (m->event == CMPROTO_REQUEST)
		take_request(c, m);
	else if (l && l->id && m->event == CMPROTO_RESPONSE)
		c->sink->accepted(c->ctx, l->id, m);
	else if (l && (m->event == CMPROTO_REJECTED ||
		       m->event == CMPROTO_UNREACHABLE ||
		       m->event == CMPROTO_DISCONNECTED))
		end_link(c, l, 0);
}

/* Ends all connections and the listener: the fabric has ended, has closed the
 * socket because this process did not read the fabric's messages, or has sent a
 * message that is_message refuses; or send_message has shut the socket down. */
static void end_all(struct ipoib_cm *c, int err)
{
	c->err = c->err ? c->err : err;
	close(c->fd);
	c->fd = -1;
	c->unsent_count = 0;
	free_link(&c->listener);
	for (uint32_t i = 0; i < IPOIB_CM_LINKS; i++) {
		uint32_t id = c->links[i].id;

		free_link(&c->links[i]);
		if (id)
			c->sink->ended(c->ctx, id);
	}
}

static bool is_message(const struct cmproto *m, ssize_t n)
{
	return n == sizeof(*m) && m->magic == CMPROTO_MAGIC &&
	       m->version == CMPROTO_VERSION &&
	       m->private_bytes <= CMPROTO_PRIVATE;
}

int ipoib_cm_receive(struct ipoib_cm *c)
{
	struct cmproto m;
	ssize_t n = 0;

	for (int i = 0; c->fd >= 0 && i < MESSAGES; i++) {
		n = recv(c->fd, &m, sizeof(m), MSG_DONTWAIT | MSG_TRUNC);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (!is_message(&m, n)) {
			end_all(c, n > 0 ? -EPROTO : -ECONNRESET);
			break;
		}
		if (m.kind == CMPROTO_DONE)
			take_answer(c, &m);
		else if (m.kind == CMPROTO_EVENT)
			take_event(c, &m);
	}
	return c->fd >= 0 ? 0 : c->err;
}
