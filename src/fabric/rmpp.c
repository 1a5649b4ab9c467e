/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/rmpp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/gate.h"
#include "fabric/port_info.h"
#include "hdr/bytes.h"

/* Offsets in a MAD.  RMPP's header follows the MAD header (IBTA 13.6.2.1), and
 * the class header follows RMPP's. */
enum {
	AT_VERSION = 24,
	AT_TYPE = 25,
	AT_FLAGS = 26,
	AT_STATUS = 27,
	AT_SEGMENT = 28,
	AT_LENGTH = 32, /* PayloadLength of DATA, NewWindowLast of ACK */
	AT_CLASS_HEADER = 36,
	SA_HEADER_END = 56,
	OUI_HEADER_END = 40,
	DEVICE_HEADER_END = 64, /* of DevMgt, DevAdm and BIS */
	PAYLOAD = 220, /* bytes after RMPP's header, class header included */
};
enum { TYPE_DATA = 1, TYPE_ACK = 2, TYPE_STOP = 3, TYPE_ABORT = 4 };
enum { FLAG_ACTIVE = 1, FLAG_FIRST = 2, FLAG_LAST = 4 };
/* RMPPStatus (IBTA 13.6.2.1). */
enum {
	STATUS_RESOURCES = 1,  /* of STOP: the receiver has no room */
	STATUS_TOO_LONG = 118, /* of ABORT: the next segment did not come */
	STATUS_RETRIES = 126,  /* of ABORT: no ACK came */
};

enum {
	WINDOW = 64,	    /* segments that a peer may send before an ACK */
	REPEAT_MS = 2000,   /* until segments without an ACK are sent again */
	REPEATS = 5,	    /* how often such segments are sent again */
	RECEIVE_MS = 40000, /* how long a receiver waits for the next segment */
	/* How long a receiver answers repeated segments of a whole MAD: as long
	 * as a sender repeats them. */
	DONE_MS = REPEAT_MS * (REPEATS + 1),
	/* The limit of an end, for each of: MADs that are being received, and
	 * MADs that have come whole. */
	TRANSFERS_MAX = 32,
	/* The limits of the MADs that an end is sending.  A subnet manager may
	 * answer all hosts of a subnet at once, and an answer whose receiver
	 * has gone stays for DONE_MS. */
	SENT_MAX = 1024,
	SENT_BYTES_MAX = 16 << 20,
};

/* A MAD that is being sent.  Segments have the numbers 1 to `segments`. */
struct rmpp_out {
	struct list list;  /* in end.outgoing */
	struct umad to;	   /* the address of the receiver */
	uint8_t *mad;	   /* headers and data; owned */
	size_t bytes;	   /* length of `mad` */
	size_t header;	   /* bytes before the data of each segment */
	uint32_t segments; /* how many segments the MAD has */
	uint32_t acked;	   /* the last segment that was acknowledged; 0: none */
	uint32_t window;   /* the last segment that may be sent now */
	uint32_t repeats;  /* how often the window was sent again */
	uint64_t due_ms;   /* when the window is sent again */
};

/* A MAD that is being received, or that has come whole. */
struct rmpp_in {
	struct list list; /* in end.incoming */
	/* The MAD has come whole: the sender may repeat the last segments,
	 * since an ACK may be lost. */
	bool is_done;
	uint32_t agent; /* the receiver, an index of end.agents */
	uint16_t slid;	/* the sender's LID */
	struct umad to; /* where the sender gets answers to its last segment */
	uint8_t header[DEVICE_HEADER_END]; /* of the first segment */
	uint8_t *mad;			   /* owned */
	size_t bytes, room; /* how many bytes `mad` has, and has room for */
	uint32_t segments;  /* how many segments have come, in order */
	uint32_t window;    /* the last segment that the sender may send */
	/* When the transfer fails without a new segment or, if is_done, is
	 * forgotten. */
	uint64_t due_ms;
};

/* Returns the number of bytes before the data of a segment; 0: the class has no
 * RMPP. */
static size_t header_of(uint8_t mgmt_class)
{
	if (mgmt_class == CLASS_SA)
		return SA_HEADER_END;
	if (fabric_has_oui(mgmt_class))
		return OUI_HEADER_END;
	return fabric_has_rmpp(mgmt_class) ? DEVICE_HEADER_END : 0;
}

