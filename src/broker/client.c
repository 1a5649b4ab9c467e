/* SPDX-License-Identifier: BSD-2-Clause */
/* The broker's client side; see client.h. */
#include "broker/client.h"

#include "broker/client_send.h"
#include "broker/client_wait.h"
#include "broker/port_holder.h"
#include "broker/fd_check.h"
#include "broker/other_version.h"
#include "broker/peer_pages.h"
#include "broker/shared_page.h"
#include "broker/procfs.h"
#include "broker/proto.h"
#include "broker/reason.h"
#include "broker/steer.h"
#include "broker/trust.h"
#include "util/fd_identity.h"
#include "util/monotonic.h"
#include "util/printable.h"
#include "util/remedy.h"
#include "util/scm_rights.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define ALONE_MS    1000 /* after a refusal, until the next attempt */
#define WAIT_MAX_MS 1000 /* the longest wait between two attempts */
/* If the dead broker was of another user, the time for which only that user's
 * programs start a broker: perhaps they do not trust a broker of this user. */
#define OTHER_USER_MS 1000

#define INVALID_ANSWER                                                         \
	"the broker adverbd gives an invalid answer: install one version of "  \
	"adverb, and end the programs that use another one"

static void close_fd(int *fd)
{
	fd_identity_close(*fd);
	*fd = -1;
}

/* Whether the broker has yet to welcome or refuse this client. */
static bool is_greeting(const struct client *c)
{
	return c->state == CLIENT_ASKING || c->state == CLIENT_GREETING;
}

/* Notes that there is no broker. err: -errno; reason: the sentence for err, a
 * constant or c->why.  The client looks for a broker again at due_ms. */
static void lose_broker(struct client *c, int err, const char *reason)
{
	if (is_greeting(c) || c->state == CLIENT_UP)
		start_lost(c->broker.visible_pid, monotonic_ms());
	if (c->state == CLIENT_UP || c->state == CLIENT_ALONE) {
		c->lost_ms = monotonic_ms();
		c->wait_ms = 0;
	} else {
		c->wait_ms = c->wait_ms ? 2 * c->wait_ms : 1;
		if (c->wait_ms > WAIT_MAX_MS)
			c->wait_ms = WAIT_MAX_MS;
	}
	close_fd(&c->unix_fd);
	c->state = CLIENT_LOST;
	c->err = err;
	c->reason = reason;
	c->due_ms = monotonic_ms() + c->wait_ms;
	peer_pages_forget(c->pages);
}

/* Notes the user and the pid of a broker.  Returns whether that broker may
 * serve this process. */
static bool note_broker(struct client *c, const struct ucred *who)
{
	enum trust trust = trust_in(who->uid);

	c->broker.user = who->uid;
	c->broker.visible_pid = who->pid;
	c->broker.is_other_user = who->uid != geteuid();
	c->is_named = trust == TRUST_NAMED;
	return trust != TRUST_NOT;
}

/* Whether there is a connection to a broker that may serve this process.  Looks
 * at the broker's user once more: since connect_to looked, another process may
 * have taken over the address. */
static bool look_at_broker(struct client *c)
{
	struct ucred who = {.uid = (uid_t)-1};
	socklen_t length = sizeof(who);

	return c->unix_fd >= 0 &&
	       !getsockopt(c->unix_fd, SOL_SOCKET, SO_PEERCRED, &who,
			   &length) &&
	       note_broker(c, &who);
}

/* Writes to c->why which limit was reached, and its value.  The limit on
 * descriptors in flight is the hard limit on open files, to which proto_send
 * raises the soft limit. */
static void name_limit(struct client *c, int err)
{
	struct rlimit files = {0};

	getrlimit(RLIMIT_NOFILE, &files);
	if (err == -EMFILE)
		snprintf(c->why, sizeof(c->why),
			 "this program's limit on open files, %llu, is "
			 "reached: %s",
			 (unsigned long long)files.rlim_cur,
			 remedy_of(-err, ""));
	else
		snprintf(c->why, sizeof(c->why),
			 "this user has more descriptors in flight than the "
			 "hard limit on open files, %llu, allows: %s",
			 (unsigned long long)files.rlim_max,
			 remedy_of(ETOOMANYREFS, ""));
}

