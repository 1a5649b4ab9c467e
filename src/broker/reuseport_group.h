/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receive sockets of UDP port 4791, all in one SO_REUSEPORT group: one of
 * the broker's own, and then one for each process of the broker's user.  A
 * member is not closed while the group is in use, since the kernel would give
 * its index to the last member.  Instead the class of a dead process rests, its
 * member is drained, and the class goes to the next process of the broker's
 * user.  A process that has a member could steer the whole group.  So processes
 * of other users get no member; the broker relays their datagrams to them
 * (other_user.h).
 *
 *	index	0		  the broker's own socket
 *		1..count-1	  members, in the order of bind
 *		...		  no process
 *		..STEER_CLASS_MAX processes of other users, in the upper half
 *				  while it has room
 *
 * A class is an index, permuted by the group's key (steer.h).  Only the broker
 * knows indexes: QPNs, messages and other processes have classes.  One owner,
 * no lock.
 */
#ifndef BROKER_REUSEPORT_GROUP_H
#define BROKER_REUSEPORT_GROUP_H

#include "broker/fd_store.h"
#include "broker/steer.h"
#include "wire/udp.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define REUSEPORT_REST_MS 100 /* how long a class rests after its release */
#define REUSEPORT_GROUP_FULL                                                   \
	"every steering class of port 4791 is taken: end some RDMA programs"

enum reuseport_group_use {
	REUSEPORT_NOBODYS, /* unused: a process of any user may get the class */
	REUSEPORT_OWNED,   /* a process has the class */
	REUSEPORT_RESTING, /* released less than REUSEPORT_REST_MS ago */
	/* unused: a process of the last user may get the class */
	REUSEPORT_FREE,
	/* unused: its page could not be cleared for a new owner; the next
	 * reuseport_group_tick makes it REUSEPORT_RESTING */
	REUSEPORT_UNCLEARED
};

struct reuseport_group_member {
	/* the receive socket, or the receiving end of a relay; -1: none, or
	 * only the other user's process has that end */
	int fd;
	int page_fd; /* the member's page, for writing; negative: none */
	uint64_t generation; /* the generation of the page */
	int relay_fd;	     /* the sending end of the relay to fd; -1: none */
	/* how many bytes of kernel memory may wait in that relay */
	uint32_t relay_most;
	enum reuseport_group_use use;
	bool is_other_user; /* an index of a user other than the broker's */
	/* is_other_user: the token of the process (proto.h); 0: none */
	uint64_t token;
	uid_t user;	   /* the user that has the class, or had it last */
	uint64_t freed_ms; /* when the class was released, CLOCK_MONOTONIC */
};

struct reuseport_group {
	/* how many members there are, with the broker's own; 0: not bound */
	uint32_t count;
	struct reuseport_group_member
		member[STEER_CLASS_MAX + 1]; /* by index */
	struct steer_key key; /* permutes classes to indexes (steer.h) */
	uid_t user; /* the broker's user, whose processes may be members */
	/* the fd store, with the sockets and pages of all members; it may hold
	 * nothing */
	struct fd_store fd_store;
	/* The kernel cannot steer.  Member 0 receives every datagram, the
	 * broker relays it, and the fd of another member is the receiving end
	 * of a relay (wire/relay.h). */
	bool is_relayed;
	bool may_steer;	  /* false: behave as if the kernel could not steer */
	uint64_t relayed; /* datagrams that the broker has relayed */
};

enum reuseport_group_port {
	REUSEPORT_PORT_FREE,
	/* held by members of a group of this user, whose broker has died */
	REUSEPORT_PORT_OURS,
	/* Held by the program that *why names, or no socket can be opened.  A
	 * broker of another version counts as such a program, even if it is of
	 * this user and its group would accept a socket of this broker. */
	REUSEPORT_PORT_HELD,
};

/* Initialises *g: a group without a member.  may_steer false: the group behaves
 * as if the kernel could not steer. */
