/* SPDX-License-Identifier: BSD-2-Clause */
/* hdr and encap/icrc read and write frames that the kernel's rxe has sent. */
#include "test.h"

#include "encap/icrc.h"
#include "hdr/cmmsg.h"
#include "hdr/mad.h"
#include "hdr/pkt.h"
#include "vectors/frames.h"

#define HEADERS (IP_V4_BYTES + UDP_BYTES)

static struct frames all, cm;

struct opened {
	struct ip_v4 ip;
	struct udp udp;
	struct pkt pkt;
};

static bool open_frame(const uint8_t *p, size_t len, struct opened *o)
{
	if (!ip_v4_parse(p, len, &o->ip) || o->ip.header_bytes != IP_V4_BYTES)
		return false;
	if (!udp_parse(p + IP_V4_BYTES, len - IP_V4_BYTES, &o->udp))
		return false;
	return len >= HEADERS + BTH_BYTES + ICRC_BYTES;
}

/* Returns the CRC register after the frame's last byte before the ICRC.  The IP
 * and UDP headers are those in *o, the other bytes those at p. */
static uint32_t compute_icrc(const uint8_t *p, size_t len,
			     const struct opened *o)
{
	uint32_t crc = icrc_bth(icrc_headers_v4(&o->ip, &o->udp), p + HEADERS);

	return icrc_update(crc, p + HEADERS + BTH_BYTES,
			   len - HEADERS - BTH_BYTES - ICRC_BYTES);
}

/* Does open_frame accept the frame, and is the frame's ICRC right? */
static bool is_accepted(const uint8_t *p, size_t len)
{
	struct opened o;

	return open_frame(p, len, &o) &&
	       compute_icrc(p, len, &o) == icrc_read(p + len - ICRC_BYTES);
}

static void setup_frame(const struct frame *f, struct opened *o)
{
	assert_true(open_frame(f->bytes, f->len, o));
	assert_true(pkt_parse(f->bytes + HEADERS, f->len - HEADERS - ICRC_BYTES,
			      &o->pkt));
}

static void every_frame_reads_as_tshark_reads_it(void **state)
{
	for (size_t i = 0; i < all.count; i++) {
		const struct frame *f = &all.frame[i];
		struct opened o;

		setup_frame(f, &o);
		assert_int_equal(o.ip.total_length, f->len);
		assert_int_equal(o.ip.protocol, IP_PROTOCOL_UDP);
		assert_true(ip_v4_checksum_ok(f->bytes, &o.ip));
		assert_int_equal(o.udp.dport, UDP_PORT_ROCEV2);
		assert_int_equal(o.udp.length, f->len - IP_V4_BYTES);
		assert_true(udp_checksum_v4_ok(&o.ip, f->bytes + IP_V4_BYTES,
					       o.udp.length));
		assert_int_equal(o.pkt.bth.opcode, f->opcode);
		assert_int_equal(o.pkt.bth.psn, f->psn);
		assert_int_equal(o.pkt.bth.dest_qpn, f->dest_qpn);
	}
}

static void every_frame_writes_back_to_the_same_bytes(void **state)
{
	for (size_t i = 0; i < all.count; i++) {
		const struct frame *f = &all.frame[i];
		uint8_t out[HEADERS + PKT_MAX_HEADER_BYTES];
		struct opened o;
		size_t size;

		setup_frame(f, &o);
		ip_v4_write(out, &o.ip);
		udp_write(out + IP_V4_BYTES, &o.udp);
		size = pkt_write_headers(out + HEADERS, &o.pkt);
		assert_int_equal(size, o.pkt.info->header_bytes);
		assert_memory_equal(out, f->bytes, HEADERS + size);
		assert_ptr_equal(o.pkt.payload, f->bytes + HEADERS + size);
		assert_int_equal(HEADERS + size + o.pkt.payload_len +
					 o.pkt.bth.pad + ICRC_BYTES,
				 f->len);
	}
}

static void every_icrc_agrees(void **state)
{
	for (size_t i = 0; i < all.count; i++) {
		const struct frame *f = &all.frame[i];
		struct opened o;
		uint8_t icrc[ICRC_BYTES];

		setup_frame(f, &o);
		icrc_write(icrc, compute_icrc(f->bytes, f->len, &o));
		assert_memory_equal(icrc, f->bytes + f->len - ICRC_BYTES,
				    ICRC_BYTES);
	}
}

/* cmmsg reads the members of the kernel's CM messages, and a message that cmmsg
 * writes has the same members. */
