/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric_capture.h"

#include "fabric/fabric.h"
#include "hdr/erf.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

enum {
	/* The most bytes of a record with its ERF header, rounded up. */
	SNAP_BYTES = 8256,
};

/* The header of a file of libpcap, in this machine's byte order, with times in
 * ns; `zone` and `accuracy` are 0.  Before each packet are a struct
 * packet_header and an ERF header. */
struct file_header {
	uint32_t magic;
	uint16_t major, minor;
	int32_t zone;
	uint32_t accuracy;
	uint32_t snap_bytes;
	uint32_t link_type;
};

struct packet_header {
	uint32_t s, ns; /* the time since 1970 */
	/* Both: the bytes of the ERF header and of the packet. */
	uint32_t captured, bytes;
};

/* Ends a capture whose file takes no more bytes; the fabric goes on. */
static void end_capture(struct fabric_capture *c, int err)
{
	fprintf(stderr,
		"adverb: the capture %s ends, since its file takes no more: "
		"%s; the fabric goes on; for a whole capture, start the fabric "
		"with a file on a file system that has more room.\n",
		c->name, strerror(err));
	fclose(c->file);
	c->file = NULL;
}

static void write_packet(void *arg, const uint8_t *p, size_t bytes)
{
	struct fabric_capture *c = arg;
	struct timespec now;
	struct packet_header h = {.captured = (uint32_t)(ERF_BYTES + bytes),
				  .bytes = (uint32_t)(ERF_BYTES + bytes)};
	uint8_t erf[ERF_BYTES];

	if (!c->file)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	h.s = (uint32_t)now.tv_sec;
	h.ns = (uint32_t)now.tv_nsec;
	erf_write(erf, (uint64_t)now.tv_sec, (uint32_t)now.tv_nsec, bytes);
	if (fwrite(&h, sizeof(h), 1, c->file) != 1 ||
	    fwrite(erf, sizeof(erf), 1, c->file) != 1 ||
	    fwrite(p, bytes, 1, c->file) != 1)
		end_capture(c, errno);
}

int fabric_capture_open(struct fabric_capture *c, struct fabric *f,
			const char *name)
{
	static const struct file_header h = {.magic = 0xa1b23c4d,
					     .major = 2,
					     .minor = 4,
					     .snap_bytes = SNAP_BYTES,
					     .link_type = ERF_LINK_TYPE};
	int fd =
		open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
		     0600);

	c->name = name;
	c->file = fd < 0 ? NULL : fdopen(fd, "w");
	if (!c->file || fwrite(&h, sizeof(h), 1, c->file) != 1) {
		fprintf(stderr,
			"adverb: no capture can be written to %s: %s; %s.\n",
			name, strerror(errno),
			errno == EEXIST ? "name a file that does not exist yet"
					: "name a file in a folder where it "
					  "can be made");
		if (c->file)
			fclose(c->file);
		else if (fd >= 0)
			close(fd);
		c->file = NULL;
		return -1;
	}
	fabric_watch(f, write_packet, c);
	return 0;
}

void fabric_capture_flush(struct fabric_capture *c)
{
	if (c->file && fflush(c->file))
		end_capture(c, errno);
}

void fabric_capture_close(struct fabric_capture *c)
{
	if (c->file && fclose(c->file))
		fprintf(stderr,
			"adverb: the end of the capture %s is lost: %s; name a "
			"file on a file system that has more room.\n",
			c->name, strerror(errno));
	c->file = NULL;
}
