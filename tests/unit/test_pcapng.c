/* SPDX-License-Identifier: BSD-2-Clause */
/* hdr/pcapng: a block has two equal lengths, a packet padded to 32 bits, and
 * the packet's comment. */
#include "test.h"

#include "hdr/pcapng.h"

#define PACKET_MAX 8

/* A whole block, and how many bytes it has. */
struct block {
	uint8_t bytes[PCAPNG_BEFORE_BYTES + PACKET_MAX + PCAPNG_AFTER_MAX];
	size_t count;
};

static uint32_t word_at(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint16_t half_at(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static struct block block_of(size_t bytes, const char *comment)
{
	const struct pcapng_packet k = {
		.at_ns = 0x123456789abull, .bytes = bytes, .comment = comment};
	struct block b;

	memset(&b, 0xee, sizeof(b));
	pcapng_write_before(b.bytes, &k);
	b.count = PCAPNG_BEFORE_BYTES + bytes;
	b.count += pcapng_write_after(b.bytes + b.count, &k);
	assert_true(b.count <= sizeof(b.bytes));
	return b;
}

static void a_file_begins_with_a_section_and_an_interface(void **state)
{
	uint8_t p[PCAPNG_BEGIN_BYTES];

	pcapng_write_begin(p, PCAPNG_LINK_ETHERNET);
	assert_int_equal(word_at(p), PCAPNG_MAGIC);
	assert_int_equal(word_at(p + 4), 28);
	assert_int_equal(word_at(p + 24), 28);
	assert_int_equal(word_at(p + 28), 1);
	assert_int_equal(word_at(p + 32), 32);
	assert_int_equal(half_at(p + 36), PCAPNG_LINK_ETHERNET);
	assert_int_equal(word_at(p + 56), 32);
}

static void a_block_of_any_packet_has_whole_words(void **state)
{
	for (size_t bytes = 0; bytes <= PACKET_MAX; bytes++) {
		struct block b = block_of(bytes, NULL);

		assert_int_equal(b.count, 32 + (bytes + 3) / 4 * 4);
		assert_int_equal(word_at(b.bytes), 6);
		assert_int_equal(word_at(b.bytes + 4), b.count);
		assert_int_equal(word_at(b.bytes + 12), 0x123);
		assert_int_equal(word_at(b.bytes + 16), 0x456789ab);
		assert_int_equal(word_at(b.bytes + 20), bytes);
		assert_int_equal(word_at(b.bytes + 24), bytes);
		assert_int_equal(word_at(b.bytes + b.count - 4), b.count);
	}
}

static void a_comment_follows_the_packet_as_an_option(void **state)
{
	char longest[PCAPNG_COMMENT_MAX + 1] = {0};

	memset(longest, 'x', PCAPNG_COMMENT_MAX);
	for (size_t n = 1; n <= PCAPNG_COMMENT_MAX; n++) {
		const char *comment = longest + PCAPNG_COMMENT_MAX - n;
		struct block b = block_of(5, comment);
		const uint8_t *option = b.bytes + PCAPNG_BEFORE_BYTES + 8;
		size_t whole = (n + 3) / 4 * 4;

		assert_int_equal(half_at(option), 1);
		assert_int_equal(half_at(option + 2), n);
		assert_memory_equal(option + 4, comment, n);
		/* the option that ends the options */
		assert_int_equal(word_at(option + 4 + whole), 0);
		assert_int_equal(b.count, 28 + 8 + 4 + whole + 4 + 4);
		assert_int_equal(word_at(b.bytes + 4), b.count);
		assert_int_equal(word_at(b.bytes + b.count - 4), b.count);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_begins_with_a_section_and_an_interface),
		cmocka_unit_test(a_block_of_any_packet_has_whole_words),
		cmocka_unit_test(a_comment_follows_the_packet_as_an_option),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
