/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The link of this process to an emulated subnet (`adverb fabric`): the
 * connection to the subnet's process, and one data end for each port of the
 * process's host.  The socket of a data end carries the packets of queue pairs
 * by LID, unless they go by rings in shared memory (fabric/proto.h).  A process
 * has at most one link, of one device.
 *
 *	fabric_link_turn	packets -> engine; changes of the ports
 *	fabric_link_send	engine -> packets
 *	fabric_link_attach	the groups whose packets a port receives
 *
 * Only fabric_link_open and fabric_link_share wait for the fabric's answers;
 * fabric_link_turn receives the answers to later questions.  Each message of
 * the fabric is checked.  The link ends if a message is not one that a fabric
 * of this version sends, or if the fabric refuses a question.  But the link
 * goes on if the fabric refuses one of these questions: for rings
 * (link_ring.h), to join a group (fabric_link_attach), to share the arena
 * (fabric_link_share), or about direct requests (link_reach.h).  A link that
 * has ended is not opened again, since a new fabric has other LIDs and data
 * ends.
 *
 * Lock: the progress lock.  No other thread uses this file during
 * fabric_link_open, fabric_link_share, fabric_link_close and
 * fabric_link_forget, with one exception: a progress thread that could not be
 * stopped may still run during fabric_link_forget.  The functions for the
 * thread that waits need no lock.
 */
#ifndef HOST_FABRIC_LINK_H
#define HOST_FABRIC_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/device.h"
#include "engine/engine.h"
#include "fabric/proto.h"
#include "host/link_reach.h"

/*
 * Connects to the fabric that ADVERB_FABRIC names, takes the host
 * ADVERB_FABRIC_HOST, and attaches to its ports, HCA_MAX_PORTS at most.  The
 * ports are those of the engine's device `device`.  Waits at most patience_ms
 * for each answer.  Returns 0.  On failure prints a message and returns -errno.
 */
int fabric_link_open(struct engine *engine, uint32_t device,
		     uint32_t patience_ms);
/*
 * Shares this process's arena with the other programs of the subnet, so that
 * requests between them need no packets (fabric_link_reach).  @wake_fd: the
 * eventfd that wakes this process.  Waits for the fabric's answer, but at most
 * patience_ms of fabric_link_open.  False: the fabric refuses the arena, no
 * answer came, or the fabric's page cannot be mapped.  The arena is then not
 * shared, and programs send packets.
 */
bool fabric_link_share(struct engine *engine, int arena_fd, int wake_fd);
/* Asks which program the packets of a queue pair reach, and describes that
 * program in *reached.  Does not wait: after LINK_REACH_ASKED the caller asks
 * again.  LINK_REACH_NO also if the link has ended or the arena is not
 * shared. */
enum link_reach_is fabric_link_reach(const struct link_reach_about *about,
				     struct fabric_reached *reached);
/* Ends the link, if there is one.  A child of this process that has inherited
 * the link's descriptors cannot use the link from then on either. */
void fabric_link_close(void);
/* Closes the descriptors of the link that the child of a fork has inherited,
 * also of a link that the parent was opening.  The parent's link goes on.
 * Also called in a process whose progress thread could not be stopped: that
 * thread may still read the rings and the fabric's page, which stay mapped. */
void fabric_link_forget(void);

/* Is there a link?  True also if it has ended. */
bool fabric_link_is_open(void);
/* Has the link ended, so that the device has failed?  Needs no lock. */
bool fabric_link_has_ended(void);
/* Makes a QPN of this process's data ends from random bits.  Returns 0 if the
 * link has ended. */
uint32_t fabric_link_qpn(uint32_t random);

/*
 * Receives packets, at most @rounds batches of each port, and gives them to the
 * engine until engine_is_choked returns true.  Receives news and answers about
 * the ports, and tells the engine.  If each port has rings and no question is
 * open, a call may leave the sockets out, but at least every 16th look at the
 * rings includes them.  So news there may be found some calls later.
 * @was_woken: looks at the sockets if the rings have no packets.  If the link
 * ends now, fails the queue pairs of the device, and prints a message.  Returns
 * whether there was anything to do.
 */
bool fabric_link_turn(struct engine *engine, unsigned rounds, bool was_woken,
		      uint64_t now_ns);
/* Would fabric_link_turn find anything to do?  Leaves the sockets out as often
 * as fabric_link_turn does.  Calls no function that is a cancellation point. */
