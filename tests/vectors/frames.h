/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the frame files of this folder: `#` starts a comment line; any other
 * line is empty or OPCODE PSN DEST_QPN HEX, separated by blanks.  OPCODE and
 * DEST_QPN are hexadecimal, PSN is decimal, and HEX has the frame's bytes.
 */
#ifndef TESTS_VECTORS_FRAMES_H
#define TESTS_VECTORS_FRAMES_H

#include <stddef.h>
#include <stdint.h>

struct frame {
	uint8_t opcode;
	uint32_t psn;
	uint32_t dest_qpn;
	size_t len;	/* length of `bytes` */
	uint8_t *bytes; /* owned by the struct frames */
};

struct frames {
	size_t count;
	struct frame *frame;
};

/* Returns the frames of a file, which the caller frees by frames_free.  Ends
 * the program with a message if the file cannot be read as described. */
struct frames frames_load(const char *path);
void frames_free(struct frames *frames);

#endif
