/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages between a client and the broker over an abstract SOCK_SEQPACKET
 * socket.  Each message is one struct proto in host order, since both ends are
 * on one machine.
 *
 * The socket's address also contains the version, so programs of two versions
 * use two brokers.  A program may still meet a broker of another version, as
 * `adverb doctor` does.  Such a program reads the fields of struct proto up to
 * and including `idle_s`, which are the same in every version.  In these fields
 * a broker introduces itself (proto_introduce) to a client that asks, and
 * refuses a client of another version.
 */
#ifndef BROKER_PROTO_H
#define BROKER_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define PROTO_MAGIC   0x61647662u
#define PROTO_VERSION 25 /* has to grow whenever CMPROTO_VERSION grows */
#define PROTO_FDS     5	 /* descriptors that one message brings, at most */
/* the bytes of the members, up to and including `idle_s`, that are the same in
 * every version */
#define PROTO_HEAD    60
#define PROTO_RELEASE 32 /* bytes of a release, with the final 0 */

/* the idle_s of a broker that does not end by itself */
#define PROTO_IDLE_NEVER (UINT32_MAX - 1)

enum proto_kind {
	/*
	 * value: 0 asks for a class; another value is the class that an earlier
	 * broker gave.  A client that shares its arena says in `arena` where
	 * the arena is, and brings its eventfd if its user is the broker's.
	 * A client of the broker's user that has a class also brings its socket
	 * and the fd store.  A client of another user brings no descriptor; if
	 * it has a class, it shows the `token` of that class.
	 */
	PROTO_HELLO = 1,
	/*
	 * value: the class.  Brings to a client of the broker's user the fd
	 * store and, if the class is new, the socket of the class and its page
	 * for writing.  Brings to a client of another user the receiving end of
	 * a new relay.  If the class of that client is new, also brings the
	 * page of the class and, if the client shares its arena, the eventfd
	 * that wakes the client.  A client of another user shows `token` to a
	 * successor of this broker.
	 */
	PROTO_WELCOME,
	/* value: a positive errno; why: a sentence.  If value is
	 * EPROTONOSUPPORT, the message also introduces the broker. */
	PROTO_REFUSED,
	/* asks whether the process of a QPN exists; value: the QPN */
	PROTO_ASK,
	/* answers PROTO_ASK or PROTO_ASK_REMOTE; value: enum proto_peer; about:
	 * the QPN */
	PROTO_ANSWER,
	PROTO_PAGE, /* asks for the page of a class; value: the class */
	/* value: the class of PROTO_PAGE.  Brings the page of that class for
	 * reading, if the class has a page and its process is of the client's
	 * user. */
	PROTO_PAGE_IS,
	/* asks whether the process of a QPN of the host `peer` exists; value:
	 * the QPN; `local`: the address to ask from; `scope`: the interface of
	 * link-local addresses */
	PROTO_ASK_REMOTE,
	PROTO_TREE,  /* brings the folder for counter files (counter_files.h) */
	PROTO_ARENA, /* asks where the arena of a class is; value: the class */
	/* value: the class of PROTO_ARENA; about: enum proto_arena.  If `about`
	 * is PROTO_ARENA_HERE, `arena` says where the arena is, and the message
	 * brings the eventfd of the process of that class. */
	PROTO_ARENA_IS,
	/* a process has ended that knew where the receiver's arena is */
	PROTO_DIED,
	PROTO_WHO,    /* asks the broker to introduce itself */
	PROTO_WHO_IS, /* introduces the broker */
	/* asks whether the user of the process that has a class owns a source
	 * port; value: the class; about: the source port of a datagram from the
	 * address `local` to the address `peer` */
	PROTO_SOURCE,
	/* value, about, local, peer: as in the question; scope: 1 if the user
	 * of the process that has the class owns the port */
	PROTO_SOURCE_IS,
};

/* The bits of proto.brings, each for one descriptor. */
enum {
	/* the receive socket of a class, or the receiving end of a relay */
	PROTO_FD_SOCKET = 1,
	PROTO_FD_PAGE = 2,  /* the page of a class */
	PROTO_FD_STORE = 4, /* the fd store */
	PROTO_FD_TREE = 8,  /* the folder for counter files */
	PROTO_FD_WAKE = 16, /* an eventfd */
};

/* The answers to PROTO_ARENA. */
enum proto_arena {
	PROTO_ARENA_HERE, /* the answer says where the arena is */
	PROTO_ARENA_NONE, /* the process shows no arena to this client */
	/* the answer may change: the process has yet to connect to this broker,
	 * or too many descriptors are in flight */
	PROTO_ARENA_LATER,
	/* the process has ended; a client that does not know this value takes
	 * it for NONE */
	PROTO_ARENA_GONE,
};

/* Names a descriptor of another process.  The receiver opens it by
 * /proc/PID/fd, if the kernel allows that. */
struct proto_at {
	/* the inode number of the PID namespace that pid belongs to */
	uint64_t pid_space;
	uint32_t pid; /* the process; 0: there is no descriptor */
	int32_t fd;   /* the number of the descriptor in that process */
};

/* The answers to PROTO_ASK and PROTO_ASK_REMOTE. */
enum proto_peer {
	PROTO_PEER_GONE,    /* the process has ended */
	PROTO_PEER_ALIVE,   /* the process exists */
	PROTO_PEER_UNKNOWN, /* the broker does not know */
	PROTO_PEER_CLOSED, /* the process exists, and drops packets to the QP */
	PROTO_PEER_LEFT,   /* the connection to the QP has ended */
};

