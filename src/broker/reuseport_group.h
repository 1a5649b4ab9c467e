/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receive sockets of UDP port 4791: one of the broker's, then one for each
 * process of its user, all in one SO_REUSEPORT group.  A member is never
 * closed, since the kernel would move the last one into the hole: its class
 * rests, is drained and is given to the next process of that user.  A process
 * with a member could steer the whole group, so datagrams for processes of
 * other users are relayed to them (other_user.h).
 *
 *	index	0		  the broker's own socket
 *		1..count-1	  members, in the order of bind
 *		...		  no process
 *		..STEER_CLASS_MAX processes of other users, in the upper half
 *
 * A class is an index under the group's key (steer.h).  Outside of the broker
 * only classes are known.  One owner, no lock.
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

enum reuseport_group_use {
	REUSEPORT_NOBODYS, /* a process of any user may get the class */
	REUSEPORT_OWNED,   /* a client has the class */
	REUSEPORT_RESTING, /* released less than REUSEPORT_REST_MS ago */
	REUSEPORT_FREE	   /* for a process of the user that had it last */
};

struct reuseport_group_member {
	int fd;
	int page_fd;	     /* the member's page, for writing; -1: none */
	uint64_t generation; /* the generation of the page */
	int relay_fd;	     /* the sending end of the relay to fd; -1: none */
	uint32_t relay_most; /* bytes that may wait in that relay */
	enum reuseport_group_use use;
	bool is_other_user;
	uid_t user; /* the user that has the class, or had it last */
	uint64_t freed_ms;
};

struct reuseport_group {
	uint32_t count; /* members, with the broker's own; 0: not bound */
	struct reuseport_group_member
		member[STEER_CLASS_MAX + 1]; /* by index */
	struct steer_key key;
	uid_t user; /* the broker's user, whose processes may be members */
	/* the sockets and pages of all members; may hold nothing */
	struct fd_store fd_store;
	/*
	 * The kernel cannot steer: member 0 receives everything, the broker
	 * relays it, and a member's fd is the receiving end of a relay
	 * (wire/relay.h).
	 */
	bool is_relayed;
	bool may_steer;
	uint64_t relayed, lost;
};

enum reuseport_group_port {
	REUSEPORT_PORT_FREE,
	/* held by a group of this user, whose broker has died */
	REUSEPORT_PORT_OURS,
	REUSEPORT_PORT_HELD, /* held by the program that *why names */
};

/* Makes a group without a member.  may_steer false: the group behaves as if the
 * kernel could not steer. */
void reuseport_group_init(struct reuseport_group *g, bool may_steer);
/*
 * Gives a class to the client that is process pid of user; its descriptors stay
 * the group's.  now_ms: CLOCK_MONOTONIC.  0, or -errno with a sentence in *why,
 * which lasts until the next call.
 */
int reuseport_group_take(struct reuseport_group *g, uid_t user, pid_t pid,
			 uint64_t now_ms, const char **why, uint32_t *class);
/* Returns the member that has the class or had it last; NULL: there is none. */
const struct reuseport_group_member *
reuseport_group_at(const struct reuseport_group *g, uint32_t class);
/* Opens member 0 before a client asks for a class.  False: the group has
 * members, or somebody has the port. */
bool reuseport_group_claim(struct reuseport_group *g);
/* Says whether the port is free, for a group without members.  If not, *why is
 * a sentence, which lasts until the next call. */
enum reuseport_group_port reuseport_group_port(const char **why);
/*
 * Takes over the group of a broker that has died, with the members and the
 * owners of classes that its fd store names.  Takes fd_store_fd in any case.  0
 * or -errno.
 */
int reuseport_group_adopt(struct reuseport_group *g, int fd_store_fd,
			  uint64_t now_ms);
/*
 * Relays a datagram to the owner of a class, or drops it.  Class 0: relays a
 * multicast datagram to all owners; their adapters know which QPs are in the
 * group.
 */
void reuseport_group_relay(struct reuseport_group *g, uint32_t class,
			   const struct udp_dgram *d);
/*
 * Gives a client of the broker before this one the class that it had.  The
 * client proves that the class is its own by fd, its socket of the port, or, if
 * it is of another user, by *relay_fd, the sending end of its relay, which is
 * then taken (*relay_fd -1).  False: the class is not that process's.
 */
bool reuseport_group_recognise(struct reuseport_group *g, uint32_t class,
			       uid_t user, pid_t pid, int fd, int *relay_fd);
/* Releases a class whose client is gone; now_ms: CLOCK_MONOTONIC. */
void reuseport_group_release(struct reuseport_group *g, uint32_t class,
			     uint64_t now_ms);
/* Whether a client has the class. */
bool reuseport_group_is_owned(const struct reuseport_group *g, uint32_t class);
/* Returns the page of a class that has an owner, for writing; -1: none.  The
 * descriptor stays the group's. */
int reuseport_group_page(const struct reuseport_group *g, uint32_t class);
/* Drains members that have rested, and makes them free.  Returns the
 * milliseconds until the next member has rested; -1: none rests. */
int reuseport_group_tick(struct reuseport_group *g, uint64_t now_ms);
/* Closes all members and the fd store; the group is empty. */
void reuseport_group_close(struct reuseport_group *g);

#endif
