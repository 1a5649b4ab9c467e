/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process's side of the broker: finds or starts the broker, holds the class
 * and the receive socket, asks about other processes.
 *
 *	  open                 welcome
 *	LOST ------> GREETING ---------> UP
 *	 ^|^           ^|   `--refused--> ALONE
 *	 || `----------|'  it dies        | |
 *	 |`-> STARTING-'                  | |
 *	 `--------------------------------+-'  (ALONE: after a second)
 *
 * When the broker dies, what it gave stays valid: the class, its socket, the
 * pages.  client_turn starts another broker, or finds the one that another
 * process has started, and gives it what it needs.  Only client_open waits.
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

enum client_peer {
	CLIENT_PEER_GONE,
	CLIENT_PEER_ALIVE,
	CLIENT_PEER_UNKNOWN,
	CLIENT_PEER_CLOSED,
	CLIENT_PEER_LEFT,
};

/* NONE: the process shares no arena, or not with this one.  LATER: ask again in
 * a moment. */
enum client_arena {
	CLIENT_ARENA_HERE,
	CLIENT_ARENA_NONE,
	CLIENT_ARENA_LATER,
	CLIENT_ARENA_GONE,
};

enum client_state {
	CLIENT_LOST,
	/* the broker that this process started does not serve yet */
	CLIENT_STARTING,
	CLIENT_GREETING,
	CLIENT_UP,
	CLIENT_ALONE,
};

/* The occasions for a sentence to the user, without a full stop; each comes
 * once. */
enum client_word {
	CLIENT_SAYS_LATE, /* a broker is waited for */
	/* adverbd cannot be run: why, and what serves instead */
	CLIENT_SAYS_THREAD,
	CLIENT_SAYS_ENDS, /* each broker ends at once */
};
typedef void client_say(enum client_word word, const char *sentence);

/* The broker that a client is connected to. */
struct client_broker {
	/* Another ordinary user's, whom ADVERB_BROKER_USER names as trusted. */
	bool is_other_user;
	uid_t user;
	pid_t pid; /* as the broker sees it */
	/* As this process sees it; 0: it is not visible. */
	pid_t visible_pid;
};

struct client {
	enum client_state state;
	int unix_fd; /* the class is freed when it closes; -1: no broker */
	int udp_fd;  /* bound to port 4791, dual-stack; blocking, no pktinfo */
	/* for a successor of the broker; -1: it is not of this user */
	int fd_store_fd;
	/* the sending end of the relay to udp_fd, for a successor; -1: none */
	int relay_fd;
	int tree_fd;	       /* client_tree's; -1: none */
	int arena_fd, kick_fd; /* to be shared, borrowed; -1: none */
	bool hides_arena; /* the limit on open files does not let it be shown */
	uint32_t class;
	uint32_t serial;
	uint64_t patience_ms; /* how long a hello may be without an answer */
	uint64_t due_ms;      /* when client_turn wants to be called again */
	uint64_t lost_ms;     /* since when there is no broker */
	uint32_t wait_ms;     /* until the next attempt to find it */
	struct client_broker broker;
	bool is_told;
	int err; /* why there is no broker */
	const char *reason;
	char why[START_SENTENCE];
	struct start start;	    /* in CLIENT_STARTING */
	client_say *say;	    /* NULL: nobody listens */
	void *page;		    /* the page of this process; NULL: none */
	struct client_pages *pages; /* the pages of other processes */
};

/* The news that client_turn reports. */
struct client_news {
	enum {
		CLIENT_NEWS_PEER,
		CLIENT_NEWS_BACK,
		CLIENT_NEWS_ARENA,
		/* a process that was shown this one's arena has ended */
		CLIENT_NEWS_DIED,
		CLIENT_NEWS_SOURCE,
	} what;
	uint32_t qpn;	  /* PEER: as asked */
	uint8_t host[16]; /* PEER: the host; 0: a process of this namespace */
	enum client_peer peer;
	uint32_t class;		/* ARENA, SOURCE: as asked */
	struct inaddr from, to; /* SOURCE: as asked */
	bool is_peers;		/* SOURCE: the answer */
	enum client_arena arena;
	struct proto_at arena_at; /* ARENA: where the arena is, if HERE */
	int kick_fd;		  /* ARENA: the caller's from now on, if HERE */
};

