/* SPDX-License-Identifier: BSD-2-Clause */
/* Steering classes; see steer.h. */
#include "broker/steer.h"

#include <errno.h>
#include <linux/filter.h>
#include <string.h>
#include <sys/socket.h>

#define QPN_MASK 0xffffffu
/* Odd, so that it has an inverse; below 2^14, so that QPN 1 is in class 0. */
#define FORWARD	    0x2c9du
#define INVERSE	    0x3fb9b5u
#define BTH_DEST_QP 4 /* IBTA 9.2: a reserved byte and 24 bits of QPN */

_Static_assert(((FORWARD * INVERSE) & QPN_MASK) == 1, "not an inverse");
_Static_assert(FORWARD >> STEER_REST_BITS == 0, "QPN 1 is not in class 0");

uint32_t steer_qpn(uint32_t class, uint32_t rest)
{
	uint32_t low = rest & ((1u << STEER_REST_BITS) - 1);

	return ((class << STEER_REST_BITS | low) * INVERSE) & QPN_MASK;
}

uint32_t steer_class(uint32_t qpn)
{
	return ((qpn * FORWARD) & QPN_MASK) >> STEER_REST_BITS;
}

int steer_attach(int fd, uint32_t n)
{
	/* A datagram too short for the load ends the program with 0. */
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, BTH_DEST_QP),
		BPF_STMT(BPF_ALU | BPF_MUL | BPF_K, FORWARD),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, QPN_MASK),
		BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, STEER_REST_BITS),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, n, 1, 0),
		BPF_STMT(BPF_RET | BPF_A, 0),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog program;

	memset(&program, 0, sizeof(program)); /* valgrind looks at its hole */
	program.len = sizeof(code) / sizeof(code[0]);
	program.filter = code;
	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program,
		       sizeof(program)))
		return -errno;
	return 0;
}