struct proto {
	uint32_t magic;	  /* PROTO_MAGIC */
	uint16_t version; /* PROTO_VERSION */
	uint16_t kind;	  /* enum proto_kind */
	uint32_t serial;  /* an answer has the serial of its question */
	uint32_t value;	  /* see enum proto_kind */
	/* PROTO_ANSWER: the QPN; PROTO_WELCOME, and a message that introduces
	 * the broker: the broker's pid; other kinds: see enum proto_kind. */
	uint32_t about;
	/* PROTO_FD_*: the descriptors that come with the message by SCM_RIGHTS,
	 * the lowest bit first */
	uint32_t brings;
	union {
		struct {
			/* PROTO_ASK_REMOTE, PROTO_SOURCE and PROTO_SOURCE_IS:
			 * IPv6 addresses, or IPv4-mapped ones; the answer to
			 * PROTO_ASK_REMOTE has `peer` alone */
			uint8_t local[16], peer[16];
		};
		/* PROTO_HELLO and PROTO_WELCOME: a random number by which a
		 * client of another user proves to a successor of the broker
		 * that it has the class; 0: none */
		uint64_t token;
		/* a message that introduces the broker: the version of adverb,
		 * as a string */
		char release[PROTO_RELEASE];
	};
	union {
		/* PROTO_ASK_REMOTE: the interface of link-local addresses;
		 * PROTO_SOURCE_IS: see enum proto_kind */
		uint32_t scope;
		/*
		 * A message that introduces the broker: how many seconds after
		 * the end of its last program the broker ends.  UINT32_MAX: the
		 * broker is a thread of a program, and ends with that program.
		 * PROTO_IDLE_NEVER: the broker does not end.  0: the message
		 * does not say when the broker ends.
		 */
		uint32_t idle_s;
	};
	uint32_t reserved;
	struct proto_at arena; /* PROTO_HELLO and PROTO_ARENA_IS */
	char why[96];	       /* PROTO_REFUSED: a sentence for the user */
};

_Static_assert(offsetof(struct proto, release) == 24 &&
		       offsetof(struct proto, idle_s) == PROTO_HEAD - 4,
	       "the offsets of these members are the same in every version");

/* Returns the inode number of the caller's network namespace; 0: it is not
 * known. */
static inline unsigned long long proto_namespace(void)
{
	struct stat ns = {0};

	stat("/proc/self/ns/net", &ns);
	return (unsigned long long)ns.st_ino;
}

/* Returns the inode number of the caller's PID namespace; 0: it is not known.
 */
static inline uint64_t proto_pid_space(void)
{
	struct stat ns = {0};

	return stat("/proc/self/ns/pid", &ns) ? 0 : (uint64_t)ns.st_ino;
}

/* Writes the address of the broker of a version to *a, and returns its length
 * in bytes.  Each network namespace has its own abstract addresses
 * (network_namespaces(7)). */
static inline socklen_t proto_address_of(unsigned version,
					 struct sockaddr_un *a)
{
	int length;

	*a = (struct sockaddr_un){.sun_family = AF_UNIX};
	length = snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1,
			  "adverbd-%u", version);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)length);
}

/* Writes the address of the broker of this version to *a, and returns its
 * length in bytes. */
static inline socklen_t proto_address(struct sockaddr_un *a)
{
	return proto_address_of(PROTO_VERSION, a);
}

/* Completes the message m, which introduces this process as a broker: sets
 * magic, version, about, release and idle_s.  idle_s: see struct proto. */
void proto_introduce(struct proto *m, uint32_t idle_s);
/*
 * Connects to the broker of a version, and never waits.  The caller has found
 * out by proto_look that it trusts the broker.  Since then another process may
 * have begun to listen.  Therefore the socket takes no descriptors
 * (scm_rights_let_bring) until the caller, after a check of SO_PEERCRED, allows
 * them.  Returns a non-blocking socket, which the caller owns, or -errno;
 * -ECONNREFUSED: there is no broker; -EAGAIN: the listener's queue is full.
 */
int proto_connect(unsigned version);
/*
 * Finds out which process listens as the broker of a version, and never waits.
 * The connection that is made for this is shut down for reading, so that the
 * process can send nothing there.  A process that is not trusted could
 * otherwise send descriptors whose close takes as long as that process likes,
 * and the close of the connection would close these.  Returns 0 with *who, or
 * -errno; -ECONNREFUSED: no process listens; -EAGAIN: the listener's queue is
 * full.
 */
int proto_look(unsigned version, struct ucred *who);
/*
 * Sends a message with the descriptors that m->brings names, which stay the
 * caller's: fds[0] is that of the lowest bit, fds[1] that of the next bit that
 * is set, and so on.  Never waits.  Returns 0 or -errno.  -EAGAIN: the socket
 * has no room; -EPIPE: the other end is closed; -ETOOMANYREFS: more descriptors
 * of this user are in flight than this process's hard limit on open files
 * allows.
 */
int proto_send(int socket, const struct proto *m, const int *fds);
/*
 * Receives one message into *m, which the caller has zeroed; never waits.
 * fds[k] becomes the descriptor of bit k of m->brings, or -1.  The caller owns
 * the descriptors, also if the call fails.  Returns 0, or: -EAGAIN: there is no
 * message; -EPIPE: the other end is closed, or has sent an empty message, which
 * looks the same; -ECONNRESET: the other end is closed, and the next call reads
 * its last message; -EPROTO: the message is not one of this protocol, or brings
 * too many descriptors; -EPROTONOSUPPORT: the message is of another version,
 * and *m has the fields that every version has; -EMFILE: the limit on open
 * files left no room for some of the descriptors, *m is valid, and fds has the
 * descriptors that did come; or another -errno of recvmsg(2).
 */
int proto_receive(int socket, struct proto *m, int fds[PROTO_FDS]);

#endif
