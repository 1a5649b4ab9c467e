/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client side of the broker (broker/client.h), in a network namespace of
 * its own.  The harness acts as the broker.  The input says which messages the
 * broker sends, with which descriptors, when the broker closes the connection,
 * how time passes, and what the process asks for.  Whatever the input, the
 * client maps no memory that another process can shorten, gives the user no
 * control character, returns only answers that client.h names, and leaves no
 * descriptor open.
 */
#include "fuzz_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "broker/client.h"
#include "broker/proto.h"
#include "broker/shared_page.h"
#include "broker/steer.h"
#include "util/scm_rights.h"

#define PATIENCE_MS 5000
#define KNOWN	    4 /* choose_class returns 1..KNOWN most often */

/* The descriptors that the broker sends.  The first five are in the order of
 * PROTO_FD_*. */
enum lent {
	LENT_SOCKET,
	LENT_PAGE,
	LENT_STORE,
	LENT_FOLDER,
	LENT_WAKE,
	LENT_BARE,   /* memory that its owner can shorten */
	LENT_SHORT,  /* sealed, and not as long as a page */
	LENT_STREAM, /* a socket of type SOCK_STREAM */
	LENT_WAITS,  /* an eventfd without O_NONBLOCK, where a write can wait */
	LENT_NULL,
	LENT_KINDS
};

struct script {
	struct input_bytes in;
	struct client client;
	int listen_fd;	      /* the broker's listening socket */
	int broker_fd;	      /* the broker's end of the connection; -1: none */
	int lent[LENT_KINDS]; /* the descriptors that the broker sends */
};

static struct script *running;

static void broker_turn(struct script *s);

/* Replaces the function of libc, which the client calls to wait.  The broker
 * has a turn.  After the end of the input, skipped_ms grows by ms instead. */
int poll(struct pollfd *fds, nfds_t count, int ms)
{
	if (running->in.at < running->in.end)
		broker_turn(running);
	else
		skipped_ms += ms > 0 ? (uint64_t)ms : 0;
	return ppoll(fds, count, &(struct timespec){0}, NULL);
}

static uint32_t choose_class(struct script *s)
{
	uint8_t v = input_u8(&s->in);

	if (v < 224)
		return 1u + v % KNOWN;
	return v < 240 ? v % 3u : input_u32(&s->in);
}

static int open_port(void)
{
	struct sockaddr_in6 any = {.sin6_family = AF_INET6,
				   .sin6_port = htons(4791)};
	int on = 1, fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	FUZZ_REQUIRE(fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on,
					    sizeof(on)));
	FUZZ_REQUIRE(!bind(fd, (struct sockaddr *)&any, sizeof(any)));
	return fd;
}

static int one_end(int type)
{
	int pair[2];

	FUZZ_REQUIRE(!socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair));
	close(pair[1]);
	return pair[0];
}

static int memory_of(off_t bytes, int seals)
{
	int fd = memfd_create("lent", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	FUZZ_REQUIRE(fd >= 0 && !ftruncate(fd, bytes));
	FUZZ_REQUIRE(!seals || !fcntl(fd, F_ADD_SEALS, seals));
	return fd;
}

static void open_lent(struct script *s)
{
	s->lent[LENT_SOCKET] = open_port();
	s->lent[LENT_PAGE] = shared_page_new();
	s->lent[LENT_STORE] = one_end(SOCK_SEQPACKET);
	s->lent[LENT_FOLDER] = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	s->lent[LENT_WAKE] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	s->lent[LENT_BARE] = memory_of(SHARED_PAGE_BYTES, 0);
	s->lent[LENT_SHORT] = memory_of(SHARED_PAGE_BYTES / 2, F_SEAL_SHRINK);
	s->lent[LENT_STREAM] = one_end(SOCK_STREAM);
	s->lent[LENT_WAITS] = eventfd(0, EFD_CLOEXEC);
	s->lent[LENT_NULL] = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int i = 0; i < LENT_KINDS; i++)
		FUZZ_REQUIRE(s->lent[i] >= 0);
}

