/* SPDX-License-Identifier: BSD-2-Clause */
#include "iwarp/fpdu.h"

#include <errno.h>
#include <string.h>

#include "hdr/bytes.h"
#include "util/bits.h"
#include "util/check.h"
#include "util/crc.h"

enum { LENGTH_BYTES = 2, CRC_BYTES = 4 };

/* Returns the length of the pad in bytes: ULPDU_Length, ULPDU and pad together
 * are a multiple of 4 bytes long. */
static uint32_t pad_bytes(uint32_t ulpdu_bytes)
{
	return -(LENGTH_BYTES + ulpdu_bytes) & 3;
}

/* Writes the CRC with the least significant byte first (RFC 5044 4.4). */
static void put_crc(uint8_t *p, uint32_t state)
{
	uint32_t crc = ~state;

	for (int i = 0; i < CRC_BYTES; i++)
		p[i] = (uint8_t)(crc >> 8 * i);
}

static uint32_t get_crc(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
	       (uint32_t)p[3] << 24;
}

/* ---- receiving ---- */

static void begin_part(struct fpdu_rx *rx, enum fpdu_part part, uint32_t bytes)
{
	rx->part = part;
	rx->left = bytes;
	rx->held_bytes = 0;
}

static void begin_fpdu(struct fpdu_rx *rx)
{
	begin_part(rx, FPDU_LENGTH, LENGTH_BYTES);
	rx->distance = 0;
	rx->crc = CRC_INIT;
}

void fpdu_rx_init(struct fpdu_rx *rx, bool has_crc, bool has_markers)
{
	memset(rx, 0, sizeof(*rx));
	rx->has_crc = has_crc;
	rx->has_markers = has_markers;
	begin_fpdu(rx);
}

/* Is the next byte of the stream a byte of a marker? */
static bool is_in_marker(const struct fpdu_rx *rx)
{
	return rx->has_markers && rx->position < FPDU_MARKER_BYTES;
}

struct fpdu_want fpdu_rx_want(const struct fpdu_rx *rx)
{
	uint32_t bytes = rx->left;

	if (is_in_marker(rx))
		return (struct fpdu_want){FPDU_MARKER,
					  FPDU_MARKER_BYTES - rx->position};
	if (rx->has_markers)
		bytes = bits_min_u32(bytes, FPDU_MARKER_STRIDE - rx->position);
	return (struct fpdu_want){rx->part, bytes};
}

/* Is the next byte of `part` the first of an FPDU?  Then a marker that comes
 * now stands before that FPDU, and the marker's distance is 0. */
static bool is_before_fpdu(const struct fpdu_rx *rx)
{
	return rx->part == FPDU_LENGTH && rx->left == LENGTH_BYTES;
}

static enum fpdu_result take_marker(struct fpdu_rx *rx, const uint8_t *p,
				    uint32_t n)
{
	uint32_t distance = rx->distance;

	/* `held` is free for the marker.  Markers, ULPDU_Length and the CRC all
	 * begin at multiples of 4 bytes of the stream, so no marker comes
	 * between two bytes of a ULPDU_Length or of a CRC. */
	memcpy(rx->held + rx->position, p, n);
	if (rx->has_crc)
		rx->crc = crc32c_update(rx->crc, p, n);
	rx->position += n;
	if (rx->position < FPDU_MARKER_BYTES)
		return FPDU_MORE;
	if (!is_before_fpdu(rx))
		rx->distance += FPDU_MARKER_BYTES;
	/* the receiver takes the two lowest bits as 0 (RFC 5044 4.2) */
	return (bytes_get16(rx->held + 2) & ~3) == (uint16_t)distance
		       ? FPDU_MORE
		       : FPDU_BAD_MARKER;
}

/* The ULPDU is complete: the pad, or the CRC if there is no pad, comes next. */
static void begin_trailer(struct fpdu_rx *rx)
{
	uint32_t pad = pad_bytes(rx->ulpdu_bytes);

	if (pad)
		begin_part(rx, FPDU_PAD, pad);
	else
		begin_part(rx, FPDU_CRC, CRC_BYTES);
}

/* The last byte of a part has come: begins the next part.  The end of the FPDU
 * follows from ULPDU_Length alone, not from the markers (RFC 5044 5.2, RFC 5044
 * 6). */
static enum fpdu_result end_part(struct fpdu_rx *rx)
{
	bool is_right;

	switch (rx->part) {
	case FPDU_LENGTH:
		rx->ulpdu_bytes = bytes_get16(rx->held);
		if (rx->ulpdu_bytes)
			begin_part(rx, FPDU_ULPDU, rx->ulpdu_bytes);
		else
			begin_trailer(rx);
		return FPDU_BEGUN;
	case FPDU_ULPDU:
		begin_trailer(rx);
		return FPDU_MORE;
	case FPDU_PAD:
		begin_part(rx, FPDU_CRC, CRC_BYTES);
		return FPDU_MORE;
	case FPDU_CRC:
	case FPDU_MARKER:
		break;
	}
	is_right = !rx->has_crc || get_crc(rx->held) == ~rx->crc;
	begin_fpdu(rx);
	return is_right ? FPDU_WHOLE : FPDU_BAD_CRC;
}

