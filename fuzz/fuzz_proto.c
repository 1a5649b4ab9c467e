/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * broker/proto: a message with up to MOST descriptors is accepted or refused,
 * and no descriptor stays open.  The first byte of the input gives the number
 * of descriptors.  If this byte is 128 or more, and the message has the right
 * length, the message also gets the right magic number, and from 160 on the
 * right version, too.
 */
#include "descriptors.h"
#include "fuzz.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "broker/proto.h"
#include "util/scm_rights.h"

#define MOST 8

/* A seed of any other length hardly ever becomes a message that is accepted. */
_Static_assert(SEED_BYTES == 1 + sizeof(struct proto),
	       "the bytes of a seed in the row proto of fuzz/meson.build are "
	       "not one more than those of struct proto");

static void send_message(int socket, const uint8_t *data, size_t size,
			 int count)
{
	int fds[MOST];

	for (int i = 0; i < MOST; i++)
		fds[i] = socket;
	FUZZ_REQUIRE(scm_rights_send(socket, data, size, fds, (size_t)count,
				     0) == (ssize_t)size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int pair[2], fds[PROTO_FDS], err;
	uint32_t before = count_descriptors();
	struct proto m = {0}, sent;

	if (!size || size > 4096)
		return 0;
	FUZZ_REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
				pair) == 0);
	if (data[0] >= 128 && size - 1 == sizeof(sent)) {
		memcpy(&sent, data + 1, sizeof(sent));
		sent.magic = PROTO_MAGIC;
		if (data[0] >= 160)
			sent.version = PROTO_VERSION;
		send_message(pair[0], (uint8_t *)&sent, sizeof(sent),
			     data[0] % (MOST + 1));
	} else {
		send_message(pair[0], data + 1, size - 1, data[0] % (MOST + 1));
	}
	err = proto_receive(pair[1], &m, fds);
	FUZZ_REQUIRE(!err || err == -EPROTO || err == -EPIPE ||
		     err == -EPROTONOSUPPORT);
	FUZZ_REQUIRE(err != -EPROTONOSUPPORT ||
		     (m.magic == PROTO_MAGIC && m.version != PROTO_VERSION));
	FUZZ_REQUIRE(err || (size - 1 == sizeof(m) && m.magic == PROTO_MAGIC));
	for (int i = 0; i < PROTO_FDS; i++)
		if (fds[i] >= 0) {
			FUZZ_REQUIRE(m.brings & 1u << i);
			close(fds[i]);
		}
	close(pair[0]);
	close(pair[1]);
	FUZZ_REQUIRE(count_descriptors() == before);
	return 0;
}
