/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * doctor: `adverb doctor`, what this machine allows and what will be slow.
 */
#ifndef TOOLS_DOCTOR_H
#define TOOLS_DOCTOR_H

#include <stdbool.h>

/* How one line begins. */
enum doctor_word {
	DOCTOR_OK,   /* as good as it gets */
	DOCTOR_SLOW, /* works, slower */
	DOCTOR_NO,   /* does not work */
};

/* Prints one line: word, thing, sentence. */
__attribute__((format(printf, 3, 4))) void
doctor_say(enum doctor_word word, const char *thing, const char *format, ...);

/* The first line of @path in @text of @size bytes; "" if unreadable. */
bool doctor_read_line(const char *path, char *text, int size);

/* @argv[0] is "doctor".  Returns an exit status: 1 if a line says no. */
int doctor_main(int argc, char **argv);

/* The checks of the network, in doctor_net.c. */
void doctor_net_port(void);
void doctor_net_broker(const char *libdir);
void doctor_net_steering(void);
void doctor_net_batches(void);
void doctor_net_buffer(void);

/* The checks of other processes' memory, in doctor_mem.c. */
void doctor_mem_self(void);
void doctor_mem_other(void);
void doctor_mem_memfd(void);

#endif
