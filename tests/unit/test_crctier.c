/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compares each function that computes a CRC on this processor with the
 * definition, for both polynomials.  Checks the factors by which these
 * functions multiply.
 */
#include "test.h"

#include <sys/mman.h>
#include <unistd.h>

#include "util/crcmul.h"
#include "util/crctier.h"
#include "util/rng.h"
#include "util/instrument.h"

#define LENGTHS	   1100
#define ALIGNMENTS 64
#define HUGE_BYTES (((size_t)1 << 32) + 12345)
#define LESS_BYTES (((size_t)1 << 22) + 12345)

static const struct crcfactor *const factors[2] = {&crcfactor_crc32,
						   &crcfactor_crc32c};
/* The polynomials with x^32: bit i is the coefficient of x^i. */
static const uint64_t polynomials[2] = {0x104c11db7, 0x11edc6f41};

#if defined(__x86_64__)
#define HAS_128	 "PCLMULQDQ and SSE4.2"
#define HAS_256	 "VPCLMULQDQ and AVX2"
#define HAS_512	 "VPCLMULQDQ and AVX-512"
#define HAS_INSN HAS_128
#else
#define HAS_128	 "PMULL and CRC32"
#define HAS_INSN "CRC32"
#endif

/* Each function that computes a CRC, with all polynomials for which the
 * function is correct, even if no tier uses the function for one of them. */
static const struct way {
	const char *name;
	const char *tier; /* needs the same instructions as the function */
	crctier_update *update;
	size_t least, most; /* bytes that the function takes */
	bool is_of[2];	    /* by polynomial */
} ways[] = {
	{"bits", "tables", crcfactor_bits, 0, SIZE_MAX, {true, true}},
	{"tables", "tables", crcslice_update, 0, SIZE_MAX, {true, true}},
#if CRCMUL_IS_BUILT
	{"few", HAS_128, crcfew_update, 0, 64, {true, true}},
	{"128", HAS_128, crc128_update, 65, SIZE_MAX, {true, true}},
#endif
#if defined(__x86_64__)
	{"256", HAS_256, crc256_update, 65, SIZE_MAX, {true, true}},
	{"512", HAS_512, crc512_update, 65, SIZE_MAX, {true, true}},
	{"insn, few", HAS_INSN, crcinsn_few, 0, SIZE_MAX, {false, true}},
	{"insn, many", HAS_INSN, crcinsn_many, 65, SIZE_MAX, {false, true}},
#elif CRCMUL_IS_BUILT
	{"insn", HAS_INSN, crcinsn_few, 0, SIZE_MAX, {true, true}},
#endif
};

static bool has_tier(const char *name)
{
	for (size_t i = 0; i < crctier_count; i++)
		if (!strcmp(crctier_all[i].name, name))
			return crctier_all[i].is_here();
	fail_msg("no tier %s", name);
	return false;
}

/* Returns whether the function takes this polynomial and length. */
static bool can_take(const struct way *w, int which, size_t bytes)
{
	return w->is_of[which] && bytes >= w->least && bytes <= w->most;
}

static int fill_tables(void **state)
{
	crcslice_fill();
	return 0;
}

static void fill_bytes(uint8_t *p, size_t bytes, uint64_t seed)
{
	struct rng r;

	rng_init(&r, seed);
	for (size_t i = 0; i < bytes; i++)
		p[i] = (uint8_t)rng_u32(&r);
}

/* Returns the state after one more byte.  The lowest bit of a byte is the first
 * bit, and has the highest power. */
static uint32_t add_byte(int which, uint32_t crc, uint8_t byte)
{
	uint32_t reflected = factors[which]->polynomial;

	crc ^= byte;
	for (int i = 0; i < 8; i++)
		crc = crc >> 1 ^ (crc & 1 ? reflected : 0);
	return crc;
}

/* A polynomial of degree below 128: bit i is the coefficient of x^i. */
typedef unsigned __int128 polynomial;

