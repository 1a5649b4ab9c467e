/* SPDX-License-Identifier: BSD-2-Clause */
#include "pair.h"

#include "heeded.h"
#include "launch.h"
#include "listen.h"
#include "private.h"
#include "side.h"
#include "tool.h"
#include "usage.h"
#include "util/monotonic.h"
#include "util/remedy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	ARGV_MAX = 256,	   /* words of a command line, with the final NULL */
	GRACE_MS = 3000,   /* from a side's failure to the stop of its peer */
	TERM_MS = 2000,	   /* between SIGTERM and SIGKILL */
	READY_POLL_MS = 5, /* between looks: a listen(2) raises no event */
	STATUS_TIMEOUT = 124,
	TIMEOUT_MAX = 2000000, /* seconds: poll's milliseconds are an int */
	USAGE_MAX = 4096,      /* bytes of what a tool prints for -h */
};

/* One run of adverb pair. */
struct pair {
	struct launch server_env, client_env; /* how each side is started */
	struct side server, client;
	/* The command line of each side, with NULL at the end. */
	const char *server_argv[ARGV_MAX], *client_argv[ARGV_MAX];
	char client_program[PATH_MAX]; /* the path from tool_client */
	const char *address;	       /* the server's; borrowed */
	char port[16];		       /* the reserved TCP port */
	long long timeout_ms;	       /* --timeout */
	uint64_t deadline_ms;	       /* when the run is given up */
	int signals;		       /* a signalfd */
	int ready;  /* a pipe: the server's librdmacm writes a byte
		     * when the server listens by rdma_cm */
	int caught; /* the signal that ends this run, or 0 */
	/* deadline_ms has come before the server listened, or before both sides
	 * have ended; false if a side whose status counts had failed before */
	bool timed_out;
	/* The server does not end by itself; it is stopped when the client has
	 * ended. */
	bool server_stays;
};

/* Reads the signals that have come.  SIGCHLD only ends a wait. */
static void take_signals(struct pair *p)
{
	struct signalfd_siginfo info;

	while (read(p->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo != SIGCHLD)
			p->caught = (int)info.ssi_signo;
	}
}

/* Waits until a side writes or ends, a signal comes, or the time is @until_ms.
 * Prints the output of the sides, and notes their ends and the signals that
 * have come. */
static void wait_once(struct pair *p, uint64_t until_ms)
{
	struct pollfd fds[] = {
		{.fd = p->signals, .events = POLLIN},
		{.fd = p->server.pid ? p->server.out : -1, .events = POLLIN},
		{.fd = p->client.pid ? p->client.out : -1, .events = POLLIN},
	};
	long long left = (long long)(until_ms - monotonic_ms());

	poll(fds, 3, left < 0 ? 0 : (int)left);
	take_signals(p);
	if (fds[1].revents)
		side_read(&p->server);
	if (fds[2].revents)
		side_read(&p->client);
	side_look(&p->server);
	side_look(&p->client);
}

/* Does the server listen, on a TCP socket or by rdma_cm? */
static bool is_ready(const struct pair *p)
{
	char byte;

	return read(p->ready, &byte, 1) == 1 ||
	       listen_is_ready(p->server.pid, atoi(p->port));
}

/* Waits until the server is ready.  False: the server has ended, a signal ends
 * this run, or the time is up. */
static bool wait_ready(struct pair *p)
{
	while (!is_ready(p)) {
		wait_once(p, monotonic_ms() + READY_POLL_MS);
		if (p->server.ended) {
			side_fini(&p->server);
			printf("pair| the server ended with status %d before "
			       "it listened\n",
			       p->server.status);
			return false;
		}
		if (p->caught)
			return false;
		if (monotonic_ms() >= p->deadline_ms) {
			p->timed_out = true;
			printf("pair| the server did not listen within %lld "
			       "s, on a TCP port or by rdma_cm; --timeout sets "
			       "a longer wait\n",
			       p->timeout_ms / 1000);
			return false;
		}
	}
	return true;
}

