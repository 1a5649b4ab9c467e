/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * adverbd is the broker of a network namespace.  The first client starts the
 * broker, unless systemd or a user has started it before.  The broker owns the
 * receive sockets of port 4791, gives one to each process of its own user, and
 * forwards datagrams to processes of other users.  The broker watches the
 * processes of all its clients, and tells the clients which processes still
 * run.
 */
#include "broker/close_others.h"
#include "broker/proto.h"
#include "broker/server.h"
#include "broker/user_receiver.h"
#include "util/fd_table.h"
#include "util/monotonic.h"
#include "util/rlimit.h"
#include "util/scm_rights.h"
#include "util/standard_fds.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* the default of --idle, in milliseconds */
#define IDLE_MS 10000
/* how long claim_address waits for a process that has the address */
#define CLAIM_MS 1000
/* the largest value of --idle, in seconds: a year */
#define IDLE_MAX_S (366u * 24 * 3600)

/*
 * Binds the broker's address and listens there, which makes this process the
 * broker.  Returns 0 with the listener in *listen_fd, or -errno.  If another
 * process has the address, waits for CLAIM_MS at most until that process
 * listens, and then returns -EADDRINUSE: the program that started this adverbd
 * can connect to that process when this adverbd has ended.
 */
static int claim_address(int *listen_fd)
{
	struct sockaddr_un a;
	socklen_t length = proto_address(&a);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
			0);

	*listen_fd = fd;
	if (fd < 0)
		return -errno;
	scm_rights_let_bring(fd, false);
	if (!bind(fd, (struct sockaddr *)&a, length))
		return listen(fd, 1024) ? -errno : 0;
	if (errno != EADDRINUSE)
		return -errno;
	/* Between bind and listen, the process that has the address refuses
	 * connections.  EAGAIN: that process listens, and its queue is full. */
	for (uint64_t end = monotonic_ms() + CLAIM_MS; monotonic_ms() < end;
	     sched_yield())
		if (!connect(fd, (struct sockaddr *)&a, length) ||
		    errno == EAGAIN)
			break;
	return -EADDRINUSE;
}

/* Is standard input a listening socket? */
static bool has_listener(void)
{
	int listens = 0;
	socklen_t length = sizeof(listens);

	return !getsockopt(0, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) &&
	       listens;
}

/* Reads the starter's PROTO_WHO from the status socket, which is standard
 * error.  Returns 0; or -EPROTO, after telling a starter of another version
 * that the starter cannot use this broker. */
static int greet_starter(void)
{
	struct proto who = {0},
		     answer = {.kind = PROTO_REFUSED, .value = EPROTONOSUPPORT};
	int fds[PROTO_FDS], err = proto_receive(2, &who, fds);

	for (int i = 0; i < PROTO_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	if (!err && who.kind == PROTO_WHO)
		return 0;
	proto_introduce(&answer, 0);
	proto_send(2, &answer, NULL);
	return -EPROTO;
}

/* Tells the starter that the broker is ready.  False: the starter has given up
 * waiting, and another broker may serve. */
static bool tell_starter(const struct server_config *config)
{
	struct proto m = {.kind = PROTO_WHO_IS};

	proto_introduce(&m, (uint32_t)(config->idle_ms / 1000));
	return !proto_send(2, &m, NULL);
}

/* Replaces the standard descriptors by null, a descriptor of /dev/null, so that
 * the status socket is closed, and nothing is written to a file of the
 * starter. */
static void close_standard(int null)
{
	for (int i = 0; i < 3; i++)
		dup2(null, i);
	close(null);
}

/* Returns a descriptor of /dev/null for close_standard, or -1 with a message: a
 * broker that kept the standard descriptors would keep the starter's pipes
 * open. */
static int open_null(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0)
		fprintf(stderr,
			"adverbd: not started: /dev/null, which replaces its "
			"standard input, output and error, cannot be opened: "
			"%s: make /dev/null reachable, or start adverbd with "
			"--foreground\n",
			strerror(errno));
	return null;
}

