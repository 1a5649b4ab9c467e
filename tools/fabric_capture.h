/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The packets of a fabric in a pcap file of link type ERF (197), whose records
 * are of type InfiniBand (21): each packet as it leaves its first port, from
 * LRH to VCRC.
 */
#ifndef TOOLS_FABRIC_CAPTURE_H
#define TOOLS_FABRIC_CAPTURE_H

#include <stdint.h>
#include <stdio.h>

struct fabric;

/* A capture, in the process of a fabric.  All zeroes: there is no capture. */
struct fabric_capture {
	FILE *file;	  /* NULL: there is no capture, or it has ended */
	const char *name; /* the file's name, for messages; borrowed */
};

/* Makes a new file of mode 0600, and lets the fabric write into it until
 * fabric_capture_close.  name is borrowed.  Returns 0, or -1 after a sentence
 * on stderr. */
int fabric_capture_open(struct fabric_capture *c, struct fabric *f,
			const char *name);
/* Writes the packets since the last flush to the file.  If that fails, ends the
 * capture with a sentence on stderr.  The loop of fabric_server_run calls this
 * after each turn. */
void fabric_capture_flush(struct fabric_capture *c);
/* Writes the last packets and closes the file, if there is a capture.  If that
 * fails, says so on stderr. */
void fabric_capture_close(struct fabric_capture *c);

#endif
