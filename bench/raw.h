/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * raw: the common part of the programs that measure the machine's limits.  The
 * programs that measure adverb use the clock, the median, the fork and the
 * shared memory of this file, too.  Most programs that measure limits have two
 * ends, a parent and a forked child, each pinned to
 * a core.  The parent, end 0, measures, and prints one line of JSON.  The
 * child, end 1, runs until the parent kills it or ends the stream.  crc has no
 * child, and relay has two.  No function here calls adverb's libraries.
 */
#ifndef BENCH_RAW_H
#define BENCH_RAW_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The options of all programs.  A program uses those that its usage names. */
struct raw_options {
	size_t bytes;	   /* -s: bytes of a message */
	size_t packet;	   /* -m: bytes of a packet's payload, or of an FPDU */
	int rounds;	   /* -n: rounds or connections */
	double seconds;	   /* -t: the time of a stream */
	bool blocking;	   /* -b: sleep in the kernel, else poll */
	bool one_core;	   /* -1: both ends on the first core */
	bool single;	   /* -o: one packet per call; in vm_copy, 64
			    * messages per call */
	bool plain;	   /* -p: no RETH, no CRC, no copy of payloads */
	bool peek;	   /* -k: the kernel copies payloads to their places */
	bool reads;	   /* -r: read the other end's memory, do not write */
	bool castagnoli;   /* -c: CRC-32C instead of CRC-32 */
	const char *netns; /* -N PATH: the network namespace of end 1 */
	struct in_addr here, there; /* -A: the addresses of end 0 and end 1 */
};

/* Reads argv into *o.  On entry o->bytes is the default of -s, where 0 stands
 * for 2 bytes, and o->packet is the default of -m.  The default of -n is 20000,
 * of -t 0.3, and of both addresses 127.0.0.1.  If an option is wrong, prints
 * @usage, or for -A the form of its value, and ends the program with exit
 * status 2. */
void raw_options(int argc, char **argv, const char *usage,
		 struct raw_options *o);

/* Prints @what and the text of errno on stderr, and ends the program with exit
 * status 1. */
void raw_die(const char *what) __attribute__((noreturn));
/* Returns the time of CLOCK_MONOTONIC in nanoseconds. */
int64_t raw_now_ns(void);
/* Sorts @count values, 1 or more, and returns their median.  If @count is even,
 * the median is the mean of the two middle values. */
double raw_median(double *values, size_t count);
/* Returns zeroed memory that a child forked later shares.  Ends the program if
 * there is no memory. */
void *raw_shared(size_t bytes);
/* Forks a child, which the kernel kills when this process ends for any reason.
 * Returns what fork(2) returns; if fork(2) fails, ends the program by
 * raw_die(what). */
pid_t raw_fork(const char *what);
/* Pins this thread to the CPU with the number n of those that the program may
 * use.  Numbers begin at 0; after the last CPU comes the first.  Ends the
 * program with a message if that fails. */
void raw_pin(int n);
/* Pins this end to its core by raw_pin.  End 1 also enters o->netns, if there
 * is one, and ends the program if that fails. */
void raw_enter(const struct raw_options *o, int end);
/* Ends the program with exit status 1 if end 1, the process @child, has ended.
 */
void raw_check(pid_t child);
/* Waits in end 0 until end 1 has set *ready, which this function acquires.  If
 * end 1, the process @child, has ended instead, ends the program with exit
 * status 1. */
void raw_await(const struct raw_options *o, const int *ready, pid_t child);
/* Waits in end 0 until end 1, the process @child, ends.  If end 1 has failed,
 * ends the program with exit status 1. */
void raw_join(pid_t child);
/* Pauses in a polling loop: if both ends are on one core, yields the core to
 * the other end. */
void raw_pause(const struct raw_options *o);

/*
 * A ping-pong: end 0 sends and receives, end 1 receives and sends.  @open is
 * called in each end after raw_enter.  @name is printed.
 */
struct raw_pingpong {
	const char *name;
	void (*open)(const struct raw_options *o, int end);
	void (*send)(const struct raw_options *o, int end);
	void (*receive)(const struct raw_options *o, int end);
};

/* Measures and prints the median of half a round trip.  Returns the program's
 * exit status.  If end 1 ends before the last round, ends the program with exit
 * status 1: SIGCHLD must be free for this function. */
int raw_pingpong(const struct raw_pingpong *p, const struct raw_options *o);

/* Prints the rate of a stream of @messages messages of o->bytes bytes in @ns
 * nanoseconds, and the number of packets that were lost. */
void raw_print_stream(const char *name, const struct raw_options *o,
		      uint64_t messages, uint64_t lost, int64_t ns);

/* Returns the IPv4 address of an end, with port 0. */
struct sockaddr_in raw_address(const struct raw_options *o, int end);
/* Returns a TCP socket that listens at end 1's address and a port that the
 * kernel chooses, and stores both in *at.  Ends the program by raw_die(what) if
 * there is no such socket. */
int raw_listen(const struct raw_options *o, int backlog, const char *what,
	       struct sockaddr_in *at);

#endif