/* Raises soft limits to the hard ones: the program that started the broker
 * chose its soft limits for itself, and the broker serves all programs.  The
 * broker has no second thread yet. */
static void raise_limits(void)
{
	static const int limits[] = {RLIMIT_NOFILE, RLIMIT_FSIZE, RLIMIT_CPU,
				     RLIMIT_AS,	    RLIMIT_DATA,  RLIMIT_STACK};

	for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++)
		rlimit_raise(limits[i]);
	fd_table_enlarge();
}

/* Gives up the signal mask, umask, soft limits, CPU affinity, working directory
 * and descriptors that the process has inherited from the program that started
 * it, and, unless `foreground` is set, the session.  Ignores SIGPIPE and the
 * signals of limits, and SIGHUP unless `foreground` is set, and handles SIGURG
 * (user_receiver_interrupt_by_signal).  Exits with a message if it cannot
 * change to the folder /.  The standard descriptors stay until close_standard.
 * Sets *fd to a copy of the listener, which is standard input; -1: there is
 * none. */
static void detach_process(bool foreground, int *fd)
{
	cpu_set_t all;
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* The starter may ignore SIGTERM, by which users end a broker. */
	for (int i = 1; i < NSIG; i++)
		signal(i, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, foreground ? SIG_DFL : SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGXCPU, SIG_IGN);
	user_receiver_interrupt_by_signal();
	umask(022);
	raise_limits();
	/* The starter chose its CPU affinity for itself, so the broker does not
	 * keep it.  The limits of the starter's cgroup stay. */
	memset(&all, 0xff, sizeof(all));
	sched_setaffinity(0, sizeof(all), &all);
	close_others_but(-1);
	*fd = has_listener() ? fcntl(0, F_DUPFD_CLOEXEC, 3) : -1;
	if (chdir("/")) {
		fprintf(stderr,
			"adverbd: not started: it cannot change to the folder "
			"/: %s: let the sandbox permit that\n",
			strerror(errno));
		exit(1);
	}
	if (!foreground)
		setsid();
}

struct options {
	struct server_config config; /* --idle and --no-bpf */
	bool foreground;    /* keeps the session and the standard descriptors */
	bool is_started;    /* a client has started this process (start.h) */
	bool tells_version; /* prints the version, and ends */
	bool tells_usage;   /* prints the usage, and ends */
	bool holds_port;    /* binds the port at the start, and never ends */
};

/* Reads `text`, a number of seconds up to IDLE_MAX_S, and stores it in *ms as
 * milliseconds.  False: `text` is no such number, and standard error has a
 * message. */
static bool parse_seconds(const char *text, uint64_t *ms)
{
	char *end = NULL;
	unsigned long seconds;

	errno = 0;
	seconds = strtoul(text, &end, 10);
	if (isdigit((unsigned char)*text) && !*end && !errno &&
	    seconds <= IDLE_MAX_S) {
		*ms = seconds * 1000;
		return true;
	}
	fprintf(stderr,
		"adverbd: --idle %s: this is not a number of seconds from 0 to "
		"%u: give such a number, or --hold-port for a broker that does "
		"not end\n",
		text, IDLE_MAX_S);
	return false;
}

static void print_usage(FILE *out)
{
	fprintf(out, "usage: adverbd [--foreground] [--idle SECONDS | "
		     "--hold-port] [--no-bpf]\n"
		     "       adverbd --version | --help\n"
		     "\n"
		     "More: man adverbd\n");
}

static int refuse_option(const char *text, bool lacks_value)
{
	fprintf(stderr,
		lacks_value ? "adverbd: %s needs a number of seconds after it\n"
			    : "adverbd: %s is no option of adverbd\n",
		text);
	print_usage(stderr);
	return -EINVAL;
}