/* Notes that the broker has refused this client, or that this client has
 * rejected the broker; c->why says why.  The client tries again after ALONE_MS.
 */
static void enter_alone(struct client *c, int err)
{
	close_fd(&c->unix_fd);
	c->reason = c->why;
	c->err = err;
	c->state = CLIENT_ALONE;
	c->due_ms = monotonic_ms() + ALONE_MS;
}

/*
 * Asks the broker for its introduction.  When the broker has accepted a
 * connection of its own user, it lets the client bring descriptors
 * (admission.c).  Any answer shows that the broker has accepted the connection.
 */
static int ask_first(struct client *c)
{
	struct proto m = {.kind = PROTO_WHO};

	c->state = CLIENT_ASKING;
	return client_send_message(c, &m, NULL);
}

/* Ends the connection, because a message cannot be sent or received.  err:
 * -errno; verb: what this program cannot do, in the words of the message to the
 * user. */
static void lose_by_error(struct client *c, int err, const char *verb)
{
	char who[32] = "";

	if (c->broker.visible_pid)
		snprintf(who, sizeof(who), ", process %d",
			 (int)c->broker.visible_pid);
	snprintf(c->why, sizeof(c->why),
		 "this program cannot %s the broker adverbd%s: %s; start the "
		 "program again once that is mended",
		 verb, who, strerror(-err));
	lose_broker(c, err, c->why);
}

/* Ends the connection if err, the result of sending a message, is an error
 * other than -EPIPE.  After -EPIPE the broker has gone, and its last message,
 * which may say why, is still to be read. */
static void lose_for(struct client *c, int err)
{
	if (err == -ETOOMANYREFS) {
		name_limit(c, err);
		lose_broker(c, err, c->why);
	} else if (err && err != -EPIPE) {
		lose_by_error(c, err, "send a message to");
	}
}

static void say_hello(struct client *c)
{
	int err;

	if (!look_at_broker(c)) {
		trust_refusal(c->broker.user, c->broker.visible_pid, c->why,
			      sizeof(c->why));
		enter_alone(c, -EACCES);
		return;
	}
	scm_rights_let_bring(c->unix_fd, true);
	c->state = CLIENT_GREETING;
	/* A client with a class waits without a limit: if the client closed
	 * this connection, the broker would take the client for dead. */
	c->due_ms = c->class ? UINT64_MAX : monotonic_ms() + c->patience_ms;
	err = client_send_hello(c);
	lose_for(c, err == -EPERM ? ask_first(c) : err);
}

/* Says hello to the broker of this user, which has answered ask_first. */
static void say_hello_again(struct client *c)
{
	c->state = CLIENT_GREETING;
	lose_for(c, client_send_hello(c));
}

/*
 * Whether this process may start a broker.  After the death of a broker of
 * another user, only that user's programs can take over the port, so this
 * process leaves the start to them for OTHER_USER_MS.  A process that has never
 * had a broker does not know the dead broker's user, and finds out which user
 * has the port.
 */
static bool may_start(struct client *c)
{
	if (!c->class && !c->lost_ms) {
		c->broker.is_other_user = port_holder_is_other_user();
		c->lost_ms = monotonic_ms();
	}
	return !c->broker.is_other_user ||
	       monotonic_ms() - c->lost_ms >= OTHER_USER_MS;
}

/* Connects to the broker.  Returns 0 or -errno.  If the broker is not trusted,
 * returns 0 without a connection, and say_hello says why. */
static int connect_to(struct client *c)
{
	struct ucred who;
	int fd = proto_look(PROTO_VERSION, &who);

	if (fd || !note_broker(c, &who))
		return fd;
	fd = proto_connect(PROTO_VERSION);
	if (fd < 0)
		return fd;
	c->unix_fd = fd_identity_note(fd);
	return 0;
}

