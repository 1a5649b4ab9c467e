/* SPDX-License-Identifier: BSD-2-Clause */
#include "ipoib/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "hdr/bytes.h"

#define TEXT_BYTES  512
#define GID_TEXT    40
#define COLLIDED_MS 60000

/* Writes a GID to `text` as eight hexadecimal numbers.  Returns `text`. */
static const char *gid_text(const uint8_t gid[16], char text[GID_TEXT])
{
	int at = 0;

	for (int i = 0; i < 16; i += 2)
		at += snprintf(text + at, (size_t)(GID_TEXT - at), "%s%x",
			       i ? ":" : "", bytes_get16(gid + i));
	return text;
}

void report_say(struct ipoib *m, const char *format, ...)
{
	char text[TEXT_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	m->sink->say(m->ctx, text);
}

static void say_refusal(struct ipoib *m, enum ipoib_reason why, uint16_t status)
{
	char text[GID_TEXT];
	uint8_t mgid[16];

	memcpy(mgid, m->groups.all[0].route.gid, 16);
	gid_text(mgid, text);
	if (why == IPOIB_REASON_NO_GROUP)
		report_say(m,
			   "the interface is down: the subnet manager has made "
			   "no broadcast group %s for the partition 0x%04x; "
			   "give the partition the flag ipoib in the subnet "
			   "manager's file of partitions; until then the join "
			   "is tried again",
			   text, m->port.pkey);
	else
		report_say(m,
			   "the interface is down: the subnet manager refuses "
			   "to let the port join the broadcast group %s "
			   "(status 0x%04x); look at the subnet manager's log; "
			   "the join is tried again",
			   text, status);
}

void report_down(struct ipoib *m, enum ipoib_reason why, uint16_t status)
{
	if (m->told == why)
		return;
	m->told = why;
	switch (why) {
	case IPOIB_REASON_NONE:
		break;
	case IPOIB_REASON_PORT:
		report_say(m, "the interface is down: its port is not active; "
			      "start a subnet manager, such as opensm, on a "
			      "host of the subnet, or enable the port's link");
		break;
	case IPOIB_REASON_PKEY:
		report_say(m,
			   "the interface is down: the port is no full member "
			   "of the partition 0x%04x; add the port to this "
			   "partition in the subnet manager's file of "
			   "partitions",
			   m->port.pkey);
		break;
	case IPOIB_REASON_MANAGER:
		report_say(m, "the interface is down: the port knows no subnet "
			      "manager; start one, such as opensm");
		break;
	case IPOIB_REASON_SILENT:
		report_say(m,
			   "the interface is down: the subnet manager at LID "
			   "%u does not answer; start it again; the join of "
			   "the broadcast group is tried again",
			   m->port.sm_lid);
		break;
	case IPOIB_REASON_NO_GROUP:
	case IPOIB_REASON_REFUSED:
		say_refusal(m, why, status);
		break;
	}
}

void report_up(struct ipoib *m)
{
	if (m->told != IPOIB_REASON_NONE)
		report_say(m, "the interface is up");
	m->told = IPOIB_REASON_NONE;
}

void report_collision(struct ipoib *m, const struct hwaddr *a,
		      const struct hwaddr *b, uint64_t now_ms)
{
	char one[GID_TEXT], two[GID_TEXT];

	if (now_ms < m->collision_ms)
		return;
	m->collision_ms = now_ms + COLLIDED_MS;
	report_say(m,
		   "the interfaces of QP 0x%x at %s and QP 0x%x at %s would "
		   "have the same MAC here, so no packets go to the second; "
		   "start one of the two again, which gives it another QP",
		   a->qpn, gid_text(a->gid, one), b->qpn,
		   gid_text(b->gid, two));
}

void report_group(struct ipoib *m, const uint8_t mgid[16], uint16_t status)
{
	char text[GID_TEXT];

	if (status)
		report_say(m,
			   "the subnet manager refuses to let the port join "
			   "the group %s (status 0x%04x), so packets to this "
			   "group are not received; look at the subnet "
			   "manager's log; the join is tried again",
			   gid_text(mgid, text), status);
	else
		report_say(m,
			   "the subnet manager does not answer the join of the "
			   "group %s, so packets to this group are not "
			   "received; start opensm on a host of the fabric; "
			   "the join is tried again",
			   gid_text(mgid, text));
}

void report_attach(struct ipoib *m, const uint8_t mgid[16])
{
	char text[GID_TEXT];

	report_say(m,
		   "the queue pair cannot be attached to the group %s, so "
		   "packets to this group are not received; see adverb doctor; "
		   "the attachment is tried again",
		   gid_text(mgid, text));
}

void report_full(struct ipoib *m, bool is_full)
{
	if (is_full && !m->was_full)
		report_say(m,
			   "the kernel has joined more multicast groups than "
			   "the interface has room for: %u groups fit, with "
			   "the broadcast group and groups to which programs "
			   "only send; packets to further groups are not "
			   "received; let programs leave groups",
			   GROUP_MAX);
	m->was_full = is_full;
}