bool fabric_link_has_news(void);
/* Have packets been received that the engine has not taken yet? */
bool fabric_link_is_behind(void);
/* Makes fabric_link_fd readable at the fabric's next packet.  False: the
 * rings (link_ring.h) have packets now or are broken, or the kernel has no
 * memory to send a question to the fabric, or a wake-up for which the fabric
 * waits.  After any thread has received packets or messages, a thread calls
 * this function again before it waits. */
bool fabric_link_idle(void);
/*
 * Sends the first k of n frames, and returns k.  Each frame is one of an
 * InfiniBand link (engine_frame.head).  If k < n, the socket or ring of a port
 * is full.  The caller tries again later; a caller that waits for room first
 * calls fabric_link_wants_room, and then waits for POLLOUT of
 * fabric_link_full_fd.  Frames of a port without a data end, and all frames of
 * a link that has ended, are dropped.
 */
size_t fabric_link_send(const struct engine_frame *frames, size_t n);
/* Called before a wait for room: makes full_fd, a descriptor that
 * fabric_link_full_fd has returned, have POLLOUT only when there is room.  Does
 * nothing if full_fd is not a descriptor of the link.  False: there is room
 * now, and the caller does not wait. */
bool fabric_link_wants_room(int full_fd);
/* Returns the descriptor that has POLLOUT when there is room again, after
 * fabric_link_send has sent fewer than n frames; -1: fabric_link_send has
 * always sent all. */
int fabric_link_full_fd(void);

/*
 * Counts one use of the multicast group `gid` at a port: for the first use, the
 * process's data end joins the group.  One fabric_link_detach ends each use.
 *
 * Returns before the fabric has answered.  The port does not receive packets of
 * the group that come before the fabric's answer.  The fabric may refuse the
 * group, though a fabric of this release does so only if the data end has
 * joined DATA_GROUPS groups.  Then a message tells the user, the link
 * continues, and the port receives no packets of the group.  The use stays
 * counted, since a caller could not take back the success that it has reported.
 * The next fabric_link_attach of the group at the port asks the fabric again.
 *
 * Returns 0, or -errno with a constant sentence in *why.  -EINVAL: there is no
 * such port, or gid is not a multicast GID; -ENOSPC: LINK_GROUPS_MAX other
 * groups are in use at the port; -EIO: there is no link, or the link has ended.
 */
int fabric_link_attach(struct engine *engine, uint32_t port,
		       const uint8_t gid[16], uint64_t now_ns,
		       const char **why);
/*
 * Ends one use of the multicast group `gid` at a port: after the last use, the
 * process's data end leaves the group.  Until the fabric has answered, packets
 * of the group may come; the engine drops them.  Works also if the link has
 * ended.  Returns 0, or -EINVAL with a constant sentence in *why: there is no
 * such port, or the group is not in use at the port.
 */
int fabric_link_detach(struct engine *engine, uint32_t port,
		       const uint8_t gid[16], uint64_t now_ns,
		       const char **why);

/* Returns how many ports the link has, numbered from 1; 0: there is no link. */
uint32_t fabric_link_ports(void);
/* Copies the state of port `number`, as the fabric last reported it, to *port.
 * False: there is no such port. */
bool fabric_link_port(uint32_t number, struct fabric_port *port);
/* Returns what has changed at port `number` since the last call, as a set of
 * enum data_change; 0 if there is no such port.  fabric_link_port returns the
 * state after these changes. */
uint32_t fabric_link_take_changes(uint32_t number);

/* Tells the device layer the state of each port that has changed since the last
 * call of this function; is_new: of every port.  dev: the device of the link;
 * NULL: tells nothing. */
void fabric_link_show(const struct device *dev, bool is_new);

/* For the thread that waits: returns the descriptor at whose POLLIN
 * fabric_link_turn is due, or -1.  Packets in rings make the descriptor
 * readable only after fabric_link_idle. */
int fabric_link_fd(void);
/* For the thread that waits: returns a number that changes when fabric_link_fd
 * changes. */
uint32_t fabric_link_changes(void);
/* For the thread that waits: returns false if the program has closed a
 * descriptor of the link, or has put another file in its place.  The next
 * fabric_link_turn then ends the link, and leaves the message to
 * progress_has_files. */
bool fabric_link_is_ours(void);

#endif
