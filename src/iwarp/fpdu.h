/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Framing of MPA in full operation (RFC 5044 4): each message of the layer
 * above, an ULPDU, is one FPDU of the TCP stream:
 *
 *	ULPDU_Length, 2 bytes | ULPDU | pad to 4 bytes | CRC32C, 4 bytes
 *
 * If the receiver asked for markers, a marker stands in the stream at each
 * multiple of 512 bytes, counted from the start of full operation: 2 bytes 0,
 * and the distance in bytes from the start of ULPDU_Length (RFC 5044 4.2, 4.3).
 *A marker between two FPDUs belongs to the second, and its distance is 0.  The
 * CRC covers the markers of its FPDU.
 *
 * The receiver says which bytes come next, and takes any number of them, so a
 * stream may be cut anywhere.  The caller may read the bytes of an ULPDU from
 * the socket to their final place:
 *
 *	fpdu_rx_want -> the caller gets bytes -> fpdu_rx_take
 *
 * Sans-IO, no lock: the owner of a stream calls.
 */
#ifndef IWARP_FPDU_H
#define IWARP_FPDU_H

#include <stdbool.h>
#include <stdint.h>

#define FPDU_ULPDU_MAX 65535 /* bytes */
/* With markers: the distance of each fits into its 16 bits. */
#define FPDU_MARKED_MAX	   65000
#define FPDU_MARKER_BYTES  4
#define FPDU_MARKER_STRIDE 512 /* bytes from one marker to the next */
/* Markers of one FPDU at most. */
#define FPDU_MARKERS_MAX                                                       \
	((FPDU_ULPDU_MAX + 9) / (FPDU_MARKER_STRIDE - FPDU_MARKER_BYTES) + 2)
#define FPDU_SCRATCH (2 + 3 + 4 + FPDU_MARKERS_MAX * FPDU_MARKER_BYTES)

/* ---- receiving ---- */

/* The parts of a stream. */
enum fpdu_part {
	FPDU_LENGTH,
	FPDU_ULPDU,
	FPDU_PAD,
	FPDU_CRC,
	FPDU_MARKER,
};

/* The bytes that come next in the stream. */
struct fpdu_want {
	enum fpdu_part part;
	uint32_t bytes; /* 1 or more */
};

enum fpdu_result {
	FPDU_MORE,	/* more bytes of the FPDU are to come */
	FPDU_BEGUN,	/* ulpdu_bytes is known now */
	FPDU_WHOLE,	/* the FPDU is complete, and its CRC is right */
	FPDU_BAD_CRC,	/* RFC 5044 8: error 2 */
	FPDU_BAD_MARKER /* RFC 5044 8: error 3 */
};

/* A stream that is received. */
struct fpdu_rx {
	bool has_crc, has_markers;
	enum fpdu_part part;  /* the present part, FPDU_MARKER never */
	uint32_t left;	      /* bytes of that part that have not come */
	uint32_t position;    /* in the stream, modulo FPDU_MARKER_STRIDE */
	uint32_t distance;    /* bytes since the FPDU's ULPDU_Length began */
	uint32_t crc;	      /* the CRC of the FPDU so far */
	uint32_t ulpdu_bytes; /* the value of ULPDU_Length */
	/* The bytes of the present ULPDU_Length, CRC or marker that have come.
	 */
	uint8_t held[4];
	uint32_t held_bytes; /* how many of ULPDU_Length or CRC */
};

/* Begins a stream: the next byte is the first of full operation. */
void fpdu_rx_init(struct fpdu_rx *rx, bool has_crc, bool has_markers);
/* Returns which bytes come next, and how many of them fpdu_rx_take may take in
 * one call. */
struct fpdu_want fpdu_rx_want(const struct fpdu_rx *rx);
/* Takes the next n bytes of the stream, 1 to those that fpdu_rx_want says.
 * After FPDU_BAD_CRC and FPDU_BAD_MARKER the stream is of no more use. */
enum fpdu_result fpdu_rx_take(struct fpdu_rx *rx, const uint8_t *p, uint32_t n);

/* ---- sending ---- */

/* Bytes somewhere in memory. */
struct fpdu_piece {
	const uint8_t *p;
	uint32_t bytes;
};

/* A stream that is sent. */
struct fpdu_tx {
	bool has_crc, has_markers;
	uint32_t position; /* in the stream, modulo FPDU_MARKER_STRIDE */
};

/* Begins a stream. */
void fpdu_tx_init(struct fpdu_tx *tx, bool has_crc, bool has_markers);
/*
 * Makes an FPDU of the ULPDU that consists of the n pieces in[].  Stores the
 * pieces of the FPDU in out[], and returns their number; they point to the
 * bytes of in[] and into scratch, which has FPDU_SCRATCH bytes.  The caller
 * keeps both until the FPDU is sent.  -EMSGSIZE: the ULPDU is longer than
 * FPDU_ULPDU_MAX, or with markers than FPDU_MARKED_MAX, or the FPDU has more
 * than `max` pieces; then *tx is as before.
 */
int fpdu_write(struct fpdu_tx *tx, const struct fpdu_piece *in, uint32_t n,
	       uint8_t *scratch, struct fpdu_piece *out, uint32_t max);
/* Where fpdu_seal finds the ULPDU: behind ULPDU_Length. */
#define FPDU_ULPDU_AT 2
/* Returns the most bytes that an FPDU has whose ULPDU has ulpdu_bytes. */
uint32_t fpdu_bytes_max(const struct fpdu_tx *tx, uint32_t ulpdu_bytes);
/*
 * Makes the FPDU of the ULPDU that lies at buf + FPDU_ULPDU_AT, in place, and
 * returns its length.  buf has fpdu_bytes_max(tx, ulpdu_bytes) bytes; the
 * ULPDU has at most FPDU_ULPDU_MAX bytes, with markers FPDU_MARKED_MAX.
 */
uint32_t fpdu_seal(struct fpdu_tx *tx, uint8_t *buf, uint32_t ulpdu_bytes);

#endif
