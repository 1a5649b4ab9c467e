/* SPDX-License-Identifier: BSD-2-Clause */
/* The processor's hint that a loop waits for another processor. */
#ifndef UTIL_RELAX_H
#define UTIL_RELAX_H

/* Leaves the core's resources to the core's other hardware thread for a moment.
 * Called in each round of a spin loop. */
static inline void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

#endif
