/* SPDX-License-Identifier: BSD-2-Clause */
/* hdr/sa reads what OpenSM answers, and writes what OpenSM has understood. */
#include "test.h"

#include "hdr/bytes.h"
#include "hdr/sa.h"
#include "vectors/frames.h"

enum {
	BEFORE_MAD = 28, /* LRH, BTH, DETH */
	AFTER_MAD = 6,	 /* ICRC, VCRC */
	AT_METHOD = 3,
	AT_MASK = 48,
	AT_RECORD = 56,
	HAS_QKEY = 1 << 2,
};

static struct frames all;

/* The fields of the answers, in the order of the file. */
static const struct {
	enum sa_kind kind;
	uint16_t status, lid;
	uint8_t mtu, rate;
} answers[] = {{SA_PATH, 0, 4, 5, 3},	     {SA_PATH, 0, 5, 5, 3},
	       {SA_PATH, 0x0300, 0, 0, 0},   {SA_MEMBER, 0, 0xc000, 4, 3},
	       {SA_MEMBER, 0x0600, 0, 0, 0}, {SA_MEMBER, 0x0200, 0, 0, 0},
	       {SA_MEMBER, 0, 0xc001, 4, 3}, {SA_LEFT, 0, 0, 0, 0}};

static const uint8_t *mad_of(size_t i)
{
	assert_int_equal(all.frame[i].len, BEFORE_MAD + MAD_BYTES + AFTER_MAD);
	return all.frame[i].bytes + BEFORE_MAD;
}

static bool is_answer(const uint8_t *mad)
{
	return mad[AT_METHOD] & MAD_METHOD_RESPONSE;
}

static void every_answer_is_read(void **state)
{
	size_t n = 0;

	for (size_t i = 0; i < all.count; i++) {
		const uint8_t *mad = mad_of(i);
		struct sa_answer a;

		if (!is_answer(mad)) {
			assert_false(sa_read(mad, MAD_BYTES, &a));
			continue;
		}
		assert_true(n < TEST_COUNT(answers));
		assert_true(sa_read(mad, MAD_BYTES, &a));
		assert_int_equal(a.kind, answers[n].kind);
		assert_int_equal(a.status, answers[n].status);
		if (!a.status && a.kind == SA_PATH) {
			assert_int_equal(a.path.dlid, answers[n].lid);
			assert_int_equal(a.path.mtu, answers[n].mtu);
			assert_int_equal(a.path.rate, answers[n].rate);
		} else if (!a.status && a.kind == SA_MEMBER) {
			assert_int_equal(a.member.mlid, answers[n].lid);
			assert_int_equal(a.member.mtu, answers[n].mtu);
			assert_int_equal(a.member.rate, answers[n].rate);
			assert_int_equal(a.member.qkey, 0x0b1b);
		}
		n++;
	}
	assert_int_equal(n, TEST_COUNT(answers));
}

/* Reads the record of a question, as if it were an answer: sets the method, and
 * the LIDs and the MTU without which sa_read refuses an answer. */
static struct sa_answer read_question(const uint8_t *question, bool is_path)
{
	uint8_t mad[MAD_BYTES];
	struct sa_answer a;

	memcpy(mad, question, sizeof(mad));
	mad[AT_METHOD] = 0x81;
	if (is_path) {
		bytes_put32(mad + AT_RECORD + 40, 1 << 16 | 1);
		mad[AT_RECORD + 54] = 1;
	} else {
		bytes_put16(mad + AT_RECORD + 36, 0xc000);
		mad[AT_RECORD + 38] |= !mad[AT_RECORD + 38];
	}
	assert_true(sa_read(mad, sizeof(mad), &a));
	return a;
}

static void every_question_is_written_again(void **state)
{
	unsigned paths = 0, joins = 0, leaves = 0;

	for (size_t i = 0; i < all.count; i++) {
		const uint8_t *mad = mad_of(i);
		uint64_t mask = bytes_get64(mad + AT_MASK);
		uint8_t again[MAD_BYTES];
		struct sa_answer a;

		if (is_answer(mad))
			continue;
		a = read_question(mad, mad[AT_METHOD] == 1);
		if (mad[AT_METHOD] == 1) {
			sa_write_path(again, sa_id(mad), &a.path,
				      (uint32_t)mask);
			paths++;
		} else if (mad[AT_METHOD] == 2) {
			sa_write_join(again, sa_id(mad), &a.member,
				      mask & HAS_QKEY);
			joins++;
		} else {
			sa_write_leave(again, sa_id(mad), &a.member);
			leaves++;
		}
		/* the fabric wrote the upper half of the transaction ID when
		 * it took the question */
		memcpy(again + 8, mad + 8, 4);
		assert_memory_equal(again, mad, MAD_BYTES);
	}
	assert_true(paths && joins && leaves);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_answer_is_read),
		cmocka_unit_test(every_question_is_written_again),
	};
	int failed;

	if (argc != 2) {
		fprintf(stderr, "usage: %s FRAMES\n", argv[0]);
		return 2;
	}
	all = frames_load(argv[1]);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	frames_free(&all);
	return failed;
}
