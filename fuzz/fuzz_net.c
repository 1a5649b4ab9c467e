/* SPDX-License-Identifier: BSD-2-Clause */
/* fabric/net: a file is refused with a reason, or each cable has two ends. */
#include "fuzz.h"
#include "input.h"

#include <stdlib.h>
#include <string.h>

#include "fabric/net.h"

#define TEXT_MAX 4096

/* Appends a word of the format, so that random bytes can make valid records.
 * Returns the length of the word. */
static size_t append_word(char *text, uint8_t b)
{
	static const char *const words[] = {
		"Switch 4 ", "Hca 2 ",	 "Ca 1 ",   "Rt 3 ",	"\"A\"",
		"\"B\"",     "\"C\"",	 "\n",	    "\n[1] ",	"\n[2] ",
		"[1]",	     "[2]",	 "\n\n",    " w=2",	" s=1",
		" # \"x\"",  " lid 3 ",	 "lmc 1",   "caguid=1", "switchguid+2",
		"(ab)",	     "vendid=1", "devid=2", "width=4",	"speed=",
		"@",	     "=",	 "4xDDR",   "#",	"include "};
	const char *word = words[b % (sizeof(words) / sizeof(*words))];

	size_t n = 0;

	for (; word[n]; n++)
		text[n] = word[n];
	return n;
}

static void require_cables(const struct net *net)
{
	for (uint32_t i = 0; i < net->port_count; i++) {
		const struct net_port *port = &net->ports[i];

		if (port->peer == NET_NO_PORT)
			continue;
		FUZZ_REQUIRE(port->peer < net->port_count && port->peer != i);
		FUZZ_REQUIRE(net->ports[port->peer].peer == i);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input_bytes in = {data, data + size};
	char text[TEXT_MAX + 32];
	struct net_error error;
	struct net net;
	size_t n = 0;

	while (in.at < in.end && n < TEXT_MAX) {
		uint8_t b = input_u8(&in);

		if (b < 240)
			n += append_word(text + n, b);
		else
			text[n++] = (char)input_u8(&in);
	}
	if (net_parse(text, n, &net, &error)) {
		FUZZ_REQUIRE(error.why[0]);
		FUZZ_REQUIRE(!net.nodes && !net.ports);
		return 0;
	}
	FUZZ_REQUIRE(net.node_count > 0);
	require_cables(&net);
	net_free(&net);
	return 0;
}