void reuseport_group_init(struct reuseport_group *g, bool may_steer);
/*
 * Gives a class to process pid of `user`.  The descriptors of its member stay
 * the group's.  now_ms: CLOCK_MONOTONIC.  Returns 0 with *class; or -errno with
 * a sentence in *why, which is valid until the next call.  -ENOSPC: no class is
 * left for that user; -EADDRINUSE: the group has no member yet, and other
 * processes have the port; or another -errno: a socket, a relay or a page
 * cannot be made.
 */
int reuseport_group_take(struct reuseport_group *g, uid_t user, pid_t pid,
			 uint64_t now_ms, const char **why, uint32_t *class);
/* Returns the member that has the class or had it last, which stays the
 * group's; NULL: there is none. */
const struct reuseport_group_member *
reuseport_group_at(const struct reuseport_group *g, uint32_t class);
/* Opens member 0 before a client asks for a class.  False: the group has
 * members already, somebody has the port, or the socket cannot be opened. */
bool reuseport_group_claim(struct reuseport_group *g);
/* For a group without members, returns whether the port is free.  If not, sets
 * *why to a sentence, which is valid until the next call. */
enum reuseport_group_port reuseport_group_port(const char **why);
/*
 * Takes over the group of a dead broker, with the members and the owners of
 * classes that its fd store names.  Takes ownership of fd_store_fd, even if the
 * call fails.  own: a socket of this broker, which stays the caller's; the
 * members must be in its network namespace.  now_ms: CLOCK_MONOTONIC.  Returns
 * 0, or -errno: the group is empty.  -EPROTO: the store has contents that no
 * broker has written, or cannot be opened.  -EMFILE: the limit on open files
 * leaves no room for all members.  -ENOENT: the store has no member.
 */
int reuseport_group_adopt(struct reuseport_group *g, int fd_store_fd, int own,
			  uint64_t now_ms);
/* Relays a datagram, which is borrowed, to the owner of a class, or drops it.
 * Class 0: relays a multicast datagram to every owner that has a relay; the
 * owner's adapter knows which of its QPs are in the multicast group. */
void reuseport_group_relay(struct reuseport_group *g, uint32_t class,
			   const struct udp_dgram *d);
/*
 * Gives a client of an earlier broker, process pid of `user`, the class that it
 * had there.  The client proves that it had the class.  A client of the
 * broker's user proves it by fd, its socket of the port.  A client of another
 * user proves it by the token that came with the class, and has a new relay
 * then.  Returns 0; -ESTALE: the class is not that process's; or the -errno
 * with which no relay could be made.
 */
int reuseport_group_recognise(struct reuseport_group *g, uint32_t class,
			      uid_t user, pid_t pid, int fd, uint64_t token);
/* Notes that the client of a class has the descriptors of its member.  If the
 * client is of another user, the broker now closes the receiving end of the
 * relay, and keeps only the sending end. */
void reuseport_group_sent(struct reuseport_group *g, uint32_t class);
/* Releases a class whose client is gone.  now_ms: CLOCK_MONOTONIC. */
void reuseport_group_release(struct reuseport_group *g, uint32_t class,
			     uint64_t now_ms);
/* Returns whether a client has the class. */
bool reuseport_group_is_owned(const struct reuseport_group *g, uint32_t class);
/* Returns the descriptor of the page of a class that has an owner, for writing;
 * it stays the group's.  Negative: there is none. */
int reuseport_group_page(const struct reuseport_group *g, uint32_t class);
/* Drains the members that have rested, and makes their classes free.  Calls
 * other_user_tick for each index of another user.  Lets the members rest whose
 * page could not be cleared.  Returns after how many milliseconds the next
 * class has rested; -1: none rests.  now_ms: CLOCK_MONOTONIC. */
int reuseport_group_tick(struct reuseport_group *g, uint64_t now_ms);
/* Closes all members and the fd store.  After that the group is empty. */
void reuseport_group_close(struct reuseport_group *g);

#endif
