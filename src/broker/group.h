/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receive sockets of UDP port 4791: one of the broker's, then one for each
 * process of its user, all in one SO_REUSEPORT group.  A member is never
 * closed, since the kernel would move the last one into the hole: its class
 * rests, is drained and is given to the next process of that user.  Whoever has
 * a member could steer all of the group, so what comes for other users'
 * processes is handed on to them (foreign.h).
 *
 *	index	0		  the broker's own socket
 *		1..count-1	  members, in the order of bind
 *		...		  nobody's
 *		..STEER_CLASS_MAX other users' processes, from the end
 *
 * A class is an index under the group's key (steer.h), and is what everybody
 * else knows.  One owner, no lock.
 */
#ifndef ADVERB_BROKER_GROUP_H
#define ADVERB_BROKER_GROUP_H

#include "broker/safe.h"
#include "broker/steer.h"
#include "wire/udp.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define GROUP_REST_MS 100 /* how long a freed class is left alone */

enum group_use { GROUP_NOBODYS, GROUP_OWNED, GROUP_RESTING, GROUP_FREE };

struct group_member {
	int fd;
	int page_fd;	     /* to write it, -1: none */
	uint64_t generation; /* of the page */
	int relay_fd;	     /* of what is relayed: hands on to fd */
	enum group_use use;
	bool is_foreign;
	uid_t user; /* who has or had the socket, and may still hold it */
	uint64_t freed_ms;
};

struct group {
	uint32_t count; /* members, the broker's own among them; 0: not bound */
	struct group_member member[STEER_CLASS_MAX + 1]; /* by index */
	struct steer_key key;
	uid_t user;	  /* whose processes may be members: the broker's */
	struct safe safe; /* of all members; may hold nothing */
	/*
	 * The kernel cannot steer: all comes to member 0, the broker hands it
	 * on, and a member's fd is the end of a relay (wire/relay.h).
	 */
	bool is_relayed;
	bool may_steer;
	uint64_t handed_on, lost;
};

enum group_port {
	GROUP_PORT_FREE,
	GROUP_PORT_OURS, /* of a group of our user, whose broker has died */
	GROUP_PORT_HELD, /* *why says by whom */
};

/* may_steer false: as if the kernel could not. */
void group_init(struct group *g, bool may_steer);
/*
 * A class for a client; its descriptors stay the group's.  -errno with a
 * sentence in *why, which lasts until the next call.
 */
int group_take(struct group *g, uid_t user, pid_t pid, const char **why,
	       uint32_t *class);
/* Who has the class or had it last; NULL: there is no such. */
const struct group_member *group_at(const struct group *g, uint32_t class);
/* Become a group of one, though nobody wants a class; false: it is one, or
 * somebody has the port. */
bool group_claim(struct group *g);
/* For a group that has no member: who has the port? */
enum group_port group_port(const char **why);
/*
 * Becomes the group of a broker that has died, from its safe, which it takes
 * in any case: the same members, classes owned as they were, those of the dead
 * resting.  0 or -errno.
 */
int group_adopt(struct group *g, int safe_fd, uint64_t now_ms);
/*
 * Hands a datagram on, or drops it if nobody has the class.  Class 0 is all
 * there are: one for a group, of which their adapters know the members.
 */
void group_relay(struct group *g, uint32_t class, const struct udp_dgram *d);
/*
 * A client of the broker before us comes for its class.  It shows its socket;
 * one of another user the end to hand on by, which is taken then.  False: the
 * class is not that process's.
 */
bool group_recognise(struct group *g, uint32_t class, uid_t user, pid_t pid,
		     int fd, int *relay_fd);
/* Its client is gone. */
void group_release(struct group *g, uint32_t class, uint64_t now_ms);
bool group_is_owned(const struct group *g, uint32_t class);
/* The page of a class that has an owner, or -1. */
int group_page(const struct group *g, uint32_t class);
/* Drains what has rested; milliseconds until the next one has, -1: none. */
int group_tick(struct group *g, uint64_t now_ms);
void group_close(struct group *g);

#endif
