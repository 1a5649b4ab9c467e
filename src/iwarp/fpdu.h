/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Framing of MPA in full operation (RFC 5044 4).  Each message of the layer
 * above, a ULPDU, is sent as one FPDU in the TCP stream:
 *
 *	ULPDU_Length, 2 bytes | ULPDU | pad to 4 bytes | CRC32C, 4 bytes
 *
 * If the receiver asked for markers, a marker of 4 bytes stands in the stream
 * at each multiple of 512 bytes, counted from the start of full operation
 * (RFC 5044 4.2, 4.3).  Its first two bytes are 0; the other two are the
 * distance in bytes from the FPDU's ULPDU_Length to the marker.  A marker
 * between two FPDUs belongs to the second one, and its distance is 0.  The CRC
 * covers the markers of its FPDU.
 *
 * To receive, the caller asks for the kind and the number of the next bytes of
 * the stream, gets these bytes, and passes them on:
 *
 *	fpdu_rx_want -> the caller gets bytes -> fpdu_rx_take
 *
 * The caller may pass fewer bytes than fpdu_rx_want names, so the stream may
 * arrive in pieces of any length.  Because the caller knows which bytes are
 * next, it may read those of a ULPDU from the socket to their final place.
 *
 * Sans-IO.  The functions take no lock: only the owner of a stream calls them.
 */
#ifndef IWARP_FPDU_H
#define IWARP_FPDU_H

#include <stdbool.h>
#include <stdint.h>

/* The longest ULPDU of a stream without markers, in bytes. */
#define FPDU_ULPDU_MAX 65535
/* The longest ULPDU of a stream with markers, in bytes.  It is shorter so that
 * the distance of each marker fits into 16 bits. */
#define FPDU_MARKED_MAX	   65000
#define FPDU_MARKER_BYTES  4
#define FPDU_MARKER_STRIDE 512 /* bytes from one marker to the next */
/* An upper bound of the number of markers in one FPDU. */
#define FPDU_MARKERS_MAX                                                       \
	((FPDU_ULPDU_MAX + 9) / (FPDU_MARKER_STRIDE - FPDU_MARKER_BYTES) + 2)
/* Bytes of scratch memory that fpdu_write needs: ULPDU_Length, pad, CRC and
 * markers. */
#define FPDU_SCRATCH (2 + 3 + 4 + FPDU_MARKERS_MAX * FPDU_MARKER_BYTES)

/* ---- receiving ---- */

/* The kinds of bytes in a stream: the four parts of an FPDU in their order, and
 * markers, which stand before or inside an FPDU. */
enum fpdu_part {
	FPDU_LENGTH,
	FPDU_ULPDU,
	FPDU_PAD,
	FPDU_CRC,
	FPDU_MARKER,
};

/* The bytes that come next in the stream. */
struct fpdu_want {
	enum fpdu_part part; /* the part to which the next bytes belong */
	uint32_t bytes; /* how many bytes of that part come next, 1 or more */
};

/* The result of fpdu_rx_take. */
enum fpdu_result {
	FPDU_MORE,  /* the FPDU is not complete */
	FPDU_BEGUN, /* ULPDU_Length is complete: fpdu_rx.ulpdu_bytes is valid */
	FPDU_WHOLE, /* the FPDU is complete; its CRC, if it has one, is right */
	FPDU_BAD_CRC,	/* the CRC is wrong: error 2 of RFC 5044 8 */
	FPDU_BAD_MARKER /* a marker's distance is wrong: error 3, RFC 5044 8 */
};

/* The receiver's state of one stream. */
struct fpdu_rx {
	/* has_crc: CRCs are computed and compared; if false, any CRC counts as
	 * right.  has_markers: the stream has markers. */
	bool has_crc, has_markers;
	/* The part to which the next byte belongs, unless that byte belongs to
	 * a marker; never FPDU_MARKER. */
	enum fpdu_part part;
	uint32_t left; /* bytes of `part` that have not come */
	/* The next byte's place in the stream, modulo FPDU_MARKER_STRIDE. */
	uint32_t position;
	/* Bytes since the FPDU's ULPDU_Length began, complete markers included.
	 */
	uint32_t distance;
	/* The raw state (util/crc.h) of the CRC of the FPDU's bytes so far. */
	uint32_t crc;
	uint32_t ulpdu_bytes; /* the value of the last ULPDU_Length */
	/* Those bytes of the present ULPDU_Length, CRC or marker that have
	 * come. */
	uint8_t held[4];
	/* How many bytes of ULPDU_Length or CRC are in `held`.  The bytes of a
	 * marker in `held` are counted by `position` instead. */
	uint32_t held_bytes;
};

