/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client of the broker in each process: finds or starts the broker, holds
 * the class and the receive socket of the process, and asks about other
 * processes.
 *
 *	state		event				next state
 *	LOST		a broker listens		GREETING
 *	LOST		this process starts a broker	STARTING
 *	LOST, STARTING	the broker is not trusted	ALONE
 *	STARTING	that broker serves		GREETING
 *	STARTING	no broker can be started	LOST
 *	GREETING	the broker welcomes the client	UP
 *	GREETING	the broker refuses the client	ALONE
 *	GREETING, UP	the broker dies			LOST
 *	GREETING	the broker does not answer	LOST
 *	ALONE		a second has passed		as from LOST
 *
 * GREETING in this table stands for CLIENT_ASKING, too.
 *
 * When the broker dies, the class, the receive socket and the pages stay valid.
 * client_turn starts another broker, or finds one that another process has
 * started, and gives that broker the class and the descriptors.  Among the
 * functions below only client_open waits.
 *
 * Not thread-safe: the owner's lock covers a client.  A client does not survive
 * fork: a child closes its copy and opens a new one.
 */
#ifndef BROKER_CLIENT_H
#define BROKER_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "broker/proto.h"
#include "broker/start.h"
#include "util/inaddr.h"

/* The broker's answers about a peer; the values are those of enum
 * proto_peer. */
enum client_peer {
	CLIENT_PEER_GONE,    /* the process has ended */
	CLIENT_PEER_ALIVE,   /* the process lives */
	CLIENT_PEER_UNKNOWN, /* the broker does not know */
	CLIENT_PEER_CLOSED, /* the process lives, and drops packets to the QP */
	CLIENT_PEER_LEFT,   /* the connection to the QP has ended */
};

/* The broker's answers about an arena; the values are those of enum
 * proto_arena. */
enum client_arena {
	CLIENT_ARENA_HERE,  /* the answer says where the arena is */
	CLIENT_ARENA_NONE,  /* the process shows no arena to this process */
	CLIENT_ARENA_LATER, /* not known yet: the caller asks again later */
	CLIENT_ARENA_GONE,  /* the process has ended */
};

enum client_state {
	/* there is no connection; client_turn looks for a broker at due_ms */
	CLIENT_LOST,
	/* the broker that this process started does not serve yet */
	CLIENT_STARTING,
	/* the broker takes no descriptors yet; PROTO_WHO was sent, and
	 * PROTO_HELLO follows its answer */
	CLIENT_ASKING,
	CLIENT_GREETING, /* PROTO_HELLO was sent; the answer has not come */
	CLIENT_UP,	 /* the broker has welcomed this client */
	/* the broker has refused this client, or this client has rejected the
	 * broker; client_turn looks for a broker at due_ms */
	CLIENT_ALONE,
};

/* The subject of a message to the user. */
enum client_word {
	CLIENT_SAYS_LATE, /* client_open waits for a broker */
	/* adverbd could not be started, or did not serve in time: the sentence
	 * has the reason, and says whether a thread serves instead */
	CLIENT_SAYS_THREAD,
	/* many brokers in a row had short lives (start_lost) */
	CLIENT_SAYS_ENDS,
};
/* Shows the user a message: one sentence without a full stop, which is borrowed
 * for the call.  word: the subject of the message. */
typedef void client_say(enum client_word word, const char *sentence);

/* The broker that a client is connected to. */
struct client_broker {
	/* The broker's user is not the effective user of this process. */
	bool is_other_user;
	uid_t user; /* the broker's user, by SO_PEERCRED */
	pid_t pid;  /* the pid as the broker sees it */
	/* The pid as this process sees it; 0: the broker is not visible. */
	pid_t visible_pid;
};

