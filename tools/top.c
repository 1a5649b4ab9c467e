/* SPDX-License-Identifier: BSD-2-Clause */
#include "top.h"

#include "util/remedy.h"
#include "watch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

/* The options, and the two latest looks at the processes. */
struct top {
	double interval; /* seconds */
	bool once, json; /* --once, --json */
	struct watch before, now;
};

/* A QP of a process, and the QP's traffic since the last look. */
struct qp_row {
	const struct watch_process *process, *peer; /* peer NULL: not known */
	const struct watch_qp *qp;
	double tx_bytes, rx_bytes, packets; /* per second */
	uint64_t retransmits, rnr_waits;    /* since the last look */
};

/* For each wait of a QP, its word in JSON. */
static const char *const waits[QP_WAITS] = {
	[QP_WAIT_NONE] = "",	       [QP_WAIT_ANSWER] = "answer",
	[QP_WAIT_WINDOW] = "window",   [QP_WAIT_READS] = "reads",
	[QP_WAIT_RECEIVE] = "receive", [QP_WAIT_SILENT] = "silent",
	[QP_WAIT_SOCKET] = "socket",   [QP_WAIT_CREDIT] = "credit",
};

/* For each wait of a QP, its clause in the table and in JSON. */
static const char *const why[QP_WAITS] = {
	[QP_WAIT_NONE] = "",
	[QP_WAIT_ANSWER] =
		"all requests are sent, the peer has not acknowledged",
	[QP_WAIT_WINDOW] = "the window is full of unacknowledged packets",
	[QP_WAIT_READS] =
		"READs or atomics are outstanding: max_rd_atomic or fence",
	[QP_WAIT_RECEIVE] = "the peer has no receive posted (RNR)",
	[QP_WAIT_SILENT] = "the peer is silent, packets are retransmitted",
	[QP_WAIT_SOCKET] =
		"the socket is full: the peer or the network is slower",
	[QP_WAIT_CREDIT] =
		"the socket of the peer's process on this host is full",
};

/* Returns what the QP waits for; a QP that may not send waits for nothing.
 * Another process has written qp->stats.wait, so any number may be there. */
static enum qp_wait wait_of(const struct watch_qp *qp)
{
	bool sends = qp->state == HCA_QP_RTS || qp->state == HCA_QP_SQD;

	return sends && qp->stats.wait < QP_WAITS ? (enum qp_wait)qp->stats.wait
						  : QP_WAIT_NONE;
}

static void format_reason(const struct qp_row *r, char *text, size_t size)
{
	enum qp_wait wait = wait_of(r->qp);

	if (r->process->stopped)
		snprintf(text, size, "this process is stopped");
	else if (r->qp->state == HCA_QP_ERR)
		snprintf(text, size, "in ERR, requests are flushed");
	else if (wait != QP_WAIT_NONE && r->peer && r->peer->stopped)
		snprintf(text, size, "the peer, process %d (%s), is stopped",
			 r->peer->pid, r->peer->name);
	else
		snprintf(text, size, "%s", why[wait]);
}

/* Returns by how much a counter has grown.  A counter may seem to decrease: two
 * words count a peer's requests, and the second one may be read too early. */
