/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside cmserver: its members, and the objects of its clients.  An object is a
 * bound port, a listener or a conversation, and stands for an id of a program.
 * The owner of all is the struct cmserver; no lock, as cmserver.h says.
 */
#ifndef BROKER_CMSERVER_OBJECT_H
#define BROKER_CMSERVER_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/cm_doubts.h"
#include "broker/cm_journal.h"
#include "broker/cm_output.h"
#include "broker/cm_seal.h"
#include "broker/cmserver.h"
#include "broker/share.h"
#include "cm/ports.h"
#include "util/list.h"

#define CMSERVER_OBJECTS FD_STORE_RECORDS /* the most objects */
#define CMSERVER_NONE	 UINT32_MAX	  /* no binding, or no listener */

struct cmserver_client {
	struct list link;	  /* in the server's list of clients */
	struct user_share *share; /* that of the client's user */
	struct cm_output output;  /* the messages that wait for the client */
	/* the client's user and process, as the journal names them */
	struct fd_store_entry process;
	bool is_gone;	  /* cmserver_client_free was called */
	uint32_t objects; /* how many objects `own` has */
	struct list own;  /* the client's objects */
};

struct cmserver_object {
	struct list link;		/* in its client's `own` */
	struct cmserver_client *client; /* NULL: the object is free */
	uint16_t generation; /* the high bits of the id, new for each object */
	uint16_t space;	     /* the port space (struct cmproto_address) */
	uint16_t port;	     /* in host order; 0: none */
	/* a whole service ID; 0: that of space and port */
	uint64_t service_id;
	struct cm_where where; /* the addresses that the port is bound to */
	/* the number of the bound port in `ports`; CMSERVER_NONE: none */
	uint32_t binding;
	/* the number of the listener in `cm`; CMSERVER_NONE: none */
	uint32_t listener;
	uint32_t conv;	  /* a conversation's id; 0: there is none */
	bool is_datagram; /* the conversation's messages are those of SIDR */
};

struct cmserver {
	struct cmserver_wire wire;    /* how the server reaches other hosts */
	struct share_table shares;    /* the shares of the clients' users */
	struct list clients;	      /* struct cmserver_client, by `link` */
	struct cm *cm;		      /* the conversations and listeners */
	struct ports *ports;	      /* the bound ports */
	struct cm_journal cm_journal; /* slot k is that of object[k] */
	struct cm_seal seal;	      /* seals and checks the clients' notes */
	struct cmserver_object object[CMSERVER_OBJECTS];
	uint32_t fresh; /* how many entries of object[] were ever used */
	/* how many entries below `fresh` are free now */
	uint32_t free_count;
	/* the first free_count words: the indexes of the free entries */
	uint32_t free_list[CMSERVER_OBJECTS];
	struct cm_doubts doubts; /* peers that may have lost a connection */
};

/* Makes an object for the client, and stores it in *made.  Returns 0; -EDQUOT:
 * the client's user has used up its share; -ENOMEM: the client, or all clients
 * together, have as many objects as there may be. */
int cmserver_object_new(struct cmserver *s, struct cmserver_client *c,
			struct cmserver_object **made);
/* Returns the object's id, which is not 0. */
uint32_t cmserver_object_id(const struct cmserver *s,
			    const struct cmserver_object *o);
/* Returns the object with this id, which may be any number, or NULL. */
struct cmserver_object *cmserver_object_find(struct cmserver *s, uint32_t id);
/* Frees the object, its port and its listener, and releases its conversation.
 */
void cmserver_object_free(struct cmserver *s, struct cmserver_object *o,
			  uint64_t now_ns);
/* Puts the note of the object's conversation into m, a message to the object's
 * client, and into the journal.  The client gives the note to a successor of
 * the broker.  Does nothing without a conversation. */
void cmserver_object_note(struct cmserver *s, const struct cmserver_object *o,
			  struct cmproto *m);

#endif
