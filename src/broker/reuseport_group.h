/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receive sockets of UDP port 4791: one of the broker's, then one for each
 * process of its user, all in one SO_REUSEPORT group.  A member is never
 * closed, since the kernel would move the last one into the hole: its class
 * rests, is drained and is given to the next process of that user.  Whoever has
 * a member could steer all of the group, so what comes for other users'
 * processes is handed on to them (other_user.h).
 *
 *	index	0		  the broker's own socket
 *		1..count-1	  members, in the order of bind
 *		...		  nobody's
 *		..STEER_CLASS_MAX other users' processes, in the upper half
 *
 * A class is an index under the group's key (steer.h), and is what everybody
 * else knows.  One owner, no lock.
 */
#ifndef BROKER_REUSEPORT_GROUP_H
#define BROKER_REUSEPORT_GROUP_H

#include "broker/fd_store.h"
#include "broker/steer.h"
#include "wire/udp.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define REUSEPORT_REST_MS 100 /* how long a freed class is left alone */

enum reuseport_group_use {
	REUSEPORT_NOBODYS, /* a process of any user may get the class */
	REUSEPORT_OWNED,   /* a client has the class */
	REUSEPORT_RESTING, /* released less than REUSEPORT_REST_MS ago */
	REUSEPORT_FREE	   /* for a process of the user that had it last */
};

struct reuseport_group_member {
	int fd;
	int page_fd;	     /* to write it, -1: none */
	uint64_t generation; /* of the page */
	int relay_fd;	     /* the sending end of the relay to fd; -1: none */
	uint32_t relay_most; /* bytes that may wait in that relay */
	enum reuseport_group_use use;
	bool is_foreign;
	uid_t user; /* who has or had the socket, and may still hold it */
	uint64_t freed_ms;
};

struct reuseport_group {
	uint32_t count; /* members, the broker's own among them; 0: not bound */
	struct reuseport_group_member
		member[STEER_CLASS_MAX + 1]; /* by index */
	struct steer_key key;
	uid_t user; /* whose processes may be members: the broker's */
	struct fd_store fd_store; /* of all members; may hold nothing */
	/*
	 * The kernel cannot steer: all comes to member 0, the broker hands it
	 * on, and a member's fd is the end of a relay (wire/relay.h).
	 */
	bool is_relayed;
	bool may_steer;
	uint64_t handed_on, lost;
};

enum reuseport_group_port {
	REUSEPORT_PORT_FREE,
	REUSEPORT_PORT_OURS, /* of a group of our user, whose broker has died */
	REUSEPORT_PORT_HELD, /* *why says by whom */
};

/* may_steer false: as if the kernel could not. */
void reuseport_group_init(struct reuseport_group *g, bool may_steer);
/*
 * Gives a class to the client that is process pid of user; its descriptors stay
 * the group's.  now_ms: CLOCK_MONOTONIC.  0, or -errno with a sentence in *why,
 * which lasts until the next call.
 */
int reuseport_group_take(struct reuseport_group *g, uid_t user, pid_t pid,
			 uint64_t now_ms, const char **why, uint32_t *class);
/* Who has the class or had it last; NULL: there is no such. */
const struct reuseport_group_member *
reuseport_group_at(const struct reuseport_group *g, uint32_t class);
/* Become a group of one, though nobody wants a class; false: it is one, or
 * somebody has the port. */
bool reuseport_group_claim(struct reuseport_group *g);
/* For a group that has no member: who has the port? */
enum reuseport_group_port reuseport_group_port(const char **why);
/*
 * Becomes the group of a broker that has died, from its safe, which it takes
 * in any case: the same members, classes owned as they were, those of the dead
 * resting.  0 or -errno.
 */
int reuseport_group_adopt(struct reuseport_group *g, int fd_store_fd,
			  uint64_t now_ms);
/*
 * Hands a datagram on, or drops it if nobody has the class.  Class 0 is all
 * there are: one for a group, of which their adapters know the members.
 */
void reuseport_group_relay(struct reuseport_group *g, uint32_t class,
			   const struct udp_dgram *d);
/*
 * A client of the broker before us comes for its class.  It shows its socket;
 * one of another user the end to hand on by, which is taken then.  False: the
 * class is not that process's.
 */
bool reuseport_group_recognise(struct reuseport_group *g, uint32_t class,
			       uid_t user, pid_t pid, int fd, int *relay_fd);
/* Its client is gone. */
void reuseport_group_release(struct reuseport_group *g, uint32_t class,
			     uint64_t now_ms);
bool reuseport_group_is_owned(const struct reuseport_group *g, uint32_t class);
/* The page of a class that has an owner, or -1. */
int reuseport_group_page(const struct reuseport_group *g, uint32_t class);
/* Drains what has rested; milliseconds until the next one has, -1: none. */
int reuseport_group_tick(struct reuseport_group *g, uint64_t now_ms);
void reuseport_group_close(struct reuseport_group *g);

#endif