/* Says hello on the new connection.  If err is not 0, there is no connection,
 * and the client tries again later. */
static void greet_broker(struct client *c, int err)
{
	if (!err) {
		say_hello(c);
		return;
	}
	if (*c->start.sentence)
		memcpy(c->why, c->start.sentence, sizeof(c->why));
	else if (err == -EMFILE)
		name_limit(c, err);
	else
		reason_unreached(-err, c->why);
	lose_broker(c, err, c->why);
}

/* Acts on the result of start_begin or start_turn.  Tells the user the sentence
 * of the start, except in a client_open that fails: client_open returns the
 * sentence. */
static void look_at_start(struct client *c, int err)
{
	enum client_word word =
		err == -ENOTRECOVERABLE ? CLIENT_SAYS_ENDS : CLIENT_SAYS_THREAD;

	if (*c->start.sentence && c->say && (!err || c->class))
		c->say(word, c->start.sentence);
	if (err == -EINPROGRESS) {
		c->state = CLIENT_STARTING;
		c->err = -EAGAIN;
		c->due_ms = c->start.limit_ms;
	} else {
		greet_broker(c, err ? err : connect_to(c));
	}
}

static void search_broker(struct client *c)
{
	int err = connect_to(c);

	c->start.sentence[0] = '\0';
	if (err != -ECONNREFUSED)
		greet_broker(c, err);
	else if (!may_start(c))
		greet_broker(c, -EAGAIN);
	else
		look_at_start(c, start_begin(&c->start, monotonic_ms(),
					     c->patience_ms));
}

static void show_tree(struct client *c)
{
	struct proto m = {.kind = PROTO_TREE, .brings = PROTO_FD_TREE};

	if (fd_identity_holds(c->tree_fd) && c->state == CLIENT_UP &&
	    !c->broker.is_other_user)
		client_send_message(c, &m, &c->tree_fd);
}

void client_tree(struct client *c, int folder_fd)
{
	close_fd(&c->tree_fd);
	c->tree_fd = fd_identity_note(folder_fd);
	show_tree(c);
}

/* Whether a welcome makes sense: its class is that of this client, or the first
 * that this client gets, and its descriptors are of the right kinds. */
static bool is_sensible(const struct client *c, const struct proto *m,
			const int fds[PROTO_FDS])
{
	if ((fds[2] >= 0 && !fd_check_is_messages(fds[2])) ||
	    (fds[4] >= 0 && !fd_check_is_wake(fds[4])))
		return false;
	if (c->class)
		return m->value == c->class &&
		       (fds[0] < 0 || fd_check_is_messages(fds[0]));
	return m->value && m->value <= STEER_CLASS_MAX && fds[0] >= 0 &&
	       fd_check_is_receiver(fds[0], c->unix_fd);
}

/* Takes ownership of *from as *to, and closes the descriptor that *to was. */
static void take_fd(int *to, int *from)
{
	close_fd(to);
	*to = fd_identity_note(*from);
	*from = -1;
}

/* Puts the eventfd of a broker of another user in the place of this process's
 * own: other processes get that eventfd from the broker, and wake this process
 * by it. */
static void take_wake_fd(const struct client *c, int fd)
{
	if (fd >= 0 && c->broker.is_other_user &&
	    fd_identity_holds(c->peer_wake_fd) &&
	    dup3(fd, c->peer_wake_fd, O_CLOEXEC) >= 0)
		fd_identity_mark(c->peer_wake_fd);
}

