/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opens the ports of a host of an emulated subnet, and sends and receives
 * management datagrams there.  The handle of an open port is the descriptor of
 * the socket that carries the port's messages.  For each handle a table has the
 * connection on which agents are registered.  Ports of RoCE and iWARP devices
 * take no management datagrams: opening one fails with ENODEV.
 *
 * When the fabric has ended, each call of umad_recv fails with EIO, as the
 * kernel's reads do after an adapter was removed.  A program may call umad_recv
 * again at once and for ever, with a line in its log for each failure, as
 * OpenSM's receiver does.  So all calls but the first wait before they fail:
 * for the timeout of the call, but at most for DEAD_WAIT_MS.
 */
#include "umad/explain.h"
#include "umad/fabric.h"
#include "umad/newer.h"
#include "util/fd_identity.h"
#include "util/monotonic.h"
#include "util/remedy.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define OPEN_MAX_PORTS 256
#define METHOD_BYTES   16
#define DEAD_WAIT_MS   1000 /* the longest wait at a port of a dead fabric */

struct open_port {
	bool is_used;	/* the entry is not free */
	int fd;		/* the handle */
	int connection; /* the fabric closes the port when this is closed */
	bool is_dead;	/* umad_recv has failed because the fabric has ended */
	/* The number of this opening, which is not 0.  An entry that gets the
	 * same handle later has another number. */
	uint64_t opening;
};

static struct open_port ports[OPEN_MAX_PORTS];
static uint64_t openings; /* how many entries were added */
/* Protects ports[] and openings.  umad_recv also holds the lock from reading a
 * message's length to taking the message, so that no other thread takes the
 * message in between.  umad_send and umad_recv hold the lock during send(2) and
 * recv(2), so that no other thread meanwhile closes the socket and opens
 * another file under its number; they do not hold the lock during poll(2),
 * which may wait for long.  ask_on also holds the lock until the
 * fabric has answered, so that no other thread closes the connection or reads
 * the answer. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* In the child of a fork the lock may belong to a thread that the child does
 * not have.  That thread may have left an entry half written.  This does no
 * harm: umad_open_port has not returned the entry's handle yet, or the program
 * has called umad_close_port with it, so the child does not use the handle. */
static void after_fork(void)
{
	pthread_mutex_init(&lock, NULL);
}

static __attribute__((constructor)) void register_fork(void)
{
	pthread_atfork(NULL, NULL, after_fork);
}

static int fail_with(int err)
{
	errno = err;
	return -err;
}

/* Takes the lock.  The thread is not cancelled until give_shielded: calls that
 * it makes under the lock are cancellation points. */
static void take_shielded(int *cancel)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, cancel);
	pthread_mutex_lock(&lock);
}

static void give_shielded(int cancel)
{
	pthread_mutex_unlock(&lock);
	pthread_setcancelstate(cancel, NULL);
}

/* Returns the entry of a handle, or NULL.  The caller holds the lock. */
static struct open_port *find_port(int portid)
{
	for (int i = 0; i < OPEN_MAX_PORTS; i++)
		if (ports[i].is_used && ports[i].fd == portid)
			return &ports[i];
	return NULL;
}

/* Returns the number of the handle's opening, or 0: the handle is not open. */
static uint64_t opening_of(int portid)
{
	const struct open_port *port;
	uint64_t opening;

	pthread_mutex_lock(&lock);
	port = find_port(portid);
	opening = port ? port->opening : 0;
	pthread_mutex_unlock(&lock);
	return opening;
}

/* Takes the lock as take_shielded does if the handle is still that of this
 * opening.  False: another thread has closed the port, and the lock is not
 * taken. */
static bool take_port(int portid, uint64_t opening, int *cancel)
{
	const struct open_port *port;

	take_shielded(cancel);
	port = find_port(portid);
	if (port && port->opening == opening)
		return true;
	give_shielded(*cancel);
	return false;
}