static void every_cm_message_is_read(void **state)
{
	unsigned seen[CMMSG_APR + 1] = {0};

	for (size_t i = 0; i < cm.count; i++) {
		uint8_t mad[MAD_BYTES];
		struct cmmsg m, again;
		struct cmmsg_ip ip;
		struct opened o;

		setup_frame(&cm.frame[i], &o);
		assert_true(cmmsg_parse(o.pkt.payload, o.pkt.payload_len, &m));
		seen[m.kind]++;
		cmmsg_write(mad, &m);
		assert_true(cmmsg_parse(mad, sizeof(mad), &again));
		assert_memory_equal(&m, &again, sizeof(m));
		if (m.kind != CMMSG_REQ && m.kind != CMMSG_SIDR_REQ)
			continue;
		assert_true(cmmsg_ip_parse(m.private_data, &ip));
		assert_int_equal(ip.src[15], o.ip.src & 0xff);
		assert_int_equal(ip.dst[15], o.ip.dst & 0xff);
		assert_true(m.service_id >> 16 == 0x0106 ||
			    m.service_id >> 16 == 0x0111);
		assert_int_equal(m.qp.pkey, 0xffff);
	}
	assert_true(seen[CMMSG_REQ] && seen[CMMSG_REP] && seen[CMMSG_RTU]);
	assert_true(seen[CMMSG_DREQ] && seen[CMMSG_DREP]);
	assert_true(seen[CMMSG_SIDR_REQ] && seen[CMMSG_SIDR_REP]);
}

/* May a router change this byte of a frame?  It may change the ToS, the TTL and
 * the checksum of IPv4, the checksum of UDP, and byte 4 of the BTH (IBTA
 * A17.3.3). */
static bool may_vary(size_t byte)
{
	return byte == 1 || byte == 8 || byte == 10 || byte == 11 ||
	       byte == 26 || byte == 27 || byte == HEADERS + 4;
}

static void every_flipped_bit_is_noticed_unless_it_may_vary(void **state)
{
	for (size_t i = 0; i < all.count; i++) {
		const struct frame *f = &all.frame[i];

		for (size_t bit = 0; bit < f->len * 8; bit++) {
			uint8_t mask = (uint8_t)(1 << bit % 8);

			f->bytes[bit / 8] ^= mask;
			assert_int_equal(is_accepted(f->bytes, f->len),
					 may_vary(bit / 8));
			f->bytes[bit / 8] ^= mask;
		}
	}
}

static uint32_t syndrome_without_id(const uint8_t *p, size_t len,
				    struct opened o, bool df)
{
	o.ip.id = 0;
	o.ip.flags_fragment = df ? IP_V4_DF : 0;
	return compute_icrc(p, len, &o) ^ icrc_read(p + len - ICRC_BYTES);
}

static void the_id_a_socket_hides_is_recovered(void **state)
{
	for (size_t i = 0; i < all.count; i++) {
		const struct frame *f = &all.frame[i];
		struct opened o;

		setup_frame(f, &o);
		for (int df = 0; df <= 1; df++) {
			struct icrc_hidden assumed = {0, df == 1}, actual;
			uint32_t syndrome =
				syndrome_without_id(f->bytes, f->len, o, df);

			assert_true(icrc_syndrome_id(
				syndrome, o.ip.total_length, assumed, &actual));
			assert_int_equal(actual.id, o.ip.id);
			assert_int_equal(actual.df,
					 (o.ip.flags_fragment & IP_V4_DF) != 0);
		}
	}
}

/*
 * Corrupts one or two bytes at random.  Flips of one bit would be too few
 * cases: in all frames of one length, the flip of a given bit changes the
 * syndrome by the same value.
 */
static void corruption_is_taken_for_an_id_once_in_2_to_the_15(void **state)
{
	const size_t tries = 8000, after = HEADERS + BTH_BYTES;
	size_t mistaken = 0;
	uint64_t rng = 1;

	for (size_t i = 0; i < all.count * tries; i++) {
		const struct frame *f = &all.frame[i % all.count];
		struct icrc_hidden assumed = {0, true}, actual;
		struct opened o;
		size_t at;

		setup_frame(f, &o);
		rng = rng * 6364136223846793005u + 1442695040888963407u;
		at = after + (rng >> 32) % (f->len - after);
		f->bytes[at] ^= (uint8_t)(rng >> 24 | 1);
		f->bytes[after - 1 - at % 4] ^= (uint8_t)(rng >> 48);
		mistaken += icrc_syndrome_id(
			syndrome_without_id(f->bytes, f->len, o, true),
			o.ip.total_length, assumed, &actual);
		f->bytes[at] ^= (uint8_t)(rng >> 24 | 1);
		f->bytes[after - 1 - at % 4] ^= (uint8_t)(rng >> 48);
	}
	assert_uint_in_range(mistaken, 1, 2 * (all.count * tries >> 15));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_frame_reads_as_tshark_reads_it),
		cmocka_unit_test(every_frame_writes_back_to_the_same_bytes),
		cmocka_unit_test(every_icrc_agrees),
		cmocka_unit_test(every_cm_message_is_read),
		cmocka_unit_test(
			every_flipped_bit_is_noticed_unless_it_may_vary),
		cmocka_unit_test(the_id_a_socket_hides_is_recovered),
		cmocka_unit_test(
			corruption_is_taken_for_an_id_once_in_2_to_the_15),
	};
	int failed;

	if (argc != 3) {
		fprintf(stderr, "usage: %s FRAMES CM-FRAMES\n", argv[0]);
		return 2;
	}
	all = frames_load(argv[1]);
	cm = frames_load(argv[2]);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	frames_free(&all);
	frames_free(&cm);
	return failed;
}
