/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * raw: what the raw limits share.  Each of them is a program that forks, so
 * that there are two ends, pins the two and prints one line of JSON.  The
 * parent's end measures; the child's answers until it is killed or told to
 * stop.  Nothing here knows of adverb.
 */
#ifndef BENCH_RAW_H
#define BENCH_RAW_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The options of every program; each heeds those that its usage names. */
struct raw_options {
	size_t bytes;	   /* -s: of a message */
	size_t packet;	   /* -m: payload of a packet */
	int rounds;	   /* -n: of a ping-pong */
	double seconds;	   /* -t: of a stream */
	bool blocking;	   /* -b: sleep in the kernel, else poll */
	bool one_core;	   /* -1: both ends on core 0 */
	bool single;	   /* -o: one packet a call */
	bool plain;	   /* -p: no shape of a WRITE, no CRC, no copy */
	bool peek;	   /* -k: headers first, then straight to the place */
	bool reads;	   /* -r: the other end's memory is read */
	bool castagnoli;   /* -c: CRC-32C */
	const char *netns; /* -N PATH: the answering end's namespace */
	struct in_addr here, there; /* -A HERE,THERE */
};

/* Reads argv or ends the program with @usage. */
void raw_options(int argc, char **argv, const char *usage,
		 struct raw_options *o);

void raw_die(const char *what) __attribute__((noreturn));
int64_t raw_now_ns(void);
/* Of @count values, which it sorts. */
double raw_median(double *values, size_t count);
/* Zeroed memory that a fork shares. */
void *raw_shared(size_t bytes);
/* Pins this end: 0 measures, 1 answers.  The latter enters its namespace. */
void raw_enter(const struct raw_options *o, int end);
/* One pause of a polling loop; on one core it yields to the other end. */
void raw_pause(const struct raw_options *o);

/*
 * There and back: end 0 says and hears, end 1 hears and says.  @open is called
 * in the end that owns the descriptor, after raw_enter.
 */
struct raw_pingpong {
	const char *name;
	void (*open)(const struct raw_options *o, int end);
	void (*say)(const struct raw_options *o, int end);
	void (*hear)(const struct raw_options *o, int end);
};

/* Measures, prints the median half round trip; the program's status. */
int raw_pingpong(const struct raw_pingpong *p, const struct raw_options *o);

/*
 * One figure of a stream: @bytes in @messages over @ns, of which CPU seconds
 * are added by the caller of the program.
 */
void raw_print_stream(const char *name, const struct raw_options *o,
		      uint64_t messages, uint64_t lost, int64_t ns);

/* The address of an end; the port is set by a bind to 0 and shared. */
struct sockaddr_in raw_address(const struct raw_options *o, int end);

#endif