/* Takes a welcome.  False: the welcome makes no sense. */
static bool take_welcome(struct client *c, const struct proto *m,
			 int fds[PROTO_FDS])
{
	if (!is_sensible(c, m, fds))
		return false;
	if (!c->class) {
		c->class = m->value;
		take_fd(&c->udp_fd, &fds[0]);
		take_wake_fd(c, fds[4]);
		if (fds[1] >= 0)
			c->page =
				shared_page_map(fds[1], PROT_READ | PROT_WRITE);
	} else if (fds[0] >= 0 && c->broker.is_other_user) {
		take_fd(&c->udp_fd, &fds[0]);
		c->has_new_relay = true;
	}
	if (fds[2] >= 0 && !c->broker.is_other_user)
		take_fd(&c->fd_store_fd, &fds[2]);
	if (c->broker.is_other_user)
		c->token = m->token;
	c->broker.pid = (pid_t)m->about;
	c->state = CLIENT_UP;
	c->due_ms = UINT64_MAX;
	show_tree(c);
	return true;
}

static void take_refusal(struct client *c, const struct proto *m)
{
	int err = m->value && m->value < 4096 ? -(int)m->value : -EPROTO;

	snprintf(c->why, sizeof(c->why), "%.*s", (int)sizeof(m->why) - 1,
		 m->why);
	printable_make(c->why);
	/* The port may be held by a broker of another version.
	 * other_version_name asks that broker and waits for the answer, so it
	 * is called only in client_open, where there is no class yet. */
	if (err == -EADDRINUSE && !c->class)
		other_version_name(c->why, sizeof(c->why));
	enter_alone(c, err);
}

static bool take_arena(const struct proto *m, int fds[PROTO_FDS],
		       struct client_news *news)
{
	*news = (struct client_news){.what = CLIENT_NEWS_ARENA,
				     .class = m->value,
				     .arena = (enum client_arena)m->about,
				     .arena_at = m->arena,
				     .peer_wake_fd = fds[4]};
	if (m->about > PROTO_ARENA_GONE ||
	    (m->about == PROTO_ARENA_HERE &&
	     (!m->arena.pid || fds[4] < 0 || !fd_check_is_wake(fds[4]))))
		news->arena = CLIENT_ARENA_NONE;
	if (news->arena == CLIENT_ARENA_HERE)
		fds[4] = -1;
	return true;
}

static bool take_source(const struct proto *m, struct client_news *news)
{
	*news = (struct client_news){.what = CLIENT_NEWS_SOURCE,
				     .class = m->value,
				     .from.port = (uint16_t)m->about,
				     .is_peers = m->scope == 1};
	memcpy(news->from.ip, m->local, 16);
	memcpy(news->to.ip, m->peer, 16);
	return true;
}

/* Takes an answer to ask_first or to a hello.  True: it is news. */
static bool take_greeting(struct client *c, const struct proto *m,
			  int fds[PROTO_FDS], struct client_news *news)
{
	if (m->kind == PROTO_REFUSED)
		take_refusal(c, m);
	else if (c->state == CLIENT_ASKING && m->kind == PROTO_WHO_IS)
		say_hello_again(c);
	else if (c->state == CLIENT_ASKING || m->kind != PROTO_WELCOME ||
		 !take_welcome(c, m, fds))
		lose_broker(c, -EPROTO, INVALID_ANSWER);
	news->what = CLIENT_NEWS_BACK;
	return c->state == CLIENT_UP;
}

/* Takes one message; true if it is news, which is then in *news. */
static bool take_message(struct client *c, const struct proto *m,
			 int fds[PROTO_FDS], struct client_news *news)
{
	if (is_greeting(c))
		return take_greeting(c, m, fds, news);
	if (m->kind == PROTO_PAGE_IS)
		peer_pages_take(c->pages, m->value, fds[1]);
	if (m->kind == PROTO_ARENA_IS)
		return take_arena(m, fds, news);
	if (m->kind == PROTO_SOURCE_IS)
		return take_source(m, news);
	if (m->kind == PROTO_DIED) {
		news->what = CLIENT_NEWS_DIED;
		return true;
	}
	if (m->kind != PROTO_ANSWER || m->value > PROTO_PEER_LEFT)
		return false;
	*news = (struct client_news){.what = CLIENT_NEWS_PEER,
				     .qpn = m->about,
				     .peer = (enum client_peer)m->value};
	memcpy(news->host, m->peer, 16);
	return true;
}

