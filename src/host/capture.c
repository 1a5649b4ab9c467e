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
#include "hdr/erf.h"
#include "hdr/outer.h"
#include "hdr/pcapng.h"
#include "host/host.h"
#include "log/env.h"
#include "log/log.h"
#include "util/bits.h"
#include "util/fd_identity.h"
#include "util/lock.h"
#include "util/shared.h"
#include "util/user_map.h"
#include "util/walk.h"
#include "util/write_signals.h"

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
static int file = -1;		   /* the capture's file; -1: none */
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

/* Opens the file of an O_PATH descriptor.  Without /proc, opens the file by its
 * name in the folder of the walk instead, and does not wait for the reader of a
 * pipe. */
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
 * Returns this process's group if the group has the same number as the user,
 * else 0.  Where each user has a group with the user's number, the umask is
 * often 002, and that group can then write to the user's folders.
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

/* Returns why the file of a walk was not opened; NULL: strerror says why.
 * `found`: the result of walk_file.  `err`: the -errno that open_reached has
 * returned. */
static const char *why_not_opened(const struct walk *w, int found, int err)
{
	if (err == -ENOENT && !*w->name)
		return "a folder of the path does not exist";
	if (err == -EISDIR)
		return "it is a folder";
	if (err != -EACCES)
		return NULL;
	if (found >= 0)
		return "this user may not write to the file";
	return found == -ENOENT
		       ? "this user may not create a file in the folder"
		       : "this user may not search a folder of the path";
}

/* Opens or creates the file of that name.  Follows symbolic links of root and
 * of this user, for example /dev/stdout.  Returns a descriptor or -errno.
 * After -errno, `why` has a reason, or is empty: then strerror says why. */
