/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "device/netif.h"
#include "hdr/erf.h"
#include "hdr/eth.h"
#include "hdr/ip.h"
#include "hdr/udp.h"
#include "host/host.h"
#include "log/env.h"
#include "log/log.h"
#include "util/bits.h"
#include "util/fd_identity.h"
#include "util/fsize.h"
#include "util/user_map.h"
#include "util/walk.h"

#define MAX_FRAME 10240

/* The kernel's device numbers of /dev/null, /dev/zero and /dev/full. */
#define MEMORY_MAJOR 1
#define MEMORY_NULL  3
#define MEMORY_ZERO  5
#define MEMORY_FULL  7

static int file = -1;
/* The frame that is being written; under the progress lock. */
static uint8_t scratch[MAX_FRAME];

/* pcapng: section header, then one interface with ns time stamps. */
static const uint32_t ethernet_preamble[] = {
	0x0a0d0d0a, 28, 0x1a2b3c4d, 1,		0xffffffff, 0xffffffff, 28, 1,
	32,	    1,	0,	    0x00010009, 9,	    0,		32,
};
static const uint32_t lid_preamble[] = {
	0x0a0d0d0a,    28, 0x1a2b3c4d, 1, 0xffffffff, 0xffffffff, 28, 1, 32,
	ERF_LINK_TYPE, 0,  0x00010009, 9, 0,	      32,
};

_Static_assert(sizeof(ethernet_preamble) == sizeof(lid_preamble),
	       "capture_open writes either");

/* Opens the file of an O_PATH descriptor.  Without /proc opens the file by its
 * name in the folder of the walk instead; if the name is a pipe then, this does
 * not wait for a reader. */
static int open_again(int path_fd, const struct walk *w, int flags)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	fd = open(path, flags);
	return fd < 0 && errno == ENOENT
		       ? openat(w->fd, w->name, flags | O_NONBLOCK | O_NOFOLLOW)
		       : fd;
}

/*
 * Opens the file of an O_PATH descriptor for writing.  A regular file is also
 * opened for reading, so that why_not can see its contents.  A pipe of this
 * user is opened for writing only, which waits for the pipe's reader: a reader
 * that came after the end of the capture would wait for ever.  All other files
 * are opened without waiting, and why_not refuses most of them.
 */
static int open_found(int path_fd, const struct walk *w)
{
	const int always = O_APPEND | O_CLOEXEC | O_NOCTTY;
	struct stat s;

	if (fstat(path_fd, &s))
		return -1;
	if (S_ISREG(s.st_mode))
		return open_again(path_fd, w, always | O_RDWR);
	if (S_ISFIFO(s.st_mode) && s.st_uid == geteuid())
		return open_again(path_fd, w, always | O_WRONLY);
	return open_again(path_fd, w, always | O_WRONLY | O_NONBLOCK);
}

/*
 * Returns this process's group if its number is the user's, else 0.  Where each
 * user has a group of the user's number, the umask is often 002, and folders
 * can then be written by that group.
 */
static gid_t own_group(void)
{
	return getegid() == geteuid() ? getegid() : 0;
}

/* Opens the file that walk_file has found, or creates it where walk_file found
 * none.  Returns a descriptor or -errno. */
static int open_reached(const struct walk *w, int found)
{
	const int create =
		O_APPEND | O_CLOEXEC | O_NOCTTY | O_RDWR | O_CREAT | O_NOFOLLOW;
	int fd;

	if (found < 0 && (found != -ENOENT || !*w->name))
		return found;
	fd = found < 0 ? openat(w->fd, w->name, create, 0600)
		       : open_found(found, w);
	return fd < 0 ? -errno : fd;
}

/* Opens or creates the file of that name.  Follows symbolic links of root and
 * of this user, for example /dev/stdout.  Returns a descriptor or -errno. After
 * -EPERM, `why` has a reason, or is empty. */
static int open_named(const char *name, char *why, size_t room)
{
	struct walk w = {.subject = "it",
			 .why = why,
			 .room = room,
			 .doubts_system = true,
			 .group = own_group(),
			 .fd = -1};
	int found, fd;

	*why = '\0';
	found = walk_file(&w, name);
	fd = open_reached(&w, found);
	if (found >= 0)
		close(found);
	walk_end(&w);
	return fd;
}

/* Is the device /dev/null, /dev/zero, /dev/full or a terminal of this user? */
static bool is_fit_device(int fd, const struct stat *s)
{
	unsigned minor_number = minor(s->st_rdev);

	if (major(s->st_rdev) == MEMORY_MAJOR)
		return minor_number == MEMORY_NULL ||
		       minor_number == MEMORY_ZERO ||
		       minor_number == MEMORY_FULL;
	return s->st_uid == geteuid() && isatty(fd);
}

