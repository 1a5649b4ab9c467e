/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client of the broker in each process: finds or starts the broker, has the
 * class and the receive socket of the process, asks about other processes.
 *
 *	  connected            welcome
 *	LOST ------> GREETING ---------> UP
 *	 ^|^           ^|   `--refused--> ALONE
 *	 || `----------|'  broker dies    | |
 *	 |`-> STARTING-'                  | |
 *	 `--------------------------------+-'
 *	                  UP: the broker dies; ALONE: after a second
 *
 * When the broker dies, the class, its socket and the pages stay valid.
 * client_turn starts another broker, or finds the one that another process has
 * started, and gives that broker the class and the descriptors.  Only
 * client_open waits.
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
	CLIENT_LOST, /* no connection; looks for a broker at due_ms */
	/* the broker that this process started does not serve yet */
	CLIENT_STARTING,
	CLIENT_GREETING, /* PROTO_HELLO was sent; the answer has not come */
	CLIENT_UP,	 /* the broker has welcomed this client */
	CLIENT_ALONE,	 /* the broker or this client refused the other */
};

/* The subject of a message to the user, which is one sentence without a full
 * stop. */
enum client_word {
	CLIENT_SAYS_LATE, /* client_open waits for a broker */
	/* adverbd cannot be run: the reason, and that a thread serves */
	CLIENT_SAYS_THREAD,
	CLIENT_SAYS_ENDS, /* each broker that is started ends at once */
};
typedef void client_say(enum client_word word, const char *sentence);

/* The broker that a client is connected to. */
struct client_broker {
	/* Its user is not the effective user of this process. */
	bool is_other_user;
	uid_t user;
	pid_t pid; /* the pid as the broker sees it */
	/* The pid as this process sees it; 0: the broker is not visible. */
	pid_t visible_pid;
};

struct client {
	enum client_state state;
	/* the connection to the broker, which releases the class when it is
	 * closed; -1: none */
	int unix_fd;
	int udp_fd; /* bound to port 4791, dual-stack; blocking, no pktinfo */
	/* the fd store, kept for a successor of the broker; -1: none */
	int fd_store_fd;
	/* the sending end of the relay to udp_fd, kept for a successor of the
	 * broker; -1: none */
	int relay_fd;
	int tree_fd;	       /* the folder that client_tree took; -1: none */
	int arena_fd, kick_fd; /* shown to others, borrowed; -1: none */
	/* the arena is not shown: more descriptors of this user are under way
	 * than the limit on open files allows */
	bool hides_arena;
	uint32_t class;
	uint32_t serial;
	uint64_t patience_ms; /* how long PROTO_HELLO may lack an answer */
	uint64_t due_ms;      /* when client_turn is due; UINT64_MAX: never */
	uint64_t lost_ms;     /* since when there is no broker */
	/* the wait before the next attempt to find a broker; doubles with each
	 * failure */
	uint32_t wait_ms;
	struct client_broker broker;
	/* The broker belongs to another ordinary user, and ADVERB_BROKER_USER
	 * names that user as trusted. */
	bool is_told;
	int err;	    /* why there is no broker: -errno */
	const char *reason; /* the sentence for err: constant, or `why` */
	char why[START_SENTENCE];
	struct start start;	    /* in CLIENT_STARTING */
	client_say *say;	    /* NULL: the user is told nothing */
	void *page;		    /* the page of this process; NULL: none */
	struct client_pages *pages; /* the pages of other processes */
};

