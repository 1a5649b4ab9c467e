/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of RDMA devices (device/device.h): interfaces of this machine or,
 * in an emulated subnet (`adverb fabric`), the adapter of the process's host.
 * The devices are chosen once, at the first call of device_list.  From
 * netif_watch to netif_unwatch a thread of netif.c keeps the ports of
 * interfaces up to date, and reports the events of all ports.  An IPv4 address
 * in an argument has the form ::ffff:a.b.c.d.
 *
 * Lock: the functions themselves take a lock for the ports, under which they
 * take no other lock.  The caller makes sure that no two threads are in
 * netif_watch, netif_unwatch or netif_forget at once.
 */
#ifndef DEVICE_NETIF_H
#define DEVICE_NETIF_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"

/* Reports an event of port `number`.  Called by netif_watch itself, for changes
 * of interfaces since the devices were chosen, and by the thread that
 * netif_watch starts. netif.c holds no lock during the call. */
typedef void netif_on_port(const struct device *dev, uint32_t number,
			   enum device_event what);

/* Starts the thread that follows changes of the ports and calls @port, which
 * may be NULL, for each event.  If the thread cannot start, no later event is
 * reported, and the ports of interfaces keep their present state; if the thread
 * cannot be created, prints a message. */
void netif_watch(netif_on_port *port);
/*
 * Sets port `number` of the InfiniBand device to the state that the fabric has
 * reported.  @changes is a set of enum data_change.  The thread of netif_watch
 * reports an event for each of these changes that has an event in verbs.  It
 * also reports an event if the port has become active or has gone down, and
 * both of these events if the port went down and has become active again.
 */
void netif_set_port(const struct device *dev, uint32_t number,
		    const struct fabric_port *said, uint32_t changes);
/* Ends the thread and closes its descriptors.  Does not wait for the end of the
 * thread if the program has closed the eventfd that would wake the thread.
 * Does nothing if no thread runs. */
void netif_unwatch(void);
/* Closes the descriptors in the child of a fork, which does not have the
 * parent's thread. */
void netif_forget(void);

/*
 * Returns the index of the interface that has address ip, if the address is in
 * the GID table of a RoCE device; else 0.  Several interfaces may have the same
 * link-local address.  Then the result is `link` if `link` is one of these
 * interfaces, else the first one.
 */
uint32_t netif_index(const uint8_t ip[16], uint32_t link);
/* Returns netif_index(ip, link) for a link-local address, else 0. */
uint32_t netif_scope(const uint8_t ip[16], uint32_t link);
/* Returns a number that changes with each update of the ports; never 0. */
uint32_t netif_version(void);
/* Returns whether the GID table of port 1 of this device has an entry of type
 * RoCE v2 with this address.  Each address of an iWARP device has such an
 * entry, too, in a table that programs do not see (device.h).  The table of an
 * InfiniBand device has no addresses.
 */
bool netif_has_address(const struct device *dev, const uint8_t ip[16]);
/* Returns whether the address is in the GID table of any RoCE device. */
bool netif_is_local(const uint8_t ip[16]);
/* Returns the index, in the table of device_list, of the RoCE device whose GID
 * table has `ip`, the destination address of a datagram; -1: there is none.
 * `link` is the index of the interface by which the datagram came in.  If
 * several entries have the address, one of that interface is preferred.  If the
 * address is a multicast group, the result is the RoCE device of that
 * interface, else the first RoCE device, else -1. */
int netif_device(const uint8_t ip[16], uint32_t link);
/* Sets mac to the MAC of the device whose own interface has the address, or to
 * zeros if there is no such device.  If several interfaces have the address,
 * the result is the MAC of the first RoCE device among them, or else of the
 * first iWARP device. */
void netif_mac(const uint8_t ip[16], uint8_t mac[6]);

/* Prints a message if the GID @from is a loopback address and @ah leads to
 * another machine: then no packet can arrive there. */
void netif_say_unreachable(const uint8_t from[16], const struct hca_ah *ah);

#endif
