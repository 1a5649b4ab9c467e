/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "device/netif.h"
#include "hdr/bytes.h"
#include "hdr/erf.h"
#include "hdr/eth.h"
#include "hdr/ip.h"
#include "hdr/tcp.h"
#include "hdr/udp.h"
#include "host/host.h"
#include "log/env.h"
#include "log/log.h"
#include "util/bits.h"
#include "util/fd_identity.h"
#include "util/fsize.h"
#include "util/lock.h"
#include "util/shared.h"
#include "util/user_map.h"
#include "util/walk.h"

#define MAX_FRAME 10240
#define TTL	  64
#define NS	  1000000000u

/* The kernel's device numbers of /dev/null, /dev/zero and /dev/full. */
#define MEMORY_MAJOR 1
#define MEMORY_NULL  3
#define MEMORY_ZERO  5
#define MEMORY_FULL  7

/* Protects the variables below.  No lock but that of netif.h is taken while
 * this lock is held. */
static struct lock busy;
static int file = -1;
static bool has_link_packets;	   /* the file is for capture_packet */
static uint8_t scratch[MAX_FRAME]; /* the frame that is being written */

/* Is there a file?  Changed under `busy`, and read without it. */
static shared_flag is_open;

static void after_fork(void)
{
	lock_init(&busy);
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, after_fork);
}

static void take_file(int *cancel) NO_LOCK_ANALYSIS
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, cancel);
	lock_take(&busy);
}

static void give_file(int cancel) NO_LOCK_ANALYSIS
{
	lock_give(&busy);
	pthread_setcancelstate(cancel, NULL);
}

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
 * name in the folder of the walk instead, and a pipe then without waiting for
 * its reader. */
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
 * user is opened for writing only, which waits for the pipe's reader: otherwise
 * a reader that opens the pipe after the end of the capture would wait for
 * ever.  All other files are opened without waiting, and why_not refuses most
 * of them.
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
	int fd, cancel;

	if (!name || !*name || capture_is_open())
		return;
	/* Several processes may append to the file, since a pcapng file may
	 * have several sections. */
	fd = fd_identity_note(open_capture(name, &why, text, sizeof(text)));
	fsize_hold(&limit);
	if (fd >= 0 &&
	    write(fd, preamble, sizeof(lid_preamble)) != sizeof(lid_preamble)) {
		why = strerror(errno);
		fd_identity_close(fd);
		fd = -1;
	}
	fsize_give(&limit);
	if (fd < 0)
		log_say(LOG_CAPTURE_FAILS, 0,
			"cannot write frames to %s: %s; name another file in "
			"ADVERB_PCAP",
			name, why);
	take_file(&cancel);
	file = fd;
	has_link_packets = is_by_lid;
	shared_store(&is_open, fd >= 0);
	give_file(cancel);
}

static void end_capture(void)
{
	shared_store(&is_open, false);
	fd_identity_close(file);
	file = -1;
}

void capture_close(void)
{
	int cancel;

	take_file(&cancel);
	end_capture();
	give_file(cancel);
}

bool capture_is_open(void)
{
	return shared_load(&is_open);
}

/* The addresses of a packet, and the fields of its IP header. */
struct way {
	const struct inaddr *from, *to;
	uint16_t id; /* the identification of the IPv4 header */
	uint8_t tos; /* the type of service or traffic class */
	uint8_t ttl; /* the TTL or hop limit */
};

/* The headers between those of Ethernet and of UDP or TCP. */
struct ip_header {
	bool is_v4;
	struct ip_v4 v4; /* if is_v4 */
	struct ip_v6 v6; /* if not is_v4 */
};