static bool any_runs(const struct pair *p)
{
	return side_is_running(&p->server) || side_is_running(&p->client);
}

static bool has_failed(const struct side *s)
{
	return s->ended && s->status != 0;
}

/* Has a side failed whose status counts?  A server that stays may end as soon
 * as its client has left, while the client's program goes on. */
static bool any_failed(const struct pair *p)
{
	return has_failed(&p->client) ||
	       (!p->server_stays && has_failed(&p->server));
}

static void say_timeout(const struct pair *p)
{
	const struct side *s = &p->server, *c = &p->client;

	if (side_is_running(s) && side_is_running(c))
		printf("pair| both sides still ran after %lld s\n",
		       p->timeout_ms / 1000);
	else
		printf("pair| the %s still ran after %lld s; the other side "
		       "had ended with status %d\n",
		       side_is_running(s) ? s->name : c->name,
		       p->timeout_ms / 1000,
		       side_is_running(s) ? c->status : s->status);
}

/* Waits until both sides have ended, a signal ends this run, or the time is up;
 * after a side has failed, for GRACE_MS at most.  Does not wait for a server
 * that stays. */
static void wait_end(struct pair *p)
{
	bool failing = false;

	while (any_runs(p)) {
		wait_once(p, p->deadline_ms);
		if (p->caught || (p->server_stays && p->client.ended))
			return;
		if (!failing && any_failed(p)) {
			uint64_t grace = monotonic_ms() + GRACE_MS;

			failing = true;
			if (grace < p->deadline_ms)
				p->deadline_ms = grace;
		}
		/* the last wait may have brought the end of both */
		if (monotonic_ms() < p->deadline_ms || !any_runs(p))
			continue;
		if (!failing) {
			p->timed_out = true;
			say_timeout(p);
		}
		return;
	}
}

/* Sends the signal to both sides, and waits for their end, for wait_ms at
 * most. */
static void stop_sides(struct pair *p, int signal, int wait_ms)
{
	uint64_t until = monotonic_ms() + (uint64_t)wait_ms;

	side_kill(&p->server, signal);
	side_kill(&p->client, signal);
	while (any_runs(p) && monotonic_ms() < until)
		wait_once(p, until);
}

/* Returns the exit status of this run.  The status of a side that this run has
 * killed does not count, nor that of a server that stays, once its client has
 * ended. */
static int final_status(const struct pair *p)
{
	bool is_over = p->server_stays && p->client.ended;
	int s = p->server.killed || is_over ? 0 : p->server.status;
	int c = p->client.killed ? 0 : p->client.status;
	int worse = s > c ? s : c;

	if (p->caught)
		return 128 + p->caught;
	if (p->timed_out)
		return STATUS_TIMEOUT;
	if (s)
		printf("pair| the server failed with status %d\n", s);
	if (c)
		printf("pair| the client failed with status %d\n", c);
	return worse;
}

/* Starts the server, which alone inherits the write end of the pipe p->ready.
 * Returns 0 or -errno. */
static int start_server(struct pair *p)
{
	int ends[2], theirs, err;
	char number[16];

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	p->ready = ends[0];
	theirs = dup(ends[1]);
	close(ends[1]);
	if (theirs < 0)
		return -errno;
	snprintf(number, sizeof(number), "%d", theirs);
	launch_set(&p->server_env, "ADVERB_READY_FD", number);
	err = side_start(&p->server, "server", &p->server_env, p->server_argv);
	close(theirs);
	return err;
}

/* Says why a side cannot be started.  Returns err, which may be 0. */
static int say_not_started(const char *side, const char *program, int err)
{
	if (err)
		fprintf(stderr,
			"adverb: the %s, %s, cannot be started: %s; %s.\n",
			side, program, strerror(-err),
			remedy_of(-err, "adverb doctor shows what this "
					"machine allows"));
	return err;
}