struct client {
	enum client_state state;
	/* the connection to the broker; when it is closed, the broker releases
	 * the class; -1: none */
	int unix_fd;
	/* the receive socket: bound to port 4791, dual-stack where there is
	 * IPv6, blocking, without IP_PKTINFO; or the receiving end of a relay
	 * (wire/relay.h); -1: none */
	int udp_fd;
	/* the fd store, kept for a successor of the broker; -1: none */
	int fd_store_fd;
	/* a random number from a broker of another user; shown to a successor
	 * of that broker, it proves that `class` is this process's; 0: none */
	uint64_t token;
	/* udp_fd is the receiving end of a relay that a successor of the broker
	 * has made, and client_new_relay has not returned a copy yet */
	bool has_new_relay;
	int tree_fd; /* the folder that client_tree took; -1: none */
	/* the arena, which the broker shows to other processes of this user;
	 * borrowed; -1: none */
	int arena_fd;
	/* The eventfd that wakes this process; the broker gives the eventfd to
	 * other processes of this user.  If the broker is of another user, the
	 * broker makes the eventfd, and the client replaces the file behind
	 * peer_wake_fd by it.  Borrowed; -1: none. */
	int peer_wake_fd;
	/* the arena is not shown to the present broker, since more descriptors
	 * of this user are under way than the hard limit on open files allows
	 */
	bool hides_arena;
	uint32_t class;	 /* this process's; 0: no broker has given one yet */
	uint32_t serial; /* of the last message that was sent */
	/* client_want.patience_ms: how long a broker may take to start, and to
	 * welcome this client while the client has no class */
	uint64_t patience_ms;
	uint64_t due_ms; /* when client_turn is due; UINT64_MAX: never */
	/* when the last broker was lost; until then, when this client first
	 * found that there is no broker; 0: neither has happened */
	uint64_t lost_ms;
	/* the wait before the next attempt to find a broker; doubles with each
	 * failure */
	uint32_t wait_ms;
	struct client_broker broker;
	/* The broker belongs to another ordinary user, and is trusted since
	 * ADVERB_BROKER_USER names that user. */
	bool is_named;
	int err; /* why there is no broker: -errno */
	/* the sentence for err: constant, or in `why`; NULL: none */
	const char *reason;
	char why[START_SENTENCE]; /* room for a sentence that is not constant */
	struct start start; /* the start that goes on in CLIENT_STARTING */
	client_say *say;    /* NULL: the user is told nothing */
	void *page;	    /* the page of this process; NULL: none */
	struct peer_pages *pages; /* the pages of other processes */
};

/* The news that client_turn reports.  The word in capitals says for which
 * `what` a member is valid; PEER stands for CLIENT_NEWS_PEER. */
struct client_news {
	enum {
		/* the answer to client_ask or client_ask_remote */
		CLIENT_NEWS_PEER,
		/* a broker has welcomed this client */
		CLIENT_NEWS_BACK,
		/* the answer to client_ask_arena */
		CLIENT_NEWS_ARENA,
		/* a process to which this process's arena was shown has
		 * ended */
		CLIENT_NEWS_DIED,
		/* the answer to client_ask_source */
		CLIENT_NEWS_SOURCE,
	} what;
	uint32_t qpn; /* PEER: the QPN that was asked about */
	/* PEER: the host that was asked about; all 0: a process of this
	 * namespace */
	uint8_t host[16];
	enum client_peer peer; /* PEER: the answer */
	uint32_t class; /* ARENA, SOURCE: the class that was asked about */
	/* SOURCE: the source of the datagram that was asked about, and its
	 * destination, whose port is left 0 */
	struct inaddr from, to;
	/* SOURCE: the answer; true: the user of the process that has the class
	 * owns the port of `from` */
	bool is_peers;
	enum client_arena arena;  /* ARENA: the answer */
	struct proto_at arena_at; /* ARENA: where the arena is, if HERE */
	/* ARENA, if HERE: the eventfd that wakes the process of the arena; the
	 * caller owns this descriptor */
	int peer_wake_fd;
};

/* The arguments of client_open. */
struct client_want {
	/*
	 * The descriptors of this process's arena, and of the eventfd that
	 * wakes this process.  The broker shows both to processes of this user.
	 * Each successor of the broker shows both, too, unless the successor is
	 * of another user.  Both are borrowed until client_close.  If one of
	 * them is -1, neither is shown.  client_open may replace the file
	 * behind peer_wake_fd by another eventfd, so the caller polls or
	 * duplicates peer_wake_fd only after client_open has returned.
	 */
	int arena_fd, peer_wake_fd;
	/* How long to wait, in milliseconds, for a broker that lives and does
	 * not answer, because it is stopped or gets no processor. */
	uint64_t patience_ms;
	/*
	 * Called with messages for the user by client_open and by client_turn;
	 * may be NULL.  Only client_open says CLIENT_SAYS_LATE, and only once:
	 * after one second if the broker is stopped, or sleeps while it starts,
	 * and after five seconds otherwise.
	 */
	client_say *say;
};