/* Fills in the header of a packet whose payload has `bytes` bytes. */
static void fill_ip(struct ip_header *ip, const struct way *w, uint8_t protocol,
		    size_t bytes)
{
	ip->is_v4 = inaddr_is_v4(w->from->ip);
	ip->v4 = (struct ip_v4){
		.header_bytes = IP_V4_BYTES,
		.tos = w->tos,
		.total_length = (uint16_t)(IP_V4_BYTES + bytes),
		.id = w->id,
		.flags_fragment = IP_V4_DF,
		.ttl = w->ttl,
		.protocol = protocol,
		.src = bytes_get32(w->from->ip + 12),
		.dst = bytes_get32(w->to->ip + 12),
	};
	ip->v6 = (struct ip_v6){
		.traffic_class = w->tos,
		.payload_length = (uint16_t)bytes,
		.next_header = protocol,
		.hop_limit = w->ttl,
	};
	memcpy(ip->v6.src, w->from->ip, 16);
	memcpy(ip->v6.dst, w->to->ip, 16);
}

/* Writes the headers of Ethernet and IP, and returns their length. */
static size_t put_ip(uint8_t *p, const struct way *w,
		     const struct ip_header *ip)
{
	struct eth eth = {.type = ip->is_v4 ? ETH_TYPE_IPV4 : ETH_TYPE_IPV6};

	netif_mac(w->from->ip, eth.src);
	netif_mac(w->to->ip, eth.dst);
	eth_write(p, &eth);
	if (ip->is_v4) {
		ip_v4_write(p + ETH_BYTES, &ip->v4);
		return ETH_BYTES + IP_V4_BYTES;
	}
	ip_v6_write(p + ETH_BYTES, &ip->v6);
	return ETH_BYTES + IP_V6_BYTES;
}

/* Writes the whole frame of a UDP datagram to p, and returns its length. */
static size_t put_datagram(uint8_t *p, const struct way *w,
			   const uint8_t *bytes, size_t len)
{
	struct udp udp = {
		.sport = w->from->port,
		.dport = w->to->port,
		.length = (uint16_t)(UDP_BYTES + len),
	};
	struct ip_header ip;
	uint8_t *u;

	fill_ip(&ip, w, IP_PROTOCOL_UDP, udp.length);
	u = p + put_ip(p, w, &ip);
	udp_write(u, &udp);
	memcpy(u + UDP_BYTES, bytes, len);
	udp.checksum = ip.is_v4 ? udp_checksum_v4(&ip.v4, u, udp.length)
				: udp_checksum_v6(&ip.v6, u, udp.length);
	udp_write(u, &udp);
	return (size_t)(u - p) + udp.length;
}

/* Writes the headers of a TCP segment to p, and returns their length. */
static size_t put_segment(uint8_t *p, const struct way *w,
			  const struct tcp *tcp, const uint8_t *bytes,
			  size_t len)
{
	struct tcp done = *tcp;
	struct ip_header ip;
	uint8_t head[TCP_SYN_BYTES];
	size_t n, before;

	done.sport = w->from->port;
	done.dport = w->to->port;
	done.checksum = 0;
	n = tcp_write(head, &done);
	fill_ip(&ip, w, IP_PROTOCOL_TCP, n + len);
	done.checksum = ip.is_v4 ? tcp_checksum_v4(&ip.v4, head, n, bytes, len)
				 : tcp_checksum_v6(&ip.v6, head, n, bytes, len);
	before = put_ip(p, w, &ip);
	tcp_write(p + before, &done);
	return before + n;
}

/* Writes the block of a frame that consists of head[0..m) and bytes[0..n).
 * at_ns: the time since 1970. */
static void write_block(const uint8_t *head, size_t m, const uint8_t *bytes,
			size_t n, uint64_t at_ns)
{
	size_t all = m + n, pad = bits_align_up(all, 4) - all;
	uint32_t first[7], tail;
	uint8_t end[3 + sizeof(tail)] = {0};
	struct iovec iov[4] = {
		{first, sizeof(first)},
		{(void *)(uintptr_t)head, m},
		{(void *)(uintptr_t)bytes, n},
		{end, pad + sizeof(tail)},
	};
	struct fsize limit;
	ssize_t written;

	tail = (uint32_t)(sizeof(first) + all + pad + sizeof(tail));
	first[0] = 6; /* enhanced packet block */
	first[1] = tail;
	first[2] = 0;
	first[3] = (uint32_t)(at_ns >> 32);
	first[4] = (uint32_t)at_ns;
	first[5] = first[6] = (uint32_t)all;
	memcpy(end + pad, &tail, sizeof(tail));
	fsize_hold(&limit);
	written = writev(file, iov, 4);
	fsize_give(&limit);
	if (written != (ssize_t)tail) {
		if (written >= 0) /* a part was written */
			errno = ENOSPC;
		log_say(LOG_CAPTURE_ENDS, 0,
			"the capture ends here, because the file of "
			"ADVERB_PCAP cannot be written: %m; remove the cause, "
			"or name another file, and start the program again");
		end_capture();
	}
}

