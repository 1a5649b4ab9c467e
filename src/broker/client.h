/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process's side of the broker: finds or starts it, holds the class and the
 * receive socket, asks about others.
 *
 *	  open                 welcome
 *	LOST ------> GREETING ---------> UP
 *	 ^|^           ^|   `--refused--> ALONE
 *	 || `----------|'  it dies        | |
 *	 |`-> STARTING-'                  | |
 *	 `--------------------------------+-'  (ALONE: after a second)
 *
 * When the broker dies, all that it gave stays valid: the class, its socket,
 * the pages.  client_turn starts another, or finds the one that somebody else
 * has started, and hands it what it needs.  Nothing but client_open waits.
 *
 * Not thread-safe: the owner's lock covers it.  Does not survive fork: a child
 * closes its copy and opens anew.
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

/* NONE: it shares none, or not with us.  LATER: ask again in a moment. */
enum client_arena {
	CLIENT_ARENA_HERE,
	CLIENT_ARENA_NONE,
	CLIENT_ARENA_LATER,
	CLIENT_ARENA_GONE,
};

enum client_state {
	CLIENT_LOST,
	CLIENT_STARTING, /* what we have started does not serve yet */
	CLIENT_GREETING,
	CLIENT_UP,
	CLIENT_ALONE,
};

/* Something to say to people, a sentence without a full stop: each once. */
enum client_word {
	CLIENT_SAYS_LATE,   /* a broker is waited for */
	CLIENT_SAYS_THREAD, /* none can be run: why, and who serves instead */
	CLIENT_SAYS_ENDS,   /* each ends at once */
};
typedef void client_say(enum client_word word, const char *sentence);

struct client {
	enum client_state state;
	int unix_fd; /* closing it, or dying, frees the class; -1: lost */
	int udp_fd;  /* bound to port 4791, dual-stack; blocking, no pktinfo */
	int fd_store_fd; /* for the broker's successor; -1: it is not our user's
			  */
	int relay_fd;	 /* what hands on to udp_fd, for it too; -1: nothing */
	int tree_fd;	 /* what client_tree was given; -1 */
	int arena_fd, kick_fd; /* what to share, borrowed; or -1 */
	bool hides_arena;      /* the limit on open files forbids to show it */
	uint32_t class;
	uint32_t serial;
	uint64_t patience_ms; /* for the answer to a hello */
	uint64_t due_ms;      /* when client_turn wants to be called again */
	uint64_t lost_ms;     /* since when there is no broker */
	uint32_t wait_ms;     /* until the next try to find it */
	/* The broker belongs to another ordinary user, whom ADVERB_BROKER_USER
	 * names as trusted. */
	bool is_foreign;
	bool is_told;
	uid_t broker_user;
	pid_t broker_pid; /* as itself sees it, */
	pid_t peer_pid;	  /* and as we do; 0: we do not */
	int err;	  /* why there is none */
	const char *reason;
	char why[START_SENTENCE];
	struct start start;	    /* STARTING */
	client_say *say;	    /* NULL: nobody hears it */
	void *page;		    /* ours; NULL: there is none */
	struct client_pages *pages; /* of others */
};

/* What client_turn has to say. */
struct client_news {
	enum {
		CLIENT_NEWS_PEER,
		CLIENT_NEWS_BACK,
		CLIENT_NEWS_ARENA,
		CLIENT_NEWS_DIED, /* one that was shown our arena */
		CLIENT_NEWS_SOURCE,
	} what;
	uint32_t qpn;	  /* PEER: as asked; */
	uint8_t host[16]; /* 0: of this namespace */
	enum client_peer peer;
	uint32_t class;		/* ARENA, SOURCE: as asked */
	struct inaddr from, to; /* SOURCE: as asked */
	bool is_peers;		/* and the answer */
	enum client_arena arena;
	struct proto_at arena_at; /* HERE */
	int kick_fd;		  /* HERE: the caller's from now on */
};

struct client_wish {
	/*
	 * Processes of this user are told where this one has its arena, and
	 * get its kick, from the broker and from each that follows it; both
	 * are borrowed until client_close.  -1, -1: nothing is shared.
	 */
	int arena_fd, kick_fd;
	/* For a broker that lives, and says nothing: it is stopped, or starved
	 * by others. */
	uint64_t patience_ms;
	/*
	 * Called by the opening and by client_turn; may be NULL.  LATE only by
	 * the opening, once: after a second of a broker that is stopped, or is
	 * being started and sleeps, after five of another.
	 */
	client_say *say;
};
/*
 * 0, or -errno with a sentence in *why, which borrows from c or is constant:
 * -ENOENT there is no broker to start, -EADDRINUSE the port is somebody's,
 * -ETIMEDOUT there is a broker, and it says nothing, -EMFILE its limit on open
 * files is reached, or ours, -EACCES it is not trusted (trust.h), -EPERM there
 * is none, and a program with rights of its own starts none.
 */
int client_open(struct client *c, const struct client_wish *wish,
		const char **why);
void client_close(struct client *c);
/* The descriptor that client_turn waits for (POLLIN); -1: none. */
int client_fd(const struct client *c);
/* When it has to be called at the latest, CLOCK_MONOTONIC; UINT64_MAX. */
uint64_t client_due_ms(const struct client *c);
/*
 * Takes what the broker said and looks after the broker.  True with news;
 * call it until it has none.
 */
bool client_turn(struct client *c, struct client_news *news);
/*
 * Is the process of this namespace that a QPN belongs to alive?  The answer is
 * news to come.  False: the question is lost; ask again after NEWS_BACK.
 */
bool client_ask(struct client *c, uint32_t qpn);
/* The same for the arena of the process that has a class. */
bool client_ask_arena(struct client *c, uint32_t class);
/*
 * Has the process that has a class, or one of its user, the port that a
 * datagram came from?
 */
bool client_ask_source(struct client *c, uint32_t class,
		       const struct inaddr *from, const struct inaddr *to);
/*
 * The same of a process of another host.  UNKNOWN also when that does not
 * speak this, which is known after half a second.
 */
bool client_ask_far(struct client *c, uint32_t qpn, const uint8_t local[16],
		    const uint8_t host[16], uint32_t scope);
/*
 * This process's page, to write; shared_page.h says what is in it.  NULL when
 * there is none.  Valid until client_close.
 */
void *client_page(const struct client *c);
/*
 * The page of another class of this namespace, to read, until client_close.
 * Never waits.  False: it is not known yet; the broker has been asked, and
 * client_turn takes its answer.  True with NULL: there is none, for the class
 * has no owner; said once, after that it is asked anew.
 */
bool client_page_of(struct client *c, uint32_t class, const void **page);
/*
 * The broker is to keep counter files in this folder (taken), if it is of our
 * user; see counter_files.h.
 */
void client_tree(struct client *c, int folder_fd);

#endif
