/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What client and broker say to each other over an abstract SOCK_SEQPACKET
 * socket, one struct a message, in host order: both ends are one machine.
 * The version is in the address too, so builds that differ do not meet.
 */
#ifndef ADVERB_BROKER_PROTO_H
#define ADVERB_BROKER_PROTO_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define PROTO_MAGIC   0x61647662u
#define PROTO_VERSION 2
#define PROTO_FDS     4 /* the most that one message brings */

enum proto_kind {
	PROTO_HELLO = 1, /* asks for a class */
	PROTO_WELCOME,	 /* value: the class; by SCM_RIGHTS its socket and, if
			  * there is one, its page to write */
	PROTO_REFUSED,	 /* value: an errno; why: a sentence */
	PROTO_ASK,	 /* value: a QPN */
	PROTO_ANSWER,	 /* value: enum proto_peer */
	PROTO_PAGE,	 /* value: a class */
	PROTO_PAGE_IS,	 /* the same value; its page to read, if any */
};

enum proto_peer { PROTO_PEER_GONE, PROTO_PEER_ALIVE, PROTO_PEER_UNKNOWN };

struct proto {
	uint32_t magic;
	uint16_t version, kind;
	uint32_t serial; /* an answer has its question's */
	uint32_t value;
	char why[96];
};

/* The broker's address in the caller's network namespace; its length. */
static inline socklen_t proto_address(struct sockaddr_un *a)
{
	struct stat ns = {0};
	int length;

	stat("/proc/self/ns/net", &ns);
	*a = (struct sockaddr_un){.sun_family = AF_UNIX};
	length = snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1,
			  "adverbd-%llu-%d", (unsigned long long)ns.st_ino,
			  PROTO_VERSION);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)length);
}

#endif
