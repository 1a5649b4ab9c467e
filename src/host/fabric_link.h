/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The link of this process to an emulated subnet (`adverb fabric`): the
 * connection to the subnet's process, and for each port of the process's host
 * the data end whose socket carries the packets of queue pairs by LID
 * (fabric/proto.h).  A process has at most one link, of one device.
 *
 *	fabric_link_turn	packets -> engine; what a port has become
 *	fabric_link_send	engine -> packets
 *	fabric_link_attach	the groups whose packets a port receives
 *
 * Only fabric_link_open waits for the fabric.  Later questions are sent, and a
 * later fabric_link_turn receives the answers.  All that comes from the fabric
 * is checked; the link ends if a fabric of this version does not send it.  Only
 * a refusal to join a group does not end it (fabric_link_attach).  A link that
 *has ended stays so: a new fabric has other LIDs and ends.
 *
 * Lock: the progress lock.  fabric_link_open, fabric_link_close and
 * fabric_link_forget are called while no other thread uses this file.  The
 * functions for the thread that waits need no lock.
 */
#ifndef HOST_FABRIC_LINK_H
#define HOST_FABRIC_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/engine.h"
#include "fabric/proto.h"

/*
 * Connects to the fabric that ADVERB_FABRIC names, takes the host
 * ADVERB_FABRIC_HOST, and attaches to its ports, HCA_MAX_PORTS at most.  The
 * ports are those of the engine's device `device`.  Waits at most patience_ms
 * for each answer.  Returns 0, or -errno after a sentence to the user.
 */
int fabric_link_open(struct engine *engine, uint32_t device,
		     uint32_t patience_ms);
/* Ends the link, if there is one, also for the children of forks. */
void fabric_link_close(void);
/* Closes the descriptors of the link that the child of a fork has inherited.
 * The parent's link goes on. */
void fabric_link_forget(void);

/* Is there a link?  True also if it has ended. */
bool fabric_link_is_open(void);
/* Has the link ended, so that the device has failed?  Needs no lock. */
bool fabric_link_has_ended(void);
/* Makes a QPN of this process's data ends from random bits; 0: the link has
 * ended. */
uint32_t fabric_link_qpn(uint32_t random);

/*
 * Receives packets, at most @rounds batches of each port, and gives them to the
 * engine until the engine is choked.  Receives news and answers about the
 * ports, and tells the engine.  If the link has ended, fails the queue pairs of
 * the device, and prints a sentence.  Returns whether anything came.
 */
bool fabric_link_turn(struct engine *engine, unsigned rounds, uint64_t now_ns);
/* Would fabric_link_turn find anything to do?  Makes no call that is a
 * cancellation point. */
bool fabric_link_has_news(void);
/* Are packets received that the engine did not take yet? */
bool fabric_link_is_behind(void);
/*
 * Sends the first k of n frames, which all have a head, and returns k.  If k <
 * n, the socket fabric_link_full_fd is full, and the caller waits for its
 * POLLOUT.  Frames of a port without a data end, and all frames of a link that
 * has ended, are dropped.
 */
size_t fabric_link_send(const struct engine_frame *frames, size_t n);
/* Returns the socket that was full in the last fabric_link_send. */
int fabric_link_full_fd(void);

/*
 * Counts a queue pair that is attached to the multicast group `gid` at a port:
 * for the first one, the process's data end joins the group.  The caller calls
 * this once for each queue pair and group, after engine_mcast_attach.
 *
 * Returns before the fabric has answered.  The port does not receive packets of
 * the group that come before the fabric's answer.  The fabric may refuse the
 * group, though a fabric of this release does so only if the process had joined
 * DATA_GROUPS groups.  Then a sentence tells the user, the link goes on, and
 * the port receives no packets of the group.  The queue pair stays counted,
 * since a caller could not take back the success that it has reported.  The
 * next fabric_link_attach of the group at the port asks the fabric again.
 *
 * Returns 0, or -errno with a constant sentence in *why: -EINVAL: no such port,
 * or not a multicast GID; -ENOSPC: queue pairs are attached to HOST_MAX_GROUPS
 * other groups at the port; -EIO: there is no link, or it has ended.
 */
int fabric_link_attach(struct engine *engine, uint32_t port,
		       const uint8_t gid[16], uint64_t now_ns,
		       const char **why);
/*
 * Counts a queue pair that is no longer attached: after the last one the data
 * end leaves the group.  Until the fabric has answered, packets of the group
 * may come; the engine drops them.  Works also if the link has ended.  Returns
 * 0, or -EINVAL with a constant sentence in *why: no such port, or no queue
 * pair is attached to the group there.
 */
int fabric_link_detach(struct engine *engine, uint32_t port,
		       const uint8_t gid[16], uint64_t now_ns,
		       const char **why);

/* Returns how many ports there are. */
uint32_t fabric_link_ports(void);
/* Copies what the fabric says of port `number`.  False: there is no such port.
 */
bool fabric_link_port(uint32_t number, struct fabric_port *port);
/* Returns what has changed at port `number`, a set of enum data_change, since
 * the last call.  fabric_link_port shows the changes. */
uint32_t fabric_link_take_changes(uint32_t number);

/* For the thread that waits: returns the descriptor at whose POLLIN
 * fabric_link_turn is due, or -1. */
int fabric_link_fd(void);
/* Returns a number that changes when fabric_link_fd changes. */
uint32_t fabric_link_changes(void);
/* Returns false if the program has closed a descriptor of the link, or has put
 * another file in its place.  The link has then ended, without a sentence. */
bool fabric_link_is_ours(void);

#endif
