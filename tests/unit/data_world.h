/* SPDX-License-Identifier: BSD-2-Clause */
/* Three programs on a fabric of three switches in a row, for the tests of
 * fabric/data.  B is behind S2 and S3, A and C are at S1. */
#ifndef TESTS_UNIT_DATA_WORLD_H
#define TESTS_UNIT_DATA_WORLD_H

#include "test.h"

#include <errno.h>

#include "encap/iblink.h"
#include "fabric/data.h"
#include "fabric/inside.h"
#include "hdr/bth.h"
#include "hdr/bytes.h"
#include "hdr/lrh.h"

#define LID_A	1
#define LID_B	2
#define LID_C	3
#define MLID	0xc001
#define PAYLOAD 64
#define BYTES	(LRH_BYTES + BTH_BYTES + PAYLOAD + 4 + LRH_VCRC_BYTES)
#define WORDS	((BYTES - LRH_VCRC_BYTES) / 4)
#define GLOBAL	(BYTES + 40)

enum {
	/* offsets in PortInfo, in bytes */
	AT_GID_PREFIX = 8,
	AT_LID = 16,
	AT_MTU = 36,
	AT_HOQ = 42,
	AT_LANES = 43,
	AT_PKEY_VIOLATIONS = 46,
	/* opcodes of a BTH */
	SEND_ONLY = 0x04,
	UD_SEND_ONLY = 0x64,
};

static const char text[] =
	"Switch 4 \"S1\"\n[1] \"A\"[1]\n[2] \"S2\"[1]\n[3] \"C\"[1]\n\n"
	"Switch 4 \"S2\"\n[1] \"S1\"[2]\n[2] \"S3\"[1]\n\n"
	"Switch 4 \"S3\"\n[1] \"S2\"[2]\n[2] \"B\"[1]\n\n"
	"Hca 1 \"A\"\n[1] \"S1\"[1]\n\n"
	"Hca 1 \"B\"\n[1] \"S3\"[2]\n\n"
	"Hca 1 \"C\"\n[1] \"S1\"[3]\n";

/* The fabric, a data end at port 1 of each host, and the time. */
struct world {
	struct fabric *f;
	struct data_end *a, *b, *c;
	uint64_t now_ms;
};

static inline struct port *port_of(const struct world *w, const char *name,
				   int number)
{
	return &fabric_find(w->f, name)->ports[number];
}

/* Sets the tables of a switch: the ports to A, to B and to C, for their LIDs
 * and for MLID. */
static inline void set_switch(const struct world *w, const char *name,
			      uint8_t to_a, uint8_t to_b, uint8_t to_c)
{
	struct node *s = fabric_find(w->f, name);

	bytes_put16(s->switch_info + 6, LID_C);
	s->lft[LID_A] = to_a;
	s->lft[LID_B] = to_b;
	s->lft[LID_C] = to_c;
	s->mft[(MLID - 0xc000) * s->mft_columns] =
		(uint16_t)(1 << to_a | 1 << to_b | 1 << to_c);
}

/* Makes each port that has a cable active, with an MTU of 2048 bytes and VLs 0
 * to 7, and sets the LIDs of A, B and C. */
static inline void set_ports(const struct world *w)
{
	for (uint32_t i = 0; fabric_node(w->f, i); i++) {
		struct node *node = fabric_node(w->f, i);

		for (int n = 1; n <= node->port_count; n++) {
			struct port *port = &node->ports[n];

			if (port->state == STATE_DOWN)
				continue;
			port->info[AT_MTU] |= 4 << 4;	/* 2048 */
			port->info[AT_LANES] |= 4 << 4; /* VL 0 to 7 */
			port->info[AT_HOQ] = 16;	/* 268 ms */
			port->state = STATE_ACTIVE;
		}
	}
	bytes_put16(port_of(w, "A", 1)->info + AT_LID, LID_A);
	bytes_put16(port_of(w, "B", 1)->info + AT_LID, LID_B);
	bytes_put16(port_of(w, "C", 1)->info + AT_LID, LID_C);
}

static inline int set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct net_error error;
	struct net net;
	int err;

	assert_int_equal(net_parse(text, sizeof(text) - 1, &net, &error), 0);
	w->f = fabric_new(&net);
	net_free(&net);
	assert_non_null(w->f);
	w->a = data_open(fabric_find(w->f, "A"), 1, w, &err);
	w->b = data_open(fabric_find(w->f, "B"), 1, NULL, &err);
	w->c = data_open(fabric_find(w->f, "C"), 1, NULL, &err);
	assert_true(w->a && w->b && w->c);
	set_switch(w, "S1", 1, 2, 3);
	set_switch(w, "S2", 1, 2, 1);
	set_switch(w, "S3", 1, 2, 1);
	set_ports(w);
	w->now_ms = 1;
	*state = w;
	return 0;
}