static int open_named(const char *name, char *why, size_t room)
{
	struct walk w = {.subject = "it",
			 .why = why,
			 .room = room,
			 .doubts_system = true,
			 .group = own_group(),
			 .fd = -1};
	const char *text;
	int found, fd;

	*why = '\0';
	found = walk_file(&w, name);
	fd = open_reached(&w, found);
	text = fd < 0 && !*why ? why_not_opened(&w, found, fd) : NULL;
	if (text)
		snprintf(why, room, "%s", text);
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
 * A device must be one on which frames have no effects, or a terminal of this
 * user (is_fit_device).  A regular file or a pipe must be this user's.  A
 * regular file that is not empty must contain a capture and have only one name.
 */
static const char *why_not(int fd)
{
	uint32_t first = PCAPNG_MAGIC;
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
	    first != PCAPNG_MAGIC)
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

/* Writes all bytes of v[0..n), and changes v.  A signal of the program may end
 * a write to a full pipe before any byte is written, or after a part of the
 * bytes is written.  False: errno says why not all bytes were written. */
static bool write_whole(int fd, struct iovec *v, int n)
{
	while (n) {
		ssize_t done = writev(fd, v, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (!done)
			errno = ENOSPC;
		if (done <= 0)
			return false;
		for (; n && (size_t)done >= v->iov_len; n--)
			done -= (ssize_t)v++->iov_len;
		if (n) {
			v->iov_base = (char *)v->iov_base + done;
			v->iov_len -= (size_t)done;
		}
	}
	return true;
}

static void end_capture(void)
{
	shared_store(&is_open, false);
	fd_identity_close(file);
	file = -1;
}

/* Ends the capture if the program has closed its descriptor, as a daemon may do
 * before it opens a device again. */
static void forget_lost_file(void)
{
	int cancel;

	take_file(&cancel);
	if (file >= 0 && !fd_identity_holds(file))
		end_capture();
	give_file(cancel);
}

void capture_open(bool is_by_lid)
{
	const char *name = env_text("ADVERB_PCAP"), *why;
	uint8_t begin[PCAPNG_BEGIN_BYTES];
	struct iovec whole = {begin, sizeof(begin)};
	struct write_signals held;
	char text[128];
	int fd, cancel;
	bool is_written;

	if (!name || !*name)
		return;
	forget_lost_file();
	if (capture_is_open())
		return;
	/* Several processes may append to the file, since a pcapng file may
	 * have several sections. */
	fd = fd_identity_note(open_capture(name, &why, text, sizeof(text)));
	pcapng_write_begin(begin,
			   is_by_lid ? ERF_LINK_TYPE : PCAPNG_LINK_ETHERNET);
	write_signals_hold(&held);
	is_written = fd >= 0 && write_whole(fd, &whole, 1);
	if (fd >= 0 && !is_written) {
		why = strerror(errno);
		fd_identity_close(fd);
		fd = -1;
	}
	write_signals_give(&held);
	if (fd < 0)
		log_say(LOG_CAPTURE_FAILS, 0,
			"cannot write frames to %s: %s; remove the cause, or "
			"name another file by --pcap or ADVERB_PCAP",
			name, why);
	take_file(&cancel);
	file = fd;
	has_link_packets = is_by_lid;
	shared_store(&is_open, fd >= 0);
	give_file(cancel);
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

static void fill_macs(struct outer *o)
{
	netif_mac(o->from->ip, o->from_mac);
	netif_mac(o->to->ip, o->to_mac);
}

/* Writes the block of a frame that consists of head[0..m) and bytes[0..n).
 * at_ns: the time of CLOCK_REALTIME.  Ends the capture if the file cannot be
 * written. */
static void write_block(const uint8_t *head, size_t m, const uint8_t *bytes,
			size_t n, uint64_t at_ns)
{
	const struct pcapng_packet k = {.at_ns = at_ns, .bytes = m + n};
	uint8_t before[PCAPNG_BEFORE_BYTES], after[PCAPNG_AFTER_MAX];
	struct iovec iov[4] = {
		{before, sizeof(before)},
		{(void *)(uintptr_t)head, m},
		{(void *)(uintptr_t)bytes, n},
		{after, pcapng_write_after(after, &k)},
	};
	struct write_signals held;
	bool is_written;

	pcapng_write_before(before, &k);
	write_signals_hold(&held);
	is_written = write_whole(file, iov, 4);
	write_signals_give(&held);
	if (!is_written) {
		log_say(LOG_CAPTURE_ENDS, 0,
			"the capture ends here, because the file of "
			"ADVERB_PCAP cannot be written: %m; remove the cause, "
			"or name another file, and start the program again");
		end_capture();
	}
}

/* Does `file` still refer to the capture's file?  If not, because the program
 * has closed the descriptor, ends the capture and says so. */
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
	struct outer o = {.from = from,
			  .to = to,
			  .id = id,
			  .tos = tos,
			  .ttl = ttl ? ttl : TTL};
	int cancel;

	if (!begin_frame(false, len, &cancel))
		return;
	fill_macs(&o);
	write_block(scratch, outer_write_udp(scratch, &o, bytes, len), NULL, 0,
		    capture_now());
	give_file(cancel);
}

void capture_sctp(const struct inaddr *from, const struct inaddr *to,
		  const uint8_t *packet, size_t len)
{
	struct outer o = {.from = from, .to = to, .ttl = TTL};
	uint8_t head[OUTER_IP_MAX];
	int cancel;
	size_t n;

	if (from->port) {
		capture_frame(from, to, packet, len, 0, 0, TTL);
		return;
	}
	if (!begin_frame(false, len, &cancel))
		return;
	fill_macs(&o);
	n = outer_write_ip(head, &o, IP_PROTOCOL_SCTP, len);
	write_block(head, n, packet, len, capture_now());
	give_file(cancel);
}

void capture_segment(const struct capture_segment *s)
{
	struct outer o = {
		.from = s->from, .to = s->to, .tos = s->tos, .ttl = TTL};
	uint8_t head[OUTER_TCP_MAX];
	int cancel;
	size_t n;

	if (s->count > CAPTURE_SEGMENT_MAX || !begin_frame(false, 0, &cancel))
		return;
	fill_macs(&o);
	n = outer_write_tcp(head, &o, &s->tcp, s->bytes, s->count);
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