/* Begins the receiving of a stream: the next byte is the first of full
 * operation. */
void fpdu_rx_init(struct fpdu_rx *rx, bool has_crc, bool has_markers);
/* Returns which bytes come next, and how many of them fpdu_rx_take accepts in
 * one call. */
struct fpdu_want fpdu_rx_want(const struct fpdu_rx *rx);
/* Takes the next n bytes of the stream, which are at p; n is at least 1 and at
 * most fpdu_rx_want(rx).bytes.  After FPDU_BAD_CRC or FPDU_BAD_MARKER the
 * caller takes no more bytes: it cannot know where the next FPDU begins. */
enum fpdu_result fpdu_rx_take(struct fpdu_rx *rx, const uint8_t *p, uint32_t n);
/* Takes the next n bytes of a ULPDU, as fpdu_rx_take does, for a caller that
 * has computed their CRC while it copied them.  crc: rx->crc, updated by these
 * bytes; without CRCs, any value. */
enum fpdu_result fpdu_rx_take_summed(struct fpdu_rx *rx, uint32_t n,
				     uint32_t crc);

/* ---- sending ---- */

/* Consecutive bytes in memory that the struct does not own. */
struct fpdu_piece {
	const uint8_t *p; /* the first byte, borrowed */
	uint32_t bytes;	  /* how many there are */
};

/* The sender's state of one stream. */
struct fpdu_tx {
	/* has_crc: CRCs are computed; if false, the CRC field is 0.
	 * has_markers: markers are inserted. */
	bool has_crc, has_markers;
	/* If has_markers: the next byte's place in the stream, modulo
	 * FPDU_MARKER_STRIDE. */
	uint32_t position;
};

/* Begins the sending of a stream: the next FPDU is the first of full operation.
 */
void fpdu_tx_init(struct fpdu_tx *tx, bool has_crc, bool has_markers);
/*
 * Makes an FPDU of the ULPDU that consists of the n pieces in[].  Stores the
 * pieces of the FPDU in out[], which has room for `max` of them, and returns
 * their number.  These pieces point to the bytes of in[] and into scratch,
 * which has FPDU_SCRATCH bytes; the caller keeps the bytes of in[] and scratch
 * until the FPDU is sent.  -EMSGSIZE: the ULPDU is longer than FPDU_ULPDU_MAX
 * (with markers: FPDU_MARKED_MAX), or the FPDU has more than `max` pieces.  *tx
 * is then unchanged.
 */
int fpdu_write(struct fpdu_tx *tx, const struct fpdu_piece *in, uint32_t n,
	       uint8_t *scratch, struct fpdu_piece *out, uint32_t max);
/* The offset in bytes of the ULPDU in fpdu_seal's buffer: the length of
 * ULPDU_Length, which fpdu_seal writes before the ULPDU. */
#define FPDU_ULPDU_AT 2
/* Returns an upper bound of the length in bytes of an FPDU whose ULPDU has
 * ulpdu_bytes bytes; how many markers the FPDU has depends on its place in the
 * stream. */
uint32_t fpdu_bytes_max(const struct fpdu_tx *tx, uint32_t ulpdu_bytes);
/*
 * Makes the FPDU of the ULPDU at buf + FPDU_ULPDU_AT in place, from buf on, and
 * returns the FPDU's length in bytes.  buf has fpdu_bytes_max(tx, ulpdu_bytes)
 * bytes.  The ULPDU has at most FPDU_ULPDU_MAX bytes, or FPDU_MARKED_MAX if the
 * stream has markers.
 */
uint32_t fpdu_seal(struct fpdu_tx *tx, uint8_t *buf, uint32_t ulpdu_bytes);

/*
 * A caller may compute the CRC while it copies the ULPDU, without fpdu_seal:
 *
 *	fpdu_sum_head -> the caller updates the state -> fpdu_seal_summed
 */
/* May the caller compute the CRC?  False: the stream has no CRC, or has
 * markers, which the CRC covers. */
bool fpdu_may_sum(const struct fpdu_tx *tx);
/* Writes ULPDU_Length, and returns the raw state (util/crc.h) of the CRC of
 * ULPDU_Length and of the first head_bytes bytes of the ULPDU.  The caller has
 * written these bytes at buf + FPDU_ULPDU_AT. */
uint32_t fpdu_sum_head(uint8_t *buf, uint32_t head_bytes, uint32_t ulpdu_bytes);
/* Does the rest of fpdu_seal: writes the pad and the CRC, and returns the
 * FPDU's length in bytes.  crc: the state of fpdu_sum_head, updated by the rest
 * of the ULPDU. */
uint32_t fpdu_seal_summed(uint8_t *buf, uint32_t ulpdu_bytes, uint32_t crc);

#endif