static void begin_listening(struct script *s)
{
	struct sockaddr_un a;
	socklen_t bytes = proto_address(&a);

	s->listen_fd = socket(AF_UNIX,
			      SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	FUZZ_REQUIRE(s->listen_fd >= 0 &&
		     !bind(s->listen_fd, (struct sockaddr *)&a, bytes) &&
		     !listen(s->listen_fd, 64));
}

/* Puts descriptors for a message into fds, mostly of the kinds that `brings`
 * names.  Returns their number. */
static size_t choose_lent(struct script *s, uint32_t brings, int fds[])
{
	uint8_t how = input_u8(&s->in);
	size_t n = 0;

	for (uint32_t bit = 0; bit < PROTO_FDS; bit++)
		if (brings & 1u << bit)
			fds[n++] = s->lent[how < 192 ? bit
						     : input_u8(&s->in) %
							       LENT_KINDS];
	if (how % 16 == 15) /* one more than `brings` names */
		fds[n++] = s->lent[LENT_WAKE];
	return n;
}

/* Returns bits PROTO_FD_*, mostly those that a message of the kind has. */
static uint32_t choose_brings(struct script *s, uint32_t kind)
{
	uint8_t v = input_u8(&s->in);

	if (v >= 192)
		return v % (1u << PROTO_FDS);
	if (kind == PROTO_WELCOME)
		return PROTO_FD_SOCKET | PROTO_FD_PAGE | PROTO_FD_STORE;
	if (kind == PROTO_PAGE_IS)
		return PROTO_FD_PAGE;
	return kind == PROTO_ARENA_IS ? PROTO_FD_WAKE : 0;
}

static void say_something(struct script *s)
{
	static const uint8_t kinds[] = {
		PROTO_WELCOME,	PROTO_WELCOME, PROTO_WELCOME,	PROTO_PAGE_IS,
		PROTO_ARENA_IS, PROTO_ANSWER,  PROTO_SOURCE_IS, PROTO_DIED,
		PROTO_REFUSED,	PROTO_WHO_IS};
	struct proto m = {.magic = PROTO_MAGIC, .version = PROTO_VERSION};
	uint8_t kind = input_u8(&s->in), change = input_u8(&s->in);
	int fds[LENT_KINDS];
	size_t n;

	/* A client that is not up gets one of the ten entries, of which three
	 * are PROTO_WELCOME.  A client that is up gets one of the six kinds
	 * that follow these three.  But if `kind` is 250 or more, which no enum
	 * proto_kind has, the message is of that kind. */
	m.kind = kind >= 250			? kind
		 : s->client.state == CLIENT_UP ? kinds[3 + kind % 6]
						: kinds[kind % sizeof(kinds)];
	m.serial = s->client.serial;
	m.value = choose_class(s);
	m.about = input_u8(&s->in) % 6;
	m.arena = (struct proto_at){proto_pid_space(), input_u8(&s->in),
				    input_u8(&s->in)};
	for (size_t i = 0; i < sizeof(m.why) && m.kind == PROTO_REFUSED; i++)
		m.why[i] = (char)input_u8(&s->in);
	m.brings = choose_brings(s, m.kind);
	for (; change % 4 == 3; change /= 4)
		((uint8_t *)&m)[input_u8(&s->in) % sizeof(m)] =
			input_u8(&s->in);
	n = choose_lent(s, m.brings, fds);
	send_with(s->broker_fd, &m, sizeof(m) - (change % 8 == 2), fds, n);
}

static void drop_client(struct script *s)
{
	if (s->broker_fd >= 0)
		close(s->broker_fd);
	s->broker_fd = -1;
}

/* Accepts the connections that wait, and closes all but the latest.  Discards
 * all messages from the client.  Then, as the input says, closes the connection
 * or sends up to three messages. */
static void broker_turn(struct script *s)
{
	uint8_t how = input_u8(&s->in);
	char room[sizeof(struct proto)];
	int fd;

	while ((fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		drop_client(s);
		s->broker_fd = fd;
		scm_rights_let_bring(fd, how < 200);
	}
	if (s->broker_fd < 0)
		return;
	/* the kernel closes the descriptors that come with these messages */
	while (recv(s->broker_fd, room, sizeof(room), MSG_DONTWAIT) > 0)
		;
	if (how >= 240)
		drop_client(s);
	for (uint32_t i = 0; s->broker_fd >= 0 && i < how % 4; i++)
		say_something(s);
}

static void look_at_text(const char *text, size_t size)
{
	size_t n = strnlen(text, size);

	FUZZ_REQUIRE(n < size);
	for (size_t i = 0; i < n; i++)
		FUZZ_REQUIRE((unsigned char)text[i] >= ' ' && text[i] != 0x7f);
}

static void hear_word(enum client_word word, const char *sentence)
{
	FUZZ_REQUIRE(word <= CLIENT_SAYS_ENDS);
	look_at_text(sentence, START_SENTENCE);
}

static void look_at_client(const struct client *c)
{
	FUZZ_REQUIRE(c->class <= STEER_CLASS_MAX);
	FUZZ_REQUIRE(c->state != CLIENT_UP || (c->class && c->udp_fd >= 0));
	FUZZ_REQUIRE(c->state != CLIENT_STARTING);
	look_at_text(c->why, sizeof(c->why));
}

static void look_at_news(const struct client_news *news)
{
	switch (news->what) {
	case CLIENT_NEWS_PEER:
		FUZZ_REQUIRE(news->peer <= CLIENT_PEER_LEFT);
		break;
	case CLIENT_NEWS_ARENA:
		FUZZ_REQUIRE(news->arena <= CLIENT_ARENA_GONE);
		if (news->arena != CLIENT_ARENA_HERE)
			break;
		FUZZ_REQUIRE(news->arena_at.pid);
		FUZZ_REQUIRE(fcntl(news->peer_wake_fd, F_GETFL) & O_NONBLOCK);
		close(news->peer_wake_fd);
		break;
	case CLIENT_NEWS_BACK:
	case CLIENT_NEWS_DIED:
	case CLIENT_NEWS_SOURCE:
		break;
	default:
		FUZZ_REQUIRE(false);
	}
}

/* Shortens the memory that has no seal, and reads the page: a client that had
 * mapped this memory would get SIGBUS. */
static void touch_page(const struct script *s, const volatile uint8_t *page)
{
	FUZZ_REQUIRE(!ftruncate(s->lent[LENT_BARE], 0));
	if (page)
		FUZZ_REQUIRE(page[0] + page[SHARED_PAGE_BYTES - 1] < 512);
	FUZZ_REQUIRE(!ftruncate(s->lent[LENT_BARE], SHARED_PAGE_BYTES));
}

static void ask_something(struct script *s, uint8_t what)
{
	const struct inaddr here = {.ip = {[10] = 0xff, 0xff, 127, 0, 0, 1},
				    .port = 4791};
	struct client *c = &s->client;
	const void *page;

	switch (what) {
	case 0:
		client_ask(c, steer_qpn(choose_class(s) % STEER_CLASS_MAX, 1));
		break;
	case 1:
		client_ask_arena(c, choose_class(s));
		break;
	case 2:
		client_ask_source(c, choose_class(s), &here, &here);
		break;
	case 3:
		client_ask_remote(c, input_u8(&s->in), here.ip, here.ip, 0);
		break;
	case 4:
		client_tree(c, open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
		break;
	default:
		if (client_page_of(c, choose_class(s), &page))
			touch_page(s, page);
		break;
	}
}

static void run_command(struct script *s)
{
	static const uint32_t steps[] = {1, 60, 1100, 3000};
	uint8_t what = input_u8(&s->in) % 16;
	struct client_news news;

	if (what < 8) {
		ask_something(s, what);
		return;
	}
	if (what == 15)
		skipped_ms += steps[input_u8(&s->in) % 4];
	broker_turn(s);
	while (client_turn(&s->client, &news))
		look_at_news(&news);
	touch_page(s, client_page(&s->client));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t before = count_descriptors();
	struct script s = {.in = {data, data + size}, .broker_fd = -1};
	struct client_want want = {-1, -1, PATIENCE_MS, hear_word};
	const char *why = "";
	uint8_t how;

	running = &s;
	open_lent(&s);
	begin_listening(&s);
	want.peer_wake_fd = s.lent[LENT_WAKE];
	how = input_u8(&s.in);
	want.arena_fd = how & 1 ? s.lent[LENT_BARE] : -1;
	scm_rights_let_bring(s.listen_fd, !(how & 2));
	if (!client_open(&s.client, &want, &why)) {
		while (s.in.at < s.in.end) {
			run_command(&s);
			look_at_client(&s.client);
		}
		client_close(&s.client);
	} else {
		look_at_text(why, START_SENTENCE);
	}
	drop_client(&s);
	close(s.listen_fd);
	for (int i = 0; i < LENT_KINDS; i++)
		close(s.lent[i]);
	FUZZ_REQUIRE(count_descriptors() == before);
	return 0;
}