struct client_wish {
	/*
	 * Where this process has its arena, and its eventfd: the broker, and
	 * each that follows it, shows them to processes of this user.  Both are
	 * borrowed until client_close.  -1, -1: nothing is shared.
	 */
	int arena_fd, kick_fd;
	/* How long to wait for a broker that lives and says nothing: it is
	 * stopped, or gets no processor. */
	uint64_t patience_ms;
	/*
	 * Called by client_open and by client_turn; may be NULL.
	 * CLIENT_SAYS_LATE only by client_open, once: after a second if the
	 * broker is stopped, or is being started and sleeps, after five
	 * otherwise.
	 */
	client_say *say;
};
/*
 * Opens a client.  0, or -errno with a sentence in *why, which borrows from c
 * or is constant: -ENOENT there is no broker to start, -EADDRINUSE another
 * program has the port, -ETIMEDOUT there is a broker, and it says nothing,
 * -EMFILE its limit on open files is reached, or this process's, -EUSERS this
 * user has its share of connections, -ENOSPC or of classes, -EACCES the broker
 * is not trusted (trust.h), -EPERM there is none, and a program with more
 * rights than its caller starts none.
 */
int client_open(struct client *c, const struct client_wish *wish,
		const char **why);
void client_close(struct client *c);
/* The descriptor that client_turn waits for (POLLIN); -1: none. */
int client_fd(const struct client *c);
/* When client_turn is due, CLOCK_MONOTONIC; UINT64_MAX: it is not. */
uint64_t client_due_ms(const struct client *c);
/* Takes the broker's messages, and looks for a broker that is lost.  True with
 * news; to be called until there is none. */
bool client_turn(struct client *c, struct client_news *news);
/*
 * Asks whether the process of this namespace lives that a QPN belongs to; the
 * answer is CLIENT_NEWS_PEER.  False: the question is lost; to be asked again
 * after CLIENT_NEWS_BACK.
 */
bool client_ask(struct client *c, uint32_t qpn);
/* Asks for the arena of the process that has a class; the answer is
 * CLIENT_NEWS_ARENA.  False: the question is lost. */
bool client_ask_arena(struct client *c, uint32_t class);
/*
 * Asks whether the process that has a class, or another of its user, has the
 * port that a datagram came from; the answer is CLIENT_NEWS_SOURCE.  False: the
 * question is lost.
 */
bool client_ask_source(struct client *c, uint32_t class,
		       const struct inaddr *from, const struct inaddr *to);
/*
 * Asks whether the process of another host lives that a QPN belongs to; the
 * answer is CLIENT_NEWS_PEER, CLIENT_PEER_UNKNOWN also when that host's broker
 * does not speak this, which is known after half a second.  False: the question
 * is lost.
 */
bool client_ask_far(struct client *c, uint32_t qpn, const uint8_t local[16],
		    const uint8_t host[16], uint32_t scope);
/* This process's page, for writing; shared_page.h says what is in it.  NULL:
 * there is none.  Valid until client_close. */
void *client_page(const struct client *c);
/*
 * The page of another class of this namespace, for reading, until client_close.
 * Never waits.  False: not known yet; the broker is asked, and client_turn
 * takes the answer.  True with NULL: there is none, since the class has no
 * owner, or one of another user; that is said once, and then the broker is
 * asked again.
 */
bool client_page_of(struct client *c, uint32_t class, const void **page);
/* Gives the broker this folder (taken) for counter files, if it is of this
 * user; see counter_files.h. */
void client_tree(struct client *c, int folder_fd);

#endif
