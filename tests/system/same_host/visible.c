/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * visible [-w put|one|two] [-n ROUNDS] [-s BYTES]: tests that a process which
 * polls the last byte of a message from another process never sees that byte
 * before the other bytes.
 *
 *	writer: fills with k, writes to the reader	reader: awaits last byte
 *	        waits until the reader has checked	        checks all bytes
 *
 * -w put: the writer writes as the library does.  -w one: it writes all bytes
 * by one process_vm_writev, which may write the last byte first.  -w two: it
 * writes the last bytes by a second call.  Each power of two from 1 byte to 64
 * KiB is tested at several alignments; with -s only the size BYTES, 1 to 65536.
 * Prints a line per size, and exits with 1 if any byte was stale, a call failed
 * or an argument is wrong, with 2 if the kernel permits no copy between
 * processes.
 */
#include "memory/space_other.h"
#include "memory/space_self.h"
#include "util/bits.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX    65536u
#define ALIGNS 4
#define SPINS  2000
#define LOOKS  128 /* bytes looked at one by one */

/* Writer and reader write to different cache lines. */
struct shared {
	_Alignas(64) uint32_t asked; /* the current round */
	uint32_t at, bytes;
	_Alignas(64) uint32_t seen;  /* the last round that was checked */
	_Alignas(64) uint64_t stale; /* rounds in which a byte was stale */
	uint32_t is_ready;	     /* the reader has cleared target */
};

static struct shared *shared;
static uint8_t *target, *source;
static struct space_self near;
static struct space_other far;

/* Loads a word that the other process stores by release.  Acquire: the caller
 * loads `at` and `bytes` after `asked`, loads `stale` after `seen`, and writes
 * to `target` after `is_ready`, which the reader stores after the zeros there.
 * Otherwise the reader could check the place of an earlier round, the writer
 * could miss a stale byte, and the zeros could overwrite the first round. */
static uint32_t load_word(const uint32_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static void pause_a_little(unsigned *tries)
{
	if (++*tries % SPINS == 0)
		sched_yield();
}

static uint8_t value_of(uint32_t round)
{
	return (uint8_t)(round % 251 + 1);
}

/* Returns whether any of the bytes at m is not k.  Looks first at the last
 * LOOKS bytes one by one, and then at the bytes before them by one fast
 * comparison. */
static bool is_stale(const volatile uint8_t *m, uint32_t bytes, uint8_t k)
{
	const uint8_t *all = (const uint8_t *)(uintptr_t)m;
	uint32_t left = bytes;

	for (; left && bytes - left < LOOKS; left--)
		if (m[left - 1] != k)
			return true;
	/* Keeps the compiler from moving the fast comparison before the single
	 * loads.  These would then come too late to see a byte that is stale
	 * only for a short time. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return left && (all[0] != k || memcmp(all, all + 1, left - 1) != 0);
}

static void read_on(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	memset(target, 0, MAX + 8192); /* ends copy on write of the pages */
	__atomic_store_n(&shared->is_ready, 1, __ATOMIC_RELEASE);
	for (uint32_t round = 1;; round++) {
		unsigned tries = 0;
		uint32_t at, bytes;
		uint8_t k = value_of(round);

		while (load_word(&shared->asked) != round)
			pause_a_little(&tries);
		at = shared->at;
		bytes = shared->bytes;
		/* Acquire: the loads of the other bytes come after the load
		 * that sees the last byte.  Otherwise this process could load
		 * another byte before the writer has stored it, and take the
		 * byte for stale although the writer stored it before the last
		 * byte. */
		while (__atomic_load_n(&target[at + bytes - 1],
				       __ATOMIC_ACQUIRE) != k)
			pause_a_little(&tries);
		if (is_stale(target + at, bytes - 1, k))
			shared->stale++;
		__atomic_store_n(&shared->seen, round, __ATOMIC_RELEASE);
	}
}

static void end_failed(int err)
{
	fprintf(stderr, "visible: a copy to process %d fails: %s\n",
		(int)far.pid, strerror(err));
	kill(far.pid, SIGKILL);
	exit(err == EPERM || err == ENOSYS ? 2 : 1);
}

static void write_one(uint64_t va, uint32_t bytes)
{
	struct iovec from = {source, bytes}, to = {(void *)va, bytes};

	ssize_t n = process_vm_writev(far.pid, &from, 1, &to, 1, 0);

	if (n != (ssize_t)bytes)
		end_failed(n < 0 ? errno : EIO);
}

static void write_two(uint64_t va, uint32_t bytes)
{
	uint32_t tail = 8;

	while (tail > bytes || (va + bytes) % tail)
		tail /= 2;
	if (bytes > tail)
		write_one(va, bytes - tail);
	write_one(va + bytes - tail, tail);
}

static void put_bytes(uint64_t va, uint32_t bytes)
{
	struct space_vec to = {va, bytes}, from = {(uintptr_t)source, bytes};
	struct space_move m = {&to, &from, 1, 1};
	size_t done;
	int err = space_put(&far.space, &near.space, &m, 1, &done);

	if (err)
		end_failed(-err);
}

/* Runs the rounds of a size.  Returns in how many rounds a byte was stale. */
static uint64_t run_rounds(void (*way)(uint64_t, uint32_t), uint32_t bytes,
			   uint32_t rounds)
{
	static uint32_t round;
	uint64_t before = shared->stale;

	for (uint32_t i = 0; i < rounds; i++) {
		uint32_t at = 4096 - 64 + i % ALIGNS * 24;
		unsigned tries = 0;

		memset(source, value_of(++round), bytes);
		shared->at = at;
		shared->bytes = bytes;
		__atomic_store_n(&shared->asked, round, __ATOMIC_RELEASE);
		way((uintptr_t)target + at, bytes);
		while (load_word(&shared->seen) != round)
			pause_a_little(&tries);
	}
	return shared->stale - before;
}

/* Binds this process to a core, if the machine has more than one. */
static void bind_to_core(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sysconf(_SC_NPROCESSORS_ONLN) > 1)
		sched_setaffinity(0, sizeof(set), &set);
}