static uint64_t growth_of(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

static struct qp_row row_of(const struct top *t, const struct watch_process *p,
			    const struct watch_qp *qp)
{
	const struct watch_qp *old = watch_qp(&t->before, p->pid, qp->qpn);
	double s = (double)(t->now.at_ns - t->before.at_ns) * 1e-9;
	const struct qp_stats *now = &qp->stats, *before;
	struct qp_row r = {.process = p, .qp = qp};

	if (qp->dest_qpn)
		r.peer = watch_peer(&t->now, qp);
	if (!old || s <= 0)
		return r;
	before = &old->stats;
	r.tx_bytes = (double)growth_of(now->tx_bytes, before->tx_bytes) / s;
	r.rx_bytes = (double)growth_of(now->rx_bytes, before->rx_bytes) / s;
	r.packets = (double)(growth_of(now->tx_packets, before->tx_packets) +
			     growth_of(now->rx_packets, before->rx_packets)) /
		    s;
	r.retransmits = growth_of(now->retransmits, before->retransmits);
	r.rnr_waits = growth_of(now->rnr_waits, before->rnr_waits);
	return r;
}

/* Orders by traffic, the busiest first; then by wait; then by process and QPN.
 */
static int compare_rows(const void *left, const void *right)
{
	const struct qp_row *a = left, *b = right;
	double x = a->tx_bytes + a->rx_bytes, y = b->tx_bytes + b->rx_bytes;

	if (x < y || x > y)
		return x < y ? 1 : -1;
	if (wait_of(a->qp) != wait_of(b->qp))
		return wait_of(a->qp) < wait_of(b->qp) ? 1 : -1;
	if (a->process->pid != b->process->pid)
		return a->process->pid < b->process->pid ? -1 : 1;
	return a->qp->qpn < b->qp->qpn ? -1 : a->qp->qpn > b->qp->qpn;
}

/* Returns all QPs, sorted.  The caller frees the array; NULL: no memory. */
static struct qp_row *make_rows(const struct top *t, size_t *count)
{
	struct qp_row *r;
	size_t n = 0;

	for (size_t i = 0; i < t->now.count; i++)
		n += t->now.processes[i].qp_count;
	r = calloc(n + 1, sizeof(*r));
	*count = 0;
	for (size_t i = 0; r && i < t->now.count; i++) {
		const struct watch_process *p = &t->now.processes[i];

		for (size_t j = 0; j < p->qp_count; j++)
			r[(*count)++] = row_of(t, p, &p->qps[j]);
	}
	if (r)
		qsort(r, *count, sizeof(*r), compare_rows);
	return r;
}

static void format_rate(double v, char text[12])
{
	static const char units[] = " kMGT";
	int unit = 0;

	while (v >= 999.5 && unit < 4) {
		v /= 1000;
		unit++;
	}
	if (v < 0.05)
		snprintf(text, 12, "-");
	else
		snprintf(text, 12, v < 9.95 ? "%.1f%c" : "%.0f%c", v,
			 units[unit]);
}

static void format_address(const struct watch_qp *qp,
			   char text[INET6_ADDRSTRLEN])
{
	static const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff}, none[16];
	const uint8_t *g = qp->dgid;
	bool is_v4 = memcmp(g, v4, sizeof(v4)) == 0;
	bool has_peer = qp->dest_qpn || memcmp(g, none, sizeof(none)) != 0;

	snprintf(text, INET6_ADDRSTRLEN, "-");
	if (qp->state >= HCA_QP_RTR && has_peer)
		inet_ntop(is_v4 ? AF_INET : AF_INET6, is_v4 ? g + 12 : g, text,
			  INET6_ADDRSTRLEN);
}

static void print_row(const struct qp_row *r)
{
	char tx[12], rx[12], packets[12], text[96];
	char peer[INET6_ADDRSTRLEN], who[64];

	format_rate(r->tx_bytes, tx);
	format_rate(r->rx_bytes, rx);
	format_rate(r->packets, packets);
	format_reason(r, text, sizeof(text));
	format_address(r->qp, peer);
	if (r->peer)
		snprintf(who, sizeof(who), "%s/%d", peer, r->peer->pid);
	else
		snprintf(who, sizeof(who), "%s", peer);
	printf("%7d %-15.15s %06x %-5s %-22s %6s %6s %6s %6lu %5lu  %s\n",
	       r->process->pid, r->process->name, r->qp->qpn,
	       qp_state_name(r->qp->state), who, tx, rx, packets,
	       (unsigned long)r->retransmits, (unsigned long)r->rnr_waits,
	       text);
}

/* Prints which packets a process has dropped, if any: in a sound network drops
 * are rare.  A process with another version of adverb gets a line that says so,
 * since its counters are unknown. */
