/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What client and broker say to each other over an abstract SOCK_SEQPACKET
 * socket, one struct a message, in host order: both ends are one machine.
 *
 * The version is in the address too, so that programs of two versions keep
 * their brokers.  Who meets another version all the same, as `adverb doctor`
 * does, reads what is the same in every version: the fields of a struct proto
 * up to `scope`, in which a broker names itself (proto_introduce) to whoever
 * asks, and refuses whoever speaks another version.
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
#define PROTO_VERSION	 17 /* cmproto.h's is part of it: raise both */
#define PROTO_FDS	 5  /* the most that one message brings */
#define PROTO_HEAD	 60 /* bytes that are the same in every version */
#define PROTO_RELEASE	 32

#define PROTO_IDLE_NEVER (UINT32_MAX - 1)

enum proto_kind {
	PROTO_HELLO = 1, /* value: 0, asks for a class; or the class that
			  * another broker gave, with its socket and, if the
			  * broker is of its user, the safe, else what hands
			  * on to the socket; in any case, if it shares it,
			  * where its arena is, and its kick */
	PROTO_WELCOME,	 /* value: the class; brings what the client lacks: its
			  * socket, its page to write, and for a successor
			  * the safe, or what hands on to the socket */
	PROTO_REFUSED,	 /* value: an errno; why: a sentence; introduces the
			  * broker if value is EPROTONOSUPPORT */
	PROTO_ASK,	 /* value: a QPN */
	PROTO_ANSWER,	 /* value: enum proto_peer */
	PROTO_PAGE,	 /* value: a class */
	PROTO_PAGE_IS,	 /* the same value; its page to read, if it has one and
			  * is of the same user */
	PROTO_ASK_FAR,	 /* value: a QPN of the host `peer`; from `local` */
	PROTO_TREE,  /* brings the folder for counter files (counter_files.h) */
	PROTO_ARENA, /* value: a class */
	PROTO_ARENA_IS,	 /* the same value; about: enum proto_arena; where its
			  * arena is and its kick, if any */
	PROTO_DIED,	 /* one that was shown the reader's arena has ended */
	PROTO_WHO,	 /* who is the broker? */
	PROTO_WHO_IS,	 /* introduces it */
	PROTO_SOURCE,	 /* value: a class; about: a port, from which a datagram
			  * came from `local` to `peer` */
	PROTO_SOURCE_IS, /* the same; scope: has its process's user that port?
			  */
};

enum {
	PROTO_FD_SOCKET = 1,
	PROTO_FD_PAGE = 2,
	PROTO_FD_SAFE = 4,
	PROTO_FD_TREE = 8,
	PROTO_FD_KICK = 16, /* an eventfd */
};

/* LATER: its process has yet to come to this broker. */
enum proto_arena {
	PROTO_ARENA_HERE,
	PROTO_ARENA_NONE,
	PROTO_ARENA_LATER,
	PROTO_ARENA_GONE, /* with its owner; who is older reads NONE */
};

/*
 * A descriptor of another process, which it did not give away: to be opened
 * there by /proc, if the kernel lets one.
 */
struct proto_at {
	uint64_t pid_space; /* the PID namespace that pid counts in */
	uint32_t pid;	    /* 0: there is none */
	int32_t fd;
};

enum proto_peer {
	PROTO_PEER_GONE,
	PROTO_PEER_ALIVE,
	PROTO_PEER_UNKNOWN,
	PROTO_PEER_CLOSED, /* it lives, the QP answers nothing */
	PROTO_PEER_LEFT,   /* the connection to the QP has ended */
};

struct proto {
	uint32_t magic;
	uint16_t version, kind;
	uint32_t serial; /* an answer has its question's */
	uint32_t value;
	uint32_t about;	 /* an answer: the QPN; who introduces itself, and a
			  * welcome: the broker's pid */
	uint32_t brings; /* PROTO_FD_*; in this order by SCM_RIGHTS */
	union {
		struct {
			/* ASK_FAR and its ANSWER, SOURCE */
			uint8_t local[16], peer[16];
		};
		char release[PROTO_RELEASE]; /* who introduces itself */
	};
	union {
		uint32_t scope; /* ASK_FAR: interface of link-local addresses */
		uint32_t idle_s; /* who introduces itself: how long after its
				  * last program the broker ends; UINT32_MAX:
				  * with the program that it is a thread of;
				  * PROTO_IDLE_NEVER: it does not end */
	};
	uint32_t reserved;
	struct proto_at arena; /* HELLO and ARENA_IS */
	char why[96];
};

_Static_assert(offsetof(struct proto, release) == 24 &&
		       offsetof(struct proto, idle_s) == PROTO_HEAD - 4,
	       "every version has these where they are");

/* The network namespace of the caller, as its inode. */
static inline unsigned long long proto_namespace(void)
{
	struct stat ns = {0};

	stat("/proc/self/ns/net", &ns);
	return (unsigned long long)ns.st_ino;
}

/* The PID namespace of the caller, the same way; 0: it is not known. */
static inline uint64_t proto_pid_space(void)
{
	struct stat ns = {0};

	return stat("/proc/self/ns/pid", &ns) ? 0 : (uint64_t)ns.st_ino;
}

/* The broker's address in the caller's network namespace, of which each has
 * such names of its own (unix(7)); its length. */
static inline socklen_t proto_address(struct sockaddr_un *a)
{
	int length;

	*a = (struct sockaddr_un){.sun_family = AF_UNIX};
	length = snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1,
			  "adverbd-%d", PROTO_VERSION);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)length);
}

/* Completes m, a broker's word of itself; idle_s as above. */
void proto_introduce(struct proto *m, uint32_t idle_s);
/* A non-blocking connection to the broker of this version; -errno. */
int proto_connect(void);
/*
 * Sends a message with the descriptors that m->brings says; never waits.  0 or
 * -errno; -ETOOMANYREFS: more of this user are under way than our limit on open
 * files allows.
 */
int proto_send(int socket, const struct proto *m, const int *fds);
/*
 * Takes one message into a zeroed *m; fds[k] is what bit k of m->brings says,
 * or -1, and the caller's.  0; -EAGAIN: there is none; -EPIPE: the other side
 * is gone; -ECONNRESET: so it is, but what it said before may still be there;
 * -EPROTO: it is no message of this protocol; -EPROTONOSUPPORT: it is one of
 * another version, of which *m has what every version has; -EMFILE: our limit
 * on open files left no room for all that it brought: *m and fds are what there
 * was.
 */
int proto_receive(int socket, struct proto *m, int fds[PROTO_FDS]);

#endif