static inline int tear_down(void **state)
{
	struct world *w = *state;

	fabric_free(w->f);
	free(w);
	return 0;
}

/* A packet of n bytes. */
struct made {
	uint8_t bytes[GLOBAL];
	size_t n;
};

/* Returns the QPN of a queue pair of this data end. */
static inline uint32_t qpn_of(const struct data_end *end)
{
	return data_number(end) << DATA_REST_BITS | 5;
}

/* Writes the VCRC. */
static inline void seal_packet(struct made *m)
{
	lrh_seal(m->bytes, m->n - LRH_VCRC_BYTES);
}

/* Makes a SEND from A to a queue pair of `to`.  Each byte of the payload is
 * `mark`, and so is each byte of the ICRC, which the fabric does not read. */
static inline void make_unicast(struct made *m, const struct data_end *to,
				uint16_t dlid, uint8_t mark)
{
	struct lrh lrh = {.lnh = LRH_NEXT_LOCAL,
			  .dlid = dlid,
			  .slid = LID_A,
			  .words = WORDS};
	struct bth bth = {
		.opcode = SEND_ONLY, .pkey = 0xffff, .dest_qpn = qpn_of(to)};

	m->n = BYTES;
	lrh_write(m->bytes, &lrh);
	bth_write(m->bytes + LRH_BYTES, &bth);
	memset(m->bytes + LRH_BYTES + BTH_BYTES, mark, PAYLOAD + 4);
	seal_packet(m);
}

static const uint8_t group[16] = {0xff, 0x12, 0x40, 0x1b, [15] = 9};

/* Makes a datagram from A to the group.  The SGID has the GUID of A's port. */
static inline void make_multicast(struct made *m, const struct world *w)
{
	struct lrh lrh = {.lnh = LRH_NEXT_GLOBAL,
			  .dlid = MLID,
			  .slid = LID_A,
			  .words = (GLOBAL - LRH_VCRC_BYTES) / 4};
	struct bth bth = {
		.opcode = UD_SEND_ONLY, .pkey = 0xffff, .dest_qpn = 0xffffff};
	const struct port *port = port_of(w, "A", 1);
	uint8_t *grh = m->bytes + LRH_BYTES, *at = grh + 40;

	memset(m, 0, sizeof(*m));
	m->n = GLOBAL;
	lrh_write(m->bytes, &lrh);
	grh[0] = 0x60;
	bytes_put16(grh + 4, GLOBAL - LRH_VCRC_BYTES - LRH_BYTES - 40);
	grh[6] = 0x1b;
	memcpy(grh + 8, port->info + AT_GID_PREFIX, 8);
	bytes_put64(grh + 16, port_guid(port, 0));
	memcpy(grh + 24, group, 16);
	bth_write(at, &bth);
	bytes_put24(at + BTH_BYTES + 5, qpn_of(w->a));
	seal_packet(m);
}

/* Sends m from A and lets the fabric deliver the packet.  Returns the result of
 * data_send. */
static inline int send_made(struct world *w, const struct made *m)
{
	int err = data_send(w->a, m->bytes, m->n);

	fabric_turn(w->f, w->now_ms);
	return err;
}

/* Fetches a packet and returns its first byte of payload; -1: there is none. */
static inline int fetch_mark(struct data_end *end)
{
	size_t n;
	const uint8_t *p = data_fetch(end, &n);
	int mark;

	if (!p)
		return -1;
	assert_true(lrh_is_intact(p, n));
	mark = p[LRH_BYTES + BTH_BYTES];
	data_fetched(end);
	return mark;
}

/* Fetches a packet and returns its VL. */
static inline int fetch_vl(struct data_end *end)
{
	const uint8_t *p;
	size_t n;
	int vl;

	p = data_fetch(end, &n);
	assert_non_null(p);
	assert_true(lrh_is_intact(p, n));
	vl = p[0] >> 4;
	data_fetched(end);
	return vl;
}

/* Sends a packet of make_unicast.  Returns the result of data_send. */
static inline int send_mark(struct world *w, struct data_end *to, uint16_t dlid,
			    uint8_t mark)
{
	struct made m;

	make_unicast(&m, to, dlid, mark);
	return send_made(w, &m);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