static void print_drops(const struct watch_process *p)
{
	const struct {
		uint64_t count;
		const char *what;
	} drops[] = {
		{p->counters.refused.malformed, "malformed"},
		{p->counters.refused.bad_icrc, "with a wrong ICRC"},
		{p->counters.refused.unknown_qp, "for no queue pair"},
		{p->counters.refused.wrong_peer, "from a wrong peer"},
		{p->counters.rx_wrong_psn, "with a PSN out of the window"},
		{p->counters.refused.wrong_source, "from another user's port"},
		{p->counters.refused.limited,
		 "unchecked, as there were too many"},
	};
	int any = 0;

	if (p->foreign) {
		printf("%7d %s: uses another version of adverb\n", p->pid,
		       p->name);
		return;
	}
	for (size_t i = 0; i < sizeof(drops) / sizeof(*drops); i++) {
		if (!drops[i].count)
			continue;
		if (!any++)
			printf("%7d %s has dropped:", p->pid, p->name);
		printf("%s %lu %s", any > 1 ? "," : "",
		       (unsigned long)drops[i].count, drops[i].what);
	}
	if (any)
		putchar('\n');
}

static void name_suspect(const struct engine_suspect *s,
			 char text[INET6_ADDRSTRLEN])
{
	bool is_v4 = inaddr_is_v4(s->ip);

	*text = '\0';
	inet_ntop(is_v4 ? AF_INET : AF_INET6, is_v4 ? s->ip + 12 : s->ip, text,
		  INET6_ADDRSTRLEN);
}

/* Prints the first of the process's suspects, which is the address with the
 * greatest weight, and how many other suspects there are; nothing if there are
 * none. */
static void print_suspect(const struct watch_process *p)
{
	static const char *const what[ENGINE_SIGNS] = {
		[ENGINE_SIGN_QPN] = "for queue pairs that never existed",
		[ENGINE_SIGN_PEER] = "for queue pairs of other peers",
		[ENGINE_SIGN_PSN] = "with PSNs far outside the window",
		[ENGINE_SIGN_SOURCE] = "from another user's port",
		[ENGINE_SIGN_KEY] = "with wrong keys",
	};
	const struct engine_suspect *s = p->suspects;
	char address[INET6_ADDRSTRLEN];
	int any = 0;

	if (!p->suspect_count)
		return;
	name_suspect(s, address);
	printf("%7d %s gets packets from %s", p->pid, p->name, address);
	if (s->user != ENGINE_NO_USER)
		printf(" (user %u)", s->user);
	for (int i = 1; i < ENGINE_SIGNS; i++)
		if (s->signs[i])
			printf("%s %lu %s", any++ ? "," : ":",
			       (unsigned long)s->signs[i], what[i]);
	if (p->suspect_count > 1)
		printf("; and from %zu other sources", p->suspect_count - 1);
	putchar('\n');
}

/* Says of which users not all queue pairs are shown. */
static void print_cut(const struct watch *w)
{
	for (size_t i = 0; i < w->user_count; i++)
		if (w->users[i].is_cut)
			printf("not all queue pairs of user %u are shown: top "
			       "reads at most %d of one user, and %d of all "
			       "users\n",
			       w->users[i].id, WATCH_USER_QPS, WATCH_ALL_QPS);
}

static size_t screen_lines(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || size.ws_row < 8)
		return SIZE_MAX;
	return size.ws_row - 5u;
}

static void print_table(const struct top *t)
{
	size_t count, most = t->once ? SIZE_MAX : screen_lines();
	struct qp_row *r = make_rows(t, &count);

	printf("adverb top: %zu processes, %zu queue pairs; rates and counts "
	       "of %.1f s\n\n",
	       t->now.count, count,
	       (double)(t->now.at_ns - t->before.at_ns) * 1e-9);
	printf("%7s %-15s %-6s %-5s %-22s %6s %6s %6s %6s %5s  %s\n", "PID",
	       "PROCESS", "QPN", "STATE", "PEER", "TX B/s", "RX B/s", "PKT/s",
	       "RETRY", "RNR", "WAITS BECAUSE");
	for (size_t i = 0; i < count && i < most; i++)
		print_row(&r[i]);
	if (count > most)
		printf("  and %zu more, less busy\n", count - most);
	for (size_t i = 0; i < t->now.count; i++)
		print_drops(&t->now.processes[i]);
	for (size_t i = 0; i < t->now.count; i++)
		print_suspect(&t->now.processes[i]);
	print_cut(&t->now);
	free(r);
}

