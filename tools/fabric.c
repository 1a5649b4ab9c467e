/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric.h"

#include "background.h"
#include "fabric/net.h"
#include "fabric_server.h"
#include "fabric_socket.h"
#include "fabric/fabric_client.h"
#include "util/remedy.h"
#include "util/runtime_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void print_help(FILE *out)
{
	fprintf(out,
		"usage: adverb fabric [--socket PATH] [--background] "
		"[--capture PCAP | --direct] FILE\n"
		"       adverb fabric [--socket PATH] --show | --stop\n"
		"\n"
		"Runs an emulated InfiniBand subnet: the adapters, switches and "
		"links of FILE,\n"
		"a topology in the net file format of ibsim, which is also what "
		"ibnetdiscover\n"
		"prints.  Programs join it by `adverb run --fabric`, and a "
		"stock OpenSM\n"
		"configures it.  It carries management datagrams and packets of "
		"queue pairs.\n"
		"\n"
		"  --socket PATH   the fabric's socket (default: fabric in the "
		"runtime folder)\n"
		"  --background    return when the fabric is ready\n"
		"  --capture PCAP  write the packets to a new file, for "
		"tshark\n"
		"  --direct        let programs of this machine go without "
		"packets where the\n"
		"                  subnet would deliver packets\n"
		"  --show          list the nodes of the running fabric, and "
		"a deadlock\n"
		"  --stop          end the running fabric\n"
		"  -h, --help      this text\n"
		"\n"
		"Example:  adverb fabric --background net\n"
		"          adverb run --fabric --host Hca1 -- opensm -f - -c\n"
		"          adverb run --fabric -- ibnetdiscover\n"
		"\n"
		"More: man adverb-fabric\n");
}

/* Stores the default path of the socket in `path`.  If `makes`, creates the
 * path's folder.  Returns 0, or -1 after a sentence on stderr. */
static int default_path(char path[PATH_MAX], bool makes)
{
	struct runtime_tree tree;

	if (runtime_tree_folder(&tree, makes) && makes) {
		fprintf(stderr,
			"adverb: the folder of the fabric's socket cannot be "
			"made: %s; name another socket by --socket.\n",
			tree.why);
		return -1;
	}
	snprintf(path, PATH_MAX, "%s/fabric", tree.path);
	return 0;
}

/* Stores the path of --socket, or the default path if `named` is NULL.  Returns
 * 0, or an exit status after a sentence on stderr. */
static int choose_path(const char *named, bool makes, char path[PATH_MAX])
{
	if (!named)
		return default_path(path, makes) ? 1 : 0;
	if (!*named) {
		fprintf(stderr,
			"adverb: the path of --socket is empty; name a path, "
			"or leave --socket out for the default path.\n");
		return 2;
	}
	snprintf(path, PATH_MAX, "%s", named);
	return 0;
}

/*
 * Reads a file.  If the file is longer than NET_BYTES_MAX, only its beginning
 * is read, but more than NET_BYTES_MAX bytes, so that net_parse refuses them.
 * Returns 0, and the caller frees *text.  After an error returns -errno, and
 * *text is NULL.
 */
static int read_file(const char *name, char **text, size_t *bytes)
{
	FILE *file = fopen(name, "re");
	size_t room = 1 << 16;
	int err = 0;

	*bytes = 0;
	*text = file ? malloc(room) : NULL;
	if (!file)
		return -errno;
	while (*text && *bytes <= NET_BYTES_MAX) {
		size_t n = fread(*text + *bytes, 1, room - *bytes, file);
		char *more;

		/* a later call may change errno */
		err = ferror(file) ? -errno : 0;
		*bytes += n;
		if (!n || err)
			break;
		if (*bytes < room)
			continue;
		room *= 2;
		more = realloc(*text, room);
		if (!more)
			free(*text);
		*text = more;
	}
	if (!*text)
		err = -ENOMEM;
	fclose(file);
	if (err) {
		free(*text);
		*text = NULL;
	}
	return err;
}

/* Says what is wrong with the file: in a line, or in the whole file. */
static void say_wrong(const char *name, const struct net_error *e)
{
	if (e->line)
		fprintf(stderr, "adverb: %s:%u: %s.\n", name, e->line, e->why);
	else
		fprintf(stderr, "adverb: %s: %s.\n", name, e->why);
}

/* Makes the fabric of a net file and fills in *net, which the caller frees by
 * net_free.  NULL: that has failed, and a sentence on stderr says why. */
