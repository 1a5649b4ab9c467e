/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * doctor: `adverb doctor`, which tests the services of this machine that adverb
 * uses, and prints a line about each.
 */
#ifndef TOOLS_DOCTOR_H
#define TOOLS_DOCTOR_H

#include <stdbool.h>

/* The word that begins a line. */
enum doctor_word {
	DOCTOR_OK,   /* works as fast as adverb can use it */
	DOCTOR_SLOW, /* works slower than possible, or not for all programs */
	DOCTOR_NO,   /* does not work */
};

/* Prints one line: the word, the name of what was tested, and a sentence.
 * DOCTOR_NO also makes the exit status of doctor_main 1. */
__attribute__((format(printf, 3, 4))) void
doctor_say(enum doctor_word word, const char *thing, const char *format, ...);

/* Reads the first line of file @path, without its newline, into @text of @size
 * bytes; a line of @size bytes or more is cut.  Returns false, and an empty
 * @text, if the file cannot be read or is empty. */
bool doctor_read_line(const char *path, char *text, int size);

/* Runs all checks, or prints the help text; @argv[0] is "doctor".  Returns an
 * exit status: 0; 1 if a line begins with "no"; 2 if the command line is wrong.
 */
int doctor_main(int argc, char **argv);

/* ---- checks of the network, in doctor_net.c; each prints one line ---- */

/* Checks that UDP port 4791 is free, or held by a broker or its programs. */
void doctor_net_port(void);
/* Connects to the broker, and starts one if there is none, as a library in
 * @libdir does.  The string @libdir must stay valid until the process ends
 * (start_folder). */
void doctor_net_broker(const char *libdir);
/* Checks that SO_REUSEPORT with BPF gives each process its own frames. */
void doctor_net_steering(void);
/* Checks that UDP sockets have GSO and GRO. */
void doctor_net_batches(void);
/* Checks how many frames the largest receive buffer holds. */
void doctor_net_buffer(void);

/* ---- checks of memory, in doctor_mem.c ---- */

/* Checks that process_vm_writev works on the caller's own memory, so that
 * unmapped memory gives an error instead of a crash.  Prints one line. */
void doctor_mem_self(void);
/* Checks whether a process may write into another process of its user, and
 * whether such processes exchange data without packets.  Prints two lines. */
void doctor_mem_other(void);
/* Checks that memfd_create works, and that its memory can be sealed.  Prints
 * one line. */
void doctor_mem_memfd(void);

#endif
