/* SPDX-License-Identifier: BSD-2-Clause */
#include "log/env.h"

#include <stdlib.h>
#include <string.h>

#include "log/env_names.h"
#include "log/log.h"

static const char *const mechanism_names[ENV_MECHANISMS] = {
	[ENV_CREDITS] = "credits",   [ENV_ACKS] = "acks",
	[ENV_EAGER] = "eager",	     [ENV_MAPPED] = "mapped",
	[ENV_ADAPTIVE] = "adaptive", [ENV_RINGS] = "rings",
};

static const char *const mpa_words[ENV_MPA_WORDS] = {
	[ENV_MPA_REV1] = "rev1",
	[ENV_MPA_NOCRC] = "nocrc",
	[ENV_MPA_MARKERS] = "markers",
	[ENV_MPA_CLIENT_SERVER] = "client-server",
};

/* Finds the next word of the comma-separated list at *at, and moves *at past
 * the word.  Returns the word's length; 0: there are no more words. */
static size_t next_word(const char **at, const char **word)
{
	size_t length;

	*at += strspn(*at, ",");
	*word = *at;
	length = strcspn(*at, ",");
	*at += length;
	return length;
}

static bool is_word(const char *word, size_t length, const char *name)
{
	return strlen(name) == length && !memcmp(name, word, length);
}

static bool has_word(const char *list, const char *name)
{
	const char *word;
	size_t length;

	while (list && (length = next_word(&list, &word)))
		if (is_word(word, length, name))
			return true;
	return false;
}

bool env_is_without(enum env_mechanism mechanism)
{
	return has_word(secure_getenv("ADVERB_WITHOUT"),
			mechanism_names[mechanism]);
}

bool env_has_mpa(enum env_mpa word)
{
	return has_word(secure_getenv("ADVERB_MPA"), mpa_words[word]);
}

bool env_is_on(const char *name)
{
	const char *value = secure_getenv(name);

	return value && *value && strcmp(value, "0") != 0;
}

bool env_is_off(const char *name)
{
	const char *value = secure_getenv(name);

	return value && !strcmp(value, "0");
}

const char *env_text(const char *name)
{
	return secure_getenv(name);
}

/* Finds the next word of the list at *at that is none of the `count` names, and
 * moves *at past the word.  Returns the word's length; 0: there are no more
 * such words.  *at may be NULL. */
static size_t next_unknown(const char **at, const char **word,
			   const char *const *names, int count)
{
	size_t length;

	while (*at && (length = next_word(at, word))) {
		int i = 0;

		while (i < count && !is_word(*word, length, names[i]))
			i++;
		if (i == count)
			return length;
	}
	return 0;
}

static void check_without(void)
{
	const char *at = secure_getenv("ADVERB_WITHOUT"), *word;
	size_t length;

	while ((length = next_unknown(&at, &word, mechanism_names,
				      ENV_MECHANISMS)))
		log_say(LOG_VALUE_WITHOUT, (uintptr_t)word,
			"ADVERB_WITHOUT: \"%.*s\" is not the name of a "
			"mechanism: the names are credits, acks, eager, "
			"mapped, adaptive and rings, separated by commas",
			(int)length, word);
}

static void check_mpa(void)
{
	const char *at = secure_getenv("ADVERB_MPA"), *word;
	size_t length;

	while ((length = next_unknown(&at, &word, mpa_words, ENV_MPA_WORDS)))
		log_say(LOG_VALUE_MPA, (uintptr_t)word,
			"ADVERB_MPA: \"%.*s\" is not one of the words: the "
			"words are rev1, nocrc, markers and client-server, "
			"separated by commas",
			(int)length, word);
}

/* Reads `text`, which is not empty, as one number, by strtoul(3) with this
 * base.  False: `text` is not one number, or the number is greater than `most`.
 * A minus sign is searched for, because strtoul accepts one, also after white
 * space, and returns 1 for -18446744073709551615. */
static bool read_number(const char *text, int base, unsigned long most,
			unsigned long *number)
{
	char *end;

	*number = strtoul(text, &end, base);
	return !*end && !strchr(text, '-') && *number <= most;
}

static bool is_number(const char *text)
{
	unsigned long number;

	return read_number(text, 0, UINT32_MAX, &number);
}

static bool is_switch(const char *text)
{
	return strcmp(text, "0") == 0 || strcmp(text, "1") == 0;
}

enum env_sctp env_sctp(uint16_t *udp_port)
{
	const char *value = secure_getenv("ADVERB_SCTP");
	unsigned long port;

	*udp_port = 0;
	if (!value || !*value || !strcmp(value, "0"))
		return ENV_SCTP_OFF;
	if (!strcmp(value, "udp"))
		return ENV_SCTP_UDP;
	if (!strcmp(value, "raw"))
		return ENV_SCTP_RAW;
	if (!read_number(value, 10, UINT16_MAX, &port) || !port)
		return ENV_SCTP_WRONG;
	*udp_port = (uint16_t)port;
	return ENV_SCTP_UDP;
}

static void check_sctp(void)
{
	uint16_t port;

	if (env_sctp(&port) == ENV_SCTP_WRONG)
		log_say(LOG_VALUE_SCTP, 0,
			"ADVERB_SCTP=%s: the value must be udp, raw or the "
			"number of a UDP port",
			secure_getenv("ADVERB_SCTP"));
}

static void check_explain(void)
{
	const char *value = secure_getenv("ADVERB_EXPLAIN");

	if (value && *value && !is_switch(value) && strcmp(value, "2") != 0)
		log_say(LOG_VALUE_EXPLAIN, 0,
			"ADVERB_EXPLAIN=%s: the value must be 0, 1 or 2",
			value);
}

void env_check(void)
{
	static const char *const switches[] = {
		"ADVERB_BPF",	  "ADVERB_CM_FAST", "ADVERB_DIRECT",
		"ADVERB_GRO",	  "ADVERB_GSO",	    "ADVERB_GUARD",
		"ADVERB_PTRACER", "ADVERB_SPORT",   "ADVERB_STRICT",
	};
	static const char *const numbers[] = {"ADVERB_PART_ID",
					      "ADVERB_PATIENCE"};
	const char *value;

	for (size_t i = 0; i < sizeof(switches) / sizeof(*switches); i++) {
		value = secure_getenv(switches[i]);
		if (value && *value && !is_switch(value))
			log_say(LOG_VALUE_SWITCH, i,
				"%s=%s: the value must be 0 or 1", switches[i],
				value);
	}
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		value = secure_getenv(numbers[i]);
		if (value && *value && !is_number(value))
			log_say(LOG_VALUE_NUMBER, i,
				"%s=%s: the value must be a number from 0 to "
				"4294967295",
				numbers[i], value);
	}
	env_names_check();
	check_explain();
	check_without();
	check_mpa();
	check_sctp();
}

enum env_path env_path(void)
{
	const char *direct = secure_getenv("ADVERB_DIRECT");
	const char *capture = secure_getenv("ADVERB_PCAP");

	if (direct && !strcmp(direct, "0"))
		return ENV_PATH_PACKETS;
	return capture && *capture ? ENV_PATH_CAPTURE : ENV_PATH_DIRECT;
}

bool env_has_direct(void)
{
	const char *direct = secure_getenv("ADVERB_DIRECT");

	return direct && *direct;
}