static void name_silent(struct client *c)
{
	pid_t pid = c->broker.visible_pid;
	char who[48] = "";

	if (pid)
		snprintf(who, sizeof(who), " (process %d%s)", (int)pid,
			 procfs_is_stopped(pid) ? ", stopped" : "");
	snprintf(c->why, sizeof(c->why),
		 "the broker adverbd%s has not answered for %u s: let it run "
		 "(kill -CONT, a debugger), or end it",
		 who, (unsigned)(c->patience_ms / 1000));
}

/* Ends a connection from which nothing more can be read, because of err.  m:
 * the message of another version, if err is -EPROTONOSUPPORT. */
static void hang_up(struct client *c, int err, const struct proto *m)
{
	const struct ucred who = {.pid = c->broker.visible_pid,
				  .uid = c->broker.user};

	if (err == -EPROTONOSUPPORT && is_greeting(c)) {
		snprintf(c->why, sizeof(c->why), "the broker adverbd, ");
		other_version_say(&who, m, c->why + strlen(c->why),
				  sizeof(c->why) - strlen(c->why));
		enter_alone(c, err);
		return;
	}
	if (err == -EPIPE) {
		lose_broker(c, err,
			    "the broker adverbd has closed the connection, or "
			    "has ended; start this program again");
	} else if (err == -EPROTO || err == -EPROTONOSUPPORT) {
		lose_broker(c, err, INVALID_ANSWER);
	} else if (err == -EMFILE) {
		name_limit(c, err);
		lose_broker(c, err, c->why);
	} else {
		lose_by_error(c, err, "receive a message of");
	}
}

static bool is_lost(int fd)
{
	return fd >= 0 && !fd_identity_holds(fd);
}

/* Has the program closed the connection, the receive socket or the fd store?
 * Then this client sends nothing to a broker: the descriptor numbers may now be
 * those of the program's files, and a message would bring these files to the
 * broker. */
static bool has_lost_files(const struct client *c)
{
	return is_lost(c->unix_fd) || is_lost(c->udp_fd) ||
	       is_lost(c->fd_store_fd);
}

/* Whether there is a connection; looks for the broker when that is due. */
static bool has_connection(struct client *c)
{
	if (has_lost_files(c)) {
		close_fd(&c->unix_fd);
		c->state = CLIENT_LOST;
		c->due_ms = UINT64_MAX;
		return false;
	}
	if (c->state == CLIENT_STARTING)
		look_at_start(c, start_turn(&c->start, monotonic_ms()));
	if (c->state == CLIENT_LOST || c->state == CLIENT_ALONE) {
		if (monotonic_ms() < c->due_ms)
			return false;
		search_broker(c);
	}
	return c->unix_fd >= 0;
}

/* Can the client use a message although its limit on open files has kept
 * descriptors of the message out?  A client that has its class needs none of
 * them, except those of the relay of another user's broker.  If such a client
 * closed the connection, the broker would give the client's class and receive
 * socket to another process. */
static bool needs_no_files(const struct client *c)
{
	return c->class && !(is_greeting(c) && c->broker.is_other_user);
}

bool client_turn(struct client *c, struct client_news *news)
{
	bool is_news = false;

	if (!has_connection(c))
		return false;
	while (c->unix_fd >= 0 && !is_news) {
		struct proto m = {0};
		int fds[PROTO_FDS], err;

		err = proto_receive(c->unix_fd, &m, fds);
		if (err == -EAGAIN)
			break;
		if (err == -ECONNRESET)
			/* -ECONNRESET comes once: the broker's last message is
			 * next */
			continue;
		if (err == -EMFILE && needs_no_files(c))
			err = 0;
		if (!err)
			is_news = take_message(c, &m, fds, news);
		for (int i = 0; i < PROTO_FDS; i++)
			if (fds[i] >= 0) /* take_message has not taken it */
				close(fds[i]);
		if (err)
			hang_up(c, err, &m);
	}
	if (is_greeting(c) && monotonic_ms() >= c->due_ms) {
		name_silent(c);
		lose_broker(c, -ETIMEDOUT, c->why);
	}
	return is_news;
}

