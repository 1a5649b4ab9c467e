/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages between a client and the broker over an abstract SOCK_SEQPACKET
 * socket: one struct a message, in host order, since both ends are one machine.
 *
 * The version is in the address too, so that programs of two versions keep
 * their brokers.  A program that meets another version all the same, as `adverb
 * doctor` does, reads what is the same in every version: the fields of struct
 * proto up to `scope`.  By these fields a broker introduces itself
 * (proto_introduce) to a client that asks, and refuses a client of another
 * version.
 */
#ifndef BROKER_PROTO_H
#define BROKER_PROTO_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define PROTO_MAGIC	 0x61647662u
#define PROTO_VERSION	 17 /* to raise whenever CMPROTO_VERSION is raised */
#define PROTO_FDS	 5  /* descriptors that one message brings, at most */
#define PROTO_HEAD	 60 /* bytes that are the same in every version */
#define PROTO_RELEASE	 32

#define PROTO_IDLE_NEVER (UINT32_MAX - 1)

enum proto_kind {
	/*
	 * value: 0, to ask for a class, or the class that another broker gave.
	 * A client with a class brings its socket, and the fd store if the
	 * broker is of its user, or else the sending end of its relay.  A
	 * client that shares its arena brings its eventfd, and says where the
	 * arena is.
	 */
	PROTO_HELLO = 1,
	/* value: the class.  Brings what the client lacks: its socket, its page
	 * for writing, and the fd store or the sending end of its relay. */
	PROTO_WELCOME,
	/* value: an errno; why: a sentence.  If value is EPROTONOSUPPORT, the
	 * broker introduces itself. */
	PROTO_REFUSED,
	PROTO_ASK,    /* value: a QPN */
	PROTO_ANSWER, /* value: enum proto_peer; about: the QPN */
	PROTO_PAGE,   /* value: a class */
	/* value: the class of PROTO_PAGE.  Brings its page for reading, if the
	 * class has a page and its process is of the client's user. */
	PROTO_PAGE_IS,
	PROTO_ASK_FAR, /* value: a QPN of the host `peer`; from `local` */
	PROTO_TREE,  /* brings the folder for counter files (counter_files.h) */
	PROTO_ARENA, /* value: a class */
	/* value: the class of PROTO_ARENA; about: enum proto_arena.  Says where
	 * the arena is, and brings the eventfd, if PROTO_ARENA_HERE. */
	PROTO_ARENA_IS,
	PROTO_DIED, /* a process that was shown the reader's arena has ended */
	PROTO_WHO,  /* asks the broker to introduce itself */
	PROTO_WHO_IS, /* introduces the broker */
	/* value: a class; about: a port, from which a datagram came from
	 * `local` to `peer` */
	PROTO_SOURCE,
	/* value, about, local, peer: those of PROTO_SOURCE; scope: 1 if the
	 * user of the class's process owns that port */
	PROTO_SOURCE_IS,
};

enum {
	PROTO_FD_SOCKET = 1,
	PROTO_FD_PAGE = 2,
	PROTO_FD_STORE = 4,
	PROTO_FD_TREE = 8,
	PROTO_FD_KICK = 16, /* an eventfd */
};

/* The answers about the arena of a process. */
enum proto_arena {
	PROTO_ARENA_HERE,
	PROTO_ARENA_NONE,
	PROTO_ARENA_LATER, /* the process has yet to connect to this broker */
	PROTO_ARENA_GONE,  /* the process has ended; older clients take NONE */
};

/* Names a descriptor of another process, which the reader opens by /proc, if
 * the kernel allows that. */
struct proto_at {
	uint64_t pid_space; /* the PID namespace that pid counts in */
	uint32_t pid;	    /* the process; 0: there is no descriptor */
	int32_t fd;
};

enum proto_peer {
	PROTO_PEER_GONE,
	PROTO_PEER_ALIVE,
	PROTO_PEER_UNKNOWN,
	PROTO_PEER_CLOSED, /* the process lives, and drops packets to the QP */
	PROTO_PEER_LEFT,   /* the connection to the QP has ended */
};

struct proto {
	uint32_t magic;
	uint16_t version, kind;
	uint32_t serial; /* an answer has the serial of its question */
	uint32_t value;
	/* PROTO_ANSWER: the QPN; a broker that introduces itself, and
	 * PROTO_WELCOME: the broker's pid; others: see enum proto_kind. */
	uint32_t about;
	uint32_t brings; /* PROTO_FD_*; in this order by SCM_RIGHTS */
	union {
		struct {
			/* PROTO_ASK_FAR and its answer, PROTO_SOURCE */
			uint8_t local[16], peer[16];
		};
		/* a broker that introduces itself: its release */
		char release[PROTO_RELEASE];
	};
	union {
		/* PROTO_ASK_FAR: the interface of link-local addresses */
		uint32_t scope;
		/*
		 * A broker that introduces itself: how many seconds after its
		 * last program the broker ends; UINT32_MAX: the broker is a
		 * thread of a program and ends with it; PROTO_IDLE_NEVER: the
		 * broker does not end.
		 */
		uint32_t idle_s;
	};
	uint32_t reserved;
	struct proto_at arena; /* PROTO_HELLO and PROTO_ARENA_IS */
	char why[96];
};

_Static_assert(offsetof(struct proto, release) == 24 &&
		       offsetof(struct proto, idle_s) == PROTO_HEAD - 4,
	       "every version has these where they are");

/* The inode number of the caller's network namespace; 0: it is not known. */
static inline unsigned long long proto_namespace(void)
{
	struct stat ns = {0};

	stat("/proc/self/ns/net", &ns);
	return (unsigned long long)ns.st_ino;
}

/* The inode number of the caller's PID namespace; 0: it is not known. */
static inline uint64_t proto_pid_space(void)
{
	struct stat ns = {0};

	return stat("/proc/self/ns/pid", &ns) ? 0 : (uint64_t)ns.st_ino;
}

/* Writes the broker's address to *a, and returns its length.  Each network
 * namespace has such addresses of its own (unix(7)). */
static inline socklen_t proto_address(struct sockaddr_un *a)
{
	int length;

	*a = (struct sockaddr_un){.sun_family = AF_UNIX};
	length = snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1,
			  "adverbd-%d", PROTO_VERSION);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)length);
}

/* Completes m, by which a broker introduces itself; idle_s: see struct proto.
 */
void proto_introduce(struct proto *m, uint32_t idle_s);
/* Connects to the broker of this version.  Returns a non-blocking socket, which
 * the caller owns, or -errno. */
int proto_connect(void);
/*
 * Sends a message with the descriptors that m->brings names, which stay the
 * caller's; never waits.  0 or -errno; -ETOOMANYREFS: more descriptors of this
 * user are under way than this process's limit on open files allows.
 */
int proto_send(int socket, const struct proto *m, const int *fds);
/*
 * Receives one message into a zeroed *m; fds[k] is the descriptor of bit k of
 * m->brings, or -1, and the caller's.  0; -EAGAIN: there is no message; -EPIPE:
 * the other end is closed; -ECONNRESET: the other end is closed, and its last
 * message may be read next; -EPROTO: the message is not one of this protocol;
 * -EPROTONOSUPPORT: the message is of another version, and *m has what every
 * version has; -EMFILE: the limit on open files left no room for some of the
 * descriptors: *m and fds have the others.
 */
int proto_receive(int socket, struct proto *m, int fds[PROTO_FDS]);

#endif