static void json_text(const char *name, const char *text)
{
	printf("\"%s\": \"", name);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putchar('\\');
		putchar(*text);
	}
	printf("\"");
}

static void json_number(const char *name, uint64_t value)
{
	printf(", \"%s\": %lu", name, (unsigned long)value);
}

static void json_qp(const struct qp_row *r)
{
	const struct qp_stats *s = &r->qp->stats;
	char text[96], peer[INET6_ADDRSTRLEN];

	format_address(r->qp, peer);
	format_reason(r, text, sizeof(text));
	printf("{\"qpn\": %u", r->qp->qpn);
	json_number("pid", (uint64_t)r->process->pid);
	printf(", ");
	json_text("state", qp_state_name(r->qp->state));
	printf(", ");
	json_text("peer", peer);
	json_number("peer_qpn", r->qp->dest_qpn);
	json_number("peer_pid", r->peer ? (uint64_t)r->peer->pid : 0);
	json_number("tx_packets", s->tx_packets);
	json_number("tx_bytes", s->tx_bytes);
	json_number("rx_packets", s->rx_packets);
	json_number("rx_bytes", s->rx_bytes);
	json_number("retransmits", s->retransmits);
	json_number("timeouts", s->timeouts);
	json_number("rnr_waits", s->rnr_waits);
	json_number("out_of_order", s->out_of_order);
	printf(", \"tx_bytes_per_s\": %.0f, \"rx_bytes_per_s\": %.0f, ",
	       r->tx_bytes, r->rx_bytes);
	json_text("waits", waits[wait_of(r->qp)]);
	printf(", ");
	json_text("why", text);
	printf("}");
}

static void json_suspect(const struct engine_suspect *s)
{
	char address[INET6_ADDRSTRLEN];

	name_suspect(s, address);
	printf("{");
	json_text("address", address);
	printf(", \"local\": %s", s->is_local ? "true" : "false");
	if (s->user != ENGINE_NO_USER)
		json_number("user", s->user);
	json_number("unknown_qpn", s->signs[ENGINE_SIGN_QPN]);
	json_number("wrong_peer", s->signs[ENGINE_SIGN_PEER]);
	json_number("wrong_psn", s->signs[ENGINE_SIGN_PSN]);
	json_number("wrong_source", s->signs[ENGINE_SIGN_SOURCE]);
	json_number("wrong_key", s->signs[ENGINE_SIGN_KEY]);
	json_number("dropped", s->dropped);
	printf("}");
}

static void json_suspects(const struct watch_process *p)
{
	printf(", \"suspects\": [");
	for (size_t i = 0; i < p->suspect_count; i++) {
		printf("%s", i ? ", " : "");
		json_suspect(&p->suspects[i]);
	}
	printf("]");
}

static void json_process(const struct watch_process *p)
{
	const struct engine_counters *c = &p->counters;

	printf("{\"pid\": %d, ", p->pid);
	json_text("name", p->name);
	printf(", \"stopped\": %s", p->stopped ? "true" : "false");
	json_number("queue_pairs", p->qp_count);
	json_number("rx_packets", c->rx_packets);
	json_number("tx_packets", c->tx_packets);
	json_number("rx_malformed", c->refused.malformed);
	json_number("rx_bad_icrc", c->refused.bad_icrc);
	json_number("rx_unknown_qp", c->refused.unknown_qp);
	json_number("rx_misdirected", c->refused.misdirected);
	json_number("rx_wrong_peer", c->refused.wrong_peer);
	json_number("rx_wrong_psn", c->rx_wrong_psn);
	json_number("rx_wrong_source", c->refused.wrong_source);
	json_number("rx_limited", c->refused.limited);
	json_number("rx_duplicates", c->rx_duplicates);
	json_number("rx_out_of_order", c->rx_out_of_order);
	json_number("retransmits", c->retransmits);
	json_number("timeouts", c->timeouts);
	json_number("rnr_naks_rx", c->naks.rnr_rx);
	json_number("rnr_naks_tx", c->naks.rnr_tx);
	json_number("seq_naks_rx", c->naks.seq_rx);
	json_number("seq_naks_tx", c->naks.seq_tx);
	json_number("fatal_naks_rx", c->naks.fatal_rx);
	json_number("fatal_naks_tx", c->naks.fatal_tx);
	json_suspects(p);
	printf("}");
}