static struct fabric *load_fabric(const char *name, struct net *net)
{
	struct net_error error = {0};
	struct fabric *f = NULL;
	size_t bytes;
	char *text;
	int err = read_file(name, &text, &bytes);

	if (err) {
		fprintf(stderr, "adverb: cannot read %s: %s; %s.\n", name,
			strerror(-err),
			remedy_of(-err, "name a topology that this user can "
					"read"));
		return NULL;
	}
	err = net_parse(text, bytes, net, &error);
	free(text);
	if (err == -EINVAL) {
		say_wrong(name, &error);
		return NULL;
	}
	if (!err)
		f = fabric_new(net);
	if (!f)
		fprintf(stderr,
			"adverb: the fabric of %s cannot be made: no memory is "
			"left; %s.\n",
			name, remedy_of(ENOMEM, NULL));
	return f;
}

static void print_ready(const struct net *net, const char *path)
{
	uint32_t switches = 0, adapters = 0;

	for (uint32_t i = 0; i < net->node_count; i++) {
		switches += net->nodes[i].type == NET_SWITCH;
		adapters += net->nodes[i].type == NET_CA;
	}
	printf("adverb: a fabric of %u adapters and %u switches runs at %s\n",
	       adapters, switches, path);
	fflush(stdout);
}

static int serve_file(const char *name, const char *path, bool background,
		      const char *captured, bool is_direct)
{
	struct fabric_capture capture = {0};
	char full[PATH_MAX];
	struct net net;
	struct fabric *f = load_fabric(name, &net);
	int listener = -1, err = 0;
	pid_t pid = 0;

	if (!f)
		return 1;
	/* a write beyond the limit of ulimit -f then fails, and ends only the
	 * capture */
	signal(SIGXFSZ, SIG_IGN);
	listener = fabric_socket_listen(path);
	if (listener >= 0 && captured &&
	    fabric_capture_open(&capture, f, captured)) {
		/* The path is removed before the close: after the close another
		 * fabric could have the path. */
		unlink(path);
		close(listener);
		listener = -1;
	}
	if (listener < 0) {
		net_free(&net);
		fabric_free(f);
		return 1;
	}
	/* A relative path is useless once the child has changed its working
	 * directory. */
	path = realpath(path, full) ? full : path;
	if (background)
		pid = background_enter("the fabric");
	if (pid > 0 || !background)
		print_ready(&net, path);
	net_free(&net);
	if (!pid)
		err = fabric_server_run(f, listener, path, &capture, is_direct,
					background_ready);
	/* A child leaves the path to its parent, which still has the listener
	 * open: no other fabric can have taken the path. */
	if (pid < 0 || (err && !background))
		unlink(path);
	fabric_capture_close(&capture);
	if (err)
		fprintf(stderr,
			"adverb: the fabric at %s cannot serve programs: %s; "
			"%s.\n",
			path, strerror(-err),
			remedy_of(-err, "adverb doctor shows what this machine "
					"allows"));
	close(listener);
	fabric_free(f);
	return err || pid < 0 ? 1 : 0;
}

static int say_unreachable(const char *path, int err)
{
	if (err == -ENOENT || err == -ECONNREFUSED)
		fprintf(stderr,
			"adverb: no fabric runs at %s; start one by adverb "
			"fabric FILE.\n",
			path);
	else if (err == -EPERM)
		fprintf(stderr,
			"adverb: the program that listens at %s belongs to "
			"another user, and is not used; start a fabric of your "
			"own by adverb fabric FILE.\n",
			path);
	else if (err == -ETIMEDOUT)
		fprintf(stderr,
			"adverb: the program that listens at %s does not "
			"answer; if a fabric listens there and is stopped, "
			"continue its process (kill -CONT); end any other "
			"program.\n",
			path);
	else if (err == -ENAMETOOLONG)
		fprintf(stderr,
			"adverb: no socket can have a path as long as %s; name "
			"the fabric's socket by --socket, with at most 107 "
			"bytes.\n",
			path);
	else
		fprintf(stderr,
			"adverb: no fabric can be asked at %s: %s; %s.\n", path,
			fabric_client_reason(err),
			remedy_of(-err, "end the program that listens there, "
					"and start a fabric by adverb fabric "
					"FILE"));
	return 1;
}

static const char *type_name(uint8_t type)
{
	return type == NET_CA	    ? "adapter"
	       : type == NET_SWITCH ? "switch"
				    : "router";
}

