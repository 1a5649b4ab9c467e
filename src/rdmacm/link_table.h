/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of this process's objects at the broker: the ids by their handles,
 * the requests without an answer, and the notes of ids that were released.  If
 * the broker is killed, its successor gets them.  link.c has the connection,
 * sends the requests, and passes the broker's messages to r_table_message.  All
 * functions are called under r_lock, and only r_table_message may wait, in
 * r_tell.  link_table.c also has r_link, r_tell and r_release, which
 * rdmacm/object.h declares.
 */
#ifndef RDMACM_LINK_TABLE_H
#define RDMACM_LINK_TABLE_H

#include "rdmacm/object.h"
#include "util/bits.h"

/* A thread that waits for the answer to a request.  The struct is on that
 * thread's stack. */
struct r_waiter {
	struct list link; /* in the list of waiters */
	uint32_t serial;  /* of the request */
	uint16_t kind;	  /* of the request: CMPROTO_* */
	bool is_done;	  /* *answer is set */
	/* The answer is stored here.  If the broker is gone, only the member
	 * err is set. */
	struct cmproto *answer;
	struct r_id *id; /* the id that the request is about */
};

/* The note of an id that the program has destroyed.  If the broker dies, it may
 * not have told the peer that the conversation (cm/cm.h) has ended; then the
 * broker's successor gets the note. */
struct r_released {
	struct list link; /* in the list of r_table_released */
	uint8_t note[CMPROTO_NOTE];
};

/* A request for whose answer no thread waits.  If the broker dies before the
 * answer, the request is sent to the broker's successor again. */
struct r_pending {
	struct list link;	/* in the order of the requests */
	struct r_id *id;	/* the id that the request is about */
	struct cmproto request; /* as it was sent, or would have been sent */
};

/* Empties the table, in a forked child: the broker knows no id of the child.
 * Frees nothing. */
void r_table_reset(void);
/* Returns whether a message of n bytes from the broker has a valid size, magic
 * number, version, error and count of private data. */
bool r_table_is_valid(const struct cmproto *m, ssize_t n);
/* Handles a message of the broker that r_table_is_valid accepts: gives an
 * answer to the thread or the request for which the broker sent the answer, and
 * an event to its id. */
void r_table_message(const struct cmproto *m);

/* ---- ids ---- */

/* Returns the id with this node, r_id.by_handle. */
static inline struct r_id *r_table_id(struct list *node)
{
	return CONTAINER_OF(node, struct r_id, by_handle);
}

/* Returns whether the id has a conversation, and so a note. */
bool r_table_has_note(const struct r_id *id);
/* Returns whether the table has an id; each id in it needs a broker. */
bool r_table_has_ids(void);
/* Moves all ids out of the table to the ends of two lists: listening ids to
 * `listeners`, all others to `others`.  The nodes are r_id.by_handle.  The ids
 * keep their handles. */
void r_table_take_ids(struct list *others, struct list *listeners);
/* Removes the id from the table or from a list of r_table_take_ids, and sets
 * its handle to 0. */
void r_table_unlink(struct r_id *id);
/* Calls r_table_unlink, frees the id's requests that have no answer, and keeps
 * the note of its conversation.  Returns the handle that the id had; 0: the
 * broker does not know the id. */
uint32_t r_table_remove(struct r_id *id);

/* ---- requests ---- */

/* Adds the waiter, whose answer r_table_message stores: then w->is_done is set,
 * and r_changed broadcast.  The caller removes w->link. */
void r_table_await(struct r_waiter *w);
/* The broker is gone: answers all waiters with -EPIPE. */
void r_table_fail_waiters(void);
/* Returns whether a new request of this kind must wait, since too many requests
 * have no answer. */
bool r_table_is_full(uint16_t kind);
/* Adds the request, which the table then owns; p was allocated by malloc(3). */
void r_table_add(struct r_pending *p);
/* Handles the answer m to the request p, and frees p. */
void r_table_settle(struct r_pending *p, const struct cmproto *m);
/* The device of all ids is gone for good (ib.h): drops all requests of
 * r_table_add, and posts DEVICE_REMOVAL to all ids, but ADDR_ERROR to an id
 * that has no port yet. */
void r_table_remove_device(void);
/* There is no broker: answers all requests of r_table_add with -EPIPE. */
void r_table_fail_pending(void);
/* Returns the list of the requests of r_table_add, oldest first. */
struct list *r_table_pending(void);
/* Returns the list of struct r_released, oldest first. */
struct list *r_table_released(void);

/* Returns the result of a request of this kind, whose answer is m: 0 or -errno.
 * -EPROTO: the answer to a BIND or RESUME names no object. */
int r_table_result(uint16_t kind, const struct cmproto *m);

#endif
