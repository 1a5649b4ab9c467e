/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/link_send.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fabric/proto.h"
#include "host/capture.h"

#define FRAMES 64 /* of one system call, at most */

/* The messages of one system call.  counts: how many frames each message has.
 */
struct burst_call {
	struct mmsghdr heads[FRAMES];
	struct iovec parts[FRAMES][2];
	uint32_t counts[FRAMES];
};

static size_t bytes_of(const struct engine_frame *f)
{
	return f->head_bytes + f->len;
}

/* Returns how many of n frames, from the first on, go into one message; at
 * least 1. */
static size_t count_fitting(const struct engine_frame *f, size_t n,
			    size_t burst)
{
	size_t count = 1, bytes = bytes_of(f);

	while (count < n && count < FABRIC_PROTO_BURST_PACKETS &&
	       bytes + bytes_of(&f[count]) <= burst)
		bytes += bytes_of(&f[count++]);
	return count;
}

/* Prepares messages of n frames.  Returns the number of messages. */
static uint32_t prepare_call(struct burst_call *c, size_t burst,
			     const struct engine_frame *f, size_t n)
{
	uint32_t messages = 0;

	for (size_t i = 0; i < n; i++) {
		c->parts[i][0] = (struct iovec){(void *)(uintptr_t)f[i].head,
						f[i].head_bytes};
		c->parts[i][1] =
			(struct iovec){(void *)(uintptr_t)f[i].bytes, f[i].len};
	}
	for (size_t i = 0; i < n; i += c->counts[messages++]) {
		uint32_t count = (uint32_t)count_fitting(f + i, n - i, burst);

		c->counts[messages] = count;
		c->heads[messages] =
			(struct mmsghdr){.msg_hdr.msg_iov = c->parts[i],
					 .msg_hdr.msg_iovlen = 2u * count};
	}
	return messages;
}

static void capture_run(const struct engine_frame *f, size_t n)
{
	for (size_t i = 0; i < n && capture_is_open(); i++)
		capture_packet(f[i].head, f[i].head_bytes, f[i].bytes,
			       f[i].len);
}

/* Sends n frames by one system call; n is at most FRAMES.  Returns how many
 * were sent.  If the first message cannot be sent for another reason than a
 * full socket, the frames of that message are lost and count as sent. */
static size_t send_call(int fd, size_t burst, const struct engine_frame *f,
			size_t n)
{
	struct burst_call c;
	uint32_t messages = prepare_call(&c, burst, f, n);
	/* The C library's sendmmsg is a cancellation point. */
	long k = syscall(SYS_sendmmsg, fd, c.heads, messages,
			 MSG_DONTWAIT | MSG_NOSIGNAL);
	size_t sent = 0;

	if (k <= 0)
		return errno == EAGAIN ? 0 : c.counts[0];
	for (long i = 0; i < k; i++)
		sent += c.counts[i];
	capture_run(f, sent);
	return sent;
}

size_t link_send(int fd, size_t burst, const struct engine_frame *frames,
		 size_t n)
{
	size_t sent = 0, k = 1;

	while (k && sent < n) {
		size_t run = n - sent < FRAMES ? n - sent : FRAMES;

		k = send_call(fd, burst, frames + sent, run);
		sent += k;
	}
	return sent;
}

void link_send_refused(int fd, const uint8_t *bytes, size_t n)
{
	uint8_t first = bytes[0] | FABRIC_PROTO_REFUSED;
	struct iovec parts[2] = {{&first, 1},
				 {(void *)(uintptr_t)(bytes + 1), n - 1}};
	const struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};

	/* The C library's sendmsg is a cancellation point. */
	syscall(SYS_sendmsg, fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}
