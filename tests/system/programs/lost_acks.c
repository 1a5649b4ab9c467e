/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lost_acks: a library to preload into a program on RoCEv2.  Each ACK packet
 * that the program's adapter sends by a sendmsg(2) is lost; sendmmsg(2), by
 * which the adapter sends several messages, is not intercepted.  Prints a line
 * when the first ACK packet is lost.
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ACK_OPCODE 0x11		/* IBTA table 38: RC Acknowledge */
#define ACK_BYTES  (12 + 4 + 4) /* BTH, AETH, ICRC */
#define ARGUMENTS  6

/* Returns whether the message is an ACK packet, which the caller must not send.
 * Prints a line for the first ACK packet. */
static bool loses_packet(const struct msghdr *m)
{
	static bool has_said;
	const uint8_t *first = m->msg_iovlen ? m->msg_iov[0].iov_base : NULL;
	size_t bytes = 0;

	for (size_t i = 0; i < m->msg_iovlen; i++)
		bytes += m->msg_iov[i].iov_len;
	if (bytes != ACK_BYTES || first[0] != ACK_OPCODE)
		return false;
	if (!has_said)
		fprintf(stderr, "lost_acks: an ACK packet is lost\n");
	has_said = true;
	return true;
}

long syscall(long number, ...)
{
	long (*next)(long, ...) = dlsym(RTLD_NEXT, "syscall");
	long a[ARGUMENTS];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < ARGUMENTS; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_sendmsg &&
	    loses_packet((const struct msghdr *)(intptr_t)a[1]))
		return ACK_BYTES;
	return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	ssize_t (*next)(int, const struct msghdr *, int) =
		dlsym(RTLD_NEXT, "sendmsg");

	return loses_packet(message) ? ACK_BYTES : next(fd, message, flags);
}
