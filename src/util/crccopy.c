/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/crccopy.h"

#include "util/crcmul.h"

crctier_copy *crccopy_steps(enum crc_kind kind)
{
	return kind == CRC_32 ? crctier_chosen.copy : crctier_chosen.copy_c;
}

bool crccopy_is_wide(void)
{
	return crctier_chosen.is_wide;
}

#if CRCMUL_IS_BUILT

extern const char __start_crccopy_text[], __stop_crccopy_text[];

bool crccopy_is_at(uintptr_t ip)
{
	return ip >= (uintptr_t)__start_crccopy_text &&
	       ip < (uintptr_t)__stop_crccopy_text;
}

#else

bool crccopy_is_at(uintptr_t ip)
{
	return false;
}

#endif