bool rmpp_is_active(const uint8_t *mad)
{
	return header_of(mad[1]) && (mad[AT_FLAGS] & FLAG_ACTIVE);
}

static uint64_t now_of(const struct end *end)
{
	return end->port->node->fabric->now_ms;
}

static void free_out(struct end *end, struct rmpp_out *out)
{
	list_remove(&out->list);
	end->outgoing_count--;
	end->outgoing_bytes -= out->bytes;
	free(out->mad);
	free(out);
}

static void free_in(struct end *end, struct rmpp_in *in)
{
	list_remove(&in->list);
	if (in->is_done)
		end->finished_count--;
	else
		end->incoming_count--;
	free(in->mad);
	free(in);
}

void rmpp_free(struct end *end, uint32_t agent)
{
	list_for_each_safe (l, &end->outgoing) {
		struct rmpp_out *out = (struct rmpp_out *)l;

		if (agent == FABRIC_AGENTS || out->to.agent == agent)
			free_out(end, out);
	}
	list_for_each_safe (l, &end->incoming) {
		struct rmpp_in *in = (struct rmpp_in *)l;

		if (agent == FABRIC_AGENTS || in->agent == agent)
			free_in(end, in);
	}
}

/* A packet of RMPP without data. */
struct control {
	uint8_t type, status;
	uint32_t segment; /* ACK: the last segment that has come */
	uint32_t window;  /* ACK: the last segment that may be sent */
	bool is_answer;	  /* the receiver of segments sends it */
};

/* Sends a packet with the headers of the transfer's segments. */
static void send_control(struct end *end, const struct umad *to,
			 const uint8_t *header, struct control c)
{
	uint8_t mad[MAD_BYTES] = {0};

	memcpy(mad, header, header_of(header[1]));
	if (c.is_answer)
		mad[3] ^= MAD_METHOD_RESPONSE;
	mad[AT_VERSION] = 1;
	mad[AT_TYPE] = c.type;
	mad[AT_FLAGS] = FLAG_ACTIVE;
	mad[AT_STATUS] = c.status;
	bytes_put32(mad + AT_SEGMENT, c.segment);
	bytes_put32(mad + AT_LENGTH, c.window);
	end_inject(end, to, mad);
}

static int send_segment(struct end *end, const struct rmpp_out *out,
			uint32_t segment)
{
	size_t data = MAD_BYTES - out->header;
	size_t at = out->header + (segment - 1) * data;
	size_t left = out->bytes > at ? out->bytes - at : 0;
	uint32_t class_bytes = (uint32_t)(out->header - AT_CLASS_HEADER);
	uint8_t mad[MAD_BYTES] = {0}, flags = FLAG_ACTIVE;
	uint32_t length = 0;

	memcpy(mad, out->mad, out->header);
	memcpy(mad + out->header, out->mad + at, left < data ? left : data);
	if (segment == 1) {
		flags |= FLAG_FIRST;
		length = (uint32_t)(out->bytes - out->header) +
			 out->segments * class_bytes;
	}
	if (segment == out->segments) {
		flags |= FLAG_LAST;
		length = (uint32_t)left + class_bytes;
	}
	/* In RMPP's header, the program sets only RRespTime (the high five bits
	 * at AT_FLAGS) and the flag ACTIVE. */
	mad[AT_VERSION] = 1;
	mad[AT_TYPE] = TYPE_DATA;
	mad[AT_FLAGS] = (uint8_t)((mad[AT_FLAGS] & 0xf8) | flags);
	mad[AT_STATUS] = 0;
	bytes_put32(mad + AT_SEGMENT, segment);
	bytes_put32(mad + AT_LENGTH, length);
	return end_inject(end, &out->to, mad);
}

/* Sends the segments after the last acknowledged one, as far as the window
 * allows. */
static void send_window(struct end *end, struct rmpp_out *out)
{
	for (uint32_t i = out->acked + 1; i <= out->segments; i++)
		if (i > out->window || send_segment(end, out, i))
			break;
	out->due_ms = now_of(end) + REPEAT_MS;
}

