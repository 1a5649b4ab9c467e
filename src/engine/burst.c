/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/burst.h"

#include <string.h>

#include "encap/icrc.h"
#include "util/check.h"
#include "util/crc.h"

void burst_recycle(struct burst *b)
{
	if (b->first != b->count)
		return;
	b->first = b->count = 0;
	b->used = 0;
	b->is_open = false;
}

uint8_t *burst_space(struct burst *b)
{
	/* The next packet may need a new frame: its length and its destination
	 * are not known yet. */
	if (b->count == BURST_FRAMES ||
	    sizeof(b->area) - b->used < BURST_PACKET)
		return NULL;
	return b->area + b->used;
}

static bool fits_frame(const struct burst *b, const struct burst_path *path,
		       size_t bytes)
{
	const struct engine_frame *f;

	if (!b->count || !b->is_open || b->segments >= path->together)
		return false;
	f = &b->frames[b->count - 1];
	return bytes <= f->segment && f->len + bytes <= BURST_BYTES &&
	       path->dest_qpn == f->dest_qpn && path->tos == f->tos &&
	       path->ttl == f->ttl && path->link == f->link &&
	       !memcmp(&path->to, &f->to, sizeof(f->to)) &&
	       !memcmp(&path->from, &f->from, sizeof(f->from));
}

static void begin_frame(struct burst *b, const struct burst_path *path,
			size_t bytes)
{
	struct engine_frame *f = &b->frames[b->count++];

	f->from = path->from;
	f->to = path->to;
	f->bytes = b->area + b->used;
	f->len = 0;
	f->segment = bytes;
	f->tos = path->tos;
	f->ttl = path->ttl;
	f->dest_qpn = path->dest_qpn;
	f->link = path->link;
	f->head_bytes = 0;
	b->segments = 0;
}

/* Makes the head of the newest frame, whose packet has `len` bytes from the BTH
 * to the pad. */
static void write_head(struct burst *b, const struct burst_path *path,
		       size_t len)
{
	const struct burst_lid *lid = &path->lid;
	struct engine_frame *f = &b->frames[b->count - 1];
	uint8_t *head = b->heads[b->count - 1];
	struct iblink h = {
		.lrh = {.sl = lid->sl,
			.lnh = lid->has_grh ? LRH_NEXT_GLOBAL : LRH_NEXT_LOCAL,
			.dlid = lid->dlid,
			.slid = lid->slid},
		.grh = {.traffic_class = path->tos,
			.flow_label = lid->flow_label,
			.hop_limit = path->ttl}};

	memcpy(h.grh.sgid, path->from.ip, 16);
	memcpy(h.grh.dgid, path->to.ip, 16);
	f->head = head;
	f->head_bytes = iblink_write(head, &h, len);
	f->device = lid->device;
	f->port = lid->port;
}

/* Notes the CRC of a payload of sum_bytes bytes.  If sum_bytes is 0, the CRC is
 * not known, and nothing is noted. */
static void note_sum(struct burst *b, uint32_t sum_bytes, uint32_t sum_crc)
{
	if (!sum_bytes)
		return;
	if (b->sum.bytes != sum_bytes) {
		b->sum.bytes = sum_bytes;
		b->sum.factor = crc32_factor(sum_bytes);
	}
	b->sum.crc = sum_crc;
}

static void seal_packet(struct burst *b, const struct burst_path *path,
			size_t len, uint32_t sum_bytes, uint32_t sum_crc)
{
	uint8_t *p = b->area + b->used;
	uint16_t id = (uint16_t)b->segments;
	const struct engine_frame *f = &b->frames[b->count - 1];

	note_sum(b, sum_bytes, sum_crc);
	if (f->head_bytes) {
		bth_put_pkey(p, path->lid.pkey);
		if (sum_bytes)
			iblink_seal_summed(f->head, f->head_bytes, p, len,
					   &b->sum);
		else
			iblink_seal(f->head, f->head_bytes, p, len);
		return;
	}
	if (!sum_bytes) {
		rocev2_seal(&b->memo, &path->from, &path->to, p, len, id);
		return;
	}
	rocev2_seal_summed(&b->memo, &path->from, &path->to, p, len, id,
			   &b->sum);
}