static int parse_options(int argc, char **argv, struct options *o)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--foreground")) {
			o->foreground = true;
		} else if (!strcmp(argv[i], "--idle") && i + 1 < argc) {
			if (!parse_seconds(argv[++i], &o->config.idle_ms))
				return -EINVAL;
		} else if (!strcmp(argv[i], "--no-bpf")) {
			o->config.no_bpf = true;
		} else if (!strcmp(argv[i], "--hold-port")) {
			o->holds_port = true;
		} else if (!strcmp(argv[i], "--started")) {
			o->is_started = true;
		} else if (!strcmp(argv[i], "--version")) {
			o->tells_version = true;
		} else if (!strcmp(argv[i], "--help") ||
			   !strcmp(argv[i], "-h")) {
			o->tells_usage = true;
		} else {
			return refuse_option(argv[i],
					     !strcmp(argv[i], "--idle"));
		}
	}
	return 0;
}

/* Says why there is no server.  err: the result of claim_address; 0: server_new
 * has failed. */
static void say_not_started(int err)
{
	struct sockaddr_un a;

	proto_address(&a);
	if (err == -EADDRINUSE)
		fprintf(stderr, "adverbd: not started: another adverbd serves "
				"this network namespace, and programs use that "
				"one\n");
	else if (!err)
		fprintf(stderr,
			"adverbd: not started: no memory is left, or the "
			"kernel has no random numbers yet: free memory, "
			"raise ulimit -v and -d, or start adverbd "
			"again later\n");
	else
		fprintf(stderr,
			"adverbd: not started: the socket @%s, by which "
			"programs reach it, cannot be opened: %s: permit Unix "
			"sockets in the sandbox, or raise the limit that this "
			"error names\n",
			a.sun_path + 1, strerror(-err));
}

/* Makes a server on the inherited listener, or else on a new one.  NULL:
 * standard error has the reason, and *status is the exit status, 0 if another
 * adverbd serves already. */
static struct server *make_server(const struct options *o, int *status)
{
	struct server *s;
	int fd, err;

	detach_process(o->foreground, &fd);
	*status = 1;
	if (o->is_started && fd < 0) {
		fprintf(stderr, "adverbd: --started needs a listening socket "
				"as standard input: leave --started out\n");
		return NULL;
	}
	err = fd >= 0 ? 0 : claim_address(&fd);
	s = err ? NULL : server_new(fd, &o->config);
	if (s)
		return s;
	say_not_started(err);
	if (err == -EADDRINUSE)
		*status = 0;
	return NULL;
}

/* Says why the broker ends, unless it ends because it has no clients. */
static void say_ended(const struct server *s)
{
	int err = server_listener_err(s);

	if (err)
		fprintf(stderr,
			"adverbd: ended: its listening socket accepts no "
			"program any more: %s: if another program shut the "
			"socket down or closed it, end that program; if a "
			"sandbox refuses accept4, permit it; then start "
			"adverbd again\n",
			strerror(-err));
}

int main(int argc, char **argv)
{
	struct options o = {.config.idle_ms = IDLE_MS};
	const char *why = "";
	int status, null = -1, err = standard_fds_fill();
	struct server *s;

	if (parse_options(argc, argv, &o))
		return 2;
	if (o.tells_usage) {
		print_usage(stdout);
		return 0;
	}
	if (o.holds_port)
		o.config.idle_ms = SERVER_NEVER;
	if (o.tells_version) {
		printf("adverbd %s (protocol %d)\n", ADVERB_VERSION,
		       PROTO_VERSION);
		return 0;
	}
	if (err) {
		fprintf(stderr,
			"adverbd: cannot open /dev/null in place of a standard "
			"descriptor that is closed: %s: start adverbd with "
			"standard input, output and error\n",
			strerror(-err));
		return 1;
	}
	if (o.is_started && greet_starter())
		return 1;
	s = make_server(&o, &status);
	if (!s)
		return status;
	/* make_server has closed the descriptors from 3 on. */
	if (!o.foreground && (null = open_null()) < 0)
		return 1;
	if (o.is_started && !tell_starter(&o.config))
		return 0;
	server_listen(s);
	if (o.holds_port && !server_hold_port(s, &why))
		fprintf(stderr, "adverbd: %s; waiting for the port\n", why);
	if (!o.foreground)
		close_standard(null);
	while (server_turn(s))
		;
	err = server_listener_err(s);
	say_ended(s);
	server_free(s);
	return err ? 1 : 0;
}
