/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends and receives packets at a port of this program's host in a fabric
 * (`adverb run --fabric --host H -- packets ...`):
 *
 *	packets receive PORT COUNT	prints the LID and the state of the
 *					port, and a QPN; then checks that COUNT
 *					packets come there, whole and in order
 *	packets send PORT LID QPN COUNT [PKEY [SL]]	sends COUNT packets
 *	packets watch PORT		prints the state of the port, then each
 *					change of the port
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "encap/iblink.h"
#include "fabric/proto.h"
#include "hdr/bth.h"
#include "hdr/bytes.h"

#define PAYLOAD	  2000
#define INNER	  (BTH_BYTES + PAYLOAD)
#define SEND_ONLY 0x24 /* of UC */

/* A port of this program's host. */
struct attached {
	/* connection: the socket for questions to the fabric.  data: the socket
	 * of the data end, for packets. */
	int connection, data;
	uint32_t qpn;		 /* a QPN of the data end */
	struct fabric_port port; /* the fabric's answer about the port */
};

static _Noreturn void give_up(const char *what, int err)
{
	printf("%s: %s\n", what, strerror(err));
	exit(1);
}

/* Returns the value of a variable that `adverb run --fabric` sets. */
static const char *value_of(const char *variable)
{
	const char *value = getenv(variable);

	if (!value) {
		printf("%s is not set: run this program by `adverb run "
		       "--fabric`\n",
		       variable);
		exit(1);
	}
	return value;
}

/* Returns the descriptor of a message, or -1 if the message has none. */
static int descriptor_of(struct msghdr *h)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(h);
	int fd;

	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
	    c->cmsg_len != CMSG_LEN(sizeof(fd)))
		return -1;
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

/* Sends a question to the fabric and waits for the answer, which is written to
 * *m.  Returns the answer's error, 0 or a negative errno value.  If fd is not
 * NULL, an answer without an error must have a descriptor, which goes to *fd.
 */
static int ask_fabric(int connection, struct fabric_proto *m, int *fd)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
	struct iovec part = {m, sizeof(*m)};
	struct msghdr h = {.msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = control,
			   .msg_controllen = sizeof(control)};
	ssize_t n;

	m->version = FABRIC_PROTO_VERSION;
	snprintf(m->host, sizeof(m->host), "%s",
		 value_of("ADVERB_FABRIC_HOST"));
	n = send(connection, m, sizeof(*m), 0);
	if (n != sizeof(*m))
		give_up("send to the fabric", n < 0 ? errno : EMSGSIZE);
	n = recvmsg(connection, &h, 0);
	if (n != sizeof(*m))
		give_up("receive from the fabric", n < 0 ? errno : EBADMSG);
	if (!fd || m->err)
		return m->err;
	*fd = descriptor_of(&h);
	if (*fd < 0)
		give_up("the fabric's answer has no descriptor", EBADMSG);
	return 0;
}

static void attach_port(struct attached *a, uint32_t port)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct fabric_proto m = {.kind = FABRIC_PROTO_PORT, .number = port};
	int err;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s",
		 value_of("ADVERB_FABRIC"));
	a->connection = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	if (a->connection < 0)
		give_up("socket", errno);
	if (connect(a->connection, (struct sockaddr *)&address,
		    sizeof(address)))
		give_up("connect", errno);
	err = ask_fabric(a->connection, &m, NULL);
	if (err)
		give_up("port", -err);
	a->port = m.port;
	m = (struct fabric_proto){.kind = FABRIC_PROTO_DATA, .number = port};
	err = ask_fabric(a->connection, &m, &a->data);
	if (err)
		give_up("data end", -err);
	a->qpn = m.number << DATA_REST_BITS | 7;
}

/* Receives a message.  Ends the program if the fabric has ended. */
static size_t take_message(const struct attached *a, void *message, size_t room)
{
	ssize_t n = recv(a->data, message, room, 0);

	if (n <= 0)
		give_up("the fabric has ended", n ? errno : ECONNRESET);
	return (size_t)n;
}

