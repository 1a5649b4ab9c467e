/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The communication management of an IPoIB interface in connected mode: a
 * client of the fabric's process (broker/cmproto.h).  That process sends REQ,
 * REP and DREQ for the interface.  A connection has the number that
 * ipoib/stream has given to it.  Only ipoib_cm_open waits, for the fabric.  The
 * other functions keep the messages that the socket does not take.  One thread;
 * no lock.
 */
#ifndef TOOLS_IPOIB_CM_H
#define TOOLS_IPOIB_CM_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/cmproto.h"

#define IPOIB_CM_LINKS 384 /* most connections */
/* The most messages that wait until the socket has room. */
#define IPOIB_CM_UNSENT 1024

/* The functions that tell of events at the listener and the connections.  Each
 * may call the functions of this header.  ctx: of ipoib_cm_open. */
struct ipoib_cm_sink {
	/* A neighbour asks for a connection; the function calls ipoib_cm_accept
	 * or ipoib_cm_reject with m->new_id. */
	void (*asked)(void *ctx, const struct cmproto *m);
	/* A neighbour has accepted the connection `id`; the function calls
	 * ipoib_cm_establish or ipoib_cm_close. */
	void (*accepted)(void *ctx, uint32_t id, const struct cmproto *m);
	/* The connection is refused or has ended. */
	void (*ended)(void *ctx, uint32_t id);
	/* The fabric refuses the listener or has ended it, or there is no
	 * memory.  err: -errno; 0: the fabric gives no reason. */
	void (*deaf)(void *ctx, int err);
};

/* A connection, or the listener. */
struct ipoib_cm_link {
	uint32_t id;	 /* 0: the entry is free */
	uint32_t object; /* the fabric's object (cmproto.h); 0: none yet */
	/* The number of the request for an object; 0: none is open. */
	uint32_t serial;
	/* The number of the request to listen, to connect or to accept with the
	 * object; 0: it was not sent yet. */
	uint32_t awaited;
	struct cmproto
		*request; /* waits for the object; owned; NULL: none waits */
	/* The fabric has done the request `awaited`. */
	bool is_done;
};

/* The client of one interface. */
struct ipoib_cm {
	const struct ipoib_cm_sink *sink; /* borrowed */
	void *ctx; /* the first argument of the functions of sink */
	/* The connection by which the fabric sent fd.  Stays open until
	 * ipoib_cm_fini; -1: none. */
	int connection;
	int fd;	 /* a socket for messages of cmproto.h; -1: there is none */
	int err; /* the result of ipoib_cm_receive once it has closed fd */
	uint8_t gid[16];      /* of ipoib_cm_listen */
	uint64_t service_id;  /* of the interface */
	uint32_t last_serial; /* the number of the last request */
	/* id is 1 from ipoib_cm_listen until the listener ends. */
	struct ipoib_cm_link listener;
	struct ipoib_cm_link links[IPOIB_CM_LINKS]; /* the connections */
	struct cmproto *unsent; /* a ring of IPOIB_CM_UNSENT messages; owned */
	uint32_t unsent_at;	/* the index of the oldest message */
	uint32_t unsent_count;	/* messages in the ring */
};

/* Connects to the fabric of this process.  The sink is borrowed; ctx is the
 * first argument of its functions.  Returns 0; or -1 after a sentence on stderr
 * about the interface `name`, and then *c has no descriptor. */
int ipoib_cm_open(struct ipoib_cm *c, const struct ipoib_cm_sink *sink,
		  void *ctx, const char *name);
/* Makes *c a client on the socket fd, which *c then owns.  ipoib_cm_open calls
 * this with a socket of the fabric.  Returns 0, or -1 if there is no memory;
 * then the caller still owns fd. */
int ipoib_cm_init(struct ipoib_cm *c, const struct ipoib_cm_sink *sink,
		  void *ctx, int fd);
/* Closes the sockets and frees the memory; calls no function of the sink. */
void ipoib_cm_fini(struct ipoib_cm *c);
/* Listens at the GID for requests to the interface with the QPN, and ends an
 * earlier listener.  If the fabric refuses, or there is no memory, calls the
 * sink's `deaf`, perhaps later. */
void ipoib_cm_listen(struct ipoib_cm *c, const uint8_t gid[16], uint32_t qpn);
/* Ends the listener, if there is one. */
void ipoib_cm_unlisten(struct ipoib_cm *c);
/* Is there a listener, or a request for one? */
bool ipoib_cm_is_listening(const struct ipoib_cm *c);
/* Has the fabric accepted the listener? */
bool ipoib_cm_is_heard(const struct ipoib_cm *c);
/*
 * Asks the neighbour at m->at.peer, whose UD queue pair is `qpn`, for a
 * connection with the number `id`, from the GID of ipoib_cm_listen, which the
 * caller has called before.  *m, which is copied, has the path, the queue pair
 * and the private data.  Returns false if there are IPOIB_CM_LINKS connections,
 * or no fabric or memory.
 */
bool ipoib_cm_connect(struct ipoib_cm *c, uint32_t id, uint32_t qpn,
		      const struct cmproto *m);
/* Accepts the request with the object, as the connection `id`.  m has the queue
 * pair and the private data.  Returns false, and rejects the request, if there
 * are IPOIB_CM_LINKS connections. */
bool ipoib_cm_accept(struct ipoib_cm *c, uint32_t object, uint32_t id,
		     const struct cmproto *m);
/* Rejects the request with the object, with reason 28 (IBTA 12.6.7.2). */
void ipoib_cm_reject(struct ipoib_cm *c, uint32_t object);
/* Sends the neighbour the RTU of the connection `id`, if there is one. */
void ipoib_cm_establish(struct ipoib_cm *c, uint32_t id);
/* Ends a connection, if there is one with the number. */
void ipoib_cm_close(struct ipoib_cm *c, uint32_t id);
/* Receives up to 64 messages of the fabric, and calls the functions of the
 * sink.  Returns 0; or a -errno if no more will come: then the listener is
 * gone, and the sink's `ended` was called for each connection.  -ECONNRESET:
 * the fabric has closed the socket; -EPROTO: the fabric has sent a message that
 * this version does not know; -ENOBUFS: the fabric has not read IPOIB_CM_UNSENT
 * messages.  Later calls return the same. */
int ipoib_cm_receive(struct ipoib_cm *c);
/* Sends messages that were kept.  Returns whether some are still kept. */
bool ipoib_cm_flush(struct ipoib_cm *c);

#endif
