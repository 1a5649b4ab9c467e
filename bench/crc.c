/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * crc [-c] [-s BYTES] [-t SECONDS]: measures how fast adverb computes CRC-32,
 * or with -c CRC-32C, of a message in the cache, and prints a line of JSON.
 * Each call begins with the previous call's result.  If libisal.so.2 is
 * installed, crc also prints ISA-L's rate and the ratio of the two: adverb and
 * ISA-L compute in turns of about TURN_NS, so that a change of the machine's
 * speed affects both.
 */
#include "raw.h"
#include "util/crc.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TURN_NS	   20000
#define MOST_TURNS 20000

/* The declarations of ISA-L's crc.h. */
typedef uint32_t isal_crc32(uint32_t crc, const uint8_t *p, uint64_t bytes);
typedef uint32_t isal_crc32c(uint8_t *p, int bytes, uint32_t crc);

static isal_crc32 *isal_function;
static isal_crc32c *isal_function_c;

typedef uint32_t update(uint32_t crc, uint8_t *p, size_t bytes);

static uint32_t update_adverb(uint32_t crc, uint8_t *p, size_t bytes)
{
	return crc32_update(crc, p, bytes);
}

static uint32_t update_adverb_c(uint32_t crc, uint8_t *p, size_t bytes)
{
	return crc32c_update(crc, p, bytes);
}

/* crc32_gzip_refl inverts the state before and after. */
static uint32_t update_isal(uint32_t crc, uint8_t *p, size_t bytes)
{
	return ~isal_function(~crc, p, bytes);
}

static uint32_t update_isal_c(uint32_t crc, uint8_t *p, size_t bytes)
{
	return isal_function_c(p, (int)bytes, crc);
}

static bool find_isal(void)
{
	void *lib = dlopen("libisal.so.2", RTLD_NOW);

	if (!lib)
		return false;
	*(void **)&isal_function = dlsym(lib, "crc32_gzip_refl");
	*(void **)&isal_function_c = dlsym(lib, "crc32_iscsi");
	return isal_function && isal_function_c;
}

/* ISA-L leaves the upper halves of vector registers in use, which slows down
 * SSE code. */
static void clear_halves(void)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx"))
		__asm__ volatile("vzeroupper");
#endif
}

/* Returns the nanoseconds of one call, the mean of `calls` calls. */
static double take_turn(update *f, uint8_t *p, size_t bytes, int calls,
			uint32_t *crc)
{
	int64_t began = raw_now_ns();
	double ns;

	for (int i = 0; i < calls; i++)
		*crc = f(*crc, p, bytes);
	ns = (double)(raw_now_ns() - began) / calls;
	clear_halves();
	return ns;
}

/* Returns a number of calls that take at least TURN_NS together.  The number is
 * a power of two. */
static int calls_a_turn(update *f, uint8_t *p, size_t bytes, uint32_t *crc)
{
	int calls = 1;

	while (take_turn(f, p, bytes, calls, crc) * calls < TURN_NS)
		calls *= 2;
	return calls;
}

int main(int argc, char **argv)
{
	static double adverb[MOST_TURNS], isal[MOST_TURNS], ratio[MOST_TURNS];
	struct raw_options o = {.bytes = 4096};
	bool has_isal = find_isal();
	uint32_t crc = CRC_INIT, check = CRC_INIT;
	update *f, *g;
	size_t n = 0;
	int64_t began;
	uint8_t *p;
	int calls;

	raw_options(argc, argv, "crc [-c] [-s BYTES] [-t SECONDS]", &o);
	f = o.castagnoli ? update_adverb_c : update_adverb;
	g = !has_isal ? f : o.castagnoli ? update_isal_c : update_isal;
	p = aligned_alloc(64, (o.bytes + 63) / 64 * 64);
	if (!p)
		raw_die("crc: aligned_alloc");
	for (size_t i = 0; i < o.bytes; i++)
		p[i] = (uint8_t)(i * 7 + i / 251);
	raw_enter(&o, 0);
	if (f(1, p, o.bytes) != g(1, p, o.bytes)) {
		fprintf(stderr,
			"crc: adverb and ISA-L compute different CRCs of the "
			"message\n");
		return 1;
	}
	calls = calls_a_turn(f, p, o.bytes, &crc);
	began = raw_now_ns();
	for (;
	     n < MOST_TURNS && (double)(raw_now_ns() - began) < o.seconds * 1e9;
	     n++) {
		adverb[n] = take_turn(f, p, o.bytes, calls, &crc);
		isal[n] = take_turn(g, p, o.bytes, calls, &check);
		ratio[n] = isal[n] / adverb[n];
	}
	printf("{\"name\": \"crc\", \"bytes\": %zu, \"GBps\": %.6g", o.bytes,
	       (double)o.bytes / raw_median(adverb, n));
	if (has_isal)
		printf(", \"theirs_GBps\": %.6g, \"ratio\": %.4g",
		       (double)o.bytes / raw_median(isal, n),
		       raw_median(ratio, n));
	printf("}\n");
	free(p);
	return 0;
}
