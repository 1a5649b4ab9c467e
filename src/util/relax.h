/* SPDX-License-Identifier: BSD-2-Clause */
/* In a loop that waits for another core. */
#ifndef UTIL_RELAX_H
#define UTIL_RELAX_H

/* Let the other half of the core go on. */
static inline void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

#endif