void burst_seal_segment(const struct inaddr *from, const struct inaddr *to,
			uint8_t *packet, size_t len)
{
	rocev2_seal(NULL, from, to, packet, len - ICRC_BYTES, 0);
}

void burst_put(struct burst *b, const struct burst_path *path, size_t len,
	       uint32_t sum_bytes, uint32_t sum_crc)
{
	bool is_by_lid = path->lid.dlid != 0;
	size_t bytes = len + (is_by_lid ? IBLINK_TAIL_BYTES : ICRC_BYTES);
	struct engine_frame *f;

	CHECK(len <= IBT_PACKET_BYTES);
	if (is_by_lid || !fits_frame(b, path, bytes))
		begin_frame(b, path, bytes);
	if (is_by_lid)
		write_head(b, path, len);
	f = &b->frames[b->count - 1];
	seal_packet(b, path, len, sum_bytes, sum_crc);
	b->used += bytes;
	b->segments++;
	f->len += bytes;
	b->is_open = bytes == f->segment && !is_by_lid;
}

/* Does the work of burst_path_of for a connected QP by LID. */
static struct burst_path path_by_lid(const struct ibt_qp *q)
{
	const struct hca_ah *ah = &q->qp->attr.ah;
	struct burst_path path = {
		.from = q->self,
		.to = q->peer,
		.dest_qpn = q->qp->attr.dest_qpn,
		.tos = ah->traffic_class,
		.ttl = ah->hop_limit,
		.together = 1,
		.lid = {.dlid = ah->dlid,
			.sl = ah->sl,
			.has_grh = ah->is_global,
			.flow_label = ah->flow_label,
			.device = q->qp->device,
			.port = q->qp->attr.port_num},
	};

	if (ah->is_global) {
		memcpy(path.from.ip, ah->sgid, 16);
		memcpy(path.to.ip, ah->dgid, 16);
	}
	return path;
}

/* The packets have the TTL of the route, and not the program's hop limit, as
 * with the kernel (ib_resolve_unicast_gid_dmac): programs pass 1 and expect
 * that routers forward their packets. */
struct burst_path burst_path_of(const struct ibt_qp *q)
{
	const struct hca_ah *ah = &q->qp->attr.ah;

	if (q->qp->is_by_lid)
		return path_by_lid(q);
	return (struct burst_path){
		.from = q->self,
		.to = q->peer,
		.dest_qpn = q->qp->attr.dest_qpn,
		.link = ah->link,
		.tos = ah->traffic_class,
		.together = ah->bursts ? BURST_SEGMENTS : 1,
		.local = ah->local,
	};
}

struct burst_path burst_path_to(const struct ibt_qp *q, const struct wq_to *to)
{
	struct burst_path path = {
		.dest_qpn = to->qpn,
		.tos = to->tos,
		.ttl = to->ttl,
		.together = to->bursts ? BURST_SEGMENTS : 1,
		.local = to->local,
	};

	memcpy(path.from.ip, to->from, 16);
	memcpy(path.to.ip, to->to, 16);
	path.from.port = to->port ? to->port : ROCEV2_PORT;
	path.to.port = ROCEV2_PORT;
	if (!q->qp->is_by_lid) {
		path.link = to->link;
		return path;
	}
	path.together = 1;
	path.lid = (struct burst_lid){.dlid = to->lid.dlid,
				      .sl = to->lid.sl,
				      .has_grh = to->has_grh,
				      .flow_label = to->flow_label,
				      .device = q->qp->device,
				      .port = q->qp->attr.port_num};
	return path;
}