/* Adds an entry.  Returns 0, or EMFILE: the table is full. */
static int add_port(int fd, int connection)
{
	int err = EMFILE;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < OPEN_MAX_PORTS && err; i++) {
		if (ports[i].is_used)
			continue;
		ports[i] = (struct open_port){
			.is_used = true,
			.fd = fd,
			.connection = connection,
			.opening = ++openings,
		};
		err = 0;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

static int open_shielded(const char *call, const char *ca_name, int portnum)
{
	struct fabric_proto m = {.kind = FABRIC_PROTO_OPEN};
	int fd, connection, err;

	if (!u_fabric_is_used() ||
	    (ca_name && strcmp(ca_name, U_FABRIC_CA) != 0))
		return u_no_port(call);
	err = u_fabric_port(portnum, &m.number);
	if (err)
		return fail_with(-err);
	connection = u_fabric_query(&m, &fd);
	if (connection < 0)
		return fail_with(-connection);
	fd = fd_identity_note_shown(fd);
	connection = fd_identity_note(connection);
	err = fd >= 0 ? add_port(fd, connection) : EPROTO;
	if (!err)
		return fd;
	fd_identity_close(fd);
	fd_identity_close(connection);
	return fail_with(err);
}

/* A thread that is cancelled after the fabric has opened the port, and before
 * the table has it, would leave the port open for ever.  call: the function of
 * the ABI that the program has called. */
static int open_for(const char *call, const char *ca_name, int portnum)
{
	int cancel, fd;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	fd = open_shielded(call, ca_name, portnum);
	pthread_setcancelstate(cancel, NULL);
	return fd;
}

int umad_open_port(const char *ca_name, int portnum)
{
	return open_for("umad_open_port", ca_name, portnum);
}

int umad_open_smi_port(const char *ca_name, int portnum)
{
	return open_for("umad_open_smi_port", ca_name, portnum);
}

static int close_shielded(int portid)
{
	struct open_port old = {false}, *port;

	pthread_mutex_lock(&lock);
	port = find_port(portid);
	if (port) {
		old = *port;
		memset(port, 0, sizeof(*port));
	}
	pthread_mutex_unlock(&lock);
	if (!old.is_used)
		return fail_with(EINVAL);
	fd_identity_close(old.fd);
	fd_identity_close(old.connection);
	return 0;
}

/* A thread that is cancelled in its first close would leave the descriptors and
 * the port open for ever. */
int umad_close_port(int portid)
{
	int cancel, err;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	err = close_shielded(portid);
	pthread_setcancelstate(cancel, NULL);
	return err;
}

int umad_get_fd(int portid)
{
	return opening_of(portid) ? portid : fail_with(EINVAL);
}

/* Waits until the socket has one of `events`, an error or a hang-up.  Returns
 * 0; -ETIMEDOUT: timeout_ms have passed (negative: there is no limit); -EINTR:
 * the program has caught a signal, whether or not its handler has SA_RESTART;
 * or -EIO: poll(2) has failed. */
static int wait_for(int fd, short events, int timeout_ms)
{
	struct pollfd p = {.fd = fd, .events = events};
	int n = poll(&p, 1, timeout_ms);

	if (n > 0)
		return 0;
	if (!n)
		return -ETIMEDOUT;
	return errno == EINTR ? -EINTR : -EIO;
}

/* Fails umad_poll or umad_recv after wait_for has returned err.  As with
 * rdma-core, a signal that the program has caught ends the call with -EIO, and
 * errno is EINTR. */
static int fail_wait(int err)
{
	errno = -err;
	return err == -EINTR ? -EIO : err;
}

/* Has umad_recv failed at the port because the fabric has ended? */
static bool is_dead(int portid)
{
	const struct open_port *port;
	bool is;

	pthread_mutex_lock(&lock);
	port = find_port(portid);
	is = port && port->is_dead;
	pthread_mutex_unlock(&lock);
	return is;
}

/* Notes that umad_recv fails at the port.  Returns whether it had failed there
 * before. */
static bool note_death(int portid, uint64_t opening)
{
	struct open_port *port;
	bool was = false;

	pthread_mutex_lock(&lock);
	port = find_port(portid);
	if (port && port->opening == opening) {
		was = port->is_dead;
		port->is_dead = true;
	}
	pthread_mutex_unlock(&lock);
	return was;
}

/* Waits for the timeout of a call, but at most for DEAD_WAIT_MS.  A signal ends
 * the wait. */
static void wait_dead(int timeout_ms)
{
	bool is_short = timeout_ms >= 0 && timeout_ms < DEAD_WAIT_MS;

	poll(NULL, 0, is_short ? timeout_ms : DEAD_WAIT_MS);
}

/* Fails with EIO, since the fabric has ended.  At a port where that has
 * happened before, waits first. */
static int fail_dead(int portid, uint64_t opening, int timeout_ms)
{
	if (note_death(portid, opening))
		wait_dead(timeout_ms);
	u_say("umad: umad_recv fails with EIO, now and whenever it is called: "
	      "the fabric's process has ended; start `adverb fabric` and then "
	      "this program again");
	return fail_with(EIO);
}

/* The socket of a dead fabric is always readable, so the call waits first if
 * umad_recv has failed at the port. */
int umad_poll(int portid, int timeout_ms)
{
	int err;

	if (!opening_of(portid))
		return fail_with(EINVAL);
	if (is_dead(portid))
		wait_dead(timeout_ms);
	err = wait_for(portid, POLLIN, timeout_ms);
	return err ? fail_wait(err) : 0;
}

/* Says why no datagram goes to the fabric.  err: the errno of send(2), or 0 if
 * send(2) has taken only a part of the datagram. */
static void say_lost(int err)
{
	u_say("umad: umad_send fails with EIO: the fabric, a process of adverb "
	      "fabric, has ended, or this program has replaced the socket of "
	      "the port (%s); start the fabric again, and then this program",
	      err ? strerror(err) : "only a part of the datagram was sent");
}

/* Says why a datagram with a MAD of `length` bytes was not sent.  err: as in
 * say_lost. */
static void say_unsent(int err, int length)
{
	const char *remedy = remedy_of(err, NULL);

	if (err == EMSGSIZE)
		u_say("umad: a management datagram of %d bytes is longer than "
		      "this machine's socket buffers take; raise the sysctl "
		      "net.core.wmem_max",
		      length);
	else if (remedy)
		u_say("umad: umad_send fails with EIO: the kernel does not "
		      "take a management datagram of %d bytes to the fabric: "
		      "%s; %s, and send the datagram again",
		      length, strerror(err), remedy);
	else
		say_lost(err);
}

/* Waits until the socket has room.  A signal does not end the wait: with an
 * adapter of the kernel umad_send is one write(2), which does not wait and so
 * does not fail with EINTR.  Returns whether the socket has room. */
static bool await_room(int portid)
{
	int err;

	do
		err = wait_for(portid, POLLOUT, -1);
	while (err == -EINTR);
	return !err;
}

/* Sends a message, without a wait.  Returns how many bytes were sent, or
 * -errno; -EINVAL: another thread has closed the port. */
static ssize_t send_now(int portid, uint64_t opening, const void *bytes,
			size_t n)
{
	ssize_t sent;
	int cancel;

	if (!take_port(portid, opening, &cancel))
		return -EINVAL;
	sent = send(portid, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (sent < 0)
		sent = -errno;
	give_shielded(cancel);
	return sent;
}

int umad_send(int portid, int agentid, void *umad, int length, int timeout_ms,
	      int retries)
{
	struct ib_user_mad *mad = umad;
	size_t bytes = sizeof(*mad) + (size_t)(length > 0 ? length : 0);
	uint64_t opening = opening_of(portid);
	ssize_t n;

	if (!umad || length < 0 || !opening)
		return fail_with(EINVAL);
	mad->agent_id = (uint32_t)agentid;
	mad->timeout_ms = (uint32_t)timeout_ms;
	mad->retries = (uint32_t)retries;
	do
		n = send_now(portid, opening, umad, bytes);
	while (n == -EINTR || (n == -EAGAIN && await_room(portid)));
	if (n == (ssize_t)bytes)
		return 0;
	if (n == -EINVAL)
		return fail_with(EINVAL);
	say_unsent(n < 0 ? (int)-n : 0, length);
	return fail_with(EIO);
}

/* Receives a message with the flags of recv(2), without a wait.  Returns the
 * message's length; -EIO: the fabric has ended; or another -errno. */
static ssize_t receive_now(int fd, void *umad, size_t room, int flags)
{
	ssize_t n;

	/* ECONNRESET: the fabric has ended, and has left messages unread.  The
	 * last messages of the fabric follow. */
	do
		n = recv(fd, umad, room, flags | MSG_DONTWAIT);
	while (n < 0 && errno == ECONNRESET);
	if (n < 0)
		return errno == EAGAIN ? -EWOULDBLOCK : -errno;
	return n ? n : -EIO; /* umad_recv says why */
}

/* Takes the next message if it fits in the buffer, which has room for a header
 * and *length bytes.  Returns the message's length; -ENOSPC: *length is now the
 * length of its MAD, and the message stays; -EWOULDBLOCK: there is no message;
 * -EIO: the fabric has ended; or another -errno. */
static ssize_t take_message(int fd, void *umad, int *length)
{
	size_t room = sizeof(struct ib_user_mad) +
		      (size_t)(*length > 0 ? *length : 0);
	ssize_t n = receive_now(fd, umad, room, MSG_PEEK | MSG_TRUNC);

	if (n > 0 && (size_t)n > room) {
		*length = (int)(n - (ssize_t)sizeof(struct ib_user_mad));
		return -ENOSPC;
	}
	/* a process that shares the socket may have taken the message */
	return n > 0 ? receive_now(fd, umad, room, 0) : n;
}

/* As take_message, for a handle; -EINVAL: another thread has closed the port.
 */
static ssize_t take_now(int portid, uint64_t opening, void *umad, int *length)
{
	ssize_t n;
	int cancel;

	if (!take_port(portid, opening, &cancel))
		return -EINVAL;
	n = take_message(portid, umad, length);
	give_shielded(cancel);
	return n;
}

int umad_recv(int portid, void *umad, int *length, int timeout_ms)
{
	uint64_t opening = opening_of(portid);
	ssize_t n;
	int err;

	errno = 0;
	if (!umad || !length || *length < 0 || !opening)
		return fail_with(EINVAL);
	do {
		err = timeout_ms ? wait_for(portid, POLLIN, timeout_ms) : 0;
		if (err)
			return fail_wait(err);
		n = take_now(portid, opening, umad, length);
		/* after a wait, -EWOULDBLOCK says that another thread or
		 * process took the message */
	} while (n == -EWOULDBLOCK && timeout_ms < 0);
	if (n == -EIO)
		return fail_dead(portid, opening, timeout_ms);
	if (n < 0)
		return fail_with((int)-n);
	if (n < (ssize_t)sizeof(struct ib_user_mad))
		return fail_with(EIO);
	*length = (int)(n - (ssize_t)sizeof(struct ib_user_mad));
	return (int)((const struct ib_user_mad *)umad)->agent_id;
}

/* Sends a request on the connection of a handle, and waits for the answer,
 * which replaces *m.  Returns 0 or -errno. */
static int ask_on(int portid, struct fabric_proto *m)
{
	const struct open_port *port;
	int err = -EINVAL, cancel;

	take_shielded(&cancel);
	port = find_port(portid);
	/* A program that closes all descriptors that it did not open may have
	 * closed the connection and reused the number. */
	if (port)
		err = fd_identity_holds(port->connection)
			      ? fabric_client_ask(port->connection, m, NULL)
			      : -EBADF;
	give_shielded(cancel);
	if (err == -EBADF)
		u_say("umad: no agent can be registered or removed: this "
		      "program has closed or replaced the port's connection to "
		      "the fabric; close only descriptors that the program has "
		      "opened");
	return err;
}

/* Returns the agent's number or -errno, with errno set. */
static int register_agent(int portid, const struct fabric_agent *agent)
{
	struct fabric_proto m = {.kind = FABRIC_PROTO_REGISTER,
				 .agent = *agent};
	int err = ask_on(portid, &m);

	if (err)
		return fail_with(-err);
	return m.number < FABRIC_AGENTS ? (int)m.number : fail_with(EPROTO);
}

/* Does the work of register_agent for the calls that, as those of rdma-core,
 * return -EPERM for each error of the registration; errno has the error.
 * Returns the agent's number; -EINVAL: the handle is not open; or -EPERM. */
static int register_or_eperm(int portid, const struct fabric_agent *agent)
{
	int id;

	if (!opening_of(portid))
		return fail_with(EINVAL);
	id = register_agent(portid, agent);
	return id < 0 ? -EPERM : id;
}

/* The agent gets the OUI of OpenIB: an agent of a vendor's class has an OUI,
 * and this call has no argument for one. */
int umad_register(int portid, int mgmt_class, int mgmt_version,
		  uint8_t rmpp_version, long method_mask[16 / sizeof(long)])
{
	struct fabric_agent agent = {.mgmt_class = (uint8_t)mgmt_class,
				     .class_version = (uint8_t)mgmt_version,
				     .rmpp_version = rmpp_version,
				     .oui = 0x001405};

	if (mgmt_class < 0 || mgmt_class > UINT8_MAX || mgmt_version < 0 ||
	    mgmt_version > UINT8_MAX)
		return fail_with(EINVAL);
	if (method_mask)
		memcpy(agent.methods, method_mask, METHOD_BYTES);
	return register_or_eperm(portid, &agent);
}

int umad_register_oui(int portid, int mgmt_class, uint8_t rmpp_version,
		      uint8_t oui[3], long method_mask[16 / sizeof(long)])
{
	struct fabric_agent agent = {.mgmt_class = (uint8_t)mgmt_class,
				     .class_version = 1,
				     .rmpp_version = rmpp_version};

	if (!fabric_has_oui(mgmt_class) || !oui)
		return fail_with(EINVAL);
	agent.oui = (uint32_t)oui[0] << 16 | (uint32_t)oui[1] << 8 | oui[2];
	if (method_mask)
		memcpy(agent.methods, method_mask, METHOD_BYTES);
	return register_or_eperm(portid, &agent);
}

/* Does the kernel take an agent of this class with UMAD_USER_RMPP and this
 * version of RMPP?  The kernel refuses each such agent of class 0. */
static bool may_use_rmpp(const struct umad_reg_attr *attr)
{
	return attr->mgmt_class &&
	       (!attr->rmpp_version ||
		(attr->rmpp_version == 1 && fabric_has_rmpp(attr->mgmt_class)));
}

/* The ABI demands a positive errno from this call.  The other calls of this
 * file return a negative one.  With UMAD_USER_RMPP the program itself handles
 * RMPP, so the fabric treats the agent's MADs as single datagrams. */
int umad_register2(int port_fd, struct umad_reg_attr *attr, uint32_t *agent_id)
{
	struct fabric_agent agent;
	int id;

	if (!attr || !agent_id || (attr->flags & ~(uint32_t)UMAD_USER_RMPP) ||
	    (attr->flags && !may_use_rmpp(attr)))
		return EINVAL;
	agent = (struct fabric_agent){
		.methods = {attr->method_mask[0], attr->method_mask[1]},
		.oui = attr->oui,
		.mgmt_class = attr->mgmt_class,
		.class_version = attr->mgmt_class_version,
		.rmpp_version =
			attr->flags & UMAD_USER_RMPP ? 0 : attr->rmpp_version,
	};
	id = register_agent(port_fd, &agent);
	if (id < 0)
		return -id;
	*agent_id = (uint32_t)id;
	return 0;
}

int umad_unregister(int portid, int agentid)
{
	struct fabric_proto m = {.kind = FABRIC_PROTO_UNREGISTER,
				 .number = (uint32_t)agentid};
	int err = ask_on(portid, &m);

	return err ? fail_with(-err) : 0;
}