/* Takes n bytes of rx->part.  The caller has updated rx->crc by those bytes
 * that the CRC covers. */
static enum fpdu_result take_part(struct fpdu_rx *rx, uint32_t n)
{
	rx->left -= n;
	rx->distance += n;
	rx->position = (rx->position + n) % FPDU_MARKER_STRIDE;
	return rx->left ? FPDU_MORE : end_part(rx);
}

enum fpdu_result fpdu_rx_take_summed(struct fpdu_rx *rx, uint32_t n,
				     uint32_t crc)
{
	rx->crc = crc;
	return take_part(rx, n);
}

enum fpdu_result fpdu_rx_take(struct fpdu_rx *rx, const uint8_t *p, uint32_t n)
{
	if (is_in_marker(rx))
		return take_marker(rx, p, n);
	if (rx->part == FPDU_LENGTH || rx->part == FPDU_CRC) {
		memcpy(rx->held + rx->held_bytes, p, n);
		rx->held_bytes += n;
	}
	if (rx->part != FPDU_CRC && rx->has_crc)
		rx->crc = crc32c_update(rx->crc, p, n);
	return take_part(rx, n);
}

/* ---- sending ---- */

/* An FPDU that is being made. */
struct writer {
	struct fpdu_tx tx;
	uint8_t *scratch;	/* the first free byte of the scratch memory */
	struct fpdu_piece *out; /* the caller's, with room for `max` pieces */
	/* How many pieces the FPDU has; may be more than `max`. */
	uint32_t count;
	uint32_t max;	   /* how many pieces fit in out[] */
	uint32_t distance; /* bytes since ULPDU_Length began */
	uint32_t crc;	   /* the raw state (util/crc.h) of the FPDU's CRC */
	/* A byte of ULPDU_Length was put.  Markers before it are not counted in
	 * `distance`. */
	bool is_begun;
};

static void put_piece(struct writer *w, const uint8_t *p, uint32_t bytes)
{
	if (w->count < w->max)
		w->out[w->count] = (struct fpdu_piece){p, bytes};
	w->count++;
	w->tx.position = (w->tx.position + bytes) % FPDU_MARKER_STRIDE;
}

static void add_to_crc(struct writer *w, const uint8_t *p, uint32_t bytes)
{
	if (w->tx.has_crc)
		w->crc = crc32c_update(w->crc, p, bytes);
}

/* Puts a marker if the stream is at a multiple of FPDU_MARKER_STRIDE (RFC 5044
 * 4.3). */
static void put_due_marker(struct writer *w)
{
	uint8_t *marker = w->scratch;

	if (!w->tx.has_markers || w->tx.position)
		return;
	bytes_put16(marker, 0);
	bytes_put16(marker + 2, (uint16_t)w->distance);
	w->scratch += FPDU_MARKER_BYTES;
	add_to_crc(w, marker, FPDU_MARKER_BYTES);
	put_piece(w, marker, FPDU_MARKER_BYTES);
	if (w->is_begun)
		w->distance += FPDU_MARKER_BYTES;
}

/* Adds bytes to the FPDU, with the markers that are due before and between
 * them. */
static void put_bytes(struct writer *w, const uint8_t *p, uint32_t bytes)
{
	uint32_t part;

	for (; bytes; p += part, bytes -= part) {
		put_due_marker(w);
		part = bytes;
		if (w->tx.has_markers)
			part = bits_min_u32(part, FPDU_MARKER_STRIDE -
							  w->tx.position);
		add_to_crc(w, p, part);
		put_piece(w, p, part);
		w->distance += part;
		w->is_begun = true;
	}
}

/* Takes the next free bytes of the scratch memory. */
static uint8_t *take_scratch(struct writer *w, uint32_t bytes)
{
	uint8_t *p = w->scratch;

	w->scratch += bytes;
	return p;
}

/* Puts the pad, whose bytes are 0, then a marker if one is due there, then the
 * CRC, which covers that marker (RFC 5044 4.1, 4.4). */
static void put_trailer(struct writer *w, uint32_t ulpdu_bytes)
{
	uint32_t pad = pad_bytes(ulpdu_bytes);
	uint8_t *p = take_scratch(w, pad + CRC_BYTES);

	memset(p, 0, pad + CRC_BYTES);
	put_bytes(w, p, pad);
	put_due_marker(w);
	if (w->tx.has_crc)
		put_crc(p + pad, w->crc);
	put_piece(w, p + pad, CRC_BYTES);
}

