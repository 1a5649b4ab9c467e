/* SPDX-License-Identifier: BSD-2-Clause */
#include "doctor.h"

#include "broker/dial.h"
#include "broker/port_holder.h"
#include "broker/reason.h"
#include "util/remedy.h"
#include "wire/bind.h"
#include "wire/udp.h"

#include <errno.h>
#include <limits.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

enum {
	ROCE_PORT = 4791,
	/* Bytes of a receive buffer that a frame of 4 KiB takes, the kernel's
	 * struct sk_buff included. */
	FRAME_TRUESIZE = 8448,
	FEW_FRAMES = 64, /* a buffer for fewer frames is reported as slow */
};

/* Does a broker listen?  Every user may read the names of sockets, but not
 * /proc/PID/fd of another user's broker. */
static bool broker_listens(void)
{
	FILE *f = fopen("/proc/net/unix", "re");
	char line[300];
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f))
		found = strstr(line, " @adverbd-") != NULL;
	if (f)
		fclose(f);
	return found;
}

void doctor_net_port(void)
{
	char holder[72];
	bool is_v4 = false;
	int fd = bind_udp(ROCE_PORT, &is_v4);

	if (fd >= 0) {
		close(fd);
		doctor_say(DOCTOR_OK, "UDP port 4791",
			   "free, RoCEv2 frames can be received");
		return;
	}
	if (!port_holder_name(holder, sizeof(holder)) && fd == -EADDRINUSE &&
	    access("/proc/net/udp", F_OK)) {
		doctor_say(
			DOCTOR_OK, "UDP port 4791",
			"in use; mount /proc to see by which process; the "
			"line \"broker\" says whether it is adverb's broker");
		return;
	}
	if (!port_holder_name(holder, sizeof(holder))) {
		doctor_say(
			DOCTOR_NO, "UDP port 4791",
			"cannot be bound: %s; no frames can be received until "
			"this user may bind the port",
			strerror(-fd));
		return;
	}
	/* `holder` may be the broker or one of the broker's programs */
	if (broker_listens())
		doctor_say(DOCTOR_OK, "UDP port 4791",
			   "held by adverb's own broker and its programs: %s",
			   holder);
	else
		doctor_say(DOCTOR_NO, "UDP port 4791",
			   "held by %s; end it, or use a network namespace of "
			   "your own: unshare -Urn",
			   holder);
}

/* The last sentence about the start of a broker, from dial_open; "": none. */
static char start_sentence[START_SENTENCE];

static void note_start(enum client_word word, const char *sentence)
{
	snprintf(start_sentence, sizeof(start_sentence), "%s", sentence);
}

void doctor_net_broker(const char *libdir)
{
	struct dial_broker b;
	char why[START_SENTENCE], who[REASON_PROCESS];
	int fd, err;

	start_folder(libdir);
	err = dial_open(&fd, &b, note_start, why);
	if (err) {
		doctor_say(DOCTOR_NO, "broker", "%s", why);
		return;
	}
	close(fd);
	reason_process(b.pid, b.user, who);
	if (*start_sentence)
		doctor_say(DOCTOR_SLOW, "broker", "%s", start_sentence);
	else if (b.idle_s == UINT32_MAX)
		doctor_say(DOCTOR_SLOW, "broker",
			   "adverb %s, a thread of %s; when that process ends, "
			   "a thread of the next program takes over",
			   b.release, who);
	else if (strcmp(b.release, ADVERB_VERSION) != 0)
		doctor_say(DOCTOR_SLOW, "broker",
			   "adverb %s, %s, also serves this "
			   "adverb " ADVERB_VERSION
			   "; use one version everywhere",
			   b.release, who);
	else
		doctor_say(DOCTOR_OK, "broker", "adverb %s, %s", b.release,
			   who);
}

/* Says that a thing cannot be tested.  err: the result of udp_unbound, -errno.
 */
static void say_no_socket(const char *thing, int err)
{
	doctor_say(DOCTOR_NO, thing, "no UDP socket can be made: %s; %s",
		   strerror(-err),
		   remedy_of(-err, "allow socket(2) in the sandbox"));
}

void doctor_net_steering(void)
{
	struct sock_filter code[] = {{BPF_RET | BPF_K, 0, 0, 0}};
	struct sock_fprog prog = {.len = 1, .filter = code};
	struct sockaddr_storage any;
	socklen_t length = sizeof(any);
	int one = 1, fd = udp_unbound();
	bool good = setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one,
			       sizeof(one)) == 0 &&
		    getsockname(fd, (struct sockaddr *)&any, &length) == 0 &&
		    bind(fd, (struct sockaddr *)&any, length) == 0 &&
		    setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &prog,
			       sizeof(prog)) == 0;

	if (fd < 0)
		say_no_socket("steering", fd);
	else if (good)
		doctor_say(DOCTOR_OK, "steering",
			   "SO_REUSEPORT with BPF gives each process its own "
			   "frames");
	else
		doctor_say(DOCTOR_SLOW, "steering",
			   "no SO_REUSEPORT with BPF (%s): the broker "
			   "receives all frames and relays them",
			   strerror(errno));
	if (fd >= 0)
		close(fd);
}

void doctor_net_batches(void)
{
	int segment = 1024, one = 1, fd = udp_unbound();
	bool gso = setsockopt(fd, SOL_UDP, UDP_SEGMENT, &segment,
			      sizeof(segment)) == 0;
	bool gro = setsockopt(fd, SOL_UDP, UDP_GRO, &one, sizeof(one)) == 0;

	if (fd < 0)
		say_no_socket("UDP batches", fd);
	else if (gso && gro)
		doctor_say(DOCTOR_OK, "UDP batches",
			   "GSO and GRO: many frames in one system call");
	else
		doctor_say(DOCTOR_SLOW, "UDP batches",
			   "no %s%s%s: more system calls for each frame",
			   gso ? "" : "GSO", gso || gro ? "" : " and ",
			   gro ? "" : "GRO");
	if (fd >= 0)
		close(fd);
}

/* Returns what to do about a small buffer.  The limit, net.core.rmem_max, is
 * that of all network namespaces, and only the first namespace can change it.
 * In the others the file of this limit in /proc/sys is read-only, or before
 * Linux 6.11 missing. */
static const char *enlarge_buffer(void)
{
	struct stat s;

	return !stat("/proc/sys/net/core/rmem_max", &s) && s.st_mode & S_IWUSR
		       ? "; more is faster: sysctl net.core.rmem_max=8388608"
		       : "; more is faster: on the host of this network "
			 "namespace, sysctl net.core.rmem_max=8388608";
}

void doctor_net_buffer(void)
{
	int size = 1 << 30, got = 0, frames;
	socklen_t len = sizeof(got);
	int fd = udp_unbound();
	bool is_few;

	if (fd < 0) {
		say_no_socket("receive buffer", fd);
		return;
	}
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &got, &len);
	close(fd);
	frames = got / FRAME_TRUESIZE;
	is_few = frames < FEW_FRAMES;
	doctor_say(is_few ? DOCTOR_SLOW : DOCTOR_OK, "receive buffer",
		   "the kernel gives a socket %d bytes, which is room for %d "
		   "frames of 4 KiB%s",
		   got, frames, is_few ? enlarge_buffer() : "");
}