/*
 * Returns why the capture must not be written to a file, or NULL if it may.
 * The file must not be another user's, nor a device on which frames could have
 * effects.  A regular file that is not empty must contain a capture and have
 * only one name.
 */
static const char *why_not(int fd)
{
	uint32_t first = ethernet_preamble[0];
	struct stat s;

	if (fstat(fd, &s))
		return strerror(errno);
	if (S_ISCHR(s.st_mode))
		return is_fit_device(fd, &s)
			       ? NULL
			       : "it is a device other than /dev/null, "
				 "/dev/zero, /dev/full and a terminal of this "
				 "user";
	if (!S_ISREG(s.st_mode) && !S_ISFIFO(s.st_mode))
		return "it is neither a file nor a pipe";
	if (!user_map_is_own(s.st_uid))
		return "it is another user's file";
	if (S_ISFIFO(s.st_mode) || !s.st_size)
		return NULL;
	if (s.st_nlink > 1)
		return "it has several names (hard links)";
	if (pread(fd, &first, sizeof(first), 0) != sizeof(first) ||
	    first != ethernet_preamble[0])
		return "it is not empty and not a pcapng capture";
	return NULL;
}

/* Removes O_NONBLOCK.  Returns 0, or -1 and errno. */
static int make_waiting(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || !(flags & O_NONBLOCK))
		return flags < 0 ? -1 : 0;
	return fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
}

/* Returns a descriptor, or -1 with *why, which may lie in `text`. */
static int open_capture(const char *name, const char **why, char *text,
			size_t room)
{
	int fd = open_named(name, text, room);

	if (fd < 0) {
		*why = *text ? text : strerror(-fd);
		return -1;
	}
	*why = why_not(fd);
	if (!*why && make_waiting(fd))
		*why = strerror(errno);
	if (!*why)
		return fd;
	close(fd);
	return -1;
}

void capture_open(bool is_by_lid)
{
	const char *name = env_text("ADVERB_PCAP"), *why;
	const uint32_t *preamble = is_by_lid ? lid_preamble : ethernet_preamble;
	struct fsize limit;
	char text[128];

	if (!name || !*name || file >= 0)
		return;
	/* Several processes may append to the file, since a pcapng file may
	 * have several sections. */
	file = fd_identity_note(open_capture(name, &why, text, sizeof(text)));
	fsize_hold(&limit);
	if (file >= 0 && write(file, preamble, sizeof(lid_preamble)) !=
				 sizeof(lid_preamble)) {
		why = strerror(errno);
		capture_close();
	}
	fsize_give(&limit);
	if (file < 0)
		log_say(LOG_CAPTURE_FAILS, 0,
			"cannot write frames to %s: %s; name another file in "
			"ADVERB_PCAP",
			name, why);
}

void capture_close(void)
{
	fd_identity_close(file);
	file = -1;
}

bool capture_is_open(void)
{
	return file >= 0;
}

static uint32_t put_word(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
	       (uint32_t)p[2] << 8 | p[3];
}

static size_t put_v4(uint8_t *p, const struct inaddr *from,
		     const struct inaddr *to, size_t udp_len, uint16_t id,
		     uint8_t tos, uint8_t ttl, uint16_t *sum)
{
	struct ip_v4 ip = {
		.header_bytes = IP_V4_BYTES,
		.tos = tos,
		.total_length = (uint16_t)(IP_V4_BYTES + udp_len),
		.id = id,
		.flags_fragment = IP_V4_DF,
		.ttl = ttl,
		.protocol = IP_PROTOCOL_UDP,
		.src = put_word(from->ip + 12),
		.dst = put_word(to->ip + 12),
	};

	ip_v4_write(p, &ip);
	*sum = udp_checksum_v4(&ip, p + IP_V4_BYTES, udp_len);
	return IP_V4_BYTES;
}

static size_t put_v6(uint8_t *p, const struct inaddr *from,
		     const struct inaddr *to, size_t udp_len, uint8_t tos,
		     uint8_t ttl, uint16_t *sum)
{
	struct ip_v6 ip = {
		.traffic_class = tos,
		.payload_length = (uint16_t)udp_len,
		.next_header = IP_PROTOCOL_UDP,
		.hop_limit = ttl,
	};

	memcpy(ip.src, from->ip, 16);
	memcpy(ip.dst, to->ip, 16);
	ip_v6_write(p, &ip);
	*sum = udp_checksum_v6(&ip, p + IP_V6_BYTES, udp_len);
	return IP_V6_BYTES;
}