/* The news that client_turn reports. */
struct client_news {
	enum {
		/* the answer to client_ask or client_ask_far */
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
	uint32_t qpn;	  /* PEER: as asked */
	uint8_t host[16]; /* PEER: the host; 0: a process of this namespace */
	enum client_peer peer;	/* PEER: the answer */
	uint32_t class;		/* ARENA, SOURCE: as asked */
	struct inaddr from, to; /* SOURCE: as asked */
	/* SOURCE: the user of the class's process owns the port of `from` */
	bool is_peers;
	enum client_arena arena;  /* ARENA: the answer */
	struct proto_at arena_at; /* ARENA: where the arena is, if HERE */
	/* ARENA, if HERE: the eventfd of the arena's owner; the caller owns
	 * this descriptor. */
	int kick_fd;
};

/* The arguments of client_open. */
struct client_wish {
	/*
	 * The descriptors of this process's arena and eventfd.  The broker, and
	 * each successor, shows them to processes of this user.  Both are
	 * borrowed until client_close.  -1, -1: nothing is shared.
	 */
	int arena_fd, kick_fd;
	/* How long to wait for a broker that lives and does not answer, since
	 * it is stopped or gets no processor. */
	uint64_t patience_ms;
	/*
	 * Called by client_open and by client_turn; may be NULL.  Only
	 * client_open says CLIENT_SAYS_LATE, once: after one second if the
	 * broker is stopped, or sleeps while it starts, and after five seconds
	 * otherwise.
	 */
	client_say *say;
};

/*
 * Opens a client: finds or starts a broker, and waits until the broker gives a
 * class.  0, or -errno with a sentence in *why, which borrows from c or is
 * constant.  -ENOENT: there is no broker to start; -EADDRINUSE: another program
 * has the port; -ETIMEDOUT: the broker does not answer; -EMFILE: the limit on
 * open files of the broker or of this process is reached; -EUSERS: this user
 * has used up its share of connections; -ENOSPC: this user has used up its
 * share of classes; -EACCES: the broker is not trusted (trust.h); -EPERM: there
 * is no broker, and a program with more rights than its caller starts none.
 */
int client_open(struct client *c, const struct client_wish *wish,
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
/* Takes messages of the broker until one is news, and looks for another broker
 * if the broker is lost.  True with *news: the caller calls again; false: there
 * is no news. */
bool client_turn(struct client *c, struct client_news *news);
/*
 * Asks whether the process of this namespace that has a QPN lives; the answer
 * is CLIENT_NEWS_PEER.  False: the question was not sent, since there is no
 * broker or no room in its socket; the caller asks again later.
 */
bool client_ask(struct client *c, uint32_t qpn);
/* Asks for the arena of the process that has a class; the answer is
 * CLIENT_NEWS_ARENA.  False: the question was not sent; the caller asks again
 * later. */
bool client_ask_arena(struct client *c, uint32_t class);
/*
 * Asks whether the process that has a class, or another process of its user,
 * has the port of @from, from which a datagram came to @to; the answer is
 * CLIENT_NEWS_SOURCE.  False: the question was not sent; the caller asks again
 * later.
 */
bool client_ask_source(struct client *c, uint32_t class,
		       const struct inaddr *from, const struct inaddr *to);
/*
 * Asks whether the process of another host that has a QPN lives; the answer is
 * CLIENT_NEWS_PEER.  If that host's broker does not answer for half a second,
 * the answer is CLIENT_PEER_UNKNOWN.  @scope: the interface of link-local
 * addresses.  False: the question was not sent; the caller asks again later.
 */
bool client_ask_far(struct client *c, uint32_t qpn, const uint8_t local[16],
		    const uint8_t host[16], uint32_t scope);
/* Returns this process's page, for writing; shared_page.h describes its
 * contents.  NULL: there is none.  Valid until client_close. */
void *client_page(const struct client *c);
/*
 * Finds the page of another class of this namespace, for reading, valid until
 * client_close.  Never waits.  False: the page is not known yet; the broker is
 * asked, and client_turn takes the answer.  True with NULL: the class has no
 * owner, or an owner of another user, or there is no memory; the next call asks
 * the broker again.
 */
bool client_page_of(struct client *c, uint32_t class, const void **page);
/* Takes folder_fd, and gives that folder to each broker of this user for its
 * counter files (counter_files.h). */
void client_tree(struct client *c, int folder_fd);

#endif