static polynomial poly_modulo(polynomial a, uint64_t by)
{
	for (int i = 127; i >= 32; i--)
		if (a >> i & 1)
			a ^= (polynomial)by << (i - 32);
	return a;
}

static polynomial poly_product(polynomial a, polynomial b)
{
	polynomial sum = 0;

	for (int i = 0; i < 128; i++)
		if (b >> i & 1)
			sum ^= a << i;
	return sum;
}

/* Returns the polynomial in a register of `bits` bits, in the bit order of
 * crcfactor.h. */
static polynomial to_register(polynomial a, int bits)
{
	polynomial r = 0;

	for (int i = 0; i < bits; i++)
		if (a >> i & 1)
			r |= (polynomial)1 << (bits - 1 - i);
	return r;
}

static void each_factor_follows_from_the_polynomial(void **state)
{
	for (int which = 0; which < 2; which++) {
		const struct crcfactor *f = factors[which];
		uint64_t p = polynomials[which];
		polynomial quotient = to_register(f->quotient, 64);
		/* x^-1: x^-1 * x is P + 1, which is 1 modulo P */
		polynomial power = p >> 1;

		assert_true(to_register(p, 33) == f->divisor);
		assert_true(to_register(p & 0xffffffff, 32) == f->polynomial);
		assert_true(poly_modulo((polynomial)1 << 95, p) ==
			    to_register(f->power_95, 32));
		/* x^95 is quotient * P plus a remainder of degree 31 or less */
		assert_true(
			(((polynomial)1 << 95) ^ poly_product(quotient, p)) >>
				32 ==
			0);
		for (size_t d = 0; d <= CRCFACTOR_FAR; d++) {
			polynomial high = poly_modulo(power << 64, p);

			assert_true(to_register(high, 64) == f->by[d][0]);
			assert_true(to_register(power, 64) == f->by[d][1]);
			power = poly_modulo(power << 8, p);
		}
		for (int i = 0; i < 4; i++)
			assert_memory_equal(f->lanes[i], f->by[48 - 16 * i],
					    16);
	}
}

static void each_function_agrees_with_the_definition(void **state)
{
	static uint8_t data[LENGTHS + ALIGNMENTS];
	static uint32_t want[LENGTHS + 1];

	fill_bytes(data, sizeof(data), 1);
	for (size_t run = 0; run < 2 * ALIGNMENTS; run++) {
		int which = (int)(run % 2);
		const uint8_t *p = data + run / 2;

		want[0] = (uint32_t)((run + 1) * 2654435761u);
		for (size_t n = 0; n < LENGTHS; n++)
			want[n + 1] = add_byte(which, want[n], p[n]);
		for (size_t i = 0; i < TEST_COUNT(ways); i++) {
			const struct way *w = &ways[i];

			for (size_t n = 0; n <= LENGTHS && has_tier(w->tier);
			     n++)
				if (can_take(w, which, n) &&
				    w->update(factors[which], want[0], p, n) !=
					    want[n])
					fail_msg("%s, %zu bytes at %zu",
						 w->name, n, run / 2);
		}
	}
}

static void each_bit_of_a_state_counts(void **state)
{
	static const uint8_t zeros[300];

	for (size_t i = 0; i < TEST_COUNT(ways); i++) {
		const struct way *w = &ways[i];

		for (size_t n = 0; n < 300 && has_tier(w->tier); n++)
			for (int k = 0; k < 64; k++) {
				const struct crcfactor *f = factors[k % 2];
				uint32_t bit = 1u << k / 2;

				if (can_take(w, k % 2, n))
					assert_int_equal(
						w->update(f, bit, zeros, n),
						crcfactor_bits(f, bit, zeros,
							       n));
			}
	}
}

static uint32_t by_tier(const struct crctier *t, int which, uint32_t crc,
			const uint8_t *p, size_t n)
{
	crctier_update *few = which ? t->few_c : t->few;
	crctier_update *many = which ? t->many_c : t->many;

	return (n <= CRCTIER_FEW ? few : many)(factors[which], crc, p, n);
}