int client_fd(const struct client *c)
{
	return c->state == CLIENT_STARTING ? c->start.status_fd : c->unix_fd;
}

uint64_t client_due_ms(const struct client *c)
{
	return c->due_ms;
}

int client_open(struct client *c, const struct client_want *want,
		const char **why)
{
	struct client_wait wait;
	struct client_news news;

	*c = (struct client){.unix_fd = -1,
			     .udp_fd = -1,
			     .fd_store_fd = -1,
			     .tree_fd = -1,
			     .arena_fd = want->arena_fd,
			     .peer_wake_fd = want->peer_wake_fd,
			     .patience_ms = want->patience_ms,
			     .say = want->say};
	client_wait_begin(&wait, want->patience_ms);
	for (;;) {
		client_turn(c, &news);
		if (c->state == CLIENT_UP) {
			*why = "";
			return 0;
		}
		if (!client_wait_goes_on(c, &wait))
			break;
		client_wait_nap(c, &wait);
	}
	*why = c->reason ? c->reason : "the broker adverbd does not answer";
	client_close(c);
	return c->err ? c->err : -ETIMEDOUT;
}

bool client_ask(struct client *c, uint32_t qpn)
{
	struct proto m = {.kind = PROTO_ASK, .value = qpn};

	return c->state == CLIENT_UP && !client_send_message(c, &m, NULL);
}

bool client_ask_source(struct client *c, uint32_t class,
		       const struct inaddr *from, const struct inaddr *to)
{
	struct proto m = {
		.kind = PROTO_SOURCE, .value = class, .about = from->port};

	memcpy(m.local, from->ip, 16);
	memcpy(m.peer, to->ip, 16);
	return c->state == CLIENT_UP && !client_send_message(c, &m, NULL);
}

bool client_ask_remote(struct client *c, uint32_t qpn, const uint8_t local[16],
		       const uint8_t host[16], uint32_t scope)
{
	struct proto m = {
		.kind = PROTO_ASK_REMOTE, .value = qpn, .scope = scope};

	memcpy(m.local, local, 16);
	memcpy(m.peer, host, 16);
	return c->state == CLIENT_UP && !client_send_message(c, &m, NULL);
}

bool client_ask_arena(struct client *c, uint32_t class)
{
	struct proto m = {.kind = PROTO_ARENA, .value = class};

	return c->state == CLIENT_UP && !client_send_message(c, &m, NULL);
}

int client_new_relay(struct client *c)
{
	int fd;

	if (!c->has_new_relay || !fd_identity_holds(c->udp_fd))
		return -1;
	fd = fcntl(c->udp_fd, F_DUPFD_CLOEXEC, 0);
	c->has_new_relay = fd < 0;
	return fd;
}

void *client_page(const struct client *c)
{
	return c->page;
}

bool client_page_of(struct client *c, uint32_t class, const void **page)
{
	struct proto m = {.kind = PROTO_PAGE, .value = class};

	if (!c->pages)
		c->pages = peer_pages_new();
	if (!class || class > STEER_CLASS_MAX || !c->pages)
		return !*page;
	if (peer_pages_find(c->pages, class, page))
		return true;
	if (c->state == CLIENT_UP && peer_pages_is_due(c->pages, class) &&
	    !client_send_message(c, &m, NULL))
		peer_pages_asked(c->pages, class);
	return false;
}

void client_close(struct client *c)
{
	shared_page_unmap(c->page);
	c->page = NULL;
	peer_pages_free(c->pages);
	c->pages = NULL;
	close_fd(&c->udp_fd);
	close_fd(&c->fd_store_fd);
	close_fd(&c->tree_fd);
	close_fd(&c->unix_fd);
	start_drop(&c->start);
	c->state = CLIENT_LOST;
}
