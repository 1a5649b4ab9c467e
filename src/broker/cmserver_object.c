/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/cmserver_object.h"

#include <errno.h>

#include "cm/cm.h"
#include "util/check.h"

/* Users other than the broker's own get objects only while fewer objects than
 * this are in use.  The number is that of the ephemeral ports, since each
 * object may have such a port. */
#define SHARED_OBJECTS (PORTS_EPHEMERAL_LAST - PORTS_EPHEMERAL_FIRST + 1)
#define CLIENT_MAX     16384 /* objects of one client */
/* After the end of a listener whose client is not gone, requests for the
 * listener are held for this time, since the program may listen again. */
#define AGAIN_NS     2000000000u
#define INDEX_BITS   16 /* low bits of an id; the others are the generation */
#define INDEX_OF(id) ((id) & ((1u << INDEX_BITS) - 1))

/* Returns 0 if the client may have another object; -EDQUOT: the client's user
 * has used up its share; -ENOMEM: the client, or all clients together, have as
 * many objects as there may be. */
static int may_have_object(const struct cmserver *s,
			   const struct cmserver_client *c)
{
	const struct user_share *share = c->share;
	uint32_t used = s->fresh - s->free_count;
	uint32_t limit =
		share->cm.is_exempt ? CMSERVER_OBJECTS : SHARED_OBJECTS;

	if (c->objects == CLIENT_MAX)
		return -ENOMEM;
	return cm_owner_may_add(&share->cm, share->objects,
				used < limit ? limit - used : 0);
}

int cmserver_object_new(struct cmserver *s, struct cmserver_client *c,
			struct cmserver_object **made)
{
	int err = may_have_object(s, c);
	uint16_t generation;
	struct cmserver_object *o;

	if (err)
		return err;
	o = &s->object[s->free_count ? s->free_list[--s->free_count]
				     : s->fresh++];
	/* the generation is never 0: with index 0 the id would be 0, which
	 * names no object */
	generation = (uint16_t)(o->generation % UINT16_MAX + 1);
	*o = (struct cmserver_object){.client = c,
				      .generation = generation,
				      .binding = CMSERVER_NONE,
				      .listener = CMSERVER_NONE};
	list_init(&o->link);
	list_push_tail(&c->own, &o->link);
	c->objects++;
	c->share->objects++;
	*made = o;
	return 0;
}

uint32_t cmserver_object_id(const struct cmserver *s,
			    const struct cmserver_object *o)
{
	return (uint32_t)o->generation << INDEX_BITS |
	       (uint32_t)(o - s->object);
}

struct cmserver_object *cmserver_object_find(struct cmserver *s, uint32_t id)
{
	struct cmserver_object *o = INDEX_OF(id) < CMSERVER_OBJECTS
					    ? &s->object[INDEX_OF(id)]
					    : NULL;

	return o && o->client && cmserver_object_id(s, o) == id ? o : NULL;
}

void cmserver_object_free(struct cmserver *s, struct cmserver_object *o,
			  uint64_t now_ns)
{
	CHECK(o->client);
	/* an object without a conversation has written no record: the record in
	 * its slot may be one of an earlier broker */
	if (o->conv)
		cm_journal_write(&s->cm_journal,
				 INDEX_OF(cmserver_object_id(s, o)),
				 &o->client->process, &(struct cm_note){0});
	if (o->listener != CMSERVER_NONE)
		cm_unlisten(s->cm, o->listener,
			    o->client->is_gone ? 0 : now_ns + AGAIN_NS);
	if (o->binding != CMSERVER_NONE)
		ports_unbind(s->ports, o->binding);
	if (o->conv)
		cm_release(s->cm, o->conv, now_ns);
	list_remove(&o->link);
	o->client->objects--;
	o->client->share->objects--;
	o->client = NULL;
	s->free_list[s->free_count++] = (uint32_t)(o - s->object);
}

void cmserver_object_note(struct cmserver *s, const struct cmserver_object *o,
			  struct cmproto *m)
{
	struct cm_note note;

	if (!o->conv)
		return;
	cm_note_make(s->cm, o->conv, &note);
	cm_journal_write(&s->cm_journal, INDEX_OF(cmserver_object_id(s, o)),
			 &o->client->process, &note);
	cm_seal_write(&s->seal, &note, m->note);
}
