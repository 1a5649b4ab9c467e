/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * doctor: `adverb doctor`, which tests what adverb uses of this machine and
 * prints a line about each.
 */
#ifndef TOOLS_DOCTOR_H
#define TOOLS_DOCTOR_H

#include <stdbool.h>

/* The word that begins a line. */
enum doctor_word {
	DOCTOR_OK,   /* works at full speed */
	DOCTOR_SLOW, /* works, slower */
	DOCTOR_NO,   /* does not work */
};

/* Prints one line: word, thing, sentence. */
__attribute__((format(printf, 3, 4))) void
doctor_say(enum doctor_word word, const char *thing, const char *format, ...);

/* Reads the first line of file @path into @text of @size bytes; false, and "":
 * the file cannot be read. */
bool doctor_read_line(const char *path, char *text, int size);

/* @argv[0] is "doctor".  Returns an exit status: 1 if a line says no. */
int doctor_main(int argc, char **argv);

/* The checks of the network, in doctor_net.c; each prints one line. */
void doctor_net_port(void);
/* Connects to the broker, and starts one if there is none, as a library in
 * @libdir does.  @libdir must stay valid. */
void doctor_net_broker(const char *libdir);
void doctor_net_steering(void);
void doctor_net_batches(void);
void doctor_net_buffer(void);

/* The checks of memory, in doctor_mem.c; each prints one or two lines. */
void doctor_mem_self(void);
void doctor_mem_other(void);
void doctor_mem_memfd(void);

#endif