static void pieces_give_the_same_as_the_whole(void **state)
{
	static uint8_t data[20000];
	struct rng r;

	rng_init(&r, 2);
	fill_bytes(data, sizeof(data), 3);
	for (size_t i = 0; i < 200 * crctier_count; i++) {
		const struct crctier *t = &crctier_all[i / 200];
		uint32_t start = (uint32_t)rng_u32(&r), crc = start;
		size_t done = 0;
		int which = i & 1;

		if (!t->is_here())
			continue;
		while (done < sizeof(data)) {
			size_t n = rng_below(&r, rng_below(&r, 2) ? 100 : 5000);

			if (n > sizeof(data) - done)
				n = sizeof(data) - done;
			crc = by_tier(t, which, crc, data + done, n);
			done += n;
		}
		assert_int_equal(crc, by_tier(t, which, start, data, done));
	}
}

/* Returns x^(8 * bytes) times a state, by repeated squaring. */
static uint32_t after_zeros(int which, uint32_t crc, size_t bytes)
{
	uint64_t p = polynomials[which];
	polynomial power = 256, result = to_register(crc, 32);

	for (; bytes; bytes >>= 1) {
		if (bytes & 1)
			result = poly_modulo(poly_product(result, power), p);
		power = poly_modulo(poly_product(power, power), p);
	}
	return (uint32_t)to_register(result, 32);
}

