/* SPDX-License-Identifier: BSD-2-Clause */
/* Steering classes; see steer.h. */
#include "broker/steer.h"

#include "util/rng.h"

#include <errno.h>
#include <linux/filter.h>
#include <string.h>
#include <sys/socket.h>

#define QPN_MASK 0xffffffu
/* Odd, so that it has an inverse; below 2^14, so that QPN 1 is in class 0. */
#define FORWARD	    0x2c9du
#define INVERSE	    0x3fb9b5u
#define CLASS_BITS  10
#define CLASS_MASK  1023u
#define CLASS_SHIFT 5
/* The offset in the BTH of FECN, BECN, 6 reserved bits and the 24 bits of the
 * destination QPN (IBTA 9.2, A17.9). */
#define BTH_DEST_QP 4

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

/* One round over the class bits of a QPN.  The product modulo 1024 moves bits
 * up, and the shifted XOR moves bits down. */
static uint32_t mix_round(uint32_t x, uint32_t odd)
{
	x = x * odd & CLASS_MASK;
	return x ^ x >> CLASS_SHIFT;
}

uint32_t steer_index(const struct steer_key *key, uint32_t class)
{
	uint32_t x = class & CLASS_MASK;

	for (int i = 0; i < STEER_ROUNDS; i++)
		x = mix_round(x, key->odd[i]);
	return x;
}

/* Returns the inverse modulo 1024, by Newton's method.  Each step doubles the
 * number of correct bits; the odd number itself has three correct bits of its
 * inverse. */
static uint32_t inverse_of(uint32_t odd)
{
	uint32_t x = odd;

	x *= 2 - odd * x;
	x *= 2 - odd * x;
	return x & CLASS_MASK;
}

uint32_t steer_class_at(const struct steer_key *key, uint32_t index)
{
	uint32_t x = index & CLASS_MASK;

	for (int i = STEER_ROUNDS; i-- > 0;) {
		/* This XOR is its own inverse, since it shifts by half of the
		 * bits. */
		x ^= x >> CLASS_SHIFT;
		x = x * inverse_of(key->odd[i]) & CLASS_MASK;
	}
	return x;
}

bool steer_is_key(const struct steer_key *key)
{
	for (int i = 0; i < STEER_ROUNDS; i++)
		if (!(key->odd[i] & 1) || key->odd[i] > CLASS_MASK)
			return false;
	return steer_index(key, CLASS_MASK) == CLASS_MASK;
}

void steer_draw(struct steer_key *key, uint64_t random)
{
	struct rng rng;

	rng_init(&rng, random);
	do {
		uint64_t bits = rng_u64(&rng);

		for (int i = 0; i < STEER_ROUNDS; i++)
			key->odd[i] = (uint16_t)((bits >> CLASS_BITS * i &
						  CLASS_MASK) |
						 1);
	} while (!steer_is_key(key));
}

int steer_attach(int fd, uint32_t n, const struct steer_key *key)
{
#define MIX(odd)                                                               \
	BPF_STMT(BPF_ALU | BPF_MUL | BPF_K, odd),                              \
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, CLASS_MASK),               \
		BPF_STMT(BPF_MISC | BPF_TAX, 0),                               \
		BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, CLASS_SHIFT),              \
		BPF_STMT(BPF_ALU | BPF_XOR | BPF_X, 0)
	/* If a datagram is too short for the load, the program ends with 0. */
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, BTH_DEST_QP),
		BPF_STMT(BPF_ALU | BPF_MUL | BPF_K, FORWARD),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, QPN_MASK),
		BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, STEER_REST_BITS),
		MIX(key->odd[0]),
		MIX(key->odd[1]),
		MIX(key->odd[2]),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, n, 1, 0),
		BPF_STMT(BPF_RET | BPF_A, 0),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
#undef MIX
	struct sock_fprog program;

	_Static_assert(STEER_ROUNDS == 3, "as the program has");
	/* valgrind complains about padding that is not initialised */
	memset(&program, 0, sizeof(program));
	program.len = sizeof(code) / sizeof(code[0]);
	program.filter = code;
	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program,
		       sizeof(program)))
		return -errno;
	return 0;
}