static void *map_memory(size_t bytes, int kind)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       kind | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED) {
		perror("visible: mmap");
		exit(1);
	}
	return p;
}

static void start_reader(void)
{
	shared = map_memory(sizeof(*shared), MAP_SHARED);
	target = map_memory(MAX + 8192, MAP_PRIVATE);
	source = map_memory(MAX, MAP_PRIVATE);
	far.pid = fork();
	if (far.pid < 0) {
		perror("visible: fork");
		exit(1);
	}
	if (!far.pid) {
		bind_to_core(1);
		read_on();
	}
	bind_to_core(0);
	while (!load_word(&shared->is_ready))
		sched_yield();
	space_self_init(&near);
	space_other_init(&far, far.pid);
}

static _Noreturn void end_misused(void)
{
	fprintf(stderr,
		"usage: visible [-w put|one|two] [-n ROUNDS] [-s BYTES]: at "
		"least one round, 1 to %u bytes\n",
		MAX);
	exit(1);
}

static void (*way_named(const char *name))(uint64_t, uint32_t)
{
	if (!strcmp(name, "put"))
		return put_bytes;
	if (!strcmp(name, "one"))
		return write_one;
	if (!strcmp(name, "two"))
		return write_two;
	end_misused();
}

static uint32_t number_upto(const char *text, uint32_t most)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	if (*end || number < 1 || number > most)
		end_misused();
	return (uint32_t)number;
}

int main(int argc, char **argv)
{
	void (*way)(uint64_t, uint32_t) = put_bytes;
	uint32_t rounds = 1000, least = 1, most = MAX;
	uint64_t all = 0;
	int option;

	while ((option = getopt(argc, argv, "w:n:s:")) != -1) {
		if (option == 'w')
			way = way_named(optarg);
		else if (option == 'n')
			rounds = number_upto(optarg, INT32_MAX);
		else if (option == 's')
			least = most = number_upto(optarg, MAX);
		else
			end_misused();
	}
	start_reader();
	for (uint32_t bytes = least; bytes <= most; bytes *= 2) {
		uint64_t stale = run_rounds(way, bytes, rounds);

		printf("%u bytes: %llu of %u stale\n", bytes,
		       (unsigned long long)stale, rounds);
		fflush(stdout);
		all += stale;
	}
	kill(far.pid, SIGKILL);
	waitpid(far.pid, NULL, 0);
	return all != 0;
}