/* Prints of which users not all queue pairs are shown. */
static void json_cut(const struct watch *w)
{
	const char *before = "";

	printf("\"cut_users\": [");
	for (size_t i = 0; i < w->user_count; i++) {
		if (!w->users[i].is_cut)
			continue;
		printf("%s%u", before, w->users[i].id);
		before = ", ";
	}
	printf("]");
}

static void print_json(const struct top *t)
{
	size_t count;
	struct qp_row *r = make_rows(t, &count);

	printf("{\"processes\": [");
	for (size_t i = 0; i < t->now.count; i++) {
		printf("%s\n ", i ? "," : "");
		json_process(&t->now.processes[i]);
	}
	printf("],\n\"queue_pairs\": [");
	for (size_t i = 0; i < count; i++) {
		printf("%s\n ", i ? "," : "");
		json_qp(&r[i]);
	}
	printf("],\n");
	json_cut(&t->now);
	printf("}\n");
	free(r);
}

static void print_help(FILE *out)
{
	fprintf(out,
		"usage: adverb top [--once] [--json] [--interval SECONDS]\n"
		"\n"
		"Shows the queue pairs of every adverb process of this user: "
		"rates, packets\n"
		"sent again, waits, stopped processes, and what keeps a queue pair "
		"from sending.\n"
		"Root sees the queue pairs of all users.  The processes are "
		"not disturbed.\n"
		"\n"
		"  --once              print one table, of one interval, and "
		"end\n"
		"  --json              print JSON instead, with all totals\n"
		"  --interval SECONDS  the length of an interval (default 1)\n"
		"  -h, --help          this text\n"
		"\n"
		"More: man adverb-top\n");
}

static void say_why(int err)
{
	if (err == -ENOMEM)
		fprintf(stderr, "adverb: top ends: no memory is left.\n");
	else
		fprintf(stderr,
			"adverb: top cannot show the processes: %s%s; %s.\n",
			err == -ENOENT ? "/proc shows no process"
				       : "/proc cannot be read: ",
			err == -ENOENT ? "" : strerror(-err),
			remedy_of(-err, "mount it (mount -t proc proc /proc), "
					"or run adverb top where it is "
					"mounted"));
}

static int watch_forever(struct top *t)
{
	struct timespec pause = {
		.tv_sec = (time_t)t->interval,
		.tv_nsec = (long)((t->interval - (double)(time_t)t->interval) *
				  1e9),
	};
	int err = watch_take(&t->before);

	do {
		nanosleep(&pause, NULL);
		err = err ? err : watch_take(&t->now);
		if (err)
			break;
		if (!t->once && isatty(STDOUT_FILENO))
			printf("\033[H\033[J");
		if (t->json)
			print_json(t);
		else
			print_table(t);
		fflush(stdout);
		watch_free(&t->before);
		t->before = t->now;
		t->now = (struct watch){0};
	} while (!t->once && !ferror(stdout));
	watch_free(&t->before);
	if (err)
		say_why(err);
	return err ? 1 : 0;
}

int top_main(int argc, char **argv)
{
	static const struct option options[] = {
		{"once", no_argument, NULL, '1'},
		{"json", no_argument, NULL, 'j'},
		{"interval", required_argument, NULL, 'i'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct top t = {.interval = 1};
	char *end;
	int c;

	while ((c = getopt_long(argc, argv, "hi:", options, NULL)) != -1) {
		switch (c) {
		case '1':
			t.once = true;
			break;
		case 'j':
			t.json = true;
			break;
		case 'i':
			t.interval = strtod(optarg, &end);
			if (!*end && t.interval > 0 && t.interval < 86400)
				break;
			fprintf(stderr,
				"adverb: --interval takes seconds, more than 0 "
				"and less than 86400, not \"%s\".\n",
				optarg);
			return 2;
		default:
			print_help(c == 'h' ? stdout : stderr);
			return c == 'h' ? 0 : 2;
		}
	}
	if (optind != argc) {
		print_help(stderr);
		return 2;
	}
	return watch_forever(&t);
}
