/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/crctier.h"

#include "util/crcmul.h"

#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

/* The priority of the constructor below: it runs before that of encap/icrc.c,
 * which calls crc32_multiply. */
#define FIRST 101

static bool is_always_here(void)
{
	return true;
}

#if defined(__x86_64__)

/* libgcc's __builtin_cpu_supports reports AVX and later instructions only if
 * the kernel saves their registers (XGETBV). */
static bool has_128(void)
{
	return __builtin_cpu_supports("pclmul") &&
	       __builtin_cpu_supports("sse4.2");
}

static bool has_256(void)
{
	return has_128() && __builtin_cpu_supports("avx2") &&
	       __builtin_cpu_supports("vpclmulqdq");
}

static bool has_512(void)
{
	return has_256() && __builtin_cpu_supports("avx512f") &&
	       __builtin_cpu_supports("avx512bw");
}

#elif CRCMUL_IS_BUILT

static bool has_insn(void)
{
	return getauxval(AT_HWCAP) & HWCAP_CRC32;
}

static bool has_128(void)
{
	return has_insn() && getauxval(AT_HWCAP) & HWCAP_PMULL;
}

#endif

const struct crctier crctier_all[] = {
#if defined(__x86_64__)
	{"VPCLMULQDQ and AVX-512", has_512, crcfew_update, crc512_update,
	 crcinsn_few, crc512_update, crc512_copy, crc512_copy_c, true, true},
	{"VPCLMULQDQ and AVX2", has_256, crcfew_update, crc256_update,
	 crcinsn_few, crc256_update, crc256_copy, crc256_copy_c, true, true},
	{"PCLMULQDQ and SSE4.2", has_128, crcfew_update, crc128_update,
	 crcinsn_few, crcinsn_many, crc128_copy, crc128_copy_c, false, true},
#elif CRCMUL_IS_BUILT
	{"PMULL and CRC32", has_128, crcinsn_few, crc128_update, crcinsn_few,
	 crc128_update, crc128_copy, crc128_copy_c, false, true},
	{"CRC32", has_insn, crcinsn_few, crcinsn_few, crcinsn_few, crcinsn_few,
	 NULL, NULL, false, false},
#endif
	{"tables", is_always_here, crcslice_update, crcslice_update,
	 crcslice_update, crcslice_update, NULL, NULL, false, false},
};

const size_t crctier_count = sizeof(crctier_all) / sizeof(crctier_all[0]);

struct crctier crctier_chosen = {"bits",	 is_always_here, crcfactor_bits,
				 crcfactor_bits, crcfactor_bits, crcfactor_bits,
				 NULL,		 NULL,		 false,
				 false};

void crctier_choose(const struct crctier *t)
{
	if (t->few == crcslice_update)
		crcslice_fill();
	crctier_chosen = *t;
}

__attribute__((constructor(FIRST))) static void choose_best(void)
{
	const struct crctier *t = crctier_all;

#if defined(__x86_64__)
	__builtin_cpu_init(); /* libgcc's constructor may run later */
#endif
	crcfactor_init(&crcfactor_crc32);
	crcfactor_init(&crcfactor_crc32c);
	while (!t->is_here())
		t++;
	crctier_choose(t);
}