/*
 * Opens a client: finds or starts a broker, and waits until the broker gives a
 * class.  Returns 0, or -errno with a sentence in *why, which is constant or in
 * c.  -ENOMEM: adverbd cannot be run, and no thread can serve in its place;
 * -EADDRINUSE: another program has the port; -ETIMEDOUT: the broker does not
 * answer; -EMFILE: the limit on open files of the broker or of this process is
 * reached; -ENFILE: that of the machine is reached; -ETOOMANYREFS: this user
 * has too many descriptors in flight; -EUSERS: this user has used up its share
 * of connections; -ENOSPC: this user has used up its share of classes; -EACCES:
 * the broker is not trusted (trust.h); -EPERM: there is no broker, and this
 * program starts none, since it has more rights than its caller;
 * -ENOTRECOVERABLE: many brokers in a row, which this process has started, had
 * short lives (start_lost); -EPROTONOSUPPORT: the broker is of another version;
 * -EPROTO: the broker's answer is invalid; -EAGAIN: another process has to
 * start the broker, and no broker came in time; -EPIPE, -ECONNRESET or
 * -ECONNREFUSED: every broker that this process found has ended, and no other
 * one came in time; or the -errno of a system call.
 */
int client_open(struct client *c, const struct client_want *want,
		const char **why);
/* Closes the client's descriptors and unmaps its pages.  The broker releases
 * the class. */
void client_close(struct client *c);
/* Returns the descriptor to poll for POLLIN, at which client_turn is due; -1:
 * none. */
int client_fd(const struct client *c);
/* Returns when client_turn is due without POLLIN, in milliseconds of
 * CLOCK_MONOTONIC; UINT64_MAX: never. */
uint64_t client_due_ms(const struct client *c);
/* Takes messages of the broker until one of them is news, and looks for another
 * broker if the broker is lost.  Never waits.  True with *news: the caller
 * calls again, since there may be more.  False: there is no news. */
bool client_turn(struct client *c, struct client_news *news);
/*
 * Asks whether the process of this namespace that has a QPN lives; the answer
 * is CLIENT_NEWS_PEER.  False: the question was not sent, for example since
 * there is no broker or no room in the socket to the broker; the caller asks
 * again later.
 */
bool client_ask(struct client *c, uint32_t qpn);
/* Asks for the arena of the process of this namespace that has a class; the
 * answer is CLIENT_NEWS_ARENA.  False: the question was not sent; the caller
 * asks again later. */
bool client_ask_arena(struct client *c, uint32_t class);
/*
 * Asks whether the process that has a class, or another process of the same
 * user, owns the source port of a datagram that came from @from to @to; the
 * answer is CLIENT_NEWS_SOURCE.  False: the question was not sent; the caller
 * asks again later.
 */
bool client_ask_source(struct client *c, uint32_t class,
		       const struct inaddr *from, const struct inaddr *to);
/*
 * Asks whether the process of another host that has a QPN lives; the answer is
 * CLIENT_NEWS_PEER.  If that host's broker does not answer for half a second,
 * the answer is CLIENT_PEER_UNKNOWN.  @local: the address of this host from
 * which to ask.  @host: the address of the other host.  @scope: the interface
 * of link-local addresses.  False: the question was not sent; the caller asks
 * again later.
 */
bool client_ask_remote(struct client *c, uint32_t qpn, const uint8_t local[16],
		       const uint8_t host[16], uint32_t scope);
/* Returns this process's page, for writing; shared_page.h describes its
 * contents.  NULL: there is none.  The page is valid until client_close. */
void *client_page(const struct client *c);
/* After CLIENT_NEWS_BACK: if a successor of the broker has made another relay
 * for this process, returns a descriptor of its receiving end, once; the caller
 * owns it, and receives from it in place of the old one.  -1: there is no new
 * relay; or this process has no free descriptor, and a later call returns the
 * relay. */
int client_new_relay(struct client *c);
/*
 * Finds the page of another class of this namespace, for reading.  Before the
 * call, *page is the page that the caller has of the class, or NULL.  A caller
 * that has a page asks whether the class has another one now.  A page is valid
 * until client_close, or until a call with the page that has replaced it.
 * Never waits.  False: the page is not known yet, or the class has no other
 * page than *page; the caller calls again, after client_turn has taken the
 * broker's answer.
 * True with *page NULL: the class has no owner, or its owner is of another
 * user, or there is no memory; the next call asks the broker again.  For class
 * 0 and classes above STEER_CLASS_MAX, which no process has, the caller has no
 * page, and the call returns true.
 */
bool client_page_of(struct client *c, uint32_t class, const void **page);
/* Takes ownership of folder_fd, and gives that folder to each broker of this
 * user, which writes the counter files there (counter_files.h). */
void client_tree(struct client *c, int folder_fd);

#endif