int rmpp_send(struct end *end, const struct umad *to,
	      const uint8_t first[MAD_BYTES], const uint8_t *mad, size_t bytes)
{
	size_t header = header_of(first[1]), data = MAD_BYTES - header;
	struct rmpp_out *out;

	if (bytes < header)
		return -EINVAL;
	if (end->outgoing_count == SENT_MAX ||
	    end->outgoing_bytes + bytes > SENT_BYTES_MAX)
		return -ENOBUFS;
	out = calloc(1, sizeof(*out));
	if (!out)
		return -ENOMEM;
	out->mad = malloc(bytes > MAD_BYTES ? bytes : MAD_BYTES);
	if (!out->mad) {
		free(out);
		return -ENOMEM;
	}
	memcpy(out->mad, mad, bytes);
	memcpy(out->mad, first, header); /* with the agent's transaction ID */
	list_init(&out->list);
	out->to = *to;
	out->bytes = bytes;
	out->header = header;
	out->segments = (uint32_t)((bytes - header + data - 1) / data);
	if (!out->segments)
		out->segments = 1;
	out->window = 1;
	list_push_tail(&end->outgoing, &out->list);
	end->outgoing_count++;
	end->outgoing_bytes += bytes;
	send_window(end, out);
	return 0;
}

static struct rmpp_out *find_out(struct end *end, uint32_t agent,
				 const struct packet *p)
{
	list_for_each (l, &end->outgoing) {
		struct rmpp_out *out = (struct rmpp_out *)l;

		if (out->to.agent == agent && out->mad[1] == p->mad[1] &&
		    out->to.lid == p->slid &&
		    !memcmp(out->mad + 8, p->mad + 8, 8))
			return out;
	}
	return NULL;
}

static void take_ack(struct end *end, uint32_t agent, const struct packet *p)
{
	struct rmpp_out *out = find_out(end, agent, p);
	uint32_t segment = bytes_get32(p->mad + AT_SEGMENT);
	uint32_t window = bytes_get32(p->mad + AT_LENGTH);

	if (!out || segment < out->acked || segment > out->segments ||
	    segment > out->window || window < out->window)
		return;
	/* A window past the last segment allows no further segment. */
	if (window > out->segments)
		window = out->segments;
	/* An ACK without progress must not delay the end of the transfer. */
	if (segment == out->acked && window == out->window)
		return;
	if (segment > out->acked)
		out->repeats = 0;
	out->acked = segment;
	out->window = window;
	if (out->acked == out->segments)
		free_out(end, out);
	else
		send_window(end, out);
}

static struct rmpp_in *find_in(struct end *end, uint32_t agent,
			       const struct packet *p)
{
	list_for_each (l, &end->incoming) {
		struct rmpp_in *in = (struct rmpp_in *)l;

		if (in->agent == agent && in->slid == p->slid &&
		    !memcmp(in->header + 8, p->mad + 8, 8) &&
		    in->header[1] == p->mad[1])
			return in;
	}
	return NULL;
}

static struct rmpp_in *new_in(struct end *end, uint32_t agent,
			      const struct packet *p)
{
	struct rmpp_in *in = calloc(1, sizeof(*in));

	if (!in)
		return NULL;
	list_init(&in->list);
	in->agent = agent;
	in->slid = p->slid;
	memcpy(in->header, p->mad, header_of(p->mad[1]));
	list_push_tail(&end->incoming, &in->list);
	end->incoming_count++;
	return in;
}

/* Returns how many bytes of data a segment has.  The last one may be padded;
 * PayloadLength 0 there: the whole segment is data (IBTA 13.6.2.1). */
static size_t data_of(const uint8_t *mad, size_t header)
{
	uint32_t length = bytes_get32(mad + AT_LENGTH);
	size_t all = MAD_BYTES - header, pad = PAYLOAD - length;

	if (!(mad[AT_FLAGS] & FLAG_LAST) || !length || length >= PAYLOAD)
		return all;
	return pad < all ? all - pad : 0;
}

/* Appends the data of a segment, and the headers of the first segment, to
 * in->mad.  False: the MAD is too long, or no memory is left. */
