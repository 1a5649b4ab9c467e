/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/suspect_log.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "host/host.h"
#include "log/log.h"

#define JUNK_SAID 1000 /* the message comes after so many datagrams */

/* Returns the detail for log_say, so that each address, and each user of an
 * address of this host, gets one message. */
static uint64_t detail_of(const struct engine_suspect *who)
{
	uint64_t half[2], mixed;

	memcpy(half, who->ip, sizeof(half));
	mixed = (half[0] ^ half[1] ^ who->user) * 0x9e3779b97f4a7c15ull;
	return mixed >> 8;
}

static const char *const signs[ENGINE_SIGNS] = {
	[ENGINE_SIGN_QPN] = "for queue pairs that never existed",
	[ENGINE_SIGN_PEER] = "for queue pairs with another peer",
	[ENGINE_SIGN_PSN] = "with PSNs far outside the window",
	[ENGINE_SIGN_SOURCE] = "from ports that the peer's user does not own",
	[ENGINE_SIGN_KEY] = "with wrong keys",
};

/* Writes "3 for queue pairs that never existed, 100 with ...". */
static void list_signs(const struct engine_suspect *who, char *text,
		       size_t size)
{
	size_t at = 0;

	*text = 0;
	for (uint32_t i = 1; i < ENGINE_SIGNS && at < size; i++)
		if (who->signs[i])
			at += (size_t)snprintf(
				text + at, size - at, "%s%llu %s",
				at ? ", " : "",
				(unsigned long long)who->signs[i], signs[i]);
}

static void name_suspect(const struct engine_suspect *who, char *text,
			 size_t size)
{
	bool is_v4 = inaddr_is_v4(who->ip);
	char address[INET6_ADDRSTRLEN] = "";

	if (inaddr_is_lid(who->ip)) {
		snprintf(text, size, "LID %u", inaddr_lid(who->ip));
		return;
	}
	inet_ntop(is_v4 ? AF_INET : AF_INET6, is_v4 ? who->ip + 12 : who->ip,
		  address, sizeof(address));
	if (who->user != ENGINE_NO_USER)
		snprintf(text, size, "%s, an address of this host, by user %u,",
			 address, who->user);
	else
		snprintf(text, size, "%s%s", address,
			 who->is_local ? ", an address of this host," : "");
}

static void say_suspect(const struct engine_suspect *who)
{
	char from[INET6_ADDRSTRLEN + 64], what[320];

	name_suspect(who, from, sizeof(from));
	list_signs(who, what, sizeof(what));
	log_say(LOG_SUSPECT, detail_of(who),
		"packets from %s fit no connection of this process: %s; they "
		"are probably forged, so adverb drops them (adverb top counts "
		"them)%s",
		from, what,
		inaddr_is_lid(who->ip) ? ""
				       : "; a firewall can block their sender");
}

void suspect_log_say(struct engine *e)
{
	struct engine_suspect who;

	while (engine_suspect(e, &who))
		say_suspect(&who);
}

void suspect_log_junk(const struct engine *e, bool *said)
{
	uint64_t junk = 0;

	for (uint32_t i = 0; !*said && i < HCA_MAX_DEVICES; i++) {
		const struct engine_counters *c = engine_counters(e, i);

		junk += c->refused.malformed + c->refused.bad_icrc +
			c->refused.unknown_qp;
	}
	if (junk < JUNK_SAID)
		return;
	*said = true;
	log_say(LOG_JUNK, 0,
		"%llu packets were dropped that are malformed or damaged, or "
		"are for queue pairs that do not exist; find their sender with "
		"ADVERB_PCAP=FILE; if they come to UDP port 4791, a firewall "
		"can block their sender",
		(unsigned long long)junk);
}
