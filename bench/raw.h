/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * raw: the common part of the raw limits.  Each is a program with two ends, a
 * parent and a forked child, each pinned to a core; it prints one line of JSON.
 * The parent, end 0, measures; the child, end 1, answers until it is killed.
 * Nothing here uses adverb.
 */
#ifndef BENCH_RAW_H
#define BENCH_RAW_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The options of all programs; each uses those that its usage names. */
struct raw_options {
	size_t bytes;	   /* -s: bytes of a message */
	size_t packet;	   /* -m: bytes of a packet's payload */
	int rounds;	   /* -n: rounds of a ping-pong */
	double seconds;	   /* -t: the time of a stream */
	bool blocking;	   /* -b: sleep in the kernel, else poll */
	bool one_core;	   /* -1: both ends on core 0 */
	bool single;	   /* -o: one packet a call */
	bool plain;	   /* -p: no headers of a WRITE, no CRC, no copy */
	bool peek;	   /* -k: the kernel puts payloads into place */
	bool reads;	   /* -r: read the other end's memory, not write */
	bool castagnoli;   /* -c: CRC-32C */
	const char *netns; /* -N PATH: the network namespace of end 1 */
	struct in_addr here, there; /* -A: the addresses of end 0 and end 1 */
};

/* Reads argv into *o; o->bytes is the default of -s, or 0.  At a wrong option
 * prints @usage and ends the program. */
void raw_options(int argc, char **argv, const char *usage,
		 struct raw_options *o);

/* Prints @what and errno's text, and ends the program. */
void raw_die(const char *what) __attribute__((noreturn));
/* CLOCK_MONOTONIC. */
int64_t raw_now_ns(void);
/* The median of @count values, which it sorts. */
double raw_median(double *values, size_t count);
/* Zeroed memory that a forked child shares. */
void *raw_shared(size_t bytes);
/* Pins this end to its core; end 1 also enters o->netns. */
void raw_enter(const struct raw_options *o, int end);
/* One pause of a polling loop; on one core it yields to the other end. */
void raw_pause(const struct raw_options *o);

/*
 * A ping-pong: end 0 sends and receives, end 1 receives and sends.  @open is
 * called in each end after raw_enter.
 */
struct raw_pingpong {
	const char *name;
	void (*open)(const struct raw_options *o, int end);
	void (*send)(const struct raw_options *o, int end);
	void (*receive)(const struct raw_options *o, int end);
};

/* Measures and prints the median of half a round trip.  Returns the program's
 * exit status. */
int raw_pingpong(const struct raw_pingpong *p, const struct raw_options *o);

/* Prints the rate of a stream of @messages of o->bytes in @ns nanoseconds, and
 * the number of packets that were lost. */
void raw_print_stream(const char *name, const struct raw_options *o,
		      uint64_t messages, uint64_t lost, int64_t ns);

/* The IPv4 address of an end, with port 0. */
struct sockaddr_in raw_address(const struct raw_options *o, int end);

#endif