static bool append_data(struct rmpp_in *in, const uint8_t *mad)
{
	size_t header = header_of(mad[1]);
	size_t from = in->segments ? header : 0;
	size_t n = header - from + data_of(mad, header);

	if (in->bytes + n > FABRIC_MAD_MAX)
		return false;
	if (!in->mad || in->bytes + n > in->room) {
		size_t room = in->room ? in->room * 2 : 4096;
		uint8_t *more = realloc(in->mad, room);

		if (!more)
			return false;
		in->mad = more;
		in->room = room;
	}
	memcpy(in->mad + in->bytes, mad + from, n);
	in->bytes += n;
	in->segments++;
	return true;
}

/* Returns the address for answers to the packet p. */
static struct umad sender_of(const struct end *end, uint32_t agent,
			     const struct packet *p)
{
	uint32_t bits = (1u << port_info_lmc(end->port)) - 1;

	return (struct umad){.agent = agent,
			     .qpn = p->src_qp,
			     .qkey = p->qkey,
			     .lid = p->slid,
			     .sl = p->sl,
			     .path_bits = (uint8_t)(p->dlid & bits),
			     .pkey_index = gate_index(end->port, p->pkey)};
}

static void send_ack(struct end *end, struct rmpp_in *in)
{
	in->window = in->segments + WINDOW;
	send_control(end, &in->to, in->header,
		     (struct control){.type = TYPE_ACK,
				      .segment = in->segments,
				      .window = in->window,
				      .is_answer = true});
}

/* Ends a transfer for whose MAD there is no room. */
static void refuse_data(struct end *end, uint32_t agent, const struct packet *p)
{
	const struct umad to = sender_of(end, agent, p);

	send_control(end, &to, p->mad,
		     (struct control){.type = TYPE_STOP,
				      .status = STATUS_RESOURCES,
				      .is_answer = true});
}

static void free_oldest_done(struct end *end)
{
	list_for_each (l, &end->incoming)
		if (((const struct rmpp_in *)l)->is_done) {
			free_in(end, (struct rmpp_in *)l);
			return;
		}
}

/* Frees the MAD, and keeps the rest of the transfer for DONE_MS, to answer
 * repeated segments. */
static void keep_done(struct end *end, struct rmpp_in *in)
{
	if (end->finished_count == TRANSFERS_MAX)
		free_oldest_done(end);
	free(in->mad);
	in->mad = NULL;
	in->is_done = true;
	in->due_ms = now_of(end) + DONE_MS;
	end->incoming_count--;
	end->finished_count++;
	list_remove(&in->list);
	list_push_tail(&end->incoming, &in->list);
}

/* Delivers the whole MAD to the program after its last segment has come.  If
 * end_deliver fails, the MAD is lost, and a request that waits times out. */
static void finish_in(struct end *end, struct rmpp_in *in,
		      const struct packet *p)
{
	struct wait *wait = end_find_wait(end, in->agent, p);

	if ((wait || !(p->mad[3] & MAD_METHOD_RESPONSE)) &&
	    end_deliver(end, in->agent, p, in->mad, in->bytes) && wait)
		end_free_wait(end, wait);
	keep_done(end, in);
}

/* Called when the next segment has come: the receiver waits RECEIVE_MS for the
 * segment after it, and the request waits at least as long for its response. */
static void extend_time(const struct end *end, struct rmpp_in *in,
			struct wait *wait)
{
	in->due_ms = now_of(end) + RECEIVE_MS;
	if (wait && wait->due_ms < in->due_ms)
		wait->due_ms = in->due_ms;
}

/* Takes the segment after the last one that has come.  False: there is no room
 * for it. */
static bool take_next(struct end *end, struct rmpp_in *in,
		      const struct packet *p)
{
	bool is_last = p->mad[AT_FLAGS] & FLAG_LAST;

	if (!append_data(in, p->mad))
		return false;
	extend_time(end, in, end_find_wait(end, in->agent, p));
	if (is_last || in->segments == 1 || in->segments >= in->window)
		send_ack(end, in);
	if (is_last)
		finish_in(end, in, p);
	return true;
}

/* Handles a segment of a MAD that has come whole: sends the ACK again if the
 * segment is repeated, since the ACK was lost. */
static void answer_repeated(struct end *end, struct rmpp_in *in,
			    const struct packet *p)
{
	if (bytes_get32(p->mad + AT_SEGMENT) > in->segments)
		return;
	in->to = sender_of(end, in->agent, p);
	send_ack(end, in);
}