static void a_length_of_more_than_32_bits_counts_in_full(void **state)
{
	bool is_slow = getenv("TEST_EMULATED") || instrument_by_valgrind();
	size_t bytes = is_slow ? LESS_BYTES : HUGE_BYTES;
	uint8_t *zeros =
		mmap(NULL, bytes, PROT_READ,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (zeros == MAP_FAILED)
		SKIP_FOR("this process may not map so much memory");
	for (size_t i = 0; i < crctier_count; i++) {
		const struct crctier *t = &crctier_all[i];
		size_t n = t->multiplies ? bytes : LESS_BYTES;

		for (int which = 0; which < 2 && t->is_here(); which++)
			assert_int_equal(by_tier(t, which, 77, zeros, n),
					 after_zeros(which, 77, n));
	}
	munmap(zeros, bytes);
}

static void no_byte_outside_is_read(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *p = mmap(NULL, 3 * page, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *first = p + page, *end = p + 2 * page;

	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(mprotect(first, page, PROT_READ | PROT_WRITE), 0);
	fill_bytes(first, page, 4);
	for (size_t i = 0; i < TEST_COUNT(ways); i++) {
		const struct way *w = &ways[i];

		for (size_t n = 0; n < page && has_tier(w->tier); n++)
			for (int which = 0; which < 2; which++) {
				if (!can_take(w, which, n))
					continue;
				w->update(factors[which], 1, first, n);
				w->update(factors[which], 1, end - n, n);
			}
	}
	munmap(p, 3 * page);
}

/* The first two rows are the check values of the CRC catalogue, the others are
 * those of RFC 3720 B.4, whose bytes are in wire order. */
static const struct {
	int which;
	const char *data;
	size_t bytes;
	uint32_t value;
} known[] = {
	{0, "123456789", 9, 0xcbf43926},
	{1, "123456789", 9, 0xe3069283},
	{1, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
	 32, 0x8a9136aa},
	{1,
	 "\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377"
	 "\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377",
	 32, 0x62a8ab43},
	{1,
	 "\0\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17"
	 "\20\21\22\23\24\25\26\27\30\31\32\33\34\35\36\37",
	 32, 0x46dd794e},
	{1,
	 "\37\36\35\34\33\32\31\30\27\26\25\24\23\22\21\20"
	 "\17\16\15\14\13\12\11\10\7\6\5\4\3\2\1\0",
	 32, 0x113fdb5c},
	{1,
	 "\1\300\0\0\0\0\0\0\0\0\0\0\0\0\0\0\24\0\0\0\0\0\4\0"
	 "\0\0\0\24\0\0\0\30\50\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0",
	 48, 0xd9963a56},
};

static void check_values_of_the_standards_are_met(void **state)
{
	for (size_t i = 0; i < crctier_count; i++)
		for (size_t k = 0;
		     k < TEST_COUNT(known) && crctier_all[i].is_here(); k++)
			assert_int_equal(
				~by_tier(&crctier_all[i], known[k].which, ~0u,
					 (const uint8_t *)known[k].data,
					 known[k].bytes),
				known[k].value);
}

static void the_best_tier_of_this_processor_is_chosen(void **state)
{
	for (size_t i = 0; i < crctier_count; i++) {
		if (!crctier_all[i].is_here())
			continue;
		assert_string_equal(crctier_chosen.name, crctier_all[i].name);
		break;
	}
	assert_string_equal(crctier_all[crctier_count - 1].name, "tables");
	assert_true(crctier_all[crctier_count - 1].is_here());
}

#if defined(__x86_64__)
__attribute__((target("avx"))) static void
assert_clear_halves(const struct way *w, const uint8_t *p, size_t n)
{
	static uint8_t after[16][32], zeros[16];
	uint32_t crc = w->update(factors[1], 1, p, n);

	__asm__ volatile("vmovdqu %%ymm0, (%0)\n"
			 "vmovdqu %%ymm1, 32(%0)\n"
			 "vmovdqu %%ymm2, 64(%0)\n"
			 "vmovdqu %%ymm3, 96(%0)\n"
			 "vmovdqu %%ymm4, 128(%0)\n"
			 "vmovdqu %%ymm5, 160(%0)\n"
			 "vmovdqu %%ymm6, 192(%0)\n"
			 "vmovdqu %%ymm7, 224(%0)\n"
			 "vmovdqu %%ymm8, 256(%0)\n"
			 "vmovdqu %%ymm9, 288(%0)\n"
			 "vmovdqu %%ymm10, 320(%0)\n"
			 "vmovdqu %%ymm11, 352(%0)\n"
			 "vmovdqu %%ymm12, 384(%0)\n"
			 "vmovdqu %%ymm13, 416(%0)\n"
			 "vmovdqu %%ymm14, 448(%0)\n"
			 "vmovdqu %%ymm15, 480(%0)\n"
			 :
			 : "r"(after), "r"(crc)
			 : "memory");
	for (int i = 0; i < 16; i++)
		assert_memory_equal(after[i] + 16, zeros, 16);
}
#endif

static void the_upper_halves_of_vectors_are_left_clear(void **state)
{
#if defined(__x86_64__)
	static uint8_t data[LENGTHS];

	if (!__builtin_cpu_supports("avx"))
		SKIP_FOR("this processor lacks AVX");
	fill_bytes(data, sizeof(data), 5);
	for (size_t i = 0; i < TEST_COUNT(ways); i++)
		for (size_t n = 0; n <= LENGTHS && has_tier(ways[i].tier); n++)
			if (can_take(&ways[i], 1, n))
				assert_clear_halves(&ways[i], data, n);
#else
	SKIP_FOR("only vectors of x86-64 have upper halves");
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_best_tier_of_this_processor_is_chosen),
		cmocka_unit_test(each_factor_follows_from_the_polynomial),
		cmocka_unit_test(each_function_agrees_with_the_definition),
		cmocka_unit_test(each_bit_of_a_state_counts),
		cmocka_unit_test(pieces_give_the_same_as_the_whole),
		cmocka_unit_test(a_length_of_more_than_32_bits_counts_in_full),
		cmocka_unit_test(no_byte_outside_is_read),
		cmocka_unit_test(check_values_of_the_standards_are_met),
		cmocka_unit_test(the_upper_halves_of_vectors_are_left_clear),
	};

	return cmocka_run_group_tests(tests, fill_tables, NULL);
}