static int show_deadlock(int fd)
{
	struct fabric_proto m = {.kind = FABRIC_PROTO_DEADLOCK};
	int err = fabric_client_ask(fd, &m, NULL);

	if (!err && *m.said)
		printf("deadlock: %.*s\n", (int)sizeof(m.said), m.said);
	return err;
}

static int show_nodes(const char *path)
{
	int fd = fabric_client_connect(path, FABRIC_SOCKET_PATIENCE_MS),
	    err = fd < 0 ? fd : 0;

	for (uint32_t i = 0; !err; i++) {
		struct fabric_proto m = {.kind = FABRIC_PROTO_SHOW,
					 .number = i};

		err = fabric_client_ask(fd, &m, NULL);
		if (!err)
			printf("%-8s 0x%016llx \"%s\" \"%s\" %u %s\n",
			       type_name(m.ca.node_type),
			       (unsigned long long)m.ca.node_guid, m.host,
			       m.text, m.number,
			       m.number == 1 ? "group" : "groups");
	}
	/* -ENOENT: the index is one past the last node */
	if (err == -ENOENT && fd >= 0)
		err = show_deadlock(fd);
	if (fd >= 0)
		close(fd);
	return err ? say_unreachable(path, err) : 0;
}

static int stop_fabric(const char *path)
{
	struct fabric_proto m = {.kind = FABRIC_PROTO_STOP};
	int fd = fabric_client_connect(path, FABRIC_SOCKET_PATIENCE_MS);
	int err = fd < 0 ? fd : fabric_client_ask(fd, &m, NULL);
	char end;

	if (err)
		return say_unreachable(path, err);
	/* the fabric closes the connection after it has removed its socket */
	while (recv(fd, &end, 1, 0) < 0 && errno == EINTR)
		;
	close(fd);
	return 0;
}

int fabric_join(struct launch *l, const char *socket, const char *name)
{
	struct fabric_proto m = {.kind = FABRIC_PROTO_TAKE};
	char own[PATH_MAX], full[PATH_MAX];
	int fd, err;

	if (!socket && default_path(own, false))
		return -1;
	socket = socket ? socket : own;
	fd = fabric_client_connect(socket, FABRIC_SOCKET_PATIENCE_MS);
	snprintf(m.host, sizeof(m.host), "%s", name ? name : "");
	err = fd < 0 ? fd : fabric_client_ask(fd, &m, NULL);
	if (err == -ENODEV)
		fprintf(stderr,
			"adverb: the fabric at %s has no host \"%s\"; adverb "
			"fabric --show lists the hosts.\n",
			socket, name);
	else if (err == -EUSERS)
		fprintf(stderr,
			"adverb: other programs have taken all adapters of the "
			"fabric at %s; share one by --host NAME.\n",
			socket);
	else if (err)
		say_unreachable(socket, err);
	if (err)
		return -1;
	/* the connection stays open across exec, so that the host stays taken
	 */
	fcntl(fd, F_SETFD, 0);
	launch_set(l, "ADVERB_FABRIC", realpath(socket, full) ? full : socket);
	launch_set(l, "ADVERB_FABRIC_HOST", m.host);
	return 0;
}

int fabric_main(int argc, char **argv)
{
	static const struct option options[] = {
		{"socket", required_argument, NULL, 's'},
		{"background", no_argument, NULL, 'b'},
		{"capture", required_argument, NULL, 'c'},
		{"direct", no_argument, NULL, 'd'},
		{"show", no_argument, NULL, 'S'},
		{"stop", no_argument, NULL, 'X'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	bool background = false, shows = false, stops = false, direct = false;
	const char *captured = NULL, *named = NULL;
	char path[PATH_MAX];
	int c, status;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == 's')
			named = optarg;
		else if (c == 'b')
			background = true;
		else if (c == 'c')
			captured = optarg;
		else if (c == 'd')
			direct = true;
		else if (c == 'S')
			shows = true;
		else if (c == 'X')
			stops = true;
		else
			print_help(c == 'h' ? stdout : stderr);
		if (c == 'h' || c == '?')
			return c == 'h' ? 0 : 2;
	}
	if (shows + stops + (argc - optind) != 1) {
		print_help(stderr);
		return 2;
	}
	if (direct && captured) {
		fprintf(stderr,
			"adverb: a capture (--capture) shows no requests that "
			"go without packets (--direct); leave one of the two "
			"options out.\n");
		return 2;
	}
	status = choose_path(named, !shows && !stops, path);
	if (status)
		return status;
	if (shows)
		return show_nodes(path);
	return stops ? stop_fabric(path)
		     : serve_file(argv[optind], path, background, captured,
				  direct);
}