static void check_packet(const uint8_t *p, size_t n, uint32_t psn, uint32_t qpn)
{
	struct iblink_inner inner;
	struct iblink h;
	struct bth bth;

	if (!lrh_is_intact(p, n) || !iblink_open(p, n, &h, &inner) ||
	    inner.bytes != INNER)
		give_up("a packet is damaged", EBADMSG);
	bth_parse(inner.bth, inner.bytes, &bth);
	if (bth.psn != psn || bth.dest_qpn != qpn) {
		printf("packet %u to QP 0x%x comes in place of %u to 0x%x\n",
		       bth.psn, bth.dest_qpn, psn, qpn);
		exit(1);
	}
}

/* Checks the packets of a message, which begin with the PSN `psn`.  Returns the
 * PSN of the next packet. */
static uint32_t check_message(const struct attached *a, const uint8_t *p,
			      size_t n, uint32_t psn)
{
	while (n) {
		size_t packet = lrh_first(p, n);

		if (!packet)
			give_up("a message has no whole packet", EBADMSG);
		check_packet(p, packet, psn++, a->qpn);
		p += packet;
		n -= packet;
	}
	return psn;
}

static int receive_packets(struct attached *a, uint32_t count)
{
	static uint8_t p[FABRIC_PROTO_BURST_BYTES];
	uint32_t got = 0;

	printf("lid %u qpn %u state %u\n", a->port.lid, a->qpn, a->port.state);
	fflush(stdout);
	while (got < count) {
		size_t n = take_message(a, p, sizeof(p));

		if (n > sizeof(struct fabric_proto_news))
			got = check_message(a, p, n, got);
	}
	printf("%u packets in order\n", got);
	return 0;
}

static int send_packets(struct attached *a, char **argv, int argc)
{
	struct iblink h = {.lrh = {.lnh = LRH_NEXT_LOCAL,
				   .slid = a->port.lid,
				   .dlid = (uint16_t)atoi(argv[0])}};
	struct bth bth = {.opcode = SEND_ONLY,
			  .dest_qpn = (uint32_t)atoi(argv[1]),
			  .pkey = 0xffff};
	uint32_t count = (uint32_t)atoi(argv[2]);
	uint8_t p[LRH_FRAME_MAX];

	if (argc > 3)
		bth.pkey = (uint16_t)strtoul(argv[3], NULL, 0);
	if (argc > 4)
		h.lrh.sl = (uint8_t)atoi(argv[4]);
	for (bth.psn = 0; bth.psn < count; bth.psn++) {
		size_t head = iblink_write(p, &h, INNER), n;

		bth_write(p + head, &bth);
		memset(p + head + BTH_BYTES, (int)bth.psn, PAYLOAD);
		n = head + iblink_seal(p, head, p + head, INNER);
		if (send(a->data, p, n, MSG_NOSIGNAL) != (ssize_t)n)
			give_up("the fabric has ended", errno);
	}
	/* The fabric reads the packets in the socket before it sees the end. */
	shutdown(a->data, SHUT_WR);
	while (recv(a->data, p, sizeof(p), 0) > 0)
		;
	printf("%u packets sent\n", count);
	return 0;
}

static _Noreturn void watch_port(struct attached *a)
{
	struct fabric_proto_news news;

	printf("state %u\n", a->port.state);
	for (;;) {
		fflush(stdout);
		take_message(a, &news, sizeof(news));
		printf("changes %u\n", news.changes);
	}
}

int main(int argc, char **argv)
{
	const char *mode = argc >= 3 ? argv[1] : "";
	bool receives = argc == 4 && !strcmp(mode, "receive");
	bool sends = argc >= 6 && !strcmp(mode, "send");
	struct attached a;

	if (!receives && !sends && strcmp(mode, "watch") != 0) {
		fprintf(stderr,
			"usage: packets receive PORT COUNT\n"
			"       packets send PORT LID QPN COUNT [PKEY [SL]]\n"
			"       packets watch PORT\n");
		return 2;
	}
	attach_port(&a, (uint32_t)atoi(argv[2]));
	if (receives)
		return receive_packets(&a, (uint32_t)atoi(argv[3]));
	if (sends)
		return send_packets(&a, argv + 3, argc - 3);
	watch_port(&a);
}
