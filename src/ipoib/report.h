/* SPDX-License-Identifier: BSD-2-Clause */
/* The messages of an interface to its user. */
#ifndef IPOIB_REPORT_H
#define IPOIB_REPORT_H

#include "ipoib/inside.h"

/* Tells the user a formatted sentence, at most 511 bytes of it. */
void report_say(struct ipoib *m, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Tells why the interface is down, unless this reason was the last one told.
 * status: of the answer of the subnet administration, if there was one. */
void report_down(struct ipoib *m, enum ipoib_reason why, uint16_t status);
/* Tells that the interface is up again, if report_down has told why it was
 * down. */
void report_up(struct ipoib *m);
/* Tells that two interfaces have one MAC, at most once in a minute: *a, which
 * is known by the MAC, and *b, to which no packets go. */
void report_collision(struct ipoib *m, const struct hwaddr *a,
		      const struct hwaddr *b, uint64_t now_ms);
/* Tells that the port cannot join a group that the kernel has joined.  status:
 * of the answer of the subnet administration; 0: no answer came. */
void report_group(struct ipoib *m, const uint8_t mgid[16], uint16_t status);
/* Tells that the queue pair cannot be attached to a group. */
void report_attach(struct ipoib *m, const uint8_t mgid[16]);
/* Notes whether the table lacks room for groups that the kernel has joined.  If
 * it lacks room now, and did not before, tells the user. */
void report_full(struct ipoib *m, bool is_full);

#endif
