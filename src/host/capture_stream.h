/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes the TCP connection of an iWARP queue pair to the capture
 * (host/capture.h): the bytes that this process has sent and received, in the
 * segments of iwarp/tcp_segment.h.  The kernel does not tell this process the
 * sequence numbers, acknowledgments and windows of its segments, so the capture
 * contains others, which this process computes.  If no NAT is between the two
 * ends of a connection, both compute the same sequence numbers.  Then a file
 * with the captures of both ends has each segment with bytes twice.
 *
 * Owner: struct stream_socket; lock: the progress lock.
 */
#ifndef HOST_CAPTURE_STREAM_H
#define HOST_CAPTURE_STREAM_H

#include <stdint.h>
#include <sys/types.h>

struct host_stream;
struct capture_stream;

/* Writes the beginning of the connection fd, as hs->start says.  NULL: there is
 * no capture, no memory is left, or fd is not connected.  The caller frees the
 * result by capture_stream_free. */
struct capture_stream *capture_stream_new(int fd, const struct host_stream *hs);
/* Writes a whole connection that no queue pair gets: what hs->start has, then
 * the bytes of hs->first, which this side has sent last, and FIN.  The caller
 * keeps hs->fd.  Takes only the locks that capture_segment takes, so any thread
 * may call this function. */
void capture_stream_refused(const struct host_stream *hs);
/* Writes the bytes that were sent.  result: the result of the tcp_send; after
 * an error that means RST, writes RST. */
void capture_stream_sent(struct capture_stream *c, const uint8_t *bytes,
			 ssize_t result);
/* Writes the bytes that were received.  result: the result of the tcp_receive;
 * writes FIN after 0, and RST after an error that means RST. */
void capture_stream_received(struct capture_stream *c, const uint8_t *bytes,
			     ssize_t result);
/* Writes FIN of this side.  A second call does nothing. */
void capture_stream_finished(struct capture_stream *c);
/* Writes the bytes of FPDUs that are not complete, and frees c.  c may be NULL.
 */
void capture_stream_free(struct capture_stream *c);

#endif