/* Writes the whole Ethernet frame to p, and returns its length. */
static size_t rebuild_headers(uint8_t *p, const struct inaddr *from,
			      const struct inaddr *to, const uint8_t *bytes,
			      size_t len, uint16_t id, uint8_t tos, uint8_t ttl)
{
	bool v4 = inaddr_is_v4(from->ip);
	size_t ip_bytes = v4 ? IP_V4_BYTES : IP_V6_BYTES;
	struct eth eth = {.type = v4 ? ETH_TYPE_IPV4 : ETH_TYPE_IPV6};
	struct udp udp = {
		.sport = from->port,
		.dport = to->port,
		.length = (uint16_t)(UDP_BYTES + len),
	};
	uint8_t *u = p + ETH_BYTES + ip_bytes;

	netif_mac(from->ip, eth.src);
	netif_mac(to->ip, eth.dst);
	eth_write(p, &eth);
	udp_write(u, &udp);
	memcpy(u + UDP_BYTES, bytes, len);
	if (v4)
		put_v4(p + ETH_BYTES, from, to, udp.length, id, tos, ttl,
		       &udp.checksum);
	else
		put_v6(p + ETH_BYTES, from, to, udp.length, tos, ttl,
		       &udp.checksum);
	udp_write(u, &udp);
	return ETH_BYTES + ip_bytes + udp.length;
}

/* Writes the block of a frame[0..n), after which 3 more bytes may be written.
 */
static void write_block(uint8_t *frame, size_t n, const struct timespec *t)
{
	uint64_t ns = (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec;
	uint32_t head[7], tail;
	struct fsize limit;
	ssize_t written;

	tail = (uint32_t)(sizeof(head) + bits_align_up(n, 4) + sizeof(tail));
	head[0] = 6; /* enhanced packet block */
	head[1] = tail;
	head[2] = 0;
	head[3] = (uint32_t)(ns >> 32);
	head[4] = (uint32_t)ns;
	head[5] = head[6] = (uint32_t)n;
	memset(frame + n, 0, 4);
	struct iovec iov[3] = {
		{head, sizeof(head)},
		{frame, bits_align_up(n, 4)},
		{&tail, sizeof(tail)},
	};
	fsize_hold(&limit);
	written = writev(file, iov, 3);
	fsize_give(&limit);
	if (written != (ssize_t)tail) {
		if (written >= 0) /* a part was written */
			errno = ENOSPC;
		log_say(LOG_CAPTURE_ENDS, 0,
			"the capture ends here, because the file of "
			"ADVERB_PCAP cannot be written: %m; remove the cause, "
			"or name another file, and start the program again");
		capture_close();
	}
}

/* Is there a capture to which len bytes can be written?  If the descriptor is
 * another file's, ends the capture and says so. */
static bool can_write(size_t len)
{
	if (file < 0 || len > MAX_FRAME - 100)
		return false;
	if (fd_identity_holds(file))
		return true;
	log_say(LOG_CAPTURE_ENDS, 0,
		"the capture ends here, because the program has closed the "
		"capture's descriptor; change the program to close only "
		"descriptors that it has opened");
	capture_close();
	return false;
}

void capture_frame(const struct inaddr *from, const struct inaddr *to,
		   const uint8_t *bytes, size_t len, uint16_t id, uint8_t tos,
		   uint8_t ttl)
{
	struct timespec t;
	size_t n;

	if (!can_write(len))
		return;
	n = rebuild_headers(scratch, from, to, bytes, len, id, tos,
			    ttl ? ttl : 64);
	clock_gettime(CLOCK_REALTIME, &t);
	write_block(scratch, n, &t);
}

void capture_packet(const uint8_t *head, size_t n, const uint8_t *bytes,
		    size_t len)
{
	struct timespec t;

	if (!can_write(n + len))
		return;
	clock_gettime(CLOCK_REALTIME, &t);
	erf_write(scratch, (uint64_t)t.tv_sec, (uint32_t)t.tv_nsec, n + len);
	if (n)
		memcpy(scratch + ERF_BYTES, head, n);
	memcpy(scratch + ERF_BYTES + n, bytes, len);
	write_block(scratch, ERF_BYTES + n + len, &t);
}

void capture_sent(const struct engine_frame *f)
{
	const uint8_t *bytes = f->bytes;
	size_t len = f->len;

	for (uint16_t id = 0; capture_is_open() && len; id++) {
		size_t n = bits_min_u64(len, f->segment);

		capture_frame(&f->from, &f->to, bytes, n, id, f->tos, f->ttl);
		bytes += n;
		len -= n;
	}
}

/* The socket tells neither the IPv4 id of a datagram nor its TTL.
 * engine_dgram_id finds by the ICRC which id the sender used; the TTL in the
 * capture is always 64. */
void capture_received(const struct engine_dgram *d)
{
	const uint8_t *bytes = d->bytes;
	size_t len = capture_is_open() ? d->len : 0;

	for (uint16_t i = 0; len; i++) {
		size_t n = bits_min_u64(len, d->segment);

		capture_frame(&d->from, &d->to, bytes, n,
			      engine_dgram_id(d, bytes, n, i), d->tos, 64);
		bytes += n;
		len -= n;
	}
}
