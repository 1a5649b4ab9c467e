/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connection management for programs on the hosts of a fabric.  For programs
 * that use no fabric the broker does this work.  Each host with a client (a
 * program that fabric_cm_open has added) has a cmserver (broker/cmserver.h),
 * whose addresses are GIDs, and an end at each of the host's first
 * FABRIC_PROTO_PORTS ports for the MADs of classes 7 (CM) and 3 (SA).  The
 * cmserver and the ends stay until the host's last client has ended, its last
 * conversation has ended, and its last question about a multicast group is
 * answered.
 *
 *	program -- struct cmproto --> cmserver -- MAD --> end --> the subnet
 *	       \-- CMPROTO_ROUTE --> PathRecord query --> end --> the SA
 *
 * The loop of the fabric's process calls these functions: one thread, no lock,
 * and no call waits.  Messages of programs and MADs are not trusted.
 */
#ifndef TOOLS_FABRIC_CM_H
#define TOOLS_FABRIC_CM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct end;
struct fabric;
struct fabric_cm;
struct fabric_cm_client;

enum {
	FABRIC_CM_HOSTS = 2048,	  /* most hosts with connection management */
	FABRIC_CM_CLIENTS = 1024, /* most programs of a host */
	FABRIC_CM_QUERIES = 1024, /* most open path queries of a program */
};

/* In the fabric's process, fabric_owner returns a pointer to such a struct for
 * each end.  While the end has messages to fetch, the loop calls read, which
 * fetches all of them or pauses the end. */
struct fabric_cm_reader {
	void (*read)(void *user, struct end *end);
	void *user; /* the first argument of `read` */
};

/* Makes the connection management of a fabric, which is borrowed.  NULL: there
 * is no memory or no descriptor (errno). */
struct fabric_cm *fabric_cm_new(struct fabric *f);
/* Frees cm and its hosts.  The caller has closed all clients before. */
void fabric_cm_free(struct fabric_cm *cm);
/* Returns a descriptor of cm, which the caller polls for POLLIN and does not
 * close.  The descriptor is readable if fabric_cm_serve has something to do. */
int fabric_cm_fd(const struct fabric_cm *cm);
/*
 * Adds a program, process pid of this user, on the host that has the GID.
 * Returns the program's socket, which the caller gives to the program and
 * closes.  *place is then the client.  When the program closes the socket,
 * sends a wrong message or does not read its messages, the client ends and
 * *place becomes NULL; `place` must be valid until then.  On failure *place is
 * not changed.  -ENODEV: no host has the GID at its first FABRIC_PROTO_PORTS
 * ports; -EMFILE: the host has FABRIC_CM_CLIENTS programs, or there are
 * FABRIC_CM_HOSTS hosts or too many ends; -ENOMEM; or the -errno of
 * socketpair(2) or epoll_ctl(2).
 */
int fabric_cm_open(struct fabric_cm *cm, const uint8_t gid[16], pid_t pid,
		   struct fabric_cm_client **place);
/* Ends a client: releases its port numbers of rdma_cm, leaves its multicast
 * groups, ends its conversations, and tells the peers of the conversations. */
void fabric_cm_close(struct fabric_cm_client *c);
/* Handles the last messages of a client whose program has ended or has closed
 * its connection, at most 1024 batches of them, and ends the client. */
void fabric_cm_hang_up(struct fabric_cm_client *c);
/* Handles messages of programs. */
void fabric_cm_serve(struct fabric_cm *cm);
/* Runs the timers that are due, and sends programs the messages that wait for
 * them.  The caller calls this at the end of each turn of the caller's loop.
 * Returns whether a descriptor was closed since the last call. */
bool fabric_cm_turn(struct fabric_cm *cm);
/* Returns the time of the next fabric_cm_turn that is needed, in ms of
 * monotonic_ms; 0: at once; FABRIC_NEVER: none is needed. */
uint64_t fabric_cm_deadline(const struct fabric_cm *cm);

#endif