/* Begins the transfer of which a segment has come.  NULL: the segment is not
 * the first one, or no transfer can begin.  If the end has too many transfers,
 * the sender waits: it sends the first segment again. */
static struct rmpp_in *begin_in(struct end *end, uint32_t agent,
				const struct packet *p)
{
	struct rmpp_in *in;

	if (bytes_get32(p->mad + AT_SEGMENT) != 1 ||
	    end->incoming_count == TRANSFERS_MAX)
		return NULL;
	in = new_in(end, agent, p);
	if (!in)
		refuse_data(end, agent, p);
	return in;
}

static void take_data(struct end *end, uint32_t agent, const struct packet *p)
{
	uint32_t segment = bytes_get32(p->mad + AT_SEGMENT);
	struct rmpp_in *in = find_in(end, agent, p);
	bool is_awaited = end_find_wait(end, agent, p);

	if (in && in->is_done && is_awaited) {
		/* a request with this transaction ID waits: the program has
		 * used the ID again, and the segment is of another MAD */
		free_in(end, in);
		in = NULL;
	}
	if (in && in->is_done) {
		answer_repeated(end, in, p);
		return;
	}
	if ((p->mad[3] & MAD_METHOD_RESPONSE) && !is_awaited)
		return;
	if (!in)
		in = begin_in(end, agent, p);
	if (!in || segment > in->segments + 1)
		return;
	in->to = sender_of(end, agent, p);
	if (segment <= in->segments) {
		/* the sender repeats segments, since an ACK was lost */
		send_ack(end, in);
	} else if (!take_next(end, in, p)) {
		refuse_data(end, agent, p);
		free_in(end, in);
	}
}

/* STOP and ABORT end a transfer in either direction. */
static void take_end(struct end *end, uint32_t agent, const struct packet *p)
{
	struct rmpp_out *out = find_out(end, agent, p);
	struct rmpp_in *in = find_in(end, agent, p);

	if (out)
		free_out(end, out);
	if (in)
		free_in(end, in);
}

void rmpp_take(struct end *end, uint32_t agent, const struct packet *p)
{
	if (p->mad[AT_VERSION] != 1)
		return;
	switch (p->mad[AT_TYPE]) {
	case TYPE_DATA:
		take_data(end, agent, p);
		break;
	case TYPE_ACK:
		take_ack(end, agent, p);
		break;
	case TYPE_STOP:
	case TYPE_ABORT:
		take_end(end, agent, p);
		break;
	default:
		break;
	}
}

/* Ends a transfer that no ACK acknowledges. */
static void give_up_out(struct end *end, struct rmpp_out *out)
{
	send_control(
		end, &out->to, out->mad,
		(struct control){.type = TYPE_ABORT, .status = STATUS_RETRIES});
	free_out(end, out);
}

/* Ends a transfer whose next segment does not come. */
static void give_up_in(struct end *end, struct rmpp_in *in)
{
	send_control(end, &in->to, in->header,
		     (struct control){.type = TYPE_ABORT,
				      .status = STATUS_TOO_LONG,
				      .is_answer = true});
	free_in(end, in);
}

void rmpp_tick(struct end *end)
{
	uint64_t now_ms = now_of(end);

	list_for_each_safe (l, &end->outgoing) {
		struct rmpp_out *out = (struct rmpp_out *)l;

		if (out->due_ms > now_ms)
			continue;
		if (out->repeats++ == REPEATS)
			give_up_out(end, out);
		else
			send_window(end, out);
	}
	list_for_each_safe (l, &end->incoming) {
		struct rmpp_in *in = (struct rmpp_in *)l;

		if (in->due_ms > now_ms)
			continue;
		if (in->is_done)
			free_in(end, in);
		else
			give_up_in(end, in);
	}
}

uint64_t rmpp_deadline(const struct end *end)
{
	uint64_t first = FABRIC_NEVER;

	list_for_each (l, &end->outgoing) {
		uint64_t due = ((const struct rmpp_out *)l)->due_ms;

		first = due < first ? due : first;
	}
	list_for_each (l, &end->incoming) {
		uint64_t due = ((const struct rmpp_in *)l)->due_ms;

		first = due < first ? due : first;
	}
	return first;
}