static int pair_run(struct pair *p)
{
	int err;

	listen_leave_out();
	err = say_not_started("server", p->server_argv[0], start_server(p));
	p->deadline_ms = monotonic_ms() + (uint64_t)p->timeout_ms;
	if (err == 0 && wait_ready(p)) {
		err = say_not_started("client", p->client_argv[0],
				      side_start(&p->client, "client",
						 &p->client_env,
						 p->client_argv));
		if (err == 0)
			wait_end(p);
	}
	stop_sides(p, SIGTERM, TERM_MS);
	stop_sides(p, SIGKILL, TERM_MS);
	side_fini(&p->server);
	side_fini(&p->client);
	/* a server that ends with 0 before it listens has failed, too */
	if (err || (!p->client.pid && !p->caught && !p->timed_out &&
		    p->server.status == 0))
		return 1;
	return final_status(p);
}

static bool catch_signals(struct pair *p)
{
	sigset_t set;

	/* The caller may ignore SIGCHLD.  The kernel would then reap the sides,
	 * and waitid would not find them. */
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	heeded_add(&set, SIGINT);
	heeded_add(&set, SIGTERM);
	heeded_add(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	p->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return p->signals >= 0;
}

static void print_help(FILE *out)
{
	fprintf(out,
		"usage: adverb pair [options] -- tool [arguments]\n"
		"       adverb pair [options] --server prog args... --client "
		"prog args...\n"
		"\n"
		"Starts the server, waits until it listens on a TCP port or by "
		"rdma_cm, starts\n"
		"the client with the server's address, prints what both write, "
		"and exits with\n"
		"the greater of their statuses.\n"
		"These tools get the options that they need, and a free "
		"port:\n"
		"  ib_{write,read,send,atomic}_{bw,lat}  "
		"ibv_{rc,uc,ud,srq,xsrq}_pingpong\n"
		"  qperf rping ucmatose udaddy cmtime rstream riostream udpong "
		"rdma_server\n"
		"  rdma_xserver\n"
		"Give the commands of other tools after --server and --client, "
		"with @ for the\n"
		"address and %% for the port.\n"
		"\n"
		"%s"
		"                   only the client writes FILE, with the frames "
		"of both sides\n"
		"%s"
		"  --timeout SECONDS\n"
		"                   give up and say which side still runs (default "
		"60)\n"
		"  --address ADDR   the server's address (default 127.0.0.1)\n"
		"  --stop-server    end the server when the client has ended\n"
		"  --env NAME=VALUE set a variable for both sides\n"
		"  --env-server NAME=VALUE\n"
		"                   set a variable for the server\n"
		"  --env-client NAME=VALUE\n"
		"                   set a variable for the client\n"
		"  -h, --help       this text\n"
		"\n"
		"  adverb pair -- ib_write_bw\n"
		"  adverb pair -- ib_send_lat -s 64 -n 1000\n"
		"  adverb pair --pcap f.pcapng -- ibv_rc_pingpong -e\n"
		"  adverb pair --server ./serve -p %% --client ./ask @ %%\n"
		"\n"
		"More: man adverb-pair\n",
		launch_pcap_help, launch_help);
}

/* Returns the address for "@", the port for "%", or else the word itself. */
static const char *fill_in(const struct pair *p, const char *word)
{
	if (strcmp(word, "@") == 0)
		return p->address;
	return strcmp(word, "%") == 0 ? p->port : word;
}

static int refuse_long(void)
{
	fprintf(stderr,
		"adverb: the server or the client has more than %d words; put "
		"the command into a script, and name the script.\n",
		ARGV_MAX - 1);
	return 2;
}

/* Plans both sides by "--server ARGS --client ARGS"; @argv[0] is "--server".
 * Returns 0 or an exit status. */
static int plan_commands(struct pair *p, char **argv)
{
	const char **out = p->server_argv;
	int count = 0;

	for (argv++; *argv; argv++) {
		if (strcmp(*argv, "--client") == 0 && out == p->server_argv) {
			if (count && strcmp(out[count - 1], "--") == 0)
				count--;
			out[count] = NULL;
			out = p->client_argv;
			count = 0;
		} else if (count == 0 && strcmp(*argv, "--") == 0) {
			continue;
		} else if (count + 1 == ARGV_MAX) {
			return refuse_long();
		} else {
			out[count++] = fill_in(p, *argv);
		}
	}
	out[count] = NULL;
	if (p->server_argv[0] && p->client_argv[0])
		return launch_check(&p->server_env, p->server_argv[0]);
	fprintf(stderr, "adverb: a program is missing: write --server program "
			"arguments --client program arguments.\n");
	return 2;
}

/* Checks the server's program.  If the table of tools (tool.h) has another row
 * for newer releases of the tool, runs the program with -h to find the row for
 * the installed release.  Returns 0 or an exit status. */
static int ask_tool(struct pair *p, const struct tool **tool,
		    const char *program)
{
	char usage[USAGE_MAX];
	int status = launch_check(&p->server_env, program);

	if (status == 0 && (*tool)->newer) {
		usage_read(&p->server_env, program, usage, sizeof(usage));
		*tool = tool_by_usage(*tool, usage);
	}
	return status;
}

static int plan_tool(struct pair *p, char **argv)
{
	const struct tool *tool = tool_find(argv[0]);
	int status;

	if (!tool) {
		fprintf(stderr,
			"adverb: pair does not know %s; write both commands: adverb "
			"pair --server %s ... --client %s ... @\n",
			argv[0], argv[0], argv[0]);
		return 2;
	}
	status = ask_tool(p, &tool, argv[0]);
	if (status)
		return status;
	p->server_stays |= tool->server_stays;
	if (tool_argv(tool, true, argv, p->address, p->port, p->server_argv,
		      ARGV_MAX) < 0 ||
	    tool_argv(tool, false, argv, p->address, p->port, p->client_argv,
		      ARGV_MAX) < 0)
		return refuse_long();
	p->client_argv[0] = tool_client(tool, argv[0], p->client_program,
					sizeof(p->client_program));
	if (p->client_argv[0])
		return 0;
	fprintf(stderr,
		"adverb: the path of the client of %s is too long; put the "
		"tools into a folder with a shorter path.\n",
		argv[0]);
	return 2;
}

/* Returns true if a socket cannot be bound to the address, or cannot reach it.
 * Linux binds a socket to 127.0.0.1 although lo is down. */
static bool is_absent(const struct sockaddr *at, socklen_t bytes)
{
	int fd = socket(at->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool is = fd >= 0 && ((bind(fd, at, bytes) && errno == EADDRNOTAVAIL) ||
			      (connect(fd, at, bytes) && errno == ENETUNREACH));

	if (fd >= 0)
		close(fd);
	return is;
}

/* If no interface that is up has the server's address, says so on stderr, and
 * says how the user gets an address that works.  The tools do not say this. */
static void check_address(const struct pair *p)
{
	struct sockaddr_in four = {.sin_family = AF_INET};
	struct sockaddr_in6 six = {.sin6_family = AF_INET6};
	bool is_v4 = inet_pton(AF_INET, p->address, &four.sin_addr) == 1;

	if (!is_v4 && inet_pton(AF_INET6, p->address, &six.sin6_addr) != 1)
		return;
	if (is_v4 ? is_absent((struct sockaddr *)&four, sizeof(four))
		  : is_absent((struct sockaddr *)&six, sizeof(six)))
		fprintf(stderr,
			"adverb: no interface of this host that is up has the "
			"server's address %s; give --address an address "
			"that `ip address` shows, bring up loopback (ip link "
			"set lo up), or use --private.\n",
			p->address);
}

static int plan_sides(struct pair *p, char **argv)
{
	int port = listen_port_get();
	int status;

	if (port < 0) {
		fprintf(stderr,
			"adverb: no TCP port can be reserved for the server: "
			"%s; %s.\n",
			strerror(-port),
			remedy_of(-port, "allow sockets in the sandbox, or end "
					 "programs at TCP ports 20000 to "
					 "27999"));
		return 1;
	}
	snprintf(p->port, sizeof(p->port), "%d", port);
	if (strcmp(argv[0], "--server") == 0)
		status = plan_commands(p, argv);
	else
		status = plan_tool(p, argv);
	if (status)
		return status;
	return launch_check(&p->client_env, p->client_argv[0]);
}

enum {
	OPT_ENV = LAUNCH_OPT_LAST,
	OPT_ENV_SERVER,
	OPT_ENV_CLIENT,
	OPT_TIMEOUT,
	OPT_ADDRESS,
	OPT_STOP_SERVER,
};

/* Takes one option.  Returns 0, or the exit status + 1 if the program ends. */
static int take_option(struct pair *p, int c, const char *value)
{
	if (c == LAUNCH_OPT_PCAP) {
		launch_option(&p->client_env, c, value);
	} else if (launch_option(&p->server_env, c, value)) {
		launch_option(&p->client_env, c, value);
	} else if (c == OPT_ENV || c == OPT_ENV_SERVER || c == OPT_ENV_CLIENT) {
		if (!launch_env_is(value))
			return 3;
		if (c != OPT_ENV_CLIENT)
			launch_env(&p->server_env, value);
		if (c != OPT_ENV_SERVER)
			launch_env(&p->client_env, value);
	} else if (c == OPT_ADDRESS) {
		p->address = value;
	} else if (c == OPT_STOP_SERVER) {
		p->server_stays = true;
	} else if (c == OPT_TIMEOUT) {
		char *end;
		long seconds = strtol(value, &end, 10);

		if (*end || seconds <= 0 || seconds > TIMEOUT_MAX) {
			fprintf(stderr,
				"adverb: --timeout takes seconds, 1 to %d, "
				"not \"%s\".\n",
				TIMEOUT_MAX, value);
			return 3;
		}
		p->timeout_ms = seconds * 1000LL;
	} else {
		print_help(c == 'h' ? stdout : stderr);
		return c == 'h' ? 1 : 3;
	}
	return 0;
}

int pair_main(int argc, char **argv)
{
	static const struct option options[] = {
		LAUNCH_OPTIONS,
		{"env", required_argument, NULL, OPT_ENV},
		{"env-server", required_argument, NULL, OPT_ENV_SERVER},
		{"env-client", required_argument, NULL, OPT_ENV_CLIENT},
		{"timeout", required_argument, NULL, OPT_TIMEOUT},
		{"stop-server", no_argument, NULL, OPT_STOP_SERVER},
		{"address", required_argument, NULL, OPT_ADDRESS},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	static struct pair p;
	int c, status, own = 1;

	/* getopt reads only the words before --server or --: the later words
	 * are the two commands, or the tool with its arguments */
	while (own < argc && strcmp(argv[own], "--server") != 0 &&
	       strcmp(argv[own], "--") != 0)
		own++;
	p.address = "127.0.0.1";
	p.timeout_ms = 60000;
	p.server.out = p.client.out = -1;
	if (launch_init(&p.server_env) < 0 || launch_init(&p.client_env) < 0)
		return 126;
	while ((c = getopt_long(own, argv, "+h", options, NULL)) != -1) {
		status = take_option(&p, c, optarg);
		if (status)
			return status - 1;
	}
	if (optind < argc && strcmp(argv[optind], "--") == 0)
		optind++;
	if (optind == argc) {
		fprintf(stderr, "adverb: which tool?  Try `adverb pair -- "
				"ib_write_bw`.\n");
		return 2;
	}
	if (p.server_env.private && private_enter())
		return 126;
	status = plan_sides(&p, argv + optind);
	if (status)
		return status;
	check_address(&p);
	if (!catch_signals(&p)) {
		fprintf(stderr,
			"adverb: cannot wait for signals: %s; allow "
			"signalfd4(2) in the sandbox, or raise ulimit -n.\n",
			strerror(errno));
		return 1;
	}
	return pair_run(&p);
}
