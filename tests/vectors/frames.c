/* SPDX-License-Identifier: BSD-2-Clause */
#include "vectors/frames.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void end_failed(const char *path, size_t line, const char *what)
{
	fprintf(stderr, "%s:%zu: %s\n", path, line, what);
	exit(2);
}

static size_t unhex_bytes(const char *hex, uint8_t *bytes)
{
	size_t n = 0;
	unsigned int byte;

	while (sscanf(hex + 2 * n, "%2x", &byte) == 1)
		bytes[n++] = (uint8_t)byte;
	return n;
}

static void parse_line(char *text, struct frame *frame, const char *path,
		       size_t line)
{
	unsigned int opcode, psn, qpn;
	int at = 0;

	if (sscanf(text, "%x %u %x %n", &opcode, &psn, &qpn, &at) != 3)
		end_failed(path, line, "not OPCODE PSN DEST_QPN HEX");
	frame->opcode = (uint8_t)opcode;
	frame->psn = psn;
	frame->dest_qpn = qpn;
	frame->bytes = malloc(strlen(text + at) / 2 + 1);
	if (!frame->bytes)
		end_failed(path, line, "out of memory");
	frame->len = unhex_bytes(text + at, frame->bytes);
	if (frame->len == 0 || text[(size_t)at + 2 * frame->len] != '\n')
		end_failed(path, line, "bad hex");
}

struct frames frames_load(const char *path)
{
	struct frames all = {0};
	FILE *file = fopen(path, "r");
	char *text = NULL;
	size_t room = 0, line = 0;

	if (!file)
		end_failed(path, 0, "cannot be opened");
	while (getline(&text, &room, file) > 0) {
		line++;
		if (text[0] == '#' || text[0] == '\n')
			continue;
		all.frame = realloc(all.frame,
				    (all.count + 1) * sizeof(*all.frame));
		if (!all.frame)
			end_failed(path, line, "out of memory");
		parse_line(text, &all.frame[all.count++], path, line);
	}
	free(text);
	fclose(file);
	return all;
}

void frames_free(struct frames *frames)
{
	for (size_t i = 0; i < frames->count; i++)
		free(frames->frame[i].bytes);
	free(frames->frame);
	*frames = (struct frames){0};
}