void fpdu_tx_init(struct fpdu_tx *tx, bool has_crc, bool has_markers)
{
	*tx = (struct fpdu_tx){.has_crc = has_crc, .has_markers = has_markers};
}

int fpdu_write(struct fpdu_tx *tx, const struct fpdu_piece *in, uint32_t n,
	       uint8_t *scratch, struct fpdu_piece *out, uint32_t max)
{
	struct writer w = {.tx = *tx,
			   .scratch = scratch,
			   .out = out,
			   .max = max,
			   .crc = CRC_INIT};
	uint64_t bytes = 0;
	uint8_t *length;

	for (uint32_t i = 0; i < n; i++)
		bytes += in[i].bytes;
	if (bytes > (tx->has_markers ? FPDU_MARKED_MAX : FPDU_ULPDU_MAX))
		return -EMSGSIZE;
	length = take_scratch(&w, LENGTH_BYTES);
	bytes_put16(length, (uint16_t)bytes);
	put_bytes(&w, length, LENGTH_BYTES);
	for (uint32_t i = 0; i < n; i++)
		put_bytes(&w, in[i].p, in[i].bytes);
	put_trailer(&w, (uint32_t)bytes);
	if (w.count > max)
		return -EMSGSIZE;
	*tx = w.tx;
	return (int)w.count;
}

uint32_t fpdu_bytes_max(const struct fpdu_tx *tx, uint32_t ulpdu_bytes)
{
	uint32_t bytes =
		LENGTH_BYTES + ulpdu_bytes + pad_bytes(ulpdu_bytes) + CRC_BYTES;

	if (tx->has_markers)
		bytes +=
			(bytes / (FPDU_MARKER_STRIDE - FPDU_MARKER_BYTES) + 1) *
			FPDU_MARKER_BYTES;
	return bytes;
}

/* Moves the ULPDU to the end of the buffer, and then builds the FPDU from the
 * start of the buffer on, piece by piece.  The markers before a piece need at
 * most the room by which the ULPDU was moved.  So each piece of the ULPDU is
 * copied towards the start, and overwrites no piece that is still to be copied.
 */
static uint32_t seal_with_markers(struct fpdu_tx *tx, uint8_t *buf,
				  uint32_t ulpdu_bytes)
{
	uint32_t room = fpdu_bytes_max(tx, ulpdu_bytes), at = 0;
	struct fpdu_piece pieces[2 * FPDU_MARKERS_MAX + 8],
		all = {
			.p = buf + room - ulpdu_bytes,
			.bytes = ulpdu_bytes,
		};
	uint8_t scratch[FPDU_SCRATCH];
	int n;

	memmove(buf + room - ulpdu_bytes, buf + FPDU_ULPDU_AT, ulpdu_bytes);
	n = fpdu_write(tx, &all, 1, scratch, pieces,
		       sizeof(pieces) / sizeof(*pieces));
	CHECK(n > 0);
	for (int i = 0; i < n; i++) {
		memmove(buf + at, pieces[i].p, pieces[i].bytes);
		at += pieces[i].bytes;
	}
	return at;
}

bool fpdu_may_sum(const struct fpdu_tx *tx)
{
	return tx->has_crc && !tx->has_markers;
}

uint32_t fpdu_sum_head(uint8_t *buf, uint32_t head_bytes, uint32_t ulpdu_bytes)
{
	bytes_put16(buf, (uint16_t)ulpdu_bytes);
	return crc32c_update(CRC_INIT, buf, LENGTH_BYTES + head_bytes);
}

uint32_t fpdu_seal_summed(uint8_t *buf, uint32_t ulpdu_bytes, uint32_t crc)
{
	uint32_t pad = pad_bytes(ulpdu_bytes);
	uint32_t end = LENGTH_BYTES + ulpdu_bytes + pad;

	memset(buf + end - pad, 0, pad);
	if (pad)
		crc = crc32c_update(crc, buf + end - pad, pad);
	put_crc(buf + end, crc);
	return end + CRC_BYTES;
}

uint32_t fpdu_seal(struct fpdu_tx *tx, uint8_t *buf, uint32_t ulpdu_bytes)
{
	uint32_t tail = pad_bytes(ulpdu_bytes) + CRC_BYTES;

	if (tx->has_markers)
		return seal_with_markers(tx, buf, ulpdu_bytes);
	if (tx->has_crc)
		return fpdu_seal_summed(
			buf, ulpdu_bytes,
			fpdu_sum_head(buf, ulpdu_bytes, ulpdu_bytes));
	bytes_put16(buf, (uint16_t)ulpdu_bytes);
	memset(buf + LENGTH_BYTES + ulpdu_bytes, 0, tail);
	return LENGTH_BYTES + ulpdu_bytes + tail;
}