/* Is the descriptor still the capture's?  If it is another file's, ends the
 * capture and says so. */
static bool has_file(void)
{
	if (fd_identity_holds(file))
		return true;
	log_say(LOG_CAPTURE_ENDS, 0,
		"the capture ends here, because the program has closed the "
		"capture's descriptor; change the program to close only "
		"descriptors that it has opened");
	end_capture();
	return false;
}

/* Takes the lock and returns true if there is a capture for frames of Ethernet
 * or, if is_by_lid, for packets by LID, and len bytes are not too many for
 * `scratch`.  The caller then calls give_file(*cancel). */
static bool begin_frame(bool is_by_lid, size_t len,
			int *cancel) NO_LOCK_ANALYSIS
{
	if (!capture_is_open() || len > MAX_FRAME - 100)
		return false;
	take_file(cancel);
	if (file >= 0 && has_link_packets == is_by_lid && has_file())
		return true;
	give_file(*cancel);
	return false;
}

uint64_t capture_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * NS + (uint64_t)t.tv_nsec;
}

void capture_frame(const struct inaddr *from, const struct inaddr *to,
		   const uint8_t *bytes, size_t len, uint16_t id, uint8_t tos,
		   uint8_t ttl)
{
	const struct way w = {from, to, id, tos, ttl ? ttl : TTL};
	int cancel;

	if (!begin_frame(false, len, &cancel))
		return;
	write_block(scratch, put_datagram(scratch, &w, bytes, len), NULL, 0,
		    capture_now());
	give_file(cancel);
}

/* Writes the frame of a packet of SCTP without UDP. */
static void write_raw(const struct way *w, const uint8_t *packet, size_t len)
{
	uint8_t head[ETH_BYTES + IP_V6_BYTES];
	struct ip_header ip;

	fill_ip(&ip, w, IP_PROTOCOL_SCTP, len);
	write_block(head, put_ip(head, w, &ip), packet, len, capture_now());
}

void capture_sctp(const struct inaddr *from, const struct inaddr *to,
		  const uint8_t *packet, size_t len)
{
	const struct way w = {from, to, 0, 0, TTL};
	int cancel;

	if (from->port) {
		capture_frame(from, to, packet, len, 0, 0, TTL);
		return;
	}
	if (!begin_frame(false, len, &cancel))
		return;
	write_raw(&w, packet, len);
	give_file(cancel);
}

void capture_segment(const struct capture_segment *s)
{
	const struct way w = {s->from, s->to, 0, s->tos, TTL};
	uint8_t head[ETH_BYTES + IP_V6_BYTES + TCP_SYN_BYTES];
	int cancel;
	size_t n;

	if (s->count > CAPTURE_SEGMENT_MAX || !begin_frame(false, 0, &cancel))
		return;
	n = put_segment(head, &w, &s->tcp, s->bytes, s->count);
	write_block(head, n, s->bytes, s->count, s->at_ns);
	give_file(cancel);
}

void capture_packet(const uint8_t *head, size_t n, const uint8_t *bytes,
		    size_t len)
{
	uint64_t now;
	int cancel;

	if (!begin_frame(true, n + len, &cancel))
		return;
	now = capture_now();
	erf_write(scratch, now / NS, (uint32_t)(now % NS), n + len);
	if (n)
		memcpy(scratch + ERF_BYTES, head, n);
	write_block(scratch, ERF_BYTES + n, bytes, len, now);
	give_file(cancel);
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
